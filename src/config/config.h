/*
 * config/config.h: the configuration file, read. The tables of config.c say what it may hold; docs/config.md is made from
 * them. Nothing is done here: src/program/config.c applies it to an app.
 */
#ifndef EW_CONFIG_CONFIG_H
#define EW_CONFIG_CONFIG_H

#include "config/fields.h"
#include <everywire/gateway.h>
#include <everywire/jobs.h>

/* Of programs that are started; what they inherit is the same for all kinds (io/environment.h). */
#define EW__ENVIRONMENT_HELP                                                                                           \
    "beside PATH, HOME, USER, LANG, LC_ALL, TZ and TMPDIR: `NAME` hands a variable on, "                               \
    "`NAME=VALUE` sets one, `'*'` hands on all; or a map `{NAME: VALUE}`, where no value hands on"

typedef struct ew__config_tls {
    const ew__node *node;
    ew_tls_options options;
} ew__config_tls;

/* An import; also the remote side of an action. */
typedef struct ew__config_import {
    const ew__node *node;
    const char *target;
    const char **targets;
    const char *token_file; /* instead of options.token */
    const char *joined;     /* what ew_app_import takes: all of them; NULL: there was a problem */
    const char *action;     /* of an action: what it is called there */
    ew__config_tls tls;     /* becomes part of the options */
    ew_import_options options;
} ew__config_import;

typedef struct ew__config_exec {
    const ew__node *node;
    const char **argv;
    const char **command; /* another word for it */
    ew_exec_options options;
} ew__config_exec;

/* One of exec and remote has a node, unless there was a problem. node->key is the action's key. */
typedef struct ew__config_action {
    const ew__node *node;
    ew__config_exec exec;
    ew__config_import remote;
    ew_action_options describe;
} ew__config_action;

typedef struct ew__config_plugin {
    const ew__node *node;
    const char *path;
    const char *config; /* JSON; NULL: none */
} ew__config_plugin;

typedef struct ew__config_log {
    const ew__node *node;
    ew_log_level level;
    bool has_level;
} ew__config_log;

typedef struct ew__config_telemetry {
    const ew__node *node;
    const char *url;
    bool realtime;
} ew__config_telemetry;

typedef enum ew__sandbox_mode { EW__SANDBOX_OFF, EW__SANDBOX_AUTO, EW__SANDBOX_ON } ew__sandbox_mode;

typedef struct ew__config_sandbox {
    const ew__node *node;
    ew__sandbox_mode mode;
    bool has_mode;
    const char **write; /* NULL-ended; NULL: none */
} ew__config_sandbox;

typedef struct ew__config_limits {
    const ew__node *node;
    ew_limits values;
} ew__config_limits;

/* ---- jobs ---- */

typedef struct ew__config_worker {
    const ew__node *node;
    bool on;
    unsigned concurrency;
    uint64_t lease_ms;
    bool burst;
    const char *id;
} ew__config_worker;

typedef struct ew__config_queue {
    const ew__node *node;
    ew_worker_queue queue;
    bool by_name; /* of rrq.toml: it says where jobs of this queue go, but a worker takes them only if it is told to */
} ew__config_queue;

typedef struct ew__config_runner {
    const ew__node *node;
    ew_worker_runner runner;
    unsigned port; /* instead of a target */
} ew__config_runner;

typedef struct ew__config_schedule {
    const ew__node *node;
    ew_worker_cron cron;
} ew__config_schedule;

typedef struct ew__config_job_defaults {
    const ew__node *node;
    ew_jobs_options options;
} ew__config_job_defaults;

typedef struct ew__config_retry {
    const ew__node *node;
    uint64_t base_ms, max_ms;
    bool jitter, timeouts; /* jitter: true also if the file does not say so */
} ew__config_retry;

typedef struct ew__config_jobs {
    const ew__node *node; /* NULL: the file says nothing of jobs */
    const char *store;
    ew__config_worker worker;
    ew__items queues;  /* ew__config_queue */
    ew__items runners; /* ew__config_runner; only one that has a target can be used */
    const char *default_runner;
    ew__items schedules; /* ew__config_schedule */
    ew__config_job_defaults defaults;
    ew__config_retry retry;
    unsigned poison_after;
    const char *dlq;
    const char *correlation_mappings; /* JSON */
} ew__config_jobs;

/* A number that is not in the file is 0, a text NULL. */
typedef struct ew__config {
    const ew__node *node; /* NULL: the file could not be read */
    uint64_t version;
    const char **listen, **connect, **allow_hosts;
    bool allow_remote, no_token;
    ew_stack_traces stack_traces;
    const char *tokens, *token, *token_file;
    unsigned threads;
    uint64_t drain_ms;
    uint64_t runtime_grace_ms;
    const char **final_statuses;
    const char *runtime_id;
    ew__config_log log;
    ew__config_telemetry telemetry;
    ew__config_tls tls;
    ew__config_sandbox sandbox;
    ew__config_limits limits;
    ew__items imports; /* ew__config_import */
    ew__items actions; /* ew__config_action */
    ew__items plugins; /* ew__config_plugin */
    ew__config_jobs jobs;
    ew__arena arena; /* all of it, but this struct */
    const char *folder;
    ew__problems problems;
    bool foreign;       /* the file of another program: its keys are not those of ew__config_group */
    ew__problems notes; /* what people should know, but is no problem */
} ew__config;

extern const ew__group ew__config_group;
extern const ew__group ew__config_jobs_group; /* config_jobs.c */
extern const ew__group ew__config_tls_group;  /* config_tls.c */
extern const ew__group ew__config_sandbox_group;
extern const char *const ew__stack_traces_words[]; /* NULL-ended; in the order of ew_stack_traces */
extern const char *const ew__sandbox_modes[];      /* NULL-ended; in the order of ew__sandbox_mode */

/*
 * Reads the text of a file whose relative paths count from `folder`. *ret_config is the caller's, with its problems, in
 * order. EW_OK or EW_ENOMEM (then there is none).
 */
ew_err ew__config_parse(const ew_env *env, ew_str yaml, const char *folder, ew__variable_fn variable, void *ud,
                        ew__config **ret_config);
/* A new one without anything in it, for those who fill it. NULL when there is no memory. */
ew__config *ew__config_new(const ew_env *env, const char *folder);
/* The last step of filling it: *ret_config, with its problems in order. EW_OK, or EW_ENOMEM: it is freed. */
ew_err ew__config_finish(ew__config *config, ew_err err, ew__config **ret_config);

/*
 * Reads a file, with the variables of the environment; parse_toml reads the text of one whose name ends with .toml. A
 * file that starts programs or loads plug-ins must belong to its owner alone: that is a problem, too. EW_OK; EW_EIO: it
 * could not be read, a problem says why; EW_ENOMEM (there is none).
 */
typedef ew_err (*ew__config_parse_fn)(const ew_env *env, ew_str text, const char *folder, ew__config **ret_config);
ew_err ew__config_load(const ew_env *env, const char *path, ew__config_parse_fn parse_toml, ew__config **ret_config);
void ew__config_free(ew__config *config); /* NULL is fine */

/* Whether it names programs or plug-ins. */
bool ew__config_runs_code(const ew__config *config);

/*
 * Why a file may not decide what code runs here: NULL, or a line for people. Its owner must be this user or root, and
 * nobody else may write to it.
 */
struct stat;
const char *ew__config_distrusts(const struct stat *file);

/* The text of a file that the configuration names, at most EW__CONFIG_BYTES. False: `why` says what is in the way. */
bool ew__config_read_beside(const char *path, ew__buf *out, char *why, size_t size);

#endif
