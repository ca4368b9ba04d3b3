/*
 * wire/rrq/codec.c: see codec.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "wire/rrq/codec.h"
#include "json/sink.h"
#include "wire/hops.h"
#include "wire/put.h"
#include <math.h>

#define NONE ((ew_str){NULL, 0})
#define MOST_CONSTANT 512 /* bytes of a request that are the same in each, its times and its numbers */
#define TEXT(text)                                                                                                     \
    { text, sizeof(text) - 1 } /* EW_STR in a constant table */
#define N_OF(array) (sizeof(array) / sizeof *(array))
#define MOST_RETRY_S 1e10 /* three centuries: what a runner asks beyond that is cut */

static bool is_string(ew_str value) { return value.len > 0 && value.ptr[0] == '"'; }
static bool is_object(ew_str value) { return value.len > 0 && value.ptr[0] == '{'; }
static bool is_absent(ew_str value) { return value.len == 0 || value.ptr[0] == 'n'; }

static bool is_strings(ew_str object) {
    ew_json_iter it = {.offset_ = 0};
    while (ew_json_next(object, &it))
        if (!is_string(it.value))
            return false;
    return is_object(object);
}

/* A string without escapes; others are nobody's. */
static ew_str plain(ew_str string) {
    return is_string(string) && !memchr(string.ptr, '\\', string.len) ? ew__str(string.ptr + 1, string.len - 2) : NONE;
}

/* ---- the envelope ---- */

static const ew_str kinds[] = {
    [EW__RRQ_REQUEST] = {"request", 7}, [EW__RRQ_RESPONSE] = {"response", 8}, [EW__RRQ_CANCEL] = {"cancel", 6}};

static ew__rrq_kind kind_of(ew_str type) {
    char buf[16];
    ew_str name = ew__rpc_text(type, buf, sizeof buf);
    for (unsigned i = EW__RRQ_REQUEST; i <= EW__RRQ_CANCEL; i++)
        if (ew__str_is(name, kinds[i]))
            return (ew__rrq_kind)i;
    return EW__RRQ_NONE;
}

const char ew__rrq_too_deep[] = "nested too deep";

const char *ew__rrq_read(ew_str text, ew__rrq_message *ret) {
    enum { TYPE, PAYLOAD, N };
    static const ew_str names[N] = {{"type", 4}, {"payload", 7}};
    ew_str value[N];
    ret->payload = NONE;
    ew_err err = ew__json_parse(&ret->doc, text);
    if (err != EW_OK)
        return err == EW_ELIMIT ? ew__rrq_too_deep : "not JSON";
    if (ret->doc.type != EW_JSON_OBJECT)
        return "a message is an object";
    if (!ew__json_members(&ret->doc, ret->doc.root, names, N, value))
        return "a member is repeated";
    ret->kind = is_string(value[TYPE]) ? kind_of(value[TYPE]) : EW__RRQ_NONE;
    ret->payload = value[PAYLOAD];
    if (ret->kind == EW__RRQ_NONE)
        return "type must be request, response or cancel";
    return is_object(ret->payload) ? NULL : "payload must be an object";
}

/* ---- requests ---- */

static ew_str id_or_none(ew_str value) { return is_string(value) && value.len <= EW__RRQ_ID_MAX ? value : NONE; }

void ew__rrq_read_ids(const ew__rrq_message *message, ew__rrq_ids *ret) {
    static const ew_str names[] = {{"job_id", 6}, {"request_id", 10}};
    ew_str value[2];
    bool clean = ew__json_members(&message->doc, message->payload, names, 2, value);
    ret->job = clean ? id_or_none(value[0]) : NONE;
    ret->request = clean ? id_or_none(value[1]) : NONE;
}

enum { SKIM_TYPE, SKIM_REQUEST, SKIM_JOB, N_SKIM };

void ew__rrq_skim_init(ew__skim *skim) {
    static const ew__skim_name wanted[N_SKIM] = {{NULL, "type"}, {"payload", "request_id"}, {"payload", "job_id"}};
    ew__skim_init(skim, wanted, N_SKIM);
}

ew__rrq_kind ew__rrq_read_skim(const ew__skim *skim, ew__rrq_ids *ret) {
    ret->request = id_or_none(ew__skim_value(skim, SKIM_REQUEST));
    ret->job = id_or_none(ew__skim_value(skim, SKIM_JOB));
    return kind_of(ew__skim_value(skim, SKIM_TYPE));
}

