/*
 * fuzz/fuzz_ws.c: WebSocket: any bytes as frames (both roles) or as the answer to a handshake, and the same events
 * however they are cut. A whole frame and one that is cut go different ways through the codec, so this also compares
 * our reading of frames with wslay's. What was read is written again, by the other role, and must be read as the same.
 * The first byte of the input chooses what it is and the limit; the second how it is cut.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "frame/ws.h"
#include "frame/ws_handshake.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds) {
    if (!holds) {
        abort();
    }
}

static uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t n) {
    const uint8_t *p = bytes;
    for (size_t i = 0; i < n; i++) {
        hash = (hash ^ p[i]) * UINT64_C(0x100000001b3);
    }
    return hash;
}

/* ---- memory that is counted ---- */

typedef struct counter {
    size_t live, peak;
} counter;

static void *count_alloc(void *ud, void *ptr, size_t old_size, size_t new_size) {
    counter *c = ud;
    void *fresh = new_size > 0 ? realloc(ptr, new_size) : NULL;
    if (new_size == 0) {
        free(ptr);
    }
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

/* ---- frames ---- */

/* Whether a text is UTF-8, written down without cleverness. */
static bool is_utf8(const uint8_t *p, size_t n) {
    static const uint32_t least[] = {0, 0x80, 0x800, 0x10000};
    for (size_t i = 0, more; i < n; i += more + 1) {
        more = p[i] < 0x80 ? 0 : p[i] >> 5 == 6 ? 1 : p[i] >> 4 == 14 ? 2 : p[i] >> 3 == 30 ? 3 : 4;
        if (more > 3 || more >= n - i) {
            return false;
        }
        uint32_t c = more == 0 ? p[i] : p[i] & (0x3fu >> more);
        for (size_t k = 1; k <= more; k++) {
            if (p[i + k] >> 6 != 2) {
                return false;
            }
            c = c << 6 | (p[i + k] & 0x3f);
        }
        if (c < least[more] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000)) {
            return false;
        }
    }
    return true;
}

/* The other role sends the same message; it must arrive as such. */
static void write_again(ew__ws_scratch *scratch, bool server, ew__ws_event event, ew_str payload) {
    ew__ws from, to;
    uint8_t *bytes = malloc(payload.len + EW__WS_CONTROL_ROOM);
    if (bytes == NULL) {
        abort();
    }
    ew__ws_init(&from, scratch, !server, 0);
    ew__ws_init(&to, scratch, server, payload.len);
    bool control = event == EW__WS_PING || event == EW__WS_PONG;
    size_t n = event == EW__WS_PING   ? ew__ws_ping(&from, payload, bytes)
               : event == EW__WS_PONG ? ew__ws_pong(&from, payload, bytes)
                                      : ew__ws_head(&from, event == EW__WS_BINARY, payload.len, bytes);
    if (!control) {
        if (payload.len > 0) {
            memcpy(bytes + n, payload.ptr, payload.len);
        }
        if (server) {
            ew__ws_mask(bytes + n, payload.len, bytes + n - 4, 0);
        }
        n += payload.len;
    }
    uint64_t before = hash_bytes(1, payload.ptr, payload.len);
    check(ew__ws_feed(&to, bytes, n) == EW_OK && ew__ws_next(&to, 0) == event);
    ew_str again = ew__ws_payload(&to);
    check(again.len == payload.len && hash_bytes(1, again.ptr, again.len) == before);
    check(ew__ws_next(&to, 0) == EW__WS_MORE && ew__ws_is_idle(&to));
    ew__ws_done(&to);
    ew__ws_done(&from);
    free(bytes);
}

/* One event: into the hash, and what must hold of it. */
static uint64_t take_event(ew__ws *ws, ew__ws_scratch *other, ew__ws_event event, uint64_t hash) {
    uint8_t kind = (uint8_t)event, out[EW__WS_CONTROL_ROOM];
    ew_str payload = ew__ws_payload(ws);
    uint16_t code = event >= EW__WS_CLOSE ? ew__ws_code(ws) : 0;
    hash = hash_bytes(hash_bytes(hash_bytes(hash, &kind, 1), &code, 2), payload.ptr, payload.len);
    bool message = event == EW__WS_TEXT || event == EW__WS_BINARY;
    check(!message || payload.len <= ws->message.max);
    check(message || payload.len <= EW__WS_CONTROL_MAX);
    check(event != EW__WS_TEXT || is_utf8((const uint8_t *)payload.ptr, payload.len));
    check(event != EW__WS_ERROR || (ew__ws_code_ok(code) && strlen(ew__ws_error_text(ws)) < EW__WS_REASON_MAX));
    check(event != EW__WS_CLOSE || code == EW__WS_NO_CODE || ew__ws_code_ok(code));
    if (event < EW__WS_CLOSE) {
        write_again(other, ws->server, event, payload);
    }
    size_t n = ew__ws_answer(ws, out);
    check(n <= sizeof(out) && (n > 0) == (event == EW__WS_PING || event >= EW__WS_CLOSE));
    return hash;
}

