/*
 * endpoint/exporter_url.c: the URL of a telemetry server. A peer may push one, so this is where we are kept from being
 * sent to addresses that only we can reach: what is not plainly this machine is refused, in whatever spelling.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "endpoint/authority.h"
#include "endpoint/exporter.h"
#include <stdio.h>

static ew_err fail(ew_err err, const char *text, const char **ret_problem) {
    if (ret_problem)
        *ret_problem = text;
    return err;
}

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

static bool base_ok(ew_str base) {
    for (size_t i = 0; i < base.len; i++) {
        unsigned char c = (unsigned char)base.ptr[i];
        if (c <= 0x20 || c >= 0x7f || c == '?' || c == '#' || c == '\\' || c == '@')
            return false;
    }
    return true;
}

/* One decimal number of an address: 0 to 255, no sign, no leading zero (which some read as octal). */
static bool take_number(ew_str *text, unsigned *ret) {
    size_t n = 0;
    *ret = 0;
    while (n < text->len && n < 4 && is_digit(text->ptr[n]))
        *ret = *ret * 10 + (unsigned)(text->ptr[n++] - '0');
    if (n == 0 || n > 3 || *ret > 255 || (n > 1 && text->ptr[0] == '0'))
        return false;
    *text = ew__str(text->ptr + n, text->len - n);
    return true;
}

/* 127.x.y.z in the one spelling that everybody reads alike. */
static bool is_loopback_v4(ew_str host) {
    unsigned number = 0;
    for (int i = 0; i < 4; i++) {
        if (i > 0) {
            if (host.len == 0 || host.ptr[0] != '.')
                return false;
            host = ew__str(host.ptr + 1, host.len - 1);
        }
        if (!take_number(&host, &number) || (i == 0 && number != 127))
            return false;
    }
    return host.len == 0;
}

static bool is_here(ew_str host, bool v6) {
    if (v6)
        return ew__str_is(host, EW_STR("::1"));
    return ew__str_is_nocase(host, EW_STR("localhost")) || is_loopback_v4(host);
}

#define BASE_MAX 255
#define FORM "a telemetry server looks like http://HOST:PORT or https://HOST:PORT"

static bool has_scheme(ew_str *url, ew_str scheme) {
    if (url->len < scheme.len || !ew__str_is_nocase(ew__str(url->ptr, scheme.len), scheme))
        return false;
    *url = ew__str(url->ptr + scheme.len, url->len - scheme.len);
    return true;
}

ew_err ew__export_target_parse(ew_str url, bool pushed, ew__export_target *ret, const char **ret_problem) {
    memset(ret, 0, sizeof *ret);
    ret->tls = has_scheme(&url, EW_STR("https://"));
    if (ret->tls && pushed)
        return fail(EW_EUNSUPPORTED, "a peer may name a telemetry server by http:// only", ret_problem);
    if (!ret->tls && !has_scheme(&url, EW_STR("http://")))
        return fail(EW_EINVAL, FORM, ret_problem);
    const char *slash = url.len ? memchr(url.ptr, '/', url.len) : NULL;
    size_t n = slash ? (size_t)(slash - url.ptr) : url.len;
    ew_str authority = ew__str(url.ptr, n), base = ew__str(url.ptr + n, url.len - n);
    while (base.len > 0 && base.ptr[base.len - 1] == '/')
        base.len--;
    ew__authority parts;
    if (ew__authority_parse(authority, &parts) != EW__AUTHORITY_OK || parts.port == 0 ||
        parts.host.len >= sizeof ret->host)
        return fail(EW_EINVAL, FORM, ret_problem);
    if (!base_ok(base) || base.len > BASE_MAX)
        return fail(EW_EINVAL, "the path of the telemetry server is no path", ret_problem);
    if (pushed && !is_here(parts.host, parts.v6))
        return fail(EW_EACCESS, "a peer may name a telemetry server on this machine only", ret_problem);
    memcpy(ret->host, parts.host.ptr, parts.host.len);
    (void)snprintf(ret->authority, sizeof ret->authority, parts.v6 ? "[%s]:%u" : "%s:%u", ret->host, parts.port);
    (void)snprintf(ret->path, sizeof ret->path, "%.*s/api/traces", (int)base.len, base.ptr);
    ret->port = parts.port;
    ret->loopback_only = pushed;
    return EW_OK;
}
