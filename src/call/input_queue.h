/*
 * call/input_queue.h: input chunks that arrived before the handler asked for them. Bounded by limits->in_queue_*.
 * For callees of the call room and the bridge.
 */
#ifndef EW_CALL_INPUT_QUEUE_H
#define EW_CALL_INPUT_QUEUE_H

#include "call/call.h"

ew_err ew__input_queue_add(ew_call *call, ew_str chunk); /* EW_OK, EW_FULL (taken), EW_ENOMEM */
void ew__input_queue_deliver(ew_call *call);             /* hands everything to on_input, and the end if it came */
void ew__input_queue_clear(ew_call *call);
/* Takes the first out, if there is one (else NULL), to be freed by the caller. */
struct ew__input_item *ew__input_queue_take(ew_call *call);
ew_str ew__input_item_text(const struct ew__input_item *item);
void ew__input_item_free(const ew_call *call, struct ew__input_item *item);

#endif
