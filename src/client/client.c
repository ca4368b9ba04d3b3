/*
 * client/client.c: clients: a target, a loop, a pool of connections. Requests are in request.c.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "client/client.h"
#include "base/thread.h"
#include "io/environment.h"
#include <stdio.h>

#define FAREWELL_MS 300 /* for the last spans of a program that we have started */
#define PROCESSES_MAX 64
#define VARS_MAX (sizeof((ew_client *)0)->vars / sizeof *((ew_client *)0)->vars)

static void *thread_main(void *arg) {
    ew_client *client = arg;
    ew__loop_run(&client->loop);
    return NULL;
}

static void on_loop_closed(ew__loop *loop, void *ud) {
    ew_client *client = ud;
    (void)loop;
    client->loop_closed = true;
}

static void free_client(ew_client *client) {
    ew__client_blobs_done(client);
    for (size_t i = 0; client->command && client->command[i]; i++)
        ew__free(client->env, client->command[i], strlen(client->command[i]) + 1);
    ew__free(client->env, client->command, client->command_size);
    if (client->actions)
        ew__actions_unref(client->actions);
    ew__tls_context_free(client->tls);
    ew__arena_done(&client->own);
    ew__budget *budget = client->budget;
    ew__free(client->env, client, sizeof *client);
    ew__budget_release(budget);
}

static void raze_gate(ew_client *client) {
    if (!client->gate.access)
        return;
    ew__gate_done(&client->gate);
    ew__access_done(&client->access);
    ew__clients_done(&client->clients);
}

static void discard(ew_client *client) {
    ew__pool_free(client->pool);
    ew__client_blobs_done(client);
    raze_gate(client);
    ew__call_context_done(&client->calls);
    ew__loop_done(&client->loop);
    free_client(client);
}

static void on_blobs_closed(ew_client *client) { ew__loop_close(&client->loop, on_loop_closed, client); }

/* First the servers go, then what they might ask for. */
static void on_pool_closed(ew__pool *pool) { ew__client_blobs_close(pool->ud, on_blobs_closed); }

/* Nobody runs the loop yet. */
static void close_and_discard(ew_client *client) {
    if (client->pool)
        ew__pool_close(client->pool, on_pool_closed);
    else
        ew__client_blobs_close(client, on_blobs_closed);
    while (!client->loop_closed)
        ew__loop_turn(&client->loop, false);
    discard(client);
}

static ew_err copy_command(ew_client *client, const char *const *command) {
    size_t n = 0;
    while (command[n])
        n++;
    client->command_size = (n + 1) * sizeof *client->command;
    client->command = ew__zalloc(client->env, client->command_size);
    if (!client->command)
        return EW_ENOMEM;
    for (size_t i = 0; i < n; i++) {
        size_t size = strlen(command[i]) + 1;
        client->command[i] = ew__alloc(client->env, size);
        if (!client->command[i])
            return EW_ENOMEM;
        memcpy(client->command[i], command[i], size);
    }
    return EW_OK;
}

static const char *copy_own(ew_client *client, const char *text) {
    return ew__arena_copy(&client->own, text, strlen(text) + 1);
}

/* Where the command runs (a runner's may say so), and what it has of our environment. */
static ew_err copy_surroundings(ew_client *client, const ew_client_options *options) {
    if (client->processes > 0 && options->folder) {
        client->rules.folder = copy_own(client, options->folder);
        if (!client->rules.folder)
            return EW_ENOMEM;
    }
    if (options->environment)
        client->inherited = ew__environment_make(&client->own, options->environment);
    return options->environment && !client->inherited ? EW_ENOMEM : EW_OK;
}

/* A program can only be started here. NULL: fine; else why not. */
static const char *check_managed(const ew__target *target, unsigned processes) {
    if (!ew__target_is_here(target))
        return "a command listens on this machine: HOST is localhost, 127.0.0.1 or [::1]";
    if (processes > PROCESSES_MAX)
        return "at most 64 processes";
    return target->port > 0 && target->port + processes > 65536 ? "there are not so many ports above that one" : NULL;
}

