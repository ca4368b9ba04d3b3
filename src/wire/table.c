/*
 * wire/table.c: the wires of this build, and what the public interface shows of them.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "wire/wire.h"

/*
 * One line a wire: ew__wire_NAME, of the folder NAME or the part of NAME before "_". src/CMakeLists.txt reads these
 * lines. The order is that of help texts; the first wire gets connections that no other recognises.
 */
#define WIRES(X)                                                                                                       \
    X(http)                                                                                                            \
    X(jsonrpc)                                                                                                         \
    X(reflection)                                                                                                      \
    X(rrq)                                                                                                             \
    X(stepflow_http)                                                                                                   \
    X(stepflow)

#define DECLARE(name) extern const ew__wire ew__wire_##name;
WIRES(DECLARE)
#undef DECLARE

#define ENTRY(name) &ew__wire_##name,
static const ew__wire *const wires[] = {WIRES(ENTRY) NULL};
#undef ENTRY

const ew__wire *const *ew__wires(void) { return wires; }

const ew__wire *ew__wire_by_name(ew_str name) {
    for (size_t i = 0; wires[i]; i++)
        if (ew__str_is(ew_str_from(wires[i]->name), name))
            return wires[i];
    return NULL;
}

const ew__wire *ew__wire_carrier(void) {
    size_t i = 0;
    while (!(wires[i]->caps & EW__CAN_CARRY))
        i++;
    return wires[i];
}

const ew__wire *ew__wire_upgrade(void) {
    size_t i = 0;
    while (wires[i] && !wires[i]->upgrade)
        i++;
    return wires[i];
}

const ew__wire *ew__wire_guest(void) {
    size_t i = 0;
    while (wires[i] && !wires[i]->guest)
        i++;
    return wires[i];
}

const ew__wire *ew__wire_of_listener(ew_str name, bool *ret_tls) {
    const ew_listener_name *entry;
    for (size_t i = 0; (entry = ew_listener_name_at(i)) != NULL; i++)
        if (ew__str_is(name, ew_str_from(entry->name))) {
            *ret_tls = entry->tls;
            return ew__wire_by_name(ew_str_from(entry->wire));
        }
    return NULL;
}

const ew__wire *ew__wire_choose_stdio(const uint8_t *bytes, size_t n, bool last) {
    const ew__wire *other = NULL;
    bool unclear = false;
    for (size_t i = 0; wires[i]; i++) {
        if (!(wires[i]->caps & EW__CAN_STDIO))
            continue;
        int verdict = wires[i]->sniff_stdio ? wires[i]->sniff_stdio(bytes, n) : -1;
        if (verdict > 0)
            return wires[i];
        unclear = unclear || verdict == 0;
        other = other || wires[i]->sniff_stdio ? other : wires[i];
    }
    return unclear && !last ? NULL : other;
}

const ew_start_word *ew__descriptor_start(const ew__descriptor *descriptor, ew_start_role role, bool option) {
    for (const ew_start_word *word = descriptor->start; word && word->name; word++)
        if (word->role == role && (word->argument != NULL) == option)
            return word;
    return NULL;
}

const ew_wire_info *ew_wire_info_at(size_t index) {
    for (size_t i = 0; wires[i]; i++)
        if (wires[i]->about && wires[i]->about->info && index-- == 0)
            return wires[i]->about->info;
    return NULL;
}

const ew_wire_info *ew_wire_info_of(const char *name) {
    const ew_wire_info *info = NULL;
    for (size_t i = 0; name && (info = ew_wire_info_at(i)) != NULL; i++)
        if (strcmp(info->name, name) == 0)
            return info;
    return NULL;
}

/* The index-th entry of the tables `member` of all wires; such a table ends with an entry without `key`. */
#define ENTRY_AT(type, member, key, index)                                                                             \
    for (size_t i = 0; wires[i]; i++)                                                                                  \
        for (const type *entry = wires[i]->about ? wires[i]->about->member : NULL; entry && entry->key; entry++)       \
            if ((index)-- == 0)                                                                                        \
                return entry;                                                                                          \
    return NULL

const ew_scheme *ew_scheme_at(size_t index) { ENTRY_AT(ew_scheme, schemes, text, index); }

const ew_listener_name *ew_listener_name_at(size_t index) { ENTRY_AT(ew_listener_name, listeners, name, index); }

const ew_start_word *ew_start_word_at(size_t index) { ENTRY_AT(ew_start_word, start, name, index); }

const ew__wire *ew__wire_of_target(const char *target, const ew_scheme **ret_scheme) {
    *ret_scheme = NULL;
    for (size_t i = 0; wires[i]; i++)
        for (const ew_scheme *scheme = wires[i]->about ? wires[i]->about->schemes : NULL; scheme && scheme->text;
             scheme++)
            if (strncmp(target, scheme->text, strlen(scheme->text)) == 0) {
                *ret_scheme = scheme;
                return wires[i];
            }
    return NULL;
}

const ew_scheme *ew_scheme_of(const char *target) {
    const ew_scheme *scheme = NULL;
    if (target)
        (void)ew__wire_of_target(target, &scheme);
    return scheme;
}
