/*
 * observe/metrics.c: see metrics.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "observe/metrics.h"

struct ew__metrics_row {
    ew__metrics_row *next; /* another wire of the same action */
    ew__action *action;    /* a reference */
    const char *wire;
    atomic_ullong ended[EW_STATUS_COUNT];
    atomic_ullong bucket[EW__BUCKETS]; /* not cumulative; the last is everything above */
    atomic_ullong sum_ns;
    atomic_ullong opened, left; /* their difference is in flight */
    atomic_ullong chunks;
    atomic_ullong after_cancel_ns;
};

static const struct {
    uint64_t ns;
    const char *text;
} bounds[EW__BUCKETS - 1] = {
    {100000, "0.0001"},  {250000, "0.00025"}, {500000, "0.0005"},  {1000000, "0.001"},
    {2500000, "0.0025"}, {5000000, "0.005"},  {10000000, "0.01"},  {25000000, "0.025"},
    {50000000, "0.05"},  {100000000, "0.1"},  {250000000, "0.25"}, {500000000, "0.5"},
    {1000000000, "1"},   {2500000000, "2.5"}, {10000000000, "10"}, {60000000000, "60"},
};

/* Only the loop's thread writes: a plain load and store suffice, readers see whole numbers. */
static void add(atomic_ullong *counter, uint64_t by) {
    atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + by, memory_order_relaxed);
}

static uint64_t get(const atomic_ullong *counter) { return atomic_load_explicit(counter, memory_order_relaxed); }

/* ---- counting ---- */

static bool grow(ew__metrics *metrics, uint32_t need) {
    uint32_t n = metrics->n_rows ? metrics->n_rows * 2 : 64;
    while (n <= need)
        n *= 2;
    ew__metrics_row **rows = ew__zalloc(metrics->env, sizeof(void *) * n);
    if (!rows)
        return false;
    if (metrics->n_rows)
        memcpy((void *)rows, (void *)metrics->rows, sizeof(void *) * metrics->n_rows);
    ew__free(metrics->env, (void *)metrics->rows, sizeof(void *) * metrics->n_rows);
    metrics->rows = rows;
    metrics->n_rows = n;
    return true;
}

static ew__metrics_row *new_row(ew__metrics *metrics, const ew_call *call) {
    ew__metrics_row *row = ew__zalloc(metrics->env, sizeof *row);
    if (!row)
        return NULL;
    row->action = ew__action_ref(call->action);
    row->wire = call->wire;
    pthread_mutex_lock(&metrics->lock);
    if (call->action->id < metrics->n_rows || grow(metrics, call->action->id)) {
        row->next = metrics->rows[call->action->id];
        metrics->rows[call->action->id] = row;
    } else {
        ew__action_unref(row->action);
        ew__free(metrics->env, row, sizeof *row);
        row = NULL;
    }
    pthread_mutex_unlock(&metrics->lock);
    return row;
}

/* NULL: no action (an outgoing call), or no memory: then it is not counted. */
static ew__metrics_row *row_of(ew__observer *observer, const ew_call *call) {
    ew__metrics *metrics = ew__container_of(observer, ew__metrics, observer);
    if (!call->action)
        return NULL;
    ew__metrics_row *row = call->action->id < metrics->n_rows ? metrics->rows[call->action->id] : NULL;
    while (row && row->wire != call->wire)
        row = row->next;
    return row ? row : new_row(metrics, call);
}

static void on_opened(ew__observer *observer, ew_call *call) {
    ew__metrics_row *row = row_of(observer, call);
    if (row)
        add(&row->opened, 1);
}

static void on_chunks(ew__observer *observer, ew_call *call, size_t n) {
    ew__metrics_row *row = row_of(observer, call);
    if (row)
        add(&row->chunks, n);
}

static void on_ended(ew__observer *observer, ew_call *call, const ew__end *end, uint64_t duration_ns) {
    ew__metrics_row *row = row_of(observer, call);
    if (!row)
        return;
    size_t i = 0;
    while (i < EW__BUCKETS - 1 && duration_ns > bounds[i].ns)
        i++;
    add(&row->ended[end->status], 1);
    add(&row->bucket[i], 1);
    add(&row->sum_ns, duration_ns);
}

static void on_left(ew__observer *observer, ew_call *call, uint64_t after_cancel_ns) {
    ew__metrics_row *row = row_of(observer, call);
    if (!row)
        return;
    add(&row->left, 1);
    add(&row->after_cancel_ns, after_cancel_ns);
}

