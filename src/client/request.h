/*
 * client/request.h: what the two files of requests share. Used inside src/api only.
 */
#ifndef EW_CLIENT_REQUEST_H
#define EW_CLIENT_REQUEST_H

#include "client/client.h"

void ew__request_unref(ew_request *request);

/*
 * A request that is opened on executor by its way (the first callee of its call), from any thread. It has one reference for
 * the caller beside its own; callbacks come on executor's thread. EW_OK, EW_ENOMEM.
 */
ew_err ew__request_make(ew__executor *executor, const ew_request_options *options, const ew__callee_ops *way,
                        void *way_ud, ew_request **ret_request);
void ew__request_open(ew_request *request);    /* at once on executor's thread, else by a letter */
void ew__request_discard(ew_request *request); /* it was not opened: both references go */
/* ew_request_cancel with a reason; at once on executor's thread. */
void ew__request_cancel(ew_request *request, ew__cancel_why why);
/* Posts a letter to executor, unless the request has ended. Whether it did. Any thread. */
bool ew__request_post(ew_request *request, ew__task *task);

/* request_input.c. */
/* ew_request_send and ew_request_send_end for a payload that was validated already; no letter on executor's thread. */
ew_err ew__request_input(ew_request *request, ew_str json, bool end);
/* Loop thread. */
void ew__request_input_room(ew_request *request); /* the wire takes input again */
void ew__request_drop_input(ew_request *request); /* the call has ended: what waits is freed, who waits is told */

#endif
