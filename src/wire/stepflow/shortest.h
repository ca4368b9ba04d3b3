/*
 * wire/stepflow/shortest.h: the fewest decimal digits that read back as the same double, and of those the nearest. Integers
 * only: no locale, no table of the C library. May include: base.
 */
#ifndef EW_WIRE_STEPFLOW_SHORTEST_H
#define EW_WIRE_STEPFLOW_SHORTEST_H

#include <everywire/base.h>

/*
 * The number (finite, above zero) is, to the nearest double, the answer times ten to the power of *ret_exponent. The
 * answer has at most 17 digits and does not end with a zero.
 */
uint64_t ew__shortest(double number, int *ret_exponent);

/*
 * Ten to the power of k (-292 to 324), multiplied by a power of two and rounded up to 128 bits, the highest of which is
 * set: [0] is the upper half. Here for tests.
 */
void ew__power_of_ten(int k, uint64_t ret[2]);

#endif
