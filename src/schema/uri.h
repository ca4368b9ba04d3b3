/*
 * schema/uri.h: references resolved against a base, as RFC 3986 section 5.2 has it. For the identifiers of schemas: nothing is
 * ever fetched.
 */
#ifndef EW_SCHEMA_URI_H
#define EW_SCHEMA_URI_H

#include "base/buf.h"

/* Splits "uri#fragment"; false: there is no #. Either may be empty. */
bool ew__uri_split(ew_str text, ew_str *ret_uri, ew_str *ret_fragment);

/* Appends what `ref` means where `base` is the base; both without fragment. An empty base leaves a relative one. */
ew_err ew__uri_resolve(ew__buf *out, ew_str base, ew_str ref);

/* Appends the fragment without its %XX. EW_EINVAL: a % with no two digits behind it. */
ew_err ew__uri_decode(ew__buf *out, ew_str text);

#endif
