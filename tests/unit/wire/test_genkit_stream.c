/*
 * tests/unit/wire/test_genkit_stream.c: the corpus of streamed answers through the calling side of the http wire:
 * each body whole and split at every byte must give the same chunks and the same end.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "support/corpus.h"
#include "support/json_or.h"
#include "support/rig.h"
#include "wire/http/http.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static const char head[] = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";

/* What came of it, as one line: "chunk JSON ... done JSON" or "... fail STATUS" or "... broken". */
static void describe(const rig_call *rc, char *out, size_t size) {
    size_t n = 0;
    for (size_t i = 0; i < rc->n_chunks; i++)
        n += (size_t)snprintf(out + n, size - n, "chunk %s ", rc->chunks[i]);
    assert_int_equal(rc->ended, 1);
    if (rc->status == EW_STATUS_OK)
        (void)snprintf(out + n, size - n, "done %s", rc->result);
    else if (rc->origin == EW_ORIGIN_ACTION)
        (void)snprintf(out + n, size - n, "fail %s", ew_status_name(rc->status));
    else
        (void)snprintf(out + n, size - n, "broken");
}

static void answer_with(const unsigned char *body, size_t len, size_t split, char *out, size_t size) {
    rig r;
    rig_init(&r, &ew__wire_http, &(rig_options){.seed = 1});
    rig_pair *pair = rig_connect_raw(&r, RIG_SERVER);
    rig_call *rc = rig_open(pair, &(rig_request){.key = "/x/y", .stream = true});
    rig_run(&r);
    rig_say(pair, head, sizeof head - 1);
    rig_run(&r);
    rig_say(pair, body, split);
    rig_run(&r);
    rig_say(pair, body + split, len - split);
    rig_run(&r);
    rig_say_eof(pair);
    rig_run(&r);
    describe(rc, out, size);
    rig_finish(&r);
}

/* ---- what the corpus expects, in the same words ---- */

/* Texts compare by their decoded value: the corpus writes them with other escapes. */
static bool same_value(ew_str a, ew_str b) {
    char left[200], right[200];
    size_t n = 0, m = 0;
    if (ew_json_typeof(a) != EW_JSON_STRING)
        return ew_str_eq(a, b);
    return ew_json_string(a, left, sizeof left, &n) == EW_OK && ew_json_string(b, right, sizeof right, &m) == EW_OK &&
           n == m && memcmp(left, right, n) == 0;
}

static bool matches(ew_str expect, const rig_call *rc) {
    ew_json_iter it = {0};
    size_t n = 0;
    ew_str messages = ew_json_member(expect, EW_STR("messages")), result = ew_json_member(expect, EW_STR("result"));
    while (ew_json_next(messages, &it)) {
        if (n >= rc->n_chunks || !same_value(it.value, ew_str_from(rc->chunks[n])))
            return false;
        n++;
    }
    if (n != rc->n_chunks)
        return false;
    if (ew_json_member(expect, EW_STR("failure")).len)
        return rc->status != EW_STATUS_OK && rc->origin != EW_ORIGIN_ACTION;
    ew_str error = json_str_or(expect, "/error", ew__str(NULL, 0));
    if (error.len)
        return rc->origin == EW_ORIGIN_ACTION && rc->status != EW_STATUS_OK &&
               ew_str_eq(error, ew_str_from(ew_status_name(rc->status)));
    return rc->status == EW_STATUS_OK && same_value(result, ew_str_from(rc->result));
}

static bool matches_any(ew_str expect, const rig_call *rc) {
    ew_json_iter it = {0};
    ew_str any = ew_json_member(expect, EW_STR("any"));
    if (!any.len)
        return matches(expect, rc);
    while (ew_json_next(any, &it))
        if (matches(it.value, rc))
            return true;
    return false;
}

static void check_whole(const corpus *c, const unsigned char *body, size_t len) {
    rig r;
    rig_init(&r, &ew__wire_http, &(rig_options){.seed = 1});
    rig_pair *pair = rig_connect_raw(&r, RIG_SERVER);
    rig_call *rc = rig_open(pair, &(rig_request){.key = "/x/y", .stream = true});
    rig_run(&r);
    rig_say(pair, head, sizeof head - 1);
    rig_say(pair, body, len);
    rig_say_eof(pair);
    rig_run(&r);
    if (!matches_any(ew_json_member(c->row, EW_STR("expect")), rc)) {
        char got[500];
        describe(rc, got, sizeof got);
        fail_msg("row %zu: %s", c->n_row, got);
    }
    rig_finish(&r);
}

static void test_wire_genkit_stream__corpus(void **state) {
    (void)state;
    corpus c;
    unsigned n = 0;
    if (!corpus_open(&c, EW_SHARED, "own-genkit-stream/genkit-stream-cases.jsonl"))
        skip();
    for (; corpus_next(&c); n++) {
        size_t len = 0;
        unsigned char *body = corpus_hex(&c, "/body_hex", &len);
        char whole[1000], split[1000];
        check_whole(&c, body, len);
        answer_with(body, len, len, whole, sizeof whole);
        for (size_t at = 0; at < len; at++) {
            answer_with(body, len, at, split, sizeof split);
            assert_string_equal(split, whole);
        }
        free(body);
    }
    corpus_close(&c);
    assert_true(n >= 14);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_wire_genkit_stream__corpus)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
