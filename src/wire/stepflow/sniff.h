/*
 * wire/stepflow/sniff.h: whoever started this program speaks on its standard input: Stepflow, or other JSON-RPC? Pure.
 */
#ifndef EW_WIRE_STEPFLOW_SNIFF_H
#define EW_WIRE_STEPFLOW_SNIFF_H

#include "base/util.h"

/*
 * The first bytes of a stream, and again with more of them: 1: a workflow runtime's first message, 0: not clear yet,
 * -1: it is not. A runtime begins with `initialize` and the version of its protocol, or, where it has started us
 * again, with a method "components/...".
 */
int ew__sf_sniff_line(const uint8_t *bytes, size_t n);

#endif
