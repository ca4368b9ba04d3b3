/*
 * call/action.h: actions and the list of them. A registry is built by any thread; readers use an immutable version of
 * it, so that looking an action up takes no lock. Replacing a version never touches the calls that run.
 */
#ifndef EW_CALL_ACTION_H
#define EW_CALL_ACTION_H

#include "base/buf.h"
#include "base/map.h"
#include "base/mem.h"
#include "call/contract.h"
#include "json/secrets.h"
#include <everywire/app.h>
#include <everywire/limits.h>
#include <pthread.h>
#include <stdatomic.h>

typedef struct ew__callee_ops ew__callee_ops;

/* Never changes once it is made; freed with the last reference. */
typedef struct ew__action {
    atomic_uint refs;
    const ew_env *env;
    const ew__callee_ops *ops; /* what kind of handler stands behind it */
    void *ops_ud;              /* that kind's own */
    ew_handler_fn fn;
    void *arg;
    uint32_t id;                               /* unique in its registry, from 0: index of its statistics */
    ew_str key;                                /* "/flow/greet" */
    ew_str name;                               /* "greet" */
    ew_str type;                               /* "flow" */
    ew_str descriptor;                         /* JSON object */
    ew__secrets *secret_input, *secret_output; /* what no trace may show; NULL: nothing */
    ew__secrets *secret_chunk;
    ew_str long_key; /* "RUNTIME:/flow/greet" when another program has it; else empty */
    bool ours;       /* another program has it, but it is as good as ours: what is not takes no key from it */
    bool away;       /* the program that has it has left and is expected back: others of the key come first */
    void (*drop)(void *ops_ud); /* gives ops_ud back; may be NULL */
    ew__contract contract;      /* of actions that we run; other programs look after their own */
    ew__arena arena;
} ew__action;

/* A version: what is callable now. */
typedef struct ew__actions {
    atomic_uint refs;
    const ew_env *env;
    ew__map by_key;      /* those that can be meant by their key alone */
    ew__map by_long_key; /* all of other programs */
    ew__map shared;      /* keys that several other programs have, and we do not */
    ew__map by_name;     /* name -> action, or &ew__ambiguous */
    ew_str listing;      /* JSON object, key -> descriptor; who may see it, ew__gate_list says */
    size_t listing_cap;
} ew__actions;

typedef struct ew__registry {
    const ew_env *env;
    pthread_mutex_t lock;
    ew__actions *current;
    ew__action **remotes; /* other programs' actions */
    size_t n_remotes;
    ew__map remote_ids; /* key -> number, for ever, so that statistics go on when a program comes back */
    ew__arena remote_keys;
    uint32_t next_id;
} ew__registry;

#define EW__ACTIONS_MAX 10000
#define EW__NO_ID UINT32_MAX /* of an action that is in no registry yet */

ew_err ew__registry_init(ew__registry *registry, const ew_env *env);
void ew__registry_done(ew__registry *registry);
/* Adds one action and makes a new version of the list. Any thread. Errors as ew_app_action. */
ew_err ew__registry_add(ew__registry *registry, const char *key, const ew__callee_ops *ops, void *ops_ud,
                        ew_handler_fn fn, void *arg, const ew_action_options *options);
/*
 * The actions of other programs take the place of those that were there: a new version of the list. Where several have
 * a key, or we do ourselves, theirs are reached by their long key only. Those that are away come last, newest first:
 * they take no key or name from another, and one whose key another has is not listed. References are taken. Any thread.
 * EW_OK, EW_ENOMEM.
 */
ew_err ew__registry_set_remotes(ew__registry *registry, ew__action *const *actions, size_t n);
/*
 * An action of another program. descriptor is a JSON object, handed out as it is. drop(ops_ud) is called once in the
 * end, not on failure: EW_EINVAL (not a key), EW_ENOMEM.
 */
ew_err ew__action_new_remote(const ew_env *env, ew_str runtime, ew_str key, ew_str descriptor,
                             const ew__callee_ops *ops, void *ops_ud, void (*drop)(void *ops_ud), ew__action **ret);
/*
 * Appends a descriptor without its end: {"key":..,"name":..,"actionType":..,"description":... and so on, no }. options may
 * be NULL. EW_EINVAL: not a key; EW_ESYNTAX: a schema or the metadata is no JSON; EW_ENOMEM.
 */
ew_err ew__descriptor_begin(ew__buf *out, ew_str key, const ew_action_options *options);
/*
 * Why a list of actions that a peer offers is refused (limits list_actions and list_bytes): a constant text for people;
 * NULL: it is not. list is a JSON object, key to descriptor. Any thread.
 */
const char *ew__actions_list_problem(const ew_limits *limits, ew_str list);
/* Whether any action has secrets in members of this name (ew__secrets_in): an ew_frame's is_secret. Any thread. */
bool ew__registry_is_secret(const void *registry, ew_str name);
/* The newest version, with a reference for the caller. Any thread. */
ew__actions *ew__registry_get(ew__registry *registry);

ew__actions *ew__actions_ref(ew__actions *actions);
void ew__actions_unref(ew__actions *actions);
/*
 * Exact key, then long key, then unique name. EW_OK and a borrowed action; EW_ENOTFOUND; EW_EEXISTS: several actions
 * have that key or name.
 */
ew_err ew__actions_find(const ew__actions *actions, ew_str key_or_name, ew__action **ret_action);
/* Appends the list of those that keep says yes to (NULL: all), an object, key to descriptor. EW_OK, EW_ENOMEM. */
ew_err ew__actions_write(const ew__actions *actions, ew__buf *out,
                         bool (*keep)(const void *ud, const ew__action *action), const void *ud);
/* Writes "/flow/x, /tool/x" for a key or name that several actions have; cut at capacity. Returns the length. */
size_t ew__actions_matches(const ew__actions *actions, ew_str name, char *out, size_t capacity);

static inline ew__action *ew__action_ref(ew__action *action) {
    atomic_fetch_add_explicit(&action->refs, 1, memory_order_relaxed);
    return action;
}
void ew__action_unref(ew__action *action);

#endif
