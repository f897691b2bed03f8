/* SPDX-License-Identifier: Apache-2.0 */
/* Captures that end in the middle: the writer was killed, the disk was full, the copy is incomplete. */
#ifndef HEARTH_PROTO_OTLP_CUT_H
#define HEARTH_PROTO_OTLP_CUT_H

#include <stddef.h>
#include <stdint.h>

/*
 * How many bytes of @data, a stream of ProfilesData messages as the file sink writes it, stand before the cut: up to the end
 * of the last whole message (each ends with its dictionary). 0 when there is none. Looks at the top level only; what it
 * returns still has to be decoded.
 */
size_t otlp_whole_bytes(const uint8_t *data, size_t len);

#endif
