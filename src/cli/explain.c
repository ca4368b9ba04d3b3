/*
 * cli/explain.c: an action for people: what it does, the schemas of its input, output and chunks in words, and a command
 * line with an example that can be pasted. Descriptors come from a peer: whatever they hold, nothing is followed for
 * ever, and no control byte reaches the terminal.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/explain.h"
#include <math.h>
#include <string.h>

#define DEPTH_MAX 6
#define MEMBERS_MAX 40 /* of one object, and choices of one anyOf */

static ew_str member(ew_str object, const char *name) { return ew_json_member(object, ew_str_from(name)); }

static bool is_type(ew_str value, ew_json_type type) { return value.ptr && ew_json_typeof(value) == type; }

/* "#/$defs/x" is looked up in the root; other references are left alone. */
static ew_str resolve(ew_str root, ew_str schema) {
    for (int i = 0; i < DEPTH_MAX; i++) {
        char pointer[256];
        size_t len = 0;
        ew_str ref = is_type(schema, EW_JSON_OBJECT) ? member(schema, "$ref") : (ew_str){NULL, 0};
        if (!is_type(ref, EW_JSON_STRING) || ew_json_string(ref, pointer, sizeof pointer - 1, &len) != EW_OK ||
            len == 0 || pointer[0] != '#') {
            return schema;
        }
        pointer[len] = 0;
        schema = len == 1 ? root : ew_json_get(root, pointer + 1);
    }
    return (ew_str){NULL, 0};
}

/* Whether the schema names a type among its own. */
static bool has_type(ew_str schema, const char *name) {
    ew_str type = member(schema, "type");
    char text[32];
    (void)snprintf(text, sizeof text, "\"%s\"", name);
    if (!is_type(type, EW_JSON_ARRAY)) {
        return type.ptr && ew_str_eq(type, ew_str_from(text));
    }
    for (ew_json_iter it = {.offset_ = 0}; ew_json_next(type, &it);) {
        if (ew_str_eq(it.value, ew_str_from(text))) {
            return true;
        }
    }
    return false;
}

static ew_str choices(ew_str schema) {
    ew_str any = member(schema, "anyOf");
    return any.ptr ? any : member(schema, "oneOf");
}

/* ---- does it need an input? ---- */

static bool holds_null(ew_str array) {
    for (ew_json_iter it = {.offset_ = 0}; ew_json_next(array, &it);) {
        if (is_type(it.value, EW_JSON_NULL)) {
            return true;
        }
    }
    return false;
}

static bool wants(ew_str root, ew_str schema, bool empty_object, int depth) {
    schema = resolve(root, schema);
    if (depth > DEPTH_MAX || !is_type(schema, EW_JSON_OBJECT)) {
        return false;
    }
    ew_str options = choices(schema), constant = member(schema, "const"), listed = member(schema, "enum");
    ew_json_iter it = {.offset_ = 0};
    bool required = ew_json_next(member(schema, "required"), &it);
    if (is_type(options, EW_JSON_ARRAY)) {
        for (it = (ew_json_iter){.offset_ = 0}; ew_json_next(options, &it);) {
            if (!wants(root, it.value, empty_object, depth + 1)) {
                return false;
            }
        }
        return true;
    }
    if (constant.ptr || listed.ptr) {
        return constant.ptr ? !is_type(constant, EW_JSON_NULL) : !holds_null(listed);
    }
    if (!member(schema, "type").ptr) {
        return required; /* null would pass, but is not what is meant */
    }
    if (empty_object) {
        return !has_type(schema, "object") || required;
    }
    return !has_type(schema, "null");
}

bool ew__explain_wants_input(ew_str descriptor, bool empty_object) {
    ew_str schema = member(descriptor, "inputSchema");
    return wants(schema, schema, empty_object, 0);
}

/* ---- an example ---- */

static ew_err add_example(ew__text *out, ew_str root, ew_str schema, int depth);

static bool is_required(ew_str schema, ew_str name) {
    for (ew_json_iter it = {.offset_ = 0}; ew_json_next(member(schema, "required"), &it);) {
        if (ew_str_eq(it.value, name)) {
            return true;
        }
    }
    return false;
}

