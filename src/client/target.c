/*
 * client/target.c: see target.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "client/target.h"
#include "endpoint/authority.h"
#include "frame/line.h"
#include <stdio.h>

static ew_err fail(ew_err err, const char *text, const char **ret_problem) {
    if (ret_problem)
        *ret_problem = text;
    return err;
}

#define FORMS                                                                                                          \
    "a target looks like http://HOST:PORT, jsonrpc://HOST:PORT, jsonrpc+unix:PATH, jsonrpc+stdio:, "                   \
    "stepflow+http://HOST:PORT, stepflow+stdio:, reflection://HOST:PORT or rrq://HOST:PORT; with TLS https://, "       \
    "jsonrpcs://, stepflow+https://, reflections:// or rrqs://"
#define STEPFLOW_HERE "127.0.0.1:0" /* "stepflow+http:" alone */

/* How the schemes of this build are reached. */
static const struct {
    const char *scheme; /* with what ends it */
    const char *wire;
    uint8_t kind, command;
    bool tls, http;
} schemes[] = {
    {"http://", "http", EW__WHERE_TCP, EW__COMMAND_NO, false, true},
    {"https://", "http", EW__WHERE_TCP, EW__COMMAND_NO, true, true},
    {"jsonrpc://", "jsonrpc", EW__WHERE_TCP, EW__COMMAND_NO, false, false},
    {"jsonrpcs://", "jsonrpc", EW__WHERE_TCP, EW__COMMAND_NO, true, false},
    {"jsonrpc+unix:", "jsonrpc", EW__WHERE_UNIX, EW__COMMAND_NO, false, false},
    {"jsonrpc+stdio:", "jsonrpc", EW__WHERE_CHILD, EW__COMMAND_MUST, false, false},
    {"reflection://", "reflection", EW__WHERE_LISTEN, EW__COMMAND_MAY, false, true},
    {"reflections://", "reflection", EW__WHERE_LISTEN, EW__COMMAND_MAY, true, true},
    {"rrq://", "rrq", EW__WHERE_TCP, EW__COMMAND_MAY, false, false},
    {"rrqs://", "rrq", EW__WHERE_TCP, EW__COMMAND_NO, true, false},
    {"stepflow+http://", "stepflow+http", EW__WHERE_TCP, EW__COMMAND_ANNOUNCES, false, true},
    {"stepflow+http:", "stepflow+http", EW__WHERE_TCP, EW__COMMAND_ANNOUNCES, false, true},
    {"stepflow+https://", "stepflow+http", EW__WHERE_TCP, EW__COMMAND_NO, true, true},
    {"stepflow+stdio:", "stepflow", EW__WHERE_CHILD, EW__COMMAND_MUST, false, false},
};

static ew_err read_scheme(const char *text, const char **rest, ew__target *target, const char **ret_problem) {
    for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++) {
        size_t n = strlen(schemes[i].scheme);
        if (strncmp(text, schemes[i].scheme, n) != 0)
            continue;
        target->wire = ew__wire_by_name(ew_str_from(schemes[i].wire));
        target->kind = schemes[i].kind;
        target->command = schemes[i].command;
        target->tls = schemes[i].tls;
        target->http = schemes[i].http;
        *rest = text + n;
        return target->wire ? EW_OK : fail(EW_EUNSUPPORTED, "this build has no such wire", ret_problem);
    }
    return fail(EW_EINVAL, FORMS, ret_problem);
}

/* What may follow a jsonrpc target, behind "?" and joined by "&". */
static const struct {
    const char *text;
    size_t name_len; /* with its "=" */
    uint8_t framing, dialect;
} jsonrpc_options[] = {
    {"framing=lsp", 8, EW__FRAMING_HEADERS, 0},     {"framing=lines", 8, EW__FRAMING_LINES, 0},
    {"params=null", 7, 0, EW__JSONRPC_NULL_PARAMS}, {"stream=events", 7, 0, EW__JSONRPC_EVENTS},
    {"discover=no", 9, 0, EW__JSONRPC_NO_DISCOVER},
};
#define JSONRPC_OPTIONS                                                                                                \
    "the options of a jsonrpc target are framing=lsp, framing=lines, params=null, stream=events and discover=no"

static bool read_option(ew_str option, ew__target *target) {
    for (size_t i = 0; i < sizeof jsonrpc_options / sizeof *jsonrpc_options; i++)
        if (ew__str_is(option, ew_str_from(jsonrpc_options[i].text))) {
            target->framing = jsonrpc_options[i].framing ? jsonrpc_options[i].framing : target->framing;
            target->dialect |= jsonrpc_options[i].dialect;
            return true;
        }
    return false;
}

static bool is_option_name(const char *text) {
    for (size_t i = 0; i < sizeof jsonrpc_options / sizeof *jsonrpc_options; i++)
        if (strncmp(text, jsonrpc_options[i].text, jsonrpc_options[i].name_len) == 0)
            return true;
    return false;
}

/* Takes the options off the end of a jsonrpc target. The path of a socket may have a question mark of its own. */
static ew_err read_options(char *rest, ew__target *target, const char **ret_problem) {
    char *query = strrchr(rest, '?');
    if (!query || !ew__str_is(ew_str_from(target->wire->name), EW_STR("jsonrpc")) ||
        (target->kind == EW__WHERE_UNIX && !is_option_name(query + 1)))
        return EW_OK;
    *query = '\0';
    for (char *option = query + 1, *next; option; option = next) {
        next = strchr(option, '&');
        if (next)
            *next++ = '\0';
        if (!read_option(ew_str_from(option), target))
            return fail(EW_EINVAL, JSONRPC_OPTIONS, ret_problem);
    }
    return EW_OK;
}

