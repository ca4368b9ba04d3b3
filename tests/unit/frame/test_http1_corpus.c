/*
 * tests/unit/frame/test_http1_corpus.c: the reader over the corpora llhttp and own-http1. Every input runs whole, in
 * small pieces and cut in two at every byte. Where we refuse what llhttp accepts, a table says why; a case that is in
 * no table must come out as llhttp has it.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "support/corpus.h"
#include "support/http_trace.h"
#include "support/json_or.h"

typedef struct known {
    const char *id, *why;
} known;

/* llhttp accepts these, we do not. */
static const known refused[] = {
    {"request/connection.md:159", "two empty lines before a request; one is allowed"},
    {"request/method.md:30", "CONNECT: we are no proxy"},
    {"request/method.md:65", "CONNECT"},
    {"request/method.md:99", "CONNECT"},
    {"request/uri.md:191", "CONNECT"},
    {"request/method.md:138", "the asterisk form belongs to OPTIONS"},
    {"request/method.md:375", "ICE is not HTTP"},
    {"request/method.md:405", "RTSP is not HTTP"},
    {"request/method.md:433", "RTSP is not HTTP"},
    {"request/sample.md:317", "HTTP/0.9"},
    {"request/sample.md:70", "Host with an equals sign"},
    {"request/sample.md:108", "Host with an equals sign"},
    {"request/transfer-encoding.md:754", "fragment in the target"},
    {"request/transfer-encoding.md:796", "fragment in the target"},
    {"request/uri.md:168", "fragment in the target"},
    {"request/uri.md:55", "the target names another host than Host"},
    {"request/uri.md:78", "the target names another host than Host"},
    {"request/uri.md:128", "the target names another host than Host"},
    {"request/uri.md:225", "user in the target"},
    {"response/connection.md:296", "101 unasked"},
    {"response/connection.md:334", "101 unasked"},
    {"response/sample.md:43", "RTSP is not HTTP"},
    {"response/sample.md:63", "ICE is not HTTP"},
    {"response/sample.md:648", "HTTP/0.9"},
    {"response/transfer-encoding.md:46", "a transfer coding other than chunked"},
    {"response/transfer-encoding.md:77", "two Transfer-Encoding fields"},
    {"response/transfer-encoding.md:115", "a transfer coding other than chunked"},
};

/* Versions of llhttp differ: older ones refuse. Either is right. */
static const known varies[] = {
    {"request/content-length.md:320", "tab around a length"},
    {"response/content-length.md:171", "tab around a length"},
    {"request/method.md:485", "the method QUERY"},
    {"request/transfer-encoding.md:241", "an extension after one with a value"},
    {"request/transfer-encoding.md:369", "escapes in the value of an extension"},
};

/* Not of the sort that can come out the same. */
static const known skipped[] = {
    {"request/content-length.md:447", "skipping the body of a request has no use here"},
};

/* Cases for leniency flags that need no refusal: what follows a message that closes is dropped unread. */
static const known harmless[] = {
    {"request/connection.md:113", "dropped"},
    {"request/connection.md:397", "dropped"},
    {"response/connection.md:196", "dropped"},
    {"response/connection.md:263", "dropped"},
};

/* Refused by llhttp at a byte where we still wait for the end of the line. */
static const known waits[] = {
    {"request/invalid.md:493", "a version in a line that never ends"},
};

static const char *look_up(const known *table, size_t n, const char *id) {
    for (size_t i = 0; i < n; i++) {
        if (strcmp(table[i].id, id) == 0) {
            return table[i].why;
        }
    }
    return NULL;
}
#define LOOK_UP(table, id) look_up((table), sizeof(table) / sizeof((table)[0]), (id))

/* One case of the llhttp corpus. */
typedef struct llhttp_case {
    char *id, *type;
    char *input; /* with a Host in every request that lacks one: the cases were not written for servers */
    size_t n;
    char *body; /* what llhttp says the bodies are */
    size_t body_len;
    int error; /* 0: none */
    unsigned messages, interim;
    bool skip_body;
} llhttp_case;

/* Whether the head that starts at `from` has a Host of its own. */
static bool has_host(const char *bytes, size_t from, size_t n) {
    for (size_t i = from; i + 5 < n; i++) {
        if (memcmp(bytes + i, "\r\n\r\n", 4) == 0) {
            return false;
        }
        if (bytes[i] == '\n' && ew__str_is_nocase(ew__str(bytes + i + 1, 5), EW_STR("host:"))) {
            return true;
        }
    }
    return false;
}

