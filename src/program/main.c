/*
 * program/main.c: ew_app_main, the whole main function of a serving program: options, start, where it listens, signals,
 * the end. Everything it does to the app goes through functions that a program could call itself, but for the options
 * that arrive after the app was made. See main.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "program/main.h"
#include "base/mem.h"
#include "base/opt.h"
#include "base/when.h"
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define IMPORTS_MS 3000           /* how long it waits for the lists of its imports before it says that it is ready */
#define IMPORTS_FIRST_MS 1000     /* ... of these without a word */
#define WORKER_MS 10000           /* and until its worker is known to the store */
#define PARENT_LOOK_NS 250000000U /* how often a runner looks whether its parent is still there; as RRQ's own */
#define FRAME_CUT 1024            /* bytes of a frame that --verbose shows */

/* What the log function needs; reached through the env's ud. */
typedef struct logger {
    ew_env env;
    atomic_int level; /* an ew_log_level; SIGHUP may change it */
    bool terminal;    /* text for people instead of JSON lines */
    uint64_t since;   /* when the first frame may have come */
} logger;

/* ---- logging ---- */

const char *const ew__level_names[4] = {"error", "warn", "info", "debug"};

static void time_text(const ew_env *env, char out[EW__WHEN_LEN + 1]) {
    ew__when_write(env->wall_ms(env->ud), out);
    out[EW__WHEN_LEN] = 0;
}

/* Any thread. A line is at most 1 KiB and an escape makes six bytes of one, so it always fits. */
static void log_line(void *ud, ew_log_level level, const char *room, ew_str line) {
    const logger *log = ud;
    char buf[8 * 1024], when[EW__WHEN_LEN + 1];
    if ((int)level > atomic_load_explicit(&log->level, memory_order_relaxed)) {
        return;
    }
    time_text(&log->env, when);
    int n;
    if (log->terminal) {
        n = snprintf(buf, sizeof buf, "%.8s %-5s %s: %.*s\n", when + 11, ew__level_names[level], room, (int)line.len,
                     line.ptr);
    } else {
        n = ew_json_format(buf, sizeof buf, "{\"time\":%Q,\"level\":%Q,\"room\":%Q,\"message\":%q}\n", when,
                           ew__level_names[level], room, line);
    }
    if (n > 0 && (size_t)n < sizeof buf) {
        ew__write_all(STDERR_FILENO, buf, (size_t)n);
    }
}

/* ---- signals ---- */

typedef struct signals {
    ew_app *app;
    const ew_env *env;
    ew__settings *settings;
    logger *log; /* whose level follows the configuration file */
    pthread_t thread;
    sigset_t set;
    sigset_t old_set;
    struct sigaction old_int, old_term, old_hup, old_pipe;
    pid_t parent; /* whose end is ours; 0: nobody's */
    atomic_bool over;
    bool runs;
} signals;

/*
 * Waits for a signal and answers its number; 0: the parent has gone. The kernel would tell us of that by a signal
 * (PR_SET_PDEATHSIG), but already when the thread that started us ends, and its process may go on for long.
 */
static int signals_next(const signals *s) {
    ew__supervisor *supervisor = &s->settings->supervisor;
    for (;;) {
        uint64_t ns = s->parent ? PARENT_LOOK_NS : supervisor->tick_ns;
        ns = supervisor->tick_ns && supervisor->tick_ns < ns ? supervisor->tick_ns : ns;
        struct timespec step = {.tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000)};
        int number = ns ? sigtimedwait(&s->set, NULL, &step) : sigwaitinfo(&s->set, NULL);
        if (number > 0) {
            return number;
        }
        ew__supervisor_pulse(supervisor, s->app);
        if (s->parent && getppid() != s->parent) {
            return 0;
        }
    }
}

/* SIGHUP: the configuration file, the tokens and the certificates count as they are now. */
static void read_again(signals *s) {
    ew__settings *settings = s->settings;
    ew_log_level level;
    ew__supervisor_reloading(&settings->supervisor);
    ew__app_access_look(s->app, true);
    (void)ew__app_renew_tls(s->app); /* the log is told */
    if (settings->config && ew__app_config_reload(&settings->file, s->app, EW_LOG_INFO, &level) &&
        !settings->level_by_hand) {
        atomic_store_explicit(&s->log->level, (int)level, memory_order_relaxed);
    }
    ew__supervisor_ready(&settings->supervisor, s->app);
}

