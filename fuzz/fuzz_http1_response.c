/*
 * fuzz/fuzz_http1_response.c: HTTP/1 responses: any bytes, and the same events however they are cut.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "http1_hash.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) { return same_at_every_cut(data, size, false); }
