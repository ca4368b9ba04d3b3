/*
 * store/redis/url.c: where a Redis server is, as a URL says it. See link.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "store/redis/link.h"
#include <stdio.h>

#define DB_MAX 1000000

static ew_err bad(char problem[EW__REDIS_PROBLEM], const char *why) {
    (void)snprintf(problem, EW__REDIS_PROBLEM, "the URL of a Redis server: %s", why);
    return EW_EINVAL;
}

/* The text before the first (or, last, the last) such byte; *rest is what follows it. False: there is none. */
static bool cut(ew_str text, char at, bool last, ew_str *ret_before, ew_str *ret_rest) {
    size_t found = text.len;
    for (size_t i = 0; i < text.len && (last || found == text.len); i++) {
        found = text.ptr[i] == at ? i : found;
    }
    if (found == text.len) {
        return false;
    }
    ew_str all = text;
    *ret_before = ew__str(all.ptr, found);
    *ret_rest = ew__str(all.ptr + found + 1, all.len - found - 1);
    return true;
}

static int hex_value(char c) {
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* With %41 read as A. False: it does not fit, a bad escape, or a byte that cannot be in such a text. */
static bool decode(ew_str text, char *out, size_t size) {
    size_t n = 0;
    for (size_t i = 0; i < text.len; i++, n++) {
        unsigned char c = (unsigned char)text.ptr[i];
        if (c == '%') {
            int high = i + 2 < text.len ? hex_value(text.ptr[i + 1]) : -1;
            int low = i + 2 < text.len ? hex_value(text.ptr[i + 2]) : -1;
            if (high < 0 || low < 0) {
                return false;
            }
            c = (unsigned char)(high * 16 + low);
            i += 2;
        }
        if (c == 0 || n + 1 >= size) {
            return false;
        }
        out[n] = (char)c;
    }
    out[n] = '\0';
    return true;
}

static bool read_db(ew_str text, uint32_t *ret) {
    uint64_t db;
    if (!ew__u64_parse(text, &db) || db > DB_MAX) {
        return false;
    }
    *ret = (uint32_t)db;
    return true;
}

/* "db=1&user=u&pass=p"; others belong to other clients. */
static ew_err read_query(ew_str query, ew__redis_where *ret, char problem[EW__REDIS_PROBLEM]) {
    while (query.len > 0) {
        ew_str item = query, name, value;
        if (!cut(query, '&', false, &item, &query)) {
            query.len = 0;
        }
        if (!cut(item, '=', false, &name, &value)) {
            continue;
        }
        if (ew__str_is(name, EW_STR("db")) && !read_db(value, &ret->db)) {
            return bad(problem, "db must be the number of a database");
        }
        if ((ew__str_is(name, EW_STR("user")) && !decode(value, ret->user, sizeof ret->user)) ||
            (ew__str_is(name, EW_STR("pass")) && !decode(value, ret->password, sizeof ret->password))) {
            return bad(problem, "its user or password is too long or badly escaped");
        }
    }
    return EW_OK;
}

static ew_err read_login(ew_str login, ew__redis_where *ret, char problem[EW__REDIS_PROBLEM]) {
    ew_str user = login, password = ew__str(NULL, 0);
    (void)cut(login, ':', false, &user, &password);
    if (!decode(user, ret->user, sizeof ret->user) || !decode(password, ret->password, sizeof ret->password)) {
        return bad(problem, "its user or password is too long or badly escaped");
    }
    return EW_OK;
}

/* "HOST:PORT", "[::1]:PORT", either part may be missing. */
static ew_err read_address(ew_str address, ew__redis_where *ret, char problem[EW__REDIS_PROBLEM]) {
    ew_str host = address, port = ew__str(NULL, 0);
    uint64_t number = 6379;
    bool v6 = address.len > 0 && address.ptr[0] == '[';
    if (v6) {
        if (!cut(ew__str(address.ptr + 1, address.len - 1), ']', false, &host, &port) ||
            (port.len > 0 && port.ptr[0] != ':')) {
            return bad(problem, "an address in brackets must end with ']' or ']:PORT'");
        }
        port = port.len > 0 ? ew__str(port.ptr + 1, port.len - 1) : port;
    } else {
        (void)cut(address, ':', true, &host, &port);
    }
    if (port.len > 0 && (!ew__u64_parse(port, &number) || number == 0 || number > 65535)) {
        return bad(problem, "the port must be 1 to 65535");
    }
    host = host.len == 0 ? EW_STR("127.0.0.1") : host;
    if (!decode(host, ret->host, sizeof ret->host)) {
        return bad(problem, "its host is too long or badly escaped");
    }
    ret->port = (uint16_t)number;
    (void)snprintf(ret->name, sizeof ret->name, v6 ? "[%s]:%u" : "%s:%u", ret->host, (unsigned)ret->port);
    return EW_OK;
}

static ew_err read_tcp(ew_str rest, ew__redis_where *ret, char problem[EW__REDIS_PROBLEM]) {
    ew_str query = ew__str(NULL, 0), path = ew__str(NULL, 0), login;
    (void)cut(rest, '?', false, &rest, &query);
    ew_err err = EW_OK;
    if (cut(rest, '@', true, &login, &rest)) { /* a password may hold slashes that somebody has not escaped */
        err = read_login(login, ret, problem);
    }
    (void)cut(rest, '/', false, &rest, &path);
    if (err == EW_OK) {
        err = read_address(rest, ret, problem);
    }
    if (err == EW_OK && path.len > 0 && !read_db(path, &ret->db)) {
        return bad(problem, "what follows the address must be the number of a database");
    }
    return err == EW_OK ? read_query(query, ret, problem) : err;
}

static ew_err read_unix(ew_str rest, ew__redis_where *ret, char problem[EW__REDIS_PROBLEM]) {
    ew_str query = ew__str(NULL, 0);
    (void)cut(rest, '?', false, &rest, &query);
    if (rest.len == 0 || !decode(rest, ret->path, sizeof ret->path)) {
        return bad(problem, "the path of its socket is missing, too long or badly escaped");
    }
    (void)snprintf(ret->name, sizeof ret->name, "%s", ret->path);
    return read_query(query, ret, problem);
}

ew_err ew__redis_where_parse(ew_str url, ew__redis_where *ret, char problem[EW__REDIS_PROBLEM]) {
    static const struct {
        const char *scheme;
        ew_err (*read)(ew_str rest, ew__redis_where *ret, char problem[EW__REDIS_PROBLEM]);
    } schemes[] = {
        {"redis://", read_tcp},        {"valkey://", read_tcp},      {"unix://", read_unix},
        {"unix:", read_unix},          {"redis+unix://", read_unix}, {"redis+unix:", read_unix},
        {"valkey+unix://", read_unix}, {"valkey+unix:", read_unix},  {"rediss://", NULL},
        {"valkeys://", NULL},
    };
    memset(ret, 0, sizeof *ret);
    problem[0] = '\0';
    for (size_t i = 0; i < sizeof schemes / sizeof schemes[0]; i++) {
        ew_str scheme = ew_str_from(schemes[i].scheme);
        if (url.len < scheme.len || !ew__str_is_nocase(ew__str(url.ptr, scheme.len), scheme)) {
            continue;
        }
        if (schemes[i].read == NULL) {
            (void)snprintf(problem, EW__REDIS_PROBLEM, "%s: TLS to Redis is not in this build", schemes[i].scheme);
            return EW_EUNSUPPORTED;
        }
        return schemes[i].read(ew__str(url.ptr + scheme.len, url.len - scheme.len), ret, problem);
    }
    return bad(problem, "it must begin with redis://, valkey://, unix:// or redis+unix:");
}
