/*
 * config/config.c: what a configuration file may hold. See config.h. To add a key: a member of a struct there, a row
 * here, and docs/config.md anew (`everywire check --reference`).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "config/config.h"
#include "base/util.h"

#define AT(type, member) .offset = offsetof(type, member), .size = sizeof(((type *)NULL)->member)
#define END                                                                                                            \
    { .name = NULL }

/* ---- imports ---- */

#define IMPORT(member) AT(ew__config_import, member)
#define IMPORT_TARGETS                                                                                                 \
    {.name = "target",                                                                                                 \
     .type = EW__FIELD_TEXT,                                                                                           \
     IMPORT(target),                                                                                                   \
     .help = "where the peer is: <<`targets`>>; with TLS <<`secure schemes`>>; and, with quotes because of the colon " \
             "at the "                                                                                                 \
             "end, <<`complete targets`>>"},                                                                           \
    {                                                                                                                  \
        .name = "targets", .type = EW__FIELD_TEXTS, IMPORT(targets),                                                   \
        .help = "instead of `target`: several homes of the same actions, called in turn"                               \
    }
#define IMPORT_PEER                                                                                                    \
    {.name = "command",                                                                                                \
     .type = EW__FIELD_COMMAND,                                                                                        \
     IMPORT(options.command),                                                                                          \
     .help = "the peer is this program, started when it is needed; no shell"},                                         \
        {.name = "environment",                                                                                        \
         .type = EW__FIELD_PAIRS,                                                                                      \
         IMPORT(options.environment),                                                                                  \
         .between = '=',                                                                                               \
         .help = EW__ENVIRONMENT_HELP},                                                                                \
        {.name = "processes",                                                                                          \
         .type = EW__FIELD_NUMBER,                                                                                     \
         IMPORT(options.processes),                                                                                    \
         .min = 1,                                                                                                     \
         .max = 64,                                                                                                    \
         .usual = "1",                                                                                                 \
         .help = "how many of it, for <<`program schemes`>>"},                                                         \
        {.name = "token",                                                                                              \
         .type = EW__FIELD_TEXT,                                                                                       \
         IMPORT(options.token),                                                                                        \
         .help = "the token that the peer wants; better `${VARIABLE}` or `token_file`"},                               \
        {.name = "token_file",                                                                                         \
         .type = EW__FIELD_PATH,                                                                                       \
         IMPORT(token_file),                                                                                           \
         .help = "instead of `token`: the file whose first line it is, of mode 0600"},                                 \
        {.name = "refresh",                                                                                            \
         .type = EW__FIELD_DURATION,                                                                                   \
         IMPORT(options.refresh_ms),                                                                                   \
         .min = 1,                                                                                                     \
         .usual = "5s",                                                                                                \
         .help = "how often the peer is asked for its list"},                                                          \
        {.name = "blobs",                                                                                              \
         .type = EW__FIELD_TEXT,                                                                                       \
         IMPORT(options.blobs),                                                                                        \
         .usual = "memory",                                                                                            \
         .help = "where blobs of a <<blobs title>> server are kept: `memory` or `sqlite:PATH`"},                       \
    {                                                                                                                  \
        .name = "tls", .type = EW__FIELD_GROUP, IMPORT(tls), .group = &ew__config_tls_group,                           \
        .usual = "the file's `tls`", .help = "certificates for this peer, with the keys of `tls` above"                \
    }

static const ew__field import_fields[] = {
    IMPORT_TARGETS,
    {.name = "prefix",
     .type = EW__FIELD_TEXT,
     IMPORT(options.prefix),
     .help = "stands before the names: with `py` the peer's `/flow/greet` is `/flow/py/greet` here"},
    {.name = "names",
     .type = EW__FIELD_PAIRS,
     IMPORT(options.names),
     .between = ':',
     .usual = "all that it lists",
     .help = "only these actions: `[NAME, NAME:AS]`, or a map `{NAME: AS}`"},
    IMPORT_PEER,
    END,
};

