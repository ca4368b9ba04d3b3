/*
 * client/target.c: see target.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "client/target.h"
#include "endpoint/authority.h"
#include "base/util.h"
#include <stdio.h>

static ew_err fail(ew_err err, const char *text, const char **ret_problem) {
    if (ret_problem)
        *ret_problem = text;
    return err;
}

#define LIST_MAX 64

/* Texts that are enumerated for people. */
typedef struct list {
    const char *items[LIST_MAX];
    size_t n;
} list;

static void add(list *l, const char *item) {
    if (l->n < LIST_MAX)
        l->items[l->n++] = item;
}

/*
 * The schemes of this build, plain ones in full or those with TLS, without those that stand for another one.
 * start: those of wires whose programs connect to us, or are given an address; false: those of all other wires.
 */
static void list_schemes(list *l, bool tls, bool start) {
    const ew_scheme *first = NULL, *scheme;
    for (size_t i = 0; (scheme = ew_scheme_at(i)) != NULL; i++) {
        if (!first || strcmp(first->wire, scheme->wire) != 0)
            first = scheme;
        bool alias = scheme->rest && *scheme->rest;
        if (scheme->tls == tls && (first->command == EW_SCHEME_COMMAND_MAY) == start && !alias)
            add(l, tls ? scheme->text : scheme->form);
    }
}

static ew_err fail_forms(const char **ret_problem) {
    static _Thread_local char text[1024];
    char plain[512], secure[256];
    list forms = {.n = 0}, tls = {.n = 0};
    for (int start = 0; start < 2; start++) {
        list_schemes(&forms, false, start);
        list_schemes(&tls, true, start);
    }
    ew__enumerate(plain, sizeof plain, forms.items, forms.n, " or ");
    ew__enumerate(secure, sizeof secure, tls.items, tls.n, " or ");
    (void)snprintf(text, sizeof text, "a target looks like %s; with TLS %s", plain, secure);
    return fail(EW_EINVAL, text, ret_problem);
}

static ew_err read_scheme(const char *text, const char **rest, ew__target *target, const char **ret_problem) {
    static const uint8_t kinds[] = {[EW_REACH_TCP] = EW__WHERE_TCP,
                                    [EW_REACH_UNIX] = EW__WHERE_UNIX,
                                    [EW_REACH_CHILD] = EW__WHERE_CHILD,
                                    [EW_REACH_LISTEN] = EW__WHERE_LISTEN};
    target->wire = ew__wire_of_target(text, &target->scheme);
    if (!target->wire)
        return fail_forms(ret_problem);
    target->kind = kinds[target->scheme->reach];
    *rest = text + strlen(target->scheme->text);
    return EW_OK;
}

/* ---- options, behind "?" and joined by "&" ---- */

static ew_err fail_options(const ew__target *target, const char **ret_problem) {
    static _Thread_local char text[512];
    char names[256];
    list l = {.n = 0};
    for (const ew__target_option *o = target->wire->about->options; o->text; o++)
        add(&l, o->text);
    ew__enumerate(names, sizeof names, l.items, l.n, " and ");
    (void)snprintf(text, sizeof text, "the options of a %s target are %s", target->scheme->wire, names);
    return fail(EW_EINVAL, text, ret_problem);
}

static bool read_option(ew_str option, ew__target *target) {
    for (const ew__target_option *o = target->wire->about->options; o->text; o++)
        if (ew__str_is(option, ew_str_from(o->text))) {
            target->options = (target->options & ~o->clear) | o->set;
            return true;
        }
    return false;
}

static bool is_option_name(const ew__target_option *options, const char *text) {
    for (const ew__target_option *o = options; o->text; o++)
        if (strncmp(text, o->text, strcspn(o->text, "=") + 1) == 0)
            return true;
    return false;
}

