/*
 * fuzz/fuzz_blob_id.c: any bytes have an id or are no JSON, as the checker says; and a value has the same id without
 * white space, in ASCII, and from a store that gave it back. The first byte of an input is text like the rest.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/util.h"
#include "json/json.h"
#include "wire/stepflow/blob_id.h"
#include "store/blobs/blobs.h"
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds) {
    if (!holds) {
        abort();
    }
}

static void same_id(ew_str json, const char *expected) {
    char id[EW__BLOB_ID_LEN];
    must(ew__blob_id(ew_env_default(), json, id) == EW_OK && memcmp(id, expected, sizeof id) == 0);
}

static void store_and_get(ew_str json, const char *expected, ew__buf *out) {
    ew__blobs *blobs;
    ew_str type;
    char id[EW__BLOB_ID_LEN];
    must(ew__blobs_memory(ew_env_default(), ew__blob_id, 1 << 24, &blobs) == EW_OK);
    must(blobs->put(blobs, json, EW_STR("flow"), id) == EW_OK && memcmp(id, expected, sizeof id) == 0);
    must(blobs->get(blobs, ew__str(id, sizeof id), out, &type) == EW_OK && ew__str_is(type, EW_STR("flow")));
    blobs->free(blobs);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    ew_str text = ew__str(data, size);
    char id[EW__BLOB_ID_LEN];
    ew_err err = ew__blob_id(ew_env_default(), text, id);
    must(err == ew_json_check(text, NULL));
    if (err != EW_OK) {
        return 0;
    }
    ew__buf other;
    ew__buf_init(&other, ew_env_default(), SIZE_MAX / 2);
    store_and_get(text, id, &other);
    same_id(ew__buf_view(&other), id);
    ew__buf_clear(&other);
    must(ew__json_write_ascii(&other, text) == EW_OK);
    same_id(ew__buf_view(&other), id);
    ew__buf_done(&other);
    return 0;
}