static const ew__field remote_fields[] = {
    IMPORT_TARGETS,
    {.name = "action",
     .type = EW__FIELD_TEXT,
     IMPORT(action),
     .required = true,
     .help = "what the action is called there: a name or key"},
    IMPORT_PEER,
    END,
};

static bool given(const ew__node *map, const char *name) {
    const ew__node *member = ew__node_get(map, name);
    return member && !ew__node_is_null(member);
}

/* Exactly one of two keys. false: a problem was added. */
static bool one_of(ew__reading *reading, const ew__node *map, const char *a, const char *b) {
    bool has_a = given(map, a), has_b = given(map, b);
    if (has_a && has_b) {
        const ew__node *key = ew__node_get(map, b)->key;
        ew__problem_add(reading->problems, key->line, key->column, "%s and %s are one too many", a, b);
    } else if (!has_a && !has_b) {
        ew__problem_add(reading->problems, map->line, map->column, "one of the keys %s and %s is missing", a, b);
    }
    return has_a != has_b;
}

/* One text of all targets, with commas between them. */
static const char *join_targets(ew__reading *reading, const char *const *targets) {
    ew__buf all;
    ew__buf_init(&all, reading->arena->env, EW__CONFIG_BYTES * 2);
    for (size_t i = 0; targets[i]; i++) {
        (void)ew__buf_cstr(&all, i ? "," : "");
        (void)ew__buf_cstr(&all, targets[i]);
    }
    reading->problems->no_memory = reading->problems->no_memory || all.err != EW_OK;
    const char *joined = all.err == EW_OK ? ew__join(reading, ew__buf_view(&all), 0, ew__str(NULL, 0)) : NULL;
    ew__buf_done(&all);
    return joined;
}

static void check_import(ew__reading *reading, const ew__node *node, void *item) {
    ew__config_import *import = item;
    if (node->kind == EW__NODE_MAP && !one_of(reading, node, "target", "targets")) {
        return;
    }
    import->options.tls = import->tls.options;
    import->joined = import->target;
    if (import->token_file && !import->options.token) {
        import->options.token = ew__join(reading, EW_STR("@"), 0, ew_str_from(import->token_file));
    }
    if (import->targets && import->targets[0]) {
        import->joined = join_targets(reading, import->targets);
    } else if (import->targets) {
        const ew__node *targets = ew__node_get(node, "targets");
        ew__problem_add(reading->problems, targets->line, targets->column, "targets is empty");
    }
    if (given(node, "command") && !import->options.command) {
        import->joined = NULL; /* a target that wants one would be blamed for having none */
    }
}

static const ew__group import_group = {
    .title = "imports[]",
    .help =
        "Every action behind a peer becomes an action here. A text alone is its `target`; `TARGET#NAME,NAME:AS` says "
        "`names`, too.",
    .size = sizeof(ew__config_import),
    .fields = import_fields,
    .alone = "target",
    .check = check_import,
};

static const ew__group remote_group = {
    .title = "actions.KEY.remote",
    .help = "One action of a peer, under a key of its own.",
    .size = sizeof(ew__config_import),
    .fields = remote_fields,
    .check = check_import,
};

/* ---- exec actions ---- */

#define EXEC(member) AT(ew__config_exec, member)

static const char *const outputs[] = {"lines", "json", "text", NULL}; /* as ew_exec_output */

