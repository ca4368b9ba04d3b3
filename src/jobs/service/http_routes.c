/*
 * jobs/service/http_routes.c: the requests under /jobs: enqueue, show, stream, cancel, list. Those that wait for a job
 * are in http.c. docs/jobs.md describes the interface.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "jobs/service/http.h"
#include "base/parse.h"
#include "base/when.h"
#include <stdio.h>

#define NONE ((ew_str){NULL, 0})
#define PATH "/jobs"
#define FIELD "everywire-job-" /* options as header fields */
#define STREAM "/stream"
#define WAIT_MAX_MS ((uint64_t)3600 * 1000)
#define OPTION_MAX 600 /* bytes of an option */

/* ---- which requests ---- */

bool ew__jobs_http_takes(const ew__site *site, ew__http_method method, ew_str path) {
    bool known = method == EW__HTTP_GET || method == EW__HTTP_POST || method == EW__HTTP_DELETE;
    (void)site;
    return known && (ew__str_is(path, EW_STR(PATH)) || ew__str_has_prefix(path, EW_STR(PATH "/")));
}

bool ew__jobs_http_wants(ew_str name) {
    const ew_str prefix = EW_STR(FIELD);
    return (name.len > prefix.len && ew__str_is_nocase(ew__str(name.ptr, prefix.len), prefix)) ||
           ew__str_is_nocase(name, EW_STR("last-event-id")) || ew__str_is_nocase(name, EW_STR("traceparent")) ||
           ew__str_is_nocase(name, EW_STR("tracestate"));
}

static ew_str field(const ew__exchange *exchange, ew_str name) {
    for (uint32_t i = 0; i < exchange->n_fields; i++)
        if (ew__str_is_nocase(exchange->fields[i].name, name))
            return exchange->fields[i].value;
    return NONE;
}

/* ---- options: query parameters, or header fields ---- */

static const char *const enqueue_options[] = {
    "queue",  "id",         "delay",    "run_at",          "max_retries", "timeout",           "result_ttl",
    "unique", "unique_ttl", "debounce", "debounce_window", "rate_limit",  "rate_limit_window", NULL};
static const char *const list_options[] = {"status", "queue", "function", "limit", "offset", NULL};
static const char *const show_options[] = {"wait", NULL};
static const char *const no_options[] = {NULL};

