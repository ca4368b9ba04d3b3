/*
 * io/tls.h: TLS below a stream. The owner of a stream sees data, eof, drained and closed as ever and puts plain text into
 * its queue; between that queue and the socket stand a queue of records and OpenSSL, which neither reads nor writes by
 * itself. All on the loop thread, except where said.
 *
 *     owner's ew__out --seal--> raw --send--> socket        (a turn's bytes become few records)
 *     owner's data    <--open-- the loop's read buffer <--- socket
 */
#ifndef EW_IO_TLS_H
#define EW_IO_TLS_H

#include "io/stream.h"
#include <everywire/tls.h>

#define EW__TLS_PROBLEM 320

/* ---- options ---- */

/* Whether any option is set. Any thread. */
bool ew__tls_is_set(const ew_tls_options *options);
/* Copies all strings into the arena. EW_OK, EW_ENOMEM. */
ew_err ew__tls_copy(ew__arena *arena, const ew_tls_options *options, ew_tls_options *ret);

/* ---- contexts: certificates, and whom to trust ---- */

typedef struct ew__tls_context ew__tls_context;

typedef enum ew__tls_role {
    EW__TLS_LISTENS, /* it has a certificate of its own, and may ask for others' */
    EW__TLS_DIALS,   /* it checks others' certificates, and may have one */
} ew__tls_role;

/*
 * Reads the files that the options name. EW_OK; EW_EINVAL (what they say does not go together, or a file is not what it
 * should be), EW_EACCESS, EW_ENOTFOUND, EW_EUNSUPPORTED (no OpenSSL here), EW_ENOMEM: problem is a line for people. Any
 * thread.
 */
ew_err ew__tls_context_new(const ew_env *env, ew__tls_role role, const ew_tls_options *options,
                           ew__tls_context **ret_context, char problem[EW__TLS_PROBLEM]);
/*
 * Reads the files again, for connections that begin from now on; on failure all stays as it was. Errors as above. Any
 * thread.
 */
ew_err ew__tls_context_renew(ew__tls_context *context, const ew_tls_options *options, char problem[EW__TLS_PROBLEM]);
/* Connections may outlive it. NULL is fine. */
void ew__tls_context_free(ew__tls_context *context);

/* ---- streams ---- */

/*
 * A connection that ew__accept took is to speak TLS: before ew__stream_start. http: it will be HTTP, and other protocols
 * are refused if the client names any. EW_OK, EW_ENOMEM.
 */
ew_err ew__stream_secure_accepted(ew__stream *stream, ew__loop *loop, ew__tls_context *context, bool http);
/* The subject of the verified certificate that the client has shown; NULL: none. Lives as long as the stream. */
const char *ew__stream_client_cert(const ew__stream *stream);

/*
 * A socket that has been connected: shakes hands. done is called once: EW_OK (the stream is to be started, by
 * ew__stream_start), else it is closed (no handle is open any more) and detail says why; it lives until done returns.
 * ew__stream_close ends it before; its `why` comes back then. EW_OK; EW_ENOMEM: nothing has happened.
 */
typedef void (*ew__secured)(void *ud, ew_err err, const char *detail);
ew_err ew__stream_secure_dialled(ew__stream *stream, ew__loop *loop, const ew__where *where, ew__secured done,
                                 void *ud);

/* The log hears of a connection that TLS has ended, or should have begun; once in a while, however many there are. */
void ew__tls_tell(ew__stream *stream, const char *why);

/* ---- for stream.c ---- */

/* ew__stream_start: the connection's own queue of records. */
void ew__tls_start(ew__stream *stream);
/* Bytes have come. */
void ew__tls_input(ew__stream *stream, const uint8_t *bytes, size_t n);
/* The transport has ended without a word (EW_OK) or has failed. */
void ew__tls_end(ew__stream *stream, ew_err why);
/* Makes records of what the owner's queue has, up to a limit. Whether there are any to be sent. */
bool ew__tls_seal(ew__stream *stream);
/* The last record: that nothing follows. Whether there is something to be sent before the end. */
bool ew__tls_farewell(ew__stream *stream);
/* The stream is about to be closed: a peer that is owed nothing is told so, if the socket takes it at once. */
void ew__tls_closing(ew__stream *stream, ew_err why);
/* The handle is closed, and the owner is about to be told. */
void ew__tls_closed(ew__stream *stream);
/* The owner was told, and the stream may be gone. */
void ew__tls_free(struct ew__tls *tls);
/* What all connections of a loop share. */
void ew__tls_loop_done(ew__loop *loop);

#endif
