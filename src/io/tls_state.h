/*
 * io/tls_state.h: what the files of TLS share: the state of one connection, and of a context.
 */
#ifndef EW_IO_TLS_STATE_H
#define EW_IO_TLS_STATE_H

#include "io/openssl.h"
#include "io/tls.h"
#include <pthread.h>

typedef enum ew__tls_state {
    EW__TLS_SHAKING,  /* hands */
    EW__TLS_SETTLING, /* done for us, but whether the server takes our certificate comes after that */
    EW__TLS_OPEN,
    EW__TLS_BROKEN, /* nothing can be sealed or opened any more */
} ew__tls_state;

typedef struct ew__tls {
    const ew__openssl *lib;
    const ew_env *env;
    SSL *ssl;
    ew__stream *stream; /* once it was started */
    ew__out raw;        /* records that wait to be sent */
    const uint8_t *in;  /* what has come, while it is being opened */
    size_t n_in;
    ew__timer timer; /* of the handshake */
    ew__secured done;
    void *ud;
    ew__out nothing;  /* stands for the owner's queue while there is no owner */
    size_t uncounted; /* bytes that have come since the last that were the owner's */
    uint8_t state;    /* ew__tls_state */
    bool serves;
    bool http;         /* what follows is HTTP */
    const char *plain; /* ew__where.tls_plain */
    bool begun;        /* something has come */
    bool asked;        /* dialled: the server wants to see our certificate */
    bool has_cert;     /* dialled: there is one */
    bool farewell;     /* said */
    char *client_cert;
    size_t client_cert_size;
    char host[256];              /* dialled: as in the target */
    char fault[EW__TLS_PROBLEM]; /* of the other side's certificate, once one was found */
} ew__tls;

struct ew__tls_context {
    const ew__openssl *lib;
    const ew_env *env;
    pthread_mutex_t lock; /* of ssl: it may be renewed */
    SSL_CTX *ssl;
    ew__tls_role role;
    bool has_cert;
};

/* ---- tls_fault.c: faults in plain words ---- */

/* OpenSSL asks here about each certificate of a chain: keeps what is wrong with the first bad one. */
int ew__tls_on_verify(int ok, X509_STORE_CTX *store);
/* Why a handshake has failed, by OpenSSL's error queue. Never empty. */
void ew__tls_explain(ew__tls *tls, char out[EW__TLS_PROBLEM]);
/* "CN=x,O=y", RFC 2253; the caller frees it. EW_OK, EW_ENOMEM, EW_ELIMIT: too long to be taken seriously. */
ew_err ew__tls_subject(const ew__openssl *lib, const ew_env *env, X509 *certificate, char **ret, size_t *ret_size);

#endif
