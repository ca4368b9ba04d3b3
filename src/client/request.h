/*
 * client/request.h: what the two files of requests share.
 */
#ifndef EW_CLIENT_REQUEST_H
#define EW_CLIENT_REQUEST_H

#include "client/client.h"

void ew__request_unref(ew_request *request);

/* request_input.c. Loop thread. */
void ew__request_input_room(ew_request *request); /* the wire takes input again */
void ew__request_drop_input(ew_request *request); /* the call has ended: what waits is freed, who waits is told */

#endif
