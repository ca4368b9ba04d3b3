/*
 * tests/unit/wire/test_rrq_codec.c: what the messages of RRQ's runner protocol say, both ways, with runners of all makes
 * and with hostile ones. Texts are written with ' for ". What a whole connection makes of them is in tests/transcripts.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "wire/rrq/codec.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define N_OF(array) (sizeof(array) / sizeof *(array))

static char *quoted(const char *text) {
    size_t n = strlen(text);
    char *copy = malloc(n + 1);
    assert_non_null(copy);
    for (size_t i = 0; i <= n; i++)
        copy[i] = text[i] == '\'' ? '"' : text[i];
    return copy;
}

static void check_str_at(ew_str got, const char *expected, int line) {
    char *text = quoted(expected);
    if (!ew_str_eq(got, ew_str_from(text)))
        fail_msg("line %d: %.*s, not %s", line, (int)got.len, got.len ? got.ptr : "", text);
    free(text);
}
#define check_str(got, expected) check_str_at((got), (expected), __LINE__)

/* A text in memory of exactly its size, and what the envelope says. */
typedef struct message {
    char *text;
    ew__rrq_message got;
    const char *problem;
} message;

static void read_text(message *m, ew_str text) {
    m->text = malloc(text.len ? text.len : 1);
    assert_non_null(m->text);
    memcpy(m->text, text.ptr, text.len);
    m->problem = ew__rrq_read(ew__str(m->text, text.len), &m->got);
}

static void read_message(message *m, const char *text) {
    char *json = quoted(text);
    read_text(m, ew_str_from(json));
    free(json);
}

/* The same payload in one of the ways to write an envelope: those that are known by their bytes, and others. */
static const char *const envelopes[] = {
    "{'type':'%s','payload':%s}",           "{'type': '%s', 'payload': %s}",        "(payload first)",
    " { 'type' : '%s' , 'payload' : %s } ", "{'type':'%s','payload':%s,'more':{}}", "{'type':'%s','payload':%s }",
    "{'x':[],'type': '%s', 'payload': %s}",
};

static void read_payload(message *m, size_t way, const char *type, const char *payload) {
    char *text = NULL;
    size_t n;
    FILE *out = open_memstream(&text, &n);
    assert_non_null(out);
    const char *form = envelopes[way];
    bool turned = form[0] == '(';
    if (turned)
        (void)fprintf(out, "{'payload':%s,'type':'%s'}", payload, type);
    for (; !turned && *form; form++) {
        if (strncmp(form, "%s", 2) != 0) {
            (void)fputc(*form, out);
            continue;
        }
        (void)fputs(type, out);
        type = payload;
        form++;
    }
    (void)fclose(out);
    read_message(m, text);
    free(text);
}

/* ---- the envelope ---- */

static void test_wire_rrq_codec__envelopes(void **state) {
    (void)state;
    static const struct {
        const char *type;
        ew__rrq_kind kind;
    } rows[] = {{"request", EW__RRQ_REQUEST},
                {"response", EW__RRQ_RESPONSE},
                {"cancel", EW__RRQ_CANCEL},
                {"re\\u0071uest", EW__RRQ_REQUEST}};
    static const char *const payloads[] = {"{}", "{'a':{'b':[1,'}'] } , 'payload':2,'type':'cancel'}", "{'z':{}}"};
    for (size_t way = 0; way < N_OF(envelopes); way++) {
        for (size_t i = 0; i < N_OF(rows) * N_OF(payloads); i++) {
            const char *payload = payloads[i / N_OF(rows)];
            message m;
            read_payload(&m, way, rows[i % N_OF(rows)].type, payload);
            assert_null(m.problem);
            assert_int_equal(m.got.kind, rows[i % N_OF(rows)].kind);
            check_str(m.got.payload, payload);
            free(m.text);
        }
    }
}

