/*
 * handler/exec_line.h: what a line of a program's standard output means. Pure: no memory but what is asked for, no I/O.
 * May include: base, json.
 */
#ifndef EW_HANDLER_EXEC_LINE_H
#define EW_HANDLER_EXEC_LINE_H

#include "base/buf.h"
#include <everywire/status.h>

typedef enum ew__exec_line_kind {
    EW__EXEC_TEXT_LINE, /* none of the others: for people */
    EW__EXEC_CHUNK,     /* {"chunk":X} */
    EW__EXEC_RESULT,    /* {"result":X} */
    EW__EXEC_ERROR      /* {"error":"text"} or {"error":{...}} */
} ew__exec_line_kind;

/* line is without its end. *ret_value: X, a slice of the line that is valid JSON; not for text. */
ew__exec_line_kind ew__exec_line_read(ew_str line, ew_str *ret_value);

/*
 * The fault that the value of an error line stands for. What it points to is the line's, or in *text, which is empty
 * before and to be freed by the caller in any case. EW_OK; EW_ENOMEM: the message is missing.
 */
ew_err ew__exec_line_fault(ew_str value, ew__buf *text, ew_fault *ret);

#endif