/* Absent is the version that there is. Any other string is a version that we do not know. */
static bool read_version(ew_str value, bool *ret_foreign) {
    *ret_foreign = !is_absent(value) && !ew__str_is(value, EW_STR("\"2\""));
    return is_absent(value) || is_string(value);
}

static bool read_time(ew_str value, int64_t *ret_ms) {
    return is_string(value) && ew__when_parse(ew__str(value.ptr + 1, value.len - 2), ret_ms);
}

static bool read_attempt(ew_str value, uint32_t *ret) {
    uint64_t number;
    if (value.len == 1 && value.ptr[0] >= '0' && value.ptr[0] <= '9') {
        *ret = (uint32_t)(value.ptr[0] - '0');
        return true;
    }
    if (ew_json_uint64(value, &number) != EW_OK || number > UINT32_MAX)
        return false;
    *ret = (uint32_t)number;
    return true;
}

static const ew_str context_names[EW__RRQ_N_CONTEXT] = {
    {"job_id", 6},   {"attempt", 7},        {"enqueue_time", 12},        {"queue_name", 10},
    {"deadline", 8}, {"trace_context", 13}, {"correlation_context", 19}, {"worker_id", 9}};

static bool find_context(ew_str context, ew_str value[EW__RRQ_N_CONTEXT]) {
    bool clean = true, repeated;
    for (size_t i = 0; i < EW__RRQ_N_CONTEXT; i++) {
        value[i] = ew__json_find_in(context, context_names[i], &repeated);
        clean = clean && !repeated;
    }
    return clean;
}

static const char *read_context(ew__rrq_request *ret) {
    ew_str value[EW__RRQ_N_CONTEXT];
    int64_t enqueued;
    if (!find_context(ret->context, value))
        return "a member of context is repeated";
    if (!is_string(value[EW__RRQ_JOB]))
        return "context.job_id must be a string";
    if (!read_attempt(value[EW__RRQ_ATTEMPT], &ret->attempt))
        return "context.attempt must be an integer from 0 to 4294967295";
    if (!read_time(value[EW__RRQ_ENQUEUED], &enqueued))
        return "context.enqueue_time must be an RFC 3339 time";
    if (!is_string(value[EW__RRQ_QUEUE]))
        return "context.queue_name must be a string";
    ret->has_deadline = !is_absent(value[EW__RRQ_DEADLINE]);
    if (ret->has_deadline && !read_time(value[EW__RRQ_DEADLINE], &ret->deadline_ms))
        return "context.deadline must be an RFC 3339 time";
    if (!is_absent(value[EW__RRQ_TRACE])) {
        if (!is_object(value[EW__RRQ_TRACE]))
            return "context.trace_context must be an object";
        ret->trace = value[EW__RRQ_TRACE];
        ret->hops = ew__hops_read(plain(ew_json_member(ret->trace, EW_STR(EW__RRQ_HOPS))));
    }
    if (!is_absent(value[EW__RRQ_CORRELATION])) {
        if (!is_strings(value[EW__RRQ_CORRELATION]))
            return "context.correlation_context must be an object of strings";
        ret->labels = value[EW__RRQ_CORRELATION];
    }
    return is_absent(value[EW__RRQ_WORKER]) || is_string(value[EW__RRQ_WORKER]) ? NULL
                                                                                : "context.worker_id must be a string";
}

const char *ew__rrq_read_request(const ew__rrq_message *message, ew__rrq_request *ret) {
    enum { VERSION, REQUEST_ID, JOB_ID, FUNCTION, PARAMS, CONTEXT, N };
    static const ew_str names[N] = {{"protocol_version", 16}, {"request_id", 10}, {"job_id", 6},
                                    {"function_name", 13},    {"params", 6},      {"context", 7}};
    ew_str value[N];
    memset(ret, 0, sizeof *ret);
    bool clean = ew__json_members(&message->doc, message->payload, names, N, value);
    ret->ids.request = clean ? id_or_none(value[REQUEST_ID]) : NONE;
    ret->ids.job = clean ? id_or_none(value[JOB_ID]) : NONE;
    if (!clean) {
        ew__rrq_read_ids(message, &ret->ids); /* perhaps it is another member that is repeated */
        return "a member of the request is repeated";
    }
    if (!ret->ids.request.len)
        return "request_id must be a string of at most 1022 bytes";
    if (!ret->ids.job.len)
        return "job_id must be a string of at most 1022 bytes";
    if (!read_version(value[VERSION], &ret->foreign))
        return "protocol_version must be a string";
    if (ret->foreign)
        return NULL;
    ret->function = value[FUNCTION];
    ret->params = is_absent(value[PARAMS]) ? EW_STR("{}") : value[PARAMS];
    ret->context = value[CONTEXT];
    if (!is_string(ret->function))
        return "function_name must be a string";
    if (!is_object(ret->params))
        return "params must be an object";
    return is_object(ret->context) ? read_context(ret) : "context must be an object";
}

