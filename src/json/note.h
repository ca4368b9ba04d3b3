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
    unsigned n_nodes;
    bool backslashes;     /* there was one in the text so far */
    bool root_complete;   /* nothing left out at level 1 */
    bool complete;        /* nothing left out at all */
    uint32_t name[3];     /* where the name that comes next begins, inside its quotes */
    ew__json_node *at[3]; /* the value that we are in; node 0, which nobody reads, when it is not noted */
} ew__json_noter;

EW__JSON_INLINE bool ew__json_is_space(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

/* The type of a value by its first byte; everything that starts no other one is a number, as in a valid text it is. */
EW__JSON_INLINE ew_json_type ew__json_type_of_byte(char c) {
    static const uint8_t offsets[128] = {['"'] = EW_JSON_STRING ^ EW_JSON_NUMBER, ['{'] = EW_JSON_OBJECT ^ EW_JSON_NUMBER,
                                         ['['] = EW_JSON_ARRAY ^ EW_JSON_NUMBER,  ['t'] = EW_JSON_BOOL ^ EW_JSON_NUMBER,
                                         ['f'] = EW_JSON_BOOL ^ EW_JSON_NUMBER,   ['n'] = EW_JSON_NULL ^ EW_JSON_NUMBER};
    return (ew_json_type)(offsets[c & 0x7f] ^ EW_JSON_NUMBER);
}

/*
 * The first token after place `at`, and the end of the last one before it. `near` is the same byte as text[at], in memory
 * where its neighbours can be read in any case (the scanner's copy of the tail): mostly they tell that there is no white
 * space. Outside strings every byte up to the space is white space, or the text is bad anyway.
 */
EW__JSON_INLINE size_t ew__json_note_after(const ew__json_noter *n, const char *near, size_t at) {
    at++;
    if (EW__UNLIKELY((unsigned char)near[1] <= ' ')) {
        while (at < n->len && (unsigned char)n->text[at] <= ' ') {
            at++;
        }
    }
    return at;
}

EW__JSON_INLINE size_t ew__json_note_before(const ew__json_noter *n, const char *near, size_t at) {
    if (EW__UNLIKELY((unsigned char)near[-1] <= ' ')) {
        while (at > 0 && (unsigned char)n->text[at - 1] <= ' ') {
            at--;
        }
    }
    return at;
}

EW__JSON_INLINE void ew__json_note_value(ew__json_noter *n, unsigned level, size_t name, size_t name_len, size_t at) {
    ew__json_doc *doc = n->doc;
    unsigned index = n->n_nodes, room = EW__JSON_NODES + EW__JSON_NODES_ROOT - EW__JSON_NODES_ROOT * level;
    if (EW__UNLIKELY(index >= room || at >= n->len)) {
        n->complete = false;
        n->root_complete = n->root_complete && level != 1;
        n->at[level] = &doc->nodes[0];
        return;
    }
    ew__json_node *node = &doc->nodes[index];
    n->at[level]->next = (uint16_t)index;
    n->at[level] = node;
    n->n_nodes = index + 1;
    node->key = (uint32_t)name;
    node->key_len = (uint32_t)name_len;
    node->value = (uint32_t)at;
    node->next = 0;
    node->type = (uint8_t)ew__json_type_of_byte(n->text[at]);
    node->level = (uint8_t)level;
}

/* After '{', '[' or ',': a name or an element begins. */
EW__JSON_INLINE void ew__json_note_begin(ew__json_noter *n, unsigned level, bool object, const char *near, size_t at) {
    size_t next = ew__json_note_after(n, near, at);
    if (object) {
        n->name[level] = (uint32_t)(next + 1);
    } else if (next < n->len && n->text[next] != ']') {
        ew__json_note_value(n, level, 0, 0, next);
    }
}

/* At ':': the name is behind, the value before us. */
EW__JSON_INLINE void ew__json_note_colon(ew__json_noter *n, unsigned level, const char *near, size_t at) {
    size_t name = n->name[level], name_end = ew__json_note_before(n, near, at);
    size_t name_len = name_end > name ? name_end - 1 - name : 0;
    if (EW__UNLIKELY(n->backslashes) && memchr(n->text + name, '\\', name_len) != NULL) {
        n->doc->escaped_keys = true;
    }
    ew__json_note_value(n, level, name, name_len, ew__json_note_after(n, near, at));
}

/* At ',' '}' or ']': the value before it has ended. */
EW__JSON_INLINE void ew__json_note_end(ew__json_noter *n, unsigned level, const char *near, size_t at) {
    ew__json_node *node = n->at[level];
    node->value_len = (uint32_t)ew__json_note_before(n, near, at) - node->value;
}

#endif
