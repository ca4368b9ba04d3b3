/*
 * tests/transcripts/test_transcripts.c: replays the files of this folder. README.md describes them.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "store/blobs/blobs.h"
#include "support/rig.h"
#include "support/ws_peer.h"
#include "transcripts/back.h"
#include "transcripts/lengths.h"
#include "transcripts/watched.h"
#include "wire/stepflow/blob_id.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

typedef struct text {
    char bytes[64 * 1024];
    size_t len;
} text;

/* A call of the file's own side, and what of it was looked at. */
typedef struct told {
    rig_call *rc;
    size_t n_told; /* chunks */
    bool end_told;
} told;

typedef struct player {
    const char *file;
    unsigned line;
    rig r;
    rig_options options;
    const ew__wire *wire;
    int raw;             /* whose part the file plays */
    rig_pair *pairs[30]; /* the connections that were made, from 1 */
    rig_pair *pair;      /* the one that is spoken of now */
    unsigned on;         /* ... and its number */
    told calls[10], *call;
    size_t n_calls;
    uint64_t timeout_ms, hops;        /* of the next calls */
    char context[1000], labels[1000]; /* likewise */
    char lets[26][1000];              /* what {A} to {Z} stand for */
    text say, expect;
    bool lines;          /* a wire of lines: they end with LF */
    bool frames;         /* a wire of WebSocket frames: a line is one of them */
    bool lengths;        /* a wire of lengths with JSON behind them: a line is one such message */
    bool fragment;       /* ... and the last one that was said goes on */
    bool stdio;          /* the wire's end is a process at the other end of pipes */
    char telemetry[200]; /* the server that a manager tells its runtimes of */
    ew__blobs *blobs;    /* what a server may ask its runtime for */
    char ids[10][64];    /* what {1} to {9} stand for; empty: not yet seen */
} player;

/* ---- texts ---- */

static int hex_digit(char c) { return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1; }

/* The byte that an escape stands for; *at is moved to its last character. */
static char unescape(const player *p, const char **at) {
    switch (*++*at) {
    case 'r':
        return '\r';
    case 'n':
        return '\n';
    case 't':
        return '\t';
    case '\\':
        return '\\';
    case 'x':
        if (hex_digit((*at)[1]) >= 0 && hex_digit((*at)[2]) >= 0) {
            *at += 2;
            return (char)(hex_digit((*at)[-1]) * 16 + hex_digit((*at)[0]));
        }
        break;
    default:
        break;
    }
    fail_msg("%s:%u: bad escape", p->file, p->line);
    return 0;
}

/* The number of the id that stands here as {1} to {9}; 0: none does. */
static int id_at(const char *pattern, size_t n) {
    return n >= 3 && pattern[0] == '{' && pattern[2] == '}' && pattern[1] >= '1' && pattern[1] <= '9' ? pattern[1] - '0'
                                                                                                      : 0;
}

/* The text that stands here as {A} to {Z}, NULL: none does. */
static const char *let_at(const player *p, const char *line) {
    return line[0] == '{' && line[1] >= 'A' && line[1] <= 'Z' && line[2] == '}' ? p->lets[line[1] - 'A'] : NULL;
}

static void add_text(text *t, const char *bytes) {
    size_t n = strlen(bytes);
    assert_true(t->len + n + 2 < sizeof t->bytes);
    memcpy(t->bytes + t->len, bytes, n);
    t->len += n;
}

/* ours: the file itself says it, with the ids that it has seen. */
static void add_bytes(const player *p, text *t, const char *line, bool end, bool ours) {
    for (; *line; line++) {
        int id = ours ? id_at(line, strlen(line)) : 0;
        const char *let = let_at(p, line);
        assert_true(t->len + 3 < sizeof t->bytes);
        if (id || let) {
            add_text(t, id ? p->ids[id] : let);
            line += 2;
        } else {
            t->bytes[t->len++] = *line == '\\' ? unescape(p, &line) : *line;
        }
    }
    if (end && !p->lines && !p->frames && !p->lengths)
        t->bytes[t->len++] = '\r';
    if (end)
        t->bytes[t->len++] = '\n';
}

