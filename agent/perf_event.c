/* SPDX-License-Identifier: Apache-2.0 */
/* Sampling events and CPUs. No state. */
#include <errno.h>
#include <string.h>
#include <sys/syscall.h>

#include "agent/perf_event.h"
#include "base/cleanup.h"
#include "base/clock.h"

/* perf's names (tools/perf: perf list), in the order shown to people. */
static const struct {
	const char *name;
	uint32_t type;
	uint64_t config;
} events[] = {
	{ "cpu-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK },
	{ "task-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK },
	{ "cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES },
	{ "cpu-cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES },
	{ "instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS },
	{ "cache-references", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_REFERENCES },
	{ "cache-misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES },
	{ "branches", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS },
	{ "branch-misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES },
	{ "page-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS },
	{ "minor-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MIN },
	{ "major-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MAJ },
	{ "context-switches", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES },
	{ "cpu-migrations", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS },
};

int perf_event_by_name(const char *name, struct perf_event_attr *attr)
{
	for (size_t i = 0; i < ARRAY_LEN(events); i++) {
		if (strcmp(events[i].name, name))
			continue;
		attr->type = events[i].type;
		attr->config = events[i].config;
		return 0;
	}
	return -EINVAL;
}

const char *perf_event_names(void)
{
	static char names[512];

	if (!names[0])
		for (size_t i = 0; i < ARRAY_LEN(events); i++)
			snprintf(names + strlen(names), sizeof(names) - strlen(names), "%s%s", i ? ", " : "",
				 events[i].name);
	return names;
}

int perf_event_open_cpu(const struct perf_event_attr *kind, uint32_t cpu, unsigned freq_hz)
{
	struct perf_event_attr attr = { .size = sizeof(attr),
					.type = kind->type,
					.config = kind->config,
					.disabled = 1,
					.sample_type = PERF_SAMPLE_RAW };
	int fd;

	if (attr.type == PERF_TYPE_SOFTWARE && attr.config == PERF_COUNT_SW_CPU_CLOCK) {
		attr.sample_period = NSEC_PER_SEC / freq_hz; /* an hrtimer: the period is time */
	} else {
		attr.freq = 1;
		attr.sample_freq = freq_hz;
	}
	fd = (int)syscall(SYS_perf_event_open, &attr, -1, (int)cpu, -1, PERF_FLAG_FD_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int cpu_list_parse(const char *text, uint32_t *cpus, size_t max)
{
	size_t count = 0;

	while (*text && *text != '\n') {
		char *end;
		unsigned long first = strtoul(text, &end, 10), last = first;

		if (end == text)
			return -EBADMSG;
		if (*end == '-') {
			text = end + 1;
			last = strtoul(text, &end, 10);
			if (end == text)
				return -EBADMSG;
		}
		if (last < first || last > 1u << 20)
			return -EBADMSG;
		for (; first <= last; first++) {
			if (count == max)
				return -ENOSPC;
			cpus[count++] = (uint32_t)first;
		}
		if (*end == ',')
			end++;
		else if (*end && *end != '\n')
			return -EBADMSG;
		text = end;
	}
	return (int)count;
}

int cpu_list_online(uint32_t *cpus, size_t max)
{
	AUTO_FCLOSE FILE *f = fopen("/sys/devices/system/cpu/online", "re");
	char text[4096];

	if (!f)
		return -errno;
	return fgets(text, sizeof(text), f) ? cpu_list_parse(text, cpus, max) : -EIO;
}
