/*
 * tests/support/http_trace.c: see http_trace.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/http_trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const ew__http1_limits http_trace_limits = {
    .head_bytes = 32 * 1024, .head_fields = 100, .target_bytes = 8 * 1024, .chunk_extension_bytes = 4 * 1024};

/* One run. */
typedef struct run {
    http_trace *t;
    const http_trace_how *how;
    ew__http1 *http;
    FILE *text, *body;
    bool in_body;
    bool stop;
} run;

static void put_head(run *r) {
    const ew__http_head *h = ew__http1_head(r->http);
    (void)fprintf(r->text, "head %d %.*s %d 1.%d%s%s%s%s", (int)h->method, (int)h->target.len,
                  h->target.ptr != NULL ? h->target.ptr : "", h->status, h->minor, h->keep_alive ? " keep" : "",
                  h->expect_continue ? " expect" : "", h->upgrade ? " upgrade" : "", h->chunked ? " chunked" : "");
    (void)fprintf(r->text, h->has_length ? " length %llu\n" : " no length\n", (unsigned long long)h->length);
    for (uint32_t i = 0; i < h->n_fields; i++) {
        (void)fprintf(r->text, "%.*s=%.*s\n", (int)h->fields[i].name.len, h->fields[i].name.ptr,
                      (int)h->fields[i].value.len, h->fields[i].value.ptr);
    }
}

static void on_head(run *r) {
    const ew__http_head *h = ew__http1_head(r->http);
    r->t->heads++;
    if (h->target.len > 0) {
        char *out = malloc(h->target.len);
        ew_str path, query;
        assert_non_null(out);
        r->t->bad_target = r->t->bad_target || ew__http_target(h->target, out, &path, &query) != EW_OK;
        free(out);
    }
    if (!r->how->keep) {
        put_head(r);
    } else if (ew__http1_keep_head(r->http) != EW_OK) {
        r->t->no_memory = true;
        r->stop = true;
    }
}

static void on_event(run *r, ew__http_event event) {
    if (event == EW__HTTP_BODY) {
        ew_str body = ew__http1_body(r->http);
        assert_true(body.len > 0);
        if (!r->how->keep) {
            (void)fwrite(r->in_body ? "" : "body ", 1, r->in_body ? 0 : 5, r->text);
            (void)fwrite(body.ptr, 1, body.len, r->text);
        }
        (void)fwrite(body.ptr, 1, body.len, r->body);
        r->in_body = true;
        return;
    }
    if (r->in_body && !r->how->keep) {
        (void)fputc('\n', r->text);
    }
    r->in_body = false;
    if (event == EW__HTTP_HEAD_DONE) {
        on_head(r);
    } else if (event == EW__HTTP_END) {
        if (r->how->keep) {
            put_head(r);
        }
        (void)fputs("end\n", r->text);
        r->t->ends++;
        r->t->closed = !ew__http1_head(r->http)->keep_alive;
        r->t->upgraded = ew__http1_head(r->http)->upgrade;
        r->stop = r->how->upgrade && r->t->upgraded;
        if (r->how->no_body) {
            ew__http1_expect_no_body(r->http);
        }
    } else {
        r->t->failed = r->stop = true;
        r->t->status = ew__http1_error_status(r->http);
        r->t->why = ew__http1_error_text(r->http);
        (void)fprintf(r->text, "error %d\n", r->t->status);
        assert_int_equal(ew__http1_next(r->http), EW__HTTP_ERROR);
    }
}

static void drain(run *r) {
    while (!r->stop) {
        ew__http_event event = ew__http1_next(r->http);
        if (event == EW__HTTP_MORE) {
            assert_int_equal(ew__http1_unread(r->http), 0);
            return;
        }
        on_event(r, event);
    }
}

static void feed(run *r, const char *bytes, size_t n) {
    char *piece = malloc(n > 0 ? n : 1);
    assert_non_null(piece);
    if (n > 0) {
        memcpy(piece, bytes, n);
    }
    assert_int_equal(ew__http1_feed(r->http, piece, n), EW_OK);
    drain(r);
    free(piece);
}

static void feed_all(run *r, const char *bytes, size_t n) {
    const http_trace_how *how = r->how;
    size_t at = 0;
    while (at < n && !r->stop) {
        size_t piece = how->step > 0 ? how->step : at == 0 && how->cut > 0 ? how->cut : n - at;
        piece = piece < n - at ? piece : n - at;
        feed(r, bytes + at, piece);
        at += piece;
    }
    if (how->eof && !r->stop) {
        ew__http1_feed_eof(r->http);
        drain(r);
    }
}

void http_trace_run(http_trace *t, const http_trace_how *how, const void *bytes, size_t n) {
    *t = (http_trace){0};
    ew__http1_scratch *own = calloc(1, sizeof(*own)), *scratch = how->scratch != NULL ? how->scratch : own;
    run r = {.t = t, .how = how, .http = aligned_alloc(16, (ew__http1_size() + 15) / 16 * 16)};
    r.text = open_memstream(&t->text, &t->text_len);
    r.body = open_memstream(&t->body, &t->body_len);
    assert_true(own != NULL && r.http != NULL && r.text != NULL && r.body != NULL);
    ew__http1_init(r.http, how->env != NULL ? how->env : ew_env_default(),
                   how->limits != NULL ? how->limits : &http_trace_limits, !how->response, scratch);
    if (how->no_body) {
        ew__http1_expect_no_body(r.http);
    }
    feed_all(&r, bytes, n);
    if (r.in_body && !how->keep) {
        (void)fputc('\n', r.text);
    }
    ew__http1_done(r.http);
    (void)fclose(r.text);
    (void)fclose(r.body);
    free(r.http);
    free(own);
}

void http_trace_done(http_trace *t) {
    free(t->text);
    free(t->body);
    *t = (http_trace){0};
}

static void check_same(const http_trace *t, const http_trace_how *how, const char *id, const void *bytes, size_t n) {
    http_trace other;
    http_trace_run(&other, how, bytes, n);
    bool same = other.text_len == t->text_len && memcmp(other.text, t->text, t->text_len) == 0 &&
                other.body_len == t->body_len && memcmp(other.body, t->body, t->body_len) == 0 &&
                other.status == t->status;
    if (!same) {
        print_error("%s: step %zu, cut %zu:\n%s\n%s\ninstead of\n%s\n%s\n", id, how->step, how->cut, other.text,
                    other.failed ? other.why : "", t->text, t->failed ? t->why : "");
        fail();
    }
    http_trace_done(&other);
}

void http_trace_same(const http_trace *t, const http_trace_how *how, const char *id, const void *bytes, size_t n) {
    http_trace_how h = *how;
    for (h.step = 1; h.step <= 7; h.step++) {
        check_same(t, &h, id, bytes, n);
    }
    h.step = 0;
    for (h.cut = 1; h.cut < n; h.cut++) {
        check_same(t, &h, id, bytes, n);
    }
    /* Kept heads are written down at another place, so they have a trace of their own to agree with. */
    http_trace kept;
    h = *how;
    h.keep = true;
    http_trace_run(&kept, &h, bytes, n);
    h.step = 1;
    check_same(&kept, &h, id, bytes, n);
    assert_int_equal(kept.ends, t->ends);
    assert_int_equal(kept.heads, t->heads);
    http_trace_done(&kept);
}
