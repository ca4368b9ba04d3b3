/*
 * io/tls_fault.c: what is wrong with a certificate or a handshake, in plain words that say what to do next.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/buf.h"
#include "io/tls_state.h"
#include <arpa/inet.h>
#include <stdio.h>
#include <time.h>

#define SUBJECT_MAX 1024
#define NAME_MAX_SHOWN 100
#define TRUST_HINT "--tls-ca FILE (tls.ca) names whom to trust"

/* ---- names and dates ---- */

/* Calls with the text of a name, which lasts for the call. */
static ew_err with_name(const ew__openssl *lib, const X509_NAME *name, ew_err (*use)(ew_str text, void *ud), void *ud) {
    BIO *text = lib->BIO_new(lib->BIO_s_mem());
    char *bytes = NULL;
    ew_err err = EW_ENOMEM;
    if (text && lib->X509_NAME_print_ex(text, name, 0, XN_FLAG_RFC2253) >= 0) {
        long n = lib->BIO_ctrl(text, BIO_CTRL_INFO, 0, (void *)&bytes);
        err = use(ew__str(bytes ? bytes : "", n > 0 ? (size_t)n : 0), ud);
    }
    (void)lib->BIO_free(text);
    return err;
}

static ew_err keep_short(ew_str text, void *ud) {
    (void)snprintf(ud, NAME_MAX_SHOWN, "%.*s", (int)text.len, text.ptr);
    return EW_OK;
}

static void write_name(const ew__openssl *lib, const X509_NAME *name, char out[NAME_MAX_SHOWN]) {
    if (with_name(lib, name, keep_short, out) != EW_OK || !out[0])
        (void)snprintf(out, NAME_MAX_SHOWN, "somebody without a name");
}

typedef struct copying {
    const ew_env *env;
    char **ret;
    size_t *ret_size;
} copying;

/* A name with a zero byte in it would look like another one. */
static ew_err keep_whole(ew_str text, void *ud) {
    const copying *self = ud;
    if (text.len > SUBJECT_MAX || memchr(text.ptr, '\0', text.len))
        return EW_ELIMIT;
    *self->ret = ew__alloc(self->env, text.len + 1);
    if (!*self->ret)
        return EW_ENOMEM;
    memcpy(*self->ret, text.ptr, text.len);
    (*self->ret)[text.len] = '\0';
    *self->ret_size = text.len + 1;
    return EW_OK;
}

ew_err ew__tls_subject(const ew__openssl *lib, const ew_env *env, X509 *certificate, char **ret, size_t *ret_size) {
    copying self = {env, ret, ret_size};
    return with_name(lib, lib->X509_get_subject_name(certificate), keep_whole, &self);
}

static void write_date(const ew__openssl *lib, const ASN1_TIME *when, char *out, size_t size) {
    struct tm tm;
    if (!when || lib->ASN1_TIME_to_tm(when, &tm) != 1 || strftime(out, size, "%Y-%m-%d %H:%M:%S UTC", &tm) == 0)
        (void)snprintf(out, size, "a date that cannot be read");
}

static void write_address(const unsigned char *bytes, int n, char *out, size_t size) {
    if (!inet_ntop(n == 16 ? AF_INET6 : AF_INET, bytes, out, (socklen_t)size) || (n != 4 && n != 16))
        (void)snprintf(out, size, "?");
}

/* "a.example, 127.0.0.1": the names by which a server may be called, as many as there is room for. */
static void write_names(const ew__openssl *lib, const X509 *certificate, char *out, size_t size) {
    GENERAL_NAMES *names = lib->X509_get_ext_d2i(certificate, NID_subject_alt_name, NULL, NULL);
    int n = names ? lib->OPENSSL_sk_num((const OPENSSL_STACK *)names) : 0;
    size_t used = 0;
    out[0] = '\0';
    for (int i = 0; i < n && used + 4 < size; i++) {
        const GENERAL_NAME *name = lib->OPENSSL_sk_value((const OPENSSL_STACK *)names, i);
        char address[INET6_ADDRSTRLEN];
        const char *between = used ? ", " : "";
        int wrote = 0;
        if (name->type == GEN_DNS)
            wrote = snprintf(out + used, size - used, "%s%.*s", between, lib->ASN1_STRING_length(name->d.dNSName),
                             (const char *)lib->ASN1_STRING_get0_data(name->d.dNSName));
        if (name->type == GEN_IPADD) {
            write_address(lib->ASN1_STRING_get0_data(name->d.iPAddress), lib->ASN1_STRING_length(name->d.iPAddress),
                          address, sizeof address);
            wrote = snprintf(out + used, size - used, "%s%s", between, address);
        }
        used = wrote > 0 && (size_t)wrote < size - used ? used + (size_t)wrote : wrote > 0 ? size : used;
    }
    if (names)
        lib->GENERAL_NAMES_free(names);
    if (!out[0])
        (void)snprintf(out, size, "no host (it has no subjectAltName)");
}

/* ---- certificates ---- */

static void describe_wrong_host(ew__tls *tls, const X509 *certificate) {
    char names[160];
    write_names(tls->lib, certificate, names, sizeof names);
    (void)snprintf(tls->fault, sizeof tls->fault, "the server's certificate is for %s, not for %.80s", names,
                   tls->host);
}