static void test_wire_rrq_codec__no_envelopes(void **state) {
    (void)state;
    static const struct {
        const char *text, *problem;
    } rows[] = {
        {"{oops", "not JSON"},
        {"{'type':'request','payload':{}", "not JSON"},
        {"{'type':'request','payload':}", "not JSON"},
        {"{'type':'request','payload':{}}}", "not JSON"},
        {"{'type':'request','payload':{}},", "not JSON"},
        {"{'type':'request','payload':{'a':'\xff'}}", "not JSON"},
        {"{'type':'request','payload':{} {}}", "not JSON"},
        {"[]", "a message is an object"},
        {"null", "a message is an object"},
        {"'{}'", "a message is an object"},
        {"{}", "type must be request, response or cancel"},
        {"{'type':'ping','payload':{}}", "type must be request, response or cancel"},
        {"{'type':'','payload':{}}", "type must be request, response or cancel"},
        {"{'type':'requests','payload':{}}", "type must be request, response or cancel"},
        {"{'type':['request'],'payload':{}}", "type must be request, response or cancel"},
        {"{'type':'a string that is longer than every type','payload':{}}", "type must be request, response or cancel"},
        {"{'type':'request'}", "payload must be an object"},
        {"{'type':'request','payload':[]}", "payload must be an object"},
        {"{'type':'request','payload':null}", "payload must be an object"},
        {"{'type': 'response', 'payload': 1}", "payload must be an object"},
        {"{'type':'request','payload':{},'payload':{}}", "a member is repeated"},
        {"{'type':'request','payload':{},'type':'request'}", "a member is repeated"},
        {"{'type':'request','payload':{},'typ\\u0065':'cancel'}", "a member is repeated"},
    };
    for (size_t i = 0; i < N_OF(rows); i++) {
        message m;
        read_message(&m, rows[i].text);
        if (!m.problem || strcmp(m.problem, rows[i].problem) != 0)
            fail_msg("%s: %s", rows[i].text, m.problem ? m.problem : "(none)");
        free(m.text);
    }
    message m;
    read_text(&m, EW_STR("{\"type\":\"request\",\"payload\":{}}\0"));
    assert_string_equal(m.problem, "not JSON");
    free(m.text);
}

/* ---- requests ---- */

#define CONTEXT "'context':{'job_id':'j','attempt':1,'enqueue_time':'2023-11-14T22:00:00Z','queue_name':'q'}"
#define REQUEST(rest) "{'request_id':'r','job_id':'j','function_name':'f'," rest "}"
#define WITH(more)                                                                                                     \
    REQUEST("'context':{'job_id':'j','attempt':1,'enqueue_time':'2023-11-14T22:00:00Z','queue_name':'q'," more "}")

static void test_wire_rrq_codec__request(void **state) {
    (void)state;
    static const char full[] =
        "{'protocol_version':'2','request_id':'r\\u0031','job_id':'j','function_name':'f','params':{'a' : 1},"
        "'context':{'job_id':'j2','attempt':7,'enqueue_time':'2023-11-14T22:00:00+01:00','queue_name':'q',"
        "'deadline':'1970-01-01T00:00:01.0019Z','trace_context':{'traceparent':'p'},"
        "'correlation_context':{'k':'v'},'worker_id':'w','more':[]},'more':{}}";
    for (size_t way = 0; way < N_OF(envelopes); way++) {
        message m;
        ew__rrq_request r;
        read_payload(&m, way, "request", full);
        assert_null(m.problem);
        assert_null(ew__rrq_read_request(&m.got, &r));
        check_str(r.ids.request, "'r\\u0031'");
        check_str(r.ids.job, "'j'");
        check_str(r.function, "'f'");
        check_str(r.params, "{'a' : 1}");
        assert_true(r.context.ptr[0] == '{' && r.context.ptr[r.context.len - 1] == '}');
        check_str(r.labels, "{'k':'v'}");
        assert_true(r.has_deadline && !r.foreign);
        assert_true(r.deadline_ms == 1001);
        assert_int_equal(r.attempt, 7);
        free(m.text);
    }
}