/* All members at the top; below, those that must be. */
static ew_err add_object(ew__text *out, ew_str root, ew_str schema, int depth) {
    ew_err err = ew__text_cstr(out, "{");
    unsigned n = 0;
    for (ew_json_iter it = {.offset_ = 0}; err == EW_OK && ew_json_next(member(schema, "properties"), &it);) {
        if (n == MEMBERS_MAX || (depth > 0 && !is_required(schema, it.key))) {
            continue;
        }
        err = ew__cli_format(out, n++ ? ",%j:" : "%j:", it.key);
        if (err == EW_OK) {
            err = add_example(out, root, it.value, depth + 1);
        }
    }
    return err == EW_OK ? ew__text_cstr(out, "}") : err;
}

static ew_err add_string(ew__text *out, ew_str schema) {
    static const struct {
        const char *format, *example;
    } formats[] = {{"date-time", "\"2026-01-31T12:00:00Z\""},
                   {"date", "\"2026-01-31\""},
                   {"time", "\"12:00:00Z\""},
                   {"email", "\"ada@example.com\""},
                   {"uri", "\"https://example.com\""},
                   {"uuid", "\"123e4567-e89b-12d3-a456-426614174000\""},
                   {"hostname", "\"example.com\""},
                   {"ipv4", "\"192.0.2.1\""}};
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        if (ew__cli_is(schema, "/format", formats[i].format)) {
            return ew__text_cstr(out, formats[i].example);
        }
    }
    double min = 0, max = 1000; /* a schema may spell a count as 3.0 */
    (void)ew_json_double(ew_json_get(schema, "/minLength"), &min);
    (void)ew_json_double(ew_json_get(schema, "/maxLength"), &max);
    ew_err err = ew__text_cstr(out, max < 4 ? "\"" : "\"text");
    for (int i = max < 4 ? 0 : 4; err == EW_OK && i < min && i < 1000; i++) {
        err = ew__text_cstr(out, "x");
    }
    return err == EW_OK ? ew__text_cstr(out, "\"") : err;
}

static ew_err add_array(ew__text *out, ew_str root, ew_str schema, int depth) {
    ew_err err = ew__text_cstr(out, "[");
    ew_str items = member(schema, "items");
    double min = 1;
    (void)ew_json_double(ew_json_get(schema, "/minItems"), &min);
    for (int i = 0; err == EW_OK && (i < min || i == 0) && i < 3; i++) {
        err = i ? ew__text_cstr(out, ",") : EW_OK;
        err = err == EW_OK ? add_example(out, root, items, depth + 1) : err;
    }
    return err == EW_OK ? ew__text_cstr(out, "]") : err;
}

static ew_err add_number(ew__text *out, ew_str schema) {
    ew_str min = member(schema, "minimum"), max = member(schema, "maximum"), above = member(schema, "exclusiveMinimum");
    if (is_type(min, EW_JSON_NUMBER)) {
        return ew__text_add(out, min);
    }
    if (is_type(above, EW_JSON_NUMBER)) {
        double limit = 0;
        (void)ew_json_double(above, &limit);
        return ew__cli_format(out, "%g", floor(limit) + 1);
    }
    double most = 1;
    (void)ew_json_double(max, &most);
    bool low = is_type(max, EW_JSON_NUMBER) && most < 1;
    return low ? ew__text_add(out, max) : ew__text_cstr(out, "1");
}

/* What the schema itself gives: ptr NULL if nothing. */
static ew_str given(ew_str schema) {
    static const char *const lists[] = {"examples", "enum"}, *const values[] = {"example", "default", "const"};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        ew_str list = member(schema, lists[i]);
        ew_json_iter it = {.offset_ = 0};
        if (is_type(list, EW_JSON_ARRAY) && ew_json_next(list, &it)) {
            return it.value;
        }
    }
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        ew_str value = member(schema, values[i]);
        if (value.ptr) {
            return value;
        }
    }
    return (ew_str){NULL, 0};
}

/* The first choice that is not null. */
static ew_str choose(ew_str schema) {
    ew_str options = choices(schema);
    options = options.ptr ? options : member(schema, "allOf");
    for (ew_json_iter it = {.offset_ = 0}; is_type(options, EW_JSON_ARRAY) && ew_json_next(options, &it);) {
        if (!is_type(it.value, EW_JSON_OBJECT) || !has_type(it.value, "null")) {
            return it.value;
        }
    }
    return (ew_str){NULL, 0};
}

