/*
 * program/main.h: what the files of ew_app_main share: main.c (the run), options.c (command line, configuration
 * file and environment), status_output.c (what it prints). Only they print, read a command line or the environment, or touch
 * signals.
 */
#ifndef EW_PROGRAM_MAIN_H
#define EW_PROGRAM_MAIN_H

#include "program/config.h"
#include "program/supervisor.h"
#include <sys/types.h>

/* A word by which an orchestrator starts the program, and its value. value is NULL: not given. */
typedef struct ew__start {
    const ew_start_word *word;
    const char *value;
} ew__start;

/* What the command line and the environment asked for. The six lists have room for argc more entries and a NULL. */
typedef struct ew__settings {
    ew_app_options options;
    const char *name; /* of the program, for its messages */
    const char **listens;
    const char **hosts;
    const char **connects;
    const char **imports;
    const char **queues;
    const char **writes; /* places that the sandbox leaves writable, besides the usual ones */
    size_t n_listens;
    size_t n_hosts;
    size_t n_connects;
    size_t n_imports;
    size_t n_queues;
    size_t n_writes;
    ew__sandbox_mode sandbox;
    bool has_sandbox;  /* the command line sets it */
    const char *store; /* of jobs; NULL: not given */
    bool has_jobs;     /* the program has opened a store itself */
    bool worker, burst;
    unsigned concurrency;
    const char *worker_id;
    ew__start manager;                  /* the environment's */
    ew__start start[EW_START_HOST + 1]; /* where an orchestrator wants us to listen, by role */
    bool stdio;                         /* serve who started us */
    bool require_token;                 /* of the usual file, if no other is named */
    pid_t parent;                       /* who started us */
    ew__arena *arena;                   /* of the lists */
    size_t words;                       /* of the command line */
    const char *config;                 /* the path of a configuration file; NULL: none */
    bool config_found;                  /* nobody has named it: it is RRQ's, where RRQ would find it */
    ew__app_config file;                /* what it says; the owner closes it */
    ew__supervisor supervisor;
    ew_log_level level;
    bool level_by_hand; /* the command line says so, and not the file */
    bool quiet;
    uint8_t verbose; /* 1: frames are shown, 2: all of them */
    bool hangup;     /* SIGHUP has something to do */
} ew__settings;

extern const char *const ew__level_names[4];

/* ---- options.c ---- */

/* The program's own options, which the words below add to. EW_OK or EW_ENOMEM. */
ew_err ew__settings_init(ew__settings *s, const ew_app *app, ew__arena *arena, int argc);
/* Reads the configuration file, then the command line, then the environment. -1: go on; else the exit code. */
int ew__settings_read(ew__settings *s, int argc, char **argv);
/* Adds listeners, managers and what the configuration file names to the app. 0, or the exit code. */
int ew__settings_apply(ew__settings *s, ew_app *app);

/* What a program says whose arguments are wrong; the exit code. */
int ew__settings_usage(const ew__settings *s, const char *what, const char *why);

/* ---- app_options_access.c ---- */

/* Which tokens are asked for: those that were named, or the usual ones where it is not safe without. 0, or the exit code. */
int ew__settings_tokens(const ew__settings *s, ew_app *app);

/* ---- app_options_jobs.c ---- */

/* A worker that is told of neither a store nor a file looks where RRQ would. -1, or the exit code. */
int ew__settings_find_config(ew__settings *s);
/* Options of jobs that make no sense alone. -1, or the exit code. */
int ew__settings_check_jobs(const ew__settings *s);
/* Opens the store, and makes the app a worker, if that was asked for. 0, or the exit code. */
int ew__settings_jobs(const ew__settings *s, ew_app *app);

/* ---- sandbox.c ---- */

/* Reads the value of --sandbox. 0, or the exit code. */
int ew__settings_sandbox_mode(ew__settings *s, const char *text);
/* --final-status and --runtime-grace (app_options_retry.c). 0, or the exit code. */
int ew__settings_retry(ew__settings *s, int id, const char *value);
/*
 * Enters the sandbox, if that was asked for. Call it before the app has threads, plug-ins or a
 * store: Landlock restricts the calling thread and those that it starts. 0, or the exit code; the
 * reason has then been logged or printed.
 */
int ew__settings_sandbox(ew__settings *s, const ew_app *app);

/* ---- status_output.c ---- */

/* All of it, as one write where the kernel takes it so. */
void ew__write_all(int fd, const char *bytes, size_t n);
/* An ew_frame_fn: its lines on standard error. ud is what times are counted from, a uint64_t. */
void ew__say_frame(void *ud, const ew_frame *frame);
void ew__say_json(const ew_app *app);
void ew__say_table(ew_app *app, const char *name);

/* The functions of the public headers, once src/api has checked their arguments. */
int ew__app_main(ew_app *app, int argc, char **argv);

#endif
