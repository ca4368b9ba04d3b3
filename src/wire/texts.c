/*
 * wire/texts.c: see texts.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "wire/texts.h"
#include "wire/wire.h"
#include <stdio.h>
#include <string.h>

#define OPTION_WIDTH 79
#define ITEM_SIZE 80

/* ---- items of lists: return false behind the last item; empty items are left out ---- */

typedef bool get_item(size_t i, char item[ITEM_SIZE]);

static bool put(char item[ITEM_SIZE], bool wanted, const char *text) {
    (void)snprintf(item, ITEM_SIZE, "%s", wanted ? text : "");
    return true;
}

/* The scheme up to its colon, which `keep` includes. */
static bool put_scheme(char item[ITEM_SIZE], bool wanted, const ew_scheme *scheme, bool keep) {
    (void)snprintf(item, ITEM_SIZE, "%.*s", wanted ? (int)strcspn(scheme->text, ":") + keep : 0, scheme->text);
    return true;
}

static bool get_listener(size_t i, char item[ITEM_SIZE]) {
    const ew_listener_name *name = ew_listener_name_at(i);
    return name && put(item, !name->tls && name->help, name->name);
}

static bool get_secure_listener(size_t i, char item[ITEM_SIZE]) {
    const ew_listener_name *name = ew_listener_name_at(i);
    return name && put(item, name->tls && name->help, name->name);
}

/* A scheme whose text is the beginning of another one is not a form of its own. */
static bool get_form(size_t i, char item[ITEM_SIZE]) {
    const ew_scheme *scheme = ew_scheme_at(i);
    return scheme && put(item, !scheme->tls && !(scheme->rest && scheme->reach == EW_REACH_TCP), scheme->form);
}

static bool get_open_form(size_t i, char item[ITEM_SIZE]) {
    const ew_scheme *scheme = ew_scheme_at(i);
    return scheme && put(item, !scheme->tls && !scheme->rest, scheme->form);
}

static bool get_complete(size_t i, char item[ITEM_SIZE]) {
    const ew_scheme *scheme = ew_scheme_at(i);
    return scheme && put_scheme(item, scheme->rest != NULL, scheme, true);
}

static bool get_secure(size_t i, char item[ITEM_SIZE]) {
    const ew_scheme *scheme = ew_scheme_at(i);
    return scheme && put_scheme(item, scheme->tls, scheme, true);
}

/* Peers that the client dials are before those that dial it. */
static bool get_secure_dialled_first(size_t i, char item[ITEM_SIZE]) {
    size_t n = 0;
    while (ew_scheme_at(n))
        n++;
    const ew_scheme *scheme = n ? ew_scheme_at(i % n) : NULL;
    return scheme && i < 2 * n &&
           put(item, scheme->tls && (scheme->reach == EW_REACH_LISTEN) == (i >= n), scheme->text);
}

static bool get_awaited(size_t i, char item[ITEM_SIZE]) {
    const ew_scheme *scheme = ew_scheme_at(i);
    return scheme && put(item, scheme->reach == EW_REACH_LISTEN, scheme->wire);
}

static bool get_slow(size_t i, char item[ITEM_SIZE]) {
    const ew_scheme *scheme = ew_scheme_at(i);
    return scheme && put(item, scheme->slow_start, scheme->wire);
}

static bool get_single(size_t i, char item[ITEM_SIZE]) {
    const ew_scheme *scheme = ew_scheme_at(i);
    return scheme && put_scheme(item, !scheme->tls && scheme->http && scheme->reach == EW_REACH_TCP, scheme, false);
}

static bool is_for_programs(const ew_scheme *scheme) {
    return scheme->command == EW_SCHEME_COMMAND_MAY && scheme->reach == EW_REACH_TCP;
}

static bool get_program(size_t i, char item[ITEM_SIZE]) {
    const ew_scheme *scheme = ew_scheme_at(i);
    return scheme && put_scheme(item, is_for_programs(scheme), scheme, true);
}

