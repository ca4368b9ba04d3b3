/*
 * wire/stepflow/codec.h: the texts of Stepflow's protocol beyond the envelope of JSON-RPC, both ways, pure. All
 * generations are read; what is written every generation understands. What stands in payloads, names and messages is
 * written as it is: ew__sf_plain makes it fit for the wire.
 */
#ifndef EW_WIRE_STEPFLOW_CODEC_H
#define EW_WIRE_STEPFLOW_CODEC_H

#include "call/call.h"
#include "wire/jsonrpc_envelope.h"

/* Error codes beside those of JSON-RPC (0.11's table; earlier runtimes treat all alike). */
enum {
    EW__SF_COMPONENT_NOT_FOUND = -32001,
    EW__SF_NOT_INITIALIZED = -32002,
    EW__SF_EXECUTION_FAILED = -32100,
    EW__SF_VALUE_ERROR = -32101,
    EW__SF_RESOURCE_UNAVAILABLE = -32102,
    EW__SF_BAD_REQUEST = -32103,
    EW__SF_TRANSPORT_ERROR = -32300 /* down to -32303; a runtime tries again by itself */
};

typedef enum ew__sf_method {
    EW__SF_OTHER, /* none of these */
    EW__SF_INITIALIZE,
    EW__SF_INITIALIZED,
    EW__SF_LIST,
    EW__SF_INFO,
    EW__SF_EXECUTE,
    EW__SF_CANCEL, /* "$/cancelRequest", between two of us on stdio */
    EW__SF_BLOB_PUT,
    EW__SF_BLOB_GET
} ew__sf_method;

/* method: a JSON string as it stands in the message. */
ew__sf_method ew__sf_method_of(ew_str method);

/*
 * A payload as this wire writes it: itself, or rewritten (one line, ASCII) in *buf, which is to be freed by the caller
 * in any case. EW_OK or EW_ENOMEM.
 */
ew_err ew__sf_plain(const ew_env *env, ew_str json, ew__buf *buf, ew_str *ret);

/* ---- serving: what a runtime asks ---- */

/* initialize: where the runtime keeps its blobs (0.10 and later); empty: behind callbacks. In params, or in buf. */
ew_str ew__sf_read_blob_url(ew_str params, char *buf, size_t capacity);

/* components/execute. Raw JSON slices of params but for the component. */
typedef struct ew__sf_run {
    ew_str component; /* plain text, in params or decoded into buf */
    ew_str input;     /* "null" if there is none */
    ew_str observability;
    ew_str step_id, run_id, flow_id; /* JSON strings where an older runtime has them; empty: none */
    uint32_t attempt;                /* 0: not said */
    uint8_t hops;                    /* said by one of ours only */
} ew__sf_run;
/* doc: the message that params lies in; lookups use its notes. NULL, or a line for people: bad params. */
const char *ew__sf_read_run(const ew__json_doc *doc, ew_str params, char *buf, size_t capacity, ew__sf_run *ret);

/*
 * What came with the call: input, context (the observability, with the ids of older runtimes), attempt, trace, the
 * longest time a call may take. copy: the slices of run do not live as long as the call does. EW_OK or EW_ENOMEM.
 */
ew_err ew__sf_fill_call(ew_call *call, const ew__sf_run *run, bool copy);

/* The component of components/info: plain text, empty if there is none. */
ew_str ew__sf_read_component(ew_str params, char *buf, size_t capacity);

/* {"components":[..]} and {"info":{..}} */
ew_err ew__sf_write_components(ew__buf *out, const ew__actions *actions, ew_str listing);
ew_err ew__sf_write_info(ew__buf *out, const ew__actions *actions, const ew__action *action);

/* An error object. code 0: as an action's fault has it (EXECUTION_FAILED). component: plain text, or empty. */
ew_err ew__sf_write_fault(ew__buf *out, int64_t code, const ew_fault *fault, ew_str component);

/* {"jsonrpc","id","result":{"output":OUTPUT}}; both as ew__sf_plain gives them. */
void ew__sf_put_output(ew__rpc_out *out, ew_str id, ew_str output);

/* ---- calling: what we ask a server ---- */

/* The whole request, all generations' spellings in one. blob_api: plain text, may be empty. */
ew_err ew__sf_write_initialize(ew__buf *out, ew_str id, ew_str blob_api);
#define EW__SF_INITIALIZED_TEXT EW_STR("{\"jsonrpc\":\"2.0\",\"method\":\"initialized\",\"params\":{}}")

/* Whether a name has no slash before it: most servers want one. */
bool ew__sf_is_bare(ew_str name);

/* The request of a call around its input: head, input, tail. For a listing all of it is the head. */
typedef struct ew__sf_request {
    ew_str head, tail;
    uint8_t *memory; /* for what does not fit into small */
    size_t room;
    uint8_t small[1536];
} ew__sf_request;
/*
 * bare: the component's name as the caller gave it; else with a slash before it. everywire: the server is one of ours:
 * it is told the hops, and nothing twice. EW_OK or EW_ENOMEM; ew__sf_request_done in any case.
 */
ew_err ew__sf_write_request(ew__sf_request *request, const ew_env *env, ew_call *call, ew_str id, bool bare,
                            bool everywire);
void ew__sf_request_done(ew__sf_request *request, const ew_env *env);

/*
 * The answer to a call as servers of ours write it, small and without a fault: gives its output. False: it is read the
 * long way, with the same outcome. id as ew__sf_write_request got it.
 */
bool ew__sf_read_output(ew_str text, ew_str id, ew_str *ret_output);

/* {"components":[..]} as a listing: key to descriptor. EW_OK, EW_ENOMEM, EW_EPROTO. */
ew_err ew__sf_read_components(ew__buf *out, ew_str result);

/* An error object as a fault. Slices into it, or decoded into text. */
void ew__sf_read_fault(ew_str error, char *text, size_t capacity, ew_fault *ret);
/* Whether it says that the component is not there. */
bool ew__sf_is_not_found(ew_str error);

/* blobs/put and blobs/get as they come from a server: false: bad params. id as ew__sf_read_component. */
bool ew__sf_read_put(ew_str params, ew_str *ret_data, ew_str *ret_type);

#endif