/* {3: NOT_FOUND} */
static void read_exits(ew__reading *reading, const ew__field *field, const ew__node *node, void *item) {
    ew__config_exec *exec = item;
    if (node->kind != EW__NODE_MAP) {
        ew__field_wants(reading, field, node);
        return;
    }
    ew_exec_exit *exits = ew__arena_alloc(reading->arena, (node->n + 1) * sizeof *exits);
    if (!exits) {
        reading->problems->no_memory = true;
        return;
    }
    for (const ew__node *member = node->first; member; member = member->next) {
        const ew__node *key = member->key;
        uint64_t code;
        ew_status status = EW_STATUS_OK;
        if (!ew__u64_parse(key->text, &code) || code < 1 || code > 255) {
            ew__problem_add(reading->problems, key->line, key->column, "%s is no exit code: 1 to 255 are",
                            ew__show(key->text).text);
        } else if (!member->bad && (ew_status_from_name(member->text, &status) != EW_OK || status == EW_STATUS_OK)) {
            ew__problem_add(reading->problems, member->line, member->column,
                            "%s is no status of a failure, such as NOT_FOUND, UNAVAILABLE, INTERNAL",
                            member->kind == EW__NODE_TEXT ? ew__show(member->text).text : "this");
        } else {
            exits[exec->options.n_exits++] = (ew_exec_exit){(int)code, status};
        }
    }
    exec->options.exits = exits;
}

static const ew__field exec_fields[] = {
    {.name = "argv",
     .type = EW__FIELD_COMMAND,
     EXEC(argv),
     .help = "the program and its arguments; no shell. With a slash it is a path, without one it is looked up in PATH"},
    {.name = "command", .type = EW__FIELD_COMMAND, EXEC(command), .help = "another word for `argv`"},
    {.name = "folder",
     .type = EW__FIELD_PATH,
     EXEC(options.folder),
     .usual = "where this program runs",
     .help = "where it runs"},
    {.name = "environment",
     .type = EW__FIELD_PAIRS,
     EXEC(options.environment),
     .between = '=',
     .help = EW__ENVIRONMENT_HELP},
    {.name = "output",
     .type = EW__FIELD_WORD,
     EXEC(options.output),
     .words = outputs,
     .usual = "lines",
     .help =
         "what standard output means: lines such as `{\"chunk\":X}` and `{\"result\":X}`, one JSON value, or a text"},
    {.name = "keep",
     .type = EW__FIELD_BOOL,
     EXEC(options.keep),
     .usual = "false",
     .help = "processes stay and run one call after the other; only with `output: lines`"},
    {.name = "processes",
     .type = EW__FIELD_NUMBER,
     EXEC(options.processes),
     .min = 1,
     .max = 4096,
     .usual = "16; 1 with `keep`",
     .help = "at once, at most"},
    {.name = "queue",
     .type = EW__FIELD_NUMBER,
     EXEC(options.queue),
     .min = 1,
     .max = 1000000,
     .usual = "1024",
     .help = "calls that may wait for a process; RESOURCE_EXHAUSTED beyond"},
    {.name = "timeout",
     .type = EW__FIELD_DURATION,
     EXEC(options.timeout_ms),
     .usual = "none",
     .help = "for a call, if its caller's deadline is not sooner"},
    {.name = "grace",
     .type = EW__FIELD_DURATION,
     EXEC(options.grace_ms),
     .min = 1,
     .usual = "2s",
     .help = "from SIGTERM to SIGKILL"},
    {.name = "output_bytes",
     .type = EW__FIELD_SIZE,
     EXEC(options.output_bytes),
     .min = 1,
     .usual = "`limits.frame_bytes`",
     .help = "of one line, and of a result that is made of several"},
    {.name = "cpu",
     .type = EW__FIELD_SECONDS,
     EXEC(options.cpu_s),
     .usual = "no limit",
     .help = "processor time of one process, in whole seconds"},
    {.name = "memory",
     .type = EW__FIELD_SIZE,
     EXEC(options.memory_bytes),
     .usual = "no limit",
     .help = "address space of one process"},
    {.name = "file_bytes",
     .type = EW__FIELD_SIZE,
     EXEC(options.file_bytes),
     .usual = "no limit",
     .help = "of a file that it writes"},
    {.name = "open_files",
     .type = EW__FIELD_NUMBER,
     EXEC(options.open_files),
     .usual = "no limit",
     .help = "descriptors of one process"},
    {.name = "exits",
     .type = EW__FIELD_OWN,
     EXEC(options.exits),
     .read = read_exits,
     .holds = "a map such as {3: NOT_FOUND}",
     .help = "what exit codes mean, where that is not the usual"},
    END,
};

