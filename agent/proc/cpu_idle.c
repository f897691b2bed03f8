/* SPDX-License-Identifier: Apache-2.0 */
/* The form: show_stat, fs/proc/stat.c. The CPUs' lines stand before all others but the sum's; the others can be long. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/proc/cpu_idle.h"
#include "agent/proc/proc_root.h"
#include "base/cleanup.h"
#include "base/clock.h"

bool cpu_idle_parse(const char *line, uint32_t *cpu, uint64_t *idle_ns)
{
	uint64_t idle, waiting, tick_ns = NSEC_PER_SEC / (uint64_t)sysconf(_SC_CLK_TCK);

	/* "cpu " is the sum, and %u would go on behind the blank. */
	if (strncmp(line, "cpu", 3) || line[3] < '0' || line[3] > '9' ||
	    sscanf(line + 3, "%" SCNu32 " %*u %*u %*u %" SCNu64 " %" SCNu64, cpu, &idle, &waiting) != 3)
		return false;
	*idle_ns = (idle + waiting) * tick_ns;
	return true;
}

int cpu_idle_each(void (*fn)(void *arg, uint32_t cpu, uint64_t idle_ns), void *arg)
{
	char path[PROC_PATH_BYTES], line[256];
	AUTO_FCLOSE FILE *f = NULL;
	uint64_t idle_ns;
	uint32_t cpu;

	snprintf(path, sizeof(path), "%s/stat", proc_root());
	f = fopen(path, "re");
	if (!f)
		return -errno;
	while (fgets(line, sizeof(line), f) && !strncmp(line, "cpu", 3))
		if (cpu_idle_parse(line, &cpu, &idle_ns))
			fn(arg, cpu, idle_ns);
	return 0;
}
