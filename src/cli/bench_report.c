/*
 * cli/bench_report.c: what everywire bench has seen, for people and for programs. It measures nothing.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/bench.h"
#include <string.h>

static const struct {
    const char *name;
    double part;
} parts[] = {{"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}, {"p99.9", 0.999}};
#define N_PARTS (sizeof parts / sizeof *parts)

static const char *const origin_names[EW__BENCH_ORIGINS] = {"action",   "connect", "protocol",
                                                            "deadline", "cancel",  "local"};
static const char *const origin_texts[EW__BENCH_ORIGINS] = {
    "the action failed", "peer not reached, or lost", "peer broke the protocol", "the timeout passed",
    "cancelled",         "could not be sent"};

void ew__bench_result_free(ew__bench_result *result) {
    ew__hdr_free(result->latency);
    ew__hdr_free(result->first_chunk);
}

int ew__bench_failed(const ew__bench_plan *plan, const ew__bench_result *result) {
    ew_end end = {.status = result->first_status,
                  .origin = result->first_origin,
                  .fault = {.status = result->first_status, .message = ew_str_from(result->first_message)}};
    return ew__cli_ending("bench", plan->calling.words[0], plan->calling.words[1], &end);
}

void ew__bench_time(char *out, size_t size, double ns) {
    static const struct {
        double unit;
        const char *name;
    } units[] = {{1e9, "s"}, {1e6, "ms"}, {1e3, "us"}, {1, "ns"}};
    size_t i = 0;
    while (i < 3 && ns < units[i].unit * 0.9995) {
        i++;
    }
    double value = ns / units[i].unit;
    int digits = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
    (void)snprintf(out, size, "%.*f %s", i == 3 ? 0 : digits, value, units[i].name);
}

/* "1,234,567" */
static void grouped(char *out, size_t size, double number) {
    char digits[32];
    int n = snprintf(digits, sizeof digits, "%.0f", number);
    size_t at = 0;
    for (int i = 0; i < n && at + 2 < size; i++) {
        if (i > 0 && (n - i) % 3 == 0) {
            out[at++] = ',';
        }
        out[at++] = digits[i];
    }
    out[at] = '\0';
}

/* "12.3 MB/s" */
static void speed(char *out, size_t size, double bytes) {
    static const char *const units[] = {"B/s", "kB/s", "MB/s", "GB/s"};
    size_t i = 0;
    while (i < 3 && bytes >= 999.5) {
        bytes /= 1000;
        i++;
    }
    (void)snprintf(out, size, "%.*f %s", i == 0 || bytes >= 99.95 ? 0 : 1, bytes, units[i]);
}

void ew__bench_live(FILE *out, double seconds, double total_seconds, double rps, const ew__hdr *latency,
                    uint64_t errors, const char *phase) {
    char p50[32], p99[32], rate[48], of[32] = "";
    ew__bench_time(p50, sizeof p50, (double)ew__hdr_at(latency, 0.5));
    ew__bench_time(p99, sizeof p99, (double)ew__hdr_at(latency, 0.99));
    grouped(rate, sizeof rate, rps);
    if (total_seconds > 0) {
        (void)snprintf(of, sizeof of, " of %.3g s", total_seconds);
    }
    if (*phase) {
        (void)fprintf(out, "\r\033[K%.1f%s  %s", seconds, of, phase);
    } else {
        (void)fprintf(out, "\r\033[K%.1f%s  %s calls/s  p50 %s  p99 %s  errors %llu", seconds, *of ? of : " s", rate,
                      p50, p99, (unsigned long long)errors);
    }
    (void)fflush(out);
}

/* ---- JSON ---- */

static double per_second(const ew__bench_result *result, double n) {
    return result->seconds > 0 ? n / result->seconds : 0;
}

static double us(double ns) { return ns / 1000; }

/* "NAME":{"mean":...} in microseconds; without values all of them are null. */
static void json_times(ew__text *out, const char *name, const ew__hdr *hdr) {
    if (hdr->n == 0) {
        (void)ew__text_printf(out, ",\"%s\":null", name);
        return;
    }
    (void)ew__text_printf(out, ",\"%s\":{\"mean\":%.3f,\"min\":%.3f", name, us(ew__hdr_mean(hdr)),
                          us((double)hdr->min));
    for (size_t i = 0; i < N_PARTS; i++) {
        (void)ew__text_printf(out, ",\"%s\":%.3f", parts[i].name, us((double)ew__hdr_at(hdr, parts[i].part)));
    }
    (void)ew__text_printf(out, ",\"max\":%.3f}", us((double)hdr->max));
}

