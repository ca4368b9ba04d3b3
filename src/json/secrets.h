/*
 * json/secrets.h: which values of a payload nobody may read in a log or a trace: found once in a descriptor, then left out
 * of copies. A schema marks a value with "x-everywire-secret": true or "format": "password"; a list of JSON pointers
 * ("x-everywire-secrets", * for any member or element) does the same without a schema. In doubt more is left out. May
 * include: base.
 */
#ifndef EW_JSON_SECRETS_H
#define EW_JSON_SECRETS_H

#include "base/mem.h"
#include "json/json.h"

#define EW__SECRET_PATHS 64 /* beyond: the whole payload */
#define EW__SECRET_STEPS 16 /* deeper: the whole value there */

/* The way to a secret: members by name, as text without quotes; a step without text is any member or element. */
typedef struct ew__secret_path {
    uint8_t n;
    ew_str steps[EW__SECRET_STEPS];
} ew__secret_path;

typedef struct ew__secrets {
    bool all;
    uint32_t n;
    ew__secret_path *paths; /* room for EW__SECRET_PATHS */
} ew__secrets;

/*
 * The secrets of what an action takes (or else gives): by the schema (empty: none) and by pointers, an array of texts
 * (empty: none). Both must be valid JSON that stays as long as the result, which lies in the arena. *ret is NULL when
 * there are none. EW_OK, EW_ENOMEM.
 */
ew_err ew__secrets_find(ew__arena *arena, ew_str schema, ew_str pointers, ew__secrets **ret);

/*
 * Whether a secret lies at or below members of this name, wherever they are: for text of which no more is known. A name
 * without a pointer asks whether names are of no use, since the whole value is secret. NULL has no secrets.
 */
bool ew__secrets_in(const ew__secrets *secrets, ew_str name);

/* Appends a (valid) value with "***" in the place of each secret. EW_OK or the buffer's error. */
ew_err ew__secrets_hide(ew__buf *out, ew_str json, const ew__secrets *secrets);

#endif
