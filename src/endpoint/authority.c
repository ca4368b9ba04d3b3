/*
 * endpoint/authority.c: see authority.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "endpoint/authority.h"

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

static bool is_hex(char c) { return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

static bool host_ok(ew_str host, bool v6) {
    for (size_t i = 0; i < host.len; i++) {
        char c = host.ptr[i];
        bool name = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '-' || c == '.' || c == '_';
        if (v6 ? !(is_hex(c) || c == ':' || c == '.') : !name)
            return false;
    }
    return host.len > 0;
}

/* ":80" */
static bool read_port(ew_str text, uint16_t *ret) {
    uint64_t number = 0;
    if (text.len < 2 || text.len > 6 || text.ptr[0] != ':' ||
        !ew__u64_parse(ew__str(text.ptr + 1, text.len - 1), &number) || number > 65535)
        return false;
    *ret = (uint16_t)number;
    return true;
}

ew__authority_verdict ew__authority_parse(ew_str text, ew__authority *ret) {
    memset(ret, 0, sizeof *ret);
    ret->v6 = text.len > 0 && text.ptr[0] == '[';
    const char *end = text.len > 0 ? memchr(text.ptr, ret->v6 ? ']' : ':', text.len) : NULL;
    if (ret->v6 && !end)
        return EW__AUTHORITY_NO_HOST;
    size_t skip = ret->v6 ? 1 : 0, host_end = end ? (size_t)(end - text.ptr) : text.len;
    ret->host = ew__str(text.ptr + skip, host_end - skip);
    if (!host_ok(ret->host, ret->v6))
        return EW__AUTHORITY_NO_HOST;
    ew_str port = ew__str(text.ptr + host_end + skip, text.len - host_end - skip);
    ret->has_port = port.len > 0;
    return !ret->has_port || read_port(port, &ret->port) ? EW__AUTHORITY_OK : EW__AUTHORITY_NO_PORT;
}
