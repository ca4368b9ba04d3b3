/*
 * endpoint/tap.h: somebody looks on: the bytes of a connection, cut into frames (frame/cutter.h), are told to a callback
 * of the program. A loop that nobody looks at has no taps, and a stream without one pays for a branch.
 */
#ifndef EW_ENDPOINT_TAP_H
#define EW_ENDPOINT_TAP_H

#include "frame/cutter.h"
#include "io/stream.h"
#include "wire/wire.h"
#include <stdatomic.h>

#define EW__TAP_BYTES ((size_t)4096) /* of a frame that are told, unless the program says otherwise */

/* Who looks on; shared by all loops of a client or an app. fn NULL: nobody. */
struct ew__tapping {
    ew_frame_fn fn;
    void *ud;
    size_t keep;
    bool (*is_secret)(const void *secrets, ew_str name); /* as in ew_frame; NULL: nothing is known */
    const void *secrets;
    atomic_ullong connections; /* counted */
};

/* The tap of one stream. */
typedef struct ew__tap {
    ew__stream_tap stream; /* what io knows of it */
    ew__cutter cutter;
    ew__tapping *tapping;
    const ew_env *env;
    const char *wire; /* kept by its owner as it learns of it */
    uint64_t connection;
} ew__tap;

static inline void ew__tapping_init(ew__tapping *tapping, ew_frame_fn fn, void *ud, size_t keep) {
    tapping->fn = fn;
    tapping->ud = ud;
    tapping->keep = keep ? keep : EW__TAP_BYTES;
}

/*
 * A tap for a stream of this loop that is about to start, if anybody looks on. NULL: nobody, or no memory, which costs
 * only the sight.
 */
ew__tap *ew__tap_new(ew__loop *loop, ew__stream *stream, const char *wire);
/* The wire of the stream is known from now on. */
static inline void ew__tap_set_wire(ew__tap *tap, const ew__wire *wire) {
    tap->wire = wire->name;
    tap->cutter.frames = wire->frames;
}
/* The stream has ended; why is shown unless it is EW_OK. NULL is fine. */
void ew__tap_end(ew__tap *tap, ew_err why);

#endif
