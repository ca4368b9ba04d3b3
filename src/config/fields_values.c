/*
 * config/fields_values.c: single values of a configuration, and lists of them. See fields.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/parse.h"
#include "base/util.h"
#include "config/fields.h"
#include <stdio.h>

/* ---- what is wanted ---- */

static bool ends_with(const char *text, const char *end) {
    size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

static const char *list_words(const char *const *words, char *buf, size_t size) {
    size_t n = (size_t)snprintf(buf, size, "one of");
    for (size_t i = 0; words[i] && n < size; i++) {
        n += (size_t)snprintf(buf + n, size - n, "%s %s", i ? "," : "", words[i]);
    }
    return buf;
}

static const char *number_holds(const ew__field *field, char *buf, size_t size) {
    unsigned long long min = (unsigned long long)field->min, max = (unsigned long long)field->max;
    if (max && max == min) {
        (void)snprintf(buf, size, "the number %llu", min);
    } else if (max) {
        (void)snprintf(buf, size, "a number from %llu to %llu", min, max);
    } else {
        (void)snprintf(buf, size, min ? "a number from %llu on" : "a number", min);
    }
    return buf;
}

const char *ew__field_holds(const ew__field *field, char *buf, size_t size) {
    switch (field->type) {
    case EW__FIELD_TEXT:
        return "a text";
    case EW__FIELD_PATH:
        return "a path";
    case EW__FIELD_BOOL:
        return "true or false";
    case EW__FIELD_NUMBER:
        return number_holds(field, buf, size);
    case EW__FIELD_DURATION:
    case EW__FIELD_SECONDS:
        return "a duration such as 500ms, 2s, 1m, 1h";
    case EW__FIELD_SIZE:
        return "a size such as 64K, 1M, 1G";
    case EW__FIELD_LIMIT:
        return ends_with(field->name, "_bytes") ? "a size such as 64K, 1M, 1G"
               : ends_with(field->name, "_ms")  ? "a duration such as 500ms, 2s, 1m, 1h"
                                                : number_holds(field, buf, size);
    case EW__FIELD_WORD:
        return list_words(field->words, buf, size);
    case EW__FIELD_TEXTS:
        return "a text or a list of texts";
    case EW__FIELD_COMMAND:
        return "a list such as [PROGRAM, ARGUMENT]";
    case EW__FIELD_PAIRS:
        return "a list of texts, or a map";
    case EW__FIELD_JSON:
    case EW__FIELD_JSON_TEXT:
        return "any value";
    case EW__FIELD_LIST:
        return "a list";
    case EW__FIELD_OWN:
        return field->holds;
    default:
        return "a map";
    }
}

void ew__field_wants(ew__reading *reading, const ew__field *field, const ew__node *node) {
    char buf[200];
    const char *holds = ew__field_holds(field, buf, sizeof buf);
    if (node->kind == EW__NODE_TEXT) {
        ew__problem_add(reading->problems, node->line, node->column, "%s wants %s, not \"%s\"%s", field->name, holds,
                        ew__show(node->text).text,
                        field->type == EW__FIELD_COMMAND ? ": no shell takes a text to pieces" : "");
    } else {
        ew__problem_add(reading->problems, node->line, node->column, "%s wants %s, not a %s", field->name, holds,
                        node->kind == EW__NODE_LIST ? "list" : "map");
    }
}

/* ---- texts ---- */

const char *ew__join(ew__reading *reading, ew_str a, char between, ew_str b) {
    size_t n = a.len + b.len + (between ? 1 : 0);
    char *text = ew__arena_alloc(reading->arena, n + 1);
    if (!text) {
        reading->problems->no_memory = true;
        return NULL;
    }
    if (a.len) {
        memcpy(text, a.ptr, a.len);
    }
    text[a.len] = between;
    if (b.len) {
        memcpy(text + n - b.len, b.ptr, b.len);
    }
    text[n] = 0;
    return text;
}

const char *ew__path(ew__reading *reading, const char *path) {
    return path[0] == '/' ? path : ew__join(reading, ew_str_from(reading->folder), '/', ew_str_from(path));
}

/* NULL: it is none that C knows, and a problem was added. */
static const char *plain_text(ew__reading *reading, const ew__field *field, const ew__node *node) {
    if (node->kind != EW__NODE_TEXT) {
        ew__field_wants(reading, field, node);
        return NULL;
    }
    if (memchr(node->text.ptr, 0, node->text.len)) {
        ew__problem_add(reading->problems, node->line, node->column, "%s: the text has a NUL in it", field->name);
        return NULL;
    }
    return node->text.ptr;
}

static void read_path(ew__reading *reading, const ew__field *field, const ew__node *node, const char **out) {
    const char *text = plain_text(reading, field, node);
    if (text && !*text) {
        ew__field_wants(reading, field, node);
    } else if (text) {
        *out = ew__path(reading, text);
    }
}

/* One of a list, or a member of a map. NULL: a problem was added, or there is no memory. */
static const char *one_text(ew__reading *reading, const ew__field *field, const ew__node *node, bool member) {
    if (node->bad) {
        return NULL;
    }
    const char *text = plain_text(reading, field, node);
    if (!text || !member) {
        return text;
    }
    if (memchr(node->key->text.ptr, 0, node->key->text.len)) {
        ew__problem_add(reading->problems, node->key->line, node->key->column, "%s: the key has a NUL in it",
                        field->name);
        return NULL;
    }
    return ew__node_is_null(node) ? node->key->text.ptr
                                  : ew__join(reading, node->key->text, field->between, node->text);
}

static void read_texts(ew__reading *reading, const ew__field *field, const ew__node *node, const char ***out) {
    bool member = field->type == EW__FIELD_PAIRS && node->kind == EW__NODE_MAP;
    bool alone = field->type == EW__FIELD_TEXTS && node->kind == EW__NODE_TEXT;
    if (!member && !alone && node->kind != EW__NODE_LIST) {
        ew__field_wants(reading, field, node);
        return;
    }
    const char **texts = ew__arena_alloc(reading->arena, (node->n + 2) * sizeof *texts);
    size_t n = 0;
    if (!texts) {
        reading->problems->no_memory = true;
        return;
    }
    for (const ew__node *item = alone ? node : node->first; item; item = alone ? NULL : item->next) {
        const char *text = one_text(reading, field, item, member);
        if (text) {
            texts[n++] = text;
        }
    }
    texts[n] = NULL;
    *out = texts;
}

/* The first of a command is looked up by the system, or stands at a path. */
static void read_command(ew__reading *reading, const ew__field *field, const ew__node *node, const char ***out) {
    read_texts(reading, field, node, out);
    const char **words = *out;
    if (words && (!words[0] || !*words[0])) {
        ew__problem_add(reading->problems, node->line, node->column, "%s names no program", field->name);
    } else if (words && strchr(words[0], '/')) {
        words[0] = ew__path(reading, words[0]);
    }
}

static void read_json(ew__reading *reading, const ew__field *field, const ew__node *node, const char **out) {
    if (field->type == EW__FIELD_JSON_TEXT && ew__node_is_null(node)) {
        return;
    }
    if (field->type == EW__FIELD_JSON_TEXT && ew__node_is_string(node)) {
        *out = plain_text(reading, field, node);
        return;
    }
    ew__buf json;
    ew__buf_init(&json, reading->arena->env, 8 * EW__CONFIG_BYTES);
    ew_err err = ew__node_json(node, &json, reading->problems);
    if (err == EW_OK) {
        *out = ew__join(reading, ew__buf_view(&json), 0, ew__str(NULL, 0));
    } else if (err != EW_ESYNTAX) {
        reading->problems->no_memory = true;
    }
    ew__buf_done(&json);
}

/* ---- numbers ---- */

static bool parse_size_or(const ew__field *field, ew_str text, uint64_t *ret) {
    if (field->type == EW__FIELD_LIMIT) {
        return ew__limit_parse(field->name, text, ret);
    }
    if (field->type == EW__FIELD_SIZE) {
        return ew__size_parse(text, ret);
    }
    if (field->type == EW__FIELD_NUMBER) {
        return ew__u64_parse(text, ret);
    }
    if (ew__duration_parse(text, ret) != EW_OK) {
        return false;
    }
    if (field->type == EW__FIELD_SECONDS) {
        *ret = (*ret + 999) / 1000;
    }
    return true;
}

static void out_of_range(ew__reading *reading, const ew__field *field, const ew__node *node) {
    char buf[80];
    if (field->type == EW__FIELD_NUMBER || field->max) {
        ew__problem_add(reading->problems, node->line, node->column, "%s is out of range: it wants %s", field->name,
                        number_holds(field, buf, sizeof buf));
    } else {
        ew__problem_add(reading->problems, node->line, node->column, "%s is out of range: it must be above zero",
                        field->name);
    }
}

static void read_number(ew__reading *reading, const ew__field *field, const ew__node *node, char *out) {
    uint64_t value = 0;
    if (node->kind != EW__NODE_TEXT || !parse_size_or(field, node->text, &value)) {
        ew__field_wants(reading, field, node);
    } else if (value < field->min || (field->max && value > field->max)) {
        out_of_range(reading, field, node);
    } else if (field->size == sizeof(unsigned)) {
        unsigned small = (unsigned)value;
        memcpy(out, &small, sizeof small);
    } else {
        memcpy(out, &value, sizeof value);
    }
}

static void read_word(ew__reading *reading, const ew__field *field, const ew__node *node, char *out) {
    for (unsigned i = 0; node->kind == EW__NODE_TEXT && field->words[i]; i++) {
        if (ew__str_is(node->text, ew_str_from(field->words[i]))) {
            memcpy(out, &i, sizeof i); /* an enum is as large as that */
            return;
        }
    }
    ew__field_wants(reading, field, node);
}

static const struct {
    const char *suffix;
    uint64_t unit;
} sizes[] = {{"G", 1u << 30}, {"M", 1u << 20}, {"K", 1u << 10}}, times[] = {{"h", 3600000}, {"m", 60000}, {"s", 1000}};

void ew__limit_text(const char *name, uint64_t value, char *buf, size_t size) {
    bool bytes = ends_with(name, "_bytes"), ms = ends_with(name, "_ms");
    for (size_t i = 0; i < 3 && value && (bytes || ms); i++) {
        uint64_t unit = bytes ? sizes[i].unit : times[i].unit;
        if (value % unit == 0) {
            (void)snprintf(buf, size, "%llu%s", (unsigned long long)(value / unit),
                           bytes ? sizes[i].suffix : times[i].suffix);
            return;
        }
    }
    (void)snprintf(buf, size, "%llu%s", (unsigned long long)value, ms && value ? "ms" : "");
}

/* ---- all ---- */

void ew__value_read(ew__reading *reading, const ew__field *field, const ew__node *node, void *item) {
    char *at = (char *)item + field->offset;
    switch (field->type) {
    case EW__FIELD_TEXT:
        *(const char **)(void *)at = plain_text(reading, field, node);
        break;
    case EW__FIELD_PATH:
        read_path(reading, field, node, (const char **)(void *)at);
        break;
    case EW__FIELD_BOOL:
        if (!ew__node_bool(node, (bool *)(void *)at)) {
            ew__field_wants(reading, field, node);
        }
        break;
    case EW__FIELD_WORD:
        read_word(reading, field, node, at);
        break;
    case EW__FIELD_TEXTS:
    case EW__FIELD_PAIRS:
        read_texts(reading, field, node, (const char ***)(void *)at);
        break;
    case EW__FIELD_COMMAND:
        read_command(reading, field, node, (const char ***)(void *)at);
        break;
    case EW__FIELD_JSON:
    case EW__FIELD_JSON_TEXT:
        read_json(reading, field, node, (const char **)(void *)at);
        break;
    default:
        read_number(reading, field, node, at);
        break;
    }
}
