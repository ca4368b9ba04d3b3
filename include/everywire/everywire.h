/*
 * everywire/everywire.h: all of the public interface.
 *
 * Copyright 2026 The everywire authors. SPDX-License-Identifier: Apache-2.0
 */
#ifndef EVERYWIRE_EVERYWIRE_H
#define EVERYWIRE_EVERYWIRE_H

#include <everywire/access.h>
#include <everywire/app.h>
#include <everywire/base.h>
#include <everywire/call.h>
#include <everywire/client.h>
#include <everywire/env.h>
#include <everywire/format.h>
#include <everywire/frames.h>
#include <everywire/gateway.h>
#include <everywire/jobs.h>
#include <everywire/json.h>
#include <everywire/limits.h>
#include <everywire/status.h>
#include <everywire/tls.h>
#include <everywire/wires.h>

#endif
