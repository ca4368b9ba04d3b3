/*
 * config/config_sandbox.c: what a configuration file may say of the sandbox. See config.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "config/config.h"

#define AT(member) .offset = offsetof(ew__config_sandbox, member), .size = sizeof(((ew__config_sandbox *)NULL)->member)

const char *const ew__sandbox_modes[] = {"off", "auto", "on", NULL};

static const ew__field fields[] = {
    {.name = "mode",
     .type = EW__FIELD_WORD,
     AT(mode),
     .words = ew__sandbox_modes,
     .usual = "what `EVERYWIRE_SANDBOX` says, else off",
     .help = "`auto` enforces what the kernel supports and logs what it lacks; `on` does not start "
             "unless everything is enforced"},
    {.name = "write",
     .type = EW__FIELD_TEXTS,
     AT(write),
     .help = "further folders and files that this program and its child processes may write"},
    {.name = NULL},
};

static void check(ew__reading *reading, const ew__node *node, void *item) {
    ew__config_sandbox *sandbox = item;
    const ew__node *mode = node->kind == EW__NODE_MAP ? ew__node_get(node, "mode") : node;
    sandbox->has_mode = mode && !ew__node_is_null(mode);
    for (size_t i = 0; sandbox->write && sandbox->write[i]; i++) {
        const char *path = ew__path(reading, sandbox->write[i]);
        sandbox->write[i] = path ? path : sandbox->write[i];
    }
}

const ew__group ew__config_sandbox_group = {
    .title = "sandbox",
    .help = "Rights that the process gives up when it starts ([sandbox.md](sandbox.md)). A text alone "
            "is its `mode`. A relative path of `write` counts from the file's folder.",
    .size = sizeof(ew__config_sandbox),
    .fields = fields,
    .alone = "mode",
    .check = check,
};