static void check_exec(ew__reading *reading, const ew__node *node, void *item) {
    ew__config_exec *exec = item;
    if (node->kind == EW__NODE_MAP && !one_of(reading, node, "argv", "command")) {
        return;
    }
    exec->options.argv = exec->argv ? exec->argv : exec->command;
    const ew__node *output = ew__node_get(node, "output");
    if (exec->options.keep && exec->options.output != EW_EXEC_LINES && output) {
        ew__problem_add(reading->problems, output->line, output->column,
                        "keep goes with output: lines only, which tell where one call ends");
    }
}

static const ew__group exec_group = {
    .title = "actions.KEY.exec",
    .help =
        "The action is a program: it gets the input as one line of JSON on standard input. A list alone is its `argv`.",
    .size = sizeof(ew__config_exec),
    .fields = exec_fields,
    .alone = "argv",
    .check = check_exec,
};

/* ---- actions ---- */

#define ACTION(member) AT(ew__config_action, member)

static const ew__field action_fields[] = {
    {.name = "exec", .type = EW__FIELD_GROUP, ACTION(exec), .group = &exec_group, .help = "it is a program"},
    {.name = "remote", .type = EW__FIELD_GROUP, ACTION(remote), .group = &remote_group, .help = "it is a peer's"},
    {.name = "description", .type = EW__FIELD_TEXT, ACTION(describe.description), .help = "one line for people"},
    {.name = "input_schema",
     .type = EW__FIELD_JSON_TEXT,
     ACTION(describe.input_schema),
     .help =
         "JSON Schema of the input (docs/schema.md): as YAML, as a text of JSON, or `'@FILE'`; what does not fit is "
         "refused, unless the action is a peer's, which sees to that itself"},
    {.name = "output_schema", .type = EW__FIELD_JSON_TEXT, ACTION(describe.output_schema), .help = "of the result"},
    {.name = "stream_schema", .type = EW__FIELD_JSON_TEXT, ACTION(describe.stream_schema), .help = "of one chunk"},
    {.name = "unchecked_output",
     .type = EW__FIELD_BOOL,
     ACTION(describe.unchecked_output),
     .usual = "false",
     .help = "`output_schema` and `stream_schema` describe only: nothing is checked against them"},
    {.name = "input_stream",
     .type = EW__FIELD_BOOL,
     ACTION(describe.input_stream),
     .usual = "false",
     .help = "it reads an input stream; listings say so (`bidi` in the metadata), and Genkit's Dev UI offers one"},
    {.name = "metadata",
     .type = EW__FIELD_JSON_TEXT,
     ACTION(describe.metadata),
     .help = "a map that listings hand out, as YAML or as a text of JSON"},
    {.name = "secrets",
     .type = EW__FIELD_TEXTS,
     ACTION(describe.secrets),
     .help = "JSON pointers to values of its input and result that no trace may show, `/password`, `/users/*/pin`"},
    END,
};

/* "/<type>/<name>" */
static bool is_key(ew_str key) {
    const char *slash = key.len > 1 && key.ptr[0] == '/' ? memchr(key.ptr + 1, '/', key.len - 1) : NULL;
    return slash && slash > key.ptr + 1 && slash + 1 < key.ptr + key.len && !memchr(key.ptr, 0, key.len);
}

/* What cannot be an action is not tried as one. */
static void check_action(ew__reading *reading, const ew__node *node, void *item) {
    ew__config_action *action = item;
    if (!is_key(node->key->text)) {
        ew__problem_add(reading->problems, node->key->line, node->key->column,
                        "%s is no key of an action: want /TYPE/NAME, such as /flow/greet",
                        ew__show(node->key->text).text);
        action->exec.options.argv = NULL;
        action->remote.joined = NULL;
    }
    (void)one_of(reading, node, "exec", "remote");
}

