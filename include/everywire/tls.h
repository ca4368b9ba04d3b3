/*
 * everywire/tls.h: TLS 1.2 and 1.3 for listeners and targets: whose certificates, and whom to trust. docs/tls.md tells
 * how they are used.
 *
 * Copyright 2026 The everywire authors. SPDX-License-Identifier: Apache-2.0
 */
#ifndef EVERYWIRE_TLS_H
#define EVERYWIRE_TLS_H

#include <everywire/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Everything is optional; zero means the default. Files are PEM; their names are copied. */
typedef struct ew_tls_options {
    const char *certificate; /* ours, with the chain behind it: listeners show it, and so do dials that are asked */
    const char *key;         /* its private key, without a passphrase */
    const char *ca;          /* issuers that are trusted when we dial; NULL: the system's */
    const char *client_ca;   /* who dials us must show a certificate of one of these issuers; NULL: nobody must */
    bool insecure;           /* when we dial, take any certificate: for experiments only */
} ew_tls_options;

#ifdef __cplusplus
}
#endif
#endif
