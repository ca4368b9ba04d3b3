/*
 * tests/unit/wire/stepflow_http_ear.h: where our replies to what a component server asks arrive: they come on connections
 * of their own, and what is said there is only kept.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EW_TESTS_STEPFLOW_HTTP_EAR_H
#define EW_TESTS_STEPFLOW_HTTP_EAR_H

#include "unit/wire/stepflow_http_world.h"

static struct {
    char bytes[600 * 1000];
    size_t len;
    unsigned n;
} heard;

static inline ew_err ear_init(ew__peer *peer) {
    (void)peer;
    heard.n++;
    return EW_OK;
}

static inline void ear_input(ew__peer *peer, const uint8_t *bytes, size_t n) {
    (void)peer;
    assert_true(heard.len + n < sizeof heard.bytes);
    memcpy(heard.bytes + heard.len, bytes, n);
    heard.len += n;
    heard.bytes[heard.len] = '\0';
}

static inline void ear_eof(ew__peer *peer) { peer->conn->ops->finish(peer->conn); }

static inline void ear_gone(ew__peer *peer, ew_err why) {
    (void)peer;
    (void)why;
}

static const ew__wire ear = {.name = "ear",
                             .serve_size = sizeof(ew__peer),
                             .init = ear_init,
                             .input = ear_input,
                             .eof = ear_eof,
                             .gone = ear_gone};

/* One reply has come since the last one; its head for free(). */
static inline char *hear_reply_head_at(world *w, const char *body, int line) {
    const char *blank = heard.len ? strstr(heard.bytes, "\r\n\r\n") : NULL;
    if (!blank || heard.n != 1)
        fail_msg("line %d: %u replies came: %s", line, heard.n, heard.len ? heard.bytes : "");
    size_t n = (size_t)(blank - heard.bytes) + 4;
    peer_check_text(w->ids, body, heard.bytes + n, heard.len - n, line);
    char *head = strndup(heard.bytes, n - 2);
    heard.len = heard.n = 0;
    return head;
}
#define hear_reply_head(w, body) hear_reply_head_at((w), (body), __LINE__)
#define hear_reply(w, body) free(hear_reply_head_at((w), (body), __LINE__))

#endif
