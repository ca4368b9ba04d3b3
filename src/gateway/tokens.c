/*
 * gateway/tokens.c: the file of tokens: who may touch it, reading it, and changing it so that readers see the old one or the
 * new one whole. See tokens.h and <everywire/access.h>.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gateway/tokens.h"
#include "base/folders.h"
#include "base/secret.h"
#include "wire/texts.h"
#include "wire/wire.h"
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

typedef struct said {
    char *text;
    size_t size;
} said;

static ew_err say(const said *out, ew_err err, const char *format, ...) __attribute__((format(printf, 3, 4)));
static ew_err say(const said *out, ew_err err, const char *format, ...) {
    va_list args;
    va_start(args, format);
    if (out->size) {
        (void)vsnprintf(out->text, out->size, format, args);
    }
    va_end(args);
    return err;
}

static ew_err say_errno(const said *out, const char *what, const char *path) {
    char text[128];
    int bad = errno;
    return say(out, bad == ENOENT ? EW_ENOTFOUND : EW_EIO, "cannot %s %s: %s", what, path,
               strerror_r(bad, text, sizeof text));
}

ew_err ew__tokens_usual(char out[PATH_MAX], char *problem, size_t problem_size) {
    const char *named = getenv("EVERYWIRE_TOKENS");
    static const char file[] = "/tokens";
    if (named && *named) {
        int n = snprintf(out, PATH_MAX, "%s", named);
        return n > 0 && n < PATH_MAX ? EW_OK
                                     : say(&(said){problem, problem_size}, EW_EINVAL, "EVERYWIRE_TOKENS is too long");
    }
    ew_err err = ew__state_folder(out, PATH_MAX - sizeof file, "file of tokens", "--tokens or EVERYWIRE_TOKENS",
                                  problem, problem_size);
    if (err == EW_OK) {
        memcpy(out + strlen(out), file, sizeof file);
    }
    return err;
}

/* ---- who may touch it ---- */

static void folder_of(const char *path, char out[PATH_MAX]) {
    const char *slash = strrchr(path, '/');
    size_t n = slash ? (size_t)(slash - path) : 0;
    (void)snprintf(out, PATH_MAX, "%.*s", slash ? (int)(n ? n : 1) : 1, slash ? (n ? path : "/") : ".");
}

/* Whoever can write to the folder can put another file there. In a folder like /tmp only the owner of a file can. */
static ew_err check_folder(const char *path, const said *out) {
    char folder[PATH_MAX];
    struct stat at;
    folder_of(path, folder);
    if (stat(folder, &at) != 0) {
        return say_errno(out, "look at", folder);
    }
    if ((at.st_mode & 022) && !(at.st_mode & S_ISVTX)) {
        return say(out, EW_EACCESS, "others can write to the folder %s: chmod 700 %s", folder, folder);
    }
    return EW_OK;
}

static ew_err check_file(const char *path, const struct stat *at, const said *out) {
    if (!S_ISREG(at->st_mode)) {
        return say(out, EW_EACCESS, "%s is no file", path);
    }
    if (at->st_uid != geteuid() && at->st_uid != 0) {
        return say(out, EW_EACCESS, "%s belongs to another user", path);
    }
    if (at->st_mode & 077) {
        return say(out, EW_EACCESS, "others can read or write %s: chmod 600 %s", path, path);
    }
    return check_folder(path, out);
}

/* ---- reading ---- */

static ew_err read_all(int fd, ew__buf *out) {
    char piece[4096];
    for (;;) {
        ssize_t n = read(fd, piece, sizeof piece);
        if (n == 0) {
            return EW_OK;
        }
        if (n < 0 && errno != EINTR) {
            return EW_EIO;
        }
        if (n > 0 && ew__buf_add(out, piece, (size_t)n) != EW_OK) {
            return out->err;
        }
    }
}

static ew_err open_and_read(const char *path, ew__buf *text, struct stat *seen, const said *out) {
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        return say_errno(out, "read", path);
    }
    ew_err err = fstat(fd, seen) == 0 ? check_file(path, seen, out) : say_errno(out, "read", path);
    if (err == EW_OK) {
        err = read_all(fd, text);
        err = err == EW_ELIMIT ? say(out, EW_ESYNTAX, "%s is too large for a list of tokens", path)
              : err == EW_EIO  ? say_errno(out, "read", path)
                               : err;
    }
    (void)close(fd);
    return err;
}

ew_err ew__tokens_load(const ew_env *env, const char *path, ew__tokens **ret, struct stat *seen, char *problem,
                       size_t problem_size) {
    const said out = {problem, problem_size};
    struct stat own;
    ew__buf text;
    unsigned line = 0;
    const char *why = NULL;
    ew__buf_init(&text, env, EW__TOKENS_BYTES);
    ew_err err = open_and_read(path, &text, seen ? seen : &own, &out);
    if (err == EW_OK) {
        err = ew__tokens_parse(env, ew__buf_view(&text), ret, &line, &why);
        err = err == EW_ESYNTAX ? say(&out, err, "%s:%u: %s", path, line, why) : err;
    }
    ew__buf_done(&text);
    return err == EW_ENOMEM ? say(&out, err, "out of memory") : err;
}

