/* SPDX-License-Identifier: Apache-2.0 */
/* A bare stream of deflate (RFC 1951), whose content has a known length. Any thread. */
#ifndef HEARTH_BASE_PACK_DEFLATE_H
#define HEARTH_BASE_PACK_DEFLATE_H

#include <stddef.h>

/* Unpacks the stream that @data, of @len_bytes, begins with into @out: @out_bytes, not one more or less. 0; -EBADMSG: it is
 * broken, cut, or of another length; -ENOMEM. */
int deflate_unpack(const void *data, size_t len_bytes, void *out, size_t out_bytes);

#endif
