/*
 * wire/jsonrpc/codec.h: what the jsonrpc wire puts into the envelope: faults, method names, the document of
 * rpc.discover. Pure: no connection, no call. README.md beside it shows them.
 */
#ifndef EW_WIRE_JSONRPC_CODEC_H
#define EW_WIRE_JSONRPC_CODEC_H

#include "wire/jsonrpc_envelope.h"
#include <everywire/status.h>

/* The JSON-RPC code of a status, and the status that a peer's code stands for when nothing better is known. */
int64_t ew__jr_code_of(ew_status status);
ew_status ew__jr_status_of(int64_t code);

/* Appends the error object of a fault: {"code","message","data":{"status","details",...}}. code 0: by its status. */
ew_err ew__jr_write_fault(ew__buf *buf, int64_t code, const ew_fault *fault);
/* What a peer's error says, whatever it is. The message is a slice of it, or decoded into text. */
void ew__jr_read_fault(ew_str error, char *text, size_t capacity, ew_fault *ret);

/* How the result of a call is streamed. */
enum {
    EW__JR_NO_STREAM,
    EW__JR_CHUNKS, /* ?stream=true: data frames are the chunks, the close frame has the end */
    EW__JR_EVENTS  /* ?stream=events: data frames are {"chunk":C}, then {"result":R} or {"error":E} */
};

/* What a method says beside the action's name, as a query: "greet?stream=true&hops=2". */
typedef struct ew__jr_query {
    uint8_t stream; /* EW__JR_NO_STREAM ... */
    uint8_t hops;   /* everywires that the call has crossed */
} ew__jr_query;

/* The action that a method names. A query that has anything else in it, or anything twice, is a part of the name. */
ew_str ew__jr_action_of(ew_str method, ew__jr_query *ret);
/* Appends the method that calls an action, as a JSON string. */
ew_err ew__jr_write_method(ew__buf *buf, ew_str action, const ew__jr_query *query);

/* Appends the OpenRPC document of a listing (an object, key to descriptor). */
ew_err ew__jr_write_discover(ew__buf *buf, ew_str listing);
/* Whether a peer's document is one of ours: then it knows queries. */
bool ew__jr_is_everywire(ew_str document);
/* Whether the error that answers rpc.discover is one of everywire: the list is too large, or not for this caller. */
bool ew__jr_is_everywire_error(ew_str error);
/* Appends the listing of a document, ours or any OpenRPC one. EW_EPROTO: it is none. */
ew_err ew__jr_read_discover(ew__buf *buf, ew_str document);

#endif
