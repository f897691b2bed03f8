/* SPDX-License-Identifier: Apache-2.0 */
/* Sampling events and CPUs. No state. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "agent/config.h"
#include "agent/kernel/perf_event.h"
#include "agent/kernel/tracepoints.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text/nearest.h"

/* perf's names (tools/perf: perf list), in the order shown to people; those after the first of an event are other names of
 * it. */
static const struct {
	const char *name;
	uint32_t type;
	uint64_t config;
} events[] = {
	{ "cpu-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK },
	{ "task-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK },
	{ "page-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS },
	{ "faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS },
	{ "minor-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MIN },
	{ "major-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MAJ },
	{ "context-switches", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES },
	{ "cs", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES },
	{ "cpu-migrations", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS },
	{ "migrations", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS },
	{ "alignment-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_ALIGNMENT_FAULTS },
	{ "emulation-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_EMULATION_FAULTS },
	{ "cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES },
	{ "cpu-cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES },
	{ "ref-cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_REF_CPU_CYCLES },
	{ "bus-cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BUS_CYCLES },
	{ "instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS },
	{ "cache-references", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_REFERENCES },
	{ "cache-misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES },
	{ "branches", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS },
	{ "branch-instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS },
	{ "branch-misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES },
	{ "stalled-cycles-frontend", PERF_TYPE_HARDWARE, PERF_COUNT_HW_STALLED_CYCLES_FRONTEND },
	{ "idle-cycles-frontend", PERF_TYPE_HARDWARE, PERF_COUNT_HW_STALLED_CYCLES_FRONTEND },
	{ "stalled-cycles-backend", PERF_TYPE_HARDWARE, PERF_COUNT_HW_STALLED_CYCLES_BACKEND },
	{ "idle-cycles-backend", PERF_TYPE_HARDWARE, PERF_COUNT_HW_STALLED_CYCLES_BACKEND },
};

/* The event CACHE-OPERATION: config = cache | operation << 8 | result << 16 (linux/perf_event.h). */
static const char *const caches[] = {
	[PERF_COUNT_HW_CACHE_L1D] = "L1-dcache", [PERF_COUNT_HW_CACHE_L1I] = "L1-icache",
	[PERF_COUNT_HW_CACHE_LL] = "LLC",	 [PERF_COUNT_HW_CACHE_DTLB] = "dTLB",
	[PERF_COUNT_HW_CACHE_ITLB] = "iTLB",	 [PERF_COUNT_HW_CACHE_BPU] = "branch",
	[PERF_COUNT_HW_CACHE_NODE] = "node",
};
static const struct {
	const char *name;
	uint64_t config;
} cache_operations[] = {
	{ "loads", PERF_COUNT_HW_CACHE_OP_READ << 8 | PERF_COUNT_HW_CACHE_RESULT_ACCESS << 16 },
	{ "load-misses", PERF_COUNT_HW_CACHE_OP_READ << 8 | PERF_COUNT_HW_CACHE_RESULT_MISS << 16 },
	{ "stores", PERF_COUNT_HW_CACHE_OP_WRITE << 8 | PERF_COUNT_HW_CACHE_RESULT_ACCESS << 16 },
	{ "store-misses", PERF_COUNT_HW_CACHE_OP_WRITE << 8 | PERF_COUNT_HW_CACHE_RESULT_MISS << 16 },
	{ "prefetches", PERF_COUNT_HW_CACHE_OP_PREFETCH << 8 | PERF_COUNT_HW_CACHE_RESULT_ACCESS << 16 },
	{ "prefetch-misses", PERF_COUNT_HW_CACHE_OP_PREFETCH << 8 | PERF_COUNT_HW_CACHE_RESULT_MISS << 16 },
};

static bool is_word(const char *text, size_t len, const char *word)
{
	return strlen(word) == len && !memcmp(text, word, len);
}

static bool find_cache_event(const char *name, size_t len, struct perf_event_attr *attr)
{
	for (size_t i = 0; i < ARRAY_LEN(caches); i++) {
		size_t cache = strlen(caches[i]);

		if (len <= cache || memcmp(name, caches[i], cache) || name[cache] != '-')
			continue;
		for (size_t k = 0; k < ARRAY_LEN(cache_operations); k++) {
			if (!is_word(name + cache + 1, len - cache - 1, cache_operations[k].name))
				continue;
			attr->type = PERF_TYPE_HW_CACHE;
			attr->config = i | cache_operations[k].config;
			return true;
		}
	}
	return false;
}

static bool find_raw_event(const char *name, size_t len, struct perf_event_attr *attr)
{
	if (name[0] != 'r' || len < 2 || len > 17 || strspn(name + 1, "0123456789abcdefABCDEF") < len - 1)
		return false;
	attr->type = PERF_TYPE_RAW;
	attr->config = strtoull(name + 1, NULL, 16);
	return true;
}

static bool find_event(const char *name, size_t len, struct perf_event_attr *attr)
{
	for (size_t i = 0; i < ARRAY_LEN(events); i++) {
		if (!is_word(name, len, events[i].name))
			continue;
		attr->type = events[i].type;
		attr->config = events[i].config;
		return true;
	}
	return find_cache_event(name, len, attr) || find_raw_event(name, len, attr);
}

/* As in perf: if one of u, k and h is given, those that are not given are excluded. */
static bool add_modifiers(const char *text, struct perf_event_attr *attr)
{
	bool user = strchr(text, 'u'), kernel = strchr(text, 'k'), hypervisor = strchr(text, 'h');

	if (!*text || text[strspn(text, "ukhp")])
		return false;
	if (user || kernel || hypervisor) {
		attr->exclude_user = !user;
		attr->exclude_kernel = !kernel;
		attr->exclude_hv = !hypervisor;
	}
	for (; *text; text++)
		if (*text == 'p' && attr->precise_ip < 3)
			attr->precise_ip++;
	return true;
}

/* The name that @text is a mistyped form of. NULL: none. */
static const char *nearest_event(const char *text, size_t len)
{
	char word[64];
	struct nearest nearest;

	snprintf(word, sizeof(word), "%.*s", (int)len, text);
	nearest = nearest_to(word);
	for (size_t i = 0; i < ARRAY_LEN(events); i++)
		nearest_offer(&nearest, events[i].name);
	return nearest.best;
}

int perf_event_parse(const char *text, struct perf_event_attr *attr, struct agent_error *err)
{
	size_t len = strcspn(text, ":");
	const char *modifiers = text[len] ? text + len + 1 : "";
	const char *near;

	if (!find_event(text, len, attr)) {
		/* not cycels:u */
		if (tracepoint_is_name(text) && modifiers[strspn(modifiers, "ukhp")]) {
			attr->type = PERF_TYPE_TRACEPOINT;
			return 0;
		}
		near = nearest_event(text, len);
		snprintf(err->message, sizeof(err->message),
			 "there is no event '%.200s'%s%s%s; 'hearth help events' names them", text,
			 near ? " (did you mean " : "", near ? near : "", near ? "?)" : "");
		return -EINVAL;
	}
	if (text[len] && !add_modifiers(modifiers, attr)) {
		snprintf(err->message, sizeof(err->message),
			 "'%s': behind the colon there may be u (user space alone), k (the kernel alone), h, p (precise)",
			 text);
		return -EINVAL;
	}
	return 0;
}

int perf_event_find(const char *text, struct perf_event_attr *attr, struct agent_error *err)
{
	char suggestion[160] = "";
	int error = perf_event_parse(text, attr, err);
	uint64_t id;

	if (error) {
		tracepoint_suggest(text, suggestion, sizeof(suggestion));
		if (*suggestion)
			snprintf(err->message, sizeof(err->message), "there is no event '%.200s'%s", text, suggestion);
		return error;
	}
	if (attr->type != PERF_TYPE_TRACEPOINT)
		return 0;
	error = tracepoint_find(text, &id, err);
	attr->config = error ? 0 : id;
	return error;
}

bool perf_event_is_time(const struct perf_event_attr *attr)
{
	return attr->type == PERF_TYPE_SOFTWARE &&
	       (attr->config == PERF_COUNT_SW_CPU_CLOCK || attr->config == PERF_COUNT_SW_TASK_CLOCK);
}

unsigned perf_event_max_freq(void)
{
	AUTO_FCLOSE FILE *f = fopen("/proc/sys/kernel/perf_event_max_sample_rate", "re");
	unsigned max = 0;

	return f && fscanf(f, "%u", &max) == 1 && max ? max : 1000;
}

int perf_event_open_cpu(const struct perf_event_attr *kind, uint32_t cpu, unsigned freq_hz, uint64_t period)
{
	struct perf_event_attr attr = *kind;
	int fd;

	attr.size = sizeof(attr);
	attr.disabled = 1;
	attr.sample_type = PERF_SAMPLE_RAW;
	if (period) {
		attr.sample_period = period;
	} else if (perf_event_is_time(&attr)) {
		attr.sample_period = NSEC_PER_SEC / freq_hz; /* an hrtimer: the period is time */
	} else {
		attr.freq = 1;
		attr.sample_freq = freq_hz;
	}
	fd = (int)syscall(SYS_perf_event_open, &attr, -1, (int)cpu, -1, PERF_FLAG_FD_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int perf_event_cpus_parse(const char *text, uint32_t *cpus, size_t max)
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

int perf_event_cpus_online(uint32_t *cpus, size_t max)
{
	AUTO_FCLOSE FILE *f = fopen("/sys/devices/system/cpu/online", "re");
	char text[4096];

	if (!f)
		return -errno;
	return fgets(text, sizeof(text), f) ? perf_event_cpus_parse(text, cpus, max) : -EIO;
}
