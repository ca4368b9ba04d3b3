/*
 * io/spawn.c: fork and exec. The program is looked up and everything else prepared before the fork: between fork and
 * exec only calls that are safe there, for the host may have other threads.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "io/handle.h"
#include "io/child.h"
#include "io/fd.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define DEFAULT_PATH "/usr/local/bin:/usr/bin:/bin"
#define CANNOT_RUN 127 /* the shells' exit code for a program that cannot be run */
#define PIPE_BYTES (1 << 20)

/* What the child needs; prepared by the parent. Its descriptors are above 2, so that dup2 does not overwrite them. */
struct plan {
    const char *program;
    const char *folder; /* NULL: ours */
    struct bound {
        unsigned resource;
        struct rlimit limit;
    } bounds[4];
    size_t n_bounds;
    const char *const *argv;
    char *const *vars; /* its environment */
    int input, output, errors, verdict;
    pid_t parent;
};

/* ---- in the child ---- */

/* The host's handlers do not exist in the new program, but what it ignores would stay ignored. */
static void reset_signals(void) {
    struct sigaction standard;
    memset(&standard, 0, sizeof standard);
    standard.sa_handler = SIG_DFL;
    for (int number = 1; number < NSIG; number++)
        (void)sigaction(number, &standard, NULL); /* allow-banned: in the child, not in the host */
}

static void close_others(void) {
#if defined(SYS_close_range)
    const unsigned on_exec = 4; /* CLOSE_RANGE_CLOEXEC */
    (void)syscall(SYS_close_range, 3u, ~0u, on_exec);
#endif
    /* without it: all of ours are close-on-exec anyway, the host's own are as it made them */
}

static bool obey(const struct plan *plan) {
    bool ok = !plan->folder || chdir(plan->folder) == 0;
    for (size_t i = 0; ok && i < plan->n_bounds; i++)
        ok = setrlimit(plan->bounds[i].resource, &plan->bounds[i].limit) == 0;
    return ok;
}

static void run_child(const struct plan *plan) {
    sigset_t none;
    sigemptyset(&none);
    (void)setpgid(0, 0);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != plan->parent) /* it died before prctl: nobody will tell us */
        _exit(CANNOT_RUN);         /* allow-banned: in the child, not in the host */
    reset_signals();
    if (dup2(plan->input, 0) >= 0 && dup2(plan->output, 1) >= 0 && dup2(plan->errors, 2) >= 0) {
        close_others();
        pthread_sigmask(SIG_SETMASK, &none, NULL);
        if (obey(plan))
            (void)execve(plan->program, (char *const *)(uintptr_t)plan->argv, plan->vars);
    }
    int error = errno;
    ssize_t written = write(plan->verdict, &error, sizeof error);
    (void)written;
    _exit(CANNOT_RUN); /* allow-banned: in the child, not in the host */
}

/* ---- in the parent ---- */

static int error_of_program(const char *path) {
    struct stat file;
    if (stat(path, &file) != 0)
        return errno;
    return !S_ISREG(file.st_mode) || access(path, X_OK) != 0 ? EACCES : 0;
}

/* As execvp looks, but before the fork, and without its shell for files of unknown kind. 0 or errno. */
static int find_program(const char *name, char *out, size_t size) {
    const char *at = getenv("PATH");
    size_t n_name = strlen(name);
    int verdict = ENOENT;
    if (n_name == 0 || n_name >= size)
        return n_name ? ENAMETOOLONG : ENOENT;
    if (strchr(name, '/')) {
        memcpy(out, name, n_name + 1);
        return 0; /* exec itself says what is wrong with it */
    }
    for (at = at ? at : DEFAULT_PATH; at; at = *at ? at + 1 : NULL) {
        size_t n = strcspn(at, ":");
        if (n + n_name + 3 <= size) {
            memcpy(out, n ? at : ".", n ? n : 1);
            size_t end = n ? n : 1;
            out[end] = '/';
            memcpy(out + end + 1, name, n_name + 1);
            int error = error_of_program(out);
            if (error == 0)
                return 0;
            if (error == EACCES)
                verdict = EACCES;
        }
        at += n;
    }
    return verdict;
}

static void close_pair(const int pair[2]) {
    for (int i = 0; i < 2; i++)
        if (pair[i] >= 0)
            close(pair[i]);
}

/* A host may run with 0, 1 or 2 closed: what we open must not sit there. 0 or errno. */
static int move_up(int pair[2]) {
    for (int i = 0; i < 2; i++) {
        if (pair[i] > 2)
            continue;
        int fd = ew__fd_copy(pair[i]);
        if (fd < 0)
            return errno;
        close(pair[i]);
        pair[i] = fd;
    }
    return 0;
}

/* What is between us and it; the first of each is ours. */
typedef struct pairs {
    int input[2], output[2], errors[2], verdict[2];
} pairs;

static void close_pairs(const pairs *all) {
    close_pair(all->input);
    close_pair(all->output);
    close_pair(all->errors);
    close_pair(all->verdict);
}

static int prepare(int pair[2], int ours) {
    int error = pair[0] >= 0 ? move_up(pair) : 0;
    return error == 0 && pair[0] >= 0 && fcntl(pair[0], F_SETFL, ours | O_NONBLOCK) != 0 ? errno : error;
}

static bool make_input(int pair[2], bool pipe_input) {
    int ends[2];
    if (!pipe_input)
        return socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0;
    if (pipe2(ends, O_CLOEXEC) != 0)
        return false;
    pair[0] = ends[1];
    pair[1] = ends[0];
    return true;
}

/*
 * What it writes does not come by the socket that it reads from: Python's asyncio takes a socket on which there is
 * something to read for one that was hung up. The pipe is large, because the same programs spoil what does not fit.
 */
