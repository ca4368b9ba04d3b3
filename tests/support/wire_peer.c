/*
 * tests/support/wire_peer.c: texts with placeholders, and checks of calls.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "support/wire_peer.h"

static char plain_char(char c) { return c == '\'' ? '"' : c == '^' ? '\'' : c; }
static bool is_id(const char *text) { return *text == '$' && text[1] >= '1' && text[1] <= '9'; }

char *peer_expand(peer_ids ids, const char *text) {
    size_t n = 0;
    char *out = malloc((strlen(text) / 2 + 1) * PEER_ID_ROOM);
    assert_non_null(out);
    for (; *text; text++) {
        if (is_id(text)) {
            const char *id = ids[*++text - '0'];
            memcpy(out + n, id, strlen(id));
            n += strlen(id);
        } else {
            out[n++] = plain_char(*text);
        }
    }
    out[n] = '\0';
    return out;
}

/* The length of the string at `got` if it is the stored one, or the first one, which is stored. Else 0. */
static size_t match_id(char stored[PEER_ID_ROOM], const char *got, size_t n) {
    const char *end = n > 1 && got[0] == '"' ? memchr(got + 1, '"', n - 1) : NULL;
    size_t len = end ? (size_t)(end + 1 - got) : 0;
    if (len == 0 || len >= PEER_ID_ROOM || (stored[0] && (strlen(stored) != len || memcmp(stored, got, len) != 0)))
        return 0;
    memcpy(stored, got, len);
    return len;
}

bool peer_matches(peer_ids ids, const char *pattern, const char *got, size_t n) {
    for (; *pattern; pattern++) {
        size_t used = 1;
        if (is_id(pattern))
            used = match_id(ids[*++pattern - '0'], got, n);
        else if (n == 0 || *got != plain_char(*pattern))
            used = 0;
        if (used == 0)
            return false;
        got += used;
        n -= used;
    }
    return n == 0;
}

void peer_check_text(peer_ids ids, const char *pattern, const char *got, size_t n, int line) {
    if (!peer_matches(ids, pattern, got, n))
        fail_msg("line %d: expected\n%s\ngot\n%.*s", line, pattern, (int)n, got);
}

void say_bytes(rig_pair *pair, const void *bytes, size_t n) {
    rig_say(pair, bytes, n);
    rig_run(pair->rig);
}

static const char *outcome(const rig_call *rc) { return rc->ended ? ew_status_name(rc->status) : "has not ended"; }

void peer_check_done(const rig_call *rc, const char *result, int line) {
    if (rc->ended != 1 || rc->status != EW_STATUS_OK || strcmp(rc->result, result) != 0)
        fail_msg("line %d: %s: %s, not %s", line, outcome(rc), rc->result ? rc->result : rc->message, result);
    assert_int_equal(rc->origin, EW_ORIGIN_ACTION);
}

void peer_check_failed(const rig_call *rc, ew_status status, ew_origin origin, const char *message, int line) {
    if (rc->ended != 1 || rc->status != status || rc->origin != origin || !rc->message ||
        strcmp(rc->message, message) != 0)
        fail_msg("line %d: %s (origin %d): %s", line, outcome(rc), (int)rc->origin,
                 rc->message ? rc->message : rc->result);
}
