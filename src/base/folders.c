/*
 * base/folders.c: see folders.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/folders.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Makes all folders of a path, for this user only. 0, or an errno. */
static int make_folders(char *path) {
    for (char *slash = strchr(path + 1, '/');; slash = strchr(slash + 1, '/')) {
        if (slash) {
            *slash = 0;
        }
        int bad = mkdir(path, 0700) != 0 && errno != EEXIST ? errno : 0;
        if (!slash) {
            return bad;
        }
        *slash = '/';
        if (bad && bad != EACCES && bad != EROFS) { /* those may come from one that is there */
            return bad;
        }
    }
}

ew_err ew__make_folders(char *path, char *problem, size_t problem_size) {
    char text[128];
    int bad = make_folders(path);
    if (bad) {
        (void)snprintf(problem, problem_size, "cannot make the folder %.300s: %s", path,
                       strerror_r(bad, text, sizeof text));
    }
    return bad ? EW_EIO : EW_OK;
}

ew_err ew__state_folder(char *out, size_t size, const char *wanted, const char *instead, char *problem,
                        size_t problem_size) {
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    int n;
    if (state && state[0] == '/') {
        n = snprintf(out, size, "%s/everywire", state);
    } else if (home && home[0] == '/') {
        n = snprintf(out, size, "%s/.local/state/everywire", home);
    } else {
        (void)snprintf(problem, problem_size, "no %s: neither HOME nor XDG_STATE_HOME says where; %s can", wanted,
                       instead);
        return EW_EINVAL;
    }
    if (n < 0 || (size_t)n >= size) {
        (void)snprintf(problem, problem_size, "no %s: the path of the home folder is too long", wanted);
        return EW_EINVAL;
    }
    return EW_OK;
}