static void test_wire_rrq_codec__request_without(void **state) {
    (void)state;
    static const char *const texts[] = {
        REQUEST(CONTEXT), REQUEST("'params':null,'protocol_version':null," CONTEXT),
        WITH("'deadline':null,'trace_context':null,'correlation_context':null,'worker_id':null")};
    for (size_t i = 0; i < N_OF(texts); i++) {
        message m;
        ew__rrq_request r;
        read_payload(&m, 0, "request", texts[i]);
        assert_null(ew__rrq_read_request(&m.got, &r));
        check_str(r.params, "{}");
        assert_false(r.has_deadline || r.foreign);
        assert_true(r.labels.len == 0);
        assert_int_equal(r.attempt, 1);
        free(m.text);
    }
}

static void test_wire_rrq_codec__attempts(void **state) {
    (void)state;
    static const struct {
        const char *text;
        int64_t attempt; /* -1: refused */
    } rows[] = {{"0", 0},    {"9", 9},    {"10", 10},  {"4294967295", 4294967295},   {"4294967296", -1}, {"-1", -1},
                {"-0", 0},   {"1.0", -1}, {"1e1", -1}, {"18446744073709551617", -1}, {"'1'", -1},        {"null", -1},
                {"[1]", -1}, {"true", -1}};
    for (size_t i = 0; i < N_OF(rows); i++) {
        char text[300];
        message m;
        ew__rrq_request r;
        (void)snprintf(text, sizeof text,
                       REQUEST("'context':{'job_id':'j','attempt':%s,'enqueue_time':'2023-11-14T22:00:00Z',"
                               "'queue_name':'q'}"),
                       rows[i].text);
        read_payload(&m, 0, "request", text);
        const char *problem = ew__rrq_read_request(&m.got, &r);
        if ((problem == NULL) != (rows[i].attempt >= 0) || (!problem && r.attempt != rows[i].attempt))
            fail_msg("attempt %s: %s", rows[i].text, problem ? problem : "taken");
        free(m.text);
    }
}

/* Whatever is wrong with a request, its ids are there if they can be read. */
static void test_wire_rrq_codec__request_ids(void **state) {
    (void)state;
    static const struct {
        const char *payload, *request, *job;
    } rows[] = {
        {REQUEST("'x':1"), "'r'", "'j'"},
        {"{'request_id':'','job_id':''}", "''", "''"},
        {"{'request_id':'r'}", "'r'", ""},
        {"{'job_id':'j'}", "", "'j'"},
        {"{'request_id':1,'job_id':null}", "", ""},
        {"{'request_id':'r','job_id':'j','params':[],'params':{}}", "'r'", "'j'"},
        {"{'request_id':'r','request_id':'r','job_id':'j'}", "", ""},
    };
    for (size_t way = 0; way < N_OF(envelopes); way++) {
        for (size_t i = 0; i < N_OF(rows); i++) {
            message m;
            ew__rrq_request r;
            ew__rrq_ids ids;
            read_payload(&m, way, "request", rows[i].payload);
            assert_non_null(ew__rrq_read_request(&m.got, &r));
            check_str(r.ids.request, rows[i].request);
            check_str(r.ids.job, rows[i].job);
            ew__rrq_read_ids(&m.got, &ids);
            check_str(ids.request, rows[i].request);
            check_str(ids.job, rows[i].job);
            free(m.text);
        }
    }
}

static void test_wire_rrq_codec__long_ids(void **state) {
    (void)state;
    for (int n = 1021; n <= 1024; n++) {
        char id[1100] = {0}, text[3000];
        message m;
        ew__rrq_request r;
        memset(id, 'x', (size_t)n);
        (void)snprintf(text, sizeof text, "{'request_id':'%s','job_id':'j','function_name':'f'," CONTEXT "}", id);
        read_payload(&m, 0, "request", text);
        assert_int_equal(ew__rrq_read_request(&m.got, &r) == NULL, n <= 1022);
        assert_int_equal(r.ids.request.len, n <= 1022 ? n + 2 : 0);
        free(m.text);
    }
}

/* ---- cancels ---- */