const char *ew__client_refusal(unsigned option) {
    const ew__wire *const *wires = ew__wires();
    for (size_t i = 0; wires[i]; i++)
        if (wires[i]->about && wires[i]->about->takes & option)
            return wires[i]->about->refusal;
    return "no target takes these options";
}

/* A program that announces its port was given one. Names the wire's scheme that is complete without a port. */
static const char *own_port_problem(const ew__target *target) {
    static _Thread_local char problem[160];
    const ew_scheme *scheme = target->wire->about->schemes;
    while (scheme->text && !scheme->rest)
        scheme++;
    (void)snprintf(problem, sizeof problem, "the command chooses its port itself: %s%sHOST:0",
                   scheme->text ? scheme->text : "", scheme->text ? " or " : "");
    return problem;
}

/* Whether what was given goes together. NULL: it does; else why not. */
static const char *check_options(const ew_client *client, bool command, unsigned processes) {
    const ew__target *target = &client->target;
    ew_scheme_command use = target->scheme->command;
    bool dialled = (target->kind == EW__WHERE_TCP || target->kind == EW__WHERE_UNIX) && client->processes == 0;
    if (client->connections > 0 && !dialled)
        return "connections are for a target that is dialled";
    if (command && use == EW_SCHEME_COMMAND_NO)
        return "this target is reached, not started: it takes no command";
    if (!command && use == EW_SCHEME_COMMAND_MUST)
        return "standard input and output: it wants the command that is the peer";
    if (client->processes > 0)
        return check_managed(target, client->processes);
    if (processes > 0)
        return ew__client_refusal(EW__TAKES_PROCESSES);
    if (client->announces)
        return target->port ? own_port_problem(target) : check_managed(target, 1);
    return target->kind == EW__WHERE_TCP && target->port == 0 ? "port 0 wants a command that listens there" : NULL;
}

/* What the target says, and whether the options go with it. EW_OK, or an error and why. */
static ew_err read_target(ew_client *client, const char *target, const ew_client_options *options,
                          const char **ret_problem) {
    bool command = options && options->command && options->command[0];
    unsigned processes = options ? options->processes : 0;
    ew_err err = ew__target_parse(target, &client->target, ret_problem);
    if (err != EW_OK)
        return err;
    client->connections = options ? options->connections : 0;
    if (command && client->target.kind == EW__WHERE_TCP && client->target.scheme->command == EW_SCHEME_COMMAND_MAY)
        client->processes = processes ? processes : 1;
    client->announces = command && client->target.scheme->command == EW_SCHEME_COMMAND_ANNOUNCES;
    const char *problem = check_options(client, command, processes);
    if (!problem && client->target.kind == EW__WHERE_LISTEN && !client->target.address.loopback) {
        bool allowed = options && options->allow_remote;
        bool asks = options && (options->no_token || (options->token && *options->token));
        *ret_problem = allowed
                           ? "that address can be reached from other machines: it wants a token that runtimes show, "
                             "or no_token"
                           : "that address can be reached from other machines; allow_remote permits it";
        if (!allowed || !asks)
            return EW_EACCESS;
    }
    if (!problem && options)
        problem = ew__environment_problem(options->environment);
    if (!problem && options && options->token && *options->token)
        problem = ew__token_read(options->token, client->token);
    if (problem)
        *ret_problem = problem;
    return problem ? EW_EINVAL : EW_OK;
}

ew_err ew__client_check(const char *target, const ew_client_options *options, ew__target *ret,
                        const char **ret_problem) {
    ew_client client = {.processes = 0};
    ew_err err = read_target(&client, target, options, ret_problem);
    *ret = client.target;
    return err;
}

/*
 * Schemes of targets that are reached over TCP, for messages. tls: the first three with TLS; else those without it and
 * without HTTP, the last one first.
 */
