/*
 * io/tls_context.c: certificates, keys and issuers, read from files. See tls.h.
 *
 * What is spoken: TLS 1.2 and 1.3, suites with forward secrecy and authenticated encryption only, no renegotiation, no
 * compression, no early data. Tickets resume sessions; OpenSSL makes and turns their keys, per context.
 * A listener that requires client certificates does not resume sessions: see disable_resumption.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "io/handle.h"
#include "io/tls_state.h"
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define SUITES_OF_1_2 "ECDHE+AESGCM:ECDHE+CHACHA20" /* those of 1.3 are all of that kind */
#define SESSION_CONTEXT "everywire"
#define HTTP_1_1 "\x08http/1.1"

/* While a context is being made. */
typedef struct making {
    const ew__openssl *lib;
    const ew_env *env;
    const ew_tls_options *options;
    SSL_CTX *ssl;
    char *problem;
} making;

static ew_err fail(const making *self, ew_err err, const char *format, ...) __attribute__((format(printf, 3, 4)));
static ew_err fail(const making *self, ew_err err, const char *format, ...) {
    va_list args;
    va_start(args, format);
    (void)vsnprintf(self->problem, EW__TLS_PROBLEM, format, args);
    va_end(args);
    return err;
}

/* ---- files ---- */

/* OpenSSL's own words about a file that is not there are of little use. */
static ew_err check_file(const making *self, const char *path, struct stat *ret) {
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0 || fstat(fd, ret) != 0) {
        int error = errno;
        ew_err err = error == ENOENT ? EW_ENOTFOUND : error == EACCES ? EW_EACCESS : EW_EIO;
        const char *why = error == ENOENT ? "there is no such file" : uv_strerror(uv_translate_sys_error(error));
        if (fd >= 0)
            close(fd);
        return fail(self, err, "cannot read %.200s: %s", path, why);
    }
    close(fd);
    return S_ISDIR(ret->st_mode) ? fail(self, EW_EINVAL, "cannot read %.200s: it is a folder", path) : EW_OK;
}

/* A key that others can read is not secret any more; but some supervisors hand it out so, and know why. */
static ew_err check_key_file(const making *self, const char *path) {
    struct stat file = {0};
    ew_err err = check_file(self, path, &file);
    if (err == EW_OK && (file.st_mode & (S_IROTH | S_IWOTH)) != 0)
        ew__log(self->env, EW_LOG_WARN, "tls",
                "every user of this machine can read the key %s (mode %04o): chmod 600 it", path,
                (unsigned)(file.st_mode & 07777));
    return err;
}

static int no_passphrase(char *buffer, int size, int writing, void *ud) {
    (void)writing;
    (void)ud;
    if (size > 0)
        buffer[0] = '\0';
    return 0; /* OpenSSL would ask the terminal */
}

static unsigned long last_reason(const ew__openssl *lib) {
    return (unsigned long)ERR_GET_REASON(lib->ERR_peek_error());
}

static ew_err read_key(const making *self) {
    const ew__openssl *lib = self->lib;
    const char *key = self->options->key, *certificate = self->options->certificate;
    ew_err err = check_key_file(self, key);
    if (err != EW_OK)
        return err;
    lib->SSL_CTX_set_default_passwd_cb(self->ssl, no_passphrase);
    lib->ERR_clear_error();
    bool read = lib->SSL_CTX_use_PrivateKey_file(self->ssl, key, SSL_FILETYPE_PEM) == 1;
    if (!read && last_reason(lib) != X509_R_KEY_VALUES_MISMATCH)
        return fail(self, EW_EINVAL, "%.120s holds no private key in PEM form that can be read without a passphrase",
                    key);
    if (!read || lib->SSL_CTX_check_private_key(self->ssl) != 1)
        return fail(self, EW_EINVAL, "the key %.120s does not belong to the certificate %.120s", key, certificate);
    return EW_OK;
}

/* It can be used all the same; those who check it will say so, and where to look should be known here, too. */
static void warn_expired(const making *self) {
    const ew__openssl *lib = self->lib;
    const X509 *own = lib->SSL_CTX_get0_certificate(self->ssl);
    if (own && lib->X509_cmp_current_time(lib->X509_get0_notAfter(own)) < 0)
        ew__log(self->env, EW_LOG_WARN, "tls", "the certificate %s has expired: peers will refuse it",
                self->options->certificate);
}