static void test_wire_rrq_codec__cancels(void **state) {
    (void)state;
    static const struct {
        const char *payload, *problem, *request, *job;
        bool foreign;
    } rows[] = {
        {"{'protocol_version':'2','job_id':'j','request_id':'r','hard_kill':true}", NULL, "'r'", "'j'", false},
        {"{'job_id':'j'}", NULL, "", "'j'", false},
        {"{'job_id':'j','request_id':null,'protocol_version':null,'hard_kill':null,'x':{}}", NULL, "", "'j'", false},
        {"{'job_id':'j','request_id':'','protocol_version':'2'}", NULL, "''", "'j'", false},
        {"{'job_id':7,'protocol_version':'1'}", NULL, "", "", true},
        {"{'job_id':'j','protocol_version':2}", "protocol_version must be a string", NULL, NULL, false},
        {"{'request_id':'r'}", "job_id must be a string of at most 1022 bytes", NULL, NULL, false},
        {"{'job_id':7}", "job_id must be a string of at most 1022 bytes", NULL, NULL, false},
        {"{'job_id':'j','request_id':7}", "request_id must be a string", NULL, NULL, false},
        {"{'job_id':'j','job_id':'j'}", "a member of the cancel is repeated", NULL, NULL, false},
    };
    for (size_t i = 0; i < N_OF(rows); i++) {
        message m;
        ew__rrq_cancel c;
        read_payload(&m, i % N_OF(envelopes), "cancel", rows[i].payload);
        const char *problem = ew__rrq_read_cancel(&m.got, &c);
        assert_int_equal(problem == NULL, rows[i].problem == NULL);
        if (problem) {
            assert_string_equal(problem, rows[i].problem);
        } else {
            check_str(c.ids.request, rows[i].request);
            check_str(c.ids.job, rows[i].job);
            assert_int_equal(c.foreign, rows[i].foreign);
        }
        free(m.text);
    }
}

/* ---- outcomes ---- */

typedef struct outcome {
    message m;
    char text[64];
    ew__rrq_outcome o;
    const char *problem;
} outcome;

static void read_outcome(outcome *oc, const char *payload, const ew_env *env) {
    memset(oc, 0, sizeof *oc);
    read_payload(&oc->m, 0, "response", payload);
    assert_null(oc->m.problem);
    oc->o.text = oc->text;
    oc->o.room = sizeof oc->text;
    ew__buf_init(&oc->o.details, env, SIZE_MAX / 2);
    oc->problem = ew__rrq_read_outcome(&oc->m.got, &oc->o);
}

static void outcome_done(outcome *oc) {
    ew__buf_done(&oc->o.details);
    free(oc->m.text);
}

static void test_wire_rrq_codec__outcomes(void **state) {
    (void)state;
    static const struct {
        const char *payload;
        ew_status status;
        const char *message, *details;
        bool no_handler;
    } rows[] = {
        {"{'status':'error','error':{'message':'m'}}", EW_STATUS_UNKNOWN, "m", "", false},
        {"{'status':'error','error':{'message':'m','type':null,'code':null,'details':null}}", EW_STATUS_UNKNOWN, "m",
         "", false},
        {"{'status':'error','error':{'message':'m','code':'NOT_FOUND','details':{'a' :1}}}", EW_STATUS_NOT_FOUND, "m",
         "{'a' :1}", false},
        {"{'status':'error','error':{'message':'m','type':'handler_not_found'}}", EW_STATUS_NOT_FOUND, "m",
         "{'type':'handler_not_found'}", true},
        {"{'status':'error','error':{'message':'m','type':'handler_not_found','code':'NOT_FOUND','details':[1]}}",
         EW_STATUS_NOT_FOUND, "m", "{'type':'handler_not_found','details':[1]}", true},
        {"{'status':'error','error':{'message':'m','type':'cancelled'}}", EW_STATUS_CANCELLED, "m", "", false},
        {"{'status':'error','error':{'message':'m','type':'timeout'}}", EW_STATUS_DEADLINE_EXCEEDED, "m", "", false},
        {"{'status':'error','error':{'message':'m','type':'cancelled','code':'ABORTED'}}", EW_STATUS_ABORTED, "m", "",
         false},
        {"{'status':'error','error':{'message':'m','code':'OK'}}", EW_STATUS_UNKNOWN, "m", "{'code':'OK'}", false},
        {"{'status':'error','error':{'message':'m','type':'E','code':7,'details':[]}}", EW_STATUS_UNKNOWN, "m",
         "{'type':'E','code':7,'details':[]}", false},
        {"{'status':'error','error':{'message':'m','type':'E','code':'ABORTED'}}", EW_STATUS_ABORTED, "m",
         "{'type':'E'}", false},
        {"{'status':'error','error':{'message':'a\\n\\u00e9'}}", EW_STATUS_UNKNOWN, "a\n\xc3\xa9", "", false},
        {"{'status':'timeout'}", EW_STATUS_DEADLINE_EXCEEDED, "the runner#s time was over", "", false},
        {"{'status':'timeout','error':{'message':'m','code':'ABORTED'}}", EW_STATUS_DEADLINE_EXCEEDED, "m", "", false},
        {"{'status':'retry','error':{'message':'m'}}", EW_STATUS_UNAVAILABLE, "m", "", false},
        {"{'status':'retry','error':null}", EW_STATUS_UNAVAILABLE, "the runner asks for a retry", "", false},
        {"{'status':'error'}", EW_STATUS_UNKNOWN, "the runner reports an error and does not say which", "", false},
    };
    for (size_t i = 0; i < N_OF(rows); i++) {
        outcome oc;
        read_outcome(&oc, rows[i].payload, ew_env_default());
        assert_null(oc.problem);
        assert_false(oc.o.success);
        if (oc.o.fault.status != rows[i].status)
            fail_msg("%s: %s", rows[i].payload, ew_status_name(oc.o.fault.status));
        if (strchr(rows[i].message, '#'))
            assert_int_equal(oc.o.fault.message.len, strlen(rows[i].message)); /* it has the quote of these tests */
        else
            check_str(oc.o.fault.message, rows[i].message);
        check_str(oc.o.fault.details, rows[i].details);
        assert_int_equal(oc.o.no_handler, rows[i].no_handler);
        outcome_done(&oc);
    }
}

