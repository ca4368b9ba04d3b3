/*
 * tests/unit/json/test_corpus.c: the public corpora, through both scanners and at every place in a block.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "unit/json/verdict.h"
#include "support/json_or.h"

#include <dirent.h>

/* Our choice where RFC 8259 leaves one: what is well-formed text passes as it is, bytes that are no UTF-8 do not. */
static const struct {
    const char *name;
    ew_err err;
} choices[] = {
    {"i_number_double_huge_neg_exp.json", EW_OK},
    {"i_number_huge_exp.json", EW_OK},
    {"i_number_neg_int_huge_exp.json", EW_OK},
    {"i_number_pos_double_huge_exp.json", EW_OK},
    {"i_number_real_neg_overflow.json", EW_OK},
    {"i_number_real_pos_overflow.json", EW_OK},
    {"i_number_real_underflow.json", EW_OK},
    {"i_number_too_big_neg_int.json", EW_OK},
    {"i_number_too_big_pos_int.json", EW_OK},
    {"i_number_very_big_negative_int.json", EW_OK},
    {"i_object_key_lone_2nd_surrogate.json", EW_OK},
    {"i_string_1st_surrogate_but_2nd_missing.json", EW_OK},
    {"i_string_1st_valid_surrogate_2nd_invalid.json", EW_OK},
    {"i_string_UTF-16LE_with_BOM.json", EW_ESYNTAX},
    {"i_string_UTF-8_invalid_sequence.json", EW_ESYNTAX},
    {"i_string_UTF8_surrogate_U+D800.json", EW_ESYNTAX},
    {"i_string_incomplete_surrogate_and_escape_valid.json", EW_OK},
    {"i_string_incomplete_surrogate_pair.json", EW_OK},
    {"i_string_incomplete_surrogates_escape_valid.json", EW_OK},
    {"i_string_invalid_lonely_surrogate.json", EW_OK},
    {"i_string_invalid_surrogate.json", EW_OK},
    {"i_string_invalid_utf-8.json", EW_ESYNTAX},
    {"i_string_inverted_surrogates_U+1D11E.json", EW_OK},
    {"i_string_iso_latin_1.json", EW_ESYNTAX},
    {"i_string_lone_second_surrogate.json", EW_OK},
    {"i_string_lone_utf8_continuation_byte.json", EW_ESYNTAX},
    {"i_string_not_in_unicode_range.json", EW_ESYNTAX},
    {"i_string_overlong_sequence_2_bytes.json", EW_ESYNTAX},
    {"i_string_overlong_sequence_6_bytes.json", EW_ESYNTAX},
    {"i_string_overlong_sequence_6_bytes_null.json", EW_ESYNTAX},
    {"i_string_truncated-utf-8.json", EW_ESYNTAX},
    {"i_string_utf16BE_no_BOM.json", EW_ESYNTAX},
    {"i_string_utf16LE_no_BOM.json", EW_ESYNTAX},
    {"i_structure_500_nested_arrays.json", EW_ELIMIT},
    {"i_structure_UTF-8_BOM_empty_object.json", EW_ESYNTAX},
    /* test_transform: surrogates as bytes are no UTF-8 */
    {"string_1_invalid_codepoint.json", EW_ESYNTAX},
    {"string_2_invalid_codepoints.json", EW_ESYNTAX},
    {"string_3_invalid_codepoints.json", EW_ESYNTAX},
};

static char *read_file(const char *path, size_t *ret_len) {
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        return NULL;
    }
    char *bytes = malloc(1 << 20);
    assert_non_null(bytes);
    *ret_len = fread(bytes, 1, 1 << 20, file);
    fclose(file);
    return bytes;
}

