/*
 * tests/bridge/papers.c: the tables of docs/bridge.md, and that of the README, made from what the wires say of themselves and from the words that
 * they write.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "bridge/pairs.h"
#include "wire/jsonrpc/codec.h"
#include "wire/reflection/codec.h"
#include "wire/rrq/codec.h"
#include "wire/stepflow/codec.h"

#define BEGIN "<!-- table: "
#define END "<!-- end of table -->"
#define CELL 200
#define PAPER_MAX (256 * 1024)

const char *letters_of(unsigned marks, char out[9]) {
    for (int i = 0; i < 8; i++)
        out[i] = marks & (1U << i) ? "uscixdtk"[i] : '-';
    out[8] = '\0';
    return out;
}

/* Calls, faults and the wish to stop cross everywhere; the rest where both wires have a word for it. */
unsigned expected_marks(const bridge_wire *near, const bridge_wire *far) {
    static const struct {
        unsigned cap, mark;
    } rest[] = {{EW__CAN_CHUNKS, MARK_CHUNKS},
                {EW__CAN_INPUT, MARK_INPUT},
                {EW__CAN_DEADLINE, MARK_DEADLINE},
                {EW__CAN_TRACE, MARK_TRACE},
                {EW__CAN_CONTEXT, MARK_CONTEXT}};
    unsigned marks = MARK_UNARY | MARK_STATUS | MARK_CANCEL;
    for (size_t i = 0; i < sizeof rest / sizeof *rest; i++)
        marks |= both_carry(near, far, rest[i].cap) ? rest[i].mark : 0;
    return marks;
}

/* ---- the matrix ---- */

static void write_matrix(FILE *out) {
    char letters[9];
    fprintf(out, "| from, to |");
    for (size_t f = 0; f < N_NEAR; f++)
        fprintf(out, " %s |", bridge_wires[f].name);
    fprintf(out, "\n|---|");
    for (size_t f = 0; f < N_NEAR; f++)
        fprintf(out, "---|");
    for (size_t n = 0; n < N_NEAR; n++) {
        fprintf(out, "\n| **%s** |", bridge_wires[n].name);
        for (size_t f = 0; f < N_NEAR; f++)
            fprintf(out, " `%s` |", letters_of(expected_marks(&bridge_wires[n], &bridge_wires[f]), letters));
    }
    fprintf(out, "\n");
}

/* ---- one table for each near wire ---- */

/* How a wire says some things. */
typedef struct words {
    const char *name, *cancel, *context, *as;
} words;

static const words *words_of(const bridge_wire *wire) {
    static const words all[N_NEAR] = {
        {"http", "the connection closes", NULL, NULL},
        {"reflection", "`cancelAction`", "the context", "as it is"},
        {"rrq", "a `cancel` frame", "RRQ's context", "inside RRQ's context"},
        {"stepflow", "the connection closes", "`observability`", "inside `observability`"},
        {"jsonrpc", "`$/cancelRequest`", NULL, NULL},
    };
    for (size_t i = 0; i < N_NEAR; i++)
        if (strcmp(all[i].name, wire->name) == 0)
            return &all[i];
    return NULL;
}

/* What is said when both have it, the near one alone, the far one alone, none. */
static const char *choose(const bridge_wire *near, const bridge_wire *far, unsigned cap, const char *const said[4]) {
    return said[(near->caps & cap ? 0 : 2) + (far->caps & cap ? 0 : 1)];
}

static void context_cell(const bridge_wire *near, const bridge_wire *far, char out[CELL]) {
    const words *n = words_of(near), *f = words_of(far);
    if (!n->context)
        (void)snprintf(out, CELL, "none comes");
    else if (!f->as && near->labels)
        (void)snprintf(out, CELL, "left out, labels too");
    else if (!f->as)
        (void)snprintf(out, CELL, "left out");
    else
        (void)snprintf(out, CELL, "%s crosses%s%s%s", n->context, near == far ? "" : ", ", near == far ? "" : f->as,
                       !near->labels ? ""
                       : far->labels ? "; labels cross"
                                     : "; labels are left out");
}