static int hex(char c) {
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* A value of a query, in the arena where it has escapes. ptr NULL: it is not well written, or there is no memory. */
static ew_str decode(ew__arena *arena, ew_str raw) {
    char *text = ew__arena_alloc(arena, raw.len + 1);
    size_t n = 0;
    for (size_t i = 0; text && i < raw.len; i++) {
        char c = raw.ptr[i];
        if (c == '%') {
            int high = i + 2 < raw.len + 0 ? hex(raw.ptr[i + 1]) : -1, low = high < 0 ? -1 : hex(raw.ptr[i + 2]);
            if (low < 0)
                return NONE;
            c = (char)(high * 16 + low);
            i += 2;
        }
        text[n++] = c;
    }
    return ew__str(text, text ? n : 0);
}

/* Reads options, and keeps the first thing that is wrong. */
typedef struct reader {
    ew__jobs_exchange *self;
    bool bad;
    char problem[160];
} reader;

static void complain(reader *r, const char *name, const char *what) {
    if (!r->bad)
        (void)snprintf(r->problem, sizeof r->problem, "%.60s: %s", name, what);
    r->bad = true;
}

/* Empty: it was not given. */
static ew_str option(reader *r, const char *name) {
    const ew__exchange *exchange = r->self->exchange;
    char header[64];
    uint32_t count = 0;
    ew_str raw = exchange->query.len ? ew__http_query(exchange->query, ew_str_from(name), &count) : NONE;
    if (count > 1 || raw.len > OPTION_MAX) {
        complain(r, name, count > 1 ? "it is there twice" : "it is too long");
        return NONE;
    }
    if (count == 1) {
        ew_str value = decode(&r->self->op.memory, raw);
        if (!value.ptr)
            complain(r, name, "it is not well written");
        return value;
    }
    (void)snprintf(header, sizeof header, FIELD "%s", name);
    for (char *c = header; *c; c++)
        *c = *c == '_' ? '-' : *c;
    return field(exchange, ew_str_from(header));
}

static uint64_t duration(reader *r, const char *name) {
    ew_str text = option(r, name);
    uint64_t ms = 0;
    if (text.len && ew__duration_parse(text, &ms) != EW_OK)
        complain(r, name, "a duration is 500ms, 2s, 5m, 1h or a number of seconds");
    return ms;
}

static uint64_t number(reader *r, const char *name, uint64_t most) {
    ew_str text = option(r, name);
    uint64_t n = 0;
    if (text.len && (!ew__u64_parse(text, &n) || n > most))
        complain(r, name, "it must be a number, and not too large");
    return n;
}

/* Milliseconds since 1970, or RFC 3339. */
static int64_t moment(reader *r, const char *name) {
    ew_str text = option(r, name);
    uint64_t number_ms = 0;
    int64_t ms = 0;
    if (text.len == 0)
        return 0;
    if (ew__u64_parse(text, &number_ms) && number_ms < INT64_MAX)
        return (int64_t)number_ms;
    if (!ew__when_parse(text, &ms))
        complain(r, name, "a time is 2026-03-01T10:00:00Z, or milliseconds since 1970");
    return ms;
}

/* A mistyped option must not be passed over. */
static void check_names(reader *r, const char *const *known) {
    ew_str rest = r->self->exchange->query;
    while (rest.len && !r->bad) {
        const char *amp = memchr(rest.ptr, '&', rest.len);
        ew_str pair = ew__str(rest.ptr, amp ? (size_t)(amp - rest.ptr) : rest.len);
        const char *equals = pair.len ? memchr(pair.ptr, '=', pair.len) : NULL;
        ew_str name = ew__str(pair.ptr, equals ? (size_t)(equals - pair.ptr) : pair.len);
        bool found = name.len == 0;
        for (size_t i = 0; known[i] && !found; i++)
            found = ew__str_is(name, ew_str_from(known[i]));
        char text[64];
        (void)snprintf(text, sizeof text, "%.*s", (int)(name.len < 60 ? name.len : 60), name.ptr);
        if (!found)
            complain(r, text, "there is no such option here");
        rest = ew__str(rest.ptr + pair.len + (amp != NULL), rest.len - pair.len - (amp != NULL));
    }
}

/* Returns true if it has answered with the problem (which frees the exchange). */
static bool refused(reader *r) {
    if (r->bad)
        ew__jobs_exchange_fail(r->self, 400, NONE, r->problem);
    return r->bad;
}

/* ---- POST /jobs/<action> ---- */

static ew_err add_path(ew__buf *out, ew_str id) {
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~:@!$'()*,;=";
    for (size_t i = 0; i < id.len; i++) {
        if (id.ptr[i] && strchr(plain, id.ptr[i]))
            (void)ew__buf_char(out, id.ptr[i]);
        else
            (void)ew__buf_printf(out, "%%%02X", (unsigned)(unsigned char)id.ptr[i]);
    }
    return out->err;
}

static void on_enqueued(ew__jobs_exchange *self) {
    const ew__op_enqueue *enqueue = &self->op.u.enqueue;
    if (self->op.err != EW_OK) {
        ew__jobs_exchange_fail_op(self);
        return;
    }
    if (enqueue->ret == EW__ENQUEUED_DUPLICATE) {
        ew__jobs_exchange_fail(self, 409, NONE, "there is a job of this id already");
        return;
    }
    bool limited = enqueue->ret == EW__ENQUEUED_LIMITED;
    ew__buf out, fields;
    ew__buf_init(&out, self->http->requests.env, SIZE_MAX / 2);
    ew__buf_init(&fields, self->http->requests.env, SIZE_MAX / 2);
    ew__jobs_write_enqueued(&self->op, &out);
    if (limited) {
        (void)ew__buf_printf(&fields, "Retry-After: %lld\r\n", (long long)((enqueue->key_ttl_ms + 999) / 1000));
    } else {
        (void)ew__buf_cstr(&fields, "Location: " PATH "/");
        (void)add_path(&fields, enqueue->ret_id.len ? enqueue->ret_id : enqueue->job.id);
        (void)ew__buf_cstr(&fields, "\r\n");
    }
    ew__jobs_exchange_answer(self, limited ? 429 : 202, fields.err ? NONE : ew__buf_view(&fields), &out);
    ew__buf_done(&fields);
    ew__buf_done(&out);
}

/* Where the request came from goes on in the job's trace. */
static ew_err read_trace(ew__jobs_exchange *self, ew_str *ret) {
    const ew__exchange *exchange = self->exchange;
    ew_str parent = field(exchange, EW_STR("traceparent"));
    *ret = NONE;
    if (!parent.len || !exchange->call->trace.has_parent) /* none, or not one that is understood */
        return EW_OK;
    ew__buf out;
    ew__buf_init(&out, self->http->requests.env, SIZE_MAX / 2);
    (void)ew__json_format(&out, "{\"traceparent\":%q", parent);
    if (exchange->call->tracestate.len)
        (void)ew__json_format(&out, ",\"tracestate\":%q", exchange->call->tracestate);
    (void)ew__buf_char(&out, '}');
    ew_err err = out.err ? EW_ENOMEM : ew__arena_str(&self->op.memory, ew__buf_view(&out), ret);
    ew__buf_done(&out);
    return err;
}

/*
 * "/jobs/flow/echo" is the key "/flow/echo", or a name with a slash if the app has that; "/jobs/echo" is a name.
 * Whether the app has it.
 */
static bool read_function(const ew__exchange *exchange, ew_str *ret, ew__action **ret_action) {
    const ew__actions *actions = exchange->conn->site->actions;
    const size_t base = sizeof PATH - 1;
    ew_str key = ew__str(exchange->path.ptr + base, exchange->path.len - base);
    ew_str name = key.len ? ew__str(key.ptr + 1, key.len - 1) : key;
    bool is_key = name.len && memchr(name.ptr, '/', name.len);
    *ret = is_key ? key : name;
    if (ew__actions_find(actions, *ret, ret_action) == EW_OK)
        return true;
    if (!is_key || ew__actions_find(actions, name, ret_action) != EW_OK)
        return false;
    *ret = name;
    return true;
}

/* One key of three, with its window. */
static void read_dedup(reader *r, ew_job_options *options) {
    options->unique_key = option(r, "unique");
    options->unique_ttl_ms = duration(r, "unique_ttl");
    options->debounce_key = option(r, "debounce");
    options->debounce_ms = duration(r, "debounce_window");
    options->rate_limit_key = option(r, "rate_limit");
    options->rate_limit_ms = duration(r, "rate_limit_window");
}

/* What the action would refuse when its time has come is refused now. */
static bool unfit(ew__jobs_exchange *self, const ew__action *action, ew_str params) {
    const ew_env *env = self->http->requests.env;
    ew__schema_report report;
    ew_fault fault;
    if (!action->contract.input)
        return false;
    bool fits = ew__contract_fits(env, action->contract.input, EW__CONTRACT_INPUT, params, &report, &fault);
    if (!fits) {
        ew__buf out;
        ew__buf_init(&out, env, SIZE_MAX / 2);
        (void)ew__json_format(&out, "{\"code\":%d,\"status\":%Q,\"message\":%q,\"details\":%j}",
                              ew_status_http(fault.status), ew_status_name(fault.status), fault.message, fault.details);
        ew__jobs_exchange_answer(self, ew_status_http(fault.status), NONE, &out);
        ew__buf_done(&out);
    }
    ew__schema_report_done(&report);
    return !fits;
}

static void enqueue(ew__jobs_exchange *self, ew_str body) {
    reader r = {.self = self};
    check_names(&r, enqueue_options);
    unsigned max_retries = (unsigned)number(&r, "max_retries", UINT32_MAX);
    uint64_t ttl = duration(&r, "result_ttl");
    ew_job_options options = {.params = body,
                              .queue = option(&r, "queue"),
                              .id = option(&r, "id"),
                              .delay_ms = duration(&r, "delay"),
                              .run_at_ms = moment(&r, "run_at"),
                              .timeout_ms = duration(&r, "timeout")};
    if (option(&r, "max_retries").len)
        options.max_retries = &max_retries;
    if (option(&r, "result_ttl").len)
        options.result_ttl_ms = &ttl;
    read_dedup(&r, &options);
    ew__action *action = NULL;
    bool known = read_function(self->exchange, &options.function, &action);
    if (refused(&r))
        return;
    if (body.len > ew__payload_bytes(self->exchange->conn->executor->limits)) {
        ew__jobs_exchange_fail(self, 413, NONE, "the input is larger than a payload may be (frame_bytes)");
        return;
    }
    ew_str queue = options.queue.len ? ew__queue_name(options.queue) : self->http->jobs->queue;
    bool own = self->http->is_local(self->http, queue);
    if (!known && own) {
        ew__jobs_exchange_fail(self, 404, NONE, "no such action; GET /api/actions lists them");
        return;
    }
    if (known && own && unfit(self, action, body))
        return;
    ew_err err = read_trace(self, &options.trace);
    if (err == EW_OK)
        err = ew__jobs_prepare(self->http->jobs, &options, &self->op, r.problem, sizeof r.problem);
    if (err == EW_OK)
        ew__jobs_exchange_submit(self, on_enqueued);
    else
        ew__jobs_exchange_fail(self, err == EW_EINVAL ? 400 : 503, NONE,
                               err == EW_EINVAL ? r.problem : ew_err_text(err));
}

/* ---- GET /jobs/<id>, GET /jobs/<id>/stream ---- */

/* Answers with what `write` makes of the operation, or with its error. */
static void answer_op(ew__jobs_exchange *self, int status, void (*write)(const ew__store_request *op, ew__buf *out)) {
    ew__buf out;
    if (self->op.err != EW_OK) {
        ew__jobs_exchange_fail_op(self);
        return;
    }
    ew__buf_init(&out, self->http->requests.env, SIZE_MAX / 2);
    write(&self->op, &out);
    ew__jobs_exchange_answer(self, status, NONE, &out);
    ew__buf_done(&out);
}

static void write_job(const ew__store_request *op, ew__buf *out) { ew__job_write(&op->u.get.ret, out); }

static void on_shown(ew__jobs_exchange *self) { answer_op(self, 200, write_job); }

static void show(ew__jobs_exchange *self) {
    reader r = {.self = self};
    check_names(&r, show_options);
    uint64_t ms = duration(&r, "wait");
    if (refused(&r))
        return;
    if (ms > 0) {
        ew__executor *executor = self->exchange->conn->executor;
        self->until = executor->now + EW__MS(ms < WAIT_MAX_MS ? ms : WAIT_MAX_MS);
        ew__jobs_exchange_wait(self);
        return;
    }
    self->op.u.get.id = ew__str(self->id, self->id_len);
    ew__jobs_exchange_submit(self, on_shown);
}

static void stream(ew__jobs_exchange *self) {
    reader r = {.self = self};
    ew_str last = field(self->exchange, EW_STR("last-event-id"));
    check_names(&r, no_options);
    if (!r.bad &&
        ew__str_is(last, EW_STR(EW__JOB_STREAM_END))) { /* the client has everything: it must not come again */
        ew__jobs_exchange_answer_empty(self, 204);
        return;
    }
    if (last.len && !ew__u64_parse(last, &self->after))
        complain(&r, "Last-Event-ID", "it must be the number of an event");
    if (refused(&r))
        return;
    self->stream = true;
    ew__jobs_exchange_wait(self);
}

/* ---- DELETE /jobs/<id> ---- */

static void on_cancelled(ew__jobs_exchange *self) {
    ew__cancelled how = self->op.u.cancel.ret;
    int status = how == EW__CANCELLED_NOW ? 200 : how == EW__CANCELLED_ASKED ? 202 : 409;
    answer_op(self, status, ew__jobs_write_cancelled);
}

static void cancel(ew__jobs_exchange *self) {
    const ew_env *env = self->http->requests.env;
    reader r = {.self = self};
    check_names(&r, no_options);
    if (refused(&r))
        return;
    self->op.kind = EW__OP_CANCEL;
    self->op.u.cancel = (ew__op_cancel){.id = ew__str(self->id, self->id_len), .now = (int64_t)env->wall_ms(env->ud)};
    ew__jobs_exchange_submit(self, on_cancelled);
}

/* ---- GET /jobs ---- */

static void on_listed(ew__jobs_exchange *self) { answer_op(self, 200, ew__jobs_write_list); }

static void list(ew__jobs_exchange *self) {
    reader r = {.self = self};
    check_names(&r, list_options);
    ew_jobs_filter filter = {.status = option(&r, "status"),
                             .queue = option(&r, "queue"),
                             .function = option(&r, "function"),
                             .limit = (unsigned)number(&r, "limit", EW__JOBS_LIMIT_MAX),
                             .offset = (unsigned)number(&r, "offset", INT32_MAX)};
    self->op.kind = EW__OP_LIST;
    if (!r.bad)
        r.bad = ew__jobs_prepare_list(&filter, &self->op, r.problem, sizeof r.problem) != EW_OK;
    if (!refused(&r))
        ew__jobs_exchange_submit(self, on_listed);
}

/* ---- all requests ---- */

static void refuse_all(ew__exchange *exchange) {
    ew__rpc_out message;
    ew__rpc_out_begin(&message, EW_STR("{\"code\":503,\"status\":\"UNAVAILABLE\","
                                       "\"message\":\"the server is going down, or out of memory\"}"));
    exchange->ops->answer(exchange, 503, &message, NULL);
}

static bool cut_end(ew_str *text, ew_str end) {
    if (text->len <= end.len || memcmp(text->ptr + text->len - end.len, end.ptr, end.len) != 0)
        return false;
    text->len -= end.len;
    return true;
}

void ew__jobs_http_request(ew__exchange *exchange, ew_str body) {
    const size_t base = sizeof PATH - 1;
    ew_str rest = ew__str(exchange->path.ptr + base, exchange->path.len - base); /* "", or "/..." */
    ew__jobs_exchange *self = exchange->conn->site->draining ? NULL : ew__jobs_exchange_new(exchange, EW__OP_GET);
    ew__http_method method = (ew__http_method)exchange->method;
    if (!self) {
        refuse_all(exchange);
        return;
    }
    if (rest.len <= 1) {
        if (method == EW__HTTP_GET)
            list(self);
        else
            ew__jobs_exchange_fail(self, 405, EW_STR("Allow: GET\r\n"), "an action is enqueued by POST /jobs/<name>");
        return;
    }
    if (method == EW__HTTP_POST) {
        enqueue(self, body);
        return;
    }
    ew_str id = ew__str(rest.ptr + 1, rest.len - 1);
    bool streams = method == EW__HTTP_GET && cut_end(&id, EW_STR(STREAM));
    if (!ew__jobs_exchange_name(self, id))
        ew__jobs_exchange_fail(self, 404, NONE, "there is no such job");
    else if (method == EW__HTTP_DELETE)
        cancel(self);
    else if (streams)
        stream(self);
    else
        show(self);
}
