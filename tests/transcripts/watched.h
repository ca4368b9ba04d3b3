/*
 * tests/transcripts/watched.h: every transcript is also looked at by the one who cuts connections into frames for people
 * (frame/cutter.h): in whatever pieces the bytes come, none is lost, and where nobody breaks the framing each is part of a
 * frame of that wire.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EW_TESTS_WATCHED_H
#define EW_TESTS_WATCHED_H

#include "frame/cutter.h"
#include "support/rig.h"
#include <stdlib.h>

#include <cmocka.h>

typedef struct watched {
    ew__cutter cutter;
    uint64_t fed[2], seen[2];
    unsigned kinds[EW_FRAME_LINE + 1];
    char *bytes[2];
} watched;

static void watched_frame(ew__cutter *cutter, const ew_frame *frame) {
    watched *w = cutter->ud;
    assert_int_equal(frame->bytes.len, frame->size); /* nothing is so long that it is cut */
    assert_memory_equal(w->bytes[frame->out] + w->seen[frame->out], frame->bytes.ptr, frame->size);
    w->seen[frame->out] += frame->size;
    w->kinds[frame->kind]++;
}

static void watched_add(watched *w, int from, const void *bytes, size_t n) {
    w->bytes[from] = realloc(w->bytes[from], (size_t)w->fed[from] + n);
    assert_non_null(w->bytes[from]);
    memcpy(w->bytes[from] + w->fed[from], bytes, n);
    w->fed[from] += n;
    ew__cutter_feed(&w->cutter, from, bytes, n);
}

/* Transcripts of frames begin behind the handshake: it is made up here. */
static void watched_upgrade(watched *w) {
    static const char ask[] = "GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\n\r\n";
    static const char yes[] = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n";
    watched_add(w, 0, ask, sizeof ask - 1);
    watched_add(w, 1, yes, sizeof yes - 1);
}

static void watched_bytes(rig_pair *pair, int from, const uint8_t *bytes, size_t n) {
    watched *w = pair->watched;
    if (!w) {
        w = pair->watched = calloc(1, sizeof *w);
        assert_non_null(w);
        ew__cutter_init(&w->cutter, ew_env_default(), SIZE_MAX / 4, 1 << 20, watched_frame, w);
        if (strcmp(pair->rig->wire->name, "reflection") == 0 && !pair->rig->handshake)
            watched_upgrade(w);
    }
    watched_add(w, from, bytes, n);
}

/* All has been said. */
static void watched_end(rig *r, bool frames, bool lengths) {
    r->watch = NULL; /* what is cut off at the end is not looked at */
    for (rig_pair *pair = r->pairs; pair; pair = pair->next) {
        watched *w = pair->watched;
        if (!w)
            continue;
        ew__cutter_end(&w->cutter);
        assert_int_equal(w->seen[0], w->fed[0]);
        assert_int_equal(w->seen[1], w->fed[1]);
        assert_true(!frames || w->kinds[EW_FRAME_LENGTH] + w->kinds[EW_FRAME_LINE] == 0);
        assert_true(!lengths || w->kinds[EW_FRAME_WEBSOCKET] == 0);
        ew__cutter_done(&w->cutter);
        free(w->bytes[0]);
        free(w->bytes[1]);
        free(w);
        pair->watched = NULL;
    }
}

#endif