/* ---- changing ---- */

static ew_err write_all(int fd, ew_str text) {
    while (text.len) {
        ssize_t n = write(fd, text.ptr, text.len);
        if (n < 0 && errno != EINTR) {
            return EW_EIO;
        }
        text = n > 0 ? ew__str(text.ptr + n, text.len - (size_t)n) : text;
    }
    return fsync(fd) == 0 ? EW_OK : EW_EIO;
}

/* A new file takes the place of the old one. */
static ew_err replace(const char *path, ew_str text, const said *out) {
    char fresh[PATH_MAX];
    int n = snprintf(fresh, sizeof fresh, "%s.new", path);
    if (n < 0 || (size_t)n >= sizeof fresh) {
        return say(out, EW_EINVAL, "the name of the file is too long");
    }
    (void)unlink(fresh); /* of somebody who was interrupted: we have the lock */
    int fd = open(fresh, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) {
        return say_errno(out, "write", fresh);
    }
    ew_err err = write_all(fd, text);
    if (close(fd) != 0 || err != EW_OK || rename(fresh, path) != 0) {
        err = say_errno(out, "write", path);
        (void)unlink(fresh);
    }
    return err;
}

/* Makes the folder, and holds others off who change a list there. -1: an error was said. */
static int lock_folder(const char *path, const said *out, ew_err *ret) {
    char folder[PATH_MAX], spare[1];
    folder_of(path, folder);
    *ret = ew__make_folders(folder, out->size ? out->text : spare, out->size);
    if (*ret == EW_OK) {
        *ret = check_folder(path, out);
    }
    int fd = *ret == EW_OK ? open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (*ret == EW_OK && (fd < 0 || flock(fd, LOCK_EX) != 0)) {
        *ret = say_errno(out, "lock", folder);
    }
    if (*ret != EW_OK && fd >= 0) {
        (void)close(fd);
    }
    return *ret == EW_OK ? fd : -1;
}

typedef struct change {
    const ew__token *add; /* or NULL */
    const char *remove;   /* or NULL */
} change;

static ew_err write_changed(const char *path, const ew__tokens *old, const change *what, const said *out) {
    ew__buf text;
    size_t kept = 0;
    ew_err err = EW_OK;
    ew__buf_init(&text, ew_env_default(), EW__TOKENS_BYTES);
    for (size_t i = 0; old && i < old->n && err == EW_OK; i++) {
        const ew__token *token = &old->list[i];
        if (what->add && ew__str_is(token->name, what->add->name)) {
            err =
                say(out, EW_EEXISTS, "there is a token named %.*s in %s", (int)token->name.len, token->name.ptr, path);
        } else if (!what->remove || !ew__str_is(token->name, ew_str_from(what->remove))) {
            ew__token_write(&text, token);
            kept++;
        }
    }
    if (err == EW_OK && what->remove && (!old || kept == old->n)) {
        err = say(out, EW_ENOTFOUND, "there is no token named %s in %s", what->remove, path);
    }
    if (err == EW_OK && what->add && kept == EW__TOKENS_MAX) {
        err = say(out, EW_ELIMIT, "%s holds 1024 tokens already; everywire token revoke NAME makes room", path);
    }
    if (err == EW_OK && what->add) {
        ew__token_write(&text, what->add);
    }
    if (err == EW_OK && text.err) {
        err = say(out, text.err, "the list of tokens is too long, or there is no memory");
    }
    if (err == EW_OK) {
        err = replace(path, ew__buf_view(&text), out);
    }
    ew__buf_done(&text);
    return err;
}

static ew_err change_file(const char *path, const change *what, const said *out) {
    ew__tokens *old = NULL;
    ew_err err;
    int lock = lock_folder(path, out, &err);
    if (lock < 0) {
        return err;
    }
    err = ew__tokens_load(ew_env_default(), path, &old, NULL, out->text, out->size);
    if (err == EW_ENOTFOUND) {
        err = EW_OK; /* the first one */
    }
    if (err == EW_OK) {
        err = write_changed(path, old, what, out);
    }
    ew__tokens_unref(old);
    (void)close(lock);
    return err;
}

/* ---- for programs ---- */

static ew_err begin(const char **file, char path[PATH_MAX], said *out, char *problem, size_t problem_size) {
    *out = (said){problem, problem ? problem_size : 0};
    if (*file) {
        return EW_OK;
    }
    *file = path;
    return ew__tokens_usual(path, problem, out->size);
}

static bool name_ok(const char *name) {
    size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-");
    return n > 0 && n <= 64 && name[n] == 0;
}

static bool pattern_ok(const char *pattern) {
    size_t n = strlen(pattern);
    for (size_t i = 0; i < n; i++) {
        if ((unsigned char)pattern[i] < 0x20 || pattern[i] == '"' || pattern[i] == '\\') {
            return false;
        }
    }
    return n > 0 && n <= 1024 && (pattern[0] == '/' || pattern[0] == '*');
}

static bool wire_ok(const char *name) {
    const ew__wire *wire = ew__wire_by_name(ew_str_from(name));
    return wire && (wire->caps & EW__CAN_SERVE);
}

