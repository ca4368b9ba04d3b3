/*
 * tests/store_redis/server.c: a redis-server of the test's own. See server.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "store_redis/server.h"
#include "support/port.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define START_MS 20000

static redisReply *last_reply; /* of server_do */

static _Noreturn void give_up(const char *why) {
    (void)fprintf(stderr, "redis-server: %s\n", why);
    exit(2);
}

bool server_exists(void) {
    const char *path = getenv("PATH");
    char name[512];
    while (path != NULL && *path != '\0') {
        size_t n = strcspn(path, ":");
        if (snprintf(name, sizeof name, "%.*s/redis-server", (int)n, path) < (int)sizeof name &&
            access(name, X_OK) == 0)
            return true;
        path += n + (path[n] == ':');
    }
    (void)printf("SKIP: no redis-server\n");
    return false;
}

static _Noreturn void be_server(const server *s, pid_t parent) {
    char port[16], path[96], *argv[16 + 2 * SERVER_ARGS];
    int n = 0, log = open("server.log", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent || log < 0 || dup2(log, 1) < 0 || dup2(log, 2) < 0)
        _exit(126);
    (void)snprintf(port, sizeof port, "%d", s->port);
    (void)snprintf(path, sizeof path, "%s/socket", s->folder);
    const char *const usual[] = {"redis-server", "--port",      port,     "--bind", "127.0.0.1",
                                 "--unixsocket", path,          "--save", "",       "--appendonly",
                                 "no",           "--daemonize", "no"};
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
        argv[n++] = (char *)(uintptr_t)usual[i];
    for (size_t i = 0; s->args[i] != NULL; i++)
        argv[n++] = (char *)(uintptr_t)s->args[i];
    argv[n] = NULL;
    (void)execvp(argv[0], argv);
    _exit(127);
}

static bool try_control(server *s) {
    struct timeval tv = {.tv_sec = 5};
    char path[96];
    (void)snprintf(path, sizeof path, "%s/socket", s->folder);
    redisContext *ctx = redisConnectUnixWithTimeout(path, tv);
    if (ctx != NULL && ctx->err == 0) {
        redisReply *reply = redisCommand(ctx, "PING");
        bool loading = reply != NULL && reply->type == REDIS_REPLY_ERROR && strncmp(reply->str, "LOADING", 7) == 0;
        bool up = reply != NULL && !loading;
        freeReplyObject(reply);
        if (up) {
            s->control = ctx;
            return true;
        }
    }
    if (ctx != NULL)
        redisFree(ctx);
    return false;
}

void server_again(server *s) {
    char here[512];
    pid_t self = getpid();
    if (getcwd(here, sizeof here) == NULL || (s->pid = fork()) < 0)
        give_up("cannot be started");
    if (s->pid == 0) {
        if (chdir(s->folder) != 0)
            _exit(126);
        be_server(s, self);
    }
    for (int waited = 0; !try_control(s); waited += 10) {
        int status;
        if (waitpid(s->pid, &status, WNOHANG) == s->pid || waited > START_MS)
            give_up("it does not come up");
        (void)poll(NULL, 0, 10);
    }
}

void server_start(server *s, const char *const *args) {
    memset(s, 0, sizeof *s);
    (void)snprintf(s->folder, sizeof s->folder, "/tmp/ew-redis-XXXXXX");
    if (mkdtemp(s->folder) == NULL)
        give_up("no folder");
    for (size_t i = 0; args != NULL && args[i] != NULL && i + 1 < SERVER_ARGS; i++)
        s->args[i] = args[i];
    s->port = free_port();
    (void)snprintf(s->url, sizeof s->url, "redis://127.0.0.1:%d/0", s->port);
    (void)snprintf(s->unix_url, sizeof s->unix_url, "unix://%s/socket?db=0", s->folder);
    server_again(s);
}

void server_kill(server *s) {
    int status;
    if (s->control != NULL)
        redisFree(s->control);
    s->control = NULL;
    if (s->pid > 0) {
        (void)kill(s->pid, SIGKILL);
        while (waitpid(s->pid, &status, 0) < 0 && errno == EINTR) {
        }
    }
    s->pid = 0;
}

static void remove_all(const char *folder) {
    DIR *dir = opendir(folder);
    char path[512];
    for (struct dirent *entry; dir != NULL && (entry = readdir(dir)) != NULL;) {
        struct stat is;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
            snprintf(path, sizeof path, "%s/%s", folder, entry->d_name) >= (int)sizeof path)
            continue;
        if (lstat(path, &is) == 0 && S_ISDIR(is.st_mode))
            remove_all(path);
        else
            (void)unlink(path);
    }
    if (dir != NULL)
        (void)closedir(dir);
    (void)rmdir(folder);
}

void server_stop(server *s) {
    server_kill(s);
    freeReplyObject(last_reply);
    last_reply = NULL;
    if (s->folder[0] != '\0')
        remove_all(s->folder);
}

/* ---- asking ---- */

static redisReply *ask(server *s, const char *format, va_list args) {
    freeReplyObject(last_reply);
    last_reply = redisvCommand(s->control, format, args);
    assert_non_null(last_reply);
    return last_reply;
}

redisReply *server_do(server *s, const char *format, ...) {
    va_list args;
    va_start(args, format);
    redisReply *reply = ask(s, format, args);
    va_end(args);
    if (reply->type == REDIS_REPLY_ERROR)
        fail_msg("%s: %s", format, reply->str);
    return reply;
}

long long server_int(server *s, const char *format, ...) {
    va_list args;
    va_start(args, format);
    redisReply *reply = ask(s, format, args);
    va_end(args);
    if (reply->type != REDIS_REPLY_INTEGER)
        fail_msg("%s: no number: %s", format, reply->str != NULL ? reply->str : "");
    return reply->integer;
}

const char *server_text(server *s, const char *format, ...) {
    va_list args;
    va_start(args, format);
    redisReply *reply = ask(s, format, args);
    va_end(args);
    if (reply->type == REDIS_REPLY_ERROR)
        fail_msg("%s: %s", format, reply->str);
    return reply->str != NULL ? reply->str : "";
}

ew__store *server_store(server *s, const ew_env *env) {
    ew__backend *backend = NULL;
    ew__store *store = NULL;
    char problem[200] = "";
    env = env != NULL ? env : ew_env_default();
    if (ew__jobs_redis(env, s->url, &backend, problem, sizeof problem) != EW_OK)
        fail_msg("%s", problem);
    assert_int_equal(ew__jobs_thread(env, backend, &store), EW_OK);
    return store;
}
