/*
 * config/reference.h: the page about the configuration file, made from the tables that read it.
 */
#ifndef EW_CONFIG_REFERENCE_H
#define EW_CONFIG_REFERENCE_H

#include <stdio.h>

/* docs/config.md, as Markdown. */
void ew__config_reference(FILE *out);

#endif
