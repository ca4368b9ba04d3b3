/*
 * wire/mem/wire.c: the connection of the mem wire: bytes to frames, frames to the role they are for, flow, life; and
 * its table.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "wire/mem/mem.h"
#include "base/list.h"

static ew__mem_peer *mem_of(ew__peer *peer) { return (ew__mem_peer *)(void *)peer; }

static const ew_limits *limits_of(const ew__mem_peer *peer) { return peer->peer.conn->executor->limits; }

/* ---- the calls of a connection ---- */

void ew__mem_add(ew__mem_peer *peer, ew__mem_call *entry, ew_call *call, uint32_t id, bool sent) {
    ew__mem_list *list = sent ? &peer->sent : &peer->served;
    *entry = (ew__mem_call){.peer = peer, .call = call, .id = id, .sent = sent, .room = EW__MEM_WINDOW};
    EW__LIST_ADD(list->first, entry);
    list->n++;
}

void ew__mem_remove(ew__mem_call *entry) {
    ew__mem_list *list = entry->sent ? &entry->peer->sent : &entry->peer->served;
    EW__LIST_REMOVE(list->first, entry);
    list->n--;
}

/* A walk: this wire is for reading, and its lists are short. */
ew__mem_call *ew__mem_find(const ew__mem_list *list, uint32_t id) {
    for (ew__mem_call *entry = list->first; entry; entry = entry->next)
        if (entry->id == id)
            return entry;
    return NULL;
}

void ew__mem_late(ew__mem_peer *peer) {
    atomic_fetch_add_explicit(&peer->peer.conn->executor->calls->dropped, 1, memory_order_relaxed);
}

/* ---- sending ---- */

static void close_now(ew__mem_peer *peer) {
    peer->closed = true;
    peer->peer.conn->ops->abort(peer->peer.conn);
}

bool ew__mem_fits(const ew__mem_peer *peer, const ew__mem_frame *frame) {
    return ew__mem_length(frame) <= limits_of(peer)->frame_bytes;
}

/* Half a frame must not leave: without memory for a whole one the connection closes. */
void ew__mem_send(ew__mem_peer *peer, const ew__mem_frame *frame) {
    ew__conn *conn = peer->peer.conn;
    if (peer->closed)
        return;
    ew__mem_write(&conn->out, frame);
    if (conn->out.err)
        close_now(peer);
    else
        conn->ops->send(conn);
}

/* ---- flow ---- */

static bool has_room(const ew__mem_call *entry) {
    return entry->room > 0 && entry->peer->peer.conn->out.bytes < limits_of(entry->peer)->out_high_bytes;
}

ew_err ew__mem_send_chunk(ew__mem_call *entry, uint8_t event, ew_str json) {
    ew__mem_peer *peer = entry->peer;
    ew__mem_frame frame = {.event = event, .id = entry->id, .payload = json};
    if (!ew__mem_fits(peer, &frame) || peer->peer.conn->out.bytes + json.len > limits_of(peer)->out_max_bytes)
        return EW_ELIMIT;
    ew__mem_send(peer, &frame);
    if (peer->closed)
        return EW_ENOMEM; /* a producer that does not wait must learn that nobody listens */
    entry->room -= (int64_t)json.len;
    entry->waiting = !has_room(entry);
    return entry->waiting ? EW_FULL : EW_OK;
}

static bool may_go_on(const ew__mem_call *entry) { return entry->waiting && has_room(entry); }

static void go_on(ew__mem_call *entry) {
    entry->waiting = false;
    if (entry->sent)
        ew__call_input_room(entry->call);
    else
        ew__call_room(entry->call);
}

ew_err ew__mem_given(ew__mem_call *entry, uint64_t bytes) {
    if (bytes > (uint64_t)(EW__MEM_WINDOW - entry->room))
        return EW_EPROTO;
    entry->room += (int64_t)bytes;
    if (may_go_on(entry))
        go_on(entry);
    return EW_OK;
}

/* Room is given back in halves of the window, so that it costs few frames; all at once when somebody waited for it. */
void ew__mem_took(ew__mem_call *entry, size_t bytes, bool all) {
    entry->owed += bytes;
    if (entry->owed == 0 || (!all && entry->owed < EW__MEM_WINDOW / 2))
        return;
    ew__mem_send(entry->peer, &(ew__mem_frame){.event = entry->sent ? EW__MEM_ROOM_OUT : EW__MEM_ROOM_IN,
                                               .id = entry->id,
                                               .number = entry->owed});
    entry->owed = 0;
}

static ew__mem_call *next_to_go_on(const ew__mem_list *list) {
    for (ew__mem_call *entry = list->first; entry; entry = entry->next)
        if (may_go_on(entry))
            return entry;
    return NULL;
}

/* Who goes on may fill the connection again or end calls: so the lists are looked at afresh each time. */
static void drained(ew__peer *peer) {
    ew__mem_peer *mem = mem_of(peer);
    ew__mem_call *entry;
    while ((entry = next_to_go_on(&mem->served)) != NULL)
        go_on(entry);
    while ((entry = next_to_go_on(&mem->sent)) != NULL)
        go_on(entry);
}

/* ---- receiving ---- */