static const ew__group action_group = {
    .title = "actions.KEY",
    .help = "KEY is `/TYPE/NAME`, such as `/flow/greet`. Exactly one of `exec` and `remote` says what it does.",
    .size = sizeof(ew__config_action),
    .fields = action_fields,
    .check = check_action,
};

/* ---- plug-ins ---- */

#define PLUGIN(member) AT(ew__config_plugin, member)

static const ew__field plugin_fields[] = {
    {.name = "path", .type = EW__FIELD_PATH, PLUGIN(path), .required = true, .help = "the shared object"},
    {.name = "config", .type = EW__FIELD_JSON, PLUGIN(config), .usual = "null", .help = "what it is told, as JSON"},
    END,
};

static const ew__group plugin_group = {
    .title = "plugins[]",
    .help =
        "Shared objects that register actions (`everywire/gateway.h`). A text alone is its `path`. The file must be "
        "yours or root's, and writable by nobody else.",
    .size = sizeof(ew__config_plugin),
    .fields = plugin_fields,
    .alone = "path",
};

/* ---- settings ---- */

static const char *const levels[] = {"error", "warn", "info", "debug", NULL}; /* as ew_log_level */

static const ew__field log_fields[] = {
    {.name = "level",
     .type = EW__FIELD_WORD,
     AT(ew__config_log, level),
     .words = levels,
     .usual = "info",
     .help = "of what is told on standard error"},
    END,
};

static const ew__field telemetry_fields[] = {
    {.name = "url",
     .type = EW__FIELD_TEXT,
     AT(ew__config_telemetry, url),
     .help = "a Genkit telemetry server, `http://HOST:PORT` or `https://HOST:PORT`, that gets the spans of all calls"},
    {.name = "realtime",
     .type = EW__FIELD_BOOL,
     AT(ew__config_telemetry, realtime),
     .usual = "false",
     .help = "tell it of starts, too, not only of ends"},
    END,
};

static const ew__field limits_fields[] = {
#define LIMIT_FIELD(member, value, text)                                                                               \
    {.name = #member,                                                                                                  \
     .type = EW__FIELD_LIMIT,                                                                                          \
     AT(ew__config_limits, values.member),                                                                             \
     .min = (value) != 0,                                                                                              \
     .help = (text)},
    EW_LIMITS_MAP(LIMIT_FIELD)
#undef LIMIT_FIELD
        END,
};

/* The first level is zero, as nothing is. */
static void check_log(ew__reading *reading, const ew__node *node, void *item) {
    (void)reading;
    ((ew__config_log *)item)->has_level = node->kind == EW__NODE_TEXT || given(node, "level");
}

static const ew__group log_group = {
    .title = "log",
    .help = "A text alone is its `level`.",
    .size = sizeof(ew__config_log),
    .fields = log_fields,
    .alone = "level",
    .check = check_log,
};

static const ew__group telemetry_group = {
    .title = "telemetry",
    .help = "A text alone is its `url`.",
    .size = sizeof(ew__config_telemetry),
    .fields = telemetry_fields,
    .alone = "url",
};

static const ew__group limits_group = {
    .title = "limits",
    .help = "A number without a unit is bytes, milliseconds or pieces, as the name tells.",
    .size = sizeof(ew__config_limits),
    .fields = limits_fields,
};

#define FILE_AT(member) AT(ew__config, member)

const char *const ew__stack_traces_words[] = {"local", "all", "none", NULL};

