/*
 * tests/unit/api/test_frames.c: frames as lines for people: their look, what is escaped, and what is left out because it
 * is secret.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <everywire/everywire.h>
#include <string.h>

static ew_frame frame_of(ew_frame_kind kind, bool out, ew_str text) {
    return (ew_frame){.kind = kind,
                      .out = out,
                      .opcode = 1,
                      .fin = true,
                      .connection = 1,
                      .at_ns = 13345678,
                      .wire = "http",
                      .bytes = text,
                      .text = text,
                      .size = text.len,
                      .text_size = text.len};
}

static void expect(const ew_frame *frame, unsigned flags, const char *want) {
    char out[2000];
    size_t n = ew_frame_format(frame, 1000000, flags, out, sizeof out);
    assert_string_equal(out, want);
    assert_int_equal(n, strlen(want));
    for (size_t size = 1; size <= n; size += 7) { /* less room: the beginning of it, and still how long it is */
        char small[2000];
        memset(small, 'x', sizeof small);
        assert_int_equal(ew_frame_format(frame, 1000000, flags, small, size), n);
        assert_int_equal(strlen(small), size - 1);
        assert_memory_equal(small, want, size - 1);
    }
    assert_int_equal(ew_frame_format(frame, 1000000, flags, NULL, 0), n);
}

static void expect_text(ew_frame_kind kind, const char *text, const char *want) {
    ew_frame frame = frame_of(kind, true, ew_str_from(text));
    expect(&frame, 0, want);
}

static void test_api_frames__lines(void **state) {
    (void)state;
    ew_frame frame = frame_of(EW_FRAME_OPENED, false, EW_STR(""));
    expect(&frame, 0, "+12.3ms #1 * connection opened, http\n");
    frame = frame_of(EW_FRAME_CLOSED, false, EW_STR("timed out"));
    expect(&frame, 0, "+12.3ms #1 * connection closed: timed out\n");
    expect_text(EW_FRAME_HTTP_HEAD, "POST /greet HTTP/1.1\r\nHost: a\r\n\r\n",
                "+12.3ms #1 > POST /greet HTTP/1.1\n           > Host: a\n");
    expect_text(EW_FRAME_HTTP_BODY, "{\"data\":1}", "+12.3ms #1 > {\"data\":1}\n");
    expect_text(EW_FRAME_HTTP_BODY, "", "+12.3ms #1 > (end of body)\n");
    expect_text(EW_FRAME_SSE, "event: x\ndata: {}\n\n", "+12.3ms #1 > event: x\n           > data: {}\n");
    expect_text(EW_FRAME_LENGTH, "{\"a\":1}", "+12.3ms #1 > [7] {\"a\":1}\n");
    expect_text(EW_FRAME_LINE, "[1]", "+12.3ms #1 > [1]\n");
    expect_text(EW_FRAME_LINE, "", "");
    expect_text(EW_FRAME_WEBSOCKET, "hi", "+12.3ms #1 > ws text hi\n");
    frame = frame_of(EW_FRAME_WEBSOCKET, false, EW_STR("\x03\xe8 bye"));
    frame.opcode = 8;
    expect(&frame, 0, "+12.3ms #1 < ws close 1000  bye\n");
    frame = frame_of(EW_FRAME_WEBSOCKET, false, EW_STR("He"));
    frame.fin = false;
    frame.text_size = 5000;
    expect(&frame, 0, "+12.3ms #1 < ws text (more follows) He ... (2 of 5000 bytes)\n");
    expect(&frame, EW_FRAME_COLOUR,
           "\033[2m+12.3ms #1\033[0m \033[32m<\033[0m ws text (more follows) He ... (2 of 5000 bytes)\n");
}

static void test_api_frames__nothing_drives_the_terminal(void **state) {
    (void)state;
    expect_text(EW_FRAME_LINE, "a\tb\x7f\xc3\xa4\n", "+12.3ms #1 > a\\tb\\x7f\xc3\xa4\n");
    ew_frame frame = frame_of(EW_FRAME_BYTES, false, EW_STR("\x1b[2J\x00"));
    expect(&frame, 0, "+12.3ms #1 < bytes 1b 5b 32 4a 00\n");
    frame = frame_of(EW_FRAME_BYTES, false, EW_STR("GARBAGE\r\nmore"));
    expect(&frame, 0, "+12.3ms #1 < GARBAGE\n           < more\n");
    expect_text(EW_FRAME_LINE, "\"\xc3\xa4\tb\"", "+12.3ms #1 > \"\xc3\xa4\\tb\"\n");
    expect_text(EW_FRAME_LINE,
                "\xc2\x9b"
                "31m",
                "+12.3ms #1 > \\xc2\\x9b31m\n");
}