static void payload_cell(const bridge_wire *near, const bridge_wire *far, char out[CELL]) {
    const char *kind = near->objects ? "objects" : far->objects ? "objects; else `INVALID_ARGUMENT`" : "any JSON";
    (void)snprintf(out, CELL, "%s%s", kind, near->ascii || far->ascii ? "; as ASCII" : "");
}

static void write_pairs(FILE *out, const bridge_wire *near) {
    static const char *const chunks[] = {"cross", "the result alone", "not asked for", "none"};
    static const char *const input[] = {"crosses", "`UNIMPLEMENTED`", "none comes", "none comes"};
    static const char *const deadline[] = {"crosses", "kept by the gateway", "kept by the caller",
                                           "kept by the caller"};
    static const char *const trace[] = {"goes on", "ends at the gateway", "begins at the gateway", "none"};
    fprintf(out, "| to | chunks | input stream | cancel | deadline | trace | context | input |\n"
                 "|---|---|---|---|---|---|---|---|\n");
    for (size_t f = 0; f < N_NEAR; f++) {
        const bridge_wire *far = &bridge_wires[f];
        char context[CELL], payload[CELL];
        context_cell(near, far, context);
        payload_cell(near, far, payload);
        fprintf(out, "| **%s** | %s | %s | %s | %s | %s | %s | %s |\n", far->name,
                choose(near, far, EW__CAN_CHUNKS, chunks), choose(near, far, EW__CAN_INPUT, input),
                words_of(far)->cancel, choose(near, far, EW__CAN_DEADLINE, deadline),
                choose(near, far, EW__CAN_TRACE, trace), context, payload);
    }
}

/* ---- the wires themselves ---- */

static void write_wires(FILE *out) {
    static const char *const people[N_NEAR][2] = {
        {"Genkit's flows over HTTP, curl", "flow server, client"},
        {"Genkit's CLI and apps, over WebSocket", "runtime, manager"},
        {"RRQ's workers and runners, over TCP", "runner, orchestrator"},
        {"Stepflow up to 0.11, over HTTP and pipes", "component server, runtime"},
        {"Go, Kimi, editors, `nc`: lines over TCP, Unix sockets, pipes", "server, client, both at once"},
    };
    static const unsigned columns[] = {EW__CAN_CHUNKS, EW__CAN_INPUT, EW__CAN_DEADLINE, EW__CAN_TRACE};
    fprintf(out, "| wire | who speaks it | here it is | chunks | input stream | deadline | trace | context | cancel |\n"
                 "|---|---|---|---|---|---|---|---|---|\n");
    for (size_t i = 0; i < N_NEAR; i++) {
        const bridge_wire *wire = &bridge_wires[i];
        fprintf(out, "| [%s](src/wire/%s/README.md) | %s | %s |", wire->name, wire->name, people[i][0], people[i][1]);
        for (size_t c = 0; c < sizeof columns / sizeof *columns; c++)
            fprintf(out, " %s |", wire->caps & columns[c] ? "yes" : "-");
        fprintf(out, " %s | %s |\n", words_of(wire)->context ? "yes" : "-", words_of(wire)->cancel);
    }
}

/* ---- faults ---- */

/* A number or text of the error that a wire writes. */
static ew_str part(const ew__buf *buf, const char *pointer) { return ew_json_get(ew__buf_view(buf), pointer); }

