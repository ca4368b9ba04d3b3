/*
 * json/sink.h: where the writers of this room put their bytes: a growing buffer, or a piece of the caller's memory that
 * may be too small (then the rest is counted and dropped).
 */
#ifndef EW_JSON_SINK_H
#define EW_JSON_SINK_H

#include "json/json.h"

typedef struct ew__json_sink {
    ew__buf *buf; /* NULL: memory */
    char *memory;
    size_t capacity;
    size_t len; /* memory: bytes asked for, also those that did not fit */
} ew__json_sink;

void ew__json_put(ew__json_sink *sink, const char *bytes, size_t n);

/* As ew__json_write_str. */
void ew__json_put_str(ew__json_sink *sink, ew_str text, bool ascii);

#endif
