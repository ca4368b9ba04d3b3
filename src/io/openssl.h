/*
 * io/openssl.h: the functions of OpenSSL that TLS needs. The library is loaded when TLS is used for the first time:
 * loading it with the program would double the time to start and the memory of all those who do not need it.
 */
#ifndef EW_IO_OPENSSL_H
#define EW_IO_OPENSSL_H

#include <everywire/base.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#define EW__OPENSSL_FUNCTIONS(X)                                                                                       \
    X(ASN1_STRING_get0_data)                                                                                           \
    X(ASN1_STRING_length)                                                                                              \
    X(ASN1_TIME_to_tm)                                                                                                 \
    X(BIO_clear_flags)                                                                                                 \
    X(BIO_ctrl)                                                                                                        \
    X(BIO_free)                                                                                                        \
    X(BIO_get_data)                                                                                                    \
    X(BIO_meth_new)                                                                                                    \
    X(BIO_meth_set_ctrl)                                                                                               \
    X(BIO_meth_set_read)                                                                                               \
    X(BIO_meth_set_write)                                                                                              \
    X(BIO_new)                                                                                                         \
    X(BIO_s_mem)                                                                                                       \
    X(BIO_set_data)                                                                                                    \
    X(BIO_set_flags)                                                                                                   \
    X(BIO_set_init)                                                                                                    \
    X(ERR_clear_error)                                                                                                 \
    X(ERR_peek_error)                                                                                                  \
    X(ERR_reason_error_string)                                                                                         \
    X(GENERAL_NAMES_free)                                                                                              \
    X(OPENSSL_init_ssl)                                                                                                \
    X(OPENSSL_sk_num)                                                                                                  \
    X(OPENSSL_sk_value)                                                                                                \
    X(SSL_CTX_check_private_key)                                                                                       \
    X(SSL_CTX_ctrl)                                                                                                    \
    X(SSL_CTX_free)                                                                                                    \
    X(SSL_CTX_get0_certificate)                                                                                        \
    X(SSL_CTX_load_verify_file)                                                                                        \
    X(SSL_CTX_new)                                                                                                     \
    X(SSL_CTX_set_alpn_select_cb)                                                                                      \
    X(SSL_CTX_set_cert_cb)                                                                                             \
    X(SSL_CTX_set_cipher_list)                                                                                         \
    X(SSL_CTX_set_client_CA_list)                                                                                      \
    X(SSL_CTX_set_default_passwd_cb)                                                                                   \
    X(SSL_CTX_set_default_verify_paths)                                                                                \
    X(SSL_CTX_set_num_tickets)                                                                                         \
    X(SSL_CTX_set_options)                                                                                             \
    X(SSL_CTX_set_session_id_context)                                                                                  \
    X(SSL_CTX_set_verify)                                                                                              \
    X(SSL_CTX_use_PrivateKey_file)                                                                                     \
    X(SSL_CTX_use_certificate_chain_file)                                                                              \
    X(SSL_ctrl)                                                                                                        \
    X(SSL_do_handshake)                                                                                                \
    X(SSL_free)                                                                                                        \
    X(SSL_get0_param)                                                                                                  \
    X(SSL_get1_peer_certificate)                                                                                       \
    X(SSL_get_error)                                                                                                   \
    X(SSL_get_ex_data)                                                                                                 \
    X(SSL_get_ex_data_X509_STORE_CTX_idx)                                                                              \
    X(SSL_load_client_CA_file)                                                                                         \
    X(SSL_new)                                                                                                         \
    X(SSL_read_ex)                                                                                                     \
    X(SSL_set1_host)                                                                                                   \
    X(SSL_set_accept_state)                                                                                            \
    X(SSL_set_alpn_protos)                                                                                             \
    X(SSL_set_bio)                                                                                                     \
    X(SSL_set_connect_state)                                                                                           \
    X(SSL_set_ex_data)                                                                                                 \
    X(SSL_set_hostflags)                                                                                               \
    X(SSL_shutdown)                                                                                                    \
    X(SSL_version)                                                                                                     \
    X(SSL_write_ex)                                                                                                    \
    X(TLS_client_method)                                                                                               \
    X(TLS_server_method)                                                                                               \
    X(X509_NAME_print_ex)                                                                                              \
    X(X509_STORE_CTX_get_current_cert)                                                                                 \
    X(X509_STORE_CTX_get_error)                                                                                        \
    X(X509_STORE_CTX_get_ex_data)                                                                                      \
    X(X509_VERIFY_PARAM_set1_ip_asc)                                                                                   \
    X(X509_cmp_current_time)                                                                                           \
    X(X509_free)                                                                                                       \
    X(X509_get0_notAfter)                                                                                              \
    X(X509_get0_notBefore)                                                                                             \
    X(X509_get_ext_d2i)                                                                                                \
    X(X509_get_issuer_name)                                                                                            \
    X(X509_get_subject_name)                                                                                           \
    X(X509_verify_cert_error_string)

typedef struct ew__openssl {
#define EW__OPENSSL_MEMBER(name) __typeof__(name) *name;
    EW__OPENSSL_FUNCTIONS(EW__OPENSSL_MEMBER)
#undef EW__OPENSSL_MEMBER
} ew__openssl;

/*
 * The library, loaded once in a process and never unloaded (it keeps state of its own, which other users of it share);
 * nothing of it is registered to run at exit. NULL: it could not be, and *ret_problem (a line for people, which stays)
 * says why. Any thread.
 */
const ew__openssl *ew__openssl_get(const char **ret_problem);

#endif