static ew_err read_certificate(const making *self) {
    const ew_tls_options *options = self->options;
    struct stat file;
    if (!options->certificate && !options->key)
        return EW_OK;
    if (!options->key)
        return fail(self, EW_EINVAL, "the certificate %.200s wants its key: --tls-key FILE", options->certificate);
    if (!options->certificate)
        return fail(self, EW_EINVAL, "the key %.200s wants its certificate: --tls-cert FILE", options->key);
    ew_err err = check_file(self, options->certificate, &file);
    if (err != EW_OK)
        return err;
    if (self->lib->SSL_CTX_use_certificate_chain_file(self->ssl, options->certificate) != 1)
        return fail(self, EW_EINVAL, "%.200s holds no certificate in PEM form, or one that is too weak",
                    options->certificate);
    err = read_key(self);
    if (err == EW_OK)
        warn_expired(self);
    return err;
}

static ew_err read_issuers(const making *self, const char *path) {
    struct stat file;
    ew_err err = check_file(self, path, &file);
    if (err == EW_OK && self->lib->SSL_CTX_load_verify_file(self->ssl, path) != 1)
        err = fail(self, EW_EINVAL, "%.200s holds no certificates of issuers in PEM form", path);
    return err;
}

/* ---- the two roles ---- */

/* What is offered beside HTTP/1.1 we do not speak; a client that names no protocol may speak any. */
static int on_protocols(SSL *ssl, const unsigned char **out, unsigned char *out_size, const unsigned char *offered,
                        unsigned int n, void *arg) {
    const ew__openssl *lib = arg;
    const ew__tls *tls = lib->SSL_get_ex_data(ssl, 0);
    if (!tls->http)
        return SSL_TLSEXT_ERR_NOACK;
    for (unsigned i = 0; i < n && offered[i] < n - i; i += 1u + offered[i]) {
        if (offered[i] == sizeof HTTP_1_1 - 2 && memcmp(offered + i, HTTP_1_1, sizeof HTTP_1_1 - 1) == 0) {
            *out = offered + i + 1;
            *out_size = offered[i];
            return SSL_TLSEXT_ERR_OK;
        }
    }
    return SSL_TLSEXT_ERR_ALERT_FATAL;
}

/*
 * A resumed session skips the check of the client's certificate, so a certificate that has expired
 * since the first handshake would pass. TLS 1.2 and 1.3 need one setting each; the session cache is
 * always off.
 */
static bool disable_resumption(const making *self) {
    (void)self->lib->SSL_CTX_set_options(self->ssl, SSL_OP_NO_TICKET);
    return self->lib->SSL_CTX_set_num_tickets(self->ssl, 0) == 1;
}

static ew_err prepare_listening(const making *self) {
    const ew__openssl *lib = self->lib;
    const ew_tls_options *options = self->options;
    if (!options->certificate && !options->key)
        return fail(self, EW_EINVAL, "a TLS listener wants a certificate: --tls-cert FILE --tls-key FILE");
    lib->SSL_CTX_set_alpn_select_cb(self->ssl, on_protocols, (void *)(uintptr_t)lib);
    (void)lib->SSL_CTX_set_session_id_context(self->ssl, (const unsigned char *)SESSION_CONTEXT,
                                              sizeof SESSION_CONTEXT - 1);
    if (!options->client_ca)
        return EW_OK;
    ew_err err = read_issuers(self, options->client_ca);
    if (err != EW_OK)
        return err;
    if (!disable_resumption(self))
        return fail(self, EW_EIO, "cannot set up TLS: OpenSSL refuses to disable session resumption");
    lib->SSL_CTX_set_client_CA_list(self->ssl, lib->SSL_load_client_CA_file(options->client_ca)); /* it takes them */
    lib->SSL_CTX_set_verify(self->ssl, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, ew__tls_on_verify);
    return EW_OK;
}

/* The server wants to see a certificate: whether we have one shows the context, what it thinks of it comes later. */
static int on_certificate_wanted(SSL *ssl, void *arg) {
    const ew__openssl *lib = arg;
    ew__tls *tls = lib->SSL_get_ex_data(ssl, 0);
    tls->asked = true;
    return 1;
}

static ew_err prepare_dialling(const making *self) {
    const ew__openssl *lib = self->lib;
    const ew_tls_options *options = self->options;
    lib->SSL_CTX_set_cert_cb(self->ssl, on_certificate_wanted, (void *)(uintptr_t)lib);
    if (options->insecure) { /* not to verify is what OpenSSL does by itself */
        ew__log(self->env, EW_LOG_WARN, "tls",
                "--tls-insecure (tls.insecure): whoever answers our dials is not verified");
        return EW_OK;
    }
    lib->SSL_CTX_set_verify(self->ssl, SSL_VERIFY_PEER, ew__tls_on_verify);
    if (options->ca)
        return read_issuers(self, options->ca);
    return lib->SSL_CTX_set_default_verify_paths(self->ssl) == 1
               ? EW_OK
               : fail(self, EW_EIO, "the system's certificates cannot be read: --tls-ca FILE names others");
}

