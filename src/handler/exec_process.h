/*
 * handler/exec_process.h: what the files of exec share: the action's programs, a call on its way to one of them, and a
 * process. Used by exec*.c only.
 */
#ifndef EW_HANDLER_EXEC_PROCESS_H
#define EW_HANDLER_EXEC_PROCESS_H

#include "base/list.h"
#include "base/buf.h"
#include "handler/exec.h"
#include "io/child.h"
#include "io/child_errors.h"

typedef struct ew__exec_process ew__exec_process;
typedef struct ew__exec_job ew__exec_job;

struct ew__exec {
    const ew_env *env;
    const ew_limits *limits;      /* borrowed; read when it settles, for an app may still be configured before that */
    ew__arena arena;              /* of the copies */
    ew_exec_options options;      /* complete, but for output_bytes before it has settled */
    const char *program;          /* options.argv[0] */
    const char *strays;           /* what the log calls output between calls */
    const char *const *inherited; /* what the processes have of our environment */
    const char *key_var;          /* "EVERYWIRE_KEY=..." */
    ew__child_rules rules;
    ew__loop *loop;
    ew__exec_process *processes; /* all that are not gone */
    unsigned n_processes;
    ew__list waiting; /* calls without a process */
    unsigned n_waiting;
    bool serving;      /* ew__exec_serve is at work */
    uint64_t pause_ms; /* keep: between two starts; 0: the last call went well */
    uint64_t start_at; /* keep: not before that */
    ew__timer pause;
    bool closing;
    void (*on_closed)(void *ud);
    void *on_closed_ud;
};

/* A call from its opening to its end; in the call's memory, and its callee_ud. */
struct ew__exec_job {
    ew__exec *exec;
    ew_call *call;
    ew__exec_process *process; /* NULL: it waits */
    ew__list_node node;        /* in the queue */
    ew__out early;             /* the input and chunks of its stream that came while it waits; empty if none did */
    uint64_t timeout_at;       /* EW__NEVER: none of our own */
    bool cancelled;
};

typedef enum ew__exec_state {
    EW__EXEC_STARTS, /* the dial runs */
    EW__EXEC_RUNS,   /* it has a call; with keep, perhaps it waits for one */
    EW__EXEC_LEAVES  /* it is on its way to its end, and what it writes is dropped */
} ew__exec_state;

struct ew__exec_process {
    ew__exec *exec;
    ew__exec_process *next, *prev;
    ew__exec_job *job; /* NULL: none, any more or yet */
    ew__exec_state state;
    ew__dial *dial;
    ew__stream stream;
    ew__out out;
    ew__timer timer; /* the end of a wait: for the rest of its output, or for its end. Set from the beginning to the */
    ew__timer turn;  /* end, so that moving them cannot fail; the second: the caller has room again */
    ew__buf line;    /* lines that wait for room, and the beginning of the next; or all of the output */
    size_t scanned;  /* of `line`, in which there is no newline */
    ew__buf text;    /* lines that are text, for a result */
    bool has_text;
    bool text_too_long;
    bool open;     /* the stream is started and not closed */
    bool busy;     /* its output is being worked on */
    bool full;     /* its caller is behind: it is not read from */
    bool eof;      /* it will write no more */
    bool exited;   /* and is no more */
    bool answered; /* a result or error line came before its end */
    int code, signal;
    unsigned n_waits; /* for the rest of its output */
    ew__child_errors strays;
    char deadline[48];
    char trace[80];
    const char *vars[4]; /* beside what it inherits: key, trace, deadline; NULL-ended */
};

/* ---- exec_queue.c ---- */

/* Gives calls that wait to processes, as far as there may be any. */
void ew__exec_serve(ew__exec *exec);
void ew__exec_leave_queue(ew__exec_job *job);
/* Keep: a process has ended in a call. The next start waits. */
void ew__exec_hold_back(ew__exec *exec);
/* The end of a call; the job is gone after that. Exactly one of these. */
void ew__exec_done(ew__exec_job *job, ew_str json);
void ew__exec_fail(ew__exec_job *job, const ew_fault *fault);
void ew__exec_fail_as(ew__exec_job *job, ew_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Writes the line of input, and what came after it, to *out. */
void ew__exec_write_input(ew__exec_job *job, ew__out *out);
/* A process is gone: its memory too. */
void ew__exec_process_gone(ew__exec_process *process);
/* Whether all is gone that was; then the owner is told. The exec may be freed in it. */
void ew__exec_check_closed(ew__exec *exec);

/* ---- exec_process.c ---- */

/* Starts one for a call. EW_OK; EW_ENOMEM: the job is as it was. */
ew_err ew__exec_process_start(ew__exec *exec, ew__exec_job *job);
/* Kept ones: whether it can have a call; gives it one. */
bool ew__exec_process_is_free(const ew__exec_process *process);
void ew__exec_process_give(ew__exec_process *process, ew__exec_job *job);
/* More of a call's input was put into process->out; or it is over. */
void ew__exec_process_send(ew__exec_process *process);
void ew__exec_process_end_input(ew__exec_process *process);
/* There is room for chunks again. */
void ew__exec_process_room(ew__exec_process *process);
/* Its call is cancelled: ends the process, then the call. */
void ew__exec_process_cancel(ew__exec_process *process);
/* It has no call any more: eof and the usual time; or SIGTERM now. */
void ew__exec_process_dismiss(ew__exec_process *process);
void ew__exec_process_terminate(ew__exec_process *process);
void ew__exec_process_free(ew__exec_process *process);

/* ---- exec_output.c ---- */

/* What it has written; at its eof, what is left of it. May end the call. */
void ew__exec_output_take(ew__exec_process *process, const char *bytes, size_t n);
/* Goes on with lines that waited for room. */
void ew__exec_output_resume(ew__exec_process *process);
/* It has ended and all was taken: ends the call, if that is still to be done. */
void ew__exec_output_end(ew__exec_process *process);
/* "SIGTERM"; "SIG40" for one without a name. */
const char *ew__exec_signal_name(int number, char out[16]);

#endif
