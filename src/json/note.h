/*
 * json/note.h: notes the members and elements of the first two levels while the scanner passes their separators.
 * The text is not known to be valid yet: every step stays inside it, and what is noted about a bad text is thrown away.
 */
#ifndef EW_JSON_NOTE_H
#define EW_JSON_NOTE_H

#include "base/util.h"
#include "json/bits.h"
#include "json/json.h"

/* Nodes that only level 1 may use, so that a member with many children does not hide the envelope's other members. */
#define EW__JSON_NODES_ROOT 16u

/* Arrays are indexed by level; [0] is not used. */
typedef struct ew__json_noter {
    ew__json_doc *doc;
    const char *text;
    size_t len;
    uint32_t n_nodes;
    uint32_t room[3];     /* nodes that this level may fill up to */
    bool full[3];         /* it has, and more came */
    bool backslashes;     /* there was one in the text */
    uint32_t name[3];     /* where the name that comes next begins, inside its quotes */
    ew__json_node *at[3]; /* the value that we are in; node 0, which nobody reads, when it is not noted */
} ew__json_noter;

EW__JSON_INLINE void ew__json_note_init(ew__json_noter *n, ew__json_doc *doc, ew_str text) {
    n->doc = doc;
    n->text = text.ptr;
    n->len = text.len;
    n->n_nodes = 1;
    n->room[1] = EW__JSON_NODES;
    n->room[2] = EW__JSON_NODES - EW__JSON_NODES_ROOT;
    n->full[1] = n->full[2] = n->backslashes = false;
}

/*
 * The text was valid: its names can be looked at. (Not while scanning: a call there costs more than all of the rest.)
 */
static inline bool ew__json_note_escapes(const ew__json_noter *n) {
    for (uint32_t i = 1; i < n->n_nodes; i++) {
        const ew__json_node *node = &n->doc->nodes[i];
        if (memchr(n->text + node->key, '\\', node->key_len) != NULL) {
            return true;
        }
    }
    return false;
}

EW__JSON_INLINE void ew__json_note_finish(const ew__json_noter *n, bool newlines) {
    n->doc->has_newline = newlines;
    n->doc->n_nodes = (uint16_t)n->n_nodes;
    n->doc->complete = !n->full[1] && !n->full[2];
    n->doc->root_complete = !n->full[1];
    n->doc->escaped_keys = n->backslashes && ew__json_note_escapes(n);
}

EW__JSON_INLINE bool ew__json_is_space(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

/* The type of a value by its first byte; everything that starts no other one is a number, as in a valid text it is. */
EW__JSON_INLINE ew_json_type ew__json_type_of_byte(char c) {
    static const uint8_t offsets[128] = {
        ['"'] = EW_JSON_STRING ^ EW_JSON_NUMBER, ['{'] = EW_JSON_OBJECT ^ EW_JSON_NUMBER,
        ['['] = EW_JSON_ARRAY ^ EW_JSON_NUMBER,  ['t'] = EW_JSON_BOOL ^ EW_JSON_NUMBER,
        ['f'] = EW_JSON_BOOL ^ EW_JSON_NUMBER,   ['n'] = EW_JSON_NULL ^ EW_JSON_NUMBER};
    return (ew_json_type)(offsets[c & 0x7f] ^ EW_JSON_NUMBER);
}

/*
 * Places: `at` is an offset in the text, `near` the same byte in memory where its neighbours can be read in any case
 * (the scanner's copy of the tail). Mostly they tell that there is no white space; else the text is asked. Outside
 * strings every byte up to the space is white space, or the text is bad anyway.
 */

/* The first token after a place: where it is, and its first byte (0 when the text ends). */
EW__JSON_INLINE size_t ew__json_note_after(const ew__json_noter *n, const char *near, size_t at, char *ret_byte) {
    at++;
    *ret_byte = near[1];
    if (EW__UNLIKELY((unsigned char)near[1] <= ' ')) {
        while (at < n->len && (unsigned char)n->text[at] <= ' ') {
            at++;
        }
        *ret_byte = at < n->len ? n->text[at] : '\0';
    }
    return at;
}

/* The end of the last token before a place. */
EW__JSON_INLINE size_t ew__json_note_before(const ew__json_noter *n, const char *near, size_t at) {
    if (EW__UNLIKELY((unsigned char)near[-1] <= ' ')) {
        while (at > 0 && (unsigned char)n->text[at - 1] <= ' ') {
            at--;
        }
    }
    return at;
}

EW__JSON_INLINE void ew__json_note_value(ew__json_noter *n, unsigned level, uint32_t name, uint32_t name_len, size_t at,
                                         char first) {
    uint32_t index = n->n_nodes;
    if (EW__UNLIKELY(index >= n->room[level])) {
        n->full[level] = true;
        n->at[level] = &n->doc->nodes[0];
        return;
    }
    ew__json_node *node = &n->doc->nodes[index];
    n->at[level]->next = (uint16_t)index;
    n->at[level] = node;
    n->n_nodes = index + 1;
    node->key = name;
    node->key_len = name_len;
    node->value = (uint32_t)at;
    node->next = 0;
    node->type = (uint8_t)ew__json_type_of_byte(first);
    node->level = (uint8_t)level;
}

/* After '{', '[' or ',': a name or an element begins. */
EW__JSON_INLINE void ew__json_note_begin(ew__json_noter *n, unsigned level, bool object, const char *near, size_t at) {
    char first;
    size_t next = ew__json_note_after(n, near, at, &first);
    if (object) {
        n->name[level] = (uint32_t)(next + 1);
    } else if (first != ']') {
        ew__json_note_value(n, level, 0, 0, next, first);
    }
}

/* At ':': the name is behind, the value before us. */
EW__JSON_INLINE void ew__json_note_colon(ew__json_noter *n, unsigned level, const char *near, size_t at) {
    char first;
    uint32_t name = n->name[level], name_end = (uint32_t)ew__json_note_before(n, near, at) - 1;
    size_t value = ew__json_note_after(n, near, at, &first);
    ew__json_note_value(n, level, name, name_end - name, value, first);
}

/* At ',' '}' or ']': the value before it has ended. */
EW__JSON_INLINE void ew__json_note_end(ew__json_noter *n, unsigned level, const char *near, size_t at) {
    ew__json_node *node = n->at[level];
    node->value_len = (uint32_t)ew__json_note_before(n, near, at) - node->value;
}

#endif