/* ---- frames: who calls is the manager, whose frames are plain; the runtime has dialled, and masks its own ---- */

static const struct {
    const char *name;
    int opcode;
} kinds[] = {{"ping", WS_PING}, {"pong", WS_PONG}, {"binary", WS_BINARY}, {"close", WS_CLOSE}};

/* The kind of frame that a line names behind its arrow, if it names one; *rest is what follows. */
static int frame_kind(const char *line, const char **rest) {
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        size_t n = strlen(kinds[i].name);
        if (strncmp(line, kinds[i].name, n) == 0 && (line[n] == ' ' || line[n] == '\0')) {
            *rest = line[n] ? line + n + 1 : "";
            return kinds[i].opcode;
        }
    }
    *rest = *line == ' ' ? line + 1 : line;
    return WS_TEXT;
}

static void say_frame(player *p, const char *line) {
    bool mask = p->raw == RIG_SERVER, part = *line == '|', raw = strncmp(line, "raw ", 4) == 0;
    uint8_t *out = (uint8_t *)p->say.bytes + p->say.len;
    const char *rest = NULL;
    int kind = frame_kind(part ? line + 1 : line, &rest);
    text payload = {.len = 0};
    add_bytes(p, &payload, raw ? line + 4 : rest, false, true);
    assert_true(p->say.len + payload.len + 200 < sizeof p->say.bytes);
    payload.bytes[payload.len] = '\0';
    if (raw) {
        memcpy(out, payload.bytes, payload.len);
        p->say.len += payload.len;
        return;
    }
    if (kind == WS_CLOSE) {
        unsigned code = (unsigned)strtoul(payload.bytes, NULL, 10);
        const char *reason = strchr(payload.bytes, ' ');
        p->say.len += ws_peer_close(out, mask, code, reason ? reason + 1 : "");
        return;
    }
    bool control = kind == WS_PING || kind == WS_PONG;
    int first = (part ? 0 : WS_FIN) | (p->fragment && !control ? WS_PART : kind);
    p->say.len += ws_peer_frame(out, first, mask, payload.bytes, payload.len);
    p->fragment = control ? p->fragment : part;
}

/* As ws_peer_lines writes them. */
static void expect_frame(const player *p, text *t, const char *line) {
    const char *rest = NULL;
    int kind = frame_kind(line, &rest);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (kinds[i].opcode == kind)
            t->len += (size_t)snprintf(t->bytes + t->len, 20, "(%s)%s", kinds[i].name, *rest ? " " : "");
    add_bytes(p, t, rest, true, false);
}

/* ---- messages behind their length; made and read without src/frame, so that both cannot be wrong in the same way ---- */

static void say_message(player *p, const char *line) {
    bool raw = strncmp(line, "raw ", 4) == 0;
    size_t head = raw ? 0 : 4, begin = p->say.len;
    assert_true(begin + head < sizeof p->say.bytes);
    p->say.len += head;
    add_bytes(p, &p->say, raw ? line + 4 : *line == ' ' ? line + 1 : line, false, true);
    size_t n = p->say.len - begin - head;
    for (size_t i = 0; i < head; i++)
        p->say.bytes[begin + i] = (char)(n >> (24 - 8 * i) & 0xff);
}

/* Whether what follows is the id: the one that was seen, or now for the first time. Returns its length. */
static size_t match_id(char id[64], const char *bytes, size_t n) {
    size_t len = 0;
    while (len < n && len < 63 && bytes[len] != '"' && bytes[len] != '\n')
        len++;
    if (id[0] && (strlen(id) != len || memcmp(id, bytes, len) != 0))
        return 0;
    memcpy(id, bytes, len);
    return len;
}