const char *ew__rrq_read_cancel(const ew__rrq_message *message, ew__rrq_cancel *ret) {
    enum { VERSION, JOB_ID, REQUEST_ID, N };
    static const ew_str names[N] = {{"protocol_version", 16}, {"job_id", 6}, {"request_id", 10}};
    ew_str value[N];
    memset(ret, 0, sizeof *ret);
    if (!ew__json_members(&message->doc, message->payload, names, N, value))
        return "a member of the cancel is repeated";
    if (!read_version(value[VERSION], &ret->foreign))
        return "protocol_version must be a string";
    if (ret->foreign)
        return NULL;
    ret->ids.job = id_or_none(value[JOB_ID]);
    ret->ids.request = id_or_none(value[REQUEST_ID]);
    if (!ret->ids.job.len)
        return "job_id must be a string of at most 1022 bytes";
    return is_absent(value[REQUEST_ID]) || ret->ids.request.len ? NULL : "request_id must be a string";
}

/* ---- outcomes ---- */

/* What the reserved types stand for. */
static const struct {
    ew_str type;
    ew_status status;
} types[] = {{TEXT("handler_not_found"), EW_STATUS_NOT_FOUND},
             {TEXT("cancelled"), EW_STATUS_CANCELLED},
             {TEXT("timeout"), EW_STATUS_DEADLINE_EXCEEDED}};

static bool status_of_type(ew_str type, ew_status *ret) {
    for (size_t i = 0; i < N_OF(types); i++) {
        if (ew__str_is(type, types[i].type)) {
            *ret = types[i].status;
            return true;
        }
    }
    return false;
}

/* What a fault has no place for, with its details: {"type":T,"code":C,"details":D}. */
static const char *keep_all(ew__rrq_outcome *ret, ew_str type, ew_str code, ew_str details) {
    ew__buf_char(&ret->details, '{');
    const ew_str value[] = {type, code, details};
    static const char *const name[] = {"\"type\":", "\"code\":", "\"details\":"};
    for (size_t i = 0; i < 3; i++) {
        if (is_absent(value[i]))
            continue;
        ew__buf_cstr(&ret->details, ret->details.len > 1 ? "," : "");
        ew__buf_cstr(&ret->details, name[i]);
        ew__buf_str(&ret->details, value[i]);
    }
    if (ew__buf_char(&ret->details, '}') != EW_OK)
        return "out of memory";
    ret->fault.details = ew__buf_view(&ret->details);
    return NULL;
}

/* Runners say all kinds of things; only what cannot be understood at all is refused. */
static const char *read_error(ew_str error, ew__rrq_outcome *ret) {
    ew_fault *fault = &ret->fault;
    ew_status status;
    if (is_absent(error))
        return NULL;
    if (!is_object(error))
        return "error must be an object";
    ew_str message = ew_json_member(error, EW_STR("message"));
    ew_str type = ew_json_member(error, EW_STR("type")), code = ew_json_member(error, EW_STR("code"));
    ew_str details = ew_json_member(error, EW_STR("details"));
    if (!is_string(message))
        return "error.message must be a string";
    fault->message = ew__rpc_text(message, ret->text, ret->room);
    if (fault->message.len == 0 && message.len > 2)
        fault->message = ew__str(message.ptr + 1, message.len - 2); /* too long to decode: as it stands */
    bool ours = ew_status_from_name(plain(code), &status) == EW_OK && status != EW_STATUS_OK;
    bool known_type = status_of_type(plain(type), &fault->status);
    (void)ew_json_bool(ew_json_member(error, EW_STR("refused")), &fault->refused); /* a member of our own */
    if (ours)
        fault->status = status;
    /* With another status it is only a mark: RRQ must not try the job again (serve.c). */
    bool final = ours && status != EW_STATUS_NOT_FOUND;
    ret->no_handler = ew__str_is(plain(type), types[0].type) && !final;
    if (ret->no_handler) /* it says more than its status: the runner has not run anything, and never will */
        return keep_all(ret, type, ours ? NONE : code, details);
    if ((!is_absent(code) && !ours) || (!is_absent(type) && !known_type))
        return keep_all(ret, known_type ? NONE : type, ours ? NONE : code, details);
    fault->details = is_absent(details) ? NONE : details;
    return NULL;
}

