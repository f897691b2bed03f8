/* SPDX-License-Identifier: Apache-2.0 */
/* Reads perf.data by running perf: the format is perf's own, and only perf finds the names. */
#ifndef HEARTH_CMD_FILES_PERF_DATA_H
#define HEARTH_CMD_FILES_PERF_DATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;

bool perf_data_is(const uint8_t *data, size_t len);

/* Appends what `perf script` prints of the file @path to @out. 0, or -errno with @error saying why. */
int perf_data_read(const char *path, struct buf *out, struct buf *error);

#endif
