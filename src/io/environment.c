/*
 * io/environment.c: see environment.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "io/environment.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct variables {
    ew__arena *arena;
    const char **list;
    size_t n;
} variables;

static bool is_all(const char *wanted) { return strcmp(wanted, "*") == 0; }

const char *ew__environment_problem(const char *const *wanted) {
    for (; wanted && *wanted; wanted++)
        if (strcspn(*wanted, "=") == 0)
            return "a variable of the environment has no name";
    return NULL;
}

static size_t count(const char *const *texts) {
    size_t n = 0;
    while (texts && texts[n])
        n++;
    return n;
}

static bool same_name(const char *a, const char *b) {
    size_t n = strcspn(a, "=");
    return n == strcspn(b, "=") && memcmp(a, b, n) == 0;
}

/* "NAME=VALUE", copied; of "NAME" alone the value is ours. NULL: out of memory. */
static char *write_variable(ew__arena *arena, const char *name, const char *value) {
    size_t n = strlen(name), n_value = value ? strlen(value) + 1 : 0;
    char *text = ew__arena_alloc(arena, n + n_value + 1);
    if (!text)
        return NULL;
    memcpy(text, name, n + 1);
    if (value) {
        text[n] = '=';
        memcpy(text + n + 1, value, n_value);
    }
    return text;
}

/* False: out of memory. A variable that this program does not have is left out. */
static bool set(variables *to, const char *wanted) {
    bool sets = strchr(wanted, '=') != NULL;
    const char *value = sets ? NULL : getenv(wanted);
    size_t at = 0;
    if (!sets && !value)
        return true;
    while (at < to->n && !same_name(to->list[at], wanted))
        at++;
    to->list[at] = write_variable(to->arena, wanted, value);
    to->n += at == to->n && to->list[at];
    return to->list[at] != NULL;
}

static bool set_each(variables *to, const char *const *wanted) {
    bool ok = true;
    for (; ok && wanted && *wanted; wanted++)
        ok = is_all(*wanted) || set(to, *wanted);
    return ok;
}

const char *const *ew__environment_make(ew__arena *arena, const char *const *wanted) {
    static const char *const usual[] = {"PATH", "HOME", "USER", "LANG", "LC_ALL", "TZ", "TMPDIR", NULL};
    const char *const *inherited = usual;
    for (const char *const *at = wanted; at && *at; at++)
        if (is_all(*at))
            inherited = (const char *const *)environ;
    size_t room = count(inherited) + count(wanted) + 1;
    variables to = {arena, ew__arena_alloc(arena, room * sizeof *to.list), 0};
    if (!to.list || !set_each(&to, inherited) || !set_each(&to, wanted))
        return NULL;
    to.list[to.n] = NULL;
    return to.list;
}
