/*
 * tests/unit/jobs_service/jobs_support.h: what the tests of jobs share: a store in a folder of its own, and short words for
 * enqueueing and looking.
 */
#ifndef EW_TESTS_JOBS_SUPPORT_H
#define EW_TESTS_JOBS_SUPPORT_H

#include "support/json_or.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <everywire/everywire.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WAIT_MS 30000

/* A store that is there for one test. */
typedef struct place {
    char folder[64];
    char store[128]; /* "sqlite:FOLDER/jobs.db" */
} place;

static inline void place_open(place *p) {
    (void)snprintf(p->folder, sizeof p->folder, "/tmp/ew-jobs-XXXXXX");
    assert_non_null(mkdtemp(p->folder));
    (void)snprintf(p->store, sizeof p->store, "sqlite:%s/jobs.db", p->folder);
}

static inline void place_close(place *p) {
    static const char *const files[] = {"jobs.db", "jobs.db-wal", "jobs.db-shm", "jobs.db-journal"};
    char path[160];
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        (void)snprintf(path, sizeof path, "%s/%s", p->folder, files[i]);
        (void)unlink(path);
    }
    (void)rmdir(p->folder);
}

static inline ew_jobs *open_jobs(const place *p, const ew_jobs_options *options) {
    ew_jobs *jobs = NULL;
    char problem[200] = "";
    ew_err err = ew_jobs_open(p->store, options, &jobs, problem, sizeof problem);
    if (err != EW_OK)
        fail_msg("%s: %s", p->store, problem);
    return jobs;
}

/* Keeps a copy of the last answer, so that slices of it can be looked at. */
typedef struct said {
    ew_err err;
    char json[8192];
    char problem[256];
} said;

static inline said take(ew_err err, ew_answer *answer) {
    said s = {.err = err};
    ew_str json = ew_answer_json(answer);
    assert_true(json.len < sizeof s.json);
    if (json.len)
        memcpy(s.json, json.ptr, json.len);
    (void)snprintf(s.problem, sizeof s.problem, "%s", ew_answer_problem(answer));
    (void)ew_answer_free(answer);
    return s;
}

static inline said enqueue(ew_jobs *jobs, const ew_job_options *options) {
    ew_answer *answer = NULL;
    ew_err err = ew_jobs_enqueue(jobs, options, &answer);
    return take(err, answer);
}

/* A job that must be taken; its id in `id`. */
static inline void must_enqueue(ew_jobs *jobs, const ew_job_options *options, char id[64]) {
    said s = enqueue(jobs, options);
    if (s.err != EW_OK)
        fail_msg("%s", s.problem);
    ew_str text = json_str_or(ew_str_from(s.json), "/job_id", EW_STR(""));
    (void)snprintf(id, 64, "%.*s", (int)text.len, text.ptr);
}

static inline said show(ew_jobs *jobs, const char *id) {
    ew_answer *answer = NULL;
    ew_err err = ew_jobs_show(jobs, ew_str_from(id), &answer);
    return take(err, answer);
}

static inline said wait_for(ew_jobs *jobs, const char *id) {
    ew_answer *answer = NULL;
    ew_err err = ew_jobs_wait(jobs, ew_str_from(id), WAIT_MS, NULL, NULL, &answer);
    return take(err, answer);
}

static inline void expect_text(const said *s, const char *pointer, const char *text) {
    char found[1024];
    size_t n = 0;
    ew_str value = ew_json_get(ew_str_from(s->json), pointer);
    if (ew_json_string(value, found, sizeof found - 1, &n) != EW_OK)
        fail_msg("no string %s in %s (%s)", pointer, s->json, s->problem);
    found[n] = '\0';
    assert_string_equal(found, text);
}

static inline void expect_json(const said *s, const char *pointer, const char *json) {
    ew_str value = ew_json_get(ew_str_from(s->json), pointer);
    if (!ew_str_eq(value, ew_str_from(json)))
        fail_msg("%s is %.*s, not %s, in %s (%s)", pointer, (int)value.len, value.ptr ? value.ptr : "", json, s->json,
                 s->problem);
}

/* Waits until the job has that status. */
static inline said becomes(ew_jobs *jobs, const char *id, const char *status) {
    for (int i = 0; i < WAIT_MS / 10; i++) {
        said s = show(jobs, id);
        if (ew_str_eq(json_str_or(ew_str_from(s.json), "/status", EW_STR("")), ew_str_from(status)))
            return s;
        (void)usleep(10000);
    }
    said s = show(jobs, id);
    fail_msg("the job does not become %s: %s", status, s.json);
    return s;
}

#endif