static void list_tcp_schemes(bool tls, char *out, size_t size) {
    const char *items[8];
    const ew_scheme *scheme;
    size_t n = 0, most = tls ? 3 : 8;
    for (size_t i = 0; (scheme = ew_scheme_at(i)) != NULL && n < most; i++) {
        if (scheme->reach != EW_REACH_TCP || scheme->tls != tls || (!tls && scheme->http))
            continue;
        memmove(items + 1, items, (tls ? 0 : n) * sizeof *items);
        items[tls ? n : 0] = scheme->text;
        n++;
    }
    ew__enumerate(out, size, items, n, tls ? ", " : " or ");
}

/* Certificates: those that it shows, and those that it trusts. */
static ew_err open_tls(ew_client *client, const ew_client_options *options, const char **ret_problem) {
    static _Thread_local char problem[EW__TLS_PROBLEM];
    static const ew_tls_options none;
    const ew_tls_options *tls = options ? &options->tls : &none;
    bool listens = client->target.kind == EW__WHERE_LISTEN;
    if (!client->target.scheme->tls && ew__tls_is_set(tls)) {
        char schemes[128];
        list_tcp_schemes(true, schemes, sizeof schemes);
        (void)snprintf(problem, sizeof problem, "this target speaks no TLS; those that do are %s and so on", schemes);
        *ret_problem = problem;
        return EW_EINVAL;
    }
    if (!client->target.scheme->tls)
        return EW_OK;
    ew_err err =
        ew__tls_context_new(client->env, listens ? EW__TLS_LISTENS : EW__TLS_DIALS, tls, &client->tls, problem);
    if (err != EW_OK)
        *ret_problem = problem;
    return err;
}

/* The target and what it needs. */
static ew_err configure(ew_client *client, const char *target, const ew_client_options *options,
                        const char **ret_problem) {
    const char *problem = NULL;
    ew_err err = read_target(client, target, options, &problem);
    if (err == EW_OK)
        err = open_tls(client, options, &problem);
    if (err == EW_OK)
        err = ew__client_blobs_open(client, options, &problem);
    if (ret_problem && problem)
        *ret_problem = problem;
    if (err == EW_OK && options && options->command && options->command[0])
        err = copy_command(client, options->command);
    if (err == EW_OK && client->command)
        err = copy_surroundings(client, options);
    if (err == EW_OK && options && options->telemetry && !(client->telemetry = copy_own(client, options->telemetry)))
        err = EW_ENOMEM;
    return err;
}

static void init_site(ew_client *client) {
    ew__target *target = &client->target;
    client->site = (ew__site){.port = target->port,
                              .secure = target->scheme->tls,
                              .actions = client->actions,
                              .authority = ew_str_from(target->authority),
                              .path = ew_str_from(target->kind == EW__WHERE_TCP ? target->path : ""),
                              .options = target->options,
                              .allow_hosts = client->own_hosts,
                              .token = ew_str_from(target->kind != EW__WHERE_CHILD ? client->token : ""),
                              .blobs = client->blobs.store,
                              .blob_api = ew_str_from(client->blobs.url),
                              .telemetry = ew_str_from(client->telemetry ? client->telemetry : "")};
    list_tcp_schemes(false, client->plain, sizeof client->plain);
    client->where = (ew__where){.kind = target->kind,
                                .host = target->host,
                                .port = target->port,
                                .path = target->path,
                                .tls = client->tls,
                                .tls_http = target->scheme->http,
                                .tls_plain = client->plain,
                                .argv = (const char *const *)client->command,
                                .inherited = client->inherited,
                                .vars = target->kind == EW__WHERE_LISTEN ? client->vars : NULL,
                                .rules = client->rules.folder ? &client->rules : NULL,
                                .farewell_ms = client->telemetry ? FAREWELL_MS : 0};
}

