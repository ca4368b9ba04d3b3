/*
 * store/file_identity.c: see file_identity.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "store/file_identity.h"
#include <sys/stat.h>

void ew__file_identity_read(const char *path, ew__file_identity *ret) {
    struct stat st;
    bool there = stat(path, &st) == 0;
    ret->device = there ? st.st_dev : 0;
    ret->inode = there ? st.st_ino : 0;
}

bool ew__file_identity_holds(const char *path, const ew__file_identity *identity) {
    ew__file_identity now;
    ew__file_identity_read(path, &now);
    return now.inode == identity->inode && now.device == identity->device;
}
