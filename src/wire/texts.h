/*
 * wire/texts.h: texts about the wires of this build, for helps, completion and the configuration reference. They are
 * made from the descriptors. Constant data only; any thread may call.
 */
#ifndef EW_WIRE_TEXTS_H
#define EW_WIRE_TEXTS_H

#include <everywire/wires.h>

#define EW__WIRE_TEXT_MAX 4096

/*
 * Copies a template and replaces each <<topic>> by a list made from the descriptors (texts.c has the topics) or by the
 * notes of all wires for the topic. If width is not 0, a line that is longer is continued on the next one, after
 * `indent` spaces; a newline of a note is indented, too. Returns out; a text that does not fit is cut.
 */
char *ew__wire_text(const char *template_text, size_t width, size_t indent, char *out, size_t size);

/* An option's help for ew__opts_help: a template is wrapped, other texts stay as they are. */
const char *ew__wire_option_text(const char *help, char *out, size_t size);

/* The scheme of peers that a program is started for, several times if asked. NULL: no wire has one. */
const ew_scheme *ew__wire_program_scheme(void);

#endif
