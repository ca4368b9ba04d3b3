/*
 * endpoint/link.h: one connection: a stream of io, a peer of a wire, and the pump between them. Used by server.c
 * (accepted ones) and pool_dial.c (dialled ones). May include: base, frame, call, wire, io.
 */
#ifndef EW_ENDPOINT_LINK_H
#define EW_ENDPOINT_LINK_H

#include "base/list.h"
#include "endpoint/tap.h"
#include "io/stream.h"
#include "wire/wire.h"

/* Bytes and connections of one loop; read by other threads. */
typedef struct ew__traffic {
    atomic_ullong bytes_in, bytes_out;
    atomic_ullong accepted, refused, dialled;
    atomic_uint open;
} ew__traffic;

/* Adding to a counter that only this thread writes. */
static inline void ew__count(atomic_ullong *counter, uint64_t by) {
    atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + by, memory_order_relaxed);
}

/* What the connections of one wire on one loop share; made when the first needs it. */
typedef struct ew__scratches {
    const ew__wire *wire[8];
    void *memory[8];
} ew__scratches;
void *ew__scratch_get(ew__scratches *scratches, const ew_env *env, const ew__wire *wire); /* NULL: no memory */
void *ew__scratch_find(const ew__scratches *scratches, const ew__wire *wire); /* NULL: nobody has needed it yet */
void ew__scratches_done(ew__scratches *scratches, const ew_env *env);

typedef struct ew__link ew__link;

typedef struct ew__link_owner {
    bool greets_strangers;             /* its links were accepted: those who dial us may be anybody */
    void (*eof)(ew__link *link);       /* the other side says no more; may be NULL */
    bool (*holds_eof)(ew__link *link); /* true: the wire is told later, by ew__link_eof; may be NULL */
    void (*lost)(ew__link *link);      /* an error has ended it; the wire is told after this; may be NULL */
    void (*ready)(ew__link *link);     /* calling: it can take another call; may be NULL */
    const char *(*greet)(ew__link *link, const ew__runtime_identity *who); /* as ew__conn_ops.greet; may be NULL */
    ew_err (*one_shot)(ew__link *link, const void *bytes, size_t n); /* as ew__conn_ops.one_shot; NULL: EW_EBUSY */
    ew_err (*again)(ew__link *link, ew_call *call);                  /* as ew__conn_ops.again; NULL: EW_EBUSY */
    void (*closed)(ew__link *link, ew_err why); /* the owner takes it out of its list; the memory is freed after that */
} ew__link_owner;

#define EW__SNIFF_BYTES 32
#define EW__CHOICE_BYTES ((size_t)64 * 1024)

/*
 * Which wire begins with these bytes? NULL: not clear yet, ask again with more of them. last: no more will be kept, or
 * come; then it is not NULL.
 */
typedef const ew__wire *(*ew__choose_wire)(const uint8_t *bytes, size_t n, bool last);

struct ew__link {
    ew__conn conn;
    ew__stream stream;
    ew__peer *peer; /* NULL until the wire is known */
    const ew__link_owner *owner;
    void *owner_ud;
    ew__scratches *scratches;
    ew__traffic *traffic;
    ew__link *next, *prev;    /* the owner's list */
    ew__list_node roomy_node; /* pool_dial.c: its list of those that may take a call, when roomy */
    bool roomy;
    ew__timer sniffing;
    ew__timer authenticating;      /* accepted: limits->auth_ms */
    struct ew__becoming *becoming; /* NULL: the wire stays what it is */
    struct ew__choosing *choosing; /* NULL: the wire is known, or told by EW__SNIFF_BYTES */
    ew__tap *tap;                  /* NULL: nobody looks on */
    uint64_t counted_in, counted_out;
    uint64_t idle_since;         /* pool_dial.c */
    bool lost;                   /* pool_dial.c: the other side has ended it with a call on it */
    struct ew__runtime *runtime; /* runtimes.c: who is at the other end, once it has said so */
    bool heard;                  /* there is a peer, and it has had its first bytes */
    uint8_t n_sniffed;
    uint8_t sniffed[EW__SNIFF_BYTES];
};

/* A link whose stream is not started yet. NULL: no memory. */
ew__link *ew__link_new(ew__loop *loop, ew__site *site, ew__scratches *scratches, ew__traffic *traffic,
                       const ew__link_owner *owner, void *ud);
/* The same for one that we dial ourselves: whoever is there was chosen by us, and may call back as we may. */
ew__link *ew__link_new_ours(ew__loop *loop, ew__site *site, ew__scratches *scratches, ew__traffic *traffic,
                            const ew__link_owner *owner, void *ud);
/* Frees a link that never started. */
void ew__link_discard(ew__link *link);
/* The stream is connected. wire NULL: found out by the first bytes (serving only). */
void ew__link_start(ew__link *link, ew__loop *loop, const ew__wire *wire, ew__role role);
/*
 * The same for somebody who takes his time, and may have much to say at once: standard input. Up to EW__CHOICE_BYTES
 * are kept until it is clear which wire he speaks.
 */
void ew__link_start_choosing(ew__link *link, ew__loop *loop, ew__choose_wire choose);
/* The end of input that was held back (holds_eof). */
void ew__link_eof(ew__link *link);
/* Closes when all has left (finish), or now. */
void ew__link_finish(ew__link *link);
void ew__link_close(ew__link *link, ew_err why);

#endif
