/* SPDX-License-Identifier: Apache-2.0 */
/* The texts in gRPC's headers and trailers. Stateless. */
#ifndef HEARTH_BACKEND_GRPC_GRPC_TEXT_H
#define HEARTH_BACKEND_GRPC_GRPC_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;

/* grpc-timeout: one to eight digits and one of H M S m u n. 0 or -EINVAL. */
int grpc_parse_timeout(const char *text, size_t len, uint64_t *ns_ret);

/* Is it application/grpc or application/grpc+proto, with or without parameters? Other payloads (+json) are none of ours. */
bool grpc_is_content_type(const char *text, size_t len);

/* Appends @text as grpc-message has it: printable ASCII as it is, other bytes and % as %XX. */
void grpc_append_message(const char *text, struct buf *out);

/* Appends base64 without padding, as values of "-bin" headers have it. */
void grpc_append_base64(const void *data, size_t len, struct buf *out);

#endif
