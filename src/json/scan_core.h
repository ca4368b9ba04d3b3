/*
 * json/scan_core.h: the scanner itself, written once and included by scan_avx2.c and scan_portable.c only. The file
 * that includes it has defined EW__SCAN (how a function is declared) and its kernel: `chunk`, load_chunk, classify,
 * classify_special, classify_numbers, classify_exponents, classify_escapes, prefix_xor, utf8_bad.
 *
 * How it works. A text is taken 64 bytes at a time; each question about its bytes becomes a 64-bit mask, and almost the
 * whole grammar is checked on masks, without visiting single tokens: "after a colon comes the start of a value" is one
 * AND of two masks. What must look over the border of blocks is carried in struct scan, one bit each. Only brackets are
 * visited one by one (their kinds are a stack), and names and separators of the first two levels (they are noted).
 */
#ifndef EW_JSON_SCAN_CORE_H
#define EW_JSON_SCAN_CORE_H

#include "base/util.h"
#include "json/bits.h"
#include "json/note.h"
#include "json/scan.h"
#include <everywire/limits.h>

#define EVEN 0x5555555555555555u
#define ODD 0xaaaaaaaaaaaaaaaau

#define BLOCK 64u
#define SPARE 8u /* bytes that may be read after a block: a literal at its end is compared in one load */
#define TAIL (BLOCK + SPARE + 24u) /* the longest tail, and some bytes before it */

#define STACK (EW_JSON_DEPTH + 2) /* one below all containers, one that a closing bracket may scribble on */

/* The running state: everything that one block tells the next. Masks hold bit 0 only, unless said otherwise. */
typedef struct scan {
    uint64_t in_string;  /* all ones inside a string */
    uint64_t pending;    /* not 0: one of the next three is not */
    uint64_t escaped;    /* the first byte is escaped by a backslash */
    uint64_t hex;        /* bits 0 to 3: bytes that must be hex digits */
    uint64_t utf8_open;  /* a UTF-8 sequence goes on */
    uint64_t scalar;     /* the byte before belongs to a number or literal */
    uint64_t next;       /* the next token must start a value or name (or end an empty container) */
    uint64_t name_next;  /* it must be a name (or end an empty object) */
    uint64_t colon_next; /* the next token must be a colon */
    uint64_t name_runs;  /* the string that goes on is a name */
    uint32_t utf8_state; /* portable kernel: where in a sequence */
    uint32_t depth;
    uint32_t limit; /* of depth */
    bool newlines;  /* there was one */
    ew_str text;
    uint8_t objects[STACK]; /* objects[depth]: 1 when the innermost container is an object; [0] is 0 */
} scan;

/* What classify says about all bytes of a block, inside strings or not. */
typedef struct bytes_of {
    uint64_t quote, space, colon, comma, open, close, brace;
    bool special; /* some byte is a backslash, a control byte or not ASCII: ask classify_special */
} bytes_of;
typedef struct special_of {
    uint64_t backslash, control, high, newline;
} special_of;
typedef struct numbers_of {
    uint64_t digit, zero, dot, minus;
} numbers_of;
typedef struct exponents_of {
    uint64_t letter, sign;
} exponents_of;
typedef struct escapes_of {
    uint64_t letter, u, hex; /* letter: what may follow a backslash, except another one */
} escapes_of;

/* The tokens of a block, outside strings. */
typedef struct tokens_of {
    uint64_t string, inside, space, colon, comma, open, close, brace, scalar, scalar_start;
} tokens_of;

EW__SCAN void load_chunk(chunk *c, const char *at);
EW__SCAN void classify(const chunk *c, bytes_of *b);
EW__SCAN void classify_special(const chunk *c, special_of *x);
EW__SCAN void classify_numbers(const chunk *c, numbers_of *n);
EW__SCAN void classify_exponents(const chunk *c, exponents_of *n);
EW__SCAN void classify_escapes(const chunk *c, escapes_of *e);
EW__SCAN uint64_t prefix_xor(uint64_t mask);
EW__SCAN bool utf8_bad(scan *s, const chunk *c, const char *at, bool first);

/* ---- escapes ---- */

/*
 * The bytes right after an odd run of backslashes: an even run escapes only itself. A run's parity is seen by where it
 * starts and ends: the addition carries runs that start at even (odd) places to their ends.
 */
