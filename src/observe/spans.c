/*
 * observe/spans.c: the noting side of spans.h: a bounded queue of records.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "observe/spans_record.h"
#include "base/list.h"

#define PIECE_BYTES 640 /* a record of a small call */
#define FREE_PIECES EW__POOL_KEEP(64)
#define GROUP_MAX 32 /* spans in one text */
#define GROUP_BYTES ((size_t)256 * 1024)
#define ANCHOR_MS 10000     /* how often the wall clock is looked at */
#define ANCHOR_STEP_US 2000 /* it counts milliseconds only: less than this is no news */

/* Only the loop's thread writes. */
static void count(atomic_ullong *counter, uint64_t by) {
    atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + by, memory_order_relaxed);
}

/* ---- time ---- */

static void look_at_wall(ew__spans *spans) {
    const ew_env *env = spans->executor->env;
    uint64_t now = ew__executor_read_clock(spans->executor);
    int64_t offset = (int64_t)(env->wall_ms(env->ud) * 1000) - (int64_t)(now / 1000);
    int64_t moved = offset - spans->wall_offset_us;
    if (moved > ANCHOR_STEP_US || moved < -ANCHOR_STEP_US)
        spans->wall_offset_us = offset;
    spans->anchored_at = now;
}

static uint64_t wall_us(ew__spans *spans, uint64_t mono_ns) {
    if (spans->executor->now - spans->anchored_at > EW__MS(ANCHOR_MS))
        look_at_wall(spans);
    return (uint64_t)((int64_t)(mono_ns / 1000) + spans->wall_offset_us);
}

/* ---- the queue ---- */

typedef enum rank { START, UNTOLD_END, END } rank;

/*
 * Who may use how much of the queue, in realtime: the end of a span that was told of is not to be lost to others.
 * Starts get half, ends of spans that nobody was told of leave an eighth.
 */
static uint64_t share(const ew__spans *spans, uint64_t limit, rank whose) {
    return !spans->realtime || whose == END ? limit : limit - limit / 8;
}

static bool is_full(const ew__spans *spans, size_t size, rank whose) {
    uint64_t items = spans->executor->limits->trace_queue_items, bytes = spans->executor->limits->trace_queue_bytes;
    if (spans->n_items >= share(spans, items, whose) || spans->bytes + size > share(spans, bytes, whose))
        return true;
    return whose == START && (spans->n_starts >= items / 2 || spans->start_bytes + size > bytes / 2);
}

/* Room for a record, NULL (and counted) when there is none. */
static ew__span *take(ew__spans *spans, size_t need, rank whose) {
    size_t size = need <= PIECE_BYTES ? PIECE_BYTES : need;
    bool full = is_full(spans, size, whose);
    ew__span *span = full                 ? NULL
                     : size > PIECE_BYTES ? ew__alloc(spans->executor->env, size)
                                          : ew__piece_get(&spans->pieces);
    if (!span) {
        count(&spans->dropped, 1);
        return NULL;
    }
    span->size = size;
    return span;
}

static void add(ew__spans *spans, ew__span *span) {
    bool was_empty = spans->first == NULL;
    EW__TAIL_ADD(spans->first, spans->last, span);
    spans->n_items++;
    spans->bytes += span->size;
    if (span->end_us == 0) {
        spans->n_starts++;
        spans->start_bytes += span->size;
    }
    if (was_empty && spans->wake)
        spans->wake(spans, spans->ud);
}

static void drop_first(ew__spans *spans) {
    ew__span *span = spans->first;
    spans->first = span->next;
    spans->n_items--;
    spans->bytes -= span->size;
    if (span->end_us == 0) {
        spans->n_starts--;
        spans->start_bytes -= span->size;
    }
    if (span->size == PIECE_BYTES)
        ew__piece_put(&spans->pieces, span);
    else
        ew__free(spans->executor->env, span, span->size);
}

/* ---- noting ---- */

/* At most so much of a payload, and no part of a character. */
static ew_str cut(ew_str text, bool *truncated) {
    if (text.len <= EW__SPAN_CUT)
        return text;
    size_t n = EW__SPAN_CUT;
    while (n > 0 && ((unsigned char)text.ptr[n] & 0xc0) == 0x80)
        n--;
    *truncated = true;
    return ew__str(text.ptr, n);
}

/* What must be whole to be read: a cut context could show what it hides. */
static ew_str whole(ew_str text, bool *truncated) {
    if (text.len <= EW__SPAN_CUT)
        return text;
    *truncated = true;
    return ew__str(NULL, 0);
}

/* The payload as a trace may show it; *own is memory for that, to be freed by the caller. */
static ew_str shown(ew_str json, const ew__secrets *secrets, ew__buf *own, bool *truncated) {
    if (EW__LIKELY(!secrets))
        return cut(json, truncated);
    return cut(ew__secrets_hide(own, json, secrets) == EW_OK ? ew__buf_view(own) : EW_STR("\"***\""), truncated);
}

static void copy_parts(ew__span *span, const ew_str parts[EW__SPAN_PARTS]) {
    char *at = span->bytes;
    for (size_t i = 0; i < EW__SPAN_PARTS; i++) {
        span->len[i] = (uint32_t)parts[i].len;
        if (parts[i].len)
            memcpy(at, parts[i].ptr, parts[i].len);
        at += parts[i].len;
    }
}

/* The trace that the upstream recorded the call in, if that is another one; known at the end. */
static ew_str upstream_trace(const ew_call *call) {
    ew_str theirs = call->action ? ew__str(NULL, 0) : call->outgoing.remote_trace_id;
    bool same = ew__str_is(theirs, ew__str(call->trace.trace_id, sizeof call->trace.trace_id));
    return same ? ew__str(NULL, 0) : theirs;
}

