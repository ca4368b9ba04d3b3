/*
 * wire/stepflow/repeats.c: see repeats.h. The names of the objects that are open stand in one list, which is a stack: when an
 * object ends, its names are its top. A table of hashes leads to them; names are taken out in the reverse order in which
 * they were put in, so that a slot is simply free again. Hashes are keyed, so that nobody can make names collide.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "wire/stepflow/repeats.h"
#include "base/buf.h"
#include "base/map.h"
#include "base/mem.h"
#include "json/text.h"
#include <everywire/limits.h>

#define FIRST_SLOTS 64u

/* ---- what was found ---- */

/* The slot of a place, or the free one where the search ended. */
static uint32_t *find_place(const ew__repeats *repeats, uint32_t place) {
    uint32_t mask = repeats->n_slots - 1;
    uint32_t slot = (uint32_t)ew__siphash13(repeats->seed, &place, sizeof place) & mask;
    while (repeats->slots[slot][0] != 0 && repeats->slots[slot][0] != place) {
        slot = (slot + 1) & mask;
    }
    return repeats->slots[slot];
}

static ew_err grow_places(ew__repeats *repeats) {
    ew__repeats old = *repeats;
    uint32_t n_slots = old.n_slots == 0 ? FIRST_SLOTS : old.n_slots * 2;
    repeats->slots = ew__zalloc(old.env, n_slots * sizeof *repeats->slots);
    if (repeats->slots == NULL) {
        repeats->slots = old.slots;
        return EW_ENOMEM;
    }
    repeats->n_slots = n_slots;
    for (uint32_t i = 0; i < old.n_slots; i++) {
        if (old.slots[i][0] != 0) {
            memcpy(find_place(repeats, old.slots[i][0]), old.slots[i], sizeof old.slots[i]);
        }
    }
    ew__free(old.env, old.slots, old.n_slots * sizeof *old.slots);
    return EW_OK;
}

/* Names stand behind a brace, so that no place is 0. */
static ew_err set_last(ew__repeats *repeats, uint32_t first, uint32_t value) {
    if (repeats->n >= repeats->n_slots / 2 && grow_places(repeats) != EW_OK) {
        return EW_ENOMEM;
    }
    uint32_t *slot = find_place(repeats, first);
    repeats->n += slot[0] == 0;
    slot[0] = first;
    slot[1] = value;
    return EW_OK;
}

static void mark(ew__repeats *repeats, uint32_t place) { repeats->marks[place / 8] |= (uint8_t)(1u << place % 8); }

static ew_err note_repeat(ew__repeats *repeats, uint32_t first, uint32_t later, uint32_t value) {
    if (repeats->marks == NULL && (repeats->marks = ew__zalloc(repeats->env, repeats->marks_size)) == NULL) {
        return EW_ENOMEM;
    }
    mark(repeats, first);
    mark(repeats, later);
    return set_last(repeats, first, value);
}

uint32_t ew__repeats_at(const ew__repeats *repeats, uint32_t place) {
    if (repeats->marks == NULL || (repeats->marks[place / 8] >> place % 8 & 1) == 0) {
        return EW__REPEATS_ONCE;
    }
    const uint32_t *slot = find_place(repeats, place);
    return slot[0] != 0 ? slot[1] : EW__REPEATS_LATER;
}

void ew__repeats_done(ew__repeats *repeats) {
    if (repeats->marks != NULL) {
        ew__free(repeats->env, repeats->marks, repeats->marks_size);
    }
    ew__free(repeats->env, repeats->slots, repeats->n_slots * sizeof *repeats->slots);
    *repeats = (ew__repeats){.env = repeats->env};
}

/* ---- the names of open objects ---- */

typedef struct name {
    uint32_t place; /* of its opening quote */
    uint32_t hash;
    uint32_t slot;
} name;

typedef struct finder {
    ew__repeats *repeats;
    ew_str json;
    name *names;
    uint32_t n, cap;
    uint32_t *slots; /* index into names + 1; 0 = free */
    uint32_t n_slots;
    ew__buf decoded; /* a name without its escapes */
    uint32_t depth;
    struct {
        uint32_t place;
        uint32_t first; /* of its names */
    } open[EW_JSON_DEPTH + 1];
} finder;

static void put_name(finder *f, uint32_t index) {
    uint32_t slot = f->names[index].hash & (f->n_slots - 1);
    while (f->slots[slot] != 0) {
        slot = (slot + 1) & (f->n_slots - 1);
    }
    f->slots[slot] = index + 1;
    f->names[index].slot = slot;
}

