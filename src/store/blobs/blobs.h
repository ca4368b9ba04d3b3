/*
 * store/blobs/blobs.h: the blob stores of this build (call/blobs.h): in memory, and in a SQLite file. Both store a
 * value's text without white space, as it was first put, under the id that the function `id` of the store computes. The
 * known types are "data" and "flow": put returns EW_EINVAL for another type and EW_ESYNTAX for a value that is not
 * JSON. get passes on EW_ELIMIT of the buffer that it appends to; the buffer is then unchanged, except for its err.
 */
#ifndef EW_STORE_BLOBS_BLOBS_H
#define EW_STORE_BLOBS_BLOBS_H

#include "call/blobs.h"
#include <everywire/limits.h>

/*
 * Values in memory, up to max_bytes with all that belongs to them; then put answers EW_ELIMIT. None is ever given up: it
 * would be missed by who has its id. EW_OK or EW_ENOMEM.
 */
ew_err ew__blobs_memory(const ew_env *env, ew__blob_id_fn id, size_t max_bytes, ew__blobs **ret);

/*
 * Values in the file at `path`, which is made if there is none (mode 0600); it may be used by several stores and several
 * processes at once. A call waits up to 5 s for others. The file grows without limit: put answers EW_ELIMIT when the disk
 * is full. EW_OK, EW_ENOMEM, EW_EINVAL (an empty path) or EW_EIO: it cannot be opened, is no database, that of another
 * program, or of a later version of this one, or other users can write it (trust.h). problem, if not NULL, then gets a line for people, ended by NUL.
 */
ew_err ew__blobs_sqlite(const ew_env *env, ew__blob_id_fn id, const char *path, ew__blobs **ret, char *problem,
                        size_t problem_size);

/*
 * The store that `spec` names: "memory" (limits->blob_bytes of it) or "sqlite:PATH". EW_EINVAL for anything else;
 * problem as above.
 */
ew_err ew__blobs_open(const ew_env *env, ew__blob_id_fn id, const ew_limits *limits, const char *spec, ew__blobs **ret,
                      char *problem, size_t problem_size);

/* A store that several threads may use at once, made of one that they may not, which it takes over. EW_OK, EW_ENOMEM. */
ew_err ew__blobs_locked(const ew_env *env, ew__blobs *inner, ew__blobs **ret);

/* The type as constant text; empty for one that is not known. For the stores. */
ew_str ew__blob_type(ew_str type);

#endif