static uint64_t retry_ms(ew_str seconds) {
    double number = 0;
    if (ew_json_double(seconds, &number) != EW_OK || number <= 0)
        return 0;
    return (uint64_t)(ceil((number < MOST_RETRY_S ? number : MOST_RETRY_S) * 1000));
}

const char *ew__rrq_read_outcome(const ew__rrq_message *message, ew__rrq_outcome *ret) {
    enum { STATUS, RESULT, ERROR, RETRY, N };
    static const ew_str names[N] = {{"status", 6}, {"result", 6}, {"error", 5}, {"retry_after_seconds", 19}};
    ew_str value[N];
    if (!ew__json_members(&message->doc, message->payload, names, N, value))
        return "a member of the outcome is repeated";
    ew_str status = plain(value[STATUS]);
    ret->success = ew__str_is(status, EW_STR("success"));
    ret->result = value[RESULT].len ? value[RESULT] : EW_STR("null");
    if (ret->success)
        return NULL;
    ew_fault *fault = &ret->fault;
    bool timeout = ew__str_is(status, EW_STR("timeout")), retry = ew__str_is(status, EW_STR("retry"));
    if (!timeout && !retry && !ew__str_is(status, EW_STR("error")))
        return "status must be success, retry, timeout or error";
    *fault = (ew_fault){.status = retry ? EW_STATUS_UNAVAILABLE : EW_STATUS_UNKNOWN};
    const char *problem = read_error(value[ERROR], ret);
    if (timeout)
        fault->status = EW_STATUS_DEADLINE_EXCEEDED;
    fault->retryable = retry;
    fault->retry_after_ms = retry ? retry_ms(value[RETRY]) : 0;
    if (fault->message.len == 0)
        fault->message = retry     ? EW_STR("the runner asks for a retry")
                         : timeout ? EW_STR("the runner's time was over")
                                   : EW_STR("the runner reports an error and does not say which");
    return problem;
}

/* ---- writing ---- */

/* Those of put.h, for text. */
#define PUT(at, text) ((char *)EW__PUT((uint8_t *)(at), text))

static inline char *put(char *at, ew_str text) { return (char *)ew__put_str((uint8_t *)at, text); }

#define SUCCESS_HEAD "{\"type\":\"response\",\"payload\":{\"job_id\":"
#define SUCCESS_REQUEST ",\"request_id\":"
#define SUCCESS_RESULT ",\"status\":\"success\",\"result\":"
#define SUCCESS_END "}}"

void ew__rrq_put_success(ew__rpc_out *out, const ew__rrq_ids *ids, ew_str result) {
    ew__rpc_out_begin(out, EW_STR(SUCCESS_HEAD));
    ew__rpc_out_add(out, ids->job);
    ew__rpc_out_add(out, EW_STR(SUCCESS_REQUEST));
    ew__rpc_out_add(out, ids->request);
    ew__rpc_out_add(out, EW_STR(SUCCESS_RESULT));
    ew__rpc_out_add(out, result);
    ew__rpc_out_add(out, EW_STR(SUCCESS_END));
}

size_t ew__rrq_success_len(const ew__rrq_ids *ids, ew_str result) {
    return sizeof(SUCCESS_HEAD SUCCESS_REQUEST SUCCESS_RESULT SUCCESS_END) - 1 + ids->job.len + ids->request.len +
           result.len;
}

char *ew__rrq_write_success(char *at, const ew__rrq_ids *ids, ew_str result) {
    at = put(PUT(at, SUCCESS_HEAD), ids->job);
    at = put(PUT(at, SUCCESS_REQUEST), ids->request);
    at = put(PUT(at, SUCCESS_RESULT), result);
    return PUT(at, SUCCESS_END);
}