/* ---- making ---- */

static bool set_rules(const making *self) {
    const ew__openssl *lib = self->lib;
    (void)lib->SSL_CTX_set_options(self->ssl, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_NO_QUERY_MTU |
                                                  SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_PRIORITIZE_CHACHA);
    (void)lib->SSL_CTX_ctrl(self->ssl, SSL_CTRL_MODE, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE, NULL);
    (void)lib->SSL_CTX_ctrl(self->ssl, SSL_CTRL_SET_SESS_CACHE_MODE, SSL_SESS_CACHE_OFF, NULL);
    return lib->SSL_CTX_ctrl(self->ssl, SSL_CTRL_SET_MIN_PROTO_VERSION, TLS1_2_VERSION, NULL) == 1 &&
           lib->SSL_CTX_ctrl(self->ssl, SSL_CTRL_SET_MAX_PROTO_VERSION, TLS1_3_VERSION, NULL) == 1 &&
           lib->SSL_CTX_set_cipher_list(self->ssl, SUITES_OF_1_2) == 1;
}

static ew_err make(making *self, ew__tls_role role, SSL_CTX **ret) {
    const ew__openssl *lib = self->lib;
    self->ssl = lib->SSL_CTX_new(role == EW__TLS_LISTENS ? lib->TLS_server_method() : lib->TLS_client_method());
    if (!self->ssl)
        return fail(self, EW_ENOMEM, "out of memory");
    ew_err err = set_rules(self) ? EW_OK : fail(self, EW_EIO, "OpenSSL here speaks neither TLS 1.2 nor TLS 1.3");
    if (err == EW_OK)
        err = read_certificate(self);
    if (err == EW_OK)
        err = role == EW__TLS_LISTENS ? prepare_listening(self) : prepare_dialling(self);
    lib->ERR_clear_error();
    if (err != EW_OK)
        lib->SSL_CTX_free(self->ssl);
    else
        *ret = self->ssl;
    return err;
}

ew_err ew__tls_context_new(const ew_env *env, ew__tls_role role, const ew_tls_options *options,
                           ew__tls_context **ret_context, char problem[EW__TLS_PROBLEM]) {
    const char *why;
    const ew__openssl *lib = ew__openssl_get(&why);
    making self = {.lib = lib, .env = env, .options = options, .problem = problem};
    if (!lib)
        return fail(&self, EW_EUNSUPPORTED, "%s", why);
    ew__tls_context *context = ew__zalloc(env, sizeof *context);
    if (!context)
        return fail(&self, EW_ENOMEM, "out of memory");
    context->lib = lib;
    context->env = env;
    context->role = role;
    context->has_cert = options->certificate != NULL;
    ew_err err = make(&self, role, &context->ssl);
    if (err != EW_OK) {
        ew__free(env, context, sizeof *context);
        return err;
    }
    pthread_mutex_init(&context->lock, NULL);
    *ret_context = context;
    return EW_OK;
}

ew_err ew__tls_context_renew(ew__tls_context *context, const ew_tls_options *options, char problem[EW__TLS_PROBLEM]) {
    making self = {.lib = context->lib, .env = context->env, .options = options, .problem = problem};
    SSL_CTX *fresh = NULL;
    ew_err err = make(&self, context->role, &fresh);
    if (err != EW_OK)
        return err;
    pthread_mutex_lock(&context->lock);
    SSL_CTX *old = context->ssl;
    context->ssl = fresh;
    context->has_cert = options->certificate != NULL;
    pthread_mutex_unlock(&context->lock);
    context->lib->SSL_CTX_free(old); /* connections have references of their own */
    return EW_OK;
}

void ew__tls_context_free(ew__tls_context *context) {
    if (!context)
        return;
    context->lib->SSL_CTX_free(context->ssl);
    pthread_mutex_destroy(&context->lock);
    ew__free(context->env, context, sizeof *context);
}

/* ---- options ---- */

bool ew__tls_is_set(const ew_tls_options *options) {
    return options->certificate || options->key || options->ca || options->client_ca || options->insecure;
}

static bool copy_one(ew__arena *arena, const char *text, const char **ret) {
    *ret = text ? ew__arena_copy(arena, text, strlen(text) + 1) : NULL;
    return !text || *ret;
}

ew_err ew__tls_copy(ew__arena *arena, const ew_tls_options *options, ew_tls_options *ret) {
    bool ok = copy_one(arena, options->certificate, &ret->certificate) && copy_one(arena, options->key, &ret->key) &&
              copy_one(arena, options->ca, &ret->ca) && copy_one(arena, options->client_ca, &ret->client_ca);
    ret->insecure = options->insecure;
    return ok ? EW_OK : EW_ENOMEM;
}
