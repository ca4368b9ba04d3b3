/*
 * base/folders.h: the folder for state of this user, and how folders are made.
 */
#ifndef EW_BASE_FOLDERS_H
#define EW_BASE_FOLDERS_H

#include <everywire/base.h>

/*
 * The folder for state of this user; not made yet. EW_OK; EW_EINVAL: there is none, problem gets a line for people, which
 * begins with "no " and what is wanted.
 */
ew_err ew__state_folder(char *out, size_t size, const char *wanted, const char *instead, char *problem,
                        size_t problem_size);
/* Makes a folder and those above it, for this user only. EW_OK, or EW_EIO and a line for people. path is as before. */
ew_err ew__make_folders(char *path, char *problem, size_t problem_size);

#endif
