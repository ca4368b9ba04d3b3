/*
 * api/app_main.c: ew_app_main, the whole main function of a serving program: options, start, where it listens, signals,
 * the end. The only file of the library that prints, reads a command line or touches signals; everything it does to the
 * app goes through functions that a program could call itself, but for the options that arrive after the app was made.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "api/app.h"
#include "base/mem.h"
#include "base/opt.h"
#include "base/util.h"
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define EXIT_USAGE 2

/* What the command line asked for. The two lists have room for argc more entries and a NULL. */
typedef struct settings {
    ew_app_options options;
    const char *name; /* of the program, for its messages */
    const char **listens;
    const char **hosts;
    size_t n_listens;
    size_t n_hosts;
    ew_log_level level;
    bool quiet;
} settings;

/* What the log function needs; reached through the env's ud. */
typedef struct logger {
    ew_env env;
    ew_log_level level;
    bool terminal; /* text for people instead of JSON lines */
} logger;

/* ---- writing ---- */

/* All of it, as one write where the kernel takes it so. Nobody is told of a failure: there is nobody left to tell. */
static void write_all(int fd, const char *bytes, size_t n) {
    while (n > 0) {
        ssize_t done = write(fd, bytes, n);
        if (done < 0 && errno != EINTR) {
            return;
        }
        if (done > 0) {
            bytes += done;
            n -= (size_t)done;
        }
    }
}

static const char *const level_names[] = {"error", "warn", "info", "debug"};

static void time_text(const ew_env *env, char out[32]) {
    uint64_t ms = env->wall_ms(env->ud);
    time_t seconds = (time_t)(ms / 1000);
    struct tm t;
    if (!gmtime_r(&seconds, &t) || strftime(out, 32, "%Y-%m-%dT%H:%M:%S", &t) != 19) {
        (void)snprintf(out, 32, "1970-01-01T00:00:00");
    }
    (void)snprintf(out + 19, 32 - 19, ".%03uZ", (unsigned)(ms % 1000));
}

/* Any thread. A line is at most 1 KiB and an escape makes six bytes of one, so it always fits. */
static void log_line(void *ud, ew_log_level level, const char *room, ew_str line) {
    const logger *log = ud;
    char buf[8 * 1024], when[32];
    if (level > log->level) {
        return;
    }
    time_text(&log->env, when);
    int n;
    if (log->terminal) {
        n = snprintf(buf, sizeof buf, "%.8s %-5s %s: %.*s\n", when + 11, level_names[level], room, (int)line.len,
                     line.ptr);
    } else {
        n = ew_json_format(buf, sizeof buf, "{\"time\":%Q,\"level\":%Q,\"room\":%Q,\"message\":%q}\n", when,
                           level_names[level], room, line);
    }
    if (n > 0 && (size_t)n < sizeof buf) {
        write_all(STDERR_FILENO, buf, (size_t)n);
    }
}

/* ---- options ---- */

static const ew__opt options_table[] = {EW__SERVE_OPTIONS, {NULL, 0, NULL, NULL, 0}};

static const struct {
    const char *name;
    size_t offset;
    uint64_t value;
    const char *help;
} limits_table[] = {
#define LIMIT_ROW(member, value, help) {#member, offsetof(ew_limits, member), value, help},
    EW_LIMITS_MAP(LIMIT_ROW)
#undef LIMIT_ROW
};
#define N_LIMITS (sizeof limits_table / sizeof *limits_table)

static int usage_error(const settings *s, const char *problem) {
    (void)fprintf(stderr, "%s: %s\nTry: %s --help\n", s->name, problem, s->name);
    return EXIT_USAGE;
}

static int usage_errorf(const settings *s, const char *what, const char *value, const char *why) {
    char problem[512];
    (void)snprintf(problem, sizeof problem, "%s %.200s: %s", what, value, why);
    return usage_error(s, problem);
}

static int help(const settings *s) {
    (void)printf("Usage: %s [OPTIONS]\n\nServes its actions until a signal ends it.\n\nOptions:\n", s->name);
    ew__opts_help(stdout, options_table);
    (void)printf("\nDUR is 500ms, 2s, 1m, 1h; a bare number is seconds.\n"
                 "\nExamples:\n  %s\n  %s --listen 127.0.0.1:0 --drain 2s\n  %s --listen http=127.0.0.1:8080 "
                 "--log-level debug\n",
                 s->name, s->name, s->name);
    return EXIT_SUCCESS;
}

