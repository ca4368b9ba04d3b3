/*
 * wire/stepflow/repeats.h: which names stand more than once in their object, anywhere in a JSON text: one pass over all of it.
 * May include: base json.
 */
#ifndef EW_WIRE_STEPFLOW_REPEATS_H
#define EW_WIRE_STEPFLOW_REPEATS_H

#include <everywire/env.h>

#define EW__REPEATS_ONCE UINT32_MAX
#define EW__REPEATS_LATER 0u

/* Places are offsets into the text. */
typedef struct ew__repeats {
    const ew_env *env;
    uint64_t seed[2];
    uint8_t *marks; /* a bit for each place: there is a name that is not alone; NULL: there is none at all */
    size_t marks_size;
    uint32_t (*slots)[2]; /* the first of each such name, and the last one's value; open addressing, 0 = free */
    uint32_t n_slots;     /* power of two, or 0 */
    uint32_t n;
} ew__repeats;

/*
 * Looks through a valid text of less than 4 GiB. EW_OK or EW_ENOMEM. It takes memory for the names of the objects that
 * are open at one place, and for those that are repeated. ew__repeats_done is due in any case.
 */
ew_err ew__repeats_find(ew__repeats *repeats, const ew_env *env, ew_str json);
void ew__repeats_done(ew__repeats *repeats);

/*
 * About the name whose opening quote is at `place`. EW__REPEATS_ONCE: no other one in its object; EW__REPEATS_LATER: it
 * was there before; else it is the first of several, and this is the place of the last one's value.
 */
uint32_t ew__repeats_at(const ew__repeats *repeats, uint32_t place);

#endif
