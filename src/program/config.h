/*
 * program/config.h: a configuration file (src/config) and the app that goes by it: at the start, for a check without one,
 * and again while it runs. Used inside src/program only.
 */
#ifndef EW_PROGRAM_CONFIG_H
#define EW_PROGRAM_CONFIG_H

#include "gateway/app.h"
#include "base/sha256.h"
#include "config/config.h"

/* An import or action of the file that the app has. */
typedef struct ew__app_config_item {
    uint8_t print[EW__SHA256_SIZE]; /* of what the file says of it: as long as that stays, its source does */
    ew__source *source;             /* the app's; NULL: it is a listener for runtimes, which stays */
    bool taken;                     /* while the file is read again: it stays; or, of a new one, it was there before */
} ew__app_config_item;

typedef struct ew__app_config_items {
    ew__app_config_item *list;
    size_t n, room;
} ew__app_config_items;

typedef struct ew__app_config {
    const ew_env *env;  /* of the memory here */
    const char *path;   /* borrowed */
    ew__config *config; /* what the app was started with, and its problems */
    ew__app_config_items items;
    bool no_programs; /* the sandbox denies child processes: a version of the file that needs some is refused */
} ew__app_config;

/*
 * Reads the file. EW_OK, also with problems; EW_EIO: it could not be read, which is a problem; EW_ENOMEM: there is
 * nothing to be closed.
 */
ew_err ew__app_config_open(ew__app_config *file, const ew_env *env, const char *path);
void ew__app_config_close(ew__app_config *file); /* cleared memory is fine */

/* What the file sets becomes part of the options (borrowed from it), but for allow_hosts, which is a list. */
void ew__app_config_options(const ew__config *config, ew_app_options *options);

/*
 * Adds the statuses of "NAME,NAME" to a set of EW_STATUS_BIT; "none" is EW_FINAL_NONE. false: a name is not a status
 * (app_options_retry.c).
 */
bool ew__final_statuses_read(ew_str names, uint32_t *set);

/*
 * Adds the problems that an app would have with the file: one that is made for that and never started. No plug-in is
 * loaded. allow_remote: it is allowed elsewhere.
 */
void ew__app_config_rehearse(const ew_env *env, ew__config *config, bool allow_remote);

/*
 * Schemas of an action (app_config_schema.c). Those that are "@FILE" become the file's text; what cannot be read is a
 * problem, and is then not there.
 */
void ew__app_config_load_schemas(ew__config *config, ew__config_action *action);
/* Appends them: a file may change while its name stays. */
void ew__app_config_print_schemas(const ew__config_action *action, ew__buf *out);
/* Whether they are schemas: what is not is a problem, at its place. */
bool ew__app_config_check_schemas(ew__config *config, const ew__config_action *action);

/*
 * Adds what the file names to an app that is not started: listeners, managers, imports, actions, plug-ins. What fails
 * is a problem of the file, at its place, and the rest goes on. EW_OK, EW_ESYNTAX (there are problems), EW_ENOMEM.
 */
ew_err ew__app_config_apply(ew__app_config *file, ew_app *app);

/*
 * Reads the file again for an app that runs. With problems everything stays; otherwise imports and actions become what
 * it says, and what else has changed is logged as needing a restart. Whether it was taken; then *ret_level is the level
 * that it sets (usual: if it sets none). One thread at a time, no loop's.
 */
bool ew__app_config_reload(ew__app_config *file, ew_app *app, ew_log_level usual, ew_log_level *ret_level);

/* ew_config_check with memory of one's own. */
ew_err ew__app_config_check(const ew_env *env, const char *path, ew_config_problem_fn told, void *ud);
/* Hands out the problems of a file in their order. */
void ew__app_config_tell(const char *path, ew__config *config, ew_config_problem_fn told, void *ud);

#endif