static size_t next_piece(uint64_t *pieces, size_t left) {
    if (*pieces == 0) {
        return left;
    }
    *pieces = *pieces * UINT64_C(6364136223846793005) + 1442695040888963407u;
    size_t want = 1 + (*pieces >> 33) % (*pieces >> 61 == 0 ? 300 : 9);
    return left < want ? left : want;
}

/* pieces: 0 for one piece, else a seed for their sizes. */
static uint64_t run_frames(ew__ws_scratch *scratch, counter *c, bool server, size_t max, const uint8_t *data,
                           size_t size, uint64_t pieces) {
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    ew__ws_scratch *other = scratch + 1;
    ew__ws_event event = EW__WS_MORE;
    ew__ws ws;
    ew__ws_init(&ws, scratch, server, max);
    c->peak = c->live;
    size_t before = c->live;
    for (size_t at = 0, n; at < size && event == EW__WS_MORE && !ws.close_got; at += n) {
        n = next_piece(&pieces, size - at);
        uint8_t *piece = malloc(n); /* of its own, so that AddressSanitizer sees a read past its end */
        check(piece != NULL);
        memcpy(piece, data + at, n);
        check(ew__ws_feed(&ws, piece, n) == EW_OK);
        size_t turns = n + 2;
        while ((event = ew__ws_next(&ws, 0)) != EW__WS_MORE) {
            hash = take_event(&ws, other, event, hash);
            check(turns-- > 0);
            if (event == EW__WS_ERROR) {
                break;
            }
        }
        free(piece);
    }
    check(c->peak - before <= 2 * (max < size ? max : size) + 4096);
    bool idle = ew__ws_is_idle(&ws);
    check(!idle || (ws.message.ptr == NULL && ws.decoder == NULL));
    ew__ws_done(&ws);
    return hash_bytes(hash, &idle, 1);
}

static void fuzz_frames(ew__ws_scratch *scratch, counter *c, uint8_t how, const uint8_t *data, size_t size,
                        uint64_t seed) {
    static const size_t limits[] = {12, 200, 70000, 1 << 24};
    bool server = (how & 1) != 0;
    size_t max = limits[how >> 2 & 3];
    uint64_t whole = run_frames(scratch, c, server, max, data, size, 0);
    check(run_frames(scratch, c, server, max, data, size, seed) == whole);
    check(run_frames(scratch, c, server, max, data, size, ~seed) == whole);
}

/* ---- the answer to a handshake ---- */

static uint64_t run_answer(const ew_env *env, const uint8_t *data, size_t size, uint64_t pieces) {
    static const uint8_t key[EW__WS_KEY_SIZE] = "the sample nonce";
    ew__ws_dial dial;
    ew__ws_dialled event = EW__WS_DIAL_MORE;
    size_t all = 0, used;
    ew__ws_dial_init(&dial, env, key, EW_STR("a, chat"));
    for (size_t at = 0, n; at < size && event == EW__WS_DIAL_MORE; at += n) {
        n = next_piece(&pieces, size - at);
        event = ew__ws_dial_feed(&dial, data + at, n, &used);
        check(used <= n && (event != EW__WS_DIAL_MORE || used == n));
        all += used;
    }
    check(all <= EW__WS_ANSWER_MAX);
    check(event != EW__WS_DIAL_BAD || strlen(dial.why) > 0);
    uint64_t hash = hash_bytes((uint64_t)event, dial.reason.ptr, dial.reason.len);
    hash = hash_bytes(hash, dial.protocol.ptr, dial.protocol.len);
    hash = event == EW__WS_DIAL_BAD ? hash : hash_bytes(hash, &all, sizeof(all));
    hash = hash_bytes(hash, &dial.status, sizeof(dial.status));
    ew__ws_dial_done(&dial);
    return hash;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static ew__ws_scratch scratch[2]; /* large; nothing of one input is left for the next */
    counter c = {0, 0};
    ew_env env = {.alloc = count_alloc, .now_ns = no_time, .wall_ms = no_time, .random = some_bytes, .ud = &c};
    if (size < 2) {
        return 0;
    }
    uint64_t seed = hash_bytes(data[1] + 1u, data, size) | 1;
    if ((data[0] & 2) != 0) {
        uint64_t whole = run_answer(&env, data + 2, size - 2, 0);
        check(run_answer(&env, data + 2, size - 2, seed) == whole);
    } else {
        ew__ws_scratch_init(&scratch[0], &env);
        ew__ws_scratch_init(&scratch[1], ew_env_default());
        fuzz_frames(scratch, &c, data[0], data + 2, size - 2, seed);
        ew__ws_scratch_done(&scratch[0]);
        ew__ws_scratch_done(&scratch[1]);
    }
    check(c.live == 0);
    return 0;
}