/* The other side does not speak this protocol (any more): nothing it says can be trusted. */
static void break_off(ew__mem_peer *peer, ew_err why) {
    close_now(peer);
    ew__mem_fail_sent(peer, EW_ORIGIN_PROTOCOL, EW_STATUS_INTERNAL,
                      why == EW_ELIMIT ? EW_STR("the peer sent a frame that is too large")
                                       : EW_STR("the peer broke the protocol"));
}

/* Takes whole frames off the front; returns how many bytes they were. */
static size_t take_frames(ew__mem_peer *peer, ew_str bytes) {
    size_t done = 0;
    while (!peer->closed) {
        ew__mem_frame frame;
        size_t size = 0;
        ew_err err =
            ew__mem_read(ew__str(bytes.ptr + done, bytes.len - done), limits_of(peer)->frame_bytes, &frame, &size);
        if (err == EW_OK && size == 0)
            break;
        if (err == EW_OK)
            err = ew__mem_from_caller(frame.event) ? ew__mem_serve(peer, &frame) : ew__mem_answer(peer, &frame);
        if (err != EW_OK) {
            break_off(peer, err);
            break;
        }
        done += size;
    }
    return done;
}

static void input(ew__peer *peer, const uint8_t *bytes, size_t n) {
    ew__mem_peer *mem = mem_of(peer);
    if (mem->closed)
        return;
    if (mem->in.len == 0) { /* nothing is left over: frames are read where they are */
        size_t done = take_frames(mem, ew__str(bytes, n));
        bytes += done;
        n -= done;
        if (n == 0 || mem->closed)
            return;
    }
    if (ew__buf_add(&mem->in, bytes, n) != EW_OK) {
        close_now(mem);
        return;
    }
    ew__buf_drop(&mem->in, take_frames(mem, ew__buf_view(&mem->in)));
    if (mem->in.len == 0)
        ew__buf_done(&mem->in); /* an idle connection holds no memory */
}

/* ---- life ---- */

static int sniff(const uint8_t *bytes, size_t n) {
    if (n < 5)
        return 0;
    return bytes[4] == EW__MEM_OPEN ? 1 : -1;
}

static ew_err init(ew__peer *peer) {
    ew__buf_init(&mem_of(peer)->in, peer->conn->executor->env,
                 SIZE_MAX / 2); /* a frame's length is checked before it is waited for */
    return EW_OK;
}

/* Nobody is there to answer to, and nobody will answer. */
static void end_calls(ew__mem_peer *peer, ew_err why) {
    while (peer->served.first) {
        ew_call *call = peer->served.first->call;
        ew__mem_remove(peer->served.first);
        ew__call_release(call);
    }
    ew__mem_fail_sent(peer, EW_ORIGIN_CONNECT, EW_STATUS_UNAVAILABLE,
                      why == EW_ETIMEOUT ? EW_STR("the connection stalled")
                                         : EW_STR("the connection was lost before the end of the call"));
}

static void eof(ew__peer *peer) {
    ew__mem_peer *mem = mem_of(peer);
    if (mem->closed)
        return;
    close_now(mem);
    end_calls(mem, EW_OK);
}

void ew__mem_check_drained(ew__mem_peer *peer) {
    if (!peer->draining || peer->closed || peer->served.first || peer->sent.first)
        return;
    peer->closed = true;
    peer->peer.conn->ops->finish(peer->peer.conn);
}

static void drain(ew__peer *peer) {
    mem_of(peer)->draining = true;
    ew__mem_check_drained(mem_of(peer));
}

static void gone(ew__peer *peer, ew_err why) {
    ew__mem_peer *mem = mem_of(peer);
    mem->closed = true;
    end_calls(mem, why);
    ew__buf_done(&mem->in);
}

static const ew_wire_info info = {
    .name = "mem",
    .title = "Mem",
    .can = EW_WIRE_SERVES | EW_WIRE_CALLS | EW_WIRE_CHUNKS | EW_WIRE_INPUT | EW_WIRE_CANCEL | EW_WIRE_DEADLINE |
           EW_WIRE_TRACE | EW_WIRE_CONTEXT | EW_WIRE_LIST | EW_WIRE_DUPLEX,
};

static const ew_scheme schemes[] = {
    {.text = "mem://",
     .form = "mem://HOST:PORT",
     .help = "the mem wire: HOST:PORT",
     .wire = "mem",
     .reach = EW_REACH_TCP},
    {.text = NULL},
};

static const ew_listener_name listeners[] = {
    {.name = "mem", .help = "the mem wire only", .wire = "mem"},
    {.name = NULL},
};

static const ew__descriptor about = {.info = &info, .schemes = schemes, .listeners = listeners};

const ew__wire ew__wire_mem = {
    .name = "mem",
    .about = &about,
    .caps = EW__CAN_SERVE | EW__CAN_CALL | EW__CAN_CHUNKS | EW__CAN_INPUT | EW__CAN_CANCEL | EW__CAN_DEADLINE |
            EW__CAN_TRACE | EW__CAN_CONTEXT | EW__CAN_LIST | EW__CAN_DUPLEX | EW__CAN_MANY,
    .serve_size = sizeof(ew__mem_peer),
    .call_size = sizeof(ew__mem_peer),
    .sniff = sniff,
    .init = init,
    .input = input,
    .eof = eof,
    .drained = drained,
    .drain = drain,
    .gone = gone,
    .open = ew__mem_open,
    .capacity = ew__mem_capacity,
};