static bool get_program_form(size_t i, char item[ITEM_SIZE]) {
    const ew_scheme *scheme = ew_scheme_at(i);
    return scheme && put(item, is_for_programs(scheme), scheme->form);
}

static bool put_if_can(size_t i, unsigned can, char item[ITEM_SIZE]) {
    const ew_wire_info *info = ew_wire_info_at(i);
    return info && put(item, (info->can & can) != 0, info->name);
}

static bool get_context(size_t i, char item[ITEM_SIZE]) { return put_if_can(i, EW_WIRE_CONTEXT, item); }
static bool get_labels(size_t i, char item[ITEM_SIZE]) { return put_if_can(i, EW_WIRE_LABELS, item); }
static bool get_input(size_t i, char item[ITEM_SIZE]) { return put_if_can(i, EW_WIRE_INPUT, item); }
static bool get_object(size_t i, char item[ITEM_SIZE]) { return put_if_can(i, EW_WIRE_OBJECT, item); }

/* The last wire is the first: it is asked first about a first line. */
static bool get_stdio_title(size_t i, char item[ITEM_SIZE]) {
    size_t n = 0;
    while (ew_wire_info_at(n))
        n++;
    const ew_wire_info *info = i < n ? ew_wire_info_at(n - 1 - i) : NULL;
    return info && put(item, (info->can & EW_WIRE_STDIO) != 0, info->title);
}

static bool put_if_takes(size_t i, unsigned takes, bool title, char item[ITEM_SIZE]) {
    const ew__wire *wire = ew__wires()[i];
    const ew__descriptor *about = wire ? wire->about : NULL;
    bool wanted = about && about->info && (about->takes & takes);
    return wire && put(item, wanted, !wanted ? "" : title ? about->info->title : about->info->name);
}

static bool get_telemetry(size_t i, char item[ITEM_SIZE]) { return put_if_takes(i, EW__TAKES_TELEMETRY, false, item); }
static bool get_blobs(size_t i, char item[ITEM_SIZE]) { return put_if_takes(i, EW__TAKES_BLOBS, false, item); }
static bool get_blobs_title(size_t i, char item[ITEM_SIZE]) { return put_if_takes(i, EW__TAKES_BLOBS, true, item); }

static const struct list {
    const char *topic;
    get_item *get;
    const char *between, *last; /* before the last item */
    const char *quote, *unquote;
} lists[] = {
    {"listeners", get_listener, ", ", " or ", "", ""},
    {"secure listeners", get_secure_listener, ", ", " or ", "", ""},
    {"targets", get_form, ", ", " or ", "", ""},
    {"secure schemes", get_secure_dialled_first, ", ", " and ", "", ""},
    {"`targets`", get_open_form, ", ", ", ", "`", "`"},
    {"`secure schemes`", get_secure, ", ", ", ", "`", "`"},
    {"`complete targets`", get_complete, ", ", ", ", "`\"", "\"`"},
    {"`program schemes`", get_program, ", ", ", ", "`", "`"},
    {"program targets", get_program_form, ", ", " or ", "", ""},
    {"awaited", get_awaited, ", ", " and ", "", ""},
    {"slow", get_slow, ", ", " and ", "", ""},
    {"single", get_single, ", ", " and ", "", ""},
    {"context", get_context, ", ", ", ", "", ""},
    {"labels", get_labels, ", ", ", ", "", ""},
    {"input", get_input, ", ", ", ", "", ""},
    {"object", get_object, ", ", " and ", "", ""},
    {"telemetry", get_telemetry, ", ", ", ", "", ""},
    {"blobs", get_blobs, ", ", ", ", "", ""},
    {"blobs title", get_blobs_title, ", ", " or ", "", ""},
    {"stdio titles", get_stdio_title, ", ", "\nor ", "", ""},
};

/* ---- the text ---- */

typedef struct sink {
    char *ptr;
    size_t size, len;
} sink;

