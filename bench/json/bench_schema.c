/*
 * bench/json/bench_schema.c: what checking costs: a call's usual input and chunk, a long list, and patterns that are the
 * death of matchers which go back. bench_schema [ROUNDS]: the best of so many samples, in processor time.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "schema/schema.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void measure(const char *name, const char *schema_text, ew_str json, unsigned times, unsigned rounds) {
    ew__schema *schema = NULL;
    ew__schema_problem problem;
    double best = 0;
    uint64_t steps = 0;
    if (ew__schema_compile(ew_env_default(), ew_str_from(schema_text), EW__DRAFT_2020_12, &problem, &schema) != EW_OK) {
        (void)fprintf(stderr, "%s: %s: %s\n", name, problem.pointer, problem.what);
        exit(1);
    }
    ew_err err = EW_OK;
    for (unsigned r = 0; r < rounds; r++) {
        double start = now();
        for (unsigned i = 0; i < times; i++) {
            err = ew__schema_check_counting(schema, ew_env_default(), json, NULL, &steps);
        }
        double each = (now() - start) / times;
        best = r == 0 || each < best ? each : best;
    }
    (void)printf("%-28s %8zu bytes %12.0f ns %10llu steps  %s\n", name, json.len, best, (unsigned long long)steps,
                 ew_err_name(err));
    ew__schema_free(schema);
}

int main(int argc, char **argv) {
    unsigned rounds = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 5;
    enum { LONG = 64 * 1024 };
    static char text[LONG + 2];
    size_t n = 1;
    rounds = rounds > 0 ? rounds : 1;
    measure("input of a call",
            "{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\",\"maxLength\":80},\"n\":{\"type\":"
            "\"integer\","
            "\"minimum\":0}},\"required\":[\"name\"],\"additionalProperties\":false}",
            EW_STR("{\"name\":\"Ada Lovelace\",\"n\":12}"), 100000, rounds);
    measure("chunk of a stream",
            "{\"type\":\"object\",\"properties\":{\"index\":{\"type\":\"integer\"},\"text\":{\"type\":\"string\"}},"
            "\"required\":[\"index\",\"text\"]}",
            EW_STR("{\"index\":7,\"text\":\"chunk number 7\"}"), 100000, rounds);
    text[0] = '[';
    for (unsigned i = 0; n + 16 < sizeof text; i++) {
        n += (size_t)snprintf(text + n, sizeof text - n, "%s%u", i > 0 ? "," : "", i);
    }
    text[n++] = ']';
    measure("numbers, all different", "{\"items\":{\"type\":\"integer\",\"minimum\":0},\"uniqueItems\":true}",
            ew_str_from(text), 20, rounds);
    memset(text, 'a', sizeof text);
    text[0] = text[LONG + 1] = '"';
    text[LONG] = '!';
    measure("pattern (a+)+$", "{\"pattern\":\"(a+)+$\"}", (ew_str){text, sizeof text}, 20, rounds);
    measure("pattern ^(([a-z])+.)+[A-Z]$", "{\"pattern\":\"^(([a-z])+.)+[A-Z]$\"}", (ew_str){text, sizeof text}, 20,
            rounds);
    return 0;
}
