/*
 * Texts about the wires (wire/texts.h), and README.md's table of wires, which equals the descriptors.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "wire/texts.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* The n-th cell of a row of a Markdown table, without spaces around it. */
static void cell_of(const char *row, int n, char out[80]) {
    while (n-- > 0)
        row = strchr(row + 1, '|');
    row += strspn(row, "| ");
    size_t len = strcspn(row, "|\n");
    while (len > 0 && row[len - 1] == ' ')
        len--;
    (void)snprintf(out, 80, "%.*s", (int)len, row);
}

static void check_cell(const ew_wire_info *info, const char *row, int n, unsigned can) {
    char cell[80];
    cell_of(row, n, cell);
    assert_string_equal(cell, info->can & can ? "yes" : "-");
}

static void check_row(const ew_wire_info *info, const char *row) {
    static const unsigned columns[] = {EW_WIRE_CHUNKS, EW_WIRE_INPUT, EW_WIRE_DEADLINE, EW_WIRE_TRACE, EW_WIRE_CONTEXT};
    char cell[80];
    for (int i = 0; i < 5; i++)
        check_cell(info, row, 3 + i, columns[i]);
    cell_of(row, 8, cell);
    assert_int_equal(strcmp(cell, "the connection closes") != 0, (info->can & EW_WIRE_CANCEL) != 0);
}

static void test_wire_texts__readme(void **state) {
    const ew_wire_info *info;
    char line[2048], start[80];
    size_t found = 0, rows = 0;
    FILE *file = fopen(EW_SOURCE_DIR "/README.md", "r");
    (void)state;
    assert_non_null(file);
    while (fgets(line, sizeof line, file)) {
        rows += strncmp(line, "| [", 3) == 0 && strstr(line, "](src/wire/") != NULL;
        for (size_t i = 0; (info = ew_wire_info_at(i)) != NULL; i++) {
            (void)snprintf(start, sizeof start, "| [%s](src/wire/", info->name);
            if (strncmp(line, start, strlen(start)) == 0) {
                check_row(info, line);
                found++;
            }
        }
    }
    (void)fclose(file);
    assert_int_equal(found, rows);
    assert_null(ew_wire_info_at(found));
    assert_non_null(ew_wire_info_at(found - 1));
}

static void test_wire_texts__wrap(void **state) {
    char out[EW__WIRE_TEXT_MAX];
    (void)state;
    assert_string_equal(ew__wire_text("no topic", 0, 0, out, sizeof out), "no topic");
    assert_string_equal(ew__wire_text("<<there is none>>!", 0, 0, out, sizeof out), "!");
    assert_string_equal(ew__wire_text("<<open", 0, 0, out, sizeof out), "<<open");
    assert_string_equal(ew__wire_text("aaa bbb ccc", 7, 2, out, sizeof out), "aaa bbb\n  ccc");
    assert_string_equal(ew__wire_text("aaa bbb c", 7, 2, out, sizeof out), "aaa bbb c"); /* no line for one byte */
    assert_string_equal(ew__wire_text("aaaaaaaaaa bbb\nc", 7, 2, out, sizeof out), "aaaaaaaaaa\n  bbb\n  c");
    assert_string_equal(ew__wire_text("cut off", 0, 0, out, 4), "cut");
}

static void test_wire_texts__lists(void **state) {
    char out[EW__WIRE_TEXT_MAX];
    (void)state;
    const char *names = ew__wire_text("<<listeners>>", 0, 0, out, sizeof out);
    assert_memory_equal(names, "http, jsonrpc, ", 15);
    assert_non_null(strstr(names, " or "));
    assert_null(strstr(names, "https")); /* those without TLS */
    assert_string_equal(ew__wire_text("<<single>>", 0, 0, out, sizeof out), "http and stepflow+http");
    assert_string_equal(ew__wire_text("<<object>>", 0, 0, out, sizeof out), "rrq");
    const char *first = strstr(ew__wire_text("<<bench>>", 0, 0, out, sizeof out), "bench rrq://");
    assert_non_null(first);
    assert_non_null(strstr(first, "bench reflection://")); /* of a higher rank */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wire_texts__readme),
        cmocka_unit_test(test_wire_texts__wrap),
        cmocka_unit_test(test_wire_texts__lists),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