static void write_fault(FILE *out, ew_status status) {
    const ew_fault fault = {.status = status, .message = EW_STR("m")};
    ew__buf bufs[4];
    for (int i = 0; i < 4; i++)
        ew__buf_init(&bufs[i], ew_env_default(), SIZE_MAX / 2);
    (void)ew__rf_write_fault(&bufs[0], 0, &fault, (ew_str){NULL, 0});
    (void)ew__buf_cstr(&bufs[1], "{\"status\":"); /* the codec writes what follows */
    (void)ew__rrq_write_fault(&bufs[1], NULL, &fault);
    (void)ew__buf_char(&bufs[1], '}');
    (void)ew__sf_write_fault(&bufs[2], 0, &fault, (ew_str){NULL, 0});
    (void)ew__jr_write_fault(&bufs[3], 0, &fault);
    ew_str code = part(&bufs[0], "/code"), number = part(&bufs[0], "/data/code"), word = part(&bufs[1], "/status");
    ew_str type = part(&bufs[1], "/error/type"), sf = part(&bufs[2], "/code"), jr = part(&bufs[3], "/code");
    fprintf(out, "| `%s` | %d | %.*s, `data.code` %.*s | `%.*s`", ew_status_name(status), ew_status_http(status),
            (int)code.len, code.ptr, (int)number.len, number.ptr, (int)(word.len - 2), word.ptr + 1);
    if (type.len)
        fprintf(out, ", type `%.*s`", (int)(type.len - 2), type.ptr + 1);
    fprintf(out, " | %.*s | %.*s |\n", (int)sf.len, sf.ptr, (int)jr.len, jr.ptr);
    for (int i = 0; i < 4; i++)
        ew__buf_done(&bufs[i]);
}

static void write_faults(FILE *out) {
    fprintf(out, "| status | http | reflection | rrq | stepflow | jsonrpc |\n|---|---|---|---|---|---|\n");
    for (int status = 1; status < EW_STATUS_COUNT; status++)
        write_fault(out, (ew_status)status);
}

/* ---- the paper ---- */

/* False: there is no such table. */
static bool write_table(FILE *out, ew_str name) {
    if (ew_str_eq(name, EW_STR("matrix")))
        write_matrix(out);
    else if (ew_str_eq(name, EW_STR("faults")))
        write_faults(out);
    else if (ew_str_eq(name, EW_STR("wires")))
        write_wires(out);
    else {
        for (size_t i = 0; i < N_NEAR; i++) {
            if (!ew_str_eq(name, ew_str_from(bridge_wires[i].name)))
                continue;
            write_pairs(out, &bridge_wires[i]);
            return true;
        }
        return false;
    }
    return true;
}

/* The paper with fresh tables. NULL: what is wrong was said. */
static char *fresh_paper(const char *old, size_t *ret_len) {
    char *text = NULL;
    int tables = 0, wanted = strstr(old, BEGIN "wires") ? 1 : N_NEAR + 2;
    FILE *out = open_memstream(&text, ret_len);
    for (const char *at = old, *mark; out; at = mark) {
        mark = strstr(at, BEGIN);
        const char *line = mark ? strchr(mark, '\n') : NULL, *end = line ? strstr(line, END) : NULL;
        fwrite(at, 1, mark ? (size_t)((end ? line + 1 : mark) - at) : strlen(at), out);
        if (!mark)
            break;
        const char *name = mark + strlen(BEGIN);
        ew_str word = {name, strcspn(name, " \n")};
        if (!end || !write_table(out, word)) {
            fprintf(stderr, "a table that is not known, or has no end: %.*s\n", (int)word.len, name);
            tables = -100;
            break;
        }
        tables++;
        mark = end;
    }
    if (out)
        (void)fclose(out);
    if (tables == wanted)
        return text;
    fprintf(stderr, "the paper has not the %d tables that it should have\n", wanted);
    free(text);
    return NULL;
}

static char *read_paper(const char *path) {
    FILE *file = path ? fopen(path, "r") : NULL;
    char *text = file ? calloc(1, PAPER_MAX) : NULL;
    if (!text || fread(text, 1, PAPER_MAX - 1, file) == 0)
        fprintf(stderr, "%s cannot be read\n", path ? path : "nothing");
    if (file)
        (void)fclose(file);
    return text;
}

int check_papers(const char *path, bool write) {
    size_t len = 0;
    char *old = read_paper(path), *fresh = old ? fresh_paper(old, &len) : NULL;
    int status = fresh ? 0 : 1;
    if (fresh && write) {
        FILE *file = fopen(path, "w");
        status = file && fwrite(fresh, 1, len, file) == len ? 0 : 1;
        if (file)
            (void)fclose(file);
    } else if (fresh && strcmp(old, fresh) != 0) {
        fprintf(stderr, "%s differs from what the wires say: test_bridge_pairs --docs %s --write mends it\n", path,
                path);
        status = 1;
    }
    free(old);
    free(fresh);
    return status;
}