/* Whether the bytes are what the pattern says; {*} is anything within a line, {1} a text without quotes. */
static bool matches(player *p, const char *pattern, size_t n_pattern, const char *bytes, size_t n) {
    while (n_pattern > 0) {
        if (n_pattern >= 3 && memcmp(pattern, "{*}", 3) == 0) {
            for (size_t skip_n = 0;; skip_n++) {
                if (matches(p, pattern + 3, n_pattern - 3, bytes + skip_n, n - skip_n))
                    return true;
                if (skip_n == n || bytes[skip_n] == '\r' || bytes[skip_n] == '\n')
                    return false;
            }
        }
        int id = id_at(pattern, n_pattern);
        if (id) {
            size_t len = match_id(p->ids[id], bytes, n);
            if (len == 0)
                return false;
            pattern += 3, n_pattern -= 3, bytes += len, n -= len;
            continue;
        }
        if (n == 0 || *pattern != *bytes)
            return false;
        pattern++, n_pattern--, bytes++, n--;
    }
    return n == 0;
}

/* ---- acting ---- */

static char told_telemetry[200];
static void on_telemetry(ew__site *site, ew_str url) {
    (void)site;
    (void)snprintf(told_telemetry, sizeof told_telemetry, "%.*s", (int)url.len, url.ptr);
}

/* The peer begins again, now knowing what its connection is. */
static void be_stdio(rig_end *end) {
    ew__peer *peer = end->peer, kept = *peer;
    size_t size = kept.role == EW__SERVE ? kept.wire->serve_size : kept.wire->call_size;
    end->conn.stdio = true;
    kept.wire->gone(peer, EW_OK);
    memset(peer, 0, size);
    *peer = kept;
    assert_int_equal(kept.wire->init(peer), EW_OK);
}

static void start(player *p) {
    if (p->pair)
        return;
    if (!p->wire)
        fail_msg("%s:%u: no wire yet", p->file, p->line);
    if (!p->on) {
        rig_init(&p->r, p->wire, &p->options);
        p->r.watch = watched_bytes;
        told_telemetry[0] = '\0';
        p->r.side[RIG_SERVER].site.on_telemetry = on_telemetry;
        p->r.side[RIG_CLIENT].site.telemetry = ew_str_from(p->telemetry);
        p->r.side[RIG_CLIENT].site.blobs = p->blobs;
        p->on = 1;
    }
    p->pair = p->pairs[p->on] = rig_connect_raw(&p->r, p->raw);
    if (p->stdio)
        be_stdio(&p->pair->end[1 - p->raw]);
}

static void say_it(player *p) {
    start(p);
    rig_say(p->pair, p->say.bytes, p->say.len);
    p->say.len = 0;
    rig_run(&p->r);
}

/* Everything that came since the last time is what was expected. */
static void compare(player *p) {
    start(p);
    rig_run(&p->r);
    rig_end *end = &p->pair->end[p->raw];
    size_t n = end->got_len;
    char *lines = p->frames    ? ws_peer_lines(end->got, end->got_len, p->raw == RIG_CLIENT, &n)
                  : p->lengths ? message_lines(end->got, end->got_len, &n)
                               : NULL;
    const char *got = lines ? lines : end->got ? end->got : "";
    if (!matches(p, p->expect.bytes, p->expect.len, got, n))
        fail_msg("%s:%u: expected\n%.*s\ngot\n%.*s", p->file, p->line, (int)p->expect.len, p->expect.bytes, (int)n,
                 got);
    free(lines);
    if (end->got_len)
        rig_forget(p->pair, end->got_len);
    p->expect.len = 0;
}

/* A line of bytes: "> text", ">| text", ">." */
static void bytes_line(player *p, const char *line) {
    bool from_client = line[0] == '>', ours = from_client == (p->raw == RIG_CLIENT);
    if (ours && p->expect.len)
        compare(p);
    if (!ours && p->say.len)
        say_it(p);
    if (line[1] == '.') {
        if (ours) {
            say_it(p);
            rig_say_eof(p->pair);
            rig_run(&p->r);
            return;
        }
        compare(p);
        if (!p->pair->end[p->raw].saw_eof)
            fail_msg("%s:%u: the connection is still open", p->file, p->line);
        return;
    }
    if ((p->frames || p->lengths) && ours) {
        (p->frames ? say_frame : say_message)(p, line + 1);
        return;
    }
    if (p->frames) {
        expect_frame(p, &p->expect, line + 1);
        return;
    }
    bool bare = line[1] == '|';
    const char *rest = line + (bare ? 2 : 1);
    add_bytes(p, ours ? &p->say : &p->expect, *rest == ' ' ? rest + 1 : rest, !bare, ours);
}

