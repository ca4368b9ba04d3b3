/*
 * cli/completion_live.c: what only a peer or a store can tell while a command line is completed: names of actions, ids of
 * jobs, queues. Half a second at most, no word about a failure, and nothing is started or made: a target that needs a
 * program or listens is not asked, nor a store that is not there yet.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/completion.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LIVE_MS 500
#define JOBS_MAX 50

/* ---- actions ---- */

static bool is_dialled(const char *target) {
    const ew_scheme *scheme = target ? ew_scheme_of(target) : NULL;
    return scheme && (scheme->reach == EW_REACH_TCP || scheme->reach == EW_REACH_UNIX) && target[strlen(scheme->text)];
}

/* What stands behind the type of a key: "greet" of "/flow/greet". */
static const char *name_of(const char *key) {
    const char *slash = key[0] == '/' ? strchr(key + 1, '/') : NULL;
    return slash ? slash + 1 : key;
}

static void offer_action(ew__completing *c, const ew_json_iter *it, ew__text *scratch) {
    scratch->len = 0;
    if (ew__cli_plain(scratch, it->key) != EW_OK || ew__text_add(scratch, EW_STR("\0")) != EW_OK) {
        return;
    }
    size_t key_len = scratch->len;
    if (ew__cli_plain(scratch, ew_json_member(it->value, EW_STR("description"))) == EW_OK &&
        ew__text_add(scratch, EW_STR("\0")) == EW_OK) {
        /* names are shorter to type; keys for those who begin with a slash */
        ew__offer(c, c->word[0] == '/' ? scratch->ptr : name_of(scratch->ptr), scratch->ptr + key_len);
    }
}

void ew__offer_actions(ew__completing *c) {
    ew_client *client = NULL;
    ew_request *request = NULL;
    ew_client_options with = {.limits = {.connect_ms = LIVE_MS}};
    ew_end end;
    if (!is_dialled(c->operands[0]) || ew_client_new(c->operands[0], &with, &client, NULL) != EW_OK) {
        return;
    }
    if (ew_client_list(client, &(ew_request_options){.timeout_ms = LIVE_MS}, &request) == EW_OK &&
        ew_request_wait(request, (uint64_t)2 * LIVE_MS, &end) == EW_OK && end.status == EW_STATUS_OK) {
        ew_json_iter it = {.offset_ = 0};
        ew__text scratch = {0};
        while (ew_json_next(end.result, &it)) {
            offer_action(c, &it, &scratch);
        }
        ew__text_free(&scratch);
    }
    (void)ew_request_free(request);
    (void)ew_client_free(client);
}

/* ---- jobs ---- */

/* The file of a store of SQLite that is there; others are not opened for a Tab. */
static ew_jobs *open_store(const ew__completing *c) {
    char path[1024], problem[256];
    const char *store = c->store ? c->store : getenv("EVERYWIRE_STORE");
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    ew_jobs *jobs = NULL;
    if (store && strncmp(store, "sqlite:", 7) != 0) {
        return NULL;
    }
    if (store) {
        (void)snprintf(path, sizeof path, "%s", store + 7);
    } else {
        bool own = state && *state;
        (void)snprintf(path, sizeof path, "%s%s/everywire/jobs.db",
                       own    ? state
                       : home ? home
                              : "",
                       own ? "" : "/.local/state");
    }
    if (access(path, R_OK | W_OK) != 0 || ew_jobs_open_usual(store, NULL, &jobs, problem, sizeof problem) != EW_OK) {
        return NULL;
    }
    return jobs;
}

/* A member of each object of an array, and another one that describes it. */
static void offer_members(ew__completing *c, ew_str array, const char *value, const char *description) {
    ew__text scratch = {0};
    ew_json_iter it = {.offset_ = 0};
    while (ew_json_next(array, &it)) {
        scratch.len = 0;
        if (ew__cli_plain(&scratch, ew_json_get(it.value, value)) != EW_OK ||
            ew__text_add(&scratch, EW_STR("\0")) != EW_OK) {
            break;
        }
        size_t len = scratch.len;
        if (ew__cell_text(&scratch, ew_json_get(it.value, description), "") != EW_OK ||
            ew__text_add(&scratch, EW_STR("\0")) != EW_OK) {
            break;
        }
        ew__offer(c, scratch.ptr, scratch.ptr + len);
    }
    ew__text_free(&scratch);
}

void ew__offer_jobs(ew__completing *c) {
    ew_jobs *jobs = open_store(c);
    ew_answer *answer = NULL;
    if (jobs && ew_jobs_list(jobs, &(ew_jobs_filter){.limit = JOBS_MAX}, &answer) == EW_OK) {
        offer_members(c, ew_json_get(ew_answer_json(answer), "/jobs"), "/id", "/function_name");
    }
    (void)ew_answer_free(answer);
    (void)ew_jobs_free(jobs);
}

void ew__offer_queues(ew__completing *c) {
    ew_jobs *jobs = open_store(c);
    ew_answer *answer = NULL;
    if (jobs && ew_jobs_queues(jobs, false, 0, &answer) == EW_OK) {
        offer_members(c, ew_json_get(ew_answer_json(answer), "/queues"), "/name", "/pending");
    }
    (void)ew_answer_free(answer);
    (void)ew_jobs_free(jobs);
}