EW__SCAN uint64_t after_backslashes(scan *s, uint64_t backslash) {
    uint64_t escaped = s->escaped & ~backslash;
    uint64_t run = backslash & ~s->escaped;
    uint64_t starts = run & ~(run << 1);
    uint64_t over_even, over_odd;
    uint64_t from_even = ew__bits_past(starts & EVEN, run, &over_even);
    uint64_t from_odd = ew__bits_past(starts & ODD, run, &over_odd);
    s->escaped = over_odd; /* ends at place 64, which is even: the run is odd */
    return (from_even & ODD) | (from_odd & EVEN) | escaped;
}

EW__SCAN uint64_t check_escapes(scan *s, ew__json_noter *n, const chunk *c, uint64_t backslash, uint64_t *err) {
    escapes_of e;
    classify_escapes(c, &e);
    uint64_t escaped = after_backslashes(s, backslash);
    uint64_t u = escaped & e.u;
    uint64_t need = u << 1 | u << 2 | u << 3 | u << 4 | s->hex;
    s->hex = u >> 63 | u >> 62 | u >> 61 | u >> 60;
    if (n != NULL) {
        n->backslashes = true;
    }
    *err |= (escaped & ~e.letter) | (need & ~e.hex);
    return escaped;
}

/* ---- numbers and literals ---- */

/* Compares the literals that start at `starts` (at least one); returns all their bytes. */
EW__SCAN uint64_t check_literals(const char *at, uint64_t starts, uint64_t *err) {
    static const struct {
        char text[8], mask[8];
        uint64_t bytes;
    } words[4] = {/* by bits 3 and 4 of their first letter */
                  {"false", "\xff\xff\xff\xff\xff", 0x1f},
                  {"null", "\xff\xff\xff\xff", 0xf},
                  {"true", "\xff\xff\xff\xff", 0xf},
                  {"", "\xff", 0x1}};
    uint64_t all = 0;
    do {
        unsigned i = ew__bits_first(starts), k = (unsigned)at[i] >> 3 & 3;
        uint64_t got, want, mask;
        memcpy(&got, at + i, 8);
        memcpy(&want, words[k].text, 8);
        memcpy(&mask, words[k].mask, 8);
        *err |= (got ^ want) & mask;
        all |= words[k].bytes << i;
        starts &= starts - 1;
    } while (starts != 0);
    return all;
}

/* Exponents: `others` are bytes of numbers that are neither digit, dot nor a leading minus. */
EW__SCAN uint64_t check_exponents(const chunk *c, uint64_t others, uint64_t digit, uint64_t dot) {
    exponents_of x;
    classify_exponents(c, &x);
    uint64_t over, e = x.letter & others, sign = x.sign & others;
    uint64_t err = others & ~(e | sign);
    err |= e & ~(digit << 1);
    err |= e << 1 & ~(digit | sign);
    err |= sign & ~(e << 1);
    err |= sign << 1 & ~digit;
    return err | (ew__bits_past((e | sign) << 1, digit, &over) & (dot | e)); /* these digits end the number */
}

/* Numbers and literals that lie wholly in the block, before its last byte. */
EW__SCAN uint64_t check_scalars(const chunk *c, const char *at, uint64_t scalar, uint64_t starts) {
    numbers_of n;
    classify_numbers(c, &n);
    uint64_t digit = n.digit & scalar, dot = n.dot & scalar;
    uint64_t over, err = 0, others = scalar & ~(digit | dot);
    if (others != 0) {
        uint64_t words = starts & others, minus = words & n.minus;
        others &= ~minus;
        words &= ~minus;
        if (words != 0) {
            uint64_t literal = check_literals(at, words, &err);
            err |= literal << 1 & digit; /* true1; other bytes cannot follow any digit or dot */
            others &= ~literal;
        }
        if (EW__UNLIKELY(others != 0)) {
            err |= check_exponents(c, others, digit, dot);
        }
        err |= minus << 1 & ~digit;
        starts |= minus << 1;
    }
    err |= n.zero & starts & digit >> 1; /* 01 */
    err |= dot & ~(digit << 1 & digit >> 1);
    return err | (ew__bits_past(dot << 1, digit, &over) & dot); /* 1.2.3 */
}

/*
 * Takes apart the scalars of a block: one that goes over its end is checked at once, in the text; the part of one that
 * came over its beginning was. Most lie wholly inside.
 */
