/*
 * compat/rrq/settings.h: RRQ's own configuration, rrq.toml, read as it stands into the same ew__config as everywire.yaml: what it
 * says becomes `jobs`, and the time to drain. docs/jobs.md tells what has no meaning here.
 */
#ifndef EW_COMPAT_RRQ_SETTINGS_H
#define EW_COMPAT_RRQ_SETTINGS_H

#include "config/config.h"
#include <limits.h>

/*
 * Reads the text of such a file. `variable` gives RRQ_REDIS_DSN, which wins over the file; relative paths stay as they
 * are, as RRQ leaves them. As ew__config_parse.
 */
ew_err ew__rrq_parse(const ew_env *env, ew_str toml, const char *folder, ew__variable_fn variable, void *ud,
                     ew__config **ret_config);

/*
 * The variables that RRQ looks at: those of the environment, and those named RRQ_... of the file .env in the current folder
 * or the nearest one above it that has one.
 */
typedef struct ew__rrq_variables {
    char *list; /* "NAME=VALUE", each ended by NUL, one after the other */
    size_t len, cap;
    const ew_env *env;
} ew__rrq_variables;

/* Reads .env, if there is one. EW_OK (also for a file that cannot be read: as if it were not there), EW_ENOMEM. */
ew_err ew__rrq_variables_init(ew__rrq_variables *variables, const ew_env *env);
void ew__rrq_variables_done(ew__rrq_variables *variables);
/* An ew__variable_fn; ud: the variables. An empty one is none. */
const char *ew__rrq_variable(void *ud, const char *name);
/* For the tests: takes the text of a .env file. EW_OK, EW_ENOMEM. */
ew_err ew__rrq_variables_read(ew__rrq_variables *variables, ew_str text);

/* An ew__config_parse_fn: ew__rrq_parse with RRQ's variables. */
ew_err ew__rrq_load(const ew_env *env, ew_str bytes, const char *folder, ew__config **ret_config);

/* Where RRQ finds its file: RRQ_CONFIG, else rrq.toml in the current folder; NULL: there is none. Borrowed. */
const char *ew__rrq_find(ew__rrq_variables *variables);

#endif
