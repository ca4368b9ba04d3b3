/*
 * tests/bridge/wires.c: the wires, as these tests know them, and that the library says the same of them.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "bridge/pairs.h"

const bridge_wire bridge_wires[N_FAR] = {
    {.name = "http",
     .serves = "http",
     .calls = "http",
     .listen = "http=127.0.0.1",
     .target = "http://127.0.0.1",
     .caps = EW__CAN_CHUNKS | EW__CAN_DEADLINE | EW__CAN_TRACE | EW__CAN_LIST,
     .lines = true},
    {.name = "reflection",
     .serves = "reflection",
     .calls = "reflection",
     .target = "reflection://127.0.0.1",
     .caps = EW__CAN_CHUNKS | EW__CAN_INPUT | EW__CAN_CANCEL | EW__CAN_TRACE | EW__CAN_CONTEXT | EW__CAN_LIST,
     .labels = true},
    {.name = "rrq",
     .serves = "rrq",
     .calls = "rrq",
     .listen = "rrq=127.0.0.1",
     .target = "rrq://127.0.0.1",
     .caps = EW__CAN_CANCEL | EW__CAN_DEADLINE | EW__CAN_TRACE | EW__CAN_LIST,
     .objects = true,
     .labels = true,
     .inside = true,
     .no_trace_back = true},
    {.name = "stepflow",
     .serves = "stepflow",
     .calls = "stepflow+http",
     .listen = "stepflow=127.0.0.1",
     .target = "stepflow+http://127.0.0.1",
     .caps = EW__CAN_TRACE | EW__CAN_LIST,
     .inside = true,
     .all_lines = true,
     .lines = true,
     .ascii = true,
     .no_trace_back = true},
    {.name = "jsonrpc",
     .serves = "jsonrpc",
     .calls = "jsonrpc",
     .listen = "jsonrpc=127.0.0.1",
     .target = "jsonrpc://127.0.0.1",
     .caps = EW__CAN_CHUNKS | EW__CAN_INPUT | EW__CAN_CANCEL | EW__CAN_LIST,
     .all_lines = true,
     .lines = true},
    {.name = "stepflow-stdio",
     .serves = "stepflow",
     .calls = "stepflow",
     .target = "stepflow+stdio:",
     .caps = EW__CAN_TRACE | EW__CAN_LIST,
     .child = true,
     .inside = true,
     .all_lines = true,
     .lines = true,
     .ascii = true,
     .no_trace_back = true},
};

const bridge_wire *bridge_wire_by_name(const char *name) {
    for (size_t i = 0; i < N_FAR; i++)
        if (strcmp(bridge_wires[i].name, name) == 0)
            return &bridge_wires[i];
    return NULL;
}

void check_wires(void) {
    for (size_t i = 0; i < N_FAR; i++) {
        const bridge_wire *w = &bridge_wires[i];
        const ew__wire *serves = ew__wire_by_name(ew_str_from(w->serves));
        const ew__wire *calls = ew__wire_by_name(ew_str_from(w->calls));
        assert_non_null(serves);
        assert_non_null(calls);
        if ((serves->caps & BRIDGE_CAPS) != w->caps || (calls->caps & BRIDGE_CAPS) != w->caps)
            fail_msg("%s: this test says 0x%x, the wires say 0x%x (serving) and 0x%x (calling)", w->name, w->caps,
                     serves->caps & BRIDGE_CAPS, calls->caps & BRIDGE_CAPS);
        assert_true(serves->caps & EW__CAN_SERVE);
        assert_true(calls->caps & EW__CAN_CALL);
    }
}