EW__SCAN uint64_t split_scalars(scan *s, const chunk *c, const char *at, size_t base, tokens_of *t) {
    uint64_t inner = t->scalar & (t->scalar + s->scalar), err = 0;
    t->scalar_start = t->scalar & ~(t->scalar << 1 | s->scalar);
    if (EW__UNLIKELY(inner >> 63 != 0)) {
        unsigned first = ew__bits_last(~inner); /* a byte before the run; none: the block is one run */
        size_t skip = ~inner != 0 ? first + 1 : 0;
        err = !ew__json_scalar_ok(s->text.ptr + base + skip, s->text.ptr + s->text.len);
        inner &= ((uint64_t)1 << skip) - 1;
    }
    s->scalar = t->scalar >> 63;
    return inner != 0 ? err | check_scalars(c, at, inner, t->scalar_start & inner) : err;
}

/* ---- brackets ---- */

/*
 * The brackets of a block that can neither reach the noted levels nor the limit of depth: nothing but the stack,
 * without branches. Every bracket writes its kind above the top; after a closing one that place is free again. Sets
 * where the innermost container is an object (from its bracket on); returns whether kinds did not match.
 */
EW__SCAN uint64_t walk_deep(scan *s, const tokens_of *t, uint64_t *objects) {
    uint64_t brackets = t->open | t->close;
    uint8_t *top = s->objects + s->depth;
    uint64_t kind = *top, first = kind, all = 0 - kind;
    while (brackets != 0) {
        unsigned i = ew__bits_first(brackets);
        uint64_t before = kind;
        top[1] = (uint8_t)(t->brace >> i & 1);
        top += 2 * (t->open >> i & 1);
        top -= 1;
        kind = *top;
        all ^= (0 - (kind ^ before)) << i; /* a change holds from here on */
        brackets &= brackets - 1;
    }
    s->depth = (uint32_t)(top - s->objects);
    *objects = all;
    return t->close & (t->brace ^ (all << 1 | first)); /* the kind just before a closing bracket is what it closes */
}

/* Separators of one container of the first two levels. Bit i of the masks is the byte at near[i] and text[base + i]. */
EW__SCAN void note_separators(ew__json_noter *n, unsigned level, bool object, uint64_t separators, const char *near,
                              size_t base) {
    while (separators != 0) {
        unsigned i = ew__bits_first(separators);
        if (near[i] == ':') {
            ew__json_note_colon(n, level, near + i, base + i);
        } else {
            ew__json_note_end(n, level, near + i, base + i);
            ew__json_note_begin(n, level, object, near + i, base + i);
        }
        separators &= separators - 1;
    }
}

/* One bracket with all checks; notes what begins or ends at it. Returns whether it is wrong. */
EW__SCAN bool note_bracket(scan *s, ew__json_noter *n, const char *near, size_t at) {
    uint8_t kind = *near == '{' || *near == '}';
    if (*near == '}' || *near == ']') {
        if (s->depth == 0 || s->objects[s->depth] != kind) {
            return true;
        }
        if (n != NULL && s->depth <= 2) {
            ew__json_note_end(n, s->depth, near, at);
        }
        s->depth--;
        return false;
    }
    if (s->depth == s->limit) {
        return true;
    }
    s->objects[++s->depth] = kind;
    if (n != NULL && s->depth <= 2) {
        n->at[s->depth] = &n->doc->nodes[0];
        ew__json_note_begin(n, s->depth, kind != 0, near, at);
    }
    return false;
}

/* Brackets and, at the first two levels, separators in their order; at level 0 there may be no separators. */
EW__SCAN uint64_t walk_shallow(scan *s, ew__json_noter *n, const tokens_of *t, const char *near, size_t base,
                               uint64_t *objects) {
    uint64_t brackets = t->open | t->close, separators = t->colon | t->comma;
    *objects = 0;
    for (;;) {
        uint64_t before = (brackets - 1) & ~brackets; /* all, when there is none */
        uint64_t here = separators & before;
        unsigned depth = s->depth;
        if (here != 0) {
            bool object = s->objects[depth] != 0;
            if (depth == 0) {
                return 1;
            }
            *objects |= object ? here : 0;
            if (n != NULL && depth <= 2) {
                note_separators(n, depth, object, here, near, base);
            }
            separators &= ~before;
        }
        if (brackets == 0) {
            return 0;
        }
        unsigned i = ew__bits_first(brackets);
        if (note_bracket(s, n, near + i, base + i)) {
            return 1;
        }
        brackets &= brackets - 1;
    }
}

