/*
 * tests/unit/store/test_blobs.c: what every store of blobs keeps to, run on each of them.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "unit/store/stores.h"

static void put(ew__blobs *blobs, const char *json, const char *type, const char *expected) {
    char id[EW__BLOB_ID_LEN];
    assert_int_equal(blobs->put(blobs, ew_str_from(json), ew_str_from(type), id), EW_OK);
    if (expected != NULL)
        assert_memory_equal(id, expected, sizeof id);
}

static void expect(ew__blobs *blobs, const char *id, const char *json, const char *type) {
    ew__buf out;
    ew_str got_type;
    ew__buf_init(&out, ew_env_default(), 1 << 20);
    ew__buf_cstr(&out, "before ");
    assert_int_equal(blobs->get(blobs, ew_str_from(id), &out, &got_type), EW_OK);
    assert_int_equal(out.len, 7 + strlen(json));
    assert_memory_equal(out.ptr, "before ", 7);
    assert_memory_equal(out.ptr + 7, json, strlen(json));
    assert_true(ew__str_is(got_type, ew_str_from(type)));
    ew__buf_done(&out);
}

static void expect_none(ew__blobs *blobs, ew_str id) {
    ew__buf out;
    ew_str type;
    ew__buf_init(&out, ew_env_default(), 1 << 20);
    assert_int_equal(blobs->get(blobs, id, &out, &type), EW_ENOTFOUND);
    assert_int_equal(out.len, 0);
    assert_int_equal(out.err, EW_OK);
    ew__buf_done(&out);
}

#define ID_BA "3fb75453225c732a76b7899ea2096dda1455189c89817239732182f73fe5a09f"
#define ID_AB "43258cff783fe7036d8a43033f830adfc60ec037382473548ac742b888292777"
#define ID_1 "6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b"

static void test_store_blobs__put_and_get(void **state) {
    ew__blobs *blobs = store_open(*state);
    put(blobs, "{\"b\":2,\"a\":1}", "data", ID_BA);
    put(blobs, "{\"a\":1,\"b\":2}", "flow", ID_AB);
    put(blobs, "1", "data", ID_1);
    expect(blobs, ID_BA, "{\"b\":2,\"a\":1}", "data");
    expect(blobs, ID_AB, "{\"a\":1,\"b\":2}", "flow");
    expect(blobs, ID_1, "1", "data");
    store_close(*state, blobs);
}

/* What comes out is the text that went in, but for white space: no number rounded, no member lost. */
static void test_store_blobs__text_stays(void **state) {
    ew__blobs *blobs = store_open(*state);
    static const char *const texts[][2] = {
        {" [ 1.50 , 1E5 , 123456789012345678901234567890 , -0 ] ", "[1.50,1E5,123456789012345678901234567890,-0]"},
        {"{\"a\":1, \"a\":2}", "{\"a\":1,\"a\":2}"},
        {"\"\\u0061\\/ \xc3\xa9\\u0000\"", "\"\\u0061\\/ \xc3\xa9\\u0000\""},
        {"\"\\ud83d\"", "\"\\ud83d\""},
        {"1e999", "1e999"},
        {"\n null \r\n", "null"},
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        char id[EW__BLOB_ID_LEN + 1] = {0};
        assert_int_equal(blobs->put(blobs, ew_str_from(texts[i][0]), EW_STR("data"), id), EW_OK);
        expect(blobs, id, texts[i][1], "data");
    }
    store_close(*state, blobs);
}

static void test_store_blobs__same_twice(void **state) {
    ew__blobs *blobs = store_open(*state);
    put(blobs, "{\"b\":2,\"a\":1}", "data", ID_BA);
    put(blobs, "{\"b\":2,\"a\":1}", "data", ID_BA);
    put(blobs, "{ \"b\" : 2 , \"\\u0061\" : 1 }", "data", ID_BA);
    expect(blobs, ID_BA, "{\"b\":2,\"a\":1}", "data");
    put(blobs, "{\"b\":2,\"a\":1}", "flow", ID_BA); /* the first type stays */
    expect(blobs, ID_BA, "{\"b\":2,\"a\":1}", "data");
    store_close(*state, blobs);
}

static void test_store_blobs__refused(void **state) {
    ew__blobs *blobs = store_open(*state);
    char id[EW__BLOB_ID_LEN];
    assert_int_equal(blobs->put(blobs, EW_STR("1"), EW_STR("binary"), id), EW_EINVAL);
    assert_int_equal(blobs->put(blobs, EW_STR("1"), EW_STR(""), id), EW_EINVAL);
    assert_int_equal(blobs->put(blobs, EW_STR("{"), EW_STR("data"), id), EW_ESYNTAX);
    assert_int_equal(blobs->put(blobs, EW_STR(""), EW_STR("data"), id), EW_ESYNTAX);
    expect_none(blobs, EW_STR(ID_1));
    store_close(*state, blobs);
}

