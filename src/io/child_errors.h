/*
 * io/child_errors.h: what a child writes to its standard error, as lines of the log. However much that is, it neither
 * grows nor stalls us: a line is cut, and beyond a number of lines in a second they are only counted. The same for a
 * managed process's standard output, where the pool waits for a line.
 */
#ifndef EW_IO_CHILD_ERRORS_H
#define EW_IO_CHILD_ERRORS_H

#include "io/loop.h"

typedef struct ew__child_errors {
    ew__loop *loop;
    const char *name;
    bool (*heard)(void *ud, ew_str line); /* each line first: true, it is not for the log; may be NULL */
    void *heard_ud;
    uint64_t second_at; /* when the present second began */
    uint32_t n_lines;   /* logged in it */
    uint64_t n_left_out;
    size_t n; /* of the present line */
    char line[1024];
} ew__child_errors;

/* name is borrowed. `heard` may be set after that. */
void ew__child_errors_init(ew__child_errors *errors, ew__loop *loop, const char *name);
/* What has been read already. */
void ew__child_errors_take(ew__child_errors *errors, const char *bytes, size_t n);
/* Reads once. False: there will be no more. */
bool ew__child_errors_read(ew__child_errors *errors, int fd);
/* Reads what is there; a line without an end is one too. */
void ew__child_errors_drain(ew__child_errors *errors, int fd);
/* Logs what is left to say. */
void ew__child_errors_done(ew__child_errors *errors);

#endif