/* "NAME=VALUE" for the environment of the command, if the wire has a variable for this. */
static ew_err add_var(ew_client *client, ew_start_role role, const char *value) {
    const ew_start_word *word = ew__descriptor_start(client->target.wire->about, role, false);
    if (!word)
        return EW_OK;
    size_t size = strlen(word->name) + strlen(value) + 2;
    char *text = ew__arena_alloc(&client->own, size);
    if (!text)
        return EW_ENOMEM;
    (void)snprintf(text, size, "%s=%s", word->name, value);
    client->vars[client->n_vars++] = text;
    return EW_OK;
}

/* The URL of our listener. A wildcard is not an address that can be dialled. The environment is seen by its user only. */
static void write_manager_url(const ew_client *client, char *out, size_t size) {
    const ew__address *address = &client->target.address;
    const char *text = address->text, *scheme = client->target.scheme->tls ? "wss" : "ws";
    const char *query = client->token[0] ? "/?token=" : "";
    if (strncmp(text, "0.0.0.0:", 8) == 0 || strncmp(text, "[::]:", 5) == 0)
        (void)snprintf(out, size, "%s://%s:%u%s%s", scheme, text[0] == '[' ? "[::1]" : "127.0.0.1", address->port,
                       query, client->token);
    else
        (void)snprintf(out, size, "%s://%s%s%s", scheme, text, query, client->token);
}

/* What makes a program dial us that we start. */
static ew_err set_vars(ew_client *client) {
    char url[192 + EW__OWN_TOKEN_SIZE];
    const char *const *constant = client->target.wire->about->start_variables;
    write_manager_url(client, url, sizeof url);
    ew_err err = add_var(client, EW_START_CONNECT, url);
    for (; constant && *constant && client->n_vars < VARS_MAX - 3; constant++)
        client->vars[client->n_vars++] = *constant;
    if (err == EW_OK && client->telemetry)
        err = add_var(client, EW_START_TELEMETRY, client->telemetry);
    if (err == EW_OK && client->telemetry)
        err = add_var(client, EW_START_REALTIME, "true");
    return err;
}

static const char *listen_problem(ew_err err) {
    return err == EW_EADDRINUSE ? "cannot listen there: the address is in use; is another manager running?"
           : err == EW_EACCESS  ? "cannot listen there: permission denied"
                                : "cannot listen there";
}

/* Those who dial us show our token. */
static ew_err raise_gate(ew_client *client) {
    ew__tokens *tokens = NULL;
    ew_err err = ew__tokens_one(client->env, ew_str_from(client->token), &tokens);
    if (err != EW_OK)
        return err;
    ew__clients_init(&client->clients, client->env);
    ew__access_init(&client->access, client->env, &client->clients);
    client->access.required = true;
    ew__access_set(&client->access, tokens);
    ew__gate_init(&client->gate, &client->access);
    client->calls.gate = &client->gate;
    return EW_OK;
}

/* A target that is listened for has no other beginning. */
static ew_err listen_for(ew_client *client, const ew__pool_config *config, const char **ret_problem) {
    ew__target *target = &client->target;
    if (!target->address.loopback) { /* of the others, HTTP knows the names itself */
        size_t n = strcspn(target->address.text + 1, "]:") + 1;
        bool v6 = target->address.text[0] == '[';
        (void)snprintf(target->host, sizeof target->host, "%.*s",
                       (int)(v6 ? strcspn(target->address.text, "]") + 1 : n), target->address.text);
        client->own_hosts[0] = target->host;
    }
    ew_err err = client->token[0] ? raise_gate(client) : EW_OK;
    if (err != EW_OK)
        return err;
    err = ew__pool_listen(config, &target->address, ew__wire_carrier(), &client->pool);
    if (err == EW_OK)
        err = set_vars(client);
    else if (ret_problem)
        *ret_problem = listen_problem(err);
    return err;
}