/* end NULL: it starts. false: no room. */
static bool note(ew__spans *spans, ew_call *call, const ew__end *end, uint64_t duration_ns) {
    const ew__span_style *style = call->served.span_style;
    bool truncated = false;
    ew__buf own[2];
    ew__buf_init(&own[0], spans->executor->env, SIZE_MAX / 2);
    ew__buf_init(&own[1], spans->executor->env, SIZE_MAX / 2);
    ew_str parts[EW__SPAN_PARTS] = {
        [EW__SPAN_KEY] = call->key,
        [EW__SPAN_PATH] = call->outgoing.trace_path,
        [EW__SPAN_LABELS] = whole(call->labels, &truncated),
        [EW__SPAN_CONTEXT] = end || style ? whole(call->context, &truncated) : ew__str(NULL, 0),
        [EW__SPAN_INPUT] = shown(call->input, call->secret_input, &own[0], &truncated),
    };
    if (end)
        parts[EW__SPAN_UPSTREAM] = upstream_trace(call);
    if (end)
        parts[EW__SPAN_OUTPUT] = end->status == EW_STATUS_OK
                                     ? shown(end->result, call->secret_output, &own[1], &truncated)
                                     : cut(end->fault.message, &truncated);
    size_t need = sizeof(ew__span);
    for (size_t i = 0; i < EW__SPAN_PARTS; i++)
        need += parts[i].len;
    ew__span *span = take(spans, need, !end ? START : call->traced ? END : UNTOLD_END);
    if (span)
        copy_parts(span, parts);
    ew__buf_done(&own[0]);
    ew__buf_done(&own[1]);
    if (!span)
        return false;
    span->trace = *ew__call_trace(call);
    span->start_us = wall_us(spans, call->opened_at);
    span->end_us = end ? wall_us(spans, call->opened_at + duration_ns) : 0;
    span->status = (uint8_t)(end ? end->status : EW_STATUS_OK);
    span->outgoing = call->action == NULL;
    span->truncated = truncated;
    span->style = style;
    span->retry_after_ms = end && end->status != EW_STATUS_OK ? end->fault.retry_after_ms : 0;
    span->retry = span->retry_after_ms || (end && end->status != EW_STATUS_OK && end->fault.retryable);
    add(spans, span);
    return true;
}

/* A call that crosses loops has one span, on the loop that it arrived on. */
static bool is_recorded(const ew_call *call) { return call->kind == EW__CALL_RUN && !call->outgoing.cross_loop; }

static void on_opened(ew__observer *observer, ew_call *call) {
    if (is_recorded(call))
        call->traced = note(ew__container_of(observer, ew__spans, observer), call, NULL, 0);
}

static void on_ended(ew__observer *observer, ew_call *call, const ew__end *end, uint64_t duration_ns) {
    if (is_recorded(call))
        (void)note(ew__container_of(observer, ew__spans, observer), call, end, duration_ns);
}

/* ---- handing out ---- */

static bool same_trace(const ew__span *a, const ew__span *b) {
    return memcmp(a->trace.trace_id, b->trace.trace_id, sizeof a->trace.trace_id) == 0;
}

static bool has_span(const ew__span *first, uint32_t n, const ew__span *span) {
    for (; n > 0; n--, first = first->next)
        if (memcmp(first->trace.span_id, span->trace.span_id, sizeof span->trace.span_id) == 0)
            return true;
    return false;
}

/* How many records from the first on go into one text: of one trace, each span once. */
static uint32_t group(const ew__spans *spans) {
    uint32_t n = 1;
    size_t bytes = spans->first->size;
    for (const ew__span *at = spans->first->next; at && n < GROUP_MAX; at = at->next, n++) {
        bytes += at->size;
        if (bytes > GROUP_BYTES || !same_trace(spans->first, at) || has_span(spans->first, n, at))
            break;
    }
    return n;
}

bool ew__spans_next(ew__spans *spans, ew__buf *body) {
    while (spans->first) {
        uint32_t n = group(spans);
        ew__buf_clear(body);
        ew__spans_write(body, spans->first, n);
        for (uint32_t i = 0; i < n; i++)
            drop_first(spans);
        if (body->err == EW_OK) {
            spans->handed = n;
            return true;
        }
        count(&spans->dropped, n);
    }
    return false;
}

void ew__spans_told(ew__spans *spans, bool sent) {
    count(sent ? &spans->exported : &spans->dropped, spans->handed);
    spans->handed = 0;
}

/* ---- life ---- */

void ew__spans_init(ew__spans *spans, ew__executor *executor) {
    memset(spans, 0, sizeof *spans);
    spans->executor = executor;
    spans->pieces = (ew__pieces){.env = executor->env, .size = PIECE_BYTES, .max_free = FREE_PIECES};
    spans->observer.next = executor->calls->observer;
    executor->calls->observer = &spans->observer;
}

void ew__spans_done(ew__spans *spans) {
    ew__observer **at = &spans->executor->calls->observer;
    while (*at && *at != &spans->observer)
        at = &(*at)->next;
    if (*at)
        *at = spans->observer.next;
    while (spans->first)
        drop_first(spans);
    ew__pieces_trim(&spans->pieces);
}

void ew__spans_enable(ew__spans *spans, bool on, bool realtime) {
    look_at_wall(spans);
    spans->realtime = realtime;
    spans->observer.opened = on && realtime ? on_opened : NULL;
    spans->observer.ended = on ? on_ended : NULL;
    spans->observer.spans = on;
}