/* An event of the log: "off=17 version complete", "off=40 len=5 span[body]=...". */
static bool log_event(ew_str quoted, const char *event, size_t *ret_off, size_t *ret_len) {
    char line[64] = "";
    size_t n = quoted.len - 1 < sizeof(line) - 1 ? quoted.len - 1 : sizeof(line) - 1;
    memcpy(line, quoted.ptr + 1, n);
    const char *rest;
    char *end;
    if (strncmp(line, "off=", 4) != 0) {
        return false;
    }
    *ret_off = strtoul(line + 4, &end, 10);
    rest = end + 1;
    *ret_len = 0;
    if (strncmp(rest, "len=", 4) == 0) {
        *ret_len = strtoul(rest + 4, &end, 10);
        rest = end + 1;
    }
    return strncmp(rest, event, strlen(event)) == 0;
}

/* Copies the input, with a Host behind each request line that needs one, and gathers the bodies, as the log tells. */
static void splice(llhttp_case *l, const corpus *c, const char *raw, size_t n) {
    static const char host[] = "Host: h\r\n";
    ew_str log = ew_json_get(c->row, "/log");
    ew_json_iter it = {0};
    size_t copied = 0, off, len;
    l->input = malloc(n + 16 * (sizeof(host) - 1));
    l->body = malloc(n + 1);
    assert_true(l->input != NULL && l->body != NULL);
    while (ew_json_next(log, &it)) {
        if (log_event(it.value, "span[body]", &off, &len)) {
            memcpy(l->body + l->body_len, raw + off, len);
            l->body_len += len;
        }
        if (log_event(it.value, "headers complete status=1", &off, &len)) {
            l->interim++;
        }
        if (strncmp(l->type, "request", 7) == 0 && log_event(it.value, "version complete", &off, &len) &&
            off + 2 <= n && memcmp(raw + off, "\r\n", 2) == 0 && !has_host(raw, off, n)) {
            off += 2;
            memcpy(l->input + l->n, raw + copied, off - copied);
            l->n += off - copied;
            memcpy(l->input + l->n, host, sizeof(host) - 1);
            l->n += sizeof(host) - 1;
            copied = off;
        }
    }
    memcpy(l->input + l->n, raw + copied, n - copied);
    l->n += n - copied;
}

static void load(llhttp_case *l, const corpus *c) {
    size_t n;
    char *raw = (char *)corpus_hex(c, "/input_hex", &n);
    *l = (llhttp_case){.id = corpus_text(c, "/id"), .type = corpus_text(c, "/type")};
    l->error = (int)json_int_or(c->row, "/error_code", 0);
    l->messages = (unsigned)json_int_or(c->row, "/messages_complete", 0);
    l->skip_body = json_bool_or(c->row, "/meta/skipBody", false);
    splice(l, c, raw, n);
    free(raw);
}

static void unload(llhttp_case *l) {
    free(l->id);
    free(l->type);
    free(l->input);
    free(l->body);
}

enum { CLOSED_CONNECTION = 5, PAUSED_UPGRADE = 22 }; /* llhttp's codes for what is no fault of the sender's framing */

static bool like_llhttp(const llhttp_case *l, const http_trace *t) {
    return !t->failed && t->ends == l->messages - l->interim && t->body_len == l->body_len &&
           memcmp(t->body, l->body, l->body_len) == 0;
}

/* NULL, or what is wrong. A closed connection (error 5) is ours to see to: one message and silence. */
static const char *judge_strict(const llhttp_case *l, const http_trace *t) {
    if (l->error != 0 && l->error != CLOSED_CONNECTION && l->error != PAUSED_UPGRADE) {
        if (LOOK_UP(waits, l->id) != NULL) {
            return t->failed || t->heads > 0 ? "no longer waits" : NULL;
        }
        return t->failed ? NULL : "accepted";
    }
    if (LOOK_UP(refused, l->id) != NULL) {
        return t->failed ? NULL : "no longer refused";
    }
    if (t->failed && LOOK_UP(varies, l->id) != NULL) {
        return NULL;
    }
    return like_llhttp(l, t) ? NULL : t->failed ? "refused" : "read in another way";
}

static const char *judge_lenient(const llhttp_case *l, const http_trace *t) {
    if (LOOK_UP(harmless, l->id) != NULL) {
        return t->failed || t->ends != 1 || !t->closed ? "no longer harmless" : NULL;
    }
    return t->failed ? NULL : "accepted without its flag";
}

/* The peer closes after the input. */
static const char *judge_finish(const llhttp_case *l, const http_trace *t) {
    if (strncmp(l->type, "response", 8) == 0) {
        return !t->failed && t->ends == 1 ? NULL : "an answer without a length did not end";
    }
    return t->failed == (l->messages == 0) && t->ends == l->messages ? NULL : "wrong end";
}