void ew__metrics_init(ew__metrics *metrics, const ew_env *env) {
    memset(metrics, 0, sizeof *metrics);
    metrics->observer = (ew__observer){.opened = on_opened, .chunks = on_chunks, .ended = on_ended, .left = on_left};
    metrics->env = env;
    pthread_mutex_init(&metrics->lock, NULL);
}

void ew__metrics_done(ew__metrics *metrics) {
    for (uint32_t i = 0; i < metrics->n_rows; i++) {
        for (ew__metrics_row *row = metrics->rows[i], *next; row; row = next) {
            next = row->next;
            ew__action_unref(row->action);
            ew__free(metrics->env, row, sizeof *row);
        }
    }
    ew__free(metrics->env, (void *)metrics->rows, sizeof(void *) * metrics->n_rows);
    pthread_mutex_destroy(&metrics->lock);
}

/* ---- writing ---- */

/* One row summed over all loops. */
struct sum {
    struct sum *next;
    ew_str key;
    const char *wire;
    uint64_t ended[EW_STATUS_COUNT], bucket[EW__BUCKETS], sum_ns, opened, left, chunks, after_cancel_ns;
};

static void add_row(struct sum *sum, const ew__metrics_row *row) {
    for (size_t i = 0; i < EW_STATUS_COUNT; i++)
        sum->ended[i] += get(&row->ended[i]);
    for (size_t i = 0; i < EW__BUCKETS; i++)
        sum->bucket[i] += get(&row->bucket[i]);
    sum->sum_ns += get(&row->sum_ns);
    sum->left += get(&row->left); /* before opened: in flight must not come out negative */
    sum->opened += get(&row->opened);
    sum->chunks += get(&row->chunks);
    sum->after_cancel_ns += get(&row->after_cancel_ns);
}

static ew_err collect_row(ew__arena *arena, ew__map *index, struct sum **last, const ew__metrics_row *row) {
    char name[600];
    size_t n = row->action->key.len < 512 ? row->action->key.len : 512;
    memcpy(name, row->action->key.ptr, n);
    name[n++] = ' ';
    size_t wire = strlen(row->wire);
    memcpy(name + n, row->wire, wire < 64 ? wire : 64);
    ew_str id = ew__str(name, n + (wire < 64 ? wire : 64));
    struct sum *sum = ew__map_get(index, id);
    if (!sum) {
        sum = ew__arena_alloc(arena, sizeof *sum);
        ew_str key;
        if (!sum || ew__arena_str(arena, id, &key) != EW_OK)
            return EW_ENOMEM;
        *sum = (struct sum){.wire = row->wire, .key = ew__str(key.ptr, row->action->key.len)};
        if (ew__map_put(index, key, sum) != EW_OK)
            return EW_ENOMEM;
        (*last)->next = sum;
        *last = sum;
    }
    add_row(sum, row);
    return EW_OK;
}

static ew_err collect(ew__arena *arena, ew__map *index, struct sum *head, ew__metrics *const *sets, size_t n) {
    struct sum *last = head;
    ew_err err = EW_OK;
    for (size_t i = 0; i < n && err == EW_OK; i++) {
        pthread_mutex_lock(&sets[i]->lock);
        for (uint32_t k = 0; k < sets[i]->n_rows && err == EW_OK; k++)
            for (const ew__metrics_row *row = sets[i]->rows[k]; row && err == EW_OK; row = row->next)
                err = collect_row(arena, index, &last, row);
        pthread_mutex_unlock(&sets[i]->lock);
    }
    return err;
}