void ew__rrq_put_fault(ew__rpc_out *out, const ew__rrq_ids *ids, ew_str rest) {
    ew__rpc_out_begin(out, EW_STR("{\"type\":\"response\",\"payload\":{\"job_id\":"));
    ew__rpc_out_add(out, ids->job.len ? ids->job : EW_STR("\"unknown\""));
    if (ids->request.len) {
        ew__rpc_out_add(out, EW_STR(",\"request_id\":"));
        ew__rpc_out_add(out, ids->request);
    }
    ew__rpc_out_add(out, EW_STR(",\"status\":"));
    ew__rpc_out_add(out, rest);
    ew__rpc_out_add(out, EW_STR("}}"));
}

void ew__rrq_put_cancel(ew__rpc_out *out, const ew__rrq_ids *ids) {
    ew__rpc_out_begin(out, EW_STR("{\"type\":\"cancel\",\"payload\":{\"protocol_version\":\"2\",\"job_id\":"));
    ew__rpc_out_add(out, ids->job);
    ew__rpc_out_add(out, EW_STR(",\"request_id\":"));
    ew__rpc_out_add(out, ids->request);
    ew__rpc_out_add(out, EW_STR(",\"hard_kill\":false}}"));
}

/* An action's own NOT_FOUND is no missing handler: that type is fatal to a job, and only the wire says it. */
static const char *type_of(ew_status status) {
    return status == EW_STATUS_CANCELLED ? "cancelled" : status == EW_STATUS_DEADLINE_EXCEEDED ? "timeout" : NULL;
}

/* Seconds, exact to the millisecond. */
static void write_seconds(ew__buf *buf, uint64_t ms) {
    (void)ew__buf_u64(buf, ms / 1000);
    unsigned rest = (unsigned)(ms % 1000);
    const char fraction[4] = {'.', (char)('0' + rest / 100), (char)('0' + rest / 10 % 10), (char)('0' + rest % 10)};
    if (rest)
        (void)ew__buf_add(buf, fraction, sizeof fraction);
}

ew_err ew__rrq_write_fault(ew__buf *buf, const char *type, const ew_fault *fault) {
    bool retry = fault->retryable || fault->retry_after_ms;
    ew_str message = fault->message.len ? fault->message : ew_str_from(ew_status_name(fault->status));
    (void)ew__buf_cstr(buf, retry                                          ? "\"retry\""
                            : fault->status == EW_STATUS_DEADLINE_EXCEEDED ? "\"timeout\""
                                                                           : "\"error\"");
    (void)ew__json_format(buf, ",\"error\":{\"message\":%q", message);
    if (!type)
        type = type_of(fault->status);
    if (type)
        (void)ew__json_format(buf, ",\"type\":%Q", type);
    (void)ew__json_format(buf, ",\"code\":%Q", ew_status_name(fault->status));
    if (fault->details.len)
        (void)ew__json_format(buf, ",\"details\":%j", fault->details);
    if (fault->refused)
        (void)ew__buf_cstr(buf, ",\"refused\":true");
    (void)ew__buf_char(buf, '}');
    if (fault->retry_after_ms) {
        (void)ew__buf_cstr(buf, ",\"retry_after_seconds\":");
        write_seconds(buf, fault->retry_after_ms);
    }
    return buf->err;
}

/* ---- requests of ours ---- */

ew_str ew__rrq_handler_of(ew_str function) {
    const char *hash = function.len ? memchr(function.ptr, '#', function.len) : NULL;
    if (!hash)
        return function;
    size_t skip = (size_t)(hash - function.ptr) + 1;
    return ew__str(hash + 1, function.len - skip);
}

const char *ew__rrq_context_problem(ew_str context) {
    ew_json_iter it = {.offset_ = 0};
    int64_t ms;
    uint32_t number;
    if (context.len == 0)
        return NULL;
    if (ew_json_typeof(context) != EW_JSON_OBJECT)
        return "the rrq wire carries a context only if it is an object: its members become those of RRQ's context";
    while (ew_json_next(context, &it)) {
        ew_str name = plain(it.key);
        if (ew__str_is(name, context_names[EW__RRQ_ATTEMPT]) && !read_attempt(it.value, &number))
            return "attempt in the context must be an integer";
        if (ew__str_is(name, context_names[EW__RRQ_ENQUEUED]) && !read_time(it.value, &ms))
            return "enqueue_time in the context must be an RFC 3339 time";
        bool text = ew__str_is(name, context_names[EW__RRQ_JOB]) || ew__str_is(name, context_names[EW__RRQ_QUEUE]);
        if (text && (!id_or_none(it.value).len))
            return "job_id and queue_name in the context must be strings";
        if (ew__str_is(name, context_names[EW__RRQ_WORKER]) && !is_absent(it.value) && !is_string(it.value))
            return "worker_id in the context must be a string";
        if (ew__str_is(name, context_names[EW__RRQ_CORRELATION]) && !is_absent(it.value) && !is_strings(it.value))
            return "correlation_context in the context must be an object of strings";
    }
    return NULL;
}