static void json_counts(ew__text *out, const ew__bench_result *result) {
    const char *comma = "";
    (void)ew__text_cstr(out, ",\"status\":{");
    for (unsigned i = 0; i < EW__BENCH_STATUSES; i++) {
        if (result->statuses[i] > 0) {
            (void)ew__text_printf(out, "%s\"%s\":%llu", comma, ew_status_name((ew_status)i),
                                  (unsigned long long)result->statuses[i]);
            comma = ",";
        }
    }
    comma = "";
    (void)ew__text_cstr(out, "},\"error_origin\":{");
    for (unsigned i = 0; i < EW__BENCH_ORIGINS; i++) {
        if (result->origins[i] > 0) {
            (void)ew__text_printf(out, "%s\"%s\":%llu", comma, origin_names[i], (unsigned long long)result->origins[i]);
            comma = ",";
        }
    }
    (void)ew__text_cstr(out, "}");
}

static void json_open_loop(ew__text *out, const ew__bench_plan *plan, const ew__bench_result *result) {
    if (plan->rate > 0) {
        (void)ew__text_printf(out, ",\"rate\":%.3f,\"late\":%llu,\"late_max_us\":%.3f,\"unsent\":%llu", plan->rate,
                              (unsigned long long)result->late, us((double)result->late_max),
                              (unsigned long long)result->unsent);
    }
}

ew_err ew__bench_json(const ew__bench_plan *plan, const ew__bench_result *result, ew__text *out) {
    (void)ew__cli_format(out, "{\"target\":%Q,\"action\":%Q", plan->calling.words[0], plan->calling.words[1]);
    (void)ew__text_printf(out, ",\"loop\":\"%s\",\"connections\":%u,\"depth\":%u,\"in_flight\":%u,\"threads\":%u",
                          plan->rate > 0 ? "open" : "closed", plan->links, plan->per_link, plan->slots, plan->clients);
    json_open_loop(out, plan, result);
    (void)ew__text_printf(out, ",\"seconds\":%.6f,\"calls\":%llu,\"rps\":%.3f,\"errors\":%llu", result->seconds,
                          (unsigned long long)result->calls, per_second(result, (double)result->calls),
                          (unsigned long long)(result->calls - result->statuses[EW_STATUS_OK]));
    json_counts(out, result);
    json_times(out, "latency_us", result->latency);
    if (result->first_chunk) {
        (void)ew__text_printf(out, ",\"chunks\":%llu,\"chunks_per_second\":%.3f", (unsigned long long)result->chunks,
                              per_second(result, (double)result->chunks));
        json_times(out, "first_chunk_us", result->first_chunk);
    }
    (void)ew__text_printf(
        out, ",\"bytes_in\":%llu,\"bytes_out\":%llu,\"bytes_in_per_second\":%.1f,\"bytes_out_per_second\":%.1f",
        (unsigned long long)result->bytes_in, (unsigned long long)result->bytes_out,
        per_second(result, (double)result->bytes_in), per_second(result, (double)result->bytes_out));
    (void)ew__text_printf(out, ",\"connections_made\":%llu,\"unfinished\":%llu,\"cpu_seconds\":%.6f,\"interrupted\":%s",
                          (unsigned long long)result->connections, (unsigned long long)result->unfinished,
                          result->cpu_seconds, result->signal_number ? "true" : "false");
    if (result->failed_first) {
        (void)ew__cli_format(out, ",\"first_error\":{\"status\":%Q,\"message\":%Q,\"origin\":%Q}",
                             ew_status_name(result->first_status), result->first_message,
                             origin_names[result->first_origin]);
    }
    return ew__text_cstr(out, "}");
}

/* ---- the table ---- */

