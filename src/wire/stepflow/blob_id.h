/*
 * wire/stepflow/blob_id.h: the id of a JSON value, as Stepflow's runtime makes it: the SHA-256 digest of the text that Rust's
 * serde_json writes for the value after reading it. May include: base json call.
 */
#ifndef EW_WIRE_STEPFLOW_BLOB_ID_H
#define EW_WIRE_STEPFLOW_BLOB_ID_H

#include "call/blobs.h"

/*
 * That text has no white space; members stand as they came, and one that is repeated stands where the first was, with
 * the value of the last; strings have the shortest escapes and the other characters as they are; numbers are those of
 * wire/stepflow/serde_number.h. It is not made: it goes into the digest piece by piece.
 *
 * serde_json refuses what has no meaning for it, so that Stepflow knows no id for it. Here such a value has one that no
 * other value has: halves of a surrogate pair stay as \udXXX, numbers beyond a double as they came.
 *
 * EW_OK and the id without a NUL, EW_ESYNTAX (no valid JSON), EW_ELIMIT (too deep or too long), EW_ENOMEM. Memory and
 * time do not depend on how the value is nested; memory does on how many names its objects have.
 */
ew_err ew__blob_id(const ew_env *env, ew_str json, char ret_id[EW__BLOB_ID_LEN]);

#endif