/* ---- the grammar ---- */

/* The first token after each bit of `ends`. */
EW__SCAN uint64_t token_after(uint64_t ends, uint64_t space, uint64_t *carry) {
    uint64_t over = 0, first = ends << 1 | *carry;
    if (space != 0) {
        first = ew__bits_past(first, space, &over);
    }
    *carry = ends >> 63 | over;
    return first;
}

/*
 * Whether one of these closing brackets follows something else than its opening one: [1,] or {"a":}. Looks back in
 * the text.
 */
EW__SCAN bool closes_too_early(const scan *s, uint64_t closes, size_t base) {
    for (; closes != 0; closes &= closes - 1) {
        size_t at = base + ew__bits_first(closes);
        while (at > 0 && ew__json_is_space(s->text.ptr[at - 1])) {
            at--;
        }
        if (at == 0 || (s->text.ptr[at - 1] != '{' && s->text.ptr[at - 1] != '[')) {
            return true;
        }
    }
    return false;
}

EW__SCAN uint64_t check_order(scan *s, const tokens_of *t, uint64_t objects, uint64_t space, size_t base) {
    uint64_t begins = t->colon | t->comma | t->open;
    uint64_t begins_name = (t->open & t->brace) | (t->comma & objects);
    uint64_t next = token_after(begins, space, &s->next);
    uint64_t name = token_after(begins_name, space, &s->name_next);
    uint64_t no_name = t->open | t->scalar_start;
    uint64_t err = ((t->string | no_name) ^ next) & ~t->close; /* a value or name starts there and nowhere else */
    err |= name & no_name;
    if (EW__UNLIKELY((next & t->close) != 0)) {
        err |= closes_too_early(s, next & t->close, base);
    }
    uint64_t name_end = ew__bits_past((name & t->string) | s->name_runs, t->inside, &s->name_runs);
    return err | (token_after(name_end, space, &s->colon_next) ^ t->colon);
}

/* The order of tokens. Written twice: texts without white space are common, and need half the work. */
EW__SCAN uint64_t check_grammar(scan *s, const tokens_of *t, uint64_t objects, size_t base) {
    return t->space == 0 ? check_order(s, t, objects, 0, base) : check_order(s, t, objects, t->space, base);
}

/* Tells the tokens of a block apart. Returns false for the middle of a long string, where there are none. */
EW__SCAN bool find_tokens(scan *s, const bytes_of *b, tokens_of *t) {
    if (b->quote == 0 && s->in_string != 0) {
        return false;
    }
    t->inside = prefix_xor(b->quote) ^ s->in_string;
    s->in_string = 0 - (t->inside >> 63);
    uint64_t out = ~(t->inside | b->quote);
    t->string = b->quote & t->inside;
    t->space = b->space & out;
    t->colon = b->colon & out;
    t->comma = b->comma & out;
    t->open = b->open & out;
    t->close = b->close & out;
    t->brace = b->brace;
    t->scalar = out & ~(b->space | b->colon | b->comma | b->open | b->close);
    return true;
}

/* Escapes and UTF-8 of a block that has such bytes, or the end of such. Cuts escaped quotes out of *quote. */
EW__SCAN uint64_t check_special(scan *s, ew__json_noter *n, const chunk *c, const char *at, bool first, special_of *x,
                                uint64_t *quote) {
    uint64_t err = 0;
    classify_special(c, x);
    if ((x->high | s->utf8_open) != 0) {
        err = utf8_bad(s, c, at, first);
    }
    if ((x->backslash | s->escaped | s->hex) != 0) {
        *quote &= ~check_escapes(s, n, c, x->backslash, &err);
    }
    s->newlines = s->newlines || x->newline != 0;
    s->pending = s->escaped | s->hex | s->utf8_open;
    return err;
}

/* Everything about one block, read from `at`; `base` is its offset in the text. Returns whether it is fine so far. */
EW__SCAN bool scan_block(scan *s, ew__json_noter *n, const char *at, size_t base) {
    chunk c;
    bytes_of b;
    tokens_of t;
    uint64_t err = 0, objects;
    load_chunk(&c, at);
    classify(&c, &b);
    if (b.special || s->pending != 0) {
        special_of x;
        err = check_special(s, n, &c, at, base == 0, &x, &b.quote);
        uint64_t inside = prefix_xor(b.quote) ^ s->in_string;
        err |= (x.control & (inside | ~b.space)) | (x.backslash & ~inside);
    }
    if (!find_tokens(s, &b, &t)) {
        return err == 0;
    }
    err |= split_scalars(s, &c, at, base, &t);
    if (ew__bits_count(t.close) + 2 < s->depth && s->depth + BLOCK <= s->limit) {
        err |= walk_deep(s, &t, &objects);
    } else {
        err |= walk_shallow(s, n, &t, at, base, &objects);
    }
    return (err | check_grammar(s, &t, objects, base)) == 0;
}