/*
 * First signal: drain. Second: the end, now. SIGHUP is none of them. It runs until signals_done sends it one of its own.
 */
static void *signals_run(void *arg) {
    signals *s = arg;
    for (int count = 0;;) {
        int number = signals_next(s);
        if (atomic_load(&s->over)) {
            return NULL;
        }
        if (number == SIGHUP) {
            if (count == 0) {
                read_again(s);
            }
            continue;
        }
        if (count++ > 0) {
            _exit(128 + number);
        }
        s->parent = 0; /* the end is near: whose it is does not matter any more */
        ew__supervisor_ending(&s->settings->supervisor, "letting running calls end");
        if (number == 0) {
            ew__log(s->env, EW_LOG_WARN, "main", "the process that started this runner has gone: draining");
            ew__app_stop(s->app);
            continue;
        }
        ew__log(s->env, EW_LOG_INFO, "main", "%s: draining; a second signal ends at once",
                number == SIGINT ? "SIGINT" : "SIGTERM");
        ew__app_stop(s->app);
    }
}

/*
 * Blocks the three signals before any thread is made, so that only sigwait sees them. Their action is set to the default
 * one: a shell script starts its background jobs with SIGINT ignored, and what is ignored never reaches sigwait.
 */
static void signals_init(signals *s, ew_app *app, ew__settings *settings, logger *log) {
    *s = (signals){.app = app, .env = settings->options.env, .settings = settings, .log = log};
    struct sigaction plain = {.sa_handler = SIG_DFL}, ignore = {.sa_handler = SIG_IGN};
    (void)sigemptyset(&s->set);
    (void)sigaddset(&s->set, SIGINT);
    (void)sigaddset(&s->set, SIGTERM);
    if (settings->hangup) { /* else it means what it means to every program, nohup's included */
        (void)sigaddset(&s->set, SIGHUP);
    }
    (void)pthread_sigmask(SIG_BLOCK, &s->set, &s->old_set);
    (void)sigaction(SIGINT, &plain, &s->old_int);
    (void)sigaction(SIGTERM, &plain, &s->old_term);
    if (settings->hangup) {
        (void)sigaction(SIGHUP, &plain, &s->old_hup);
    }
    (void)sigaction(SIGPIPE, &ignore, &s->old_pipe);
}

static ew_err signals_start(signals *s) {
    s->runs = pthread_create(&s->thread, NULL, signals_run, s) == 0;
    return s->runs ? EW_OK : EW_ENOMEM;
}

static void signals_done(signals *s) {
    if (s->runs) {
        atomic_store(&s->over, true);
        (void)pthread_kill(s->thread, SIGTERM);
        (void)pthread_join(s->thread, NULL);
    }
    /* One that came too late to be read is forgotten: by its old action it would end a program that has ended well. */
    if (s->settings->hangup) {
        (void)sigaction(SIGHUP, &(struct sigaction){.sa_handler = SIG_IGN}, NULL);
    }
    (void)sigaction(SIGINT, &s->old_int, NULL);
    (void)sigaction(SIGTERM, &s->old_term, NULL);
    (void)sigaction(SIGPIPE, &s->old_pipe, NULL);
    (void)pthread_sigmask(SIG_SETMASK, &s->old_set, NULL);
    if (s->settings->hangup) {
        (void)sigaction(SIGHUP, &s->old_hup, NULL);
    }
}

/* ---- the run ---- */

static int start_failed(const ew__settings *s, const ew_env *env, ew_app *app, ew_err err) {
    const char *more = app->error;
    ew__log(env, EW_LOG_ERROR, "main", "%s", *more ? more : ew_err_text(err));
    if (isatty(STDERR_FILENO) && err == EW_EADDRINUSE) {
        (void)fprintf(stderr,
                      "Is it running already? ss -ltnp shows who listens there; %s --listen 127.0.0.1:0 takes a free "
                      "port.\n",
                      s->name);
    }
    return EXIT_FAILURE;
}

/* --verbose: frames are printed instead of told to whomever the program has named. */
static void show_frames(ew__settings *s, uint64_t *since) {
    const ew_env *env = s->options.env;
    if (!s->verbose) {
        return;
    }
    *since = env->now_ns(env->ud);
    s->options.trace_frames = ew__say_frame;
    s->options.trace_ud = since;
    s->options.trace_bytes = s->verbose > 1 ? SIZE_MAX / 4 : FRAME_CUT;
}

