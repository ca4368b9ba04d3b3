/*
 * program/sandbox.c: the sandbox of ew_app_main: which places may be written, whether child
 * processes may start, and what the log says of it. See main.h; io/sandbox.h does the rest.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "program/main.h"
#include "program/default_store.h"
#include "base/folders.h"
#include "io/sandbox.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define WRITES_MAX 256

static const char sqlite[] = "sqlite:", unix_address[] = "unix:";

/* Temporary files, shared memory, and devices that every program may expect. */
static const char *const common[] = {"/tmp",      "/var/tmp",  "/dev/shm", "/dev/null",
                                     "/dev/zero", "/dev/full", "/dev/tty", NULL};

/* Folders that systemd made for this service: paths with colons between them. */
static const char *const folder_variables[] = {"STATE_DIRECTORY", "RUNTIME_DIRECTORY", "CACHE_DIRECTORY",
                                               "LOGS_DIRECTORY", NULL};

/* The places that may be written. */
typedef struct places {
    ew__arena *arena; /* of the texts */
    const char *list[WRITES_MAX + 1];
    size_t n;
    bool no_memory, full;
} places;

/* ---- places ---- */

static void add_place(places *p, const char *path) {
    const char *copy = *path ? ew__arena_copy(p->arena, path, strlen(path) + 1) : NULL;
    p->no_memory = p->no_memory || (*path && !copy);
    p->full = p->full || p->n == WRITES_MAX;
    if (copy && p->n < WRITES_MAX) {
        p->list[p->n++] = copy;
    }
}

static void add_places(places *p, const char *const *paths) {
    for (; paths && *paths; paths++) {
        add_place(p, *paths);
    }
}

static void add_variable(places *p, const char *name) {
    char path[PATH_MAX];
    const char *at = getenv(name);
    while (at && *at) {
        size_t n = strcspn(at, ":");
        (void)snprintf(path, sizeof path, "%.*s", (int)(n < sizeof path ? n : 0), at);
        add_place(p, path);
        at += n + (at[n] == ':');
    }
}

/* The folder of a file, made if it is not there; symbolic links to the file are followed. */
static void add_folder_of(places *p, const char *file, bool make) {
    char path[PATH_MAX], problem[16];
    if (!realpath(file, path)) {
        (void)snprintf(path, sizeof path, "%s", file);
    }
    char *slash = strrchr(path, '/');
    if (!slash) {
        (void)snprintf(path, sizeof path, ".");
    } else {
        slash[slash == path] = 0;
    }
    if (make) {
        (void)ew__make_folders(path, problem, sizeof problem); /* opening the file reports the error */
    }
    add_place(p, path);
}

/* A file of SQLite has others beside it. Other stores and "memory" write nothing. */
static void add_store(places *p, const char *store) {
    if (store && strncmp(store, sqlite, sizeof sqlite - 1) == 0) {
        add_folder_of(p, store + sizeof sqlite - 1, true);
    }
}

/* "[WIRE=]unix:PATH" */
static void add_listener(places *p, const char *text) {
    const char *equals = strchr(text, '=');
    if (equals && strncmp(text, unix_address, sizeof unix_address - 1) != 0) {
        text = equals + 1;
    }
    if (strncmp(text, unix_address, sizeof unix_address - 1) == 0) {
        add_folder_of(p, text + sizeof unix_address - 1, false);
    }
}

/* The folder for state is made, because the default store and tokens are in it. */
static void add_state(places *p) {
    char path[PATH_MAX], problem[16];
    if (ew__state_folder(path, sizeof path, "", "", problem, sizeof problem) == EW_OK) {
        (void)ew__make_folders(path, problem, sizeof problem);
        add_place(p, path);
    }
}

static void add_config(places *p, const ew__config *config) {
    const ew__config_import *imports = config->imports.items;
    const ew__config_action *actions = config->actions.items;
    for (size_t i = 0; config->listen && config->listen[i]; i++) {
        add_listener(p, config->listen[i]);
    }
    for (size_t i = 0; i < config->imports.n; i++) {
        add_store(p, imports[i].options.blobs);
    }
    for (size_t i = 0; i < config->actions.n; i++) {
        add_store(p, actions[i].remote.options.blobs);
    }
    add_places(p, config->sandbox.write);
}

/* The store of jobs that will be opened, unless it is the default one; NULL: none is named. */
static const char *named_store(const ew__settings *s) {
    const char *store = s->store ? s->store : getenv("EVERYWIRE_STORE");
    return store && *store ? store : s->config ? s->file.config->jobs.store : NULL;
}

static void collect(places *p, const ew__settings *s, const ew_app *app) {
    add_places(p, common);
    add_variable(p, "TMPDIR");
    for (size_t i = 0; folder_variables[i]; i++) {
        add_variable(p, folder_variables[i]);
    }
    add_state(p);
    add_store(p, named_store(s));
    for (size_t i = 0; i < s->n_listens; i++) {
        add_listener(p, s->listens[i]);
    }
    for (size_t i = 0; i < app->n_listeners; i++) {
        add_listener(p, app->listeners[i].address.text);
    }
    add_places(p, s->writes);
    if (s->config) {
        add_config(p, s->file.config);
    }
    p->list[p->n] = NULL;
}

