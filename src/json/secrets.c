/*
 * json/secrets.c: see secrets.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "json/secrets.h"
#include "base/util.h"

#define HIDDEN EW_STR("\"***\"")
#define VISITS 4096 /* of subschemas: a schema that refers to itself ends there, on the safe side */
#define REFS 32     /* one reference behind the other */

typedef struct search {
    ew__arena *arena;
    ew__secrets *found;
    ew_str root;
    ew__secret_path at;
    uint32_t visits;
    uint32_t refs;
    bool no_memory;
} search;

/* ---- finding ---- */

static void add(search *s) {
    ew__secrets *found = s->found;
    if (s->at.n == 0 || found->n == EW__SECRET_PATHS) {
        found->all = true;
        return;
    }
    if (!found->paths)
        found->paths = ew__arena_alloc(s->arena, EW__SECRET_PATHS * sizeof *found->paths);
    if (found->paths)
        found->paths[found->n++] = s->at;
    else
        s->no_memory = true;
}

static void walk(search *s, ew_str schema);

/* One level deeper; where there is no room for that, all that is there is secret. */
static void descend(search *s, ew_str step, ew_str schema) {
    if (s->at.n == EW__SECRET_STEPS) {
        add(s);
        return;
    }
    s->at.steps[s->at.n++] = step;
    walk(s, schema);
    s->at.n--;
}

static ew_str inside(ew_str json_string) { return ew__str(json_string.ptr + 1, json_string.len - 2); }

static bool is_marked(ew_str schema) {
    return ew__str_is(ew_json_member(schema, EW_STR("x-everywire-secret")), EW_STR("true")) ||
           ew__str_is(ew_json_member(schema, EW_STR("format")), EW_STR("\"password\""));
}

/* "#/$defs/x": only what is in the same schema. */
static void follow(search *s, ew_str ref) {
    char pointer[512];
    size_t n = 0;
    if (ew_json_typeof(ref) != EW_JSON_STRING || ew_json_string(ref, pointer, sizeof pointer - 1, &n) != EW_OK ||
        n == 0 || pointer[0] != '#')
        return;
    pointer[n] = 0;
    ew_str target = ew_json_get(s->root, pointer + 1);
    if (s->refs == REFS) {
        add(s);
        return;
    }
    s->refs++;
    if (target.len)
        walk(s, target);
    s->refs--;
}

/* Members whose values are schemas of this very value (step NULL) or of any of its members or elements. */
static void walk_list(search *s, ew_str schemas, bool deeper) {
    ew_json_iter it = {.offset_ = 0};
    ew_json_type type = ew_json_typeof(schemas);
    if (type != EW_JSON_ARRAY && type != EW_JSON_OBJECT)
        return;
    while (ew_json_next(schemas, &it)) {
        if (deeper)
            descend(s, ew__str(NULL, 0), it.value);
        else
            walk(s, it.value);
    }
}

static void walk_member(search *s, ew_str name, ew_str value) {
    static const char *const same[] = {"if", "then", "else", "not"},
                             *const several[] = {"allOf", "anyOf", "oneOf", "dependentSchemas"},
                             *const under[] = {"additionalProperties", "unevaluatedProperties", "additionalItems",
                                               "unevaluatedItems", "contains"};
    if (ew__str_is(name, EW_STR("$ref")))
        follow(s, value);
    if (ew__str_is(name, EW_STR("properties"))) {
        ew_json_iter it = {.offset_ = 0};
        while (ew_json_typeof(value) == EW_JSON_OBJECT && ew_json_next(value, &it))
            descend(s, inside(it.key), it.value);
    }
    if (ew__str_is(name, EW_STR("patternProperties")) || ew__str_is(name, EW_STR("prefixItems")) ||
        (ew__str_is(name, EW_STR("items")) && ew_json_typeof(value) == EW_JSON_ARRAY))
        walk_list(s, value, true);
    else if (ew__str_is(name, EW_STR("items")))
        descend(s, ew__str(NULL, 0), value);
    for (size_t i = 0; i < sizeof same / sizeof *same; i++)
        if (ew__str_is(name, ew_str_from(same[i])))
            walk(s, value);
    for (size_t i = 0; i < sizeof several / sizeof *several; i++)
        if (ew__str_is(name, ew_str_from(several[i])))
            walk_list(s, value, false);
    for (size_t i = 0; i < sizeof under / sizeof *under; i++)
        if (ew__str_is(name, ew_str_from(under[i])))
            descend(s, ew__str(NULL, 0), value);
}

static void walk(search *s, ew_str schema) {
    ew_json_iter it = {.offset_ = 0};
    if (s->found->all || s->no_memory || ew_json_typeof(schema) != EW_JSON_OBJECT)
        return;
    if (is_marked(schema) || ++s->visits > VISITS) {
        add(s);
        return;
    }
    while (ew_json_next(schema, &it))
        walk_member(s, inside(it.key), it.value);
}