static void test_wire_rrq_codec__results(void **state) {
    (void)state;
    static const struct {
        const char *payload, *result;
    } rows[] = {{"{'status':'success','result':{'a' : 1}}", "{'a' : 1}"},
                {"{'status':'success'}", "null"},
                {"{'status':'success','result':null,'error':null,'retry_after_seconds':null}", "null"},
                {"{'result':'x','error':{'message':1},'status':'success'}", "'x'"}};
    for (size_t i = 0; i < N_OF(rows); i++) {
        outcome oc;
        read_outcome(&oc, rows[i].payload, ew_env_default());
        assert_null(oc.problem);
        assert_true(oc.o.success);
        check_str(oc.o.result, rows[i].result);
        outcome_done(&oc);
    }
}

static void test_wire_rrq_codec__no_outcomes(void **state) {
    (void)state;
    static const char *const payloads[] = {"{}",
                                           "{'status':null}",
                                           "{'status':'Success'}",
                                           "{'status':1}",
                                           "{'status':'error','error':[]}",
                                           "{'status':'error','error':'m'}",
                                           "{'status':'error','error':{}}",
                                           "{'status':'error','error':{'message':null}}",
                                           "{'status':'retry','error':{'message':7}}",
                                           "{'status':'error','status':'error'}",
                                           "{'status':'success','result':1,'result':1}"};
    for (size_t i = 0; i < N_OF(payloads); i++) {
        outcome oc;
        read_outcome(&oc, payloads[i], ew_env_default());
        if (!oc.problem)
            fail_msg("%s was taken", payloads[i]);
        outcome_done(&oc);
    }
}

static void test_wire_rrq_codec__retry_times(void **state) {
    (void)state;
    static const struct {
        const char *text;
        uint64_t ms;
    } rows[] = {{"0", 0},      {"1", 1000},   {"2.5", 2500},
                {"0.0001", 1}, {"-5", 0},     {"1e308", UINT64_C(10000000000000)},
                {"null", 0},   {"1e-320", 1}, {"123456.789", 123456789},
                {"'5'", 0},    {"1e400", 0}};
    for (size_t i = 0; i < N_OF(rows); i++) {
        char text[200];
        outcome oc;
        (void)snprintf(text, sizeof text, "{'status':'retry','retry_after_seconds':%s}", rows[i].text);
        read_outcome(&oc, text, ew_env_default());
        assert_null(oc.problem);
        assert_true(oc.o.fault.retryable);
        if (oc.o.fault.retry_after_ms != rows[i].ms)
            fail_msg("%s: %llu", rows[i].text, (unsigned long long)oc.o.fault.retry_after_ms);
        outcome_done(&oc);
    }
    outcome oc; /* of another status it means nothing */
    read_outcome(&oc, "{'status':'error','retry_after_seconds':5}", ew_env_default());
    assert_false(oc.o.fault.retryable);
    assert_true(oc.o.fault.retry_after_ms == 0);
    outcome_done(&oc);
}