static void test_store_blobs__unknown_ids(void **state) {
    ew__blobs *blobs = store_open(*state);
    expect_none(blobs, EW_STR(ID_1)); /* of an empty store */
    put(blobs, "1", "data", ID_1);
    char id[2 * EW__BLOB_ID_LEN] = ID_1;
    expect_none(blobs, EW_STR(ID_AB));
    expect_none(blobs, EW_STR(""));
    expect_none(blobs, ew__str(NULL, 0));
    expect_none(blobs, EW_STR("%s' OR 1=1 --"));
    expect_none(blobs, ew__str(id, EW__BLOB_ID_LEN - 1));
    expect_none(blobs, ew__str(id, EW__BLOB_ID_LEN + 1));
    id[0] = 'B';
    expect_none(blobs, ew__str(id, EW__BLOB_ID_LEN));
    id[0] = '\0';
    expect_none(blobs, ew__str(id, EW__BLOB_ID_LEN));
    id[0] = (char)0xff;
    expect_none(blobs, ew__str(id, EW__BLOB_ID_LEN));
    store_close(*state, blobs);
}

/* A frame's length of text, twice. */
static void test_store_blobs__large(void **state) {
    enum { SIZE = 16 * 1024 * 1024 };
    ew__blobs *blobs = store_open(*state);
    char ids[2][EW__BLOB_ID_LEN], *text = test_malloc(SIZE);
    memset(text, 'x', SIZE);
    text[0] = text[SIZE - 1] = '"';
    for (int i = 0; i < 2; i++) {
        text[SIZE / 2] = (char)('0' + i);
        assert_int_equal(blobs->put(blobs, ew__str(text, SIZE), EW_STR("data"), ids[i]), EW_OK);
    }
    assert_memory_not_equal(ids[0], ids[1], sizeof ids[0]);
    for (int i = 0; i < 2; i++) {
        ew__buf out;
        ew_str type;
        ew__buf_init(&out, ew_env_default(), SIZE);
        assert_int_equal(blobs->get(blobs, ew__str(ids[i], sizeof ids[i]), &out, &type), EW_OK);
        text[SIZE / 2] = (char)('0' + i);
        assert_int_equal(out.len, SIZE);
        assert_int_equal(memcmp(out.ptr, text, SIZE), 0);
        ew__buf_done(&out);
    }
    test_free(text);
    store_close(*state, blobs);
}

static void test_store_blobs__many(void **state) {
    enum { N = 500 };
    ew__blobs *blobs = store_open(*state);
    static char ids[N][EW__BLOB_ID_LEN + 1];
    char json[32];
    for (int i = 0; i < N; i++) {
        int n = snprintf(json, sizeof json, "{\"i\":%d}", i);
        assert_int_equal(blobs->put(blobs, ew__str(json, (size_t)n), EW_STR("data"), ids[i]), EW_OK);
    }
    for (int i = 0; i < N; i++) {
        (void)snprintf(json, sizeof json, "{\"i\":%d}", i);
        expect(blobs, ids[i], json, "data");
    }
    store_close(*state, blobs);
}

static void test_store_blobs__no_room_to_get(void **state) {
    ew__blobs *blobs = store_open(*state);
    ew__buf out;
    ew_str type;
    put(blobs, "{\"b\":2,\"a\":1}", "data", ID_BA);
    ew__buf_init(&out, ew_env_default(), 5);
    assert_int_equal(blobs->get(blobs, EW_STR(ID_BA), &out, &type), EW_ELIMIT);
    assert_int_equal(out.len, 0);
    ew__buf_done(&out);
    expect(blobs, ID_BA, "{\"b\":2,\"a\":1}", "data");
    store_close(*state, blobs);
}

/* Each allocation fails once; then the store works as if nothing had been. */
static void test_store_blobs__out_of_memory(void **state) {
    static const char json[] = "{ \"b\":2, \"a\":1 }";
    store *s = *state;
    for (uint64_t n = 1, failed = 1; failed != 0; n++) {
        char id[EW__BLOB_ID_LEN];
        ew__buf out;
        ew_str type;
        ew__blobs *blobs = NULL;
        ew__test_env_fail_at(&s->env, n, false);
        ew_err err = store_try(s, &blobs);
        if (err == EW_OK)
            err = blobs->put(blobs, ew_str_from(json), EW_STR("data"), id);
        if (err == EW_OK) {
            ew__buf_init(&out, &s->env.env, 1 << 20);
            err = blobs->get(blobs, EW_STR(ID_BA), &out, &type);
            ew__buf_done(&out);
        }
        failed = ew__test_env_failed(&s->env);
        ew__test_env_fail_at(&s->env, 0, false);
        assert_int_equal(err, failed != 0 ? EW_ENOMEM : EW_OK);
        if (blobs != NULL) {
            put(blobs, json, "data", ID_BA);
            expect(blobs, ID_BA, "{\"b\":2,\"a\":1}", "data");
            blobs->free(blobs);
        }
        assert_int_equal(ew__test_env_live_blocks(&s->env), 0);
        store_wipe(s);
        assert_true(n < 100);
    }
}

#define EACH(test) STORE_TEST(test, "memory"), STORE_TEST(test, "sqlite")

int main(void) {
    const struct CMUnitTest tests[] = {
        EACH(test_store_blobs__put_and_get),   EACH(test_store_blobs__text_stays),
        EACH(test_store_blobs__same_twice),    EACH(test_store_blobs__refused),
        EACH(test_store_blobs__unknown_ids),   EACH(test_store_blobs__large),
        EACH(test_store_blobs__many),          EACH(test_store_blobs__no_room_to_get),
        EACH(test_store_blobs__out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