/* Which of the protocol's members it is; EW__RRQ_N_CONTEXT: none. One with an escape might be, spelled differently: -1. */
static int member_of(ew_str quoted_name) {
    int i = 0;
    if (memchr(quoted_name.ptr, '\\', quoted_name.len))
        return -1;
    ew_str name = plain(quoted_name);
    while (i < EW__RRQ_N_CONTEXT && !ew__str_is(name, context_names[i]))
        i++;
    return i;
}

void ew__rrq_read_context(ew_str text, ew__rrq_context *ret) {
    ew_json_iter it = {.offset_ = 0};
    ret->text = text;
    ret->others = false;
    ret->lead = ret->rest = NONE;
    if (text.len && ew__rrq_split_known(text, ret->value))
        return;
    memset(ret->value, 0, sizeof ret->value);
    while (text.len && ew_json_next(text, &it)) {
        int i = member_of(it.key);
        if (i < 0) {
            for (size_t k = 0; k < EW__RRQ_N_CONTEXT; k++)
                ret->value[k] = ew_json_member(text, context_names[k]);
            ret->others = true;
            return;
        }
        if (i < EW__RRQ_N_CONTEXT && ret->value[i].len == 0)
            ret->value[i] = it.value;
        ret->others = ret->others || i == EW__RRQ_N_CONTEXT;
    }
}

void ew__rrq_reuse_context(ew_str text, const ew__rrq_spans *spans, ew__rrq_context *ret) {
    static const char before_job[] = "{\"job_id\":";
    *ret = (ew__rrq_context){.text = text,
                             .value[EW__RRQ_JOB] = {text.ptr + sizeof before_job - 1, spans->job},
                             .lead = {text.ptr, spans->lead},
                             .rest = {text.ptr + text.len - spans->rest, spans->rest}};
}

/*
 * A request is written for every call: where there is room for it, without asking at each piece. What one can take is
 * what ew__rrq_ask_most says.
 */
#define ESCAPED 6 /* bytes that one may become in a string */

static char *put_number(char *at, uint32_t number) {
    if (number < 10) {
        *at = (char)('0' + number);
        return at + 1;
    }
    char digits[20];
    return put(at, ew__str(digits, ew__u64_text(number, digits)));
}

static char *put_time(char *at, ew__when_memo *memo, uint64_t ms) {
    *at++ = '"';
    if (memo)
        ew__when_write_again(memo, ms, at);
    else
        ew__when_write(ms, at);
    at[EW__WHEN_LEN] = '"';
    return at + EW__WHEN_LEN + 1;
}

static char *put_string(char *at, ew_str text) {
    if (ew__rrq_is_plain(text)) {
        *at++ = '"';
        at = put(at, text);
        *at++ = '"';
        return at;
    }
    ew__json_sink sink = {.memory = at, .capacity = ESCAPED * text.len + 2};
    ew__json_put_str(&sink, text, false);
    return at + sink.len;
}

/* What the caller's context says beyond the protocol: runners pass over what they do not know. */
static char *put_others(char *at, ew_str context) {
    ew_json_iter it = {.offset_ = 0};
    while (ew_json_next(context, &it)) {
        if (member_of(it.key) != EW__RRQ_N_CONTEXT)
            continue;
        *at++ = ',';
        at = put(at, it.key);
        *at++ = ':';
        at = put(at, it.value);
    }
    return at;
}

