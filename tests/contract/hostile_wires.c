/*
 * tests/contract/hostile_wires.c: how each wire's messages are written; see hostile.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "contract/hostile.h"
#include "wire/http/http.h"
#include "wire/jsonrpc/jsonrpc.h"
#include "wire/reflection/reflection.h"
#include "wire/rrq/rrq.h"
#include "wire/stepflow/stepflow.h"

#define RPC "{'jsonrpc':'2.0',"
#define RPC_RESULT RPC "'id':$I,'result':$V}"
#define RPC_ERROR RPC "'id':$I,'error':{'code':$V,'message':'no'}}"
#define RPC_CANCEL RPC "'method':'$/cancelRequest','params':{'id':$I}}"

/* Integers around every range that JSON-RPC reserves, and values that are not integers. */
static const char rpc_codes[] =
    "-32700 -32600 -32601 -32602 -32603 -32000 -32001 -32002 -32099 -32100 -32101 -32102 -32103 -32300 "
    "-32303 -32768 -32800 -32801 0 1 -1 200 2147483647 -2147483648 4294967296 9223372036854775807 "
    "-9223372036854775808 99999999999999999999999 1e400 0.5 -0 null true 'x' [] {}";

static const char status_codes[] = "0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 -1 99 1e9 4294967297 0.5 null "
                                   "'NOT_FOUND' 'x' [] {}";

static const char rrq_codes[] =
    "'OK' 'CANCELLED' 'UNKNOWN' 'INVALID_ARGUMENT' 'DEADLINE_EXCEEDED' 'NOT_FOUND' 'ALREADY_EXISTS' "
    "'PERMISSION_DENIED' 'UNAUTHENTICATED' 'RESOURCE_EXHAUSTED' 'FAILED_PRECONDITION' 'ABORTED' 'OUT_OF_RANGE' "
    "'UNIMPLEMENTED' 'INTERNAL' 'UNAVAILABLE' 'DATA_LOSS' 'handler_not_found' 'timeout' 'retry' '' null 1 [] {}";

/* Results, errors and stream frames for ids that were never used, of every JSON type. */
static const char *const jsonrpc_strays[] = {RPC "'id':'nope','result':1}",
                                             RPC "'id':1,'result':1}",
                                             RPC "'id':-1,'error':{'code':1,'message':'no'}}",
                                             RPC "'id':'nope','error':null}",
                                             RPC "'id':1e999,'result':1}",
                                             RPC "'id':'nope','stream':1,'result':null}",
                                             RPC "'id':'nope','stream':2,'data':1}",
                                             RPC "'id':'nope','stream':3,'data':{'result':1}}",
                                             RPC "'id':'nope','stream':3,'data':{'error':{'code':1,'message':'no'}}}",
                                             RPC "'method':'$/cancelRequest','params':{'id':'nope'}}",
                                             RPC "'method':'$/cancelRequest','params':null}",
                                             RPC "'method':'$/cancelRequest'}",
                                             RPC "'method':'$/progress','params':[]}",
                                             NULL};

static const char *const reflection_strays[] = {
    RPC "'id':'nope','result':{'result':1}}",
    RPC "'id':1,'result':null}",
    RPC "'id':'nope','error':{'code':-32000,'message':'no','data':{'code':5,'message':'no'}}}",
    RPC "'method':'streamChunk','params':{'requestId':'nope','chunk':1}}",
    RPC "'method':'streamChunk','params':{'chunk':1}}",
    RPC "'method':'streamChunk'}",
    RPC "'method':'runActionState','params':{'requestId':'nope','state':{'traceId':'t'}}}",
    RPC "'method':'runActionState','params':{'requestId':1,'state':null}}",
    RPC "'method':'sendInputStreamChunk','params':{'requestId':'nope','chunk':1}}",
    RPC "'method':'endInputStream','params':{'requestId':'nope'}}",
    RPC "'method':'cancelAction','params':{'requestId':'nope'}}",
    RPC "'method':'cancelAction','params':{'traceId':'nope'}}",
    NULL};

static const char *const stepflow_strays[] = {RPC "'id':'nope','result':{'output':1}}",
                                              RPC "'id':1,'result':null}",
                                              RPC "'id':'nope','error':{'code':-32100,'message':'no'}}",
                                              RPC "'method':'$/cancelRequest','params':{'id':'nope'}}",
                                              RPC "'method':'initialized','params':{}}",
                                              RPC "'method':'components/changed','params':{}}",
                                              NULL};

#define RRQ(type) "{'type':'" type "','payload':{"
#define RRQ_CONTEXT "'context':{'job_id':$J,'attempt':1,'enqueue_time':'2026-01-01T12:00:00Z','queue_name':'q'}}}"
#define RRQ_VERSION "'protocol_version':'2',"