static const ew__field file_fields[] = {
    {.name = "version",
     .type = EW__FIELD_NUMBER,
     FILE_AT(version),
     .min = 1,
     .max = 1,
     .usual = "1",
     .live = true,
     .help = "of the form of this file"},
    {.name = "listen",
     .type = EW__FIELD_TEXTS,
     FILE_AT(listen),
     .usual = "127.0.0.1:3400",
     .help = "where to listen, each `[WIRE=]ADDR`: WIRE is any, <<listeners>>, with TLS "
             "tls (any), <<secure listeners>>; ADDR is `HOST:PORT`, `unix:PATH` or `stdio`"},
    {.name = "connect",
     .type = EW__FIELD_TEXTS,
     FILE_AT(connect),
     .help = "managers to dial, such as the Genkit CLI: `ws://HOST:PORT[/PATH]`, `wss:` with TLS"},
    {.name = "allow_hosts",
     .type = EW__FIELD_TEXTS,
     FILE_AT(allow_hosts),
     .help =
         "further hosts that HTTP requests may name, each `NAME` or `*.DOMAIN` (every name below it), with `:PORT` if "
         "it is not the listener's"},
    {.name = "allow_remote",
     .type = EW__FIELD_BOOL,
     FILE_AT(allow_remote),
     .usual = "false",
     .help = "let listeners take other addresses than loopback ones; callers over TCP must then show a token"},
    {.name = "tokens",
     .type = EW__FIELD_PATH,
     FILE_AT(tokens),
     .help = "the file of tokens; callers over TCP must show one, on every address (docs/access.md)"},
    {.name = "token",
     .type = EW__FIELD_TEXT,
     FILE_AT(token),
     .help = "the token that imports and managers are shown which have none of their own; better `${VARIABLE}` or "
             "`token_file`"},
    {.name = "token_file",
     .type = EW__FIELD_PATH,
     FILE_AT(token_file),
     .help = "instead of `token`: the file whose first line it is, of mode 0600"},
    {.name = "no_token",
     .type = EW__FIELD_BOOL,
     FILE_AT(no_token),
     .usual = "false",
     .help = "serve everybody who reaches a listener, without a token"},
    {.name = "stack_traces",
     .type = EW__FIELD_WORD,
     FILE_AT(stack_traces),
     .words = ew__stack_traces_words,
     .usual = "local",
     .help = "which callers see the stack traces in errors of upstreams: those on this machine, all, or none"},
    {.name = "threads",
     .type = EW__FIELD_NUMBER,
     FILE_AT(threads),
     .min = 1,
     .max = 1024,
     .usual = "one per core",
     .help = "event loops"},
    {.name = "drain",
     .type = EW__FIELD_DURATION,
     FILE_AT(drain_ms),
     .min = 1,
     .usual = "10s",
     .help = "how long running calls may go on after the first signal"},
    {.name = "runtime_grace",
     .type = EW__FIELD_DURATION,
     FILE_AT(runtime_grace_ms),
     .usual = "60s",
     .help = "how long the actions of a runtime that dialled us and has left stay listed, and calls wait for it; 0: "
             "not at all"},
    {.name = "final_statuses",
     .type = EW__FIELD_TEXTS,
     FILE_AT(final_statuses),
     .usual = "`[INVALID_ARGUMENT, UNIMPLEMENTED]`",
     .help = "statuses that no further attempt changes: a job that fails so is a dead letter at once; `[none]`: every "
             "failure is tried again"},
    {.name = "runtime_id",
     .type = EW__FIELD_TEXT,
     FILE_AT(runtime_id),
     .usual = "the process id",
     .help = "what managers know this program by"},
    {.name = "log", .type = EW__FIELD_GROUP, FILE_AT(log), .group = &log_group, .live = true, .help = "what is told"},
    {.name = "telemetry",
     .type = EW__FIELD_GROUP,
     FILE_AT(telemetry),
     .group = &telemetry_group,
     .help = "where spans go"},
    {.name = "tls",
     .type = EW__FIELD_GROUP,
     FILE_AT(tls),
     .group = &ew__config_tls_group,
     .help = "certificates, and whom to trust"},
    {.name = "sandbox",
     .type = EW__FIELD_GROUP,
     FILE_AT(sandbox),
     .group = &ew__config_sandbox_group,
     .help = "rights that the process gives up when it starts"},
    {.name = "limits",
     .type = EW__FIELD_GROUP,
     FILE_AT(limits),
     .group = &limits_group,
     .help = "what peers may use up"},
    {.name = "imports",
     .type = EW__FIELD_LIST,
     FILE_AT(imports),
     .group = &import_group,
     .live = true,
     .help = "peers whose actions are offered here"},
    {.name = "actions",
     .type = EW__FIELD_NAMED,
     FILE_AT(actions),
     .group = &action_group,
     .live = true,
     .help = "single actions by their keys: programs, and those of peers"},
    {.name = "plugins",
     .type = EW__FIELD_LIST,
     FILE_AT(plugins),
     .group = &plugin_group,
     .help = "shared objects with actions"},
    {.name = "jobs",
     .type = EW__FIELD_GROUP,
     FILE_AT(jobs),
     .group = &ew__config_jobs_group,
     .help = "calls that are kept until they have been made"},
    END,
};

