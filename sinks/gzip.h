/* SPDX-License-Identifier: Apache-2.0 */
/* Whole blocks in and out of gzip, as requests carry them. */
#ifndef HEARTH_SINKS_GZIP_H
#define HEARTH_SINKS_GZIP_H

#include <stddef.h>
#include <stdint.h>

/*
 * Compresses @data, with @room_bytes left free in front of the result. *@ret (the free room) is the caller's to free,
 * *@len_ret the length without it. 0, -E2BIG or -ENOMEM.
 */
int gzip_pack(const uint8_t *data, size_t len, size_t room_bytes, uint8_t **ret, size_t *len_ret);

/* The reverse, without room. 0; -EBADMSG: not one whole gzip stream; -E2BIG: more than @max_bytes; -ENOMEM. */
int gzip_unpack(const uint8_t *data, size_t len, size_t max_bytes, uint8_t **ret, size_t *len_ret);

#endif
