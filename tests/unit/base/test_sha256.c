/*
 * tests/unit/base/test_sha256.c: the published examples, lengths around the borders of blocks, and bytes in pieces.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/sha256.h"
#include "base/util.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void expect(const void *bytes, size_t n, const char *hex) {
    uint8_t digest[EW__SHA256_SIZE];
    char text[65] = {0};
    ew__sha256_of(bytes, n, digest);
    ew__hex(digest, sizeof digest, text);
    assert_string_equal(text, hex);
}

static void test_base_sha256__published(void **state) {
    (void)state;
    expect("", 0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    expect(NULL, 0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    expect("abc", 3, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    expect("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56,
           "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    expect("abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnop"
           "qrstu",
           112, "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1");
}

static void test_base_sha256__million(void **state) {
    (void)state;
    size_t n = 1000000;
    char *text = malloc(n);
    assert_non_null(text);
    memset(text, 'a', n);
    expect(text, n, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    free(text);
}

static void test_base_sha256__borders(void **state) {
    (void)state;
    char text[129];
    memset(text, 'a', sizeof text);
    expect(text, 55, "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318");
    expect(text, 56, "b35439a4ac6f0948b6d6f9e3c6af0f5f590ce20f1bde7090ef7970686ec6738a");
    expect(text, 63, "7d3e74a05d7db15bce4ad9ec0658ea98e3f06eeecf16b4c6fff2da457ddc2f34");
    expect(text, 64, "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb");
    expect(text, 65, "635361c48bb9eab14198e76ea8ab7f1a41685d6ad62aa9146d301d4f17eb0ae0");
    expect(text, 119, "31eba51c313a5c08226adf18d4a359cfdfd8d2e816b13f4af952f7ea6584dcfb");
    expect(text, 120, "2f3d335432c70b580af0e8e1b3674a7c020d683aa5f73aaaedfdc55af904c21c");
    expect(text, 128, "6836cf13bac400e9105071cd6af47084dfacad4e5e302c94bfed24e013afb73e");
}

static void test_base_sha256__pieces(void **state) {
    (void)state;
    uint8_t text[300], whole[EW__SHA256_SIZE], pieces[EW__SHA256_SIZE];
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = (uint8_t)(i * 7);
    ew__sha256 sha;
    for (size_t n = 0; n <= sizeof text; n++) {
        ew__sha256_of(text, n, whole);
        for (size_t step = 1; step <= 130; step += 3) {
            ew__sha256_init(&sha);
            for (size_t at = 0; at < n; at += step)
                ew__sha256_add(&sha, text + at, n - at < step ? n - at : step);
            ew__sha256_add(&sha, NULL, 0);
            ew__sha256_done(&sha, pieces);
            assert_memory_equal(pieces, whole, sizeof whole);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_base_sha256__published),
        cmocka_unit_test(test_base_sha256__million),
        cmocka_unit_test(test_base_sha256__borders),
        cmocka_unit_test(test_base_sha256__pieces),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
