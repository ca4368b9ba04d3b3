/*
 * wire/stepflow/blob_id.c: see blob_id.h. Two passes over the text: store/repeats looks for repeated names, and this one writes
 * into the digest. Where a repeated name stands first, it goes on at the value of the last one, and then comes back.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "wire/stepflow/blob_id.h"
#include "base/sha256.h"
#include "base/util.h"
#include "json/json.h"
#include "json/text.h"
#include "wire/stepflow/repeats.h"
#include "wire/stepflow/serde_number.h"
#include <everywire/limits.h>

typedef struct level {
    bool object;
    bool some;        /* it has written a member or element */
    const char *back; /* where to go on after the value that is being written, if it is one from elsewhere */
} level;

typedef struct writer {
    ew__sha256 sha;
    ew__repeats repeats;
    const char *start, *at, *end;
    unsigned depth;
    level levels[EW_JSON_DEPTH + 1]; /* [0] is not used */
} writer;

static void put(writer *w, const char *bytes, size_t n) { ew__sha256_add(&w->sha, bytes, n); }

/* ---- strings, numbers, words ---- */

/* A character that was written with an escape, or cannot stand without one. */
static void put_point(writer *w, uint32_t point) {
    static const char from[] = "\"\\\b\f\n\r\t", to[] = "\"\\bfnrt", hex[] = "0123456789abcdef";
    const char *known = point > 0 && point < 0x80 ? strchr(from, (int)point) : NULL;
    char text[6] = {'\\', 'u', hex[point >> 12 & 15], hex[point >> 8 & 15], hex[point >> 4 & 15], hex[point & 15]};
    if (known != NULL) {
        text[1] = to[known - from];
        put(w, text, 2);
    } else if (point < 0x20 || (point >= 0xd800 && point < 0xe000)) {
        put(w, text, 6);
    } else {
        put(w, text, ew__json_utf8_put(point, text));
    }
}

static void put_string(writer *w) {
    const char *at = w->at + 1;
    put(w, "\"", 1);
    while (at < w->end && *at != '"') {
        size_t plain = ew__json_plain_run(at, w->end, false);
        put(w, at, plain);
        at += plain;
        if (plain == 0) {
            put_point(w, ew__json_char(&at, w->end));
        }
    }
    put(w, "\"", 1);
    w->at = at + 1;
}

static void put_scalar(writer *w) {
    char room[EW__SERDE_NUMBER_MAX];
    const char *end = ew__json_skip_value(w->at, w->end);
    ew_str text = ew__str(w->at, (size_t)(end - w->at));
    if (*w->at == '-' || (*w->at >= '0' && *w->at <= '9')) {
        text = ew__serde_number(text, room);
    }
    put(w, text.ptr, text.len);
    w->at = end;
}

/* ---- containers ---- */

/* On a name: moves past its colon. */
static void to_value(writer *w) {
    w->at = ew__json_space(w->at, w->end) + 1;
    w->at = ew__json_space(w->at, w->end);
}

static void separate(writer *w, level *in) {
    put(w, ",", in->some);
    in->some = true;
}

/* On a name. Whether its value is to be written now. */
static bool begin_member(writer *w, level *in) {
    uint32_t place = ew__repeats_at(&w->repeats, (uint32_t)(w->at - w->start));
    if (place == EW__REPEATS_LATER) {
        w->at = ew__json_skip_string(w->at, w->end);
        to_value(w);
        w->at = ew__json_skip_value(w->at, w->end);
        return false;
    }
    separate(w, in);
    put_string(w);
    put(w, ":", 1);
    to_value(w);
    if (place != EW__REPEATS_ONCE) {
        in->back = ew__json_skip_value(w->at, w->end);
        w->at = w->start + place;
    }
    return true;
}

/*
 * Somewhere between the values of the innermost container: moves to the next one that is to be written; where there is
 * none, past the container's end. False at the end of all.
 */
static bool to_next(writer *w) {
    while (w->depth > 0) {
        level *in = &w->levels[w->depth];
        if (in->back != NULL) {
            w->at = in->back;
            in->back = NULL;
        }
        w->at = ew__json_space(w->at, w->end);
        char c = *w->at;
        if (c == ',') {
            w->at++;
        } else if (c == '}' || c == ']') {
            put(w, w->at++, 1);
            w->depth--;
        } else if (!in->object) {
            separate(w, in);
            return true;
        } else if (begin_member(w, in)) {
            return true;
        }
    }
    return false;
}

static void put_value(writer *w) {
    do {
        if (*w->at == '{' || *w->at == '[') {
            w->levels[++w->depth] = (level){.object = *w->at == '{'};
            put(w, w->at++, 1);
        } else if (*w->at == '"') {
            put_string(w);
        } else {
            put_scalar(w);
        }
    } while (to_next(w));
}

ew_err ew__blob_id(const ew_env *env, ew_str json, char ret_id[EW__BLOB_ID_LEN]) {
    writer w;
    uint8_t digest[EW__SHA256_SIZE];
    ew_err err = ew__json_validate(json, NULL);
    if (err != EW_OK) {
        return err;
    }
    err = ew__repeats_find(&w.repeats, env, json);
    if (err == EW_OK) {
        w.start = json.ptr;
        w.end = ew__json_end(json);
        w.at = ew__json_space(w.start, w.end);
        w.depth = 0;
        ew__sha256_init(&w.sha);
        put_value(&w);
        ew__sha256_done(&w.sha, digest);
        ew__hex(digest, sizeof digest, ret_id);
    }
    ew__repeats_done(&w.repeats);
    return err;
}
