/*
 * frame/sha1.h: SHA-1 (FIPS 180-4) of a short text. WebSocket asks for it in its opening handshake, where it protects
 * nothing: not for use elsewhere.
 * May include: base.
 */
#ifndef EW_FRAME_SHA1_H
#define EW_FRAME_SHA1_H

#include <everywire/base.h>

#define EW__SHA1_SIZE 20

void ew__sha1(ew_str text, uint8_t out[EW__SHA1_SIZE]);

#endif