static void write_type(ew__buf *out, const char *name, const char *type, const char *help) {
    (void)ew__buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

/*
 * {action="...",wire="..."  without the closing brace. Keys hold no control bytes; quotes and backslashes are
 * escaped.
 */
static void write_labels(ew__buf *out, const struct sum *sum) {
    ew__buf_cstr(out, "{action=\"");
    for (size_t i = 0; i < sum->key.len; i++) {
        if (sum->key.ptr[i] == '"' || sum->key.ptr[i] == '\\')
            ew__buf_char(out, '\\');
        ew__buf_char(out, sum->key.ptr[i]);
    }
    (void)ew__buf_printf(out, "\",wire=\"%s\"", sum->wire);
}

static void write_line(ew__buf *out, const char *name, const struct sum *sum, const char *label, const char *value,
                       uint64_t number) {
    ew__buf_cstr(out, name);
    write_labels(out, sum);
    if (label)
        (void)ew__buf_printf(out, ",%s=\"%s\"", label, value);
    ew__buf_cstr(out, "} ");
    ew__buf_u64(out, number);
    ew__buf_char(out, '\n');
}

static void write_histogram(ew__buf *out, const struct sum *sum) {
    uint64_t count = 0;
    for (size_t i = 0; i < EW__BUCKETS; i++) {
        count += sum->bucket[i];
        write_line(out, "everywire_call_duration_seconds_bucket", sum, "le",
                   i < EW__BUCKETS - 1 ? bounds[i].text : "+Inf", count);
    }
    ew__buf_cstr(out, "everywire_call_duration_seconds_sum");
    write_labels(out, sum);
    (void)ew__buf_printf(out, "} %llu.%09llu\n", (unsigned long long)(sum->sum_ns / 1000000000),
                         (unsigned long long)(sum->sum_ns % 1000000000));
    write_line(out, "everywire_call_duration_seconds_count", sum, NULL, NULL, count);
}

static void write_calls(ew__buf *out, const struct sum *first) {
    write_type(out, "everywire_calls_total", "counter", "Calls that have ended, by action, wire and status.");
    for (const struct sum *sum = first; sum; sum = sum->next)
        for (int status = 0; status < EW_STATUS_COUNT; status++)
            if (sum->ended[status])
                write_line(out, "everywire_calls_total", sum, "status", ew_status_name((ew_status)status),
                           sum->ended[status]);
    write_type(out, "everywire_calls_in_flight", "gauge", "Calls whose handler has not ended yet.");
    for (const struct sum *sum = first; sum; sum = sum->next)
        write_line(out, "everywire_calls_in_flight", sum, NULL, NULL,
                   sum->opened > sum->left ? sum->opened - sum->left : 0);
    write_type(out, "everywire_call_duration_seconds", "histogram",
               "Time from the opening of a call to the end its caller was told.");
    for (const struct sum *sum = first; sum; sum = sum->next)
        write_histogram(out, sum);
    write_type(out, "everywire_chunks_total", "counter", "Chunks that handlers have streamed.");
    for (const struct sum *sum = first; sum; sum = sum->next)
        write_line(out, "everywire_chunks_total", sum, NULL, NULL, sum->chunks);
    write_type(out, "everywire_work_after_cancel_milliseconds_total", "counter",
               "Time that handlers went on after their call was cancelled.");
    for (const struct sum *sum = first; sum; sum = sum->next)
        write_line(out, "everywire_work_after_cancel_milliseconds_total", sum, NULL, NULL,
                   sum->after_cancel_ns / 1000000);
}

static void write_number(ew__buf *out, const char *name, const char *type, const char *help, uint64_t number) {
    write_type(out, name, type, help);
    (void)ew__buf_printf(out, "%s %llu\n", name, (unsigned long long)number);
}

static void write_extra(ew__buf *out, const ew__metrics_extra *extra) {
    write_number(out, "everywire_connections_open", "gauge", "Connections open now.", extra->connections_open);
    write_number(out, "everywire_connections_accepted_total", "counter", "Connections accepted.",
                 extra->connections_accepted);
    write_number(out, "everywire_connections_refused_total", "counter", "Connections refused because of a limit.",
                 extra->connections_refused);
    write_number(out, "everywire_bytes_received_total", "counter", "Bytes received on all connections.",
                 extra->bytes_in);
    write_number(out, "everywire_bytes_sent_total", "counter", "Bytes sent on all connections.", extra->bytes_out);
    write_number(out, "everywire_events_dropped_total", "counter", "Events that came after the end of their call.",
                 extra->events_dropped);
    write_number(out, "everywire_spans_exported_total", "counter",
                 "Starts and ends of spans that the telemetry server has taken.", extra->spans_exported);
    write_number(out, "everywire_spans_dropped_total", "counter",
                 "Starts and ends of spans that were lost: the queue was full, or the server refused them.",
                 extra->spans_dropped);
    write_number(out, "everywire_loops", "gauge", "Event loops.", extra->loops);
    write_number(out, "everywire_memory_bytes", "gauge", "Bytes allocated; the limit memory_bytes applies to them.",
                 extra->memory_bytes);
    write_number(out, "everywire_memory_max_bytes", "gauge", "The limit memory_bytes.", extra->memory_max);
}

ew_err ew__metrics_write(ew__buf *out, ew__metrics *const *sets, size_t n, const ew__metrics_extra *extra) {
    const ew_env *env = out->env;
    ew__arena arena;
    ew__map index;
    struct sum head = {0};
    ew__arena_init(&arena, env, NULL, 0);
    ew__map_init(&index, env);
    ew_err err = collect(&arena, &index, &head, sets, n);
    if (err == EW_OK) {
        write_calls(out, head.next);
        write_extra(out, extra);
        err = out->err;
    }
    ew__map_done(&index);
    ew__arena_done(&arena);
    return err;
}
