/*
 * api/request.h: what the two files of requests share. Used inside src/api only.
 */
#ifndef EW_API_REQUEST_H
#define EW_API_REQUEST_H

#include "api/client.h"

void ew__request_unref(ew_request *request);

/* request_input.c; loop thread. */
void ew__request_input_room(ew_request *request); /* the wire takes input again */
void ew__request_drop_input(ew_request *request); /* the call has ended: what waits is freed, who waits is told */

#endif