static void describe_date(ew__tls *tls, const X509 *certificate, const char *whose, bool expired) {
    const ew__openssl *lib = tls->lib;
    char date[64], subject[NAME_MAX_SHOWN];
    write_date(lib, expired ? lib->X509_get0_notAfter(certificate) : lib->X509_get0_notBefore(certificate), date,
               sizeof date);
    write_name(lib, lib->X509_get_subject_name(certificate), subject);
    (void)snprintf(tls->fault, sizeof tls->fault, "%s certificate %s %s (%s)", whose,
                   expired ? "expired on" : "is not valid before", date, subject);
}

static void describe_issuer(ew__tls *tls, const X509 *certificate, const char *whose) {
    char issuer[NAME_MAX_SHOWN];
    write_name(tls->lib, tls->lib->X509_get_issuer_name(certificate), issuer);
    (void)snprintf(tls->fault, sizeof tls->fault, "%s certificate is issued by %s, who is not trusted here%s%s", whose,
                   issuer, tls->serves ? "" : ": ", tls->serves ? "" : TRUST_HINT);
}

static void describe(ew__tls *tls, int error, const X509 *certificate) {
    const char *whose = tls->serves ? "the client's" : "the server's";
    switch (error) {
    case X509_V_ERR_CERT_HAS_EXPIRED:
    case X509_V_ERR_CERT_NOT_YET_VALID:
        describe_date(tls, certificate, whose, error == X509_V_ERR_CERT_HAS_EXPIRED);
        return;
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
        describe_wrong_host(tls, certificate);
        return;
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
        (void)snprintf(tls->fault, sizeof tls->fault, "%s certificate is self-signed and not trusted here%s%s", whose,
                       tls->serves ? "" : ": ", tls->serves ? "" : TRUST_HINT);
        return;
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
        describe_issuer(tls, certificate, whose);
        return;
    default:
        (void)snprintf(tls->fault, sizeof tls->fault, "%s certificate is not accepted: %s", whose,
                       tls->lib->X509_verify_cert_error_string(error));
    }
}

/* Without a library of its own to ask: the context has none either, but there is only one in a process. */
int ew__tls_on_verify(int ok, X509_STORE_CTX *store) {
    const char *why;
    const ew__openssl *lib = ew__openssl_get(&why);
    SSL *ssl = lib->X509_STORE_CTX_get_ex_data(store, lib->SSL_get_ex_data_X509_STORE_CTX_idx());
    ew__tls *tls = ssl ? lib->SSL_get_ex_data(ssl, 0) : NULL;
    const X509 *certificate = lib->X509_STORE_CTX_get_current_cert(store);
    if (!ok && tls && certificate && !tls->fault[0])
        describe(tls, lib->X509_STORE_CTX_get_error(store), certificate);
    return ok;
}

/* ---- handshakes ---- */

#define OLD_PEER "no common protocol: TLS 1.2 and 1.3 are spoken here"

/* What the other side has said as an alert about the certificate that we showed, or did not show. */
static const char *refusal(const ew__tls *tls, int reason) {
    switch (reason) {
    case SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED:
        return "the server demands a client certificate: --tls-cert FILE --tls-key FILE (tls.certificate, tls.key)";
    case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
        return tls->serves ? "the client does not trust the issuer of our certificate"
                           : "the server does not trust the issuer of our client certificate";
    case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED:
        return tls->serves ? "the client says that our certificate has expired"
                           : "the server says that our client certificate has expired";
    case SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED:
        return "the other side says that our certificate has been revoked";
    case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN:
    case SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE:
    case SSL_R_TLSV1_ALERT_ACCESS_DENIED:
        return tls->serves ? "the client does not accept our certificate"
                           : "the server does not accept our client certificate";
    default:
        return NULL;
    }
}

static const char *disagreement(const ew__tls *tls, int reason) {
    switch (reason) {
    case SSL_R_UNSUPPORTED_PROTOCOL:
    case SSL_R_WRONG_SSL_VERSION:
    case SSL_R_VERSION_TOO_LOW:
    case SSL_R_TLSV1_ALERT_PROTOCOL_VERSION:
    case SSL_R_NO_PROTOCOLS_AVAILABLE:
        return OLD_PEER;
    case SSL_R_NO_SHARED_CIPHER:
        return "no common cipher: only those with forward secrecy and authenticated encryption are spoken here";
    case SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE:
        return !tls->serves && tls->asked && !tls->has_cert
                   ? refusal(tls, SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED)
                   : "the other side refused the handshake: it found no common cipher or certificate";
    case SSL_R_NO_APPLICATION_PROTOCOL:
    case SSL_R_TLSV1_ALERT_NO_APPLICATION_PROTOCOL:
        return "no common application protocol: HTTP/1.1 is spoken here";
    case SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE:
        return "the client showed no certificate, and one is demanded here";
    case SSL_R_WRONG_VERSION_NUMBER:
    case SSL_R_HTTP_REQUEST:
    case SSL_R_UNEXPECTED_MESSAGE:
        return "what came is no TLS";
    default:
        return NULL;
    }
}

void ew__tls_explain(ew__tls *tls, char out[EW__TLS_PROBLEM]) {
    unsigned long error = tls->lib->ERR_peek_error();
    int reason = ERR_GET_REASON(error);
    const char *words = tls->fault[0] ? tls->fault : NULL;
    if (!words && error)
        words = refusal(tls, reason);
    if (!words && error)
        words = disagreement(tls, reason);
    if (!words && error)
        words = tls->lib->ERR_reason_error_string(error);
    (void)snprintf(out, EW__TLS_PROBLEM, "%s", words ? words : "the handshake failed");
}