static void check_whole(ew__reading *reading, const ew__node *node, void *item) {
    ew__config *config = item;
    (void)node;
    if (config->token_file && !config->token) {
        config->token = ew__join(reading, EW_STR("@"), 0, ew_str_from(config->token_file));
    }
}

const ew__group ew__config_group = {
    .title = "The file",
    .size = offsetof(ew__config, arena), /* what is behind that is not read */
    .fields = file_fields,
    .check = check_whole,
};

/* ---- life ---- */

bool ew__config_runs_code(const ew__config *config) {
    const ew__config_import *imports = config->imports.items;
    const ew__config_action *actions = config->actions.items;
    bool runs = config->plugins.n > 0;
    for (size_t i = 0; i < config->imports.n && !runs; i++) {
        runs = imports[i].options.command != NULL;
    }
    for (size_t i = 0; i < config->actions.n && !runs; i++) {
        runs = actions[i].exec.node || actions[i].remote.options.command;
    }
    const ew__config_runner *runners = config->jobs.runners.items;
    for (size_t i = 0; i < config->jobs.runners.n && !runs; i++) {
        runs = runners[i].runner.command != NULL;
    }
    return runs;
}

ew__config *ew__config_new(const ew_env *env, const char *folder) {
    ew__config *config = ew__zalloc(env, sizeof *config);
    if (!config) {
        return NULL;
    }
    ew__arena_init(&config->arena, env, NULL, 0);
    ew__problems_init(&config->problems, &config->arena);
    ew__problems_init(&config->notes, &config->arena);
    config->folder = ew__arena_copy(&config->arena, folder, strlen(folder) + 1);
    if (!config->folder) {
        ew__config_free(config);
        return NULL;
    }
    return config;
}

ew_err ew__config_finish(ew__config *config, ew_err err, ew__config **ret_config) {
    *ret_config = NULL;
    if (err == EW_ENOMEM || config->problems.no_memory || config->notes.no_memory) {
        ew__config_free(config);
        return EW_ENOMEM;
    }
    ew__problems_sort(&config->problems);
    *ret_config = config;
    return EW_OK;
}

ew_err ew__config_parse(const ew_env *env, ew_str yaml, const char *folder, ew__variable_fn variable, void *ud,
                        ew__config **ret_config) {
    ew__config *config = ew__config_new(env, folder);
    ew__node *root = NULL;
    *ret_config = NULL;
    if (!config) {
        return EW_ENOMEM;
    }
    ew_err err = ew__tree_read(&config->arena, yaml, variable, ud, &config->problems, &root);
    if (err == EW_OK && root && !ew__node_is_null(root)) {
        ew__reading reading = {&config->arena, &config->problems, config->folder};
        ew__group_read(&reading, &ew__config_group, root, config);
    }
    return ew__config_finish(config, err, ret_config);
}

void ew__config_free(ew__config *config) {
    if (config) {
        const ew_env *env = config->arena.env;
        ew__arena_done(&config->arena);
        ew__free(env, config, sizeof *config);
    }
}
