/*
 * tests/support/corpus.c: see corpus.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "support/corpus.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static _Noreturn void broken(const corpus *c, const char *what) {
    (void)fprintf(stderr, "corpus, line %zu: %s\n", c->n_row, what);
    abort();
}

bool corpus_open(corpus *c, const char *shared, const char *name) {
    char path[4096];
    *c = (corpus){0};
    int n = snprintf(path, sizeof(path), "%s/corpora/%s", shared, name);
    c->file = n > 0 && (size_t)n < sizeof(path) ? fopen(path, "rb") : NULL;
    if (c->file == NULL) {
        (void)printf("SKIP: corpus %s not present\n", name);
        return false;
    }
    return true;
}

void corpus_close(corpus *c) {
    if (c->file != NULL) {
        (void)fclose(c->file);
    }
    free(c->text);
    *c = (corpus){0};
}

bool corpus_next(corpus *c) {
    ssize_t n = getline(&c->text, &c->cap, c->file);
    if (n <= 0) {
        return false;
    }
    c->n_row++;
    c->row = (ew_str){c->text, (size_t)n};
    if (ew_json_check(c->row, NULL) != EW_OK) {
        broken(c, "no JSON");
    }
    return true;
}

bool corpus_has(const corpus *c, const char *pointer) {
    ew_json_type type = ew_json_typeof(ew_json_get(c->row, pointer));
    return type != EW_JSON_NONE && type != EW_JSON_NULL;
}

char *corpus_text(const corpus *c, const char *pointer) {
    ew_str value = ew_json_get(c->row, pointer);
    if (ew_json_typeof(value) != EW_JSON_STRING) {
        return NULL;
    }
    char *text = malloc(value.len + 1);
    size_t len = 0;
    if (text == NULL || ew_json_string(value, text, value.len, &len) != EW_OK) {
        broken(c, "bad string");
    }
    text[len] = '\0';
    return text;
}

static unsigned nibble(const corpus *c, char digit) {
    if (digit >= '0' && digit <= '9') {
        return (unsigned)(digit - '0');
    }
    if (digit < 'a' || digit > 'f') {
        broken(c, "bad hex");
    }
    return (unsigned)(digit - 'a') + 10;
}

static size_t unhex(const corpus *c, ew_str quoted, unsigned char *out) {
    if (ew_json_typeof(quoted) != EW_JSON_STRING || quoted.len % 2 != 0) {
        broken(c, "bad hex");
    }
    size_t n = (quoted.len - 2) / 2;
    for (size_t i = 0; i < n; i++) {
        out[i] = (unsigned char)(nibble(c, quoted.ptr[1 + 2 * i]) << 4 | nibble(c, quoted.ptr[2 + 2 * i]));
    }
    return n;
}

unsigned char *corpus_hex(const corpus *c, const char *pointer, size_t *ret_len) {
    ew_str value = ew_json_get(c->row, pointer);
    unsigned char *out = malloc(value.len / 2 + 1);
    if (out == NULL) {
        broken(c, "no memory");
    }
    *ret_len = 0;
    if (ew_json_typeof(value) == EW_JSON_ARRAY) {
        ew_json_iter it = {0};
        while (ew_json_next(value, &it)) {
            *ret_len += unhex(c, it.value, out + *ret_len);
        }
    } else {
        *ret_len = unhex(c, value, out);
    }
    return out;
}
