/*
 * frame/ws_decoder.c: wslay's frame layer. It asks for bytes by a callback; it is given those of one frame only, so
 * that between two frames its buffer is empty and the decoder may serve another connection.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "frame/ws_decoder.h"

#include <sys/types.h>
#include <wslay/wslay.h>

#include "base/mem.h"
#include "base/util.h"

#define DECODERS_MAX 4 /* kept for reuse */

static ssize_t give_bytes(uint8_t *buf, size_t len, int flags, void *user_data) {
    ew__ws_decoder *decoder = user_data;
    (void)flags;
    size_t n = len < decoder->in_len ? len : decoder->in_len;
    if (n == 0) {
        return -1; /* wslay then says that it wants more */
    }
    memcpy(buf, decoder->in, n);
    decoder->in += n;
    decoder->in_len -= n;
    return (ssize_t)n;
}

static ew__ws_decoder *new_decoder(const ew_env *env) {
    const struct wslay_frame_callbacks callbacks = {.recv_callback = give_bytes};
    ew__ws_decoder *decoder = ew__zalloc(env, sizeof(*decoder));
    wslay_frame_context_ptr context;
    if (decoder == NULL) {
        return NULL;
    }
    if (wslay_frame_context_init(&context, &callbacks, decoder) != 0) {
        ew__free(env, decoder, sizeof(*decoder));
        return NULL;
    }
    decoder->context = context;
    return decoder;
}

static void free_decoder(const ew_env *env, ew__ws_decoder *decoder) {
    wslay_frame_context_free(decoder->context);
    ew__free(env, decoder, sizeof(*decoder));
}

ew__ws_decoder *ew__ws_decoder_get(ew__ws_scratch *scratch) {
    ew__ws_decoder *decoder = scratch->decoders;
    if (decoder == NULL) {
        return new_decoder(scratch->env);
    }
    scratch->decoders = decoder->next;
    scratch->n_decoders--;
    return decoder;
}

void ew__ws_decoder_put(ew__ws_scratch *scratch, ew__ws_decoder *decoder, bool whole) {
    if (!whole || scratch->n_decoders >= DECODERS_MAX) {
        free_decoder(scratch->env, decoder);
        return;
    }
    decoder->next = scratch->decoders;
    scratch->decoders = decoder;
    scratch->n_decoders++;
}

/* Whether wslay understood the head as the guard did. */
static bool is_same(const ew__ws_frame *frame, const struct wslay_frame_iocb *io) {
    return io->opcode == frame->opcode && io->fin == frame->fin && io->rsv == 0 && io->mask == frame->masked &&
           io->payload_length == frame->length;
}

bool ew__ws_decoder_piece(ew__ws_decoder *decoder, ew_str *ret_piece) {
    struct wslay_frame_iocb io;
    *ret_piece = ew__str(NULL, 0);
    ssize_t n = wslay_frame_recv(decoder->context, &io);
    if (n == WSLAY_ERR_WANT_READ) {
        return true;
    }
    if (n < 0 || !is_same(&decoder->frame, &io)) {
        return false;
    }
    *ret_piece = ew__str(io.data, io.data_length);
    return true;
}

void ew__ws_decoder_feed(ew__ws_decoder *decoder, const uint8_t *bytes, size_t n) {
    decoder->in = bytes;
    decoder->in_len = n;
}

bool ew__ws_decoder_begin(ew__ws_decoder *decoder, const ew__ws_frame *frame, const uint8_t *head, size_t n) {
    ew_str none;
    decoder->frame = *frame;
    decoder->n_control = 0;
    ew__ws_decoder_feed(decoder, head, n);
    return ew__ws_decoder_piece(decoder, &none) && none.len == 0 && decoder->in_len == 0;
}

/* ---- the scratch of a loop ---- */

void ew__ws_scratch_init(ew__ws_scratch *scratch, const ew_env *env) {
    scratch->env = env;
    scratch->decoders = NULL;
    scratch->memory = NULL;
    scratch->memory_cap = 0;
    scratch->n_decoders = 0;
    scratch->n_keys = 0;
}

void ew__ws_scratch_done(ew__ws_scratch *scratch) {
    while (scratch->decoders != NULL) {
        ew__ws_decoder *decoder = scratch->decoders;
        scratch->decoders = decoder->next;
        free_decoder(scratch->env, decoder);
    }
    ew__free(scratch->env, scratch->memory, scratch->memory_cap);
    ew__ws_scratch_init(scratch, scratch->env);
}
