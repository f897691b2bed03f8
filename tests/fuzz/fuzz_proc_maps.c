/* SPDX-License-Identifier: Apache-2.0 */
/* The maps parser: each line of the input in a block of its own, so that reading past its end is seen. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/proc/proc_maps.h"
#include "base/cleanup.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void parse(const uint8_t *line, size_t len)
{
	AUTO_FREE char *copy = malloc(len);
	struct proc_map map;

	if (!copy)
		return;
	if (len)
		memcpy(copy, line, len);
	if (proc_maps_parse_line(copy, len, &map))
		return;
	if (map.start >= map.end || map.path + map.path_len != copy + len || (map.path_len && map.path[0] == ' '))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	while (size) {
		const uint8_t *newline = memchr(data, '\n', size);
		size_t len = newline ? (size_t)(newline - data) : size;

		parse(data, len);
		if (!newline)
			break;
		data += len + 1;
		size -= len + 1;
	}
	return 0;
}