static ew_err manage_processes(ew_client *client, const ew__pool_config *config) {
    const ew__descriptor *about = client->target.wire->about;
    const ew_start_word *option = ew__descriptor_start(about, EW_START_LISTEN, true);
    const ew_start_word *variable = ew__descriptor_start(about, EW_START_LISTEN, false);
    if (!option || !variable)
        return EW_EUNSUPPORTED;
    return ew__pool_manage(config, client->processes, option->name, variable->name, &client->pool);
}

static ew_err make_pool(ew_client *client, const char **ret_problem) {
    ew__pool_config config = {.loop = &client->loop,
                              .wire = client->target.wire,
                              .site = &client->site,
                              .where = &client->where,
                              .fixed = client->connections,
                              .ud = client};
    if (client->processes > 0)
        return manage_processes(client, &config);
    if (client->announces)
        return ew__pool_announce(&config, &client->pool);
    if (client->target.kind == EW__WHERE_LISTEN)
        return listen_for(client, &config, ret_problem);
    return ew__pool_dial(&config, &client->pool);
}

/* A client with its budget and limits, nothing else; NULL: out of memory. */
static ew_client *alloc_client(const ew_client_options *options) {
    ew_limits limits = {.calls = 0};
    if (options)
        limits = options->limits;
    ew_limits_complete(&limits);
    ew__budget *budget = ew__budget_new(options && options->env ? options->env : ew_env_default(), limits.memory_bytes);
    ew_client *client = budget ? ew__zalloc(&budget->env, sizeof *client) : NULL;
    if (client) {
        client->limits = limits;
        client->budget = budget;
        client->env = &budget->env;
        ew__arena_init(&client->own, client->env, NULL, 0);
    } else if (budget) {
        ew__budget_release(budget);
    }
    return client;
}

ew_err ew__client_new(const char *target, const ew_client_options *options, ew__actions *actions,
                      ew_client **ret_client, const char **ret_problem) {
    ew_client *client = alloc_client(options);
    if (!client) {
        if (actions)
            ew__actions_unref(actions);
        return EW_ENOMEM;
    }
    client->actions = actions;
    client->host = options && options->loop;
    ew_err err = configure(client, target, options, ret_problem);
    if (err == EW_OK)
        err = ew__loop_init(&client->loop, client->env, &client->limits, options ? options->loop : NULL);
    if (err != EW_OK) {
        free_client(client);
        return err;
    }
    ew__call_context_init(&client->calls, &client->loop.executor);
    client->loop.executor.budget = client->budget;
    if (options && options->trace_frames) {
        ew__tapping_init(&client->tapping, options->trace_frames, options->trace_ud, options->trace_bytes);
        client->loop.tapping = &client->tapping;
    }
    ew__client_blobs_listen(client);
    init_site(client);
    err = make_pool(client, ret_problem);
    if (err == EW_OK && client->host)
        ew__loop_adopt_thread(&client->loop);
    else if (err == EW_OK && !ew__thread_start(&client->thread, thread_main, client))
        err = EW_EIO;
    if (err != EW_OK) {
        close_and_discard(client);
        return err;
    }
    *ret_client = client;
    return EW_OK;
}

static void close_task(ew__task *task) {
    ew_client *client = ew__container_of(task, ew_client, close_task);
    ew__pool_close(client->pool, on_pool_closed);
}

ew_client *ew__client_free(ew_client *client) {
    if (!client)
        return NULL;
    atomic_store(&client->closing, true);
    client->close_task.fn = close_task;
    ew__executor_post(&client->loop.executor, &client->close_task);
    if (client->host) {
        while (!client->loop_closed) /* on the host's thread, not in a callback: its loop is ours to turn */
            ew__loop_turn(&client->loop, true);
    } else {
        pthread_join(client->thread, NULL);
    }
    discard(client);
    return NULL;
}

static void warm_task(ew__task *task) {
    ew_client *client = ew__container_of(task, ew_client, warm_task);
    ew__pool_warm(client->pool);
}

void ew__client_warm(ew_client *client) {
    client->warm_task.fn = warm_task;
    ew__executor_post(&client->loop.executor, &client->warm_task);
}
