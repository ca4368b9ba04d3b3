/*
 * jobs/policy.h: what becomes of a job after an attempt, after the loss of its worker, and when a worker ends:
 * decisions without a store, a clock or a socket. May include: base, json.
 */
#ifndef EW_JOBS_POLICY_H
#define EW_JOBS_POLICY_H

#include "jobs/store.h"

typedef enum ew__outcome_kind {
    EW__OUTCOME_SUCCESS,
    EW__OUTCOME_RETRY,     /* it asks to be run again */
    EW__OUTCOME_ERROR,     /* it failed */
    EW__OUTCOME_TIMEOUT,   /* its time was over */
    EW__OUTCOME_FATAL,     /* running it again cannot help: no such action, a bad name */
    EW__OUTCOME_CANCELLED, /* it was cancelled, because somebody asked for that */
    EW__OUTCOME_BACK /* it was not its fault: handed back at a shutdown, or never begun; retries stay as they are */
} ew__outcome_kind;

/* How an attempt ended. */
typedef struct ew__outcome {
    ew__outcome_kind kind;
    ew_str result;          /* SUCCESS: JSON; empty: null */
    ew_str message;         /* else; plain text, may be empty */
    ew_str error;           /* JSON object, as ew__job.error; may be empty */
    int64_t retry_after_ms; /* RETRY: when; < 0: as the policy says. BACK: > 0: not before; else at once */
} ew__outcome;

typedef struct ew__policy {
    uint64_t base_retry_ms; /* 5 s */
    uint64_t max_retry_ms;  /* 1 h */
    bool no_jitter;         /* the whole back-off, as RRQ waits; else anything up to it */
    bool retry_timeouts;    /* a timeout is an error like any other; else a dead letter at once, as in RRQ */
    uint32_t poison_after;  /* lost workers; 3 */
    ew_str dlq;             /* "default" */
} ew__policy;

void ew__policy_complete(ew__policy *policy); /* zeros become the usual */

/* Back-off before retry n (from 1): min(base * 2^(n-1), max), and with full jitter anything between 0 and that. */
uint64_t ew__policy_backoff(const ew__policy *policy, uint32_t n, uint64_t random);

/*
 * Fills in a change: what becomes of a job that this worker has (HELD) after the outcome; slices are borrowed from job
 * and outcome. message may be needed for a text that is made here: it must live as long as the change.
 */
typedef struct ew__policy_text {
    char text[128];
} ew__policy_text;
void ew__policy_ended(const ew__policy *policy, const ew__job *job, const ew__outcome *outcome, int64_t now,
                      uint64_t random, ew__policy_text *text, ew__op_change *ret);
/*
 * The same for a job whose lease has run out (LOST): PENDING at once, or a dead letter after poison_after of these.
 *
 * "At once" is the time at which the job was due before: it has waited for its turn already, and that does not depend
 * on the clock of who puts it back. A job that somebody wants cancelled is CANCELLED instead of being put back.
 */
void ew__policy_lost(const ew__policy *policy, const ew__job *job, int64_t now, ew__policy_text *text,
                     ew__op_change *ret);

#endif
