/*
 * wire/descriptor.h: what the rest of the program needs to know of a wire, as data: schemes of targets, names of
 * listeners, options of targets, how a program is started. All of it is constant. The public part is
 * <everywire/wires.h>. May include: base.
 */
#ifndef EW_WIRE_DESCRIPTOR_H
#define EW_WIRE_DESCRIPTOR_H

#include <everywire/wires.h>

/* One of the options behind "?" in a target, joined by "&". The options of a target are a set of bits. */
typedef struct ew__target_option {
    const char *text;    /* "framing=lsp" */
    uint32_t clear, set; /* bits of ew__site.options */
} ew__target_option;

/* A text about the wire for the help of the program: the texts of all wires for a topic are joined (wire/texts.h). */
typedef struct ew__wire_note {
    const char *topic;
    const char *text;
    unsigned rank; /* the lowest rank is first, then the order of the wires */
} ew__wire_note;

/* Client options that only targets of some wires take: bits of ew__descriptor.takes. */
enum { EW__TAKES_PROCESSES = 1 << 0, EW__TAKES_BLOBS = 1 << 1, EW__TAKES_TELEMETRY = 1 << 2 };

typedef struct ew__descriptor {
    const ew_wire_info *info;           /* NULL: another wire of the same folder has it */
    const ew_scheme *schemes;           /* ended by one without text; NULL: none */
    const ew_listener_name *listeners;  /* ended by one without name; NULL: none */
    const ew_start_word *start;         /* ended by one without name; NULL: none */
    const char *const *start_variables; /* NULL-ended, "NAME=VALUE": of each program that is started; NULL: none */
    const ew__wire_note *notes;         /* ended by one without topic; NULL: none */
    const ew__target_option *options;   /* ended by one without text; NULL: none */
    unsigned takes;                     /* EW__TAKES_... */
    const char *refusal;                /* for people: which targets take these options */
    uint64_t drain_ms;                  /* of a program that EW_START_LISTEN starts; 0: the default */
} ew__descriptor;

/* Returns the word of a role, NULL if the wire has none. option: selects an option, else a variable. */
const ew_start_word *ew__descriptor_start(const ew__descriptor *descriptor, ew_start_role role, bool option);

#endif
