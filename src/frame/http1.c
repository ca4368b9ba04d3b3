/*
 * frame/http1.c: the HTTP/1 reader. Finds the end of a head line by line (each line past the guard as it ends), lets
 * llhttp take the whole head apart, checks that both understood the same, then hands a chunked body to llhttp in pieces
 * that never reach past the message. So llhttp is never paused inside a piece: one piece gives one event. Small chunks
 * that are all there, and bodies of a given length, are taken without it. No socket, no clock, no JSON.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "frame/http1.h"

#include "base/mem.h"
#include "base/util.h"
#include "frame/http1_state.h"

/*
 * Bytes copied at once while the end of a head that came in pieces is looked for: what lies behind the head is not ours
 * to copy.
 */
#define HEAD_PIECE ((size_t)512)

/* ---- llhttp's callbacks ---- */

static ew__http1 *reader_of(llhttp_t *parser) { return ew__container_of(parser, ew__http1, parser); }

static int on_url(llhttp_t *parser, const char *at, size_t n) {
    reader_of(parser)->head.target = ew__str(at, n);
    return 0;
}

static int on_field(llhttp_t *parser, const char *at, size_t n) {
    ew__http1 *http = reader_of(parser);
    if (http->head.n_fields < EW__HTTP_FIELDS_MAX) {
        http->scratch->fields[http->head.n_fields].name = ew__str(at, n);
    }
    return 0;
}

static int on_value(llhttp_t *parser, const char *at, size_t n) {
    ew__http1 *http = reader_of(parser);
    if (http->head.n_fields < EW__HTTP_FIELDS_MAX) {
        http->scratch->fields[http->head.n_fields++].value = ew__str_trim(ew__str(at, n));
    }
    return 0;
}

static bool bodyless(int status) { return status < 200 || status == 204 || status == 304; }

/* 1 tells llhttp that no body follows, whatever the fields say. */
static int on_headers_complete(llhttp_t *parser) {
    ew__http1 *http = reader_of(parser);
    ew__http_head *head = &http->head;
    http->head_done = true;
    head->minor = parser->http_minor;
    head->chunked = (parser->flags & F_CHUNKED) != 0;
    head->has_length = (parser->flags & F_CONTENT_LENGTH) != 0;
    head->length = head->has_length ? parser->content_length : 0;
    head->keep_alive = llhttp_should_keep_alive(parser) && !http->guard.close;
    if (http->guard.request) {
        head->upgrade = http->guard.upgrade_option && http->guard.upgrade_field;
        return 0;
    }
    head->status = parser->status_code;
    return http->skip_body || bodyless(head->status) ? 1 : 0;
}

static int on_body(llhttp_t *parser, const char *at, size_t n) {
    reader_of(parser)->body = ew__str(at, n);
    return 0;
}

/* Pausing keeps llhttp from drawing conclusions about what comes after the message: that is decided here. */
static int on_message_complete(llhttp_t *parser) {
    reader_of(parser)->message_done = true;
    return HPE_PAUSED;
}

static const llhttp_settings_t settings = {
    .on_url = on_url,
    .on_header_field = on_field,
    .on_header_value = on_value,
    .on_headers_complete = on_headers_complete,
    .on_body = on_body,
    .on_message_complete = on_message_complete,
};

/* ---- steps ---- */

/* What a step tells ew__http1_next: an event to hand out, or to look again at the state. */
enum { AGAIN = -1 };

static int fail(ew__http1 *http, int status, const char *why) {
    http->state = FAILED;
    http->error_status = (uint16_t)status;
    http->guard.why = why;
    http->in_len = 0;
    return EW__HTTP_ERROR;
}

static void consume(ew__http1 *http, size_t n) {
    http->in += n;
    http->in_len -= n;
}

static int cut_short(ew__http1 *http) {
    return http->eof ? fail(http, 400, "the connection ended inside a message") : EW__HTTP_MORE;
}

/* Gives llhttp bytes that lie wholly inside the message. */
static bool parse(ew__http1 *http, const char *bytes, size_t n) {
    llhttp_errno_t err = llhttp_execute(&http->parser, bytes, n);
    return err == HPE_OK || (err == HPE_PAUSED && http->message_done);
}

static int parse_failed(ew__http1 *http) {
    bool method = llhttp_get_errno(&http->parser) == HPE_INVALID_METHOD;
    const char *why = llhttp_get_error_reason(&http->parser);
    return fail(http, method ? 501 : 400, why != NULL ? why : "malformed message");
}