static int help_limits(const settings *s) {
    (void)printf("Limits, for %s --limit NAME=VALUE.\nBytes take the suffixes K, M and G, times the suffixes ms, s, m "
                 "and h.\n\n",
                 s->name);
    (void)printf("  %-22s %10s  %s\n", "NAME", "DEFAULT", "WHAT IT LIMITS");
    for (size_t i = 0; i < N_LIMITS; i++) {
        (void)printf("  %-22s %10llu  %s\n", limits_table[i].name, (unsigned long long)limits_table[i].value,
                     limits_table[i].help);
    }
    return EXIT_SUCCESS;
}

static bool ends_with(const char *text, const char *end) {
    size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

/* A number in the unit that the limit's name tells, or with a suffix of its kind. */
static bool limit_value(const char *name, ew_str text, uint64_t *ret) {
    if (ew__u64_parse(text, ret)) {
        return true;
    }
    if (ends_with(name, "_ms")) {
        return ew__duration_parse(text, ret) == EW_OK;
    }
    if (!ends_with(name, "_bytes") || text.len < 2) {
        return false;
    }
    char suffix = text.ptr[text.len - 1];
    unsigned shift = suffix == 'K' ? 10 : suffix == 'M' ? 20 : suffix == 'G' ? 30 : 0;
    uint64_t number;
    if (shift == 0 || !ew__u64_parse(ew__str(text.ptr, text.len - 1), &number) || number > UINT64_MAX >> shift) {
        return false;
    }
    *ret = number << shift;
    return true;
}

static int read_limit(settings *s, const char *text) {
    const char *equals = strchr(text, '=');
    ew_str name = ew__str(text, equals ? (size_t)(equals - text) : strlen(text));
    ew__near near;
    ew__near_init(&near, name);
    for (size_t i = 0; i < N_LIMITS; i++) {
        if (!ew__str_is(name, ew_str_from(limits_table[i].name))) {
            ew__near_try(&near, ew_str_from(limits_table[i].name));
            continue;
        }
        uint64_t value = 0;
        if (!equals || !limit_value(limits_table[i].name, ew_str_from(equals + 1), &value)) {
            return usage_errorf(s, "--limit", text, "not NAME=VALUE with a number");
        }
        if (value == 0 && limits_table[i].value != 0) {
            return usage_errorf(s, "--limit", text, "must be above zero");
        }
        memcpy((char *)&s->options.limits + limits_table[i].offset, &value, sizeof value);
        return 0;
    }
    char why[160];
    (void)snprintf(why, sizeof why, "no such limit%s%s%s", near.best.ptr ? "; did you mean " : "",
                   near.best.ptr ? near.best.ptr : "", near.best.ptr ? "?" : "; --help limits lists them");
    return usage_errorf(s, "--limit", text, why);
}

static int read_level(settings *s, const char *text) {
    for (size_t i = 0; i < sizeof level_names / sizeof *level_names; i++) {
        if (strcmp(text, level_names[i]) == 0) {
            s->level = (ew_log_level)i;
            return 0;
        }
    }
    return usage_errorf(s, "--log-level", text, "not one of error, warn, info, debug");
}

static int read_threads(settings *s, const char *text) {
    uint64_t n;
    if (!ew__u64_parse(ew_str_from(text), &n) || n < 1 || n > 1024) {
        return usage_errorf(s, "--threads", text, "not a number from 1 to 1024");
    }
    s->options.threads = (unsigned)n;
    return 0;
}

static int read_drain(settings *s, const char *text) {
    uint64_t ms;
    if (ew__duration_parse(ew_str_from(text), &ms) != EW_OK) {
        return usage_errorf(s, "--drain", text, "not a duration such as 500ms, 2s, 1m, 1h");
    }
    s->options.drain_ms = ms > 0 ? ms : 1; /* zero would mean the default */
    return 0;
}

static int print_version(const settings *s) {
    (void)printf("%s (everywire %s)\n", s->name, ew_version());
    return EXIT_SUCCESS;
}

/* -1: go on; else the exit code. */
static int take_option(settings *s, ew__opts *opts, int id) {
    int bad = 0;
    switch (id) {
    case EW__SERVE_LISTEN:
        s->listens[s->n_listens++] = opts->value;
        break;
    case EW__SERVE_ALLOW_HOST:
        s->hosts[s->n_hosts++] = opts->value;
        break;
    case EW__SERVE_ALLOW_REMOTE:
        s->options.allow_remote = true;
        break;
    case EW__SERVE_QUIET:
        s->quiet = true;
        break;
    case EW__SERVE_THREADS:
        bad = read_threads(s, opts->value);
        break;
    case EW__SERVE_DRAIN:
        bad = read_drain(s, opts->value);
        break;
    case EW__SERVE_LIMIT:
        bad = read_limit(s, opts->value);
        break;
    case EW__SERVE_LOG_LEVEL:
        bad = read_level(s, opts->value);
        break;
    case EW__SERVE_VERSION:
        return print_version(s);
    case EW__SERVE_HELP:
        return opts->at < opts->argc && strcmp(opts->argv[opts->at], "limits") == 0 ? help_limits(s) : help(s);
    case EW__OPT_BAD:
        return usage_error(s, opts->problem);
    case EW__OPT_WORD:
        return usage_errorf(s, "unexpected word", opts->value, "options start with --");
    default:
        return usage_error(s, "unexpected --");
    }
    return bad ? bad : -1;
}

static int read_options(settings *s, int argc, char **argv) {
    ew__opts opts;
    ew__opts_init(&opts, options_table, argc, argv, 1);
    for (;;) {
        int id = ew__opts_next(&opts);
        if (id == EW__OPT_END) {
            break;
        }
        int code = take_option(s, &opts, id);
        if (code >= 0) {
            return code;
        }
    }
    if (s->quiet) {
        s->level = EW_LOG_ERROR;
    }
    return -1;
}

/* ---- where it listens ---- */

static void say_json(const ew_app *app) {
    char line[512];
    for (size_t i = 0; i < ew_app_listeners(app); i++) {
        const char *wire, *address;
        int port;
        if (ew_app_listener(app, i, &wire, &address, &port) != EW_OK) {
            continue;
        }
        int n = ew_json_format(line, sizeof line, "{\"event\":\"listening\",\"wire\":%Q,\"address\":%Q,\"port\":%d}\n",
                               wire, address, port);
        if (n > 0 && (size_t)n < sizeof line) {
            write_all(STDOUT_FILENO, line, (size_t)n);
        }
    }
    static const char ready[] = "{\"event\":\"ready\"}\n";
    write_all(STDOUT_FILENO, ready, sizeof ready - 1);
}

static bool colour_wanted(void) {
    const char *no = getenv("NO_COLOR"), *term = getenv("TERM");
    return !(no && *no) && term && strcmp(term, "dumb") != 0;
}

/* The first action that was registered, and an input for it: the first example of its schema. False: there is none. */
static bool sample_call(ew_app *app, char *name, size_t name_size, char *input, size_t input_size) {
    (void)snprintf(input, input_size, "{}");
    ew__actions *actions = ew__registry_get(&app->registry);
    bool found = actions && actions->by_key.n > 0;
    if (found) {
        const ew__action *action = actions->by_key.entries[0].value;
        ew_str example = ew_json_get(action->descriptor, "/inputSchema/examples/0");
        (void)snprintf(name, name_size, "%.*s", (int)action->name.len, action->name.ptr);
        if (example.len > 0 && example.len < input_size && !memchr(example.ptr, '\'', example.len)) {
            (void)snprintf(input, input_size, "%.*s", (int)example.len, example.ptr);
        }
    }
    ew__actions_unref(actions);
    return found;
}

/* The address of a listener that speaks HTTP, in a form that can be called. */
static bool sample_address(const ew_app *app, char *out, size_t size) {
    for (size_t i = 0; i < ew_app_listeners(app); i++) {
        const char *wire, *address;
        int port;
        if (ew_app_listener(app, i, &wire, &address, &port) != EW_OK ||
            (strcmp(wire, "any") != 0 && strcmp(wire, "http") != 0)) {
            continue;
        }
        if (strncmp(address, "0.0.0.0:", 8) == 0 || strncmp(address, "[::]:", 5) == 0) {
            (void)snprintf(out, size, "%s:%d", address[0] == '[' ? "[::1]" : "127.0.0.1", port);
        } else {
            (void)snprintf(out, size, "%s", address);
        }
        return true;
    }
    return false;
}

static void say_table(ew_app *app, const char *name) {
    const char *bold = colour_wanted() ? "\033[1m" : "", *plain = colour_wanted() ? "\033[0m" : "";
    char address[128], action[128], input[256];
    (void)printf("%s%s%s is ready (everywire %s)\n\n  %-8s %s\n", bold, name, plain, ew_version(), "WIRE", "ADDRESS");
    for (size_t i = 0; i < ew_app_listeners(app); i++) {
        const char *wire, *at;
        if (ew_app_listener(app, i, &wire, &at, NULL) == EW_OK) {
            (void)printf("  %-8s %s%s%s\n", wire, bold, at, plain);
        }
    }
    if (sample_address(app, address, sizeof address) && sample_call(app, action, sizeof action, input, sizeof input)) {
        (void)printf("\nTry in another terminal:\n\n  everywire list http://%s\n", address);
        (void)printf("  everywire call http://%s %s '%s' --stream\n", address, action, input);
        (void)printf("  curl http://%s/%s -H 'content-type: application/json' -d '{\"data\":%s}'\n", address, action,
                     input);
    }
    (void)printf("\nCtrl-C ends it.\n\n");
    (void)fflush(stdout);
}

/* ---- signals ---- */

typedef struct signals {
    ew_app *app;
    const ew_env *env;
    pthread_t thread;
    sigset_t set;
    sigset_t old_set;
    struct sigaction old_int, old_term, old_pipe;
    atomic_bool over;
    bool runs;
} signals;

/* First signal: drain. Second: the end, now. It runs until signals_done sends it one of its own. */
static void *signals_run(void *arg) {
    signals *s = arg;
    for (int count = 0;;) {
        int number = 0;
        if (sigwait(&s->set, &number) != 0) {
            continue;
        }
        if (atomic_load(&s->over)) {
            return NULL;
        }
        if (count++ > 0) {
            _exit(128 + number);
        }
        ew__log(s->env, EW_LOG_INFO, "main", "%s: draining; a second signal ends at once",
                number == SIGINT ? "SIGINT" : "SIGTERM");
        ew_app_stop(s->app);
    }
}

/*
 * Blocks the two signals before any thread is made, so that only sigwait sees them. Their action is set to the default
 * one: a shell script starts its background jobs with SIGINT ignored, and what is ignored never reaches sigwait.
 */
static void signals_init(signals *s, ew_app *app, const ew_env *env) {
    *s = (signals){.app = app, .env = env};
    struct sigaction plain = {.sa_handler = SIG_DFL}, ignore = {.sa_handler = SIG_IGN};
    (void)sigemptyset(&s->set);
    (void)sigaddset(&s->set, SIGINT);
    (void)sigaddset(&s->set, SIGTERM);
    (void)pthread_sigmask(SIG_BLOCK, &s->set, &s->old_set);
    (void)sigaction(SIGINT, &plain, &s->old_int);
    (void)sigaction(SIGTERM, &plain, &s->old_term);
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
    (void)sigaction(SIGINT, &s->old_int, NULL);
    (void)sigaction(SIGTERM, &s->old_term, NULL);
    (void)sigaction(SIGPIPE, &s->old_pipe, NULL);
    (void)pthread_sigmask(SIG_SETMASK, &s->old_set, NULL);
}

/* ---- the run ---- */

static int start_failed(const settings *s, const ew_env *env, ew_app *app, ew_err err) {
    const char *more = ew_app_error(app);
    ew__log(env, EW_LOG_ERROR, "main", "%s", *more ? more : ew_err_text(err));
    if (isatty(STDERR_FILENO) && err == EW_EADDRINUSE) {
        (void)fprintf(stderr, "Is it running already? %s --listen 127.0.0.1:0 takes a free port.\n", s->name);
    }
    return EXIT_FAILURE;
}

static int add_listeners(const settings *s, ew_app *app) {
    for (size_t i = 0; i < s->n_listens; i++) {
        ew_err err = ew_app_listen(app, s->listens[i]);
        if (err != EW_OK) {
            const char *more = ew_app_error(app);
            return usage_errorf(s, "--listen", s->listens[i], *more ? more : ew_err_text(err));
        }
    }
    return 0;
}

static int run(const settings *s, const ew_env *env, ew_app *app) {
    ew_err err = s->options.loop ? EW_EUNSUPPORTED : ew__app_configure(app, &s->options);
    if (err != EW_OK) { /* a host's loop runs on the host's thread: that program has a main function of its own */
        return start_failed(s, env, app, err);
    }
    int bad = add_listeners(s, app);
    if (bad) {
        return bad;
    }
    signals sig;
    signals_init(&sig, app, env);
    err = ew_app_start(app);
    if (err == EW_OK) {
        err = signals_start(&sig);
    }
    if (err != EW_OK) {
        signals_done(&sig);
        return start_failed(s, env, app, err);
    }
    if (!s->quiet && isatty(STDOUT_FILENO)) {
        say_table(app, s->name);
    } else if (!s->quiet) {
        say_json(app);
    }
    err = ew_app_wait(app);
    signals_done(&sig);
    if (err == EW_ETIMEOUT) {
        ew__log(env, EW_LOG_ERROR, "main",
                "some calls were cut off: they had not ended when the time to drain was over");
    }
    return err == EW_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* The env for the run: the app's own if its program brought one, else the default one with a log. */
static const ew_env *choose_env(const settings *s, logger *log) {
    if (s->options.env != ew_env_default()) {
        return s->options.env;
    }
    log->env = *ew_env_default();
    log->env.log = log_line;
    log->env.ud = log; /* the default functions do not look at it */
    log->level = s->level;
    log->terminal = isatty(STDERR_FILENO) != 0;
    return &log->env;
}

/* The program's own options, which the command line adds to. Host names are copied: the app will replace its own. */
static ew_err keep_options(settings *s, const ew_app *app, ew__arena *arena, int argc) {
    s->options = (ew_app_options){
        .env = app->env,
        .limits = app->limits,
        .threads = app->threads,
        .loop = app->host,
        .drain_ms = app->drain_ms,
        .allow_remote = app->allow_remote,
    };
    size_t words = (size_t)(argc > 0 ? argc : 0) + 1;
    size_t lists = 2 * words + app->n_allow_hosts;
    s->listens = ew__arena_alloc(arena, lists * sizeof *s->listens);
    if (!s->listens) {
        return EW_ENOMEM;
    }
    memset((void *)s->listens, 0, lists * sizeof *s->listens);
    s->hosts = s->listens + words;
    for (; s->n_hosts < app->n_allow_hosts; s->n_hosts++) {
        const char *host = app->allow_hosts[s->n_hosts];
        s->hosts[s->n_hosts] = ew__arena_copy(arena, host, strlen(host) + 1);
        if (!s->hosts[s->n_hosts]) {
            return EW_ENOMEM;
        }
    }
    s->options.allow_hosts = s->hosts;
    return EW_OK;
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

int ew_app_main(ew_app *app, int argc, char **argv) {
    const char *path = argc > 0 && argv[0] ? argv[0] : "everywire";
    const char *slash = strrchr(path, '/');
    settings s = {.name = slash ? slash + 1 : path, .level = EW_LOG_INFO};
    ew__arena arena;
    int code = EXIT_FAILURE;
    ew__standard_descriptors();
    ew__arena_init(&arena, ew_env_default(), NULL, 0);
    logger *log = app ? ew__arena_alloc(&arena, sizeof *log) : NULL;
    if (!log || keep_options(&s, app, &arena, argc) != EW_OK) {
        (void)fprintf(stderr, "%s: out of memory\n", s.name);
    } else {
        code = read_options(&s, argc, argv);
        if (code < 0) {
            s.options.env = choose_env(&s, log);
            code = run(&s, s.options.env, app);
        }
    }
    bool stuck = app && has_stuck_handlers(app);
    (void)ew_app_free(app);
    if (!stuck) {
        ew__arena_done(&arena);
    }
    return code;
}
