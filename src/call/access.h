/*
 * call/access.h: who may call what. One point decides it for every wire: ew__call_open, which asks the gate of the call's
 * executor, and ew__gate_list, from which every wire has its list of actions. A wire only says who is at the other end
 * (ew__who); whoever it says nothing about is a stranger, so that a wire that forgets refuses instead of opening.
 *
 * A token is 256 random bits as text; kept is only its digest. May include: base, json.
 */
#ifndef EW_CALL_ACCESS_H
#define EW_CALL_ACCESS_H

#include "call/context.h"
#include "base/buf.h"
#include "call/clients.h"
#include "base/executor.h"
#include "base/sha256.h"
#include "call/action.h"
#include <everywire/status.h>

/* ---- tokens ---- */

#define EW__TOKEN_PREFIX "ewt_"
#define EW__TOKEN_LEN (sizeof EW__TOKEN_PREFIX - 1 + 64) /* 256 bits as hex digits behind it */
#define EW__TOKENS_MAX 1024
#define EW__TOKENS_BYTES ((size_t)1024 * 1024) /* of the text that lists them */

/* What one token allows. */
typedef struct ew__token {
    uint8_t digest[EW__SHA256_SIZE];
    ew_str name;
    int64_t created_ms;
    int64_t expires_ms;    /* wall clock; INT64_MAX: never */
    const ew_str *actions; /* keys, or patterns where * is any text; none: all */
    size_t n_actions;
    const ew_str *wires; /* names; none: all */
    size_t n_wires;
} ew__token;

/* A version of the list. Never changes; freed with the last reference. Any thread. */
typedef struct ew__tokens {
    atomic_uint refs;
    const ew_env *env;
    ew__arena arena;
    ew__token *list;
    size_t n;
} ew__tokens;

/*
 * Reads a list: one JSON object in each line, {"name":..,"digest":HEX,"created":TIME,"expires":TIME,"actions":[..],
 * "wires":[..]}. EW_OK; EW_ESYNTAX: *ret_line is the line and *ret_problem what is wrong with it; EW_ENOMEM.
 */
ew_err ew__tokens_parse(const ew_env *env, ew_str text, ew__tokens **ret, unsigned *ret_line, const char **ret_problem);
/* The line of one token, as the reader above takes it, with a newline. Errors stay in the buffer. */
void ew__token_write(ew__buf *out, const ew__token *token);
/* A list of one token that may do everything. EW_OK, EW_ENOMEM. */
ew_err ew__tokens_one(const ew_env *env, ew_str token, ew__tokens **ret);
ew__tokens *ew__tokens_ref(ew__tokens *tokens);
void ew__tokens_unref(ew__tokens *tokens); /* NULL is fine */

/* The token with that digest, valid at that time (wall clock, ms); NULL: none. All of the list is looked at. */
const ew__token *ew__tokens_find(const ew__tokens *tokens, const uint8_t digest[EW__SHA256_SIZE], int64_t now_ms);
/* Whether one is meant by a pattern of a token: the key itself, or a text where each * stands for any text. */
bool ew__pattern_fits(ew_str pattern, ew_str key);

/* ---- who is at the other end ---- */

typedef enum ew__who_kind {
    EW__WHO_STRANGER, /* nothing is known of him */
    EW__WHO_OWNER,    /* the user himself: a pipe, a socket of mode 0600, a peer that we have dialled, a certificate */
    EW__WHO_TOKEN     /* he has shown a token, good or bad */
} ew__who_kind;

typedef struct ew__who {
    uint8_t kind;                    /* ew__who_kind */
    bool accepted;                   /* TOKEN: it was valid when it was presented */
    bool local;                      /* the peer is on this machine (loopback, Unix socket, pipe), or we dialled it */
    uint8_t digest[EW__SHA256_SIZE]; /* TOKEN: of the token. OWNER: of a certificate's subject; zeros without one */
    uint32_t refusals;               /* requests refused while no token was accepted */
    ew__client_row *client;          /* where he connects from; NULL: nobody counts it */
} ew__who;

extern const ew__who ew__who_owner;

/* The peer has presented a client certificate that was verified. */
void ew__who_set_certificate(ew__who *who, const char *subject);