/* "/a/~1b": the steps of a pointer, decoded into the arena. */
static void add_pointer(search *s, ew_str text) {
    s->at.n = 0;
    for (size_t i = 0; i < text.len;) {
        char *step = ew__arena_alloc(s->arena, text.len);
        size_t n = 0;
        if (!step || s->at.n == EW__SECRET_STEPS) {
            s->no_memory = !step;
            break; /* what is deeper is left out with all around it */
        }
        for (i++; i < text.len && text.ptr[i] != '/'; i++) {
            bool escape = text.ptr[i] == '~' && i + 1 < text.len;
            step[n++] = escape ? (text.ptr[i + 1] == '1' ? '/' : '~') : text.ptr[i];
            i += escape;
        }
        bool any = n == 1 && step[0] == '*';
        s->at.steps[s->at.n++] = any ? ew__str(NULL, 0) : ew__str(step, n);
    }
    add(s);
    s->at.n = 0;
}

static bool mentions(ew_str text, ew_str word) {
    return text.len >= word.len && memmem(text.ptr, text.len, word.ptr, word.len) != NULL;
}

ew_err ew__secrets_find(ew__arena *arena, ew_str schema, ew_str pointers, ew__secrets **ret) {
    ew_json_iter it = {.offset_ = 0};
    ew__secrets found = {.all = false};
    search s = {.arena = arena, .found = &found, .root = schema};
    *ret = NULL;
    if (mentions(schema, EW_STR("x-everywire-secret")) || mentions(schema, EW_STR("password")))
        walk(&s, ew_json_get(schema, ""));
    while (pointers.len && ew_json_next(pointers, &it))
        if (ew_json_typeof(it.value) == EW_JSON_STRING)
            add_pointer(&s, inside(it.value));
    if (s.no_memory)
        return EW_ENOMEM;
    if (!found.all && found.n == 0)
        return EW_OK;
    *ret = ew__arena_copy(arena, &found, sizeof found);
    return *ret ? EW_OK : EW_ENOMEM;
}

/* ---- hiding ---- */

/* A name is compared as it stands; one with escapes could be any, so it is taken for the one that is meant. */
static bool is_step(ew_str step, ew_str name) {
    return !step.ptr || (name.len && memchr(name.ptr, '\\', name.len)) || ew__str_is(step, name) ||
           (step.len && memchr(step.ptr, '\\', step.len));
}

static uint64_t narrow(const ew__secrets *secrets, uint64_t alive, unsigned depth, ew_str name) {
    uint64_t left = 0;
    for (uint32_t i = 0; i < secrets->n; i++)
        if (alive >> i & 1 && secrets->paths[i].n > depth && is_step(secrets->paths[i].steps[depth], name))
            left |= (uint64_t)1 << i;
    return left;
}

static bool ends_here(const ew__secrets *secrets, uint64_t alive, unsigned depth) {
    for (uint32_t i = 0; i < secrets->n; i++)
        if (alive >> i & 1 && secrets->paths[i].n == depth)
            return true;
    return false;
}

/* As deep as the longest path: what is below no secret is copied as it stands. */
static void hide(ew__buf *out, ew_str json, const ew__secrets *secrets, uint64_t alive, unsigned depth) {
    ew_json_type type = ew_json_typeof(json);
    ew_json_iter it = {.offset_ = 0};
    char digits[20];
    uint64_t index = 0;
    if (alive && ends_here(secrets, alive, depth)) {
        ew__buf_str(out, HIDDEN);
        return;
    }
    if (!alive || (type != EW_JSON_OBJECT && type != EW_JSON_ARRAY)) {
        ew__buf_str(out, json);
        return;
    }
    ew__buf_char(out, type == EW_JSON_OBJECT ? '{' : '[');
    for (; ew_json_next(json, &it); index++) {
        bool member = type == EW_JSON_OBJECT;
        ew_str name = member ? inside(it.key) : ew__str(digits, ew__u64_text(index, digits));
        if (index)
            ew__buf_char(out, ',');
        if (member) {
            ew__buf_str(out, it.key);
            ew__buf_char(out, ':');
        }
        hide(out, it.value, secrets, narrow(secrets, alive, depth, name), depth + 1);
    }
    ew__buf_char(out, type == EW_JSON_OBJECT ? '}' : ']');
}

ew_err ew__secrets_hide(ew__buf *out, ew_str json, const ew__secrets *secrets) {
    if (secrets->all)
        return ew__buf_str(out, HIDDEN);
    hide(out, ew_json_get(json, ""), secrets, secrets->n == 64 ? UINT64_MAX : ((uint64_t)1 << secrets->n) - 1, 0);
    return out->err;
}

/* ---- names ---- */

static bool is_index(ew_str step) {
    size_t digits = 0;
    while (digits < step.len && step.ptr[digits] >= '0' && step.ptr[digits] <= '9')
        digits++;
    return digits == step.len;
}

/* The last step with a name: what is below it goes with it. ptr NULL: there is none. */
static ew_str last_name(const ew__secret_path *path) {
    for (unsigned i = path->n; i > 0; i--)
        if (path->steps[i - 1].ptr && !is_index(path->steps[i - 1]))
            return path->steps[i - 1];
    return ew__str(NULL, 0);
}

bool ew__secrets_in(const ew__secrets *secrets, ew_str name) {
    if (!secrets || secrets->all)
        return secrets != NULL;
    for (uint32_t i = 0; i < secrets->n; i++) {
        ew_str step = last_name(&secrets->paths[i]);
        if (!step.ptr || (name.ptr && is_step(step, name)))
            return true;
    }
    return false;
}
