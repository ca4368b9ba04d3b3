/*
 * call/access.c: the one point that decides. See access.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "call/access.h"
#include "call/call.h"

#define LOOK_MS 1000 /* how often the list is looked at, at most */

const ew__who ew__who_owner = {.kind = EW__WHO_OWNER, .local = true};

/* ---- the list, and who uses which version of it ---- */

void ew__access_init(ew__access *access, const ew_env *env, ew__clients *clients) {
    memset(access, 0, sizeof *access);
    access->env = env;
    access->clients = clients;
    pthread_mutex_init(&access->lock, NULL);
}

void ew__access_done(ew__access *access) {
    ew__tokens_unref(access->current);
    pthread_mutex_destroy(&access->lock);
}

void ew__access_set(ew__access *access, ew__tokens *tokens) {
    pthread_mutex_lock(&access->lock);
    ew__tokens *old = access->current;
    access->current = tokens;
    atomic_fetch_add_explicit(&access->version, 1, memory_order_release);
    pthread_mutex_unlock(&access->lock);
    ew__tokens_unref(old);
}

void ew__gate_init(ew__gate *gate, ew__access *access) { *gate = (ew__gate){.access = access}; }

void ew__gate_done(ew__gate *gate) {
    ew__tokens_unref(gate->tokens);
    gate->tokens = NULL;
}

static void use_newest(ew__gate *gate) {
    ew__access *access = gate->access;
    if (EW__LIKELY(gate->version == atomic_load_explicit(&access->version, memory_order_acquire)))
        return;
    ew__tokens *old = gate->tokens;
    pthread_mutex_lock(&access->lock);
    gate->tokens = access->current ? ew__tokens_ref(access->current) : NULL;
    gate->version = atomic_load_explicit(&access->version, memory_order_relaxed);
    pthread_mutex_unlock(&access->lock);
    ew__tokens_unref(old);
}

/* When the next token of the list expires; INT64_MAX: none will. */
static int64_t next_expiry(const ew__tokens *tokens, int64_t now_ms) {
    int64_t next = INT64_MAX;
    for (size_t i = 0; tokens && i < tokens->n; i++)
        if (tokens->list[i].expires_ms > now_ms && tokens->list[i].expires_ms < next)
            next = tokens->list[i].expires_ms;
    return next;
}

/* One of the executors looks, when it is time. */
static void look(ew__access *access, uint64_t now) {
    unsigned long long at = atomic_load_explicit(&access->look_at, memory_order_relaxed);
    if (access->look && now >= at &&
        atomic_compare_exchange_strong(&access->look_at, &at, (unsigned long long)(now + EW__MS(LOOK_MS))))
        access->look(access);
}

/* ---- verdicts ---- */

static bool refuse(ew_fault *ret, ew_status status, ew_str message) {
    *ret = (ew_fault){.status = status, .message = message};
    return false;
}

static bool hold_off(ew_fault *ret, uint64_t ms, ew_str message) {
    *ret =
        (ew_fault){.status = EW_STATUS_RESOURCE_EXHAUSTED, .message = message, .retryable = true, .retry_after_ms = ms};
    return false;
}

static bool unknown(const ew__who *who, ew_fault *ret) {
    return refuse(ret, EW_STATUS_UNAUTHENTICATED,
                  who && who->kind == EW__WHO_TOKEN ? EW_STR("this token is not known here, has expired or was revoked")
                                                    : EW_STR("a token is needed here; everywire token new makes one"));
}

/* His token; NULL: he has none that is good. */
static const ew__token *token_of(ew__executor *executor, const ew__who *who) {
    if (!who || who->kind != EW__WHO_TOKEN)
        return NULL;
    look(executor->calls->gate->access, executor->now);
    use_newest(executor->calls->gate);
    return ew__tokens_find(executor->calls->gate->tokens, who->digest,
                           (int64_t)executor->env->wall_ms(executor->env->ud));
}

static bool needs_none(const ew__executor *executor, const ew__who *who) {
    return EW__LIKELY(!executor->calls->gate) || !executor->calls->gate->access->required ||
           (who && who->kind == EW__WHO_OWNER);
}

ew__principal ew__principal_of(const ew__executor *executor, const ew__who *who) {
    bool required = executor->calls->gate && executor->calls->gate->access->required;
    ew__principal principal = {.kind = required && who ? who->kind : EW__WHO_STRANGER};
    if (who && (required || who->kind == EW__WHO_OWNER))
        memcpy(principal.digest, who->digest, sizeof principal.digest);
    return principal;
}

void ew__who_set_certificate(ew__who *who, const char *subject) {
    who->kind = EW__WHO_OWNER;
    ew__sha256_of(subject, strlen(subject), who->digest);
}

bool ew__principal_equal(const ew__principal *a, const ew__principal *b) {
    return a->kind == b->kind && memcmp(a->digest, b->digest, sizeof a->digest) == 0;
}

