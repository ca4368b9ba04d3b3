/*
 * fuzz/fuzz_exec_line.c: lines of a program's standard output: any bytes are text or one of three messages, and what is
 * handed on of a message is valid JSON, or a status that exists.
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdlib.h>
#include <string.h>

#include "handler/exec_line.h"
#include "json/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_fault(ew_str value) {
    ew__buf text;
    ew_fault fault;
    ew__buf_init(&text, ew_env_default(), SIZE_MAX / 2);
    if (ew__exec_line_fault(value, &text, &fault) != EW_OK || fault.status == EW_STATUS_OK ||
        fault.status >= EW_STATUS_COUNT) {
        abort();
    }
    if (fault.details.len > 0 && ew__json_validate(fault.details, NULL) != EW_OK) {
        abort();
    }
    ew__buf_done(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *line = malloc(size > 0 ? size : 1); /* of its own, so that AddressSanitizer sees what is read beyond it */
    ew_str value = {NULL, 0};
    memcpy(line, data, size);
    ew__exec_line_kind kind = ew__exec_line_read((ew_str){line, size}, &value);
    if (kind != EW__EXEC_TEXT_LINE &&
        (value.ptr < line || value.ptr + value.len > line + size || ew__json_validate(value, NULL) != EW_OK)) {
        abort();
    }
    if (kind == EW__EXEC_ERROR) {
        check_fault(value);
    }
    free(line);
    return 0;
}
