/*
 * call/blobs.h: a store of JSON values that are known by what they are: an id is the SHA-256 of a value's text. A
 * workflow runtime offers one to the components it runs; src/store has those of this build. May include: base.
 */
#ifndef EW_CALL_BLOBS_H
#define EW_CALL_BLOBS_H

#include "base/buf.h"

#define EW__BLOB_ID_LEN 64 /* lower-case hex digits */

typedef struct ew__blobs ew__blobs;

/*
 * Writes the id of a JSON value, without a NUL. Any thread. EW_OK, EW_ESYNTAX (not valid JSON), EW_ELIMIT, EW_ENOMEM.
 */
typedef ew_err (*ew__blob_id_fn)(const ew_env *env, ew_str json, char ret_id[EW__BLOB_ID_LEN]);

/* Used on one thread at a time. */
struct ew__blobs {
    /*
     * Keeps a value (valid JSON) under its id, written to ret_id without a NUL. type is "data" or "flow"; a value that
     * is there already keeps its first one. EW_OK; EW_ELIMIT: the store is full; EW_ENOMEM; EW_EIO.
     */
    ew_err (*put)(ew__blobs *blobs, ew_str json, ew_str type, char ret_id[EW__BLOB_ID_LEN]);
    /* Appends the value to `out`; *ret_type is constant text. EW_OK, EW_ENOTFOUND, EW_ENOMEM, EW_EIO. */
    ew_err (*get)(ew__blobs *blobs, ew_str id, ew__buf *out, ew_str *ret_type);
    void (*free)(ew__blobs *blobs);
};

#endif