/* The texts of a list as slices. EW_OK, or what is wrong with one was said. */
static ew_err read_list(ew__arena *arena, const char *const *texts, bool (*ok)(const char *text), const char *what,
                        const said *out, const ew_str **ret, size_t *ret_n) {
    size_t n = 0;
    while (texts && texts[n]) {
        if (!ok(texts[n])) {
            return say(out, EW_EINVAL, "%.200s %s", texts[n], what);
        }
        n++;
    }
    ew_str *list = n ? ew__arena_alloc(arena, n * sizeof *list) : NULL;
    if (n && !list) {
        return say(out, EW_ENOMEM, "out of memory");
    }
    for (size_t i = 0; i < n; i++) {
        list[i] = ew_str_from(texts[i]);
    }
    *ret = list;
    *ret_n = n;
    return EW_OK;
}

static void make_token(char token[EW_TOKEN_SIZE], ew__token *ret, char name[24]) {
    const ew_env *env = ew_env_default();
    uint8_t bits[32];
    env->random(env->ud, bits, sizeof bits);
    memcpy(token, EW__TOKEN_PREFIX, sizeof EW__TOKEN_PREFIX - 1);
    ew__hex(bits, sizeof bits, token + sizeof EW__TOKEN_PREFIX - 1);
    token[EW__TOKEN_LEN] = 0;
    ew__secret_wipe(bits, sizeof bits);
    ew__sha256_of(token, EW__TOKEN_LEN, ret->digest);
    memcpy(name, "token-", 6);
    ew__hex(ret->digest, 4, name + 6);
    name[14] = 0;
    ret->name = ew_str_from(name);
    ret->created_ms = (int64_t)env->wall_ms(env->ud);
    ret->expires_ms = INT64_MAX;
}

static ew_err fill_token(ew__arena *arena, const ew_token_options *options, const said *out, ew__token *ret) {
    if (options->name && !name_ok(options->name)) {
        return say(out, EW_EINVAL, "%.100s is no name: letters, digits, '.', '_' and '-', at most 64", options->name);
    }
    if (options->name) {
        ret->name = ew_str_from(options->name);
    }
    if (options->lasts_ms) {
        ret->expires_ms = ret->created_ms + (int64_t)options->lasts_ms;
    }
    ew_err err = read_list(arena, options->actions, pattern_ok,
                           "is no action: want a key such as /flow/greet, or a pattern such as '/flow/*'", out,
                           &ret->actions, &ret->n_actions);
    if (err != EW_OK) {
        return err;
    }
    char problem[256];
    (void)ew__wire_text("is no wire: want <<listeners>>", 0, 0, problem, sizeof problem);
    return read_list(arena, options->wires, wire_ok, problem, out, &ret->wires, &ret->n_wires);
}

ew_err ew__token_new(const char *file, const ew_token_options *options, char token[EW_TOKEN_SIZE], char *problem,
                     size_t problem_size) {
    static const ew_token_options none;
    char path[PATH_MAX], made_up[24];
    ew__token fresh = {.name = {NULL, 0}};
    ew__arena arena;
    said out;
    ew_err err = begin(&file, path, &out, problem, problem_size);
    if (err != EW_OK) {
        return err;
    }
    ew__arena_init(&arena, ew_env_default(), NULL, 0);
    make_token(token, &fresh, made_up);
    err = fill_token(&arena, options ? options : &none, &out, &fresh);
    if (err == EW_OK) {
        err = change_file(file, &(change){.add = &fresh}, &out);
    }
    if (err != EW_OK) {
        ew__secret_wipe(token, EW_TOKEN_SIZE);
    }
    ew__arena_done(&arena);
    return err;
}

ew_err ew__token_list(const char *file, void (*each)(const ew_token_info *token, void *ud), void *ud, char *problem,
                      size_t problem_size) {
    const ew_env *env = ew_env_default();
    char path[PATH_MAX];
    ew__tokens *tokens = NULL;
    said out;
    ew_err err = begin(&file, path, &out, problem, problem_size);
    if (err == EW_OK) {
        err = ew__tokens_load(env, file, &tokens, NULL, out.text, out.size);
    }
    for (size_t i = 0; tokens && i < tokens->n; i++) {
        const ew__token *token = &tokens->list[i];
        each(&(ew_token_info){.name = token->name,
                              .actions = token->actions,
                              .n_actions = token->n_actions,
                              .wires = token->wires,
                              .n_wires = token->n_wires,
                              .created_ms = token->created_ms,
                              .expires_ms = token->expires_ms,
                              .expired = token->expires_ms <= (int64_t)env->wall_ms(env->ud)},
             ud);
    }
    ew__tokens_unref(tokens);
    return err == EW_ENOTFOUND ? EW_OK : err;
}

ew_err ew__token_revoke(const char *file, const char *name, char *problem, size_t problem_size) {
    char path[PATH_MAX];
    said out;
    ew_err err = begin(&file, path, &out, problem, problem_size);
    return err == EW_OK ? change_file(file, &(change){.remove = name}, &out) : err;
}
