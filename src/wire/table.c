/*
 * wire/table.c: the wires of this build.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "wire/http/http.h"
#include "wire/jsonrpc/jsonrpc.h"
#include "wire/reflection/reflection.h"
#include "wire/rrq/rrq.h"
#include "wire/stepflow/stepflow.h"
#include "wire/wire.h"

static const ew__wire *const wires[] = {&ew__wire_jsonrpc,
                                        &ew__wire_reflection,
                                        &ew__wire_rrq,
                                        &ew__wire_stepflow,
                                        &ew__wire_stepflow_http,
                                        &ew__wire_http /* the last: it gets what no other claims */,
                                        NULL};

const ew__wire *const *ew__wires(void) { return wires; }

const ew__wire *ew__wire_by_name(ew_str name) {
    for (size_t i = 0; wires[i]; i++)
        if (ew__str_is(ew_str_from(wires[i]->name), name))
            return wires[i];
    return NULL;
}
