/*
 * program/options.c: how ew_app_main is told what to do: the command line, the configuration file, the environment. See
 * main.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "program/main.h"
#include "client/target.h"
#include "base/parse.h"
#include "base/suggestion.h"
#include "program/serve_options.h"
#include <stdlib.h>

#define EXIT_USAGE 2

/* ---- options ---- */

static const ew__opt none[] = {{NULL, 0, NULL, NULL, 0}}; /* the program has no options of its own */

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

static int usage_error(const ew__settings *s, const char *problem) {
    (void)fprintf(stderr, "%s: %s\nTry: %s --help\n", s->name, problem, s->name);
    return EXIT_USAGE;
}

static int usage_errorf(const ew__settings *s, const char *what, const char *value, const char *why) {
    char problem[512];
    (void)snprintf(problem, sizeof problem, "%s %.200s: %s", what, value, why);
    return usage_error(s, problem);
}

int ew__settings_usage(const ew__settings *s, const char *what, const char *why) {
    char problem[512];
    (void)snprintf(problem, sizeof problem, "%s: %s", what, why);
    return usage_error(s, problem);
}

static int help(const ew__settings *s, const ew__opt *table) {
    (void)printf("Usage: %s [OPTIONS]\n\nServes its actions until a signal ends it.\n\nOptions:\n", s->name);
    ew__serve_options_help(stdout, table);
    (void)printf("\nDUR is 500ms, 2s, 1m, 1h; a bare number is seconds.\n\nEnvironment:\n");
    ew__serve_environment_help(stdout);
    (void)printf("\nExamples:\n  %s\n  %s --listen 127.0.0.1:0 --drain 2s\n  %s --listen http=127.0.0.1:8080 "
                 "--log-level debug\n",
                 s->name, s->name, s->name);
    return EXIT_SUCCESS;
}

