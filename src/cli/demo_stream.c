/*
 * cli/demo_stream.c: the two demo actions that produce chunks: count, one chunk per turn of the loop with a pause
 * between them, and stream, as fast as the reader takes them. Both hold when the reader is behind, which is the pattern
 * that every producer should follow.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/demo.h"
#include <string.h>

typedef struct producer {
    int64_t n;    /* how many chunks there are to be */
    int64_t sent; /* how many went out */
    uint64_t delay_ms;
} producer;

/* A producer in the call's memory, or NULL: the call was ended. */
static producer *producer_new(ew_call *call, int64_t n, uint64_t delay_ms) {
    producer *p = ew_call_alloc(call, sizeof *p);
    if (!p) {
        (void)ew_call_fail(call, EW_STATUS_RESOURCE_EXHAUSTED, NULL);
        return NULL;
    }
    *p = (producer){.n = n, .delay_ms = delay_ms};
    return ew__demo_mind_cancel(call) ? p : NULL;
}

/* ---- count ---- */

static void count_step(ew_call *call, void *arg) {
    producer *p = arg;
    ew_err err = EW_OK;
    if (p->sent < p->n) {
        err = ew_call_chunkf(call, "{\"i\":%lld}", (long long)++p->sent);
        if (!ew__demo_sent(call, err)) {
            return;
        }
    }
    if (p->sent == p->n) {
        (void)ew_call_donef(call, "{\"count\":%lld}", (long long)p->n);
    } else if (err == EW_FULL) {
        ew__demo_on_room(call, count_step, p);
    } else {
        ew__demo_later(call, p->delay_ms, count_step, p);
    }
}

void ew__demo_count(ew_call *call, void *arg) {
    (void)arg;
    int64_t n = 10, delay = 0;
    if (!ew__demo_int(call, "n", 0, EW__DEMO_CHUNKS_MAX, EW_STATUS_INVALID_ARGUMENT, &n) ||
        !ew__demo_int(call, "delay_ms", 0, EW__DEMO_MS_MAX, EW_STATUS_INVALID_ARGUMENT, &delay)) {
        return;
    }
    producer *p = producer_new(call, n, (uint64_t)delay);
    if (p) {
        count_step(call, p);
    }
}

/* ---- stream ---- */

static size_t add(char *out, const char *text, size_t n) {
    memcpy(out, text, n);
    return n;
}

/* {"index":i,"text":"chunk number i"}: by hand, because benchmarks measure the library and not printf. */
static ew_str chunk_text(int64_t i, char out[96]) {
    char digits[20];
    size_t at = sizeof digits, n = 0;
    do {
        digits[--at] = (char)('0' + i % 10);
        i /= 10;
    } while (i > 0);
    n += add(out + n, "{\"index\":", 9);
    n += add(out + n, digits + at, sizeof digits - at);
    n += add(out + n, ",\"text\":\"chunk number ", 22);
    n += add(out + n, digits + at, sizeof digits - at);
    n += add(out + n, "\"}", 2);
    return (ew_str){out, n};
}

static void stream_turn(ew_call *call, void *arg) {
    producer *p = arg;
    char text[96];
    for (int i = 0; i < EW__DEMO_PER_TURN && p->sent < p->n; i++) {
        ew_err err = ew_call_chunk(call, chunk_text(p->sent, text));
        if (!ew__demo_sent(call, err)) {
            return;
        }
        p->sent++;
        if (err == EW_FULL && p->sent < p->n) {
            ew__demo_on_room(call, stream_turn, p);
            return;
        }
    }
    if (p->sent < p->n) {
        ew__demo_later(call, 0, stream_turn, p);
    } else {
        (void)ew_call_done(call, ew_call_input(call));
    }
}

/* Any input will do, because it is returned; only an object can hold an n. */
void ew__demo_stream(ew_call *call, void *arg) {
    (void)arg;
    int64_t n = 100;
    if (ew_json_typeof(ew_call_input(call)) == EW_JSON_OBJECT &&
        !ew__demo_int(call, "n", 0, EW__DEMO_CHUNKS_MAX, EW_STATUS_INVALID_ARGUMENT, &n)) {
        return;
    }
    producer *p = producer_new(call, ew_call_wants_chunks(call) ? n : 0, 0);
    if (p) {
        stream_turn(call, p);
    }
}
