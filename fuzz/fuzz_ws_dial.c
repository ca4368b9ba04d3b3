/*
 * fuzz/fuzz_ws_dial.c: a WebSocket client whose server sends any bytes: the answer to the opening handshake, and frames
 * right behind it. The first byte of the input chooses whether a good answer is sent first, and the limit of a message;
 * the second how the bytes are cut into reads.
 *
 * Whatever comes, and however it is cut: the same events follow, every answer of ours is a masked frame, memory is
 * bounded by the limit and the bytes that came, and nothing is left behind.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/util.h"
#include "frame/ws.h"
#include "frame/ws_handshake.h"
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define GOOD_ANSWER                                                                                                    \
    "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: "          \
    "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\nSec-WebSocket-Protocol: chat\r\n\r\n"

static void check(bool holds) {
    if (!holds)
        abort();
}

/* ---- memory that is counted ---- */

typedef struct counter {
    size_t live, peak;
} counter;

static void *count_alloc(void *ud, void *ptr, size_t old_size, size_t new_size) {
    counter *c = ud;
    void *fresh = new_size > 0 ? realloc(ptr, new_size) : NULL;
    if (new_size == 0)
        free(ptr);
    check(new_size == 0 || fresh != NULL);
    c->live = c->live - old_size + new_size;
    c->peak = c->live > c->peak ? c->live : c->peak;
    return fresh;
}

static uint64_t no_time(void *ud) {
    (void)ud;
    return 0;
}

static void some_bytes(void *ud, void *bytes, size_t n) {
    (void)ud;
    memset(bytes, 0x5a, n);
}

/* ---- one connection ---- */

typedef struct client {
    ew__ws_dial dial;
    ew__ws ws;
    ew__ws_dialled dialled;
    bool over;     /* nothing more is read */
    uint64_t hash; /* of all that happened */
} client;

static void note(client *c, const void *bytes, size_t n) {
    for (size_t i = 0; i < n; i++)
        c->hash = (c->hash ^ ((const uint8_t *)bytes)[i]) * UINT64_C(0x100000001b3);
}

static void note_number(client *c, uint64_t number) { note(c, &number, sizeof number); }

/* *at goes on behind what belongs to the answer. */
static void take_answer(client *c, const uint8_t *bytes, size_t n, size_t *at) {
    size_t used = 0;
    c->dialled = ew__ws_dial_feed(&c->dial, bytes, n, &used);
    check(used <= n && (c->dialled != EW__WS_DIAL_MORE || used == n));
    *at = used;
    if (c->dialled == EW__WS_DIAL_MORE)
        return;
    note_number(c, (uint64_t)c->dialled);
    note(c, c->dial.protocol.ptr, c->dial.protocol.len);
    note(c, c->dial.reason.ptr, c->dial.reason.len);
    c->over = c->dialled != EW__WS_DIAL_OPEN;
    if (c->dialled == EW__WS_DIAL_REFUSED)
        check(c->dial.status != 101 && c->dial.status >= 100 && c->dial.status <= 999);
    if (c->dialled == EW__WS_DIAL_BAD)
        check(c->dial.why != NULL && c->dial.why[0] != '\0');
}

static void take_event(client *c, ew__ws_event event) {
    uint8_t out[EW__WS_CONTROL_ROOM];
    ew_str payload = ew__ws_payload(&c->ws);
    note_number(c, (uint64_t)event);
    note(c, payload.ptr, payload.len);
    c->over = event >= EW__WS_CLOSE;
    if (c->over)
        note_number(c, ew__ws_code(&c->ws));
    size_t n = ew__ws_answer(&c->ws, out);
    check(n <= sizeof out && (n == 0 || (n >= 6 && (out[1] & 0x80) != 0)));
    check((n > 0) == (event == EW__WS_PING || event >= EW__WS_CLOSE));
}

static void take_frames(client *c, const uint8_t *bytes, size_t n) {
    size_t turns = n + 2;
    check(ew__ws_feed(&c->ws, bytes, n) == EW_OK);
    for (ew__ws_event event; !c->over && (event = ew__ws_next(&c->ws, 0)) != EW__WS_MORE;) {
        check(turns-- > 0);
        take_event(c, event);
    }
}

static void take(client *c, const uint8_t *bytes, size_t n) {
    size_t at = 0;
    uint8_t *piece = malloc(n); /* of its own, so that AddressSanitizer sees a read past its end */
    check(piece != NULL);
    memcpy(piece, bytes, n);
    if (c->dialled == EW__WS_DIAL_MORE)
        take_answer(c, piece, n, &at);
    if (!c->over && c->dialled == EW__WS_DIAL_OPEN && at < n)
        take_frames(c, piece + at, n - at);
    free(piece);
}

static size_t next_piece(uint64_t *pieces, size_t left) {
    if (*pieces == 0)
        return left;
    *pieces = *pieces * UINT64_C(6364136223846793005) + 1442695040888963407u;
    size_t want = 1 + (*pieces >> 33) % (*pieces >> 61 == 0 ? 300 : 9);
    return left < want ? left : want;
}

/* pieces: 0 for one piece, else a seed for their sizes. */
static uint64_t run(const ew_env *env, uint8_t how, const uint8_t *data, size_t size, uint64_t pieces) {
    static const uint8_t key[EW__WS_KEY_SIZE] = "the sample nonce";
    static const size_t limits[] = {12, 200, 70000, 1 << 24};
    static ew__ws_scratch scratch; /* large; nothing of one input is left for the next */
    client c = {.dialled = EW__WS_DIAL_MORE, .hash = UINT64_C(0xcbf29ce484222325)};
    size_t max = limits[how >> 1 & 3];
    counter *memory = env->ud;
    ew__ws_scratch_init(&scratch, env);
    ew__ws_dial_init(&c.dial, env, key, EW_STR("a, chat"));
    ew__ws_init(&c.ws, &scratch, false, max);
    memory->peak = memory->live;
    if (how & 1)
        take(&c, (const uint8_t *)GOOD_ANSWER, sizeof GOOD_ANSWER - 1);
    check(!(how & 1) || c.dialled == EW__WS_DIAL_OPEN);
    for (size_t at = 0, n; at < size && !c.over; at += n) {
        n = next_piece(&pieces, size - at);
        take(&c, data + at, n);
    }
    check(memory->peak <= 2 * (max < size ? max : size) + EW__WS_ANSWER_MAX + 16384);
    ew__ws_done(&c.ws);
    ew__ws_dial_done(&c.dial);
    ew__ws_scratch_done(&scratch);
    return c.hash;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    counter c = {0, 0};
    const ew_env env = {.alloc = count_alloc, .now_ns = no_time, .wall_ms = no_time, .random = some_bytes, .ud = &c};
    if (size < 2)
        return 0;
    uint64_t whole = run(&env, data[0], data + 2, size - 2, 0);
    check(run(&env, data[0], data + 2, size - 2, data[1] * UINT64_C(0x9e3779b97f4a7c15) | 1) == whole);
    check(c.live == 0);
    return 0;
}