static ew_err add_example(ew__text *out, ew_str root, ew_str schema, int depth) {
    schema = resolve(root, schema);
    if (depth > DEPTH_MAX || !is_type(schema, EW_JSON_OBJECT)) {
        return ew__text_cstr(out, "null");
    }
    ew_str value = given(schema), choice = choose(schema);
    if (value.ptr) {
        return ew__text_add(out, value);
    }
    if (has_type(schema, "object") || member(schema, "properties").ptr) {
        return add_object(out, root, schema, depth);
    }
    if (choice.ptr) {
        return add_example(out, root, choice, depth + 1);
    }
    return has_type(schema, "string")                                  ? add_string(out, schema)
           : has_type(schema, "integer") || has_type(schema, "number") ? add_number(out, schema)
           : has_type(schema, "array")                                 ? add_array(out, root, schema, depth)
           : has_type(schema, "boolean")                               ? ew__text_cstr(out, "true")
                                                                       : ew__text_cstr(out, "null");
}

/* ---- words for a shell ---- */

static void print_quoted(FILE *out, ew_str word) {
    (void)fputc('\'', out);
    for (size_t i = 0; i < word.len; i++) {
        if (word.ptr[i] == '\'') {
            (void)fputs("'\\''", out);
        } else {
            (void)fputc(word.ptr[i], out);
        }
    }
    (void)fputc('\'', out);
}

/* One word as a shell takes it: in single quotes if it needs them. JSON stays the same value. */
static void print_word(FILE *out, ew_str word) {
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                "0123456789_-./:@%+,=";
    ew__text shown = {0};
    if (ew__cli_printable(&shown, word, EW__PRINTABLE_JSON) == EW_OK) {
        if (shown.len > 0 && strspn(shown.ptr, plain) >= shown.len) {
            (void)fputs(shown.ptr, out);
        } else {
            print_quoted(out, ew__text_view(&shown));
        }
    }
    ew__text_free(&shown);
}

static void print_example(FILE *out, const ew__explained *what) {
    ew_str schema = member(what->descriptor, "inputSchema");
    ew__text raw = {0}, flat = {0};
    if (add_example(&raw, schema, schema, 0) == EW_OK && ew__text_reserve(&flat, raw.len + 1) == EW_OK) {
        int n = ew_json_minify(ew__text_view(&raw), flat.ptr, raw.len + 1);
        flat.len = n > 0 ? (size_t)n : 0;
    }
    (void)fputs("\nExample:\n  everywire call ", out);
    print_word(out, ew_str_from(what->target));
    (void)fputc(' ', out);
    print_word(out, ew_str_from(what->action));
    if (flat.len > 0 && !ew_str_eq(ew__text_view(&flat), EW_STR("null"))) {
        (void)fputc(' ', out);
        print_word(out, ew__text_view(&flat));
    }
    bool carried = ew__cli_can(what->target) & EW_WIRE_CHUNKS;
    if (carried && member(what->descriptor, "streamSchema").ptr) {
        (void)fputs(" --stream", out);
    }
    for (char **word = what->command; word && *word; word++) {
        (void)fputs(word == what->command ? " -- " : " ", out);
        print_word(out, ew_str_from(*word));
    }
    (void)fputc('\n', out);
    ew__text_free(&raw);
    ew__text_free(&flat);
}

/* ---- schemas in words ---- */

static void print_plain(FILE *out, ew_str json) {
    ew__text text = {0};
    if (is_type(json, EW_JSON_STRING) && ew__cli_plain(&text, json) == EW_OK) {
        (void)fwrite(text.ptr, 1, text.len, out);
    } else if (!is_type(json, EW_JSON_STRING)) {
        ew__cli_print(out, json, EW__PRINTABLE_JSON);
    }
    ew__text_free(&text);
}

static void print_list(FILE *out, ew_str array, const char *between, bool quoted) {
    bool first = true;
    for (ew_json_iter it = {.offset_ = 0}; ew_json_next(array, &it); first = false) {
        (void)fputs(first ? "" : between, out);
        if (quoted) {
            ew__cli_print(out, it.value, EW__PRINTABLE_JSON);
        } else {
            print_plain(out, it.value);
        }
    }
}

