/*
 * api/target.c: see target.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "api/target.h"
#include <stdio.h>

static ew_err fail(ew_err err, const char *text, const char **ret_problem) {
    if (ret_problem)
        *ret_problem = text;
    return err;
}

/* The wire of a scheme, what stands behind "://" in *rest. */
static ew_err read_scheme(const char *text, const char **rest, ew__target *target, const char **ret_problem) {
    static const char *const later[] = {"https",          "reflection", "rrq",          "stepflow+http",
                                        "stepflow+stdio", "jsonrpc",    "jsonrpc+unix", "jsonrpc+stdio"};
    const char *colon = strchr(text, ':');
    if (!colon)
        return fail(EW_EINVAL, "a target looks like http://HOST:PORT", ret_problem);
    ew_str scheme = ew__str(text, (size_t)(colon - text));
    target->wire = ew__wire_by_name(scheme);
    if (target->wire && strncmp(colon, "://", 3) == 0) {
        *rest = colon + 3;
        return EW_OK;
    }
    for (size_t i = 0; i < sizeof later / sizeof *later; i++)
        if (ew__str_is(scheme, ew_str_from(later[i])))
            return fail(EW_EUNSUPPORTED, "this build has no such wire; it can call http://HOST:PORT", ret_problem);
    return fail(EW_EINVAL, "a target looks like http://HOST:PORT", ret_problem);
}

static bool host_ok(ew_str host, bool v6) {
    for (size_t i = 0; i < host.len; i++) {
        char c = host.ptr[i];
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
                     c == '.' || c == '_';
        if (!plain && !(v6 && c == ':'))
            return false;
    }
    return host.len > 0;
}

static bool path_ok(ew_str path) {
    for (size_t i = 0; i < path.len; i++)
        if ((unsigned char)path.ptr[i] <= 0x20 || (unsigned char)path.ptr[i] >= 0x7f || path.ptr[i] == '#' ||
            path.ptr[i] == '?')
            return false;
    return true;
}

static bool read_port(ew_str text, uint16_t *port) {
    uint64_t number = 0;
    if (!ew__u64_parse(text, &number) || number == 0 || number > 65535)
        return false;
    *port = (uint16_t)number;
    return true;
}

ew_err ew__target_parse(const char *text, ew__target *ret, const char **ret_problem) {
    const char *rest = NULL;
    memset(ret, 0, sizeof *ret);
    if (!text)
        return EW_EINVAL;
    ew_err err = read_scheme(text, &rest, ret, ret_problem);
    if (err != EW_OK)
        return err;
    const char *slash = strchr(rest, '/');
    ew_str authority = ew__str(rest, slash ? (size_t)(slash - rest) : strlen(rest));
    ew_str path = ew_str_from(slash ? slash : "");
    while (path.len > 0 && path.ptr[path.len - 1] == '/')
        path.len--;
    bool v6 = authority.len > 0 && authority.ptr[0] == '[';
    const char *end = v6 ? memchr(authority.ptr, ']', authority.len) : memchr(authority.ptr, ':', authority.len);
    size_t host_len = end ? (size_t)(end - authority.ptr) : authority.len;
    ew_str host = v6 ? ew__str(authority.ptr + 1, end ? host_len - 1 : 0) : ew__str(authority.ptr, host_len);
    ew_str port =
        ew__str(authority.ptr + host_len + (v6 && end ? 1 : 0), authority.len - host_len - (v6 && end ? 1 : 0));
    ret->port = 80;
    if (!host_ok(host, v6) || host.len >= sizeof ret->host || authority.len >= sizeof ret->authority)
        return fail(EW_EINVAL, "the target has no valid host", ret_problem);
    if (port.len > 0 && (port.ptr[0] != ':' || !read_port(ew__str(port.ptr + 1, port.len - 1), &ret->port)))
        return fail(EW_EINVAL, "the target has no valid port", ret_problem);
    if (path.len >= sizeof ret->path || !path_ok(path))
        return fail(EW_EINVAL, "the target has no valid path", ret_problem);
    memcpy(ret->host, host.ptr, host.len);
    memcpy(ret->authority, authority.ptr, authority.len);
    memcpy(ret->path, path.ptr, path.len);
    return EW_OK;
}
