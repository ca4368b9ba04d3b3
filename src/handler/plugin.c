/*
 * handler/plugin.c: see plugin.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "handler/plugin.h"
#include "base/mem.h"
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct ew__plugin {
    const ew_env *env;
    void *handle;
    ew_plugin_fn entry;
};

/* Who is told why. */
typedef struct teller {
    char *problem;
    size_t size;
} teller;

static ew_err refuse(const teller *to, const char *format, ...) __attribute__((format(printf, 2, 3)));
static ew_err refuse(const teller *to, const char *format, ...) {
    va_list args;
    va_start(args, format);
    (void)vsnprintf(to->problem, to->size, format, args);
    va_end(args);
    return EW_EIO;
}

static ew_err refuse_errno(const teller *to, const char *what) {
    char text[100];
    return refuse(to, "%s%s", what, strerror_r(errno, text, sizeof text));
}

/* ---- whether it may be loaded ---- */

static bool is_trusted(uid_t owner) { return owner == 0 || owner == geteuid(); }

/* what: "it", or "its folder". */
static ew_err check_owner(const teller *to, const char *what, const struct stat *is) {
    if (!is_trusted(is->st_uid))
        return refuse(to, "%s belongs to another user (%lu): not loaded", what, (unsigned long)is->st_uid);
    if (is->st_mode & (S_IWGRP | S_IWOTH))
        return refuse(to, "%s can be written by %s (mode %03o): not loaded", what,
                      is->st_mode & S_IWOTH ? "everybody" : "its group", (unsigned)is->st_mode & 07777);
    return EW_OK;
}

/* The folder that a path with a slash names a file in; who may write there can put another file in its place. */
static ew_err check_folder(const teller *to, const char *path) {
    char folder[PATH_MAX];
    struct stat is;
    size_t n = (size_t)(strrchr(path, '/') - path);
    if (n >= sizeof folder)
        return refuse(to, "its path is too long");
    memcpy(folder, n ? path : "/", n ? n : 1);
    folder[n ? n : 1] = '\0';
    if (stat(folder, &is) != 0)
        return refuse_errno(to, "its folder: ");
    return check_owner(to, "its folder", &is);
}

/* real: what is loaded then, so that a link cannot be turned meanwhile; its own folder counts like the link's. */
static ew_err check_file(const teller *to, const char *path, char real[PATH_MAX]) {
    struct stat is;
    if (!strchr(path, '/'))
        return refuse(to, "a plug-in is named by a path with a slash, such as ./%.100s", path);
    if (!realpath(path, real) || stat(real, &is) != 0)
        return refuse_errno(to, "");
    if (!S_ISREG(is.st_mode))
        return refuse(to, "it is no regular file");
    ew_err err = check_owner(to, "it", &is);
    if (err == EW_OK)
        err = check_folder(to, real);
    return err == EW_OK ? check_folder(to, path) : err;
}

/* ---- loading ---- */

/* What the loader says, without the path that whoever asked knows. */
static const char *load_error(const char *path) {
    const char *text = dlerror();
    size_t n = strlen(path);
    if (!text)
        return "it cannot be loaded";
    return strncmp(text, path, n) == 0 && strncmp(text + n, ": ", 2) == 0 ? text + n + 2 : text;
}

static ew_err open_file(const teller *to, const char *path, ew__plugin *plugin) {
    plugin->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!plugin->handle)
        return refuse(to, "%s", load_error(path));
    void *entry = dlsym(plugin->handle, EW_PLUGIN_ENTRY);
    if (!entry) {
        dlclose(plugin->handle);
        return refuse(to, "it has no function " EW_PLUGIN_ENTRY ": it is no plug-in");
    }
    memcpy(&plugin->entry, &entry, sizeof entry); /* C has no cast from one to the other */
    return EW_OK;
}

ew_err ew__plugin_load(const ew_env *env, const char *path, ew__plugin **ret, char *problem, size_t size) {
    const teller to = {problem, size};
    char real[PATH_MAX];
    ew_err err = check_file(&to, path, real);
    if (err != EW_OK)
        return err;
    ew__plugin *plugin = ew__zalloc(env, sizeof *plugin);
    if (!plugin) {
        (void)refuse(&to, "%s", ew_err_text(EW_ENOMEM));
        return EW_ENOMEM;
    }
    plugin->env = env;
    err = open_file(&to, real, plugin);
    if (err == EW_OK)
        *ret = plugin;
    else
        ew__free(env, plugin, sizeof *plugin);
    return err;
}

ew_plugin_fn ew__plugin_fn(const ew__plugin *plugin) { return plugin->entry; }

void ew__plugin_unload(ew__plugin *plugin) {
    if (!plugin)
        return;
    dlclose(plugin->handle);
    ew__free(plugin->env, plugin, sizeof *plugin);
}