static void open_line(player *p, const char *line, bool stream, bool input_stream) {
    static char keys[10][200], inputs[10][1000]; /* a call may leave later */
    size_t n = strcspn(line, " ");
    assert_true(p->n_calls < sizeof p->calls / sizeof *p->calls);
    char *key = keys[p->n_calls], *input = inputs[p->n_calls];
    (void)snprintf(key, sizeof keys[0], "%.*s", (int)n, line);
    (void)snprintf(input, sizeof inputs[0], "%s", line[n] ? line + n + 1 : "");
    start(p);
    p->call = &p->calls[p->n_calls++];
    p->call->rc = rig_open(p->pair, &(rig_request){.key = key,
                                                   .input = ew_str_from(input),
                                                   .context = p->context[0] ? p->context : NULL,
                                                   .labels = p->labels[0] ? p->labels : NULL,
                                                   .timeout_ms = p->timeout_ms,
                                                   .hops = (uint8_t)p->hops,
                                                   .stream = stream,
                                                   .input_stream = input_stream,
                                                   .list = strcmp(key, "(list)") == 0});
    rig_run(&p->r);
}

static void check_told(player *p, const char *expected) {
    char got[2000];
    told *call = p->call;
    const rig_call *rc = call->rc;
    if (strncmp(expected, "details ", 8) == 0) {
        (void)snprintf(got, sizeof got, "details %s", rc->details ? rc->details : "(none)");
    } else if (strncmp(expected, "retry ", 6) == 0) {
        (void)snprintf(got, sizeof got, "retry %s%llu", rc->retryable ? "" : "no ",
                       (unsigned long long)rc->retry_after_ms);
    } else if (call->n_told < rc->n_chunks) {
        (void)snprintf(got, sizeof got, "chunk %s", rc->chunks[call->n_told++]);
    } else if (rc->ended && !call->end_told && rc->status == EW_STATUS_OK) {
        (void)snprintf(got, sizeof got, "done %s", rc->result);
        call->end_told = true;
    } else if (rc->ended && !call->end_told) {
        (void)snprintf(got, sizeof got, "fail %s %s", ew_status_name(rc->status), rc->message);
        call->end_told = true;
    } else {
        (void)snprintf(got, sizeof got, "nothing");
    }
    if (strcmp(got, expected) != 0)
        fail_msg("%s:%u: the caller was told: %s", p->file, p->line, got);
}

static void event_line(player *p, const char *line) {
    char got[300];
    if (p->raw == RIG_SERVER) {
        assert_non_null(p->call);
        check_told(p, line);
        return;
    }
    if (strncmp(line, "opened", 6) == 0)
        (void)snprintf(got, sizeof got, "opened %u", p->r.n_opened);
    else if (strncmp(line, "hops", 4) == 0)
        (void)snprintf(got, sizeof got, "hops %u", p->r.seen_hops);
    else if (strncmp(line, "telemetry", 9) == 0)
        (void)snprintf(got, sizeof got, "telemetry %s", told_telemetry);
    else if (strncmp(line, "back", 4) == 0)
        (void)snprintf(got, sizeof got, "%.299s", last_back.told);
    else
        (void)snprintf(got, sizeof got, "cancelled %u", p->r.n_cancelled);
    if (strcmp(got, line) != 0)
        fail_msg("%s:%u: %s", p->file, p->line, got);
}

