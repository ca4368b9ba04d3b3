/*
 * io/pump.h: a thread that copies between a descriptor that epoll does not take (a regular file, /dev/null) and a
 * socket that the loop can use. What is on its way is limited by the socket's buffer.
 */
#ifndef EW_IO_PUMP_H
#define EW_IO_PUMP_H

#include "io/loop.h"

typedef struct ew__pump ew__pump;

/*
 * Takes file (also on failure) and makes a socket for the loop: to read from if `reading`, else to write to. ended is
 * called once on the loop thread, when all is copied or a side is gone; the pump is freed then. EW_ENOMEM, EW_EIO.
 */
ew_err ew__pump_start(ew__loop *loop, int file, bool reading, void (*ended)(void *ud), void *ud, ew__pump **ret_pump,
                      int *ret_socket);
/* Nobody waits for it any more: ended will not be called. It still ends by itself, and is freed then. */
void ew__pump_forget(ew__pump *pump);
/*
 * The thread hangs in a read or write that nobody can end: forgets it. True: ended will not be called. False: it is
 * about to be called.
 */
bool ew__pump_abandon(ew__pump *pump);

#endif
