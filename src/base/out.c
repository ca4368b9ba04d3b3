/*
 * base/out.c: see out.h. A reference sits in the chain as a block whose `start` is IS_REF; its data then holds a
 * struct ref. A whole block for a reference looks wasteful, but references are only made for large payloads, and so
 * the chain has one kind of link.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/out.h"
#include "base/util.h"

#define IS_REF UINT32_MAX

struct ref {
    const uint8_t *ptr;
    size_t len;
    ew__out_release release;
    void *ud;
};

static struct ref *ref_of(ew__block *block) {
    return (struct ref *)(void *)(block->data + ((16 - (uintptr_t)block->data % 16) % 16));
}

static void drop_head(ew__out *out) {
    ew__block *block = out->head;
    out->head = block->next;
    if (!out->head)
        out->tail = NULL;
    if (block->start == IS_REF)
        ref_of(block)->release(ref_of(block)->ud);
    ew__block_put(out->pool, block);
}

void ew__out_init(ew__out *out, ew__blocks *pool) {
    memset(out, 0, sizeof *out);
    out->pool = pool;
}

void ew__out_done(ew__out *out) {
    while (out->head)
        drop_head(out);
    out->bytes = 0;
}

static ew__block *append_block(ew__out *out) {
    ew__block *block = out->err ? NULL : ew__block_get(out->pool);
    if (!block) {
        if (!out->err)
            out->err = EW_ENOMEM;
        return NULL;
    }
    if (out->tail)
        out->tail->next = block;
    else
        out->head = block;
    out->tail = block;
    return block;
}

static size_t tail_room(const ew__out *out) {
    if (!out->tail || out->tail->start == IS_REF)
        return 0;
    return sizeof out->tail->data - out->tail->end;
}

uint8_t *ew__out_room(ew__out *out, size_t n) {
    if (out->err)
        return NULL;
    if (tail_room(out) < n && !append_block(out))
        return NULL;
    return out->tail->data + out->tail->end;
}

void ew__out_commit(ew__out *out, size_t used) {
    out->tail->end += (uint32_t)used;
    out->bytes += used;
}

void ew__out_add(ew__out *out, const void *bytes, size_t n) {
    const uint8_t *p = bytes;
    while (n > 0 && !out->err) {
        size_t room = tail_room(out);
        if (room == 0) {
            if (!append_block(out))
                return;
            room = tail_room(out);
        }
        size_t take = n < room ? n : room;
        memcpy(out->tail->data + out->tail->end, p, take);
        ew__out_commit(out, take);
        p += take;
        n -= take;
    }
}

void ew__out_ref(ew__out *out, const void *bytes, size_t n, ew__out_release release, void *ud) {
    ew__block *block = append_block(out);
    if (!block) {
        release(ud);
        return;
    }
    block->start = IS_REF;
    *ref_of(block) = (struct ref){bytes, n, release, ud};
    out->bytes += n;
}

unsigned ew__out_peek(const ew__out *out, ew__out_vec *vec, unsigned max) {
    unsigned n = 0;
    for (ew__block *block = out->head; block && n < max; block = block->next) {
        if (block->start == IS_REF)
            vec[n] = (ew__out_vec){ref_of(block)->ptr, ref_of(block)->len};
        else
            vec[n] = (ew__out_vec){block->data + block->start, block->end - block->start};
        if (vec[n].len > 0)
            n++;
    }
    return n;
}

void ew__out_consume(ew__out *out, size_t n) {
    out->bytes -= n;
    while (out->head) {
        ew__block *block = out->head;
        size_t have = block->start == IS_REF ? ref_of(block)->len : block->end - block->start;
        if (n < have) {
            if (block->start == IS_REF) {
                ref_of(block)->ptr += n;
                ref_of(block)->len -= n;
            } else {
                block->start += (uint32_t)n;
            }
            return;
        }
        n -= have;
        drop_head(out);
        if (n == 0 && out->bytes > 0)
            return;
    }
}
