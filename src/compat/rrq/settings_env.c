/*
 * compat/rrq/settings_env.c: the variables that RRQ looks at, its .env file among them, and where its configuration is. See settings.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/util.h"
#include "compat/rrq/settings.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_MAX_BYTES 65536
#define FOLDERS_MAX 64 /* how far up a .env is looked for */

/* ---- the text ---- */

static bool is_name(char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
}

/* What stands behind the =: in quotes, or up to a comment. */
static ew_str value_of(ew_str text) {
    text = ew__str_trim(text);
    if (text.len > 1 && (text.ptr[0] == '"' || text.ptr[0] == '\'')) {
        const char *end = memchr(text.ptr + 1, text.ptr[0], text.len - 1);
        return end ? ew__str(text.ptr + 1, (size_t)(end - text.ptr) - 1) : ew__str(NULL, 0);
    }
    for (size_t i = 0; i + 1 < text.len; i++) {
        if (text.ptr[i] == ' ' && text.ptr[i + 1] == '#') {
            text.len = i;
        }
    }
    return ew__str_trim(text);
}

/* The name is not empty. */
static ew_err add(ew__rrq_variables *variables, ew_str name, ew_str value) {
    const char *from = value.len && value.ptr ? value.ptr : "";
    size_t n = name.len + value.len + 2;
    if (!name.ptr || memchr(from, 0, value.len)) {
        return EW_OK;
    }
    char *list = ew__realloc(variables->env, variables->list, variables->cap, variables->cap + n);
    if (!list) {
        return EW_ENOMEM;
    }
    char *at = list + variables->len;
    memcpy(at, name.ptr, name.len);
    at[name.len] = '=';
    memcpy(at + name.len + 1, from, value.len);
    at[n - 1] = 0;
    variables->list = list;
    variables->cap += n;
    variables->len += n;
    return EW_OK;
}

static ew_err read_line(ew__rrq_variables *variables, ew_str line) {
    line = ew__str_trim(line);
    if (ew__str_has_prefix(line, EW_STR("export "))) {
        line = ew__str_trim(ew__str(line.ptr + 7, line.len - 7));
    }
    size_t n = 0;
    while (n < line.len && is_name(line.ptr[n])) {
        n++;
    }
    ew_str name = ew__str(line.ptr, n), rest = ew__str_trim(ew__str(line.ptr ? line.ptr + n : NULL, line.len - n));
    if (!ew__str_has_prefix(name, EW_STR("RRQ_")) || rest.len == 0 || rest.ptr[0] != '=') {
        return EW_OK; /* the rest of the file is somebody else's */
    }
    return add(variables, name, value_of(ew__str(rest.ptr + 1, rest.len - 1)));
}

ew_err ew__rrq_variables_read(ew__rrq_variables *variables, ew_str text) {
    ew_err err = EW_OK;
    while (text.len > 0 && err == EW_OK) {
        const char *end = memchr(text.ptr, '\n', text.len);
        size_t n = end ? (size_t)(end - text.ptr) : text.len;
        size_t cut = n > 0 && text.ptr[n - 1] == '\r' ? 1 : 0;
        err = read_line(variables, ew__str(text.ptr, n - cut));
        n += end != NULL;
        text = ew__str(text.ptr + n, text.len - n);
    }
    return err;
}

/* ---- the file ---- */

/* A regular file that is this user's or root's, and that nobody else can write to. -1: none. */
static int open_file(const char *path) {
    struct stat file;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd >= 0 && (fstat(fd, &file) != 0 || !S_ISREG(file.st_mode) || ew__config_distrusts(&file))) {
        (void)close(fd);
        return -1;
    }
    return fd;
}

static ew_err read_file(ew__rrq_variables *variables, const char *path) {
    int fd = open_file(path);
    if (fd < 0) {
        return EW_OK;
    }
    char *bytes = ew__alloc(variables->env, FILE_MAX_BYTES);
    size_t len = 0;
    ssize_t n = bytes ? 1 : 0;
    while (n > 0 && len < FILE_MAX_BYTES) {
        n = read(fd, bytes + len, FILE_MAX_BYTES - len);
        n = n < 0 && errno == EINTR ? 1 : n > 0 ? (len += (size_t)n, n) : 0;
    }
    (void)close(fd);
    ew_err err = bytes ? ew__rrq_variables_read(variables, ew__str(bytes, len)) : EW_ENOMEM;
    ew__free(variables->env, bytes, FILE_MAX_BYTES);
    return err;
}

ew_err ew__rrq_variables_init(ew__rrq_variables *variables, const ew_env *env) {
    char path[PATH_MAX + 8];
    *variables = (ew__rrq_variables){.env = env};
    if (!getcwd(path, PATH_MAX)) {
        return EW_OK;
    }
    for (size_t n = strlen(path), i = 0; i < FOLDERS_MAX; i++) {
        n -= n > 0 && path[n - 1] == '/';
        memcpy(path + n, "/.env", 6);
        if (access(path, F_OK) == 0) {
            return read_file(variables, path);
        }
        while (n > 0 && path[n - 1] != '/') {
            n--;
        }
        if (n == 0) {
            break;
        }
    }
    return EW_OK;
}

void ew__rrq_variables_done(ew__rrq_variables *variables) {
    ew__free(variables->env, variables->list, variables->cap);
    variables->list = NULL;
    variables->len = variables->cap = 0;
}

const char *ew__rrq_variable(void *ud, const char *name) {
    const ew__rrq_variables *variables = ud;
    const char *set = getenv(name);
    size_t n = strlen(name);
    if (set) {
        return *set ? set : NULL;
    }
    for (size_t at = 0; at < variables->len; at += strlen(variables->list + at) + 1) {
        const char *line = variables->list + at;
        if (strncmp(line, name, n) == 0 && line[n] == '=') {
            return line[n + 1] ? line + n + 1 : NULL;
        }
    }
    return NULL;
}

const char *ew__rrq_find(ew__rrq_variables *variables) {
    const char *named = ew__rrq_variable(variables, "RRQ_CONFIG");
    return named ? named : access("rrq.toml", F_OK) == 0 ? "rrq.toml" : NULL;
}