/* A message that has no room is given as it stands; nothing is written past the room. */
static void test_wire_rrq_codec__long_messages(void **state) {
    (void)state;
    for (size_t n = 40; n < 80; n++) {
        char text[300], body[100] = {0};
        outcome oc;
        memset(body, 'x', n);
        (void)snprintf(text, sizeof text, "{'status':'error','error':{'message':'\\u0041%s'}}", body);
        read_outcome(&oc, text, ew_env_default());
        assert_null(oc.problem);
        ew_str got = oc.o.fault.message;
        assert_true(got.len == n + 1 || got.len == n + 6);
        assert_true(got.len == n + 6 ? got.ptr[0] == '\\' : got.ptr[0] == 'A' && got.len <= sizeof oc.text);
        outcome_done(&oc);
    }
}

/* ---- writing ---- */

static char *text_of(const ew__rpc_out *out) {
    char *text = malloc(out->len + 1);
    assert_non_null(text);
    (void)ew__rpc_out_copy(out, (uint8_t *)text);
    text[out->len] = '\0';
    return text;
}

static void check_out_at(const ew__rpc_out *out, const char *expected, int line) {
    char *text = text_of(out);
    check_str_at(ew_str_from(text), expected, line);
    free(text);
}
#define check_out(out, expected) check_out_at((out), (expected), __LINE__)

static const ew__rrq_ids some_ids = {{"\"r\"", 3}, {"\"j\"", 3}};

static void test_wire_rrq_codec__written(void **state) {
    (void)state;
    ew__rpc_out out;
    const ew__rrq_ids none = {{NULL, 0}, {NULL, 0}};
    ew__rrq_put_success(&out, &some_ids, EW_STR("[ 1]"));
    check_out(&out, "{'type':'response','payload':{'job_id':'j','request_id':'r','status':'success','result':[ 1]}}");
    char pieces[200], run[200]; /* the same at once */
    size_t n = ew__rrq_success_len(&some_ids, EW_STR("[ 1]"));
    assert_true(n == out.len && n <= sizeof run);
    (void)ew__rpc_out_copy(&out, (uint8_t *)pieces);
    assert_ptr_equal(ew__rrq_write_success(run, &some_ids, EW_STR("[ 1]")), run + n);
    assert_memory_equal(pieces, run, n);
    ew__rrq_put_fault(&out, &some_ids, EW_STR("\"error\",\"error\":{}"));
    check_out(&out, "{'type':'response','payload':{'job_id':'j','request_id':'r','status':'error','error':{}}}");
    ew__rrq_put_fault(&out, &none, EW_STR("\"error\",\"error\":{}"));
    check_out(&out, "{'type':'response','payload':{'job_id':'unknown','status':'error','error':{}}}");
    ew__rrq_put_cancel(&out, &some_ids);
    check_out(&out, "{'type':'cancel','payload':{'protocol_version':'2','job_id':'j','request_id':'r','hard_kill':"
                    "false}}");
}