/* Lists of imports may be slow to come: from the second second on a terminal is told why nothing happens. */
static void wait_imports(const ew__settings *s, ew_app *app) {
    static const char text[] = "waiting for the lists of imports ...", gone[] = "\r\033[K";
    if (ew__app_wait_imports(app, IMPORTS_FIRST_MS) == EW_OK) {
        return;
    }
    bool tell = !s->quiet && isatty(STDERR_FILENO);
    if (tell) {
        ew__write_all(STDERR_FILENO, text, sizeof text - 1);
    }
    (void)ew__app_wait_imports(app, IMPORTS_MS - IMPORTS_FIRST_MS);
    if (tell) {
        ew__write_all(STDERR_FILENO, gone, sizeof gone - 1);
    }
}

static int run(ew__settings *s, logger *log, ew_app *app) {
    const ew_env *env = s->options.env;
    show_frames(s, &log->since);
    ew_err err = s->options.loop ? EW_EUNSUPPORTED : ew__app_configure(app, &s->options);
    if (err != EW_OK) { /* a host's loop runs on the host's thread: that program has a main function of its own */
        return start_failed(s, env, app, err);
    }
    int bad = ew__settings_sandbox(s, app);
    bad = bad ? bad : ew__settings_apply(s, app);
    if (bad) {
        return bad;
    }
    s->hangup = s->config || app->access.path || app->tls.options.certificate || app->tls.options.ca;
    signals sig;
    signals_init(&sig, app, s, log);
    sig.parent = s->start[EW_START_LISTEN].value && s->parent > 1 ? s->parent : 0; /* init and its children stay */
    err = ew__app_start(app);
    if (err == EW_OK) {
        err = signals_start(&sig);
    }
    if (err != EW_OK) {
        signals_done(&sig);
        return start_failed(s, env, app, err);
    }
    wait_imports(s, app);
    ew__app_jobs_wait(app, WORKER_MS);
    if (!s->quiet && isatty(STDOUT_FILENO)) {
        ew__say_table(app, s->name);
    } else if (!s->quiet) {
        ew__say_json(app);
    }
    ew__supervisor_ready(&s->supervisor, app);
    err = ew__app_wait(app);
    signals_done(&sig);
    ew__supervisor_ending(&s->supervisor, "ending"); /* by itself */
    if (err == EW_ETIMEOUT) {
        ew__log(env, EW_LOG_ERROR, "main",
                "some calls were cut off: they had not ended when the time to drain was over");
    }
    return err == EW_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* The env for the run: the app's own if its program brought one, else the default one with a log. */
static const ew_env *choose_env(const ew__settings *s, logger *log) {
    if (s->options.env != ew_env_default()) {
        return s->options.env;
    }
    log->env = *ew_env_default();
    log->env.log = log_line;
    log->env.ud = log; /* the default functions do not look at it */
    atomic_init(&log->level, (int)s->level);
    log->terminal = isatty(STDERR_FILENO) != 0;
    return &log->env;
}

/* Whether a handler still runs although its call was cut off: then the app and its env must stay in memory. */
static bool has_stuck_handlers(const ew_app *app) {
    for (size_t i = 0; i < app->n_loops; i++) {
        if (app->loops[i].abandoned) {
            return true;
        }
    }
    return false;
}

int ew__app_main(ew_app *app, int argc, char **argv) {
    const char *path = argc > 0 && argv[0] ? argv[0] : "everywire";
    const char *slash = strrchr(path, '/');
    ew__settings s = {.name = slash ? slash + 1 : path, .parent = getppid(), .level = EW_LOG_INFO};
    ew__arena arena;
    int code = EXIT_FAILURE;
    ew__standard_descriptors();
    ew__supervisor_init(&s.supervisor);
    ew__arena_init(&arena, ew_env_default(), NULL, 0);
    logger *log = app ? ew__arena_alloc(&arena, sizeof *log) : NULL;
    if (!log || ew__settings_init(&s, app, &arena, argc) != EW_OK) {
        (void)fprintf(stderr, "%s: out of memory\n", s.name);
    } else {
        code = ew__settings_read(&s, argc, argv);
        if (code < 0) {
            s.options.env = choose_env(&s, log);
            code = run(&s, log, app);
        }
    }
    bool stuck = app && has_stuck_handlers(app);
    (void)ew__app_free(app);
    if (!stuck) {
        ew__app_config_close(&s.file);
        ew__arena_done(&arena);
    }
    return code;
}