/* ---- what the kernel did ---- */

/*
 * Whether child processes may be needed: the configuration names some, or the program has actions,
 * sources or plug-ins of its own, which may start any.
 */
static bool needs_children(const ew__settings *s, const ew_app *app) {
    return app->registry.next_id > 0 || app->sources.list.first || app->plugins.n > 0 || ew__app_works(app) ||
           (s->config && ew__config_runs_code(s->file.config));
}

/* Logs what is missing, one line each, at that level. Returns whether something is. */
static bool log_missing(const ew_env *env, ew_log_level level, const ew__sandbox_report *r) {
    char why[128];
    if (r->privileges_error) {
        ew__log(env, level, "sandbox", "no_new_privs cannot be set: %s",
                strerror_r(r->privileges_error, why, sizeof why));
    }
    if (r->calls_error) {
        ew__log(env, level, "sandbox", "the system call filter (seccomp) is not in force: %s",
                strerror_r(r->calls_error, why, sizeof why));
    }
    if (r->files_error == EBUSY) {
        ew__log(env, level, "sandbox", "files are not protected from threads that already run");
    } else if (r->files_error) {
        ew__log(env, level, "sandbox", "files are not protected: this kernel lacks Landlock, or it is disabled (%s)",
                strerror_r(r->files_error, why, sizeof why));
    } else if (r->landlock_version < EW__LANDLOCK_TRUNCATE) {
        ew__log(env, level, "sandbox",
                "files are protected, but not from truncate(): Landlock has version %d, Linux 6.2 has 3",
                r->landlock_version);
    }
    return r->privileges_error || r->calls_error || r->files_error || r->landlock_version < EW__LANDLOCK_TRUNCATE;
}

/* A path that was named by hand and cannot be opened is probably misspelled. */
static void log_absent(const ew_env *env, const char *const *paths) {
    char why[128];
    for (; paths && *paths; paths++) {
        if (access(*paths, F_OK) != 0) {
            ew__log(env, EW_LOG_WARN, "sandbox", "cannot allow writing to %s: %s", *paths,
                    strerror_r(errno, why, sizeof why));
        }
    }
}

static int enter(ew__settings *s, const places *p, bool children) {
    const ew_env *env = s->options.env;
    bool all = s->sandbox == EW__SANDBOX_ON;
    ew__sandbox_report report;
    ew__sandbox_enter(&(ew__sandbox_plan){p->list, children}, &report);
    s->file.no_programs = !children && !report.calls_error;
    if (log_missing(env, all ? EW_LOG_ERROR : EW_LOG_WARN, &report) && all) {
        ew__log(env, EW_LOG_ERROR, "sandbox",
                "not started: the sandbox is incomplete; --sandbox auto starts without what is missing");
        return EXIT_FAILURE;
    }
    ew__log(env, EW_LOG_INFO, "sandbox", "system calls %s, files %s (%zu places may be written), child processes %s",
            report.calls_error ? "not restricted" : "restricted",
            report.landlock_version ? "protected" : "not protected", report.n_writes,
            s->file.no_programs ? "denied" : "allowed");
    return 0;
}

/* ---- for ew_app_main ---- */

/* Reads a mode that `from`, an option or variable, has. 0, or the exit code. */
static int read_mode(ew__settings *s, const char *from, const char *text) {
    char what[128];
    for (int i = 0; ew__sandbox_modes[i]; i++) {
        if (strcmp(text, ew__sandbox_modes[i]) == 0) {
            s->sandbox = (ew__sandbox_mode)i;
            return 0;
        }
    }
    (void)snprintf(what, sizeof what, "%s %.80s", from, text);
    return ew__settings_usage(s, what, "expected off, auto or on");
}

int ew__settings_sandbox_mode(ew__settings *s, const char *text) {
    s->has_sandbox = true;
    return read_mode(s, "--sandbox", text);
}

/* The command line, else the file, else the environment. 0, or the exit code. */
static int choose_mode(ew__settings *s) {
    const char *variable = getenv("EVERYWIRE_SANDBOX");
    if (s->has_sandbox) {
        return 0;
    }
    if (s->config && s->file.config->sandbox.has_mode) {
        s->sandbox = s->file.config->sandbox.mode;
        return 0;
    }
    return variable && *variable ? read_mode(s, "EVERYWIRE_SANDBOX", variable) : 0;
}

int ew__settings_sandbox(ew__settings *s, const ew_app *app) {
    int bad = choose_mode(s);
    if (bad || s->sandbox == EW__SANDBOX_OFF) {
        return bad;
    }
    places p = {.arena = s->arena};
    collect(&p, s, app);
    if (p.no_memory) {
        (void)fprintf(stderr, "%s: out of memory\n", s->name);
        return EXIT_FAILURE;
    }
    if (p.full) {
        return ew__settings_usage(s, "--sandbox", "more than 256 places to be written");
    }
    log_absent(s->options.env, s->writes);
    log_absent(s->options.env, s->config ? (const char *const *)s->file.config->sandbox.write : NULL);
    return enter(s, &p, needs_children(s, app));
}