static void print_type(FILE *out, ew_str root, ew_str schema, int depth) {
    ew_str type = member(schema, "type"), listed = member(schema, "enum"), constant = member(schema, "const");
    ew_str items = resolve(root, member(schema, "items"));
    if (constant.ptr) {
        ew__cli_print(out, constant, EW__PRINTABLE_JSON);
    } else if (is_type(listed, EW_JSON_ARRAY)) {
        (void)fputs("one of ", out);
        print_list(out, listed, ", ", true);
    } else if (is_type(type, EW_JSON_ARRAY)) {
        print_list(out, type, " or ", false);
    } else if (type.ptr) {
        print_plain(out, type);
    } else {
        (void)fputs(member(schema, "properties").ptr ? "object"
                    : choices(schema).ptr            ? "one of these"
                                                     : "any JSON",
                    out);
    }
    if (has_type(schema, "array") && is_type(items, EW_JSON_OBJECT) && depth < DEPTH_MAX) {
        (void)fputs(" of ", out);
        print_type(out, root, items, depth + 1);
    }
}

static void print_notes(FILE *out, ew_str schema) {
    static const struct {
        const char *keyword, *words;
    } notes[] = {{"minimum", "from "},           {"exclusiveMinimum", "above "}, {"maximum", "to "},
                 {"exclusiveMaximum", "below "}, {"minLength", "at least "},     {"maxLength", "at most "},
                 {"minItems", "at least "},      {"maxItems", "at most "},       {"pattern", "like "},
                 {"format", "format "},          {"default", "default "}};
    for (size_t i = 0; i < sizeof notes / sizeof *notes; i++) {
        ew_str value = member(schema, notes[i].keyword);
        if (value.ptr) {
            (void)fprintf(out, ", %s", notes[i].words);
            if (strcmp(notes[i].keyword, "default") == 0) {
                ew__cli_print(out, value, EW__PRINTABLE_JSON);
            } else {
                print_plain(out, value);
            }
            (void)fputs(strstr(notes[i].keyword, "Length")  ? " characters"
                        : strstr(notes[i].keyword, "Items") ? " items"
                                                            : "",
                        out);
        }
    }
    ew_str description = member(schema, "description");
    if (is_type(description, EW_JSON_STRING)) {
        (void)fputs(": ", out);
        print_plain(out, description);
    }
}

static void print_schema(FILE *out, ew_str root, ew_str schema, int depth);

static void print_members(FILE *out, ew_str root, ew_str schema, int depth) {
    unsigned n = 0;
    for (ew_json_iter it = {.offset_ = 0}; n < MEMBERS_MAX && ew_json_next(member(schema, "properties"), &it); n++) {
        (void)fprintf(out, "%*s", depth * 2 + 2, "");
        print_plain(out, it.key);
        (void)fputs(is_required(schema, it.key) ? " (required): " : ": ", out);
        print_schema(out, root, it.value, depth + 1);
    }
}

/* Behind what has been printed of its line; ends it, and goes on below. */
static void print_schema(FILE *out, ew_str root, ew_str schema, int depth) {
    schema = resolve(root, schema);
    if (depth > DEPTH_MAX || !is_type(schema, EW_JSON_OBJECT)) {
        bool nothing = is_type(schema, EW_JSON_BOOL) && schema.ptr[0] == 'f';
        (void)fputs(nothing ? "nothing\n" : "any JSON\n", out);
        return;
    }
    print_type(out, root, schema, depth);
    print_notes(out, schema);
    (void)fputc('\n', out);
    print_members(out, root, schema, depth);
    unsigned n = 0;
    for (ew_json_iter it = {.offset_ = 0}; n < MEMBERS_MAX && ew_json_next(choices(schema), &it); n++) {
        (void)fprintf(out, "%*s- ", depth * 2 + 2, "");
        print_schema(out, root, it.value, depth + 1);
    }
}

void ew__explain(FILE *out, const ew__explained *what) {
    static const struct {
        const char *member, *title;
    } parts[] = {{"inputSchema", "Input"}, {"streamSchema", "Chunks"}, {"outputSchema", "Output"}};
    bool colour = ew__cli_colour(out == stderr ? 2 : 1);
    const char *bold = colour ? "\033[1m" : "", *plain = colour ? "\033[0m" : "";
    (void)fputs(bold, out);
    print_plain(out, what->key);
    (void)fprintf(out, "%s\n", plain);
    ew_str description = member(what->descriptor, "description");
    if (is_type(description, EW_JSON_STRING)) {
        print_plain(out, description);
        (void)fputc('\n', out);
    }
    (void)fputc('\n', out);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        ew_str schema = member(what->descriptor, parts[i].member);
        if (schema.ptr) {
            (void)fprintf(out, "%s%s%s: ", bold, parts[i].title, plain);
            print_schema(out, schema, schema, 0);
        }
    }
    print_example(out, what);
}