static void forget_head(ew__http1 *http) {
    if (http->kept != NULL) {
        ew__free(http->part.env, http->kept, http->kept_size);
        http->kept = NULL;
    }
    if (http->part.cap > 0) {
        ew__buf_done(&http->part);
    }
}

static void begin_message(ew__http1 *http) {
    bool request = http->guard.request;
    forget_head(http);
    http->guard = (ew__http_guard){.request = request};
    http->head = (ew__http_head){.fields = http->scratch->fields};
    http->head_at = NULL;
    http->line = http->seen = 0;
    http->lead = LEAD_NONE;
    http->head_done = http->message_done = false;
    http->state = START;
}

/* ---- the head ---- */

enum { SCAN_MORE, SCAN_DONE, SCAN_FAILED };

static int scan_failed(ew__http1 *http, int status, const char *why) {
    fail(http, status, why);
    return SCAN_FAILED;
}

/* The most bytes the head may have come to before the line that is being scanned has ended. */
static size_t line_limit(const ew__http1 *http) {
    size_t target = (size_t)http->limits->target_bytes + EW__GUARD_LINE_SLACK;
    size_t head = http->limits->head_bytes;
    return http->guard.request && http->line == 0 && target < head ? target : head;
}

/* A CR that stands before `end` and is followed by anything but LF. The byte at `end` must be readable. */
static bool has_bare_cr(const char *bytes, size_t from, size_t end) {
    while (from < end) {
        const char *cr = memchr(bytes + from, '\r', end - from);
        if (cr == NULL) {
            return false;
        }
        if (cr[1] != '\n') {
            return true;
        }
        from = (size_t)(cr - bytes) + 1;
    }
    return false;
}

/*
 * A line grew beyond `limit`. Had its bytes come one by one, some faults would have shown before that: they come first
 * here too, so that the answer does not depend on how the bytes were cut.
 */
static int scan_too_long(ew__http1 *http, const char *head, size_t limit) {
    if (has_bare_cr(head, http->line, limit)) {
        return scan_failed(http, 400, "CR without LF in the head");
    }
    if (http->line > 0) {
        bool begins = http->line >= limit || ew__http_guard_field_begins(head[http->line]);
        return begins ? scan_failed(http, 431, "header fields too large")
                      : scan_failed(http, 400, "bad header field name");
    }
    if (!http->guard.request || limit == http->limits->head_bytes) {
        return scan_failed(http, 431, "header fields too large");
    }
    return memchr(head, ' ', EW__GUARD_METHOD_MAX + 1) != NULL ? scan_failed(http, 414, "request target too long")
                                                               : scan_failed(http, 400, "bad method");
}

/* No LF in the bytes from `from` on: refuses what no later byte could mend. */
static int scan_part(ew__http1 *http, const char *head, size_t from, size_t n) {
    size_t limit = line_limit(http);
    if (n > limit) {
        return scan_too_long(http, head, limit);
    }
    if (n > http->line) {
        if (http->line > 0 && !ew__http_guard_field_begins(head[http->line])) {
            return scan_failed(http, 400, "bad header field name");
        }
        if (has_bare_cr(head, from > http->line ? from - 1 : from, n - 1)) {
            return scan_failed(http, 400, "CR without LF in the head");
        }
    }
    http->seen = (uint32_t)n;
    return SCAN_MORE;
}

/* Looks for the end of the head in its first n bytes, of which `seen` were scanned before. */
static int scan(ew__http1 *http, const char *head, size_t n, size_t *ret_len) {
    for (;;) {
        const char *lf = memchr(head + http->seen, '\n', n - http->seen);
        if (lf == NULL) {
            return scan_part(http, head, http->seen, n);
        }
        size_t end = (size_t)(lf - head), limit = line_limit(http);
        if (EW__UNLIKELY(end >= limit)) {
            return scan_too_long(http, head, limit);
        }
        if (end == http->line || head[end - 1] != '\r') {
            return scan_failed(http, 400, "LF without CR in the head");
        }
        size_t len = end - 1 - http->line;
        if (len == 0) {
            *ret_len = end + 1;
            return SCAN_DONE;
        }
        int status = http->line == 0 ? ew__http_guard_first_line(&http->guard, head, len, http->limits)
                                     : ew__http_guard_field_line(&http->guard, head + http->line, len, http->limits);
        if (EW__UNLIKELY(status != 0)) {
            return scan_failed(http, status, http->guard.why);
        }
        http->line = http->seen = (uint32_t)(end + 1);
    }
}

