/*
 * wire/stepflow/serde_number.h: a JSON number as Rust's serde_json writes it after reading it. Ids of blobs are made of such
 * text. May include: base.
 */
#ifndef EW_WIRE_STEPFLOW_SERDE_NUMBER_H
#define EW_WIRE_STEPFLOW_SERDE_NUMBER_H

#include <everywire/base.h>

#define EW__SERDE_NUMBER_MAX 32

/*
 * The number's text: `number` itself, or written to `room`. An integer that fits 64 bits stays; everything else becomes
 * a double and is written with the fewest digits, always with a point or an exponent: 1.0, 0.00001, 1e16, 1.5e-7.
 *
 * It is the double that serde_json makes, which is not always the nearest: without its feature float_roundtrip it
 * multiplies or divides the first 19 or 20 digits by a power of ten. And it is the text that serde_json writes up to
 * 1.0.146; later ones have a plus sign in front of positive exponents.
 *
 * A number too large for a double, which serde_json refuses, stays as it is.
 */
ew_str ew__serde_number(ew_str number, char room[EW__SERDE_NUMBER_MAX]);

#endif