static void test_api_frames__secrets_are_left_out(void **state) {
    (void)state;
    expect_text(EW_FRAME_HTTP_HEAD,
                "GET /a?token=S3CRET&b=1 HTTP/1.1\r\nAUTHORIZATION: Bearer S3CRET\r\nCookie: S3CRET\r\n\r\n",
                "+12.3ms #1 > GET /a?token=[redacted]&b=1 HTTP/1.1\n           > AUTHORIZATION: [redacted]\n"
                "           > Cookie: [redacted]\n");
    expect_text(EW_FRAME_LINE,
                "{\"token\":\"S3\\\"CRET\",\"a\":{\"Password\" : \"S3CRET\",\"api_key\":12345},\"tokens\":1}",
                "+12.3ms #1 > {\"token\":\"[redacted]\",\"a\":{\"Password\" : \"[redacted]\",\"api_key\":[redacted]},"
                "\"tokens\":1}\n");
    expect_text(EW_FRAME_LINE, "{\"token\":\"S3CRET that is cut", "+12.3ms #1 > {\"token\":\"[redacted]\"\n");
    expect_text(EW_FRAME_LINE, "{\"auth\":{\"uid\":\"S3}CRET\",\"a\":[1]},\"b\":2,\"secrets\":[\"S3CRET",
                "+12.3ms #1 > {\"auth\":[redacted],\"b\":2,\"secrets\":[redacted]\n");
    expect_text(EW_FRAME_SSE, "data: {\"secret\":\"S3CRET\"}\n", "+12.3ms #1 > data: {\"secret\":\"[redacted]\"}\n");
}

/* An app whose actions have secrets in members named pin; all, in whole payloads. */
static bool is_pin(const void *all, ew_str name) {
    if (*(const bool *)all || !name.ptr)
        return *(const bool *)all;
    return ew_str_eq(name, EW_STR("pin")) || memchr(name.ptr, '\\', name.len) != NULL;
}

static void expect_marked(ew_frame frame, bool all, const char *want) {
    frame.is_secret = is_pin;
    frame.secrets = &all;
    expect(&frame, 0, want);
}

static void test_api_frames__what_actions_mark_is_left_out(void **state) {
    (void)state;
    ew_frame line = frame_of(EW_FRAME_LINE, true, EW_STR("{\"pin\":\"S3CRET\",\"p\\u0069n\":1,\"Pin\":2}"));
    expect_marked(line, false, "+12.3ms #1 > {\"pin\":\"[redacted]\",\"p\\u0069n\":[redacted],\"Pin\":2}\n");
    expect_marked(line, true, "+12.3ms #1 > [redacted] ... (0 of 37 bytes)\n");
    expect_marked(frame_of(EW_FRAME_HTTP_HEAD, true, EW_STR("GET /a?pin=S3CRET HTTP/1.1\r\n")), true,
                  "+12.3ms #1 > GET /a?pin=[redacted] HTTP/1.1\n");
    /* over several lines */
    expect_marked(frame_of(EW_FRAME_HTTP_BODY, true, EW_STR("{\n\"pin\":\n{\n\"S\": 3\n}, \"b\": 1\n}")), false,
                  "+12.3ms #1 > {\n           > \"pin\":[redacted]\n           > , \"b\": 1\n           > }\n");
    /* parts of something */
    ew_frame part = frame_of(EW_FRAME_WEBSOCKET, true, EW_STR("S3CRET\"}"));
    part.opcode = 0;
    expect_marked(part, false, "+12.3ms #1 > ws continuation [redacted] ... (0 of 8 bytes)\n");
    part = frame_of(EW_FRAME_HTTP_BODY, true, EW_STR("S3CRET"));
    part.size += 5;
    expect_marked(part, false, "+12.3ms #1 > [redacted] ... (0 of 6 bytes)\n");
    expect_marked(frame_of(EW_FRAME_BYTES, true, EW_STR("S3CRET")), false,
                  "+12.3ms #1 > [redacted] ... (0 of 6 bytes)\n");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_api_frames__lines),
        cmocka_unit_test(test_api_frames__nothing_drives_the_terminal),
        cmocka_unit_test(test_api_frames__secrets_are_left_out),
        cmocka_unit_test(test_api_frames__what_actions_mark_is_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
