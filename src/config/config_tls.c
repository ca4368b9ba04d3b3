/*
 * config/config_tls.c: what a configuration file may say of TLS, for all of it and for an import. See config.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "config/config.h"

#define TLS(member)                                                                                                    \
    .offset = offsetof(ew__config_tls, options.member), .size = sizeof(((ew__config_tls *)NULL)->options.member)

static const ew__field fields[] = {
    {.name = "certificate",
     .type = EW__FIELD_PATH,
     TLS(certificate),
     .help = "ours, PEM, with the chain behind it: listeners show it, and so do dials that are asked"},
    {.name = "key", .type = EW__FIELD_PATH, TLS(key), .help = "its private key, PEM, without a passphrase"},
    {.name = "ca",
     .type = EW__FIELD_PATH,
     TLS(ca),
     .usual = "the system's",
     .help = "PEM: issuers that are trusted when we dial"},
    {.name = "client_ca",
     .type = EW__FIELD_PATH,
     TLS(client_ca),
     .help = "PEM: who dials us must show a certificate of one of these issuers"},
    {.name = "insecure",
     .type = EW__FIELD_BOOL,
     TLS(insecure),
     .usual = "false",
     .help = "when we dial, take any certificate: for experiments only"},
    {.name = NULL},
};

const ew__group ew__config_tls_group = {
    .title = "tls",
    .help =
        "For listeners, managers and imports that speak TLS; an import may have its own. SIGHUP reads the files again.",
    .size = sizeof(ew__config_tls),
    .fields = fields,
};
