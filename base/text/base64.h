/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes as letters (RFC 4648, section 4). Stateless. */
#ifndef HEARTH_BASE_TEXT_BASE64_H
#define HEARTH_BASE_TEXT_BASE64_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;

/* Appends the @len bytes of @data, padded with "=". */
void base64_append(struct buf *out, const void *data, size_t len);

/*
 * Decodes the @len characters of @text, padded or not, also with the letters for URLs ("-", "_"). @out: room for @len bytes,
 * of which *@len_ret are used. False: it is no base64.
 */
bool base64_decode(const char *text, size_t len, uint8_t *out, size_t *len_ret);

#endif