/* A client that loses an accepted identity has no further attempt on its connection. */
bool ew__gate_present_token(ew__executor *executor, ew__who *who, ew_str token, ew_fault *ret) {
    if (needs_none(executor, who))
        return true;
    ew__clients *clients = executor->calls->gate->access->clients;
    bool had_identity = who->accepted;
    who->kind = EW__WHO_TOKEN;
    ew__sha256_of(token.ptr, token.len, who->digest);
    who->accepted = token_of(executor, who) != NULL;
    if (who->accepted)
        return true;
    if (had_identity)
        who->refusals = UINT32_MAX;
    uint64_t wait = who->client ? ew__clients_shut(clients, who->client, executor->now) : 0;
    if (wait)
        return hold_off(ret, wait, EW_STR("too many invalid tokens came from this address; wait a moment"));
    if (who->client)
        ew__clients_failed(clients, who->client, executor->now);
    return unknown(who, ret);
}

bool ew__gate_is_pending(const ew__executor *executor, const ew__who *who) {
    return !needs_none(executor, who) && !who->accepted;
}

bool ew__gate_is_last_refusal(const ew__executor *executor, ew__who *who) {
    who->refusals += who->refusals < UINT32_MAX;
    return who->refusals >= executor->limits->auth_refusals;
}

bool ew__gate_changed(ew__executor *executor) {
    ew__gate *gate = executor->calls->gate;
    if (!gate || !gate->access->required)
        return false;
    int64_t now_ms = (int64_t)executor->env->wall_ms(executor->env->ud);
    look(gate->access, executor->now);
    use_newest(gate);
    if (gate->swept_version == gate->version && now_ms < gate->expires_ms)
        return false;
    gate->swept_version = gate->version;
    gate->expires_ms = next_expiry(gate->tokens, now_ms);
    return true;
}

bool ew__gate_is_authenticated(ew__executor *executor, const ew__who *who, ew_fault *ret) {
    return needs_none(executor, who) || token_of(executor, who) || unknown(who, ret);
}

static bool names(const ew_str *list, size_t n, ew_str text, bool patterns) {
    bool any = n == 0;
    for (size_t i = 0; i < n && !any; i++)
        any = patterns ? ew__pattern_fits(list[i], text) : ew__str_is(list[i], text);
    return any;
}

static bool allows(const ew__token *token, const char *wire, ew_str key) {
    return names(token->wires, token->n_wires, ew_str_from(wire), false) &&
           names(token->actions, token->n_actions, key, true);
}

bool ew__gate_authorize(ew__executor *executor, const ew__who *who, const char *wire, ew_str key, ew_fault *ret) {
    if (needs_none(executor, who))
        return true;
    const ew__token *token = token_of(executor, who);
    if (!token)
        return unknown(who, ret);
    if (allows(token, wire, key))
        return true;
    return refuse(ret, EW_STATUS_PERMISSION_DENIED,
                  names(token->wires, token->n_wires, ew_str_from(wire), false)
                      ? EW_STR("this token is not for this action")
                      : EW_STR("this token is not for this wire"));
}

bool ew__gate_authorize_call(ew__executor *executor, const ew__who *who, const char *wire, const ew__action *action,
                             ew_fault *ret) {
    if (!ew__gate_authorize(executor, who, wire, action->key, ret))
        return false;
    uint64_t wait = who && who->client
                        ? ew__clients_take_call(executor->calls->gate->access->clients, who->client, executor->now)
                        : 0;
    return !wait || hold_off(ret, wait, EW_STR("too many calls a second from this address"));
}

/* ---- lists ---- */

typedef struct seen_by {
    const ew__token *token;
    const char *wire;
} seen_by;

static bool may_see(const void *ud, const ew__action *action) {
    const seen_by *by = ud;
    return allows(by->token, by->wire, action->key);
}

ew_err ew__gate_list(ew__executor *executor, const ew__who *who, const char *wire, const ew__actions *actions,
                     ew__buf *out, ew_str *ret, ew_fault *fault) {
    ew__buf_init(out, executor->env, SIZE_MAX / 2);
    *ret = actions ? actions->listing : EW_STR("{}");
    if (needs_none(executor, who))
        return EW_OK;
    seen_by by = {.token = token_of(executor, who), .wire = wire};
    if (!by.token)
        return unknown(who, fault) ? EW_OK : EW_EACCESS;
    if (!names(by.token->wires, by.token->n_wires, ew_str_from(wire), false)) {
        (void)refuse(fault, EW_STATUS_PERMISSION_DENIED, EW_STR("this token is not for this wire"));
        return EW_EACCESS;
    }
    if (!actions || by.token->n_actions == 0)
        return EW_OK;
    ew_err err = ew__actions_write(actions, out, may_see, &by);
    *ret = ew__buf_view(out);
    return err;
}