static ew_err grow_names(finder *f) {
    const ew_env *env = f->repeats->env;
    uint32_t n_slots = f->n_slots == 0 ? FIRST_SLOTS : f->n_slots * 2, cap = n_slots / 2;
    name *names = ew__realloc(env, f->names, f->cap * sizeof *names, cap * sizeof *names);
    if (names == NULL) {
        return EW_ENOMEM;
    }
    f->names = names;
    f->cap = cap;
    uint32_t *slots = ew__zalloc(env, n_slots * sizeof *slots);
    if (slots == NULL) {
        return EW_ENOMEM;
    }
    ew__free(env, f->slots, f->n_slots * sizeof *slots);
    f->slots = slots;
    f->n_slots = n_slots;
    for (uint32_t i = 0; i < f->n; i++) { /* in their order, so that they can be taken out in the reverse one */
        put_name(f, i);
    }
    return EW_OK;
}

/* The inside of the quotes at `place`. */
static ew_str raw_name(const finder *f, uint32_t place) {
    const char *at = f->json.ptr + place, *end = ew__json_skip_string(at, ew__json_end(f->json));
    return ew__str(at + 1, (size_t)(end - at) - 2);
}

/* Without its escapes: the text itself where there is none. */
static ew_err decode(finder *f, ew_str raw, ew_str *ret) {
    const char *at = raw.ptr, *end = ew__json_end(raw);
    *ret = raw;
    if (memchr(raw.ptr, '\\', raw.len) == NULL) {
        return EW_OK;
    }
    ew__buf_clear(&f->decoded);
    while (at < end) {
        char utf8[4];
        ew__buf_add(&f->decoded, utf8, ew__json_utf8_put(ew__json_char(&at, end), utf8));
    }
    *ret = ew__buf_view(&f->decoded);
    return f->decoded.err;
}

/* The name of the innermost object that is the same, or NULL. */
static const name *find_name(const finder *f, uint32_t hash, ew_str decoded) {
    if (f->n_slots == 0) {
        return NULL;
    }
    uint32_t first = f->open[f->depth].first, slot = hash & (f->n_slots - 1);
    for (; f->slots[slot] != 0; slot = (slot + 1) & (f->n_slots - 1)) {
        uint32_t index = f->slots[slot] - 1;
        const name *other = &f->names[index];
        if (index >= first && other->hash == hash && ew__json_name_is(raw_name(f, other->place), decoded)) {
            return other;
        }
    }
    return NULL;
}

/* A name at `place` whose value is at `value`. */
static ew_err note_name(finder *f, uint32_t place, uint32_t value) {
    ew_str decoded;
    ew_err err = decode(f, raw_name(f, place), &decoded);
    if (err != EW_OK) {
        return err;
    }
    const uint64_t seed[2] = {f->repeats->seed[0], f->repeats->seed[1] ^ f->open[f->depth].place};
    uint32_t hash = (uint32_t)ew__siphash13(seed, decoded.ptr, decoded.len);
    const name *first = find_name(f, hash, decoded);
    if (first != NULL) {
        return note_repeat(f->repeats, first->place, place, value);
    }
    if (f->n >= f->cap && (err = grow_names(f)) != EW_OK) {
        return err;
    }
    f->names[f->n] = (name){.place = place, .hash = hash};
    put_name(f, f->n++);
    return EW_OK;
}

static void close_container(finder *f) {
    for (; f->n > f->open[f->depth].first; f->n--) {
        f->slots[f->names[f->n - 1].slot] = 0;
    }
    f->depth--;
}

/* ---- the pass ---- */

/* A string; it is a name if a colon follows. */
static ew_err pass_string(finder *f, const char **at, const char *end) {
    const char *start = *at, *next = ew__json_skip_string(start, end);
    *at = next;
    next = ew__json_space(next, end);
    if (next == end || *next != ':') {
        return EW_OK;
    }
    *at = ew__json_space(next + 1, end);
    return note_name(f, (uint32_t)(start - f->json.ptr), (uint32_t)(*at - f->json.ptr));
}

static ew_err pass(finder *f) {
    const char *at = f->json.ptr, *end = ew__json_end(f->json);
    ew_err err = EW_OK;
    while (at < end && err == EW_OK) {
        switch (*at) {
        case '"':
            err = pass_string(f, &at, end);
            break;
        case '{':
        case '[':
            f->depth++; /* valid text is not deeper than the array */
            f->open[f->depth].place = (uint32_t)(at++ - f->json.ptr);
            f->open[f->depth].first = f->n;
            break;
        case '}':
        case ']':
            close_container(f);
            at++;
            break;
        default:
            at++;
        }
    }
    return err;
}

ew_err ew__repeats_find(ew__repeats *repeats, const ew_env *env, ew_str json) {
    finder f = {.repeats = repeats, .json = json};
    *repeats = (ew__repeats){.env = env, .marks_size = json.len / 8 + 1};
    env->random(env->ud, repeats->seed, sizeof repeats->seed);
    ew__buf_init(&f.decoded, env, json.len);
    ew_err err = pass(&f);
    ew__buf_done(&f.decoded);
    ew__free(env, f.names, f.cap * sizeof *f.names);
    ew__free(env, f.slots, f.n_slots * sizeof *f.slots);
    return err;
}