static const char *const rrq_strays[] = {
    RRQ("cancel") RRQ_VERSION "'job_id':'nope'}}",
    RRQ("cancel") RRQ_VERSION "'job_id':'nope','request_id':'nope'}}",
    RRQ("cancel") "'protocol_version':'9','job_id':'nope'}}",
    RRQ("response") "'job_id':'nope','request_id':'nope','status':'success','result':1}}",
    RRQ("response") "'job_id':'nope','request_id':'nope','status':'error','error':{'message':'no'}}}",
    NULL};

/* Another target than the action's is a request of its own on HTTP. */
static const char *const no_strays[] = {NULL};

const hostile_wire hostile_wires[] = {
    {.name = "http",
     .wire = &ew__wire_http,
     .framing = HOSTILE_HTTP,
     .path = "$K",
     .request = "{'data':$V}",
     .result = "{'result':$V}",
     .strays = no_strays},
    {.name = "jsonrpc",
     .wire = &ew__wire_jsonrpc,
     .framing = HOSTILE_LINES,
     .id_at = "/id",
     .request = RPC "'id':$I,'method':'$K','params':$V}",
     .stream = RPC "'id':$I,'method':'$K?stream=true','params':$V}",
     .input_stream = RPC "'id':$I,'method':'$K','stream':1,'params':$V}",
     .cancel = RPC_CANCEL,
     .input = RPC "'id':$I,'stream':2,'data':$V}",
     .input_end = RPC "'id':$I,'stream':3}",
     .result = RPC_RESULT,
     .error = RPC_ERROR,
     .chunk = RPC "'id':$I,'stream':2,'data':$V}",
     .strays = jsonrpc_strays,
     .codes = rpc_codes},
    {.name = "reflection",
     .wire = &ew__wire_reflection,
     .handshake = true,
     .framing = HOSTILE_WEBSOCKET,
     .id_at = "/id",
     .request = RPC "'id':$I,'method':'runAction','params':{'key':'$K','input':$V}}",
     .stream = RPC "'id':$I,'method':'runAction','params':{'key':'$K','input':$V,'stream':true}}",
     .input_stream = RPC "'id':$I,'method':'runAction','params':{'key':'$K','init':$V,'streamInput':true}}",
     .cancel = RPC "'id':'c','method':'cancelAction','params':{'requestId':$I}}",
     .input = RPC "'method':'sendInputStreamChunk','params':{'requestId':$I,'chunk':$V}}",
     .input_end = RPC "'method':'endInputStream','params':{'requestId':$I}}",
     .result = RPC "'id':$I,'result':{'result':$V,'telemetry':{'traceId':'t'}}}",
     .error = RPC "'id':$I,'error':{'code':-32000,'message':'no','data':{'code':$V,'message':'no'}}}",
     .chunk = RPC "'method':'streamChunk','params':{'requestId':$I,'chunk':$V}}",
     .strays = reflection_strays,
     .codes = status_codes},
    {.name = "rrq",
     .wire = &ew__wire_rrq,
     .framing = HOSTILE_LENGTH,
     .id_at = "/payload/request_id",
     .job_at = "/payload/job_id",
     .request = RRQ("request") RRQ_VERSION "'request_id':$I,'job_id':$J,'function_name':'$K','params':$V," RRQ_CONTEXT,
     .cancel = RRQ("cancel") RRQ_VERSION "'job_id':$J,'request_id':$I}}",
     .result = RRQ("response") "'job_id':$J,'request_id':$I,'status':'success','result':$V}}",
     .error = RRQ("response") "'job_id':$J,'request_id':$I,'status':'error','error':{'message':'no','code':$V}}}",
     .strays = rrq_strays,
     .codes = rrq_codes},
    {.name = "stepflow",
     .wire = &ew__wire_stepflow,
     .stdio = true,
     .handshake = true,
     .framing = HOSTILE_LINES,
     .id_at = "/id",
     .request = RPC "'id':$I,'method':'components/execute','params':{'component':'$K','input':$V}}",
     .cancel = RPC_CANCEL,
     .result = RPC "'id':$I,'result':{'output':$V}}",
     .error = RPC_ERROR,
     .strays = stepflow_strays,
     .codes = rpc_codes},
    {.name = "stepflow-http",
     .wire = &ew__wire_stepflow_http,
     .serve = &ew__wire_http,
     .guest = &ew__stepflow_guest,
     .handshake = true,
     .framing = HOSTILE_HTTP,
     .path = "/",
     .id_at = "/id",
     .request = RPC "'id':$I,'method':'components/execute','params':{'component':'$K','input':$V}}",
     .result = RPC "'id':$I,'result':{'output':$V}}",
     .error = RPC_ERROR,
     .strays = no_strays,
     .codes = rpc_codes},
};
const size_t n_hostile_wires = sizeof hostile_wires / sizeof *hostile_wires;