/* Takes the options off the end of a target. The path of a socket may have a question mark of its own. */
static ew_err read_options(char *rest, ew__target *target, const char **ret_problem) {
    const ew__target_option *options = target->wire->about->options;
    char *query = strrchr(rest, '?');
    if (!query || !options || (target->kind == EW__WHERE_UNIX && !is_option_name(options, query + 1)))
        return EW_OK;
    *query = '\0';
    for (char *option = query + 1, *next; option; option = next) {
        next = strchr(option, '&');
        if (next)
            *next++ = '\0';
        if (!read_option(ew_str_from(option), target))
            return fail_options(target, ret_problem);
    }
    return EW_OK;
}

/* ---- addresses ---- */

static bool path_ok(ew_str path) {
    for (size_t i = 0; i < path.len; i++)
        if ((unsigned char)path.ptr[i] <= 0x20 || (unsigned char)path.ptr[i] >= 0x7f || path.ptr[i] == '#' ||
            path.ptr[i] == '?')
            return false;
    return true;
}

static ew_err read_path(ew_str path, ew__target *ret, const char **ret_problem) {
    bool verbatim = ret->scheme->verbatim_path;
    while (!verbatim && path.len > 0 && path.ptr[path.len - 1] == '/')
        path.len--;
    if (verbatim && path.len == 0)
        path = EW_STR("/");
    if (path.len >= sizeof ret->path || !path_ok(path) || (path.len && !ret->scheme->http))
        return fail(EW_EINVAL, "the target has no valid path", ret_problem);
    memcpy(ret->path, path.ptr, path.len);
    return EW_OK;
}

/* HOST:PORT[/PATH] */
static ew_err read_address(const char *rest, ew__target *ret, const char **ret_problem) {
    const char *slash = strchr(rest, '/');
    ew_str authority = ew__str(rest, slash ? (size_t)(slash - rest) : strlen(rest));
    ew_scheme_command command = ret->scheme->command;
    bool may_be_zero = command == EW_SCHEME_COMMAND_MAY || command == EW_SCHEME_COMMAND_ANNOUNCES;
    ew__authority parts;
    ew__authority_verdict verdict = ew__authority_parse(authority, &parts);
    if (verdict == EW__AUTHORITY_NO_HOST || parts.host.len >= sizeof ret->host ||
        authority.len >= sizeof ret->authority)
        return fail(EW_EINVAL, "the target has no valid host", ret_problem);
    if (verdict == EW__AUTHORITY_NO_PORT || (parts.has_port && parts.port == 0 && !may_be_zero))
        return fail(EW_EINVAL, "the target has no valid port", ret_problem);
    if (!parts.has_port && !ret->scheme->http)
        return fail(EW_EINVAL, "the target has no port: HOST:PORT", ret_problem);
    ret->port = parts.has_port ? parts.port : ret->scheme->tls ? 443 : 80;
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

static ew_err fail_listener(const ew__target *target, const char **ret_problem) {
    static _Thread_local char text[256];
    (void)snprintf(text, sizeof text, "%s is listened for: HOST:PORT with a numeric host or localhost",
                   target->wire->about->schemes->text);
    return fail(EW_EINVAL, text, ret_problem);
}

/* HOST:PORT of this machine; port 0 picks a free one. */
static ew_err read_listener(char *rest, ew__target *ret, const char **ret_problem) {
    size_t n = strlen(rest);
    if (n > 0 && rest[n - 1] == '/')
        rest[n - 1] = '\0';
    if (ew__address_parse(rest, &ret->address) != EW_OK || ret->address.kind != EW__ADDR_TCP)
        return fail_listener(ret, ret_problem);
    ret->port = ret->address.port;
    (void)snprintf(ret->authority, sizeof ret->authority, "%s", ret->address.text);
    return EW_OK;
}

/* A scheme that is complete by itself has nothing behind it. */
static ew_err complete(const char **rest, const ew__target *target, const char **ret_problem) {
    const char *own = target->scheme->rest;
    if (!own || !*own)
        return EW_OK;
    if (**rest)
        return fail_forms(ret_problem);
    *rest = own;
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