static void table_times(ew__text *out, const char *name, const ew__hdr *hdr) {
    char text[32];
    if (hdr->n == 0) {
        return;
    }
    (void)ew__text_printf(out, "\n  %-12s %9s", name, "mean");
    for (size_t i = 0; i < N_PARTS; i++) {
        (void)ew__text_printf(out, " %9s", parts[i].name);
    }
    ew__bench_time(text, sizeof text, ew__hdr_mean(hdr));
    (void)ew__text_printf(out, " %9s\n  %-12s %9s", "max", "", text);
    for (size_t i = 0; i < N_PARTS; i++) {
        ew__bench_time(text, sizeof text, (double)ew__hdr_at(hdr, parts[i].part));
        (void)ew__text_printf(out, " %9s", text);
    }
    ew__bench_time(text, sizeof text, (double)hdr->max);
    (void)ew__text_printf(out, " %9s\n", text);
}

static void table_errors(ew__text *out, const ew__bench_result *result) {
    char text[48];
    grouped(text, sizeof text, (double)(result->calls - result->statuses[EW_STATUS_OK]));
    (void)ew__text_printf(out, "  %-12s %13s\n", "errors", text);
    for (unsigned i = 1; i < EW__BENCH_STATUSES; i++) {
        if (result->statuses[i] > 0) {
            grouped(text, sizeof text, (double)result->statuses[i]);
            (void)ew__text_printf(out, "  %-12s %13s  %s\n", "", text, ew_status_name((ew_status)i));
        }
    }
    for (unsigned i = 0; i < EW__BENCH_ORIGINS; i++) {
        if (result->origins[i] > 0) {
            grouped(text, sizeof text, (double)result->origins[i]);
            (void)ew__text_printf(out, "  %-12s %13s  %s\n", "", text, origin_texts[i]);
        }
    }
}

static void table_open_loop(ew__text *out, const ew__bench_plan *plan, const ew__bench_result *result) {
    char text[48];
    if (plan->rate <= 0) {
        return;
    }
    ew__bench_time(text, sizeof text, (double)result->late_max);
    (void)ew__text_printf(out, "  %-12s %13llu  begun over 1 ms after their time; the latest by %s\n", "late",
                          (unsigned long long)result->late, text);
    if (result->unsent > 0) {
        (void)ew__text_printf(out, "  %-12s %13llu  not begun: every connection was busy\n", "unsent",
                              (unsigned long long)result->unsent);
    }
}

static void table_head(ew__text *out, const ew__bench_plan *plan, const ew__bench_result *result) {
    (void)ew__text_printf(out, "%s %s: %u %s, %u %s at a time, ", plan->calling.words[0], plan->calling.words[1],
                          plan->links, plan->links == 1 ? "connection" : "connections", plan->slots,
                          plan->slots == 1 ? "call" : "calls");
    if (plan->rate > 0) {
        (void)ew__text_printf(out, "%g calls/s asked for, ", plan->rate);
    }
    if (plan->clients > 1) {
        (void)ew__text_printf(out, "%u threads, ", plan->clients);
    }
    (void)ew__text_printf(out, "%.1f s%s\n\n", result->seconds, result->signal_number ? ", interrupted" : "");
}

ew_err ew__bench_table(const ew__bench_plan *plan, const ew__bench_result *result, ew__text *out) {
    char number[48], rate[48], in[32], sent[32];
    table_head(out, plan, result);
    grouped(number, sizeof number, (double)result->calls);
    grouped(rate, sizeof rate, per_second(result, (double)result->calls));
    (void)ew__text_printf(out, "  %-12s %13s  %s/s\n", "calls", number, rate);
    if (result->first_chunk) {
        grouped(number, sizeof number, (double)result->chunks);
        grouped(rate, sizeof rate, per_second(result, (double)result->chunks));
        (void)ew__text_printf(out, "  %-12s %13s  %s/s\n", "chunks", number, rate);
    }
    table_errors(out, result);
    table_open_loop(out, plan, result);
    if (result->unfinished > 0) {
        (void)ew__text_printf(out, "  %-12s %13llu  still under way at the end, and given up\n", "unfinished",
                              (unsigned long long)result->unfinished);
    }
    speed(in, sizeof in, per_second(result, (double)result->bytes_in));
    speed(sent, sizeof sent, per_second(result, (double)result->bytes_out));
    (void)ew__text_printf(out, "  %-12s %13s  in, %s out\n", "bytes", in, sent);
    table_times(out, "latency", result->latency);
    if (result->first_chunk) {
        table_times(out, "first chunk", result->first_chunk);
    }
    return ew__text_cstr(out, "");
}
