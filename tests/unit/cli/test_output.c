/*
 * Lines, endings and texts for people, through a pipe in the place of standard error and output.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/cli.h"
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include <cmocka.h>

static void expect_line(const char *before, const char *json, const char *after, const char *line) {
    int fds[2];
    char got[256] = {0};
    assert_int_equal(pipe(fds), 0);
    assert_int_equal(ew__cli_line(fds[1], before, ew_str_from(json), after), 0);
    assert_int_equal(read(fds[0], got, sizeof got - 1), strlen(line));
    assert_string_equal(got, line);
    (void)close(fds[0]);
    (void)close(fds[1]);
}

static void test_cli_output__lines(void **state) {
    (void)state;
    expect_line("", "1", "", "1\n");
    expect_line("{\"chunk\":", "[1, 2]", "}", "{\"chunk\":[1, 2]}\n"); /* spaces are no reason to touch it */
    expect_line("", "[1,\n 2, \"a b\"]", "", "[1,2,\"a b\"]\n");
    expect_line("", "{\r}", "", "{}\n");
}

static void test_cli_output__broken_pipe(void **state) {
    (void)state;
    int fds[2];
    (void)signal(SIGPIPE, SIG_IGN);
    assert_int_equal(pipe(fds), 0);
    (void)close(fds[0]);
    assert_int_equal(ew__cli_line(fds[1], "", ew_str_from("1"), ""), EPIPE);
    (void)close(fds[1]);
}

/* Runs an ending with standard error on a file; gives back what it wrote. */
static int ending(const ew_end *end, char *got, size_t size) {
    FILE *file = tmpfile();
    assert_non_null(file);
    (void)fflush(stderr);
    int saved = dup(STDERR_FILENO);
    (void)dup2(fileno(file), STDERR_FILENO);
    int code = ew__cli_ending("call", "http://h:1", "greet", end);
    (void)fflush(stderr);
    (void)dup2(saved, STDERR_FILENO);
    (void)close(saved);
    rewind(file);
    size_t n = fread(got, 1, size - 1, file);
    got[n] = 0;
    (void)fclose(file);
    return code;
}

static void expect_ending(ew_origin origin, ew_status status, int code) {
    char got[512];
    ew_end end = {.status = status, .origin = origin, .fault = {.status = status, .message = EW_STR("why \"x\"")}};
    assert_int_equal(ending(&end, got, sizeof got), code);
    if (code == EW__EXIT_USAGE) {
        assert_string_equal(got, "everywire call: why \"x\"\nTry: everywire call --help\n");
        return;
    }
    char line[256];
    (void)snprintf(line, sizeof line, "{\"error\":{\"status\":\"%s\",\"message\":\"why \\\"x\\\"\"}}\n",
                   ew_status_name(status));
    assert_string_equal(got, line);
}

static void test_cli_output__endings(void **state) {
    (void)state;
    char got[512];
    ew_end done = {.status = EW_STATUS_OK, .result = EW_STR("1")};
    assert_int_equal(ending(&done, got, sizeof got), EW__EXIT_OK);
    assert_string_equal(got, "");
    for (int s = 1; s < EW_STATUS_COUNT; s++) {
        expect_ending(EW_ORIGIN_ACTION, (ew_status)s, EW__EXIT_FAILED);
    }
    expect_ending(EW_ORIGIN_CONNECT, EW_STATUS_UNAVAILABLE, EW__EXIT_UNREACHED);
    expect_ending(EW_ORIGIN_PROTOCOL, EW_STATUS_INTERNAL, EW__EXIT_PROTOCOL);
    expect_ending(EW_ORIGIN_DEADLINE, EW_STATUS_DEADLINE_EXCEEDED, EW__EXIT_DEADLINE);
    expect_ending(EW_ORIGIN_LOCAL, EW_STATUS_INVALID_ARGUMENT, EW__EXIT_USAGE);
    expect_ending(EW_ORIGIN_LOCAL, EW_STATUS_RESOURCE_EXHAUSTED, EW__EXIT_FAILED);
}

static void test_cli_output__details(void **state) {
    (void)state;
    char got[512];
    ew_fault fault = {.status = EW_STATUS_NOT_FOUND, .message = EW_STR("m"), .details = EW_STR("{\"a\":\n[1, 2]}")};
    ew_end end = {.status = EW_STATUS_NOT_FOUND, .fault = fault};
    assert_int_equal(ending(&end, got, sizeof got), EW__EXIT_FAILED);
    assert_string_equal(got, "{\"error\":{\"status\":\"NOT_FOUND\",\"message\":\"m\",\"details\":{\"a\":[1,2]}}}\n");
}

static void expect_plain(const char *json, const char *text) {
    ew__text buf = {0};
    assert_int_equal(ew__cli_plain(&buf, ew_str_from(json)), EW_OK);
    assert_int_equal(buf.len, strlen(text));
    assert_memory_equal(buf.ptr, text, buf.len);
    ew__text_free(&buf);
}

static void test_cli_output__plain(void **state) {
    (void)state;
    expect_plain("\"abc\"", "abc");
    expect_plain("\"a\\u001b[31mb\\nc\\u007f\"", "a\\x1b[31mb c\\x7f");
    expect_plain("\"a\\u009b1m\\u00a0\"", "a\\xc2\\x9b1m\xc2\xa0");
    expect_plain("\"\\ud800\x7f\"", "\"\\ud800\\u007f\""); /* cannot be decoded: JSON */
    expect_plain("\"\xc3\xa9\"", "\xc3\xa9");
    expect_plain("12", "12"); /* no string: as it stands */
}

/* Reads one line from the other end of a terminal that passes bytes on as they are. */
static void expect_shown(const char *json, const char *line) {
    char got[256] = {0};
    size_t n = 0, want = strlen(line);
    struct termios raw;
    int leader = posix_openpt(O_RDWR | O_NOCTTY);
    assert_true(leader >= 0 && grantpt(leader) == 0 && unlockpt(leader) == 0);
    int follower = open(ptsname(leader), O_RDWR | O_NOCTTY);
    assert_true(follower >= 0);
    assert_int_equal(tcgetattr(follower, &raw), 0);
    cfmakeraw(&raw);
    assert_int_equal(tcsetattr(follower, TCSANOW, &raw), 0);
    assert_int_equal(ew__cli_line(follower, "{\"chunk\":", ew_str_from(json), "}"), 0);
    while (n < want) {
        ssize_t more = read(leader, got + n, sizeof got - 1 - n);
        assert_true(more > 0);
        n += (size_t)more;
    }
    assert_string_equal(got, line);
    (void)close(follower);
    (void)close(leader);
}

static void test_cli_output__terminal(void **state) {
    (void)state;
    static const char hostile[] = "\"\x7f\xc2\x9b\xe2\x80\xae \xc3\xbc\"";
    char line[64];
    (void)snprintf(line, sizeof line, "{\"chunk\":%s}\n", hostile);
    expect_line("{\"chunk\":", hostile, "}", line); /* a pipe gets the bytes as they are */
    expect_shown(hostile, "{\"chunk\":\"\\u007f\\u009b\\u202e \xc3\xbc\"}\n");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cli_output__lines),   cmocka_unit_test(test_cli_output__broken_pipe),
        cmocka_unit_test(test_cli_output__endings), cmocka_unit_test(test_cli_output__details),
        cmocka_unit_test(test_cli_output__plain),   cmocka_unit_test(test_cli_output__terminal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
