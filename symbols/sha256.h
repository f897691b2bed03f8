/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-256 (FIPS 180-4), for the ids of files; nothing here is secret. */
#ifndef HEARTH_SYMBOLS_SHA256_H
#define HEARTH_SYMBOLS_SHA256_H

#include <stddef.h>
#include <stdint.h>

enum { SHA256_BYTES = 32 };

void sha256(const void *data, size_t len, uint8_t digest[SHA256_BYTES]);

#endif