static ew__http_method method_of(const llhttp_t *parser) {
    switch (parser->method) {
    case HTTP_GET:
        return EW__HTTP_GET;
    case HTTP_HEAD:
        return EW__HTTP_HEAD;
    case HTTP_POST:
        return EW__HTTP_POST;
    case HTTP_OPTIONS:
        return EW__HTTP_OPTIONS;
    case HTTP_DELETE:
        return EW__HTTP_DELETE;
    default:
        return EW__HTTP_OTHER;
    }
}

static int body_state(const ew__http1 *http) {
    const ew__http_head *head = &http->head;
    if (!http->guard.request && (http->skip_body || bodyless(head->status))) {
        return ENDING;
    }
    if (head->chunked) {
        return BODY_CHUNKED;
    }
    if (head->has_length || http->guard.request) {
        return head->length > 0 ? BODY_LENGTH : ENDING;
    }
    return BODY_EOF;
}

/* Whether guard and llhttp read the same head. */
static bool agreed(const ew__http1 *http) {
    const ew__http_head *head = &http->head;
    const ew__http_guard *guard = &http->guard;
    return http->head_done && head->n_fields == guard->n_fields && head->minor == guard->minor &&
           head->chunked == guard->chunked && head->has_length == guard->has_length && head->length == guard->length &&
           (guard->request || head->status == guard->status);
}

/* The head is whole: bytes .. bytes + n. */
static int take_head(ew__http1 *http, const char *bytes, size_t n) {
    int status = ew__http_guard_head_end(&http->guard);
    if (status != 0) {
        return fail(http, status, http->guard.why);
    }
    ew__http_head *head = &http->head;
    llhttp_init(&http->parser, http->guard.request ? HTTP_REQUEST : HTTP_RESPONSE, &settings);
    if (!parse(http, bytes, n)) {
        return parse_failed(http);
    }
    http->state = (uint8_t)body_state(http);
    if (!agreed(http) || http->message_done != (http->state == ENDING)) {
        return fail(http, 400, "ambiguous head");
    }
    http->head_at = bytes;
    http->head_len = (uint32_t)n;
    if (http->state == BODY_CHUNKED) {
        ew__http_guard_chunks_begin(&http->guard);
    }
    if (!http->guard.request) {
        if (head->status < 200 && !http->tells_interim) {
            begin_message(http);
            return AGAIN;
        }
        /* A 204 that announces a body: nobody knows what its sender will send. */
        head->keep_alive = head->keep_alive && !(head->status == 204 && (head->chunked || head->length > 0));
        return EW__HTTP_HEAD_DONE;
    }
    head->method = method_of(&http->parser);
    head->expect_continue = http->guard.expect_continue;
    if (head->target.ptr[0] != '/' &&
        !ew__http_guard_authority(head->target, ew__http_head_field(head, EW_STR("host"), NULL))) {
        return fail(http, 400, "the target's host is not the one in Host");
    }
    return EW__HTTP_HEAD_DONE;
}

/* A head of which some bytes were copied before: goes on in small pieces until its end is found. */
static int step_parted_head(ew__http1 *http) {
    while (http->in_len > 0) {
        size_t room = (size_t)http->limits->head_bytes + 1 - http->part.len;
        size_t piece = http->in_len < HEAD_PIECE ? http->in_len : HEAD_PIECE;
        piece = piece < room ? piece : room;
        if (ew__buf_add(&http->part, http->in, piece) != EW_OK) {
            return fail(http, 503, "no memory for the head");
        }
        size_t len = 0, before = http->part.len - piece;
        int found = scan(http, http->part.ptr, http->part.len, &len);
        if (found == SCAN_FAILED) {
            return EW__HTTP_ERROR;
        }
        consume(http, found == SCAN_DONE ? len - before : piece);
        if (found == SCAN_DONE) {
            return take_head(http, http->part.ptr, len);
        }
    }
    return cut_short(http);
}

static int step_head(ew__http1 *http) {
    if (http->part.len > 0) {
        return step_parted_head(http);
    }
    const char *bytes = http->in;
    size_t len = 0;
    switch (scan(http, bytes, http->in_len, &len)) {
    case SCAN_FAILED:
        return EW__HTTP_ERROR;
    case SCAN_DONE: {
        consume(http, len);
        int event = take_head(http, bytes, len);
        if (event == (int)EW__HTTP_HEAD_DONE) {
            ew__http1_remember(http, bytes, len);
        }
        return event;
    }
    default:
        if (ew__buf_add(&http->part, bytes, http->in_len) != EW_OK) {
            return fail(http, 503, "no memory for the head");
        }
        consume(http, http->in_len);
        return cut_short(http);
    }
}

