/*
 * cli/find.c: one action among those that a peer has listed: by its key, or by a name that only one action has; and if
 * there is none, those that may have been meant.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/find.h"
#include <string.h>

/* "greet" of "/flow/greet", and of "/greet", which is how Stepflow's servers call theirs; else the key itself. */
static ew_str name_of(ew_str key) {
    if (key.len < 2 || key.ptr[0] != '/') {
        return key;
    }
    const char *slash = memchr(key.ptr + 1, '/', key.len - 1);
    slash = slash ? slash : key.ptr;
    return (ew_str){slash + 1, key.len - (size_t)(slash + 1 - key.ptr)};
}

static ew_err note(ew__text *list, unsigned count, ew_str raw_key) {
    return ew__cli_format(list, count == 0 ? "[%j" : ",%j", raw_key);
}

static ew_err note_if_near(ew__cli_match *found, ew_str wanted, ew_str raw_key, ew_str key) {
    ew__suggestion by_key, by_name;
    ew__suggestion_init(&by_key, wanted);
    ew__suggestion_init(&by_name, name_of(wanted));
    ew__suggestion_try(&by_key, key);
    ew__suggestion_try(&by_name, name_of(key));
    return by_key.best.ptr || by_name.best.ptr ? note(&found->near, found->n_near++, raw_key) : EW_OK;
}

/* Looks at one action; *ret_exact when its key is the wanted one, which ends the search. */
static ew_err look(ew__cli_match *found, ew_str wanted, const ew_json_iter *it, ew__text *scratch, bool *ret_exact) {
    size_t len = 0;
    scratch->len = 0;
    ew_err err = ew__text_reserve(scratch, it->key.len);
    if (err != EW_OK || ew_json_string(it->key, scratch->ptr, it->key.len, &len) != EW_OK) {
        return err; /* a key that is no text is none that could be asked for */
    }
    ew_str key = {scratch->ptr, len};
    *ret_exact = ew_str_eq(key, wanted);
    if (*ret_exact || ew_str_eq(name_of(key), wanted)) {
        found->n = *ret_exact ? 1 : found->n + 1;
        found->key = it->key;
        found->descriptor = it->value;
        return note(&found->matches, found->n - 1, it->key);
    }
    return note_if_near(found, wanted, it->key, key);
}

ew_err ew__find_action(ew_str list, ew_str wanted, ew__cli_match *found) {
    ew__text scratch = {0};
    ew_json_iter it = {.offset_ = 0};
    ew_err err = EW_OK;
    bool exact = false;
    *found = (ew__cli_match){.n = 0};
    while (err == EW_OK && !exact && ew_json_next(list, &it)) {
        err = look(found, wanted, &it, &scratch, &exact);
    }
    ew__text_free(&scratch);
    if (err == EW_OK && found->n > 0 && !exact) {
        err = ew__text_cstr(&found->matches, "]");
    }
    if (err == EW_OK && found->n_near > 0) {
        err = ew__text_cstr(&found->near, "]");
    }
    return err;
}

ew_err ew__cli_match_names(ew_str keys, ew__text *out) {
    ew_err err = EW_OK;
    const char *between = "";
    for (ew_json_iter it = {.offset_ = 0}; err == EW_OK && ew_json_next(keys, &it);) {
        err = ew__text_cstr(out, between);
        err = err == EW_OK ? ew__cli_plain(out, it.value) : err;
        between = ", ";
    }
    return err;
}

void ew__cli_match_done(ew__cli_match *found) {
    ew__text_free(&found->matches);
    ew__text_free(&found->near);
}