static void limit_line(player *p, const char *line) {
    size_t n = strcspn(line, " ");
    uint64_t value = 0;
    assert_true(line[n] == ' ' && ew__u64_parse(ew_str_from(line + n + 1), &value));
#define ONE(member, preset, what)                                                                                      \
    if (strlen(#member) == n && memcmp(line, #member, n) == 0) {                                                       \
        p->options.limits.member = value;                                                                              \
        return;                                                                                                        \
    }
    EW_LIMITS_MAP(ONE)
#undef ONE
    fail_msg("%s:%u: no such limit", p->file, p->line);
}

static bool is(const char *line, const char *word, const char **rest) {
    size_t n = strlen(word);
    if (strncmp(line, word, n) != 0 || (line[n] != ' ' && line[n] != '\0'))
        return false;
    *rest = line[n] ? line + n + 1 : "";
    return true;
}

/* What is said before anything happens. */
static bool setting_line(player *p, const char *line) {
    const char *rest = NULL;
    if (is(line, "wire", &rest)) {
        p->wire = wire_named(rest, &p->options);
        p->frames = strcmp(rest, "reflection") == 0;
        p->lengths = strcmp(rest, "rrq") == 0;
        p->lines = !strstr(rest, "http") && !p->frames && !p->lengths;
    } else if (is(line, "role", &rest)) {
        p->raw = strcmp(rest, "serve") == 0 ? RIG_CLIENT : RIG_SERVER;
    } else if (is(line, "stdio", &rest)) {
        p->stdio = true;
    } else if (is(line, "limit", &rest)) {
        limit_line(p, rest);
    } else if (is(line, "blobs", &rest)) {
        assert_int_equal(ew__blobs_memory(ew_env_default(), ew__blob_id, 100000, &p->blobs), EW_OK);
    } else if (is(line, "telemetry", &rest)) {
        (void)snprintf(p->telemetry, sizeof p->telemetry, "%s", rest);
    } else if (is(line, "let", &rest) && rest[0] >= 'A' && rest[0] <= 'Z' && rest[1] == ' ') {
        (void)snprintf(p->lets[rest[0] - 'A'], sizeof p->lets[0], "%s", rest + 2);
    } else {
        return false;
    }
    return true;
}

/* What the calls that follow have with them. */
static bool request_line(player *p, const char *line) {
    const char *rest = NULL;
    if (is(line, "timeout", &rest))
        return ew__u64_parse(ew_str_from(rest), &p->timeout_ms);
    if (is(line, "hops", &rest))
        return ew__u64_parse(ew_str_from(rest), &p->hops) && p->hops <= UINT8_MAX;
    if (is(line, "context", &rest))
        return snprintf(p->context, sizeof p->context, "%s", rest) >= 0;
    if (is(line, "labels", &rest))
        return snprintf(p->labels, sizeof p->labels, "%s", rest) >= 0;
    return false;
}

/* From now on another connection, or another call, is spoken of. */
static bool switch_line(player *p, const char *line) {
    const char *rest = NULL;
    uint64_t n = 0;
    if (is(line, "connection", &rest) && ew__u64_parse(ew_str_from(rest), &n) && n >= 1 &&
        n < sizeof p->pairs / sizeof *p->pairs) {
        start(p);
        p->on = (unsigned)n;
        p->pair = p->pairs[n];
        start(p);
        rig_run(&p->r);
        return true;
    }
    if (!is(line, "of", &rest) || !ew__u64_parse(ew_str_from(rest), &n) || n < 1 || n > p->n_calls)
        return false;
    p->call = &p->calls[n - 1];
    return true;
}

/* A line that is no bytes: first everything that was said is said, and everything expected has come. */
static void other_line(player *p, const char *line) {
    const char *rest = NULL;
    uint64_t ms = 0;
    if (setting_line(p, line))
        return;
    if (p->say.len)
        say_it(p);
    compare(p);
    if (is(line, "=", &rest))
        event_line(p, rest);
    else if (is(line, "call", &rest))
        open_line(p, rest, false, false);
    else if (is(line, "stream", &rest))
        open_line(p, rest, true, false);
    else if (is(line, "input", &rest))
        open_line(p, rest, false, true);
    else if (is(line, "list", &rest))
        open_line(p, "(list)", false, false);
    else if (is(line, "send", &rest))
        (void)rig_call_send(p->call->rc, ew_str_from(rest));
    else if (is(line, "end", &rest))
        rig_call_send_end(p->call->rc);
    else if (is(line, "cancel", &rest))
        rig_call_cancel(p->call->rc);
    else if (is(line, "drain", &rest))
        p->wire->drain(p->pair->end[1 - p->raw].peer);
    else if (is(line, "wait", &rest) && ew__u64_parse(ew_str_from(rest), &ms))
        rig_advance(&p->r, ms);
    else if (!request_line(p, line) && !switch_line(p, line) && !back_line(&p->r, line))
        fail_msg("%s:%u: not understood", p->file, p->line);
}

static void play(const char *path, const char *file, rig_split split, uint64_t seed) {
    char line[4000];
    player *p = calloc(1, sizeof *p);
    FILE *f = fopen(path, "r");
    assert_true(p && f);
    p->file = file;
    p->options = (rig_options){.split = split, .seed = seed};
    while (fgets(line, sizeof line, f)) {
        p->line++;
        line[strcspn(line, "\n")] = '\0';
        if (line[0] == '#' || line[0] == '\0')
            continue;
        if (line[0] == '>' || line[0] == '<')
            bytes_line(p, line);
        else
            other_line(p, line);
    }
    (void)fclose(f);
    if (p->say.len)
        say_it(p);
    compare(p);
    for (size_t i = 1; i < sizeof p->pairs / sizeof *p->pairs; i++)
        if ((p->pair = p->pairs[i]) != NULL)
            compare(p); /* nothing came on the others meanwhile */
    watched_end(&p->r, p->frames, p->lengths);
    rig_finish(&p->r);
    if (p->blobs)
        p->blobs->free(p->blobs);
    free(p);
}

static void play_all_ways(void **state) {
    const char *name = *state;
    char path[600];
    (void)snprintf(path, sizeof path, EW_SOURCE_DIR "/tests/transcripts/%s", name);
    play(path, name, RIG_WHOLE, 1);
    play(path, name, RIG_BYTES, 2);
    for (uint64_t seed = 3; seed < 10; seed++)
        play(path, name, RIG_RANDOM, seed);
}

static int by_name(const void *a, const void *b) {
    return strcmp(((const struct CMUnitTest *)a)->name, ((const struct CMUnitTest *)b)->name);
}

typedef struct list {
    struct CMUnitTest tests[300];
    char names[300][80];
    size_t n;
} list;

/* The transcripts of a folder of this folder. */
static void add_folder(list *l, const char *folder, const char *only) {
    char path[600];
    (void)snprintf(path, sizeof path, EW_SOURCE_DIR "/tests/transcripts/%s", folder);
    DIR *dir = opendir(path);
    for (struct dirent *entry; dir && (entry = readdir(dir)) != NULL;) {
        size_t len = strlen(entry->d_name);
        if (len < 12 || strcmp(entry->d_name + len - 11, ".transcript") != 0)
            continue;
        char *name = l->names[l->n];
        int written = snprintf(name, sizeof l->names[0], "%s%s", folder, entry->d_name);
        if (written < 0 || (size_t)written >= sizeof l->names[0] || l->n == 299) {
            (void)fprintf(stderr, "%s: too long a name, or one too many\n", entry->d_name);
            exit(1);
        }
        if (!strstr(name, only))
            continue;
        l->tests[l->n++] = (struct CMUnitTest){.name = name, .test_func = play_all_ways, .initial_state = name};
    }
    if (dir)
        (void)closedir(dir);
}

int main(int argc, char **argv) {
    static list l;
    const char *only = argc > 1 ? argv[1] : "";
    add_folder(&l, "", only);
    add_folder(&l, "rrq/", only);
    add_folder(&l, "stepflow/", only);
    if (l.n == 0)
        return 1;
    qsort(l.tests, l.n, sizeof *l.tests, by_name);
    return _cmocka_run_group_tests("transcripts", l.tests, l.n, NULL, NULL);
}
