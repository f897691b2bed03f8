/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel's symbol list, then look-ups in whatever came out. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "symbols/symbols.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint64_t addrs[] = { 0, 1, 0xffffffff81000000, 0xffffffffc0000000, UINT64_MAX };
	AUTO_CLOSE int fd = memfd_create("fuzz", MFD_CLOEXEC);
	struct kallsyms *k;
	char path[64];

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		return 0;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (kallsyms_new(path, &k))
		return 0;
	for (size_t i = 0; i < ARRAY_LEN(addrs); i++) {
		const char *name, *module;
		uint64_t start;

		if (kallsyms_find(k, addrs[i], &name, &module, &start) == 0 && (start > addrs[i] || strlen(name) == 0))
			abort();
	}
	kallsyms_free(k);
	return 0;
}