static void check_file(const char *folder, const char *name) {
    char path[1024];
    size_t len = 0;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    char *bytes = read_file(path, &len);
    assert_non_null(bytes);
    ew_err err = len < 10000 ? verdict_shifted(ew__str(bytes, len)) : verdict(ew__str(bytes, len), 0, NULL);
    ew_err expected = name[0] == 'n' && name[1] == '_' ? EW_ESYNTAX : EW_OK;
    if (strcmp(name, "n_structure_100000_opening_arrays.json") == 0 ||
        strcmp(name, "n_structure_open_array_object.json") == 0) {
        expected = EW_ELIMIT;
    }
    for (size_t i = 0; i < sizeof choices / sizeof *choices; i++) {
        if (strcmp(name, choices[i].name) == 0) {
            expected = choices[i].err;
        }
    }
    if (err != expected) {
        fail_msg("%s: got %d instead of %d", name, err, expected);
    }
    free(bytes);
}

static size_t check_folder(const char *folder) {
    DIR *dir = opendir(folder);
    size_t n = 0;
    if (dir == NULL) {
        printf("SKIP: corpus json-test-suite not present\n");
        skip();
    }
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        if (strstr(entry->d_name, ".json") != NULL) {
            check_file(folder, entry->d_name);
            n++;
        }
    }
    closedir(dir);
    return n;
}

static void test_json_corpus__test_suite(void **state) {
    (void)state;
    assert_int_equal(check_folder(EW_SHARED "/corpora/json-test-suite/test_parsing"), 318);
}

/* Big numbers, repeated names, lone surrogates as escapes are accepted; lone surrogates as bytes are not. */
static void test_json_corpus__transform(void **state) {
    (void)state;
    assert_int_equal(check_folder(EW_SHARED "/corpora/json-test-suite/test_transform"), 22);
}

static bool unhex(const char *hex, size_t n, char *out) {
    for (size_t i = 0; i < n; i++) {
        unsigned byte;
        if (sscanf(hex + 2 * i, "%2x", &byte) != 1) {
            return false;
        }
        out[i] = (char)byte;
    }
    return true;
}

/* One case between quotes at every place of a block, alone and with text around it. */
static void check_utf8(ew_str bytes, bool valid, const char *id) {
    char text[512];
    bool control = false;
    for (size_t i = 0; i < bytes.len; i++) {
        control = control || (unsigned char)bytes.ptr[i] < 0x20;
    }
    for (size_t before = 0; before < 70; before++) {
        size_t len = 0;
        text[len++] = '"';
        memset(text + len, 'x', before);
        len += before;
        memcpy(text + len, bytes.ptr, bytes.len);
        len += bytes.len;
        text[len++] = '"';
        size_t position;
        ew_err err = verdict(ew__str(text, len), 0, &position);
        if (err != (valid && !control ? EW_OK : EW_ESYNTAX)) {
            fail_msg("%s after %zu bytes: %d", id, before, err);
        }
        assert_true(err == EW_OK || (position >= 1 + before && position <= 1 + before + bytes.len));
        assert_int_equal(verdict(ew__str(text, len - 1), 0, NULL), EW_ESYNTAX);
    }
}

static void test_json_corpus__utf8(void **state) {
    (void)state;
    char line[2048], bytes[256];
    size_t n = 0;
    FILE *file = fopen(EW_SHARED "/corpora/utf8/utf8-cases.jsonl", "rb");
    if (file == NULL) {
        printf("SKIP: corpus utf8 not present\n");
        skip();
    }
    while (fgets(line, sizeof line, file) != NULL) {
        ew_str json = ew__str(line, strcspn(line, "\n"));
        assert_int_equal(ew_json_check(json, NULL), EW_OK);
        ew_str hex = json_str_or(json, "/hex", EW_STR(""));
        assert_true(hex.len / 2 <= sizeof bytes && unhex(hex.ptr, hex.len / 2, bytes));
        ew_str id = json_str_or(json, "/id", EW_STR("?"));
        char name[64];
        snprintf(name, sizeof name, "%.*s", (int)id.len, id.ptr);
        check_utf8(ew__str(bytes, hex.len / 2), json_bool_or(json, "/valid", false), name);
        n++;
    }
    fclose(file);
    assert_int_equal(n, 112);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_json_corpus__test_suite),
        cmocka_unit_test(test_json_corpus__transform),
        cmocka_unit_test(test_json_corpus__utf8),
    };
    return cmocka_run_group_tests_name("json_corpus", tests, NULL, NULL);
}
