/* SPDX-License-Identifier: Apache-2.0 */
/* perf.data, by way of perf: its format is perf's own business, and only perf finds the names. */
#ifndef HEARTH_CMD_PERF_DATA_H
#define HEARTH_CMD_PERF_DATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;

bool perf_data_is(const uint8_t *data, size_t len);

/* Appends what `perf script` prints of the file @path to @out. 0, or -errno with @error saying why. */
int perf_data_read(const char *path, struct buf *out, struct buf *error);

#endif
