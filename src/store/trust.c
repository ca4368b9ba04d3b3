/*
 * store/trust.c: see trust.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "store/trust.h"
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static bool is_trusted_file(const char *path, const char *what, uid_t uid, char *why) {
    struct stat is;
    if (lstat(path, &is) != 0) {
        return true;
    }
    unsigned mode = (unsigned)is.st_mode & 07777;
    if (S_ISLNK(is.st_mode)) {
        (void)snprintf(why, EW__TRUST_WHY, "%s is a symbolic link; name the file that it points to", what);
    } else if (!S_ISREG(is.st_mode)) {
        (void)snprintf(why, EW__TRUST_WHY, "%s is not a regular file", what);
    } else if (is.st_uid != uid) {
        (void)snprintf(why, EW__TRUST_WHY, "%s belongs to the user %lu; run as that user, or use another store", what,
                       (unsigned long)is.st_uid);
    } else if (mode & (S_IWGRP | S_IWOTH)) {
        (void)snprintf(why, EW__TRUST_WHY, "%s is writable for other users (mode %04o); run chmod go-w on it", what,
                       mode);
    } else {
        return true;
    }
    return false;
}

static bool is_trusted_folder(const char *path, char *why) {
    struct stat is;
    if (stat(path, &is) != 0 || !(is.st_mode & S_IWOTH) || (is.st_mode & S_ISVTX)) {
        return true;
    }
    (void)snprintf(why, EW__TRUST_WHY, "its folder is writable for every user (mode %04o); run chmod o-w on the folder",
                   (unsigned)is.st_mode & 07777);
    return false;
}

/* `text` holds the path; there is room for the longest suffix behind it. */
static bool are_trusted_files(char *text, uid_t uid, char *why) {
    static const char *const files[][2] = {
        {"", "it"}, {"-wal", "its -wal file"}, {"-shm", "its -shm file"}, {"-journal", "its -journal file"}};
    size_t n = strlen(text);
    bool trusted = true;
    for (size_t i = 0; trusted && i < sizeof files / sizeof *files; i++) {
        memcpy(text + n, files[i][0], strlen(files[i][0]) + 1);
        trusted = is_trusted_file(text, files[i][1], uid, why);
    }
    text[n] = '\0';
    return trusted;
}

bool ew__trust_database(const char *path, uid_t uid, char why[EW__TRUST_WHY]) {
    char text[PATH_MAX + sizeof "-journal"];
    size_t n = strlen(path);
    if (n >= PATH_MAX) {
        (void)snprintf(why, EW__TRUST_WHY, "the path is too long");
        return false;
    }
    memcpy(text, path, n + 1);
    if (!are_trusted_files(text, uid, why)) {
        return false;
    }
    char *slash = strrchr(text, '/');
    if (slash == NULL) {
        return is_trusted_folder(".", why);
    }
    slash[slash == text ? 1 : 0] = '\0';
    return is_trusted_folder(text, why);
}
