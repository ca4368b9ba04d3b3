/*
 * endpoint/runtimes.h: the runtimes that have dialled this loop: who they are and what they offer. The owner of their
 * links passes on what the links say (greet, ready, closed); nothing here touches another loop.
 *
 * What a runtime offers is asked for when it can take calls, and again while it is young, because real ones define
 * actions after they have connected. May include: base, call, wire, io.
 */
#ifndef EW_ENDPOINT_RUNTIMES_H
#define EW_ENDPOINT_RUNTIMES_H

#include "endpoint/link.h"

typedef struct ew__runtime ew__runtime;
typedef struct ew__runtimes ew__runtimes;

/* One action of a runtime. */
typedef struct ew__offer ew__offer;
struct ew__offer {
    ew_str key;        /* "/flow/x", as the runtime wrote it */
    ew_str name;       /* "x"; the whole key when it has no such form */
    ew_str descriptor; /* JSON object */
    ew__offer *same;   /* the next one of the same name */
};

/* What a runtime said. It never changes. */
typedef struct ew__offers {
    ew_str text; /* the whole answer: JSON object */
    ew__offer *items;
    uint32_t n;
    ew__map by_key;
    ew__map by_name; /* the first of a name */
    ew__arena arena;
} ew__offers;

struct ew__runtime {
    ew__list_node node;
    ew__runtimes *all;
    ew__link *link;
    ew__runtime_identity self; /* its slices are ours */
    char *text;
    size_t text_size;
    ew__offers *offers; /* NULL: never answered, or it does not list */
    uint64_t came_at;
    uint64_t changed_at; /* when what it offers changed last */
    uint64_t known_at;   /* when the question was put that was answered last, well or not; 0: none was */
    ew_call *asking;     /* the question under way */
    uint64_t asked_at;
    ew__timer timer; /* the next question */
    uint32_t pause_ms;
    ew__principal principal; /* that has registered it */
    bool list_refused;       /* its last answer exceeded a limit; what it offered before stays */
    bool complete;           /* one of ours: all that is its own is there when it connects, and nobody waits for more */
    void *ud;                /* the owner's */
};

/* Why a runtime is refused whose id is in use. */
#define EW__RUNTIME_TAKEN "a runtime with this id is registered under another identity"

typedef struct ew__runtimes_hooks {
    /*
     * Before changed, when a runtime registers an id: reserves the id. NULL: done; else why not, and
     * the runtime is removed. May be NULL.
     */
    const char *(*claim)(ew__runtimes *all, ew__runtime *runtime);
    void (*changed)(ew__runtimes *all, ew__runtime *runtime);  /* it is new, has another name, or offers other things */
    void (*answered)(ew__runtimes *all, ew__runtime *runtime); /* a question was, changed or not; may be NULL */
    void (*gone)(ew__runtimes *all, ew__runtime *runtime);     /* its memory goes after this */
} ew__runtimes_hooks;

struct ew__runtimes {
    ew__executor *executor;
    const ew__runtimes_hooks *hooks;
    void *ud;
    ew__list list; /* oldest first */
    uint32_t n;
    bool silent; /* no more questions */
};

static inline ew__runtime *ew__runtimes_first(const ew__runtimes *all) {
    return EW__ITEM(all->list.first, ew__runtime, node);
}
static inline ew__runtime *ew__runtime_next(const ew__runtime *runtime) {
    return EW__ITEM(runtime->node.next, ew__runtime, node);
}

void ew__runtimes_init(ew__runtimes *all, ew__executor *executor, const ew__runtimes_hooks *hooks, void *ud);
/*
 * As ew__link_owner's. A second connection that registers the id of a live runtime replaces it if both
 * have the same identity: the older one is closed. Otherwise the second one is refused.
 */
const char *ew__runtimes_greet(ew__runtimes *all, ew__link *link, const ew__runtime_identity *who);
void ew__runtimes_ready(ew__runtimes *all, ew__link *link);
void ew__runtimes_closed(ew__runtimes *all, ew__link *link);
/* Asks everybody now, who is not being asked already. */
void ew__runtimes_ask(ew__runtimes *all);
/* No questions any more; those under way are dropped. */
void ew__runtimes_silence(ew__runtimes *all);

/* Its connection is about to close: it will take no call any more. */
bool ew__runtime_leaving(const ew__runtime *runtime);
/* How many calls it can take now. */
uint32_t ew__runtime_capacity(const ew__runtime *runtime);
/* Sends a call, as ew__wire.open does. */
ew_err ew__runtime_send(ew__runtime *runtime, ew_call *call);
/*
 * Might it define more actions soon? *ret_until gets when that is to be looked at again. quiet_ms: how long what it
 * offers must not have changed.
 */
bool ew__runtime_settling(const ew__runtime *runtime, uint64_t quiet_ms, uint64_t *ret_until);

/* ---- finding actions: runtimes_find.c ---- */

/* Who has an action, by "KEY", "NAME" or "RUNTIME:KEY" (RUNTIME is an id, or a name). */
typedef struct ew__runtime_match {
    ew__runtime *runtime;
    const ew__offer *offer;
    uint32_t n; /* how many there are; the others are set when it is one */
} ew__runtime_match;

ew__runtime_match ew__runtimes_find(const ew__runtimes *all, ew_str action);
/* Writes "ID:/flow/x, ID:/tool/x": what an action that several have could mean. */
void ew__runtimes_matches(const ew__runtimes *all, ew_str action, ew__buf *out);
/* Writes "/flow/x, /tool/x": what somebody may have meant who asked for an action that nobody has. */
void ew__runtimes_near(const ew__runtimes *all, ew_str action, ew__buf *out);
/* Writes one JSON object, key to descriptor, of all of them; "ID:KEY" where several have the key. */
ew_err ew__runtimes_list(const ew__runtimes *all, ew__buf *out);
/* "/flow/x" has the form of a key, "/x" and "x" are names. */
bool ew__is_key(ew_str text);

#endif
