/*
 * config/config_file.c: the configuration file on disk: its bytes, its owner and mode, and the environment. See config.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/util.h"
#include "config/config.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define NOT_REGULAR (-1) /* no number of errno's */

static const char *variable(void *ud, const char *name) {
    (void)ud;
    return getenv(name);
}

const char *ew__config_distrusts(const struct stat *file) {
    if (file->st_uid != geteuid() && file->st_uid != 0) {
        return "it belongs to another user";
    }
    return file->st_mode & (S_IWGRP | S_IWOTH) ? "others than its owner may write to it; chmod go-w mends that" : NULL;
}

/* The whole file, up to one byte more than is allowed. 0, or an errno. */
static int read_all(int fd, ew__buf *out) {
    for (;;) {
        size_t room = EW__CONFIG_BYTES + 1 - out->len;
        size_t want = room < 16384 ? room : 16384;
        if (want == 0) {
            return 0;
        }
        if (ew__buf_reserve(out, want) != EW_OK) {
            return ENOMEM;
        }
        ssize_t n = read(fd, out->ptr + out->len, want);
        if (n == 0) {
            return 0;
        }
        if (n < 0 && errno != EINTR) {
            return errno;
        }
        out->len += n > 0 ? (size_t)n : 0;
    }
}

/* The folder that a file is in, as an absolute path without its slash at the end. 0, or an errno. */
static int folder_of(const char *path, char out[PATH_MAX]) {
    char text[PATH_MAX];
    const char *slash = strrchr(path, '/');
    size_t n = slash ? (size_t)(slash - path) + 1 : 1;
    if (n >= sizeof text) {
        return ENAMETOOLONG;
    }
    memcpy(text, slash ? path : ".", n);
    text[n] = 0;
    if (!realpath(text, out)) {
        return errno;
    }
    if (strcmp(out, "/") == 0) {
        out[0] = 0;
    }
    return 0;
}

/* A pipe or a device is not opened for long: nothing may hang here. 0, or an errno. */
static int read_file(const char *path, ew__buf *bytes, char folder[PATH_MAX], struct stat *ret_stat) {
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) {
        return errno;
    }
    int bad = fstat(fd, ret_stat) != 0 ? errno : S_ISDIR(ret_stat->st_mode) ? EISDIR : 0;
    if (!bad && !S_ISREG(ret_stat->st_mode)) {
        bad = NOT_REGULAR;
    }
    if (!bad) {
        bad = read_all(fd, bytes);
    }
    if (!bad) {
        bad = folder_of(path, folder);
    }
    (void)close(fd);
    return bad;
}

static const char *reason(int number, char text[128]) {
    return number == NOT_REGULAR ? "it is no regular file" : strerror_r(number, text, 128);
}

bool ew__config_read_beside(const char *path, ew__buf *out, char *why, size_t size) {
    char folder[PATH_MAX], text[128];
    struct stat file;
    int bad = read_file(path, out, folder, &file);
    if (!bad && out->len > EW__CONFIG_BYTES) {
        bad = EFBIG;
    }
    if (bad) {
        (void)snprintf(why, size, "it cannot be read: %s", reason(bad, text));
    }
    return !bad;
}

static bool is_toml(const char *path) {
    size_t n = strlen(path);
    return n > 5 && strcmp(path + n - 5, ".toml") == 0;
}

/* Without its bytes a file has one problem. */
static ew_err unreadable(const ew_env *env, int number, ew__config **ret_config) {
    char text[128];
    const char *why = reason(number, text);
    if (ew__config_parse(env, ew__str(NULL, 0), "", variable, NULL, ret_config) != EW_OK) {
        return EW_ENOMEM;
    }
    ew__problem_add(&(*ret_config)->problems, 0, 0, "cannot be read: %s", why);
    if ((*ret_config)->problems.no_memory) {
        ew__config_free(*ret_config);
        *ret_config = NULL;
        return EW_ENOMEM;
    }
    return EW_EIO;
}

ew_err ew__config_load(const ew_env *env, const char *path, ew__config_parse_fn parse_toml, ew__config **ret_config) {
    char folder[PATH_MAX];
    struct stat file = {.st_uid = 0};
    ew__buf bytes;
    *ret_config = NULL;
    ew__buf_init(&bytes, env, EW__CONFIG_BYTES + 1);
    int bad = read_file(path, &bytes, folder, &file);
    ew_err err = bad == ENOMEM ? EW_ENOMEM : bad ? EW_EIO : EW_OK;
    if (err == EW_OK && is_toml(path)) {
        err = parse_toml(env, ew__buf_view(&bytes), folder, ret_config);
    } else if (err == EW_OK) {
        err = ew__config_parse(env, ew__buf_view(&bytes), folder, variable, NULL, ret_config);
    } else if (err == EW_EIO) {
        err = unreadable(env, bad, ret_config);
    }
    ew__buf_done(&bytes);
    if (err == EW_OK && ew__config_runs_code(*ret_config) && ew__config_distrusts(&file)) {
        ew__problem_add(&(*ret_config)->problems, 0, 0, "it names programs or plug-ins, but %s",
                        ew__config_distrusts(&file));
        ew__problems_sort(&(*ret_config)->problems);
        if ((*ret_config)->problems.no_memory) {
            ew__config_free(*ret_config);
            *ret_config = NULL;
            err = EW_ENOMEM;
        }
    }
    return err;
}