/* Every status, with and without a retry: what is written says the same when it is read. */
static void test_wire_rrq_codec__faults_there_and_back(void **state) {
    (void)state;
    for (int status = 1; status <= 16; status++) {
        for (int how = 0; how < 8; how++) {
            ew_fault fault = {.status = (ew_status)status,
                              .message = how & 1 ? EW_STR("a \"b\"\n") : EW_STR("m"),
                              .details = how & 2 ? EW_STR("{\"d\":1}") : EW_STR(""),
                              .retryable = (how & 4) != 0,
                              .retry_after_ms = how & 4 ? 1234 : 0};
            ew__buf buf;
            ew__buf_init(&buf, ew_env_default(), SIZE_MAX / 2);
            assert_int_equal(ew__rrq_write_fault(&buf, NULL, &fault), EW_OK);
            char *text = NULL;
            size_t n;
            FILE *out = open_memstream(&text, &n);
            assert_non_null(out);
            (void)fprintf(out, "{\"status\":%.*s}", (int)buf.len, buf.ptr);
            (void)fclose(out);
            outcome oc;
            read_outcome(&oc, text, ew_env_default());
            assert_null(oc.problem);
            assert_int_equal(oc.o.fault.status, fault.status);
            assert_true(ew_str_eq(oc.o.fault.message, fault.message));
            assert_true(ew_str_eq(oc.o.fault.details, fault.details));
            assert_int_equal(oc.o.fault.retryable, fault.retryable);
            assert_true(oc.o.fault.retry_after_ms == fault.retry_after_ms);
            assert_false(oc.o.no_handler);
            outcome_done(&oc);
            free(text);
            ew__buf_done(&buf);
        }
    }
}

static void test_wire_rrq_codec__faults_written(void **state) {
    (void)state;
    const struct {
        ew_fault fault;
        const char *type, *text;
    } rows[] = {
        {{.status = EW_STATUS_INTERNAL, .message = EW_STR("m")},
         NULL,
         "'error','error':{'message':'m','code':'INTERNAL'}"},
        {{.status = EW_STATUS_NOT_FOUND, .message = EW_STR("m")},
         "handler_not_found",
         "'error','error':{'message':'m','type':'handler_not_found','code':'NOT_FOUND'}"},
        {{.status = EW_STATUS_DEADLINE_EXCEEDED},
         NULL,
         "'timeout','error':{'message':'DEADLINE_EXCEEDED','type':'timeout','code':'DEADLINE_EXCEEDED'}"},
        {{.status = EW_STATUS_CANCELLED, .message = EW_STR("m"), .details = EW_STR("[1, 2]")},
         NULL,
         "'error','error':{'message':'m','type':'cancelled','code':'CANCELLED','details':[1, 2]}"},
        {{.status = EW_STATUS_ABORTED, .message = EW_STR("m"), .retryable = true},
         NULL,
         "'retry','error':{'message':'m','code':'ABORTED'}"},
        {{.status = EW_STATUS_ABORTED, .message = EW_STR("m"), .retryable = true, .retry_after_ms = 10050},
         NULL,
         "'retry','error':{'message':'m','code':'ABORTED'},'retry_after_seconds':10.050"},
    };
    for (size_t i = 0; i < N_OF(rows); i++) {
        ew__buf buf;
        ew__buf_init(&buf, ew_env_default(), SIZE_MAX / 2);
        assert_int_equal(ew__rrq_write_fault(&buf, rows[i].type, &rows[i].fault), EW_OK);
        check_str(ew__buf_view(&buf), rows[i].text);
        ew__buf_done(&buf);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wire_rrq_codec__envelopes),
        cmocka_unit_test(test_wire_rrq_codec__no_envelopes),
        cmocka_unit_test(test_wire_rrq_codec__request),
        cmocka_unit_test(test_wire_rrq_codec__request_without),
        cmocka_unit_test(test_wire_rrq_codec__attempts),
        cmocka_unit_test(test_wire_rrq_codec__request_ids),
        cmocka_unit_test(test_wire_rrq_codec__long_ids),
        cmocka_unit_test(test_wire_rrq_codec__cancels),
        cmocka_unit_test(test_wire_rrq_codec__outcomes),
        cmocka_unit_test(test_wire_rrq_codec__results),
        cmocka_unit_test(test_wire_rrq_codec__no_outcomes),
        cmocka_unit_test(test_wire_rrq_codec__retry_times),
        cmocka_unit_test(test_wire_rrq_codec__long_messages),
        cmocka_unit_test(test_wire_rrq_codec__written),
        cmocka_unit_test(test_wire_rrq_codec__faults_there_and_back),
        cmocka_unit_test(test_wire_rrq_codec__faults_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
