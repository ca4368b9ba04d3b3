/*
 * tests/unit/wire/rrq_world.h: one end of the rrq wire, and a test that is its peer, frame by frame. Texts are written
 * with ' for ".
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EW_TESTS_RRQ_WORLD_H
#define EW_TESTS_RRQ_WORLD_H

#include "support/wire_peer.h"
#include "wire/rrq/rrq.h"

#define CONTEXT "'context':{'job_id':'j','attempt':1,'enqueue_time':'2026-01-01T12:00:00Z','queue_name':'q'}"
#define REQUEST(id, job, function, params)                                                                             \
    "{'type':'request','payload':{'protocol_version':'2','request_id':'" id "','job_id':'" job                         \
    "','function_name':'" function "','params':" params "," CONTEXT "}}"
#define CANCEL(job, rest) "{'type':'cancel','payload':{'protocol_version':'2','job_id':'" job "'" rest "}}"
#define SUCCESS(id, job, result)                                                                                       \
    "{'type':'response','payload':{'job_id':'" job "','request_id':'" id "','status':'success','result':" result "}}"
#define FAILURE(id, job, status, error)                                                                                \
    "{'type':'response','payload':{'job_id':'" job "','request_id':'" id "','status':'" status "','error':{" error "}" \
    "}"                                                                                                                \
    "}"
#define CANCELLED(id, job) FAILURE(id, job, "error", "'message':'Job cancelled','type':'cancelled','code':'CANCELLED'")

/* The frame of a text, to be freed. */
static inline char *frame_of(const char *text, size_t *ret_len) {
    size_t n = strlen(text);
    char *bytes = malloc(n + EW__LENPFX_HEAD);
    assert_non_null(bytes);
    assert_true(ew__lenpfx_head(n, UINT32_MAX, (uint8_t *)bytes));
    for (size_t i = 0; i < n; i++)
        bytes[EW__LENPFX_HEAD + i] = text[i] == '\'' ? '"' : text[i];
    *ret_len = n + EW__LENPFX_HEAD;
    return bytes;
}

static inline void say(rig_pair *pair, const char *text) {
    size_t n;
    char *bytes = frame_of(text, &n);
    rig_say(pair, bytes, n);
    rig_run(pair->rig);
    free(bytes);
}

/* The next frame that came, with ' for ", as it stands; to be freed. It is dropped. */
static inline char *hear_any(rig_pair *pair) {
    rig_end *end = raw_end(pair);
    ew_str body = {NULL, 0};
    size_t size = 0;
    if (ew__lenpfx_read(ew__str(end->got, end->got_len), UINT32_MAX, &body, &size) != EW__LENPFX_FRAME)
        fail_msg("no frame came; %zu bytes wait", end->got_len);
    char *text = malloc(body.len + 1);
    assert_non_null(text);
    for (size_t i = 0; i < body.len; i++)
        text[i] = body.ptr[i] == '"' ? '\'' : body.ptr[i];
    text[body.len] = '\0';
    rig_forget(pair, size);
    return text;
}

static inline void hear(rig_pair *pair, const char *expected) {
    char *text = hear_any(pair);
    assert_string_equal(text, expected);
    free(text);
}

static inline void hear_nothing(rig_pair *pair) { assert_int_equal(raw_end(pair)->got_len, 0); }

static inline bool is_over(rig_pair *pair) { return raw_end(pair)->saw_eof; }

static inline void rrq_init(rig *r, ew_limits limits, rig_split split) {
    rig_init(r, &ew__wire_rrq, &(rig_options){.seed = 1, .limits = limits, .split = split});
}

#endif