static bool path_ok(ew_str path) {
    for (size_t i = 0; i < path.len; i++)
        if ((unsigned char)path.ptr[i] <= 0x20 || (unsigned char)path.ptr[i] >= 0x7f || path.ptr[i] == '#' ||
            path.ptr[i] == '?')
            return false;
    return true;
}

/* A base has no slash at its end; the URL of a Stepflow server is what it is, "/" at least. */
static ew_err read_path(ew_str path, ew__target *ret, const char **ret_problem) {
    bool base = strcmp(ret->wire->name, "http") == 0, verbatim = ret->http && !base;
    while (!verbatim && path.len > 0 && path.ptr[path.len - 1] == '/')
        path.len--;
    if (verbatim && path.len == 0)
        path = EW_STR("/");
    if (path.len >= sizeof ret->path || !path_ok(path) || (path.len && !ret->http))
        return fail(EW_EINVAL, "the target has no valid path", ret_problem);
    memcpy(ret->path, path.ptr, path.len);
    return EW_OK;
}

/* HOST:PORT[/PATH] */
static ew_err read_address(const char *rest, ew__target *ret, const char **ret_problem) {
    const char *slash = strchr(rest, '/');
    ew_str authority = ew__str(rest, slash ? (size_t)(slash - rest) : strlen(rest));
    bool may_be_zero = ret->command == EW__COMMAND_MAY || ret->command == EW__COMMAND_ANNOUNCES;
    ew__authority parts;
    ew__authority_verdict verdict = ew__authority_parse(authority, &parts);
    if (verdict == EW__AUTHORITY_NO_HOST || parts.host.len >= sizeof ret->host ||
        authority.len >= sizeof ret->authority)
        return fail(EW_EINVAL, "the target has no valid host", ret_problem);
    if (verdict == EW__AUTHORITY_NO_PORT || (parts.has_port && parts.port == 0 && !may_be_zero))
        return fail(EW_EINVAL, "the target has no valid port", ret_problem);
    if (!parts.has_port && !ret->http)
        return fail(EW_EINVAL, "the target has no port: HOST:PORT", ret_problem);
    ret->port = parts.has_port ? parts.port : ret->tls ? 443 : 80;
    memcpy(ret->host, parts.host.ptr, parts.host.len);
    memcpy(ret->authority, authority.ptr, authority.len);
    return read_path(ew_str_from(slash ? slash : ""), ret, ret_problem);
}

/* unix:PATH is what a listener is told, too: one check for both. */
static ew_err read_socket(const char *rest, ew__target *ret, const char **ret_problem) {
    ew__address address;
    char text[sizeof address.text] = "unix:";
    size_t n = strlen(rest);
    if (n + 6 > sizeof text)
        return fail(EW_EINVAL, "the path of the socket is too long", ret_problem);
    memcpy(text + 5, rest, n + 1);
    if (ew__address_parse(text, &address) != EW_OK)
        return fail(EW_EINVAL, "the target has no valid path of a socket", ret_problem);
    memcpy(ret->path, rest, n + 1);
    memcpy(ret->authority, rest, n + 1);
    return EW_OK;
}

/* HOST:PORT of this machine; port 0 picks a free one. */
static ew_err read_listener(char *rest, ew__target *ret, const char **ret_problem) {
    size_t n = strlen(rest);
    if (n > 0 && rest[n - 1] == '/')
        rest[n - 1] = '\0';
    if (ew__address_parse(rest, &ret->address) != EW_OK || ret->address.kind != EW__ADDR_TCP)
        return fail(EW_EINVAL, "reflection:// is listened for: HOST:PORT with a numeric host or localhost",
                    ret_problem);
    ret->port = ret->address.port;
    (void)snprintf(ret->authority, sizeof ret->authority, "%s", ret->address.text);
    return EW_OK;
}

/* Behind "stepflow+http:" stands nothing, or what stands behind "stepflow+http://" too. */
static ew_err complete(const char **rest, const ew__target *target, const char **ret_problem) {
    if (target->command != EW__COMMAND_ANNOUNCES || (*rest)[-1] != ':')
        return EW_OK;
    if (**rest)
        return fail(EW_EINVAL, FORMS, ret_problem);
    *rest = STEPFLOW_HERE;
    return EW_OK;
}

ew_err ew__target_parse(const char *text, ew__target *ret, const char **ret_problem) {
    const char *rest = NULL;
    char copy[1024];
    memset(ret, 0, sizeof *ret);
    if (!text)
        return EW_EINVAL;
    ew_err err = read_scheme(text, &rest, ret, ret_problem);
    if (err == EW_OK)
        err = complete(&rest, ret, ret_problem);
    if (err != EW_OK)
        return err;
    if (strlen(rest) >= sizeof copy)
        return fail(EW_EINVAL, "the target is too long", ret_problem);
    memcpy(copy, rest, strlen(rest) + 1);
    err = read_options(copy, ret, ret_problem);
    if (err != EW_OK)
        return err;
    if (ret->kind == EW__WHERE_TCP)
        return read_address(copy, ret, ret_problem);
    if (ret->kind == EW__WHERE_UNIX)
        return read_socket(copy, ret, ret_problem);
    if (ret->kind == EW__WHERE_LISTEN)
        return read_listener(copy, ret, ret_problem);
    return copy[0] ? fail(EW_EINVAL, "nothing stands behind stdio: but the command after --", ret_problem) : EW_OK;
}

bool ew__target_is_here(const ew__target *target) {
    ew__address address;
    bool v6 = strchr(target->host, ':') != NULL;
    char text[sizeof target->host + 8];
    (void)snprintf(text, sizeof text, "%s%s%s:0", v6 ? "[" : "", target->host, v6 ? "]" : "");
    return ew__address_parse(text, &address) == EW_OK && address.loopback;
}