/*
 * The last bytes, copied before a stretch of spaces: nothing is read past the end of the text. What stands before them
 * comes along, so that the UTF-8 check can look back and the copy mostly has a fixed size.
 */
EW__SCAN bool scan_tail(scan *s, ew__json_noter *n, ew_str text, size_t base) {
    char copy[TAIL + 2 * BLOCK + SPARE];
    size_t rest = text.len - base;
    char *start = copy + TAIL - rest;
    memset(copy + TAIL, ' ', sizeof copy - TAIL);
    if (text.len >= TAIL) {
        memcpy(copy, text.ptr + text.len - TAIL, TAIL);
    } else if (text.len > 0) {
        memcpy(copy + TAIL - text.len, text.ptr, text.len);
    }
    for (size_t done = 0; done <= rest; done += BLOCK) {
        if (!scan_block(s, n, start + done, base + done)) {
            return false;
        }
    }
    return s->in_string == 0 && s->depth == 0 && (s->next | s->colon_next) == 0;
}

EW__SCAN bool scan_text(ew__json_noter *n, ew_str text, uint32_t limit) {
    scan s;
    memset(&s, 0, offsetof(scan, objects) + 1); /* the stack above its bottom needs no clearing */
    s.next = 1;
    s.text = text;
    s.limit = limit;
    size_t base = 0;
    for (; text.len - base >= BLOCK + SPARE; base += BLOCK) {
        if (!scan_block(&s, n, text.ptr + base, base)) {
            return false;
        }
    }
    if (!scan_tail(&s, n, text, base)) {
        return false;
    }
    if (n != NULL) {
        ew__json_note_finish(n, s.newlines);
    }
    return true;
}

/* Both uses as code of their own: a constant NULL lets the compiler drop all noting from the validator. */
EW__SCAN bool scan_any(ew__json_doc *doc, ew_str text, uint32_t limit) {
    if (doc == NULL) {
        return scan_text(NULL, text, limit);
    }
    ew__json_noter n;
    ew__json_note_init(&n, doc, text);
    return scan_text(&n, text, limit);
}

/* ---- skipping a container of a text known to be valid ---- */

/* One block: the byte after the bracket that closes the outermost container, or BLOCK + 1 when it is not here. */
EW__SCAN unsigned skip_block(scan *s, const char *at) {
    chunk c;
    bytes_of b;
    load_chunk(&c, at);
    classify(&c, &b);
    if (b.special || s->escaped != 0) {
        special_of x;
        classify_special(&c, &x);
        b.quote &= ~after_backslashes(s, x.backslash);
    }
    uint64_t inside = prefix_xor(b.quote) ^ s->in_string;
    s->in_string = 0 - (inside >> 63);
    uint64_t open = b.open & ~inside, close = b.close & ~inside;
    unsigned closes = ew__bits_count(close);
    if (closes < s->depth) {
        s->depth = s->depth + ew__bits_count(open) - closes;
        return BLOCK + 1;
    }
    for (uint64_t brackets = open | close; brackets != 0; brackets &= brackets - 1) {
        unsigned i = ew__bits_first(brackets);
        if ((open >> i & 1) != 0) {
            s->depth++;
        } else if (--s->depth == 0) {
            return i + 1;
        }
    }
    return BLOCK + 1;
}

EW__SCAN const char *skip_container(const char *at, const char *end) {
    scan s;
    memset(&s, 0, offsetof(scan, objects));
    s.depth = 1;
    for (at++; (size_t)(end - at) >= BLOCK; at += BLOCK) {
        unsigned n = skip_block(&s, at);
        if (n <= BLOCK) {
            return at + n;
        }
    }
    char copy[BLOCK];
    memset(copy, ' ', sizeof copy);
    memcpy(copy, at, (size_t)(end - at));
    unsigned n = skip_block(&s, copy);
    return n <= BLOCK ? at + n : end;
}

#endif
