/*
 * jobs/policy.c: see policy.h. Texts and counting are RRQ's, so that both systems say the same of a job.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "jobs/policy.h"

#include <stdio.h>

void ew__policy_complete(ew__policy *policy) {
    if (policy->base_retry_ms == 0)
        policy->base_retry_ms = 5000;
    if (policy->max_retry_ms == 0)
        policy->max_retry_ms = 3600000;
    if (policy->poison_after == 0)
        policy->poison_after = 3;
    if (policy->dlq.len == 0)
        policy->dlq = EW_STR(EW__JOB_DLQ);
}

uint64_t ew__policy_backoff(const ew__policy *policy, uint32_t n, uint64_t random) {
    uint32_t doublings = n > 1 ? n - 1 : 0;
    uint64_t delay = policy->base_retry_ms;
    for (; doublings > 0 && delay < policy->max_retry_ms; doublings--)
        delay = delay > UINT64_MAX / 2 ? UINT64_MAX : delay * 2;
    if (delay > policy->max_retry_ms)
        delay = policy->max_retry_ms;
    if (delay > (uint64_t)EW__JOB_TIMEOUT_MAX_MS)
        delay = (uint64_t)EW__JOB_TIMEOUT_MAX_MS;
    return policy->no_jitter ? delay : random % (delay + 1);
}

/* ---- what both have in common ---- */

static void begin(const ew__policy *policy, const ew__job *job, int64_t now, ew__op_change *ret) {
    *ret = (ew__op_change){
        .id = job->id,
        .queue = job->queue,
        .worker = job->worker,
        .epoch = job->epoch,
        .now = now,
        .retries = job->retries,
        .lost = job->lost,
        .dlq = job->dlq.len ? job->dlq : policy->dlq,
        .result_ttl_ms = job->result_ttl_ms,
        .unique_key = job->unique_key,
    };
}

static ew_str words_or(ew_str words, const char *usual) { return words.len ? words : ew_str_from(usual); }

static ew_str timed_out(const ew__job *job, ew__policy_text *text) {
    int64_t s = job->timeout_ms / 1000, ms = job->timeout_ms % 1000;
    int n =
        ms ? snprintf(text->text, sizeof text->text, "Job timed out after %lld.%03llds.", (long long)s, (long long)ms)
           : snprintf(text->text, sizeof text->text, "Job timed out after %llds.", (long long)s);
    return ew__str(text->text, n > 0 ? (size_t)n : 0);
}

/*
 * In its queue again, as it was there before: at its old place, because it has waited for its turn already. That is
 * never after now, and unlike now it does not depend on this worker's clock.
 */
static void put_back(const ew__job *job, int64_t now, ew__op_change *ret) {
    ret->status = EW__JOB_PENDING;
    ret->run_at = job->run_at > 0 && job->run_at < now ? job->run_at : now;
}

/* ---- after an attempt ---- */

static void failed(ew__op_change *ret) {
    ret->status = EW__JOB_FAILED;
    ret->retries++;
}

/* An attempt failed: another one, unless that was the last. delay_ms < 0: as the policy says. */
static void retry(const ew__policy *policy, const ew__job *job, int64_t delay_ms, uint64_t random, ew__op_change *ret) {
    failed(ret);
    if (ret->retries >= job->max_retries)
        return;
    if (delay_ms < 0)
        delay_ms = (int64_t)ew__policy_backoff(policy, ret->retries, random);
    if (delay_ms > EW__JOB_TIMEOUT_MAX_MS)
        delay_ms = EW__JOB_TIMEOUT_MAX_MS;
    ret->status = EW__JOB_RETRYING;
    ret->run_at = ret->now + delay_ms;
}

static void hand_back(const ew__job *job, const ew__outcome *outcome, ew__op_change *ret) {
    put_back(job, ret->now, ret);
    if (outcome->retry_after_ms > 0)
        ret->run_at = ret->now + (outcome->retry_after_ms < EW__JOB_TIMEOUT_MAX_MS ? outcome->retry_after_ms
                                                                                   : EW__JOB_TIMEOUT_MAX_MS);
    ret->last_error = words_or(outcome->message, "Job execution interrupted by worker shutdown. Re-queued.");
}

/* What somebody wants cancelled is not run again. */
static void mind_cancel(const ew__job *job, ew__op_change *ret) {
    if (job->cancel && (ret->status == EW__JOB_PENDING || ret->status == EW__JOB_RETRYING))
        ret->status = EW__JOB_CANCELLED;
}

void ew__policy_ended(const ew__policy *policy, const ew__job *job, const ew__outcome *outcome, int64_t now,
                      uint64_t random, ew__policy_text *text, ew__op_change *ret) {
    begin(policy, job, now, ret);
    ret->claim = EW__CLAIM_HELD;
    ret->error = outcome->kind == EW__OUTCOME_SUCCESS ? EW_STR("") : outcome->error;
    switch (outcome->kind) {
    case EW__OUTCOME_SUCCESS:
        ret->status = EW__JOB_COMPLETED;
        ret->result = outcome->result.len ? outcome->result : EW_STR("null");
        break;
    case EW__OUTCOME_RETRY:
        ret->last_error = words_or(outcome->message, "Job requested retry");
        retry(policy, job, outcome->retry_after_ms, random, ret);
        break;
    case EW__OUTCOME_ERROR:
        ret->last_error = words_or(outcome->message, "Job failed");
        retry(policy, job, -1, random, ret);
        break;
    case EW__OUTCOME_TIMEOUT:
        ret->last_error = outcome->message.len ? outcome->message : timed_out(job, text);
        if (policy->retry_timeouts)
            retry(policy, job, -1, random, ret);
        else
            failed(ret);
        break;
    case EW__OUTCOME_FATAL:
        ret->last_error = words_or(outcome->message, "Handler not found");
        failed(ret);
        break;
    case EW__OUTCOME_CANCELLED:
        ret->last_error = words_or(outcome->message, "Job cancelled");
        ret->status = EW__JOB_CANCELLED;
        break;
    case EW__OUTCOME_BACK:
        hand_back(job, outcome, ret);
        break;
    }
    mind_cancel(job, ret);
}

/* ---- after the loss of its worker ---- */

void ew__policy_lost(const ew__policy *policy, const ew__job *job, int64_t now, ew__policy_text *text,
                     ew__op_change *ret) {
    begin(policy, job, now, ret);
    ret->claim = EW__CLAIM_LOST;
    ret->lost++;
    if (ret->lost >= policy->poison_after && !job->cancel) {
        ret->status = EW__JOB_FAILED;
        int n = snprintf(text->text, sizeof text->text, "Poison pill: %u workers were lost while they ran this job.",
                         (unsigned)ret->lost);
        ret->last_error = ew__str(text->text, n > 0 ? (size_t)n : 0);
        return;
    }
    put_back(job, now, ret);
    ret->last_error = EW_STR("Recovered after lock expiry or worker crash.");
    mind_cancel(job, ret);
}