static char *put_trace(char *at, const ew__rrq_ask *ask) {
    if (ask->traceparent.len == 0 && ask->hops == 0)
        return at;
    at = PUT(at, ",\"trace_context\":{");
    if (ask->traceparent.len) {
        at = PUT(at, "\"traceparent\":\"");
        at = put(at, ask->traceparent);
        *at++ = '"';
    }
    if (ask->traceparent.len && ask->tracestate.len) {
        at = PUT(at, ",\"tracestate\":");
        at = put_string(at, ask->tracestate);
    }
    if (ask->hops) {
        if (ask->traceparent.len)
            *at++ = ',';
        at = PUT(at, "\"" EW__RRQ_HOPS "\":\"");
        at = put_number(at, ask->hops);
        *at++ = '"';
    }
    *at++ = '}';
    return at;
}

/* A context up to its deadline; and what comes behind its trace. */
static char *put_lead(char *at, const ew__rrq_ask *ask, const ew__rrq_context *context) {
    const ew_str *value = context->value;
    uint32_t attempt = ask->attempt;
    if (attempt == 0 && !read_attempt(value[EW__RRQ_ATTEMPT], &attempt))
        attempt = 1;
    at = PUT(at, "{\"job_id\":");
    at = put(at, ask->ids.job);
    at = PUT(at, ",\"attempt\":");
    at = put_number(at, attempt);
    at = PUT(at, ",\"enqueue_time\":");
    at = value[EW__RRQ_ENQUEUED].len ? put(at, value[EW__RRQ_ENQUEUED]) : put_time(at, ask->memos, ask->now_ms);
    at = PUT(at, ",\"queue_name\":");
    return value[EW__RRQ_QUEUE].len ? put(at, value[EW__RRQ_QUEUE]) : PUT(at, "\"everywire\"");
}

static char *put_rest(char *at, const ew__rrq_ask *ask, const ew__rrq_context *context) {
    const ew_str *value = context->value;
    ew_str labels = ask->labels.len ? ask->labels : value[EW__RRQ_CORRELATION];
    if (!is_absent(labels)) {
        at = PUT(at, ",\"correlation_context\":");
        at = put(at, labels);
    }
    at = PUT(at, ",\"worker_id\":");
    at = is_absent(value[EW__RRQ_WORKER]) ? PUT(at, "\"everywire\"") : put(at, value[EW__RRQ_WORKER]);
    if (context->others)
        at = put_others(at, context->text);
    *at++ = '}';
    return at;
}

size_t ew__rrq_ask_most(const ew__rrq_ask *ask) {
    size_t context = ask->context ? ask->context->text.len : 0; /* what is known of it, and the others */
    return MOST_CONSTANT + ask->ids.request.len + 2 * ask->ids.job.len + ESCAPED * ask->function.len + 2 * context +
           ask->labels.len + ask->traceparent.len + ESCAPED * ask->tracestate.len;
}

char *ew__rrq_put_head(char *at, const ew__rrq_ask *ask) {
    at = PUT(at, "{\"type\":\"request\",\"payload\":{\"protocol_version\":\"2\",\"request_id\":");
    at = put(at, ask->ids.request);
    at = PUT(at, ",\"job_id\":");
    at = put(at, ask->ids.job);
    at = PUT(at, ",\"function_name\":");
    at = put_string(at, ask->function);
    return PUT(at, ",\"params\":");
}

char *ew__rrq_put_tail(char *at, const ew__rrq_ask *ask) {
    static const ew__rrq_context none;
    const ew__rrq_context *context = ask->context ? ask->context : &none;
    at = PUT(at, ",\"context\":");
    at = context->lead.len ? put(at, context->lead) : put_lead(at, ask, context);
    if (ask->has_deadline) {
        at = PUT(at, ",\"deadline\":");
        at = put_time(at, ask->memos ? ask->memos + 1 : NULL, ask->deadline_ms);
    }
    at = put_trace(at, ask);
    at = context->rest.len ? put(at, context->rest) : put_rest(at, ask, context);
    return PUT(at, "}}");
}

ew_err ew__rrq_write_request(ew__buf *head, ew__buf *tail, const ew__rrq_ask *ask) {
    size_t most = ew__rrq_ask_most(ask);
    ew_err err = ew__buf_reserve(head, most);
    if (err == EW_OK)
        err = ew__buf_reserve(tail, most);
    if (err != EW_OK)
        return err;
    head->len = (size_t)(ew__rrq_put_head(head->ptr + head->len, ask) - head->ptr);
    tail->len = (size_t)(ew__rrq_put_tail(tail->ptr + tail->len, ask) - tail->ptr);
    return EW_OK;
}