static unsigned check_llhttp(const llhttp_case *l, bool strict) {
    http_trace t;
    bool finish = strstr(l->type, "-finish") != NULL;
    http_trace_how how = {.response = strncmp(l->type, "response", 8) == 0,
                          .eof = finish,
                          .no_body = l->skip_body,
                          .upgrade = l->error == PAUSED_UPGRADE};
    http_trace_run(&t, &how, l->input, l->n);
    const char *wrong = finish ? judge_finish(l, &t) : strict ? judge_strict(l, &t) : judge_lenient(l, &t);
    if (wrong != NULL) {
        print_error("%s (%s): %s; %s\n%.*s\n---\n%s\n", l->id, l->type, wrong, t.failed ? t.why : "", (int)l->n,
                    l->input, t.text);
    } else {
        http_trace_same(&t, &how, l->id, l->input, l->n);
    }
    http_trace_done(&t);
    return wrong != NULL;
}

static void test_frame_http1_corpus__llhttp(void **state) {
    (void)state;
    corpus c;
    if (!corpus_open(&c, EW_SHARED, "llhttp/llhttp-cases.jsonl")) {
        skip();
    }
    unsigned wrong = 0, run = 0;
    while (corpus_next(&c)) {
        llhttp_case l;
        load(&l, &c);
        /* A bare URL is no message. */
        if (strcmp(l.type, "url") != 0 && LOOK_UP(skipped, l.id) == NULL) {
            wrong += check_llhttp(&l, json_bool_or(c.row, "/strict", false));
            run++;
        }
        unload(&l);
    }
    corpus_close(&c);
    (void)printf("%u cases\n", run);
    assert_true(run > 240);
    assert_int_equal(wrong, 0);
}

/* ---- own-http1 ---- */

/* For the tests that have a socket: they hang on the Host list, on a limit of the body, or on time. */
static const known not_framing[] = {
    {"cl-1tb", "the limit of a body is known to the owner of the reader"},
};

static bool allows(const corpus *c, int from, int to) {
    ew_json_iter it = {0};
    ew_str ranges = ew_json_get(c->row, "/status");
    while (ew_json_next(ranges, &it)) {
        if (json_int_or(it.value, "/0", 0) <= to && json_int_or(it.value, "/1", 0) >= from) {
            return true;
        }
    }
    return false;
}

/* NULL, or what is wrong. A target that ew__http_target refuses is answered 400 by the owner. */
static const char *judge_own(const corpus *c, const http_trace *t) {
    unsigned answers = t->ends + (t->failed ? 1 : 0);
    int64_t most = json_int_or(c->row, "/responses", 1000);
    if (json_bool_or(c->row, "/waits", false)) {
        return answers == 0 ? NULL : "an answer came";
    }
    if (answers == 0) {
        return "no answer";
    }
    if (answers > (unsigned)most) {
        return "too many answers";
    }
    if (json_bool_or(c->row, "/closes", false) && !t->failed && !t->closed) {
        return "stays open";
    }
    if (t->ends == 0) {
        return allows(c, t->status, t->status) ? NULL : "wrong status";
    }
    return allows(c, 200, 299) || (t->bad_target && allows(c, 400, 400)) ? NULL : "accepted";
}

static void test_frame_http1_corpus__own(void **state) {
    (void)state;
    corpus c;
    if (!corpus_open(&c, EW_SHARED, "own-http1/http1-cases.jsonl")) {
        skip();
    }
    unsigned wrong = 0, run = 0;
    while (corpus_next(&c)) {
        size_t n;
        char *id = corpus_text(&c, "/id");
        char *bytes = (char *)corpus_hex(&c, "/send_hex", &n);
        if (LOOK_UP(not_framing, id) == NULL) {
            http_trace t;
            http_trace_how how = {0};
            http_trace_run(&t, &how, bytes, n);
            const char *what = judge_own(&c, &t);
            if (what != NULL) {
                print_error("%s: %s; %s\n%.*s\n---\n%s\n", id, what, t.failed ? t.why : "", (int)(n < 1000 ? n : 1000),
                            bytes, t.text);
                wrong++;
            } else if (n < 2000) {
                http_trace_same(&t, &how, id, bytes, n);
            }
            http_trace_done(&t);
            run++;
        }
        free(bytes);
        free(id);
    }
    corpus_close(&c);
    (void)printf("%u cases\n", run);
    assert_true(run > 80);
    assert_int_equal(wrong, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_frame_http1_corpus__llhttp),
        cmocka_unit_test(test_frame_http1_corpus__own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