static int make_pairs(pairs *all, bool output, bool pipe_input) {
    *all = (pairs){{-1, -1}, {-1, -1}, {-1, -1}, {-1, -1}};
    if (!make_input(all->input, pipe_input) || pipe2(all->errors, O_CLOEXEC) != 0 ||
        pipe2(all->verdict, O_CLOEXEC) != 0 || (output && pipe2(all->output, O_CLOEXEC) != 0))
        return errno;
    if (output)
        (void)fcntl(all->output[1], F_SETPIPE_SZ, PIPE_BYTES);
    int error = prepare(all->input, O_RDWR);
    error = error ? error : prepare(all->output, O_RDONLY);
    error = error ? error : prepare(all->errors, O_RDONLY);
    return error ? error : prepare(all->verdict, O_RDONLY);
}

/* All signals wait during the fork: a handler of the host must not run in the child. 0 or errno. */
static int fork_child(const struct plan *plan, pid_t *ret_pid) {
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    *ret_pid = fork();
    int error = *ret_pid < 0 ? errno : 0;
    if (*ret_pid == 0)
        run_child(plan);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (error == 0)
        (void)setpgid(*ret_pid, *ret_pid); /* the child does it too: whoever comes first */
    return error;
}

static bool same_name(const char *a, const char *b) {
    size_t n = strcspn(a, "=");
    return n == strcspn(b, "=") && memcmp(a, b, n) == 0;
}

static bool is_replaced(const char *var, const char *const *vars) {
    for (; *vars; vars++)
        if (same_name(var, *vars))
            return true;
    return false;
}

static size_t count(const char *const *vars) {
    size_t n = 0;
    while (vars && vars[n])
        n++;
    return n;
}

/* What is inherited, with vars in place of those of the same name. NULL: out of memory. */
static const char **merge(const ew_env *env, const char *const *inherited, const char *const *vars, size_t *ret_size) {
    *ret_size = (count(inherited) + count(vars) + 1) * sizeof *vars;
    const char **all = ew__alloc(env, *ret_size);
    size_t n = 0;
    for (size_t i = 0; all && inherited && inherited[i]; i++)
        if (!is_replaced(inherited[i], vars))
            all[n++] = inherited[i];
    for (size_t i = 0; all && i < count(vars); i++)
        all[n++] = vars[i];
    if (all)
        all[n] = NULL;
    return all;
}

/* No more than we may have ourselves, so that setting it cannot fail. 0 or errno. */
static int add_bound(struct plan *plan, unsigned resource, uint64_t wanted, uint64_t above) {
    struct rlimit limit;
    if (wanted == 0)
        return 0;
    if (getrlimit(resource, &limit) != 0)
        return errno;
    rlim_t soft = wanted >= RLIM_INFINITY - above ? RLIM_INFINITY : (rlim_t)wanted;
    rlim_t hard = soft == RLIM_INFINITY ? soft : soft + above;
    limit.rlim_max = hard < limit.rlim_max ? hard : limit.rlim_max;
    limit.rlim_cur = soft < limit.rlim_max ? soft : limit.rlim_max;
    plan->bounds[plan->n_bounds++] = (struct bound){resource, limit};
    return 0;
}

static int plan_rules(struct plan *plan, const ew__child_rules *rules) {
    plan->folder = rules->folder;
    int error = add_bound(plan, RLIMIT_CPU, rules->cpu_s, 1); /* SIGXCPU tells why; a second later SIGKILL */
    error = error ? error : add_bound(plan, RLIMIT_FSIZE, rules->file_bytes, 0);
    error = error ? error : add_bound(plan, RLIMIT_NOFILE, rules->open_files, 0);
    return error ? error : add_bound(plan, RLIMIT_AS, rules->memory_bytes, 0);
}

static int spawn_with(const ew__where *where, char *const *vars, ew__spawned *ret) {
    char program[PATH_MAX];
    pairs all = {{-1, -1}, {-1, -1}, {-1, -1}, {-1, -1}};
    bool output = !where->managed || where->tells;
    int error = find_program(where->argv[0], program, sizeof program);
    if (error == 0)
        error = make_pairs(&all, output, where->pipe_input);
    if (error == 0) {
        struct plan plan = {.program = program,
                            .argv = where->argv,
                            .vars = vars,
                            .input = all.input[1],
                            .output = output ? all.output[1] : all.errors[1],
                            .errors = all.errors[1],
                            .verdict = all.verdict[1],
                            .parent = getpid()};
        if (where->rules)
            error = plan_rules(&plan, where->rules);
        if (error == 0)
            error = fork_child(&plan, &ret->pid);
    }
    if (error != 0) {
        close_pairs(&all);
        return uv_translate_sys_error(error);
    }
    close(all.input[1]);
    if (output)
        close(all.output[1]);
    close(all.errors[1]);
    close(all.verdict[1]);
    ret->input = output ? all.input[0] : -1;
    ret->output = output ? all.output[0] : all.input[0];
    ret->errors = all.errors[0];
    ret->verdict = all.verdict[0];
    return 0;
}

int ew__spawn(const ew_env *env, const ew__where *where, ew__spawned *ret) {
    const char *const *inherited = where->inherited ? where->inherited : (const char *const *)environ;
    size_t size = 0;
    if (!where->vars)
        return spawn_with(where, (char *const *)(uintptr_t)inherited, ret);
    const char **vars = merge(env, inherited, where->vars, &size);
    if (!vars)
        return UV_ENOMEM;
    int error = spawn_with(where, (char *const *)(uintptr_t)vars, ret);
    ew__free(env, (void *)vars, size);
    return error;
}