/*
 * Owner of state that outlives a request: of a blob URL, of a runtime's id, of a call that a later message may cancel
 * or answer. Peers with the same token, or with certificates of the same subject, have equal principals. Without access
 * control all peers without a certificate are one principal.
 */
typedef struct ew__principal {
    uint8_t kind;                    /* ew__who_kind; STRANGER without access control */
    uint8_t digest[EW__SHA256_SIZE]; /* as ew__who.digest */
} ew__principal;

/* The principal of a caller on that executor; who may be NULL. Thread of the executor. Never fails. */
ew__principal ew__principal_of(const ew__executor *executor, const ew__who *who);
bool ew__principal_equal(const ew__principal *a, const ew__principal *b);

/* ---- the gate ---- */

/* What all executors of a program share. */
typedef struct ew__access ew__access;
struct ew__access {
    const ew_env *env;
    bool required; /* strangers may do nothing */
    ew__clients *clients;
    pthread_mutex_t lock;
    ew__tokens *current; /* under the lock; a reference */
    atomic_uint version; /* changes with it */
    /* Looks whether the list has changed; on any executor's thread, once a second while tokens are shown. May be NULL. */
    void (*look)(ew__access *access);
    atomic_ullong look_at; /* monotonic ns */
};

void ew__access_init(ew__access *access, const ew_env *env, ew__clients *clients);
void ew__access_done(ew__access *access);
void ew__access_set(ew__access *access, ew__tokens *tokens); /* takes over the reference; any thread */

/* The gate of one executor: executor->calls->gate. */
struct ew__gate {
    ew__access *access;
    ew__tokens *tokens; /* the version used here */
    unsigned version;
    unsigned swept_version; /* the version that ew__gate_changed has reported */
    int64_t expires_ms;     /* wall clock: the next token of that version expires */
};

void ew__gate_init(ew__gate *gate, ew__access *access);
void ew__gate_done(ew__gate *gate);

/*
 * A peer presents a token. true: it is valid, and *who is its identity. false: *ret is UNAUTHENTICATED,
 * or RESOURCE_EXHAUSTED if the address has presented too many invalid ones; *who has no rights then,
 * whatever it had before. A valid token is always accepted. Without a gate nothing is compared.
 */
bool ew__gate_present_token(ew__executor *executor, ew__who *who, ew_str token, ew_fault *ret);
/* Whether somebody may ask anything at all. false: *ret is UNAUTHENTICATED. */
bool ew__gate_is_authenticated(ew__executor *executor, const ew__who *who, ew_fault *ret);
/*
 * Whether the peer has yet to present a valid token: limits->auth_bytes, auth_ms and auth_refusals
 * apply to its connection. false without access control.
 */
bool ew__gate_is_pending(const ew__executor *executor, const ew__who *who);
/* Counts a refused request of such a peer. true: it was the last one, the caller closes the connection. */
bool ew__gate_is_last_refusal(const ew__executor *executor, ew__who *who);
/*
 * Whether tokens have been revoked, changed or expired since the last call: accepted connections are
 * to be checked again. Checks the file of tokens if that is due. Called periodically on each executor.
 */
bool ew__gate_changed(ew__executor *executor);
/* Whether he may use what has that key, on that wire. false: *ret is UNAUTHENTICATED or PERMISSION_DENIED. */
bool ew__gate_authorize(ew__executor *executor, const ew__who *who, const char *wire, ew_str key, ew_fault *ret);
/* The same for a call, which counts: false also for RESOURCE_EXHAUSTED. Used by ew__call_open. */
bool ew__gate_authorize_call(ew__executor *executor, const ew__who *who, const char *wire, const ew__action *action,
                             ew_fault *ret);
/*
 * The list of actions as he may see it: *ret, which may lie in *out (initialised here, to be freed by the caller in any
 * case). EW_OK; EW_EACCESS: *fault says why not; EW_ENOMEM. actions may be NULL: an empty list.
 */
ew_err ew__gate_list(ew__executor *executor, const ew__who *who, const char *wire, const ew__actions *actions,
                     ew__buf *out, ew_str *ret, ew_fault *fault);

#endif
