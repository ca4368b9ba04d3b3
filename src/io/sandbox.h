/*
 * io/sandbox.h: gives up rights of this process for good: no_new_privs, a system call filter
 * (seccomp) and a list of places that may be written (Landlock). Threads and child processes that
 * start later inherit all of it.
 */
#ifndef EW_IO_SANDBOX_H
#define EW_IO_SANDBOX_H

#include <stdbool.h>
#include <stddef.h>

/* Landlock before this version cannot deny truncate(2); Linux 6.2 has it. */
#define EW__LANDLOCK_TRUNCATE 3

typedef struct ew__sandbox_plan {
    const char *const *writes; /* NULL-ended: folders and files; absent ones are skipped */
    bool children;             /* child processes may be started */
} ew__sandbox_plan;

/* What is in force. An error is 0 or an errno: why that part is not. */
typedef struct ew__sandbox_report {
    int privileges_error; /* no_new_privs, which both others need */
    int files_error;      /* Landlock; EBUSY: in force, but not for threads that already run */
    int landlock_version; /* 0: not in force */
    size_t n_writes;      /* places that may be written */
    int calls_error;      /* seccomp */
} ew__sandbox_report;

/*
 * Applies as much of the plan as the kernel supports and reports the rest. Cannot be undone. Call
 * it once, before other threads start. Standard input, output and error stay writable. Allocates
 * nothing.
 */
void ew__sandbox_enter(const ew__sandbox_plan *plan, ew__sandbox_report *report);

#endif
