/* SPDX-License-Identifier: Apache-2.0 */
/* Writing all of something, whatever the descriptor is. */
#ifndef HEARTH_SINKS_WRITE_ALL_H
#define HEARTH_SINKS_WRITE_ALL_H

#include <stddef.h>
#include <stdint.h>

/* Waits where the descriptor does not block. 0 or -errno; then a part may have been written. */
int write_all(int fd, const uint8_t *data, size_t len);

#endif