static void add(sink *out, const char *text, size_t n) {
    size_t room = out->size - 1 - out->len;
    n = n < room ? n : room;
    memcpy(out->ptr + out->len, text, n);
    out->len += n;
    out->ptr[out->len] = 0;
}

static void add_text(sink *out, const char *text) { add(out, text, strlen(text)); }

/* The next item that is neither empty nor the one before. false: there is none. */
static bool next_item(const struct list *list, size_t *i, const char *before, char item[ITEM_SIZE]) {
    while (list->get((*i)++, item))
        if (*item && strcmp(item, before) != 0)
            return true;
    return false;
}

static void add_list(sink *out, const struct list *list) {
    char item[ITEM_SIZE], next[ITEM_SIZE];
    size_t i = 0;
    bool more = next_item(list, &i, "", item);
    for (bool first = true; more; first = false) {
        more = next_item(list, &i, item, next);
        add_text(out, first ? "" : more ? list->between : list->last);
        add_text(out, list->quote);
        add_text(out, item);
        add_text(out, list->unquote);
        memcpy(item, next, sizeof item);
    }
}

/* The notes of this rank. Returns whether there is one of a higher rank. */
static bool add_notes(sink *out, const char *topic, size_t n, unsigned rank) {
    bool higher = false;
    for (const ew__wire *const *wire = ew__wires(); *wire; wire++) {
        const ew__wire_note *note = (*wire)->about ? (*wire)->about->notes : NULL;
        for (; note && note->topic; note++) {
            bool is_it = strlen(note->topic) == n && memcmp(note->topic, topic, n) == 0;
            if (is_it && note->rank == rank)
                add_text(out, note->text);
            higher = higher || (is_it && note->rank > rank);
        }
    }
    return higher;
}

static void add_topic(sink *out, const char *topic, size_t n) {
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        if (strlen(lists[i].topic) == n && memcmp(lists[i].topic, topic, n) == 0) {
            add_list(out, &lists[i]);
            return;
        }
    for (unsigned rank = 0; add_notes(out, topic, n, rank); rank++)
        ;
}

static void expand(sink *out, const char *text) {
    const char *topic, *end;
    while ((topic = strstr(text, "<<")) != NULL && (end = strstr(topic, ">>")) != NULL) {
        add(out, text, (size_t)(topic - text));
        add_topic(out, topic + 2, (size_t)(end - topic - 2));
        text = end + 2;
    }
    add_text(out, text);
}

/* How much of a line fits into `width`: up to the last space; a longer word, and a rest of two bytes, stay on the line. */
static size_t line_length(const char *line, size_t width) {
    size_t n = strcspn(line, "\n");
    if (n <= width + 2)
        return n;
    n = width;
    while (n > 0 && line[n] != ' ')
        n--;
    return n ? n : strcspn(line, " \n");
}

static void wrap(sink *out, const char *text, size_t width, size_t indent) {
    static const char spaces[] = "                ";
    size_t left = width; /* the first line has no indent of ours */
    while (*text) {
        size_t n = line_length(text, left);
        add(out, text, n);
        text += n;
        if (*text) {
            add(out, "\n", 1);
            text++;
            add(out, spaces, *text ? indent : 0);
            left = width - indent;
        }
    }
}

char *ew__wire_text(const char *template_text, size_t width, size_t indent, char *out, size_t size) {
    char whole[EW__WIRE_TEXT_MAX];
    sink to = {whole, sizeof whole, 0}, wrapped = {out, size, 0};
    expand(width ? &to : &wrapped, template_text);
    if (width)
        wrap(&wrapped, whole, width, indent);
    return out;
}

const char *ew__wire_option_text(const char *help, char *out, size_t size) {
    return strstr(help, "<<") ? ew__wire_text(help, OPTION_WIDTH, 0, out, size) : help;
}

const ew_scheme *ew__wire_program_scheme(void) {
    const ew_scheme *scheme = NULL;
    for (size_t i = 0; (scheme = ew_scheme_at(i)) != NULL && !is_for_programs(scheme); i++)
        ;
    return scheme;
}