static int help_limits(const ew__settings *s) {
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

static int read_limit(ew__settings *s, const char *text) {
    const char *equals = strchr(text, '=');
    ew_str name = ew__str(text, equals ? (size_t)(equals - text) : strlen(text));
    ew__suggestion near;
    ew__suggestion_init(&near, name);
    for (size_t i = 0; i < N_LIMITS; i++) {
        if (!ew__str_is(name, ew_str_from(limits_table[i].name))) {
            ew__suggestion_try(&near, ew_str_from(limits_table[i].name));
            continue;
        }
        uint64_t value = 0;
        if (!equals || !ew__limit_parse(limits_table[i].name, ew_str_from(equals + 1), &value)) {
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

static int read_verbose(ew__settings *s, const char *text) {
    bool full = text && (strcmp(text, "full") == 0 || strcmp(text, "v") == 0);
    s->verbose = full ? 2 : 1;
    return !text || full ? 0 : usage_errorf(s, "--verbose", text, "not full");
}

static int read_level(ew__settings *s, const char *text) {
    if (strcmp(text, "trace") == 0) {
        s->verbose = s->verbose ? s->verbose : 1;
        s->level = EW_LOG_DEBUG;
        s->level_by_hand = true;
        return 0;
    }
    for (size_t i = 0; i < sizeof ew__level_names / sizeof *ew__level_names; i++) {
        if (strcmp(text, ew__level_names[i]) == 0) {
            s->level = (ew_log_level)i;
            s->level_by_hand = true;
            return 0;
        }
    }
    return usage_errorf(s, "--log-level", text, "not one of error, warn, info, debug, trace");
}

static int read_threads(ew__settings *s, const char *text) {
    uint64_t n;
    if (!ew__u64_parse(ew_str_from(text), &n) || n < 1 || n > 1024) {
        return usage_errorf(s, "--threads", text, "not a number from 1 to 1024");
    }
    s->options.threads = (unsigned)n;
    return 0;
}

static int read_concurrency(ew__settings *s, const char *text) {
    uint64_t n;
    if (!ew__u64_parse(ew_str_from(text), &n) || n < 1 || n > 100000) {
        return usage_errorf(s, "--concurrency", text, "not a number from 1 to 100000");
    }
    s->concurrency = (unsigned)n;
    return 0;
}

static int read_drain(ew__settings *s, const char *text) {
    uint64_t ms;
    if (ew__duration_parse(ew_str_from(text), &ms) != EW_OK) {
        return usage_errorf(s, "--drain", text, "not a duration such as 500ms, 2s, 1m, 1h");
    }
    s->options.drain_ms = ms > 0 ? ms : 1; /* zero would mean the default */
    return 0;
}

static int read_telemetry(ew__settings *s, const char *text) {
    ew__export_target aim;
    const char *problem = NULL;
    if (ew__export_target_parse(ew_str_from(text), false, &aim, &problem) != EW_OK) {
        return usage_errorf(s, "--telemetry", text, problem);
    }
    s->options.telemetry = text;
    return 0;
}

static int read_stack_traces(ew__settings *s, const char *text) {
    for (unsigned i = 0; ew__stack_traces_words[i]; i++) {
        if (strcmp(text, ew__stack_traces_words[i]) == 0) {
            s->options.stack_traces = (ew_stack_traces)i;
            return 0;
        }
    }
    return usage_errorf(s, "--stack-traces", text, "expected local, all or none");
}

/* Options without a value. */
static bool take_flag(ew__settings *s, int id) {
    bool *flag = id == EW__SERVE_STDIO           ? &s->stdio
                 : id == EW__SERVE_QUIET         ? &s->quiet
                 : id == EW__SERVE_ALLOW_REMOTE  ? &s->options.allow_remote
                 : id == EW__SERVE_NO_TOKEN      ? &s->options.no_token
                 : id == EW__SERVE_REQUIRE_TOKEN ? &s->require_token
                 : id == EW__SERVE_WORKER        ? &s->worker
                 : id == EW__SERVE_BURST         ? &s->burst
                                                 : NULL;
    if (flag) {
        *flag = true;
    }
    return flag != NULL;
}

/* Options whose value is taken as it is. */
static bool take_text(ew__settings *s, ew__opts *opts, int id) {
    const char **text = id == EW__SERVE_LISTEN          ? &s->listens[s->n_listens++]
                        : id == EW__SERVE_CONNECT       ? &s->connects[s->n_connects++]
                        : id == EW__SERVE_IMPORT        ? &s->imports[s->n_imports++]
                        : id == EW__SERVE_QUEUE         ? &s->queues[s->n_queues++]
                        : id == EW__SERVE_ALLOW_HOST    ? &s->hosts[s->n_hosts++]
                        : id == EW__SERVE_STORE         ? &s->store
                        : id == EW__SERVE_TOKENS        ? &s->options.tokens
                        : id == EW__SERVE_WORKER_ID     ? &s->worker_id
                        : id == EW__SERVE_RUNTIME_ID    ? &s->options.runtime_id
                        : id == EW__SERVE_SANDBOX_WRITE ? &s->writes[s->n_writes++]
                                                        : NULL;
    if (text) {
        *text = opts->value;
    }
    return text != NULL;
}

/* A word of a wire, an option or a variable. The last option of a role counts. */
static void take_start(ew__settings *s, const ew_start_word *word, const char *value) {
    if (word->role <= EW_START_HOST) {
        s->start[word->role] = (ew__start){word, value};
    } else if (word->role == EW_START_CONNECT) {
        s->manager = (ew__start){word, value};
    } else if (word->role == EW_START_TELEMETRY && !s->options.telemetry) {
        s->options.telemetry = value;
    } else if (word->role == EW_START_REALTIME && strcmp(value, "true") == 0) {
        s->options.telemetry_realtime = true;
    } else if (word->role == EW_START_RUNTIME_ID && !s->options.runtime_id) {
        s->options.runtime_id = value;
    }
}

/* -1: go on; else the exit code. */
static int take_option(ew__settings *s, ew__opts *opts, int id) {
    int bad = 0;
    if (id == EW__SERVE_CONFIG || take_flag(s, id) || ew__tls_option(&s->options.tls, id, opts->value) ||
        take_text(s, opts, id)) { /* the file was read first, because all others win over it */
        return -1;
    }
    if (id >= EW__SERVE_START) {
        take_start(s, ew_start_word_at((size_t)(id - EW__SERVE_START)), opts->value);
        return -1;
    }
    switch (id) {
    case EW__SERVE_TELEMETRY:
        bad = read_telemetry(s, opts->value);
        break;
    case EW__SERVE_THREADS:
        bad = read_threads(s, opts->value);
        break;
    case EW__SERVE_CONCURRENCY:
        bad = read_concurrency(s, opts->value);
        break;
    case EW__SERVE_DRAIN:
        bad = read_drain(s, opts->value);
        break;
    case EW__SERVE_STACK_TRACES:
        bad = read_stack_traces(s, opts->value);
        break;
    case EW__SERVE_FINAL_STATUS:
    case EW__SERVE_RUNTIME_GRACE:
        bad = ew__settings_retry(s, id, opts->value);
        break;
    case EW__SERVE_SANDBOX:
        bad = ew__settings_sandbox_mode(s, opts->value);
        break;
    case EW__SERVE_LIMIT:
        bad = read_limit(s, opts->value);
        break;
    case EW__SERVE_LOG_LEVEL:
        bad = read_level(s, opts->value);
        break;
    case EW__SERVE_VERBOSE:
        bad = read_verbose(s, opts->value);
        break;
    case EW__SERVE_VERSION:
        (void)printf("%s (everywire %s)\n", s->name, ew_version());
        return EXIT_SUCCESS;
    case EW__SERVE_HELP:
        return opts->at < opts->argc && strcmp(opts->argv[opts->at], "limits") == 0 ? help_limits(s)
                                                                                    : help(s, opts->table);
    case EW__OPT_BAD:
        return usage_error(s, opts->problem);
    case EW__OPT_WORD:
        return usage_errorf(s, "unexpected word", opts->value, "options start with --");
    default:
        return usage_error(s, "unexpected --");
    }
    return bad ? bad : -1;
}

/* ---- the configuration file ---- */

static void print_problem(const ew_config_problem *problem, void *ud) {
    (void)ud;
    if (problem->line) {
        (void)fprintf(stderr, "%s:%u:%u: %s\n", problem->file, problem->line, problem->column, problem->message);
    } else {
        (void)fprintf(stderr, "%s: %s\n", problem->file, problem->message);
    }
}

static int no_memory(const ew__settings *s) {
    (void)fprintf(stderr, "%s: out of memory\n", s->name);
    return EXIT_FAILURE;
}

/* All that is wrong with it; the last word about this start. */
static int bad_config(ew__settings *s) {
    if (s->file.config->problems.no_memory) {
        return no_memory(s);
    }
    ew__app_config_tell(s->config, s->file.config, print_problem, NULL);
    return EXIT_USAGE;
}

/* The name of the file, if the command line has one and is in order. -1, or the exit code. */
static int find_config(ew__settings *s, int argc, char **argv) {
    ew__opt table[EW__SERVE_OPTIONS_MAX];
    ew__opts opts;
    ew__serve_options(table, none);
    ew__opts_init(&opts, table, argc, argv, 1);
    for (;;) {
        int id = ew__opts_next(&opts);
        if (id == EW__SERVE_CONFIG && s->config) {
            return usage_error(s, "--config can be given once only");
        }
        if (id == EW__SERVE_CONFIG) {
            s->config = opts.value;
        } else if (id == EW__SERVE_WORKER) {
            s->worker = true;
        } else if (id == EW__SERVE_STORE) {
            s->store = opts.value;
        } else if (id == EW__OPT_END) {
            return -1;
        } else if (id < 0 || id == EW__SERVE_HELP || id == EW__SERVE_VERSION) {
            s->config = NULL; /* the next reader ends there, too */
            s->worker = false;
            return -1;
        }
    }
}

/* Adds the file's host names to the list, and keeps room for those of the command line. */
static bool add_hosts(ew__settings *s, const char *const *hosts) {
    size_t n = 0;
    while (hosts && hosts[n]) {
        n++;
    }
    if (n == 0) {
        return true;
    }
    size_t room = s->n_hosts + n + s->words;
    const char **all = ew__arena_alloc(s->arena, room * sizeof *all);
    if (!all) {
        return false;
    }
    memset((void *)all, 0, room * sizeof *all);
    memcpy((void *)all, (const void *)s->hosts, s->n_hosts * sizeof *all);
    memcpy((void *)(all + s->n_hosts), (const void *)hosts, n * sizeof *all);
    s->hosts = all;
    s->n_hosts += n;
    s->options.allow_hosts = all;
    return true;
}

/* What the file says becomes what there is before the command line is read. -1, or the exit code. */
static int read_config(ew__settings *s) {
    ew_err err = ew__app_config_open(&s->file, ew_env_default(), s->config);
    if (err == EW_ENOMEM) {
        return no_memory(s);
    }
    if (err != EW_OK) {
        return bad_config(s);
    }
    const ew__config *config = s->file.config;
    ew__app_config_options(config, &s->options);
    if (config->log.has_level) {
        s->level = config->log.level;
    }
    return add_hosts(s, config->allow_hosts) ? -1 : no_memory(s);
}

/* ---- the address that an orchestrator names ---- */

static bool is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

static ew_str trim(ew_str text) {
    while (text.len && is_blank(text.ptr[0])) {
        text = ew__str(text.ptr + 1, text.len - 1);
    }
    while (text.len && is_blank(text.ptr[text.len - 1])) {
        text.len--;
    }
    return text;
}

/*
 * HOST:PORT becomes what ew_app_listen takes: an IPv6 host may stand without its brackets. NULL, or what is wrong with
 * it.
 */
static const char *start_listener(const ew__start *start, char *out, size_t size) {
    ew_str text = trim(ew_str_from(start->value));
    size_t n = text.len;
    while (n > 0 && text.ptr[n - 1] != ':') {
        n--;
    }
    if (n == 0 || text.len > 80) {
        return "not HOST:PORT";
    }
    ew_str host = ew__str(text.ptr, n - 1), port = ew__str(text.ptr + n, text.len - n);
    uint64_t number;
    if (!ew__u64_parse(port, &number) || number < 1 || number > 65535) {
        return "the port is not a number from 1 to 65535";
    }
    bool bare_v6 = memchr(host.ptr, ':', host.len) && host.ptr[0] != '[';
    (void)snprintf(out, size, "%s=%s%.*s%s:%u", start->word->wire, bare_v6 ? "[" : "", (int)host.len, host.ptr,
                   bare_v6 ? "]" : "", (unsigned)number);
    ew__address address;
    if (ew__address_parse(strchr(out, '=') + 1, &address) != EW_OK || address.kind != EW__ADDR_TCP) {
        return "the host is neither localhost nor an IP address";
    }
    return NULL;
}

/* ---- the environment ---- */

static const char *variable(const char *name) {
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

/* How orchestrators configure the programs that they start. The command line and the file win. */
static void read_environment(ew__settings *s) {
    const ew_start_word *word;
    for (size_t i = 0; (word = ew_start_word_at(i)) != NULL; i++) {
        const char *value = word->argument ? NULL : variable(word->name);
        bool address = word->role <= EW_START_HOST;
        if (value && !(address && (s->start[word->role].value || trim(ew_str_from(value)).len == 0))) {
            take_start(s, word, value);
        }
    }
    if (!s->options.token) {
        s->options.token = variable("EVERYWIRE_TOKEN");
    }
}

/* ---- all ---- */

/* NULL stays NULL. */
static bool copy_text(ew__arena *arena, const char *text, const char **ret) {
    *ret = text ? ew__arena_copy(arena, text, strlen(text) + 1) : NULL;
    return !text || *ret;
}

/* Texts are copied: the app will replace its own. */
ew_err ew__settings_init(ew__settings *s, const ew_app *app, ew__arena *arena, int argc) {
    s->options = (ew_app_options){
        .env = ew__budget_inner(app->budget),
        .limits = app->limits,
        .threads = app->threads,
        .loop = app->host,
        .drain_ms = app->drain_ms,
        .final_statuses = app->final_statuses,
        .runtime_grace_ms = app->runtime_grace_ms,
        .allow_remote = app->allow_remote,
        .no_token = app->access.no_token,
        .stack_traces = app->stack_traces,
        .telemetry_realtime = app->telemetry.realtime,
        .trace_frames = app->tapping.fn,
        .trace_ud = app->tapping.ud,
        .trace_bytes = app->tapping.keep,
    };
    if (!app->access.count_local)
        s->options.limits.connections_per_address = 0; /* nobody has asked for it */
    s->has_jobs = app->jobs != NULL;
    size_t words = (size_t)(argc > 0 ? argc : 0) + 1;
    s->arena = arena;
    s->words = words;
    size_t lists = 6 * words + app->n_allow_hosts;
    s->listens = ew__arena_alloc(arena, lists * sizeof *s->listens);
    if (!s->listens) {
        return EW_ENOMEM;
    }
    memset((void *)s->listens, 0, lists * sizeof *s->listens);
    s->connects = s->listens + words;
    s->imports = s->connects + words;
    s->queues = s->imports + words;
    s->writes = s->queues + words;
    s->hosts = s->writes + words;
    for (; s->n_hosts < app->n_allow_hosts; s->n_hosts++) {
        if (!copy_text(arena, app->allow_hosts[s->n_hosts], &s->hosts[s->n_hosts])) {
            return EW_ENOMEM;
        }
    }
    s->options.allow_hosts = s->hosts;
    return copy_text(arena, app->runtime_id, &s->options.runtime_id) &&
                   copy_text(arena, app->telemetry_url, &s->options.telemetry) &&
                   ew__tls_copy(arena, &app->tls.options, &s->options.tls) == EW_OK
               ? EW_OK
               : EW_ENOMEM;
}

/* -1: go on; else the exit code. */
static int read_words(ew__settings *s, int argc, char **argv) {
    ew__opt table[EW__SERVE_OPTIONS_MAX];
    ew__opts opts;
    ew__serve_options(table, none);
    ew__opts_init(&opts, table, argc, argv, 1);
    for (;;) {
        int id = ew__opts_next(&opts);
        if (id == EW__OPT_END) {
            return -1;
        }
        int code = take_option(s, &opts, id);
        if (code >= 0) {
            return code;
        }
    }
}

int ew__settings_read(ew__settings *s, int argc, char **argv) {
    int code = find_config(s, argc, argv);
    if (code < 0 && s->worker && !s->config) {
        code = ew__settings_find_config(s);
    }
    if (code < 0 && s->config) {
        code = read_config(s);
    }
    if (code < 0) {
        code = read_words(s, argc, argv);
    }
    if (code < 0 && s->config && s->file.config->problems.n) {
        ew__app_config_rehearse(ew_env_default(), s->file.config, s->options.allow_remote);
        code = bad_config(s);
    }
    if (code < 0) {
        code = ew__settings_check_jobs(s);
    }
    if (code >= 0) {
        return code;
    }
    if (s->quiet) {
        s->level = EW_LOG_ERROR;
    }
    read_environment(s);
    const ew__start *listen = &s->start[EW_START_LISTEN];
    if (listen->value && s->options.drain_ms == 0 && s->parent > 1) { /* init is not an orchestrator */
        s->options.drain_ms = ew__wire_by_name(ew_str_from(listen->word->wire))->about->drain_ms;
    }
    return -1;
}

static int add(const ew__settings *s, ew_app *app, ew_err (*with)(ew_app *app, const char *text), const char *what,
               const char *text) {
    ew_err err = with(app, text);
    if (err == EW_OK) {
        return 0;
    }
    const char *more = app->error;
    return usage_errorf(s, what, text, *more ? more : ew_err_text(err));
}

/* "[PREFIX=]TARGET": what stands before the first '=' is a prefix, if that comes before all that a target is made of. */
static ew_err add_import(ew_app *app, const char *text) {
    char prefix[256];
    size_t n = strcspn(text, "=:/?#,");
    if (text[n] != '=') {
        return ew__app_add_import(app, text, NULL);
    }
    (void)snprintf(prefix, sizeof prefix, "%.*s", (int)(n < sizeof prefix ? n : sizeof prefix), text);
    return ew__app_add_import(app, text + n + 1, &(ew_import_options){.prefix = prefix});
}

static int add_start_listen(const ew__settings *s, ew_app *app) {
    const ew__start *start = &s->start[EW_START_LISTEN];
    char listener[128];
    const char *problem = start_listener(start, listener, sizeof listener);
    ew_err err = problem ? EW_EINVAL : ew__app_add_listener(app, listener);
    if (!problem && err != EW_OK) {
        problem = *app->error ? app->error : ew_err_text(err);
    }
    return problem ? usage_errorf(s, start->word->name, start->value, problem) : 0;
}

/* The port and the host of an address come as two words, or one of them. */
static int add_start_port(const ew__settings *s, ew_app *app) {
    const ew__start *port = &s->start[EW_START_PORT], *host = &s->start[EW_START_HOST];
    const ew__start *given = host->value ? host : port;
    const char *at = host->value ? host->value : "127.0.0.1";
    char listener[160];
    uint64_t number = 0;
    if (port->value && (!ew__u64_parse(ew_str_from(port->value), &number) || number > 65535)) {
        return usage_errorf(s, port->word->name, port->value, "not a number from 0 to 65535");
    }
    bool bare_v6 = strchr(at, ':') && at[0] != '[';
    (void)snprintf(listener, sizeof listener, "%s=%s%.100s%s:%u", given->word->wire, bare_v6 ? "[" : "", at,
                   bare_v6 ? "]" : "", (unsigned)number);
    ew_err err = ew__app_add_listener(app, listener);
    if (err == EW_OK) {
        return 0;
    }
    const char *more = *app->error ? app->error : ew_err_text(err);
    more = err == EW_EINVAL && host->value ? "the host is neither localhost nor an IP address" : more;
    return usage_errorf(s, given->word->name, given->value, more);
}

int ew__settings_apply(ew__settings *s, ew_app *app) {
    int bad = 0;
    bool by_hand = false; /* the environment's manager was named on the command line, too */
    char socket[64] = "";
    if (ew__supervisor_listen(&s->supervisor, app, socket, sizeof socket) != EW_OK) {
        bad = usage_errorf(s, "LISTEN_FDS", socket, app->error);
    }
    for (size_t i = 0; i < s->n_listens && !bad; i++) {
        bad = add(s, app, ew_app_listen, "--listen", s->listens[i]);
    }
    for (size_t i = 0; i < s->n_connects && !bad; i++) {
        bad = add(s, app, ew_app_connect, "--connect", s->connects[i]);
        by_hand = by_hand || (s->manager.value && strcmp(s->manager.value, s->connects[i]) == 0);
    }
    for (size_t i = 0; i < s->n_imports && !bad; i++) {
        bad = add(s, app, add_import, "--import", s->imports[i]);
    }
    if (!bad && s->manager.value && !by_hand) {
        bad = add(s, app, ew_app_connect, s->manager.word->name, s->manager.value);
    }
    if (!bad && s->start[EW_START_LISTEN].value) {
        bad = add_start_listen(s, app);
    }
    if (!bad && (s->start[EW_START_PORT].value || s->start[EW_START_HOST].value)) {
        bad = add_start_port(s, app);
    }
    if (!bad && s->stdio) {
        bad = add(s, app, ew_app_listen, "--stdio", "stdio");
    }
    if (!bad && s->config && ew__app_config_apply(&s->file, app) != EW_OK) {
        bad = bad_config(s);
    }
    if (!bad) {
        bad = ew__settings_tokens(s, app);
    }
    return bad ? bad : ew__settings_jobs(s, app);
}