/*
 * One empty line may stand before a message; then comes a byte that can begin one, or the peer speaks something else.
 */
static int step_start(ew__http1 *http) {
    if (http->in_len > 0 && http->lead == LEAD_NONE && !http->skip_body && ew__http1_take_known(http)) {
        return EW__HTTP_HEAD_DONE;
    }
    while (http->in_len > 0) {
        char c = http->in[0];
        if (EW__LIKELY(http->lead != LEAD_CR && ew__http_guard_begins(&http->guard, c))) {
            http->state = HEAD;
            return AGAIN;
        }
        if (c == '\r' && http->lead == LEAD_NONE) {
            http->lead = LEAD_CR;
        } else if (c == '\n' && http->lead == LEAD_CR) {
            http->lead = LEAD_CRLF;
        } else {
            return fail(http, 400, "not an HTTP message");
        }
        consume(http, 1);
    }
    return http->lead == LEAD_CR ? cut_short(http) : EW__HTTP_MORE;
}

/* ---- the body ---- */

/* Guard and llhttp have agreed on the length: what is left is counting. */
static int step_length(ew__http1 *http) {
    if (http->in_len == 0) {
        return cut_short(http);
    }
    uint64_t left = http->guard.length;
    size_t n = left < http->in_len ? (size_t)left : http->in_len;
    http->body = ew__str(http->in, n);
    consume(http, n);
    http->guard.length -= n;
    http->state = http->guard.length == 0 ? ENDING : BODY_LENGTH;
    return EW__HTTP_BODY;
}

/*
 * Streams come in many small chunks, and for most of them the guard alone is enough: one that is all here is taken from
 * between two chunks to between two chunks, so that llhttp need not know of it. It sees every chunk that comes in
 * parts, those with extensions, and the last.
 */
static bool take_whole_chunk(ew__http1 *http) {
    size_t n = ew__http_guard_whole_chunk(&http->guard, http->in, http->in_len, &http->body);
    consume(http, n);
    return n > 0;
}

bool ew__http1_next_chunk(ew__http1 *http, ew_str *ret_body) {
    if (http->state != BODY_CHUNKED || !take_whole_chunk(http)) {
        return false;
    }
    *ret_body = http->body;
    return true;
}

/*
 * What llhttp receives of `n` bytes of a chunked body that the guard has passed. Extensions and trailers change
 * nothing, so llhttp sees a body without them: older releases refuse a chunk with more than one extension. extension,
 * trailer: whether the bytes began inside one.
 */
static ew_str without_extras(const ew__http1 *http, const char *bytes, size_t n, bool extension, bool trailer) {
    bool inside = ew__http_guard_in_extension(&http->guard);
    if (trailer)
        return ew__http_guard_chunks_over(&http->guard) ? EW_STR("\r\n") : EW_STR("");
    if (extension)
        return inside ? EW_STR("") : EW_STR("\r");
    return ew__str(bytes, inside ? n - 1 : n); /* without the ';' */
}

static int step_chunked(ew__http1 *http) {
    while (http->in_len > 0) {
        size_t n;
        if (EW__LIKELY(take_whole_chunk(http))) {
            return EW__HTTP_BODY;
        }
        const char *bytes = http->in;
        bool extension = ew__http_guard_in_extension(&http->guard), trailer = ew__http_guard_in_trailer(&http->guard);
        /* behind data only the end of its line: what follows may be a whole chunk */
        size_t most = ew__http_guard_behind_data(&http->guard) && http->in_len > 2 ? 2 : http->in_len;
        int status = ew__http_guard_chunks(&http->guard, bytes, most, http->limits, &n);
        if (status != 0) {
            return fail(http, status, http->guard.why);
        }
        http->body = ew__str(NULL, 0);
        consume(http, n);
        ew_str seen = without_extras(http, bytes, n, extension, trailer);
        if (!parse(http, seen.ptr, seen.len) || http->message_done != ew__http_guard_chunks_over(&http->guard)) {
            return parse_failed(http);
        }
        if (http->message_done) {
            http->state = ENDING;
            return AGAIN;
        }
        if (http->body.len > 0) {
            return EW__HTTP_BODY;
        }
    }
    return cut_short(http);
}

