/*
 * tests/unit/frame/test_line_linear.c: a line that arrives in many reads is scanned once. Between reads the pages that
 * were scanned are made inaccessible: a second look at them ends the program. The first page stays readable, because
 * the first byte of a message tells its kind at each read.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/util.h"
#include "frame/line.h"

#define READS 40u
#define FIRST 16u /* pages of a long first read */

typedef struct shape {
    ew__framing framing;
    const char *begin; /* the message begins with this ... */
    char fill;         /* ... goes on with many of these ... */
    const char *end;   /* ... and ends with this */
} shape;

static const shape shapes[] = {
    {EW__FRAMING_LINES, "{", ' ', "}\n"},           {EW__FRAMING_LINES, "[", '\t', "]\n"},
    {EW__FRAMING_LINES, "[", '\r', "]\n"},          {EW__FRAMING_AUTO, "{\"a\":1", ' ', "}\n"},
    {EW__FRAMING_AUTO, "{\"a\":", ' ', "1}\n"},     {EW__FRAMING_LINES, "{\"a\":\"", ' ', "\"}\n"},
    {EW__FRAMING_LINES, "{\"a\":\"", 'x', "\"}\n"}, {EW__FRAMING_LINES, "[{}", ' ', "]\n"},
    {EW__FRAMING_LINES, "[", '1', "]\n"},           {EW__FRAMING_LINES, "", '1', "\n"},
};

/* Reads the message: `first` pages, then page by page. */
static void read_in_pages(const shape *s, char *memory, size_t page, unsigned first) {
    size_t all = READS * page, n_begin = strlen(s->begin), n_end = strlen(s->end), used = 0;
    ew_str value;
    ew__line line;
    memset(memory, s->fill, all);
    memcpy(memory, s->begin, n_begin);
    memcpy(memory + all - n_end, s->end, n_end);
    ew__line_init(&line, s->framing, 2 * all, false);
    for (unsigned pages = first; pages < READS; pages++) {
        assert_int_equal(ew__line_read(&line, ew__str(memory, pages * page), &value, &used), EW__LINE_MORE);
        assert_int_equal(used, 0);
        assert_int_equal(mprotect(memory + page, (pages - 1) * page, PROT_NONE), 0);
    }
    assert_int_equal(mprotect(memory, all, PROT_READ | PROT_WRITE), 0); /* whole: its reader may look at all of it */
    ew__line_event event = ew__line_read(&line, ew__str(memory, all), &value, &used);
    assert_true(event == EW__LINE_LIKELY || event == EW__LINE_VALUE);
    assert_int_equal(value.len, all - 1);
}

static void test_frame_line__linear(void **state) {
    (void)state;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *memory = mmap(NULL, READS * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(memory != MAP_FAILED);
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        read_in_pages(&shapes[i], memory, page, 1);
        read_in_pages(&shapes[i], memory, page, FIRST);
    }
    assert_int_equal(munmap(memory, READS * page), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_frame_line__linear)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