static int step_eof_body(ew__http1 *http) {
    if (http->in_len == 0) {
        http->state = http->eof ? ENDING : BODY_EOF;
        return http->eof ? AGAIN : (int)EW__HTTP_MORE;
    }
    size_t n = http->in_len;
    const char *bytes = http->in;
    http->body = ew__str(NULL, 0);
    consume(http, n);
    return parse(http, bytes, n) && http->body.len == n ? (int)EW__HTTP_BODY : parse_failed(http);
}

static int step_ending(ew__http1 *http) {
    http->state = ENDED;
    http->skip_body = false;
    return EW__HTTP_END;
}

static int step_ended(ew__http1 *http) {
    bool more = http->head.keep_alive;
    begin_message(http);
    http->state = more ? START : CLOSED;
    return AGAIN;
}

/* ---- the outside ---- */

size_t ew__http1_size(void) { return sizeof(ew__http1); }

void ew__http1_init(ew__http1 *http, const ew_env *env, const ew__http1_limits *limits, bool request,
                    ew__http1_scratch *scratch) {
    *http = (ew__http1){.limits = limits, .scratch = scratch};
    /* One byte more than a head may have: it is what shows that the limit was passed. */
    ew__buf_init(&http->part, env, (size_t)limits->head_bytes + 1);
    http->guard.request = request;
    begin_message(http);
}

void ew__http1_done(ew__http1 *http) { forget_head(http); }

void ew__http1_forget(ew__http1 *http) {
    http->in = NULL;
    http->in_len = 0;
}

void ew__http1_expect_no_body(ew__http1 *http) { http->skip_body = true; }

ew_err ew__http1_feed(ew__http1 *http, const void *bytes, size_t n) {
    if (http->in_len > 0) {
        return EW_EINVAL;
    }
    if (http->state != FAILED && http->state != CLOSED) {
        http->in = bytes;
        http->in_len = n;
    }
    return EW_OK;
}

void ew__http1_feed_eof(ew__http1 *http) { http->eof = true; }

ew__http_event ew__http1_next(ew__http1 *http) {
    static int (*const steps[])(ew__http1 *) = {
        [START] = step_start,       [HEAD] = step_head,     [BODY_LENGTH] = step_length, [BODY_CHUNKED] = step_chunked,
        [BODY_EOF] = step_eof_body, [ENDING] = step_ending, [ENDED] = step_ended,
    };
    for (;;) {
        if (EW__UNLIKELY(http->state >= CLOSED)) {
            http->in_len = 0;
            return http->state == CLOSED ? EW__HTTP_MORE : EW__HTTP_ERROR;
        }
        int event = steps[http->state](http);
        if (event != AGAIN) {
            return (ew__http_event)event;
        }
    }
}

const ew__http_head *ew__http1_head(const ew__http1 *http) { return &http->head; }

ew_err ew__http1_keep_head(ew__http1 *http) {
    ew__http_head *head = &http->head;
    if (http->kept != NULL || http->head_at == NULL) {
        return EW_OK;
    }
    size_t table = head->n_fields * sizeof(ew__http_field);
    char *block = ew__alloc(http->part.env, table + http->head_len);
    if (block == NULL) {
        return EW_ENOMEM;
    }
    ew__http_field *fields = (ew__http_field *)(void *)block;
    char *bytes = block + table;
    memcpy(bytes, http->head_at, http->head_len);
    for (uint32_t i = 0; i < head->n_fields; i++) {
        const ew__http_field *from = &head->fields[i];
        fields[i].name = ew__str(bytes + (from->name.ptr - http->head_at), from->name.len);
        fields[i].value = ew__str(bytes + (from->value.ptr - http->head_at), from->value.len);
    }
    if (head->target.ptr != NULL) {
        head->target.ptr = bytes + (head->target.ptr - http->head_at);
    }
    head->fields = fields;
    http->head_at = bytes;
    http->kept = block;
    http->kept_size = table + http->head_len;
    return EW_OK;
}

ew_str ew__http1_body(const ew__http1 *http) { return http->body; }

int ew__http1_error_status(const ew__http1 *http) {
    return http->state == FAILED && http->guard.request ? http->error_status : 0;
}

bool ew__http1_is_http2(const ew__http1 *http) { return http->state == FAILED && http->guard.http2; }

const char *ew__http1_error_text(const ew__http1 *http) { return http->state == FAILED ? http->guard.why : ""; }

size_t ew__http1_unread(const ew__http1 *http) { return http->in_len; }

bool ew__http1_idle(const ew__http1 *http) {
    bool between = (http->state == START && http->lead != LEAD_CR) || (http->state == ENDED && http->head.keep_alive);
    return between && http->in_len == 0;
}
