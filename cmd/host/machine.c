/* SPDX-License-Identifier: Apache-2.0 */
/* CPUs, memory, load and paging. */
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "cmd/host/scrapers.h"
#include "cmd/host/words.h"

#define LABEL(key_, value_)                      \
	(struct host_label)                      \
	{                                        \
		.key = (key_), .value = (value_) \
	}

/* --- /proc/stat --- */

uint64_t host_boot_unix_ns(struct str stat)
{
	struct str line, word;
	uint64_t seconds;

	while (words_line(&stat, &line))
		if (words_next(&line, &word) && str_is(word, "btime"))
			return words_u64(&line, &seconds) && seconds < UINT64_MAX / NSEC_PER_SEC ? seconds * NSEC_PER_SEC
												 : 0;
	return 0;
}

/* "cpu12"; the first line, "cpu", is the sum of all. */
static bool is_one_cpu(struct str word)
{
	if (word.len < 4 || memcmp(word.data, "cpu", 3) != 0)
		return false;
	for (uint32_t i = 3; i < word.len; i++)
		if (word.data[i] < '0' || word.data[i] > '9')
			return false;
	return true;
}

/* In the order of the columns. Time of guests is a part of user and nice. */
static const char *const cpu_states[] = { "user", "nice", "system", "idle", "wait", "interrupt", "softirq", "steal" };

int host_parse_stat(struct host_reading *r, struct str stat, unsigned ticks)
{
	struct str line, word, name;
	uint64_t values[ARRAY_LEN(cpu_states)];
	unsigned cpus = 0, have;

	while (words_line(&stat, &line)) {
		if (!words_next(&line, &word) || !is_one_cpu(word))
			continue;
		have = words_numbers(&line, values, ARRAY_LEN(cpu_states));
		if (have < 4) {
			r->bad_lines++;
			continue;
		}
		if (cpus++ >= HOST_CPUS_MAX) {
			r->left_out++;
			continue;
		}
		if (!host_reading_keep(r, word, &name))
			continue;
		for (unsigned i = 0; i < have; i++)
			host_reading_real(r, HOST_CPU_TIME,
					  (struct host_label[]){ LABEL("cpu", name), LABEL("state", str_z(cpu_states[i])) },
					  2, (double)values[i] / ticks);
	}
	return cpus ? 0 : -EBADMSG;
}

/* --- files of names and numbers --- */

struct pair {
	const char *name;
	uint64_t value;
	bool is_there;
};

/* Finds each of @pairs as "NAME 123" or "NAME: 123 kB"; then bytes come of it. */
static void read_pairs(struct host_reading *r, struct str text, struct pair *pairs, size_t count, unsigned unit)
{
	struct str line, word;

	while (words_line(&text, &line)) {
		struct pair *p = pairs;

		if (!words_next(&line, &word))
			continue;
		word.len -= word.data[word.len - 1] == ':';
		while (p < pairs + count && !str_is(word, p->name))
			p++;
		if (p == pairs + count || p->is_there)
			continue;
		if (!words_u64(&line, &p->value) || __builtin_mul_overflow(p->value, unit, &p->value))
			r->bad_lines++;
		else
			p->is_there = true;
	}
}

/*
 * Memory is used, free, buffered or cached, and these four are all of it: cached is page cache and what the kernel could
 * give back of its own (slab_reclaimable), as free(1) has it. Slabs are told besides.
 */
int host_parse_meminfo(struct host_reading *r, struct str meminfo)
{
	enum { TOTAL, FREE, BUFFERS, CACHED, RECLAIMABLE, UNRECLAIMABLE, PAIRS };
	struct pair p[PAIRS] = { { .name = "MemTotal" }, { .name = "MemFree" },	     { .name = "Buffers" },
				 { .name = "Cached" },	 { .name = "SReclaimable" }, { .name = "SUnreclaim" } };
	uint64_t cached, used;

	read_pairs(r, meminfo, p, PAIRS, 1024);
	if (!p[TOTAL].is_there || !p[FREE].is_there)
		return -EBADMSG;
	if (__builtin_add_overflow(p[CACHED].value, p[RECLAIMABLE].value, &cached))
		return -EBADMSG;
	used = words_without(words_without(words_without(p[TOTAL].value, p[FREE].value), p[BUFFERS].value), cached);
	const struct {
		const char *state;
		uint64_t bytes;
		bool is_there;
	} states[] = {
		{ "used", used, true },
		{ "free", p[FREE].value, true },
		{ "buffered", p[BUFFERS].value, p[BUFFERS].is_there },
		{ "cached", cached, p[CACHED].is_there },
		{ "slab_reclaimable", p[RECLAIMABLE].value, p[RECLAIMABLE].is_there },
		{ "slab_unreclaimable", p[UNRECLAIMABLE].value, p[UNRECLAIMABLE].is_there },
	};
	for (size_t i = 0; i < ARRAY_LEN(states); i++)
		if (states[i].is_there)
			host_reading_int(r, HOST_MEMORY_USAGE, &LABEL("state", str_z(states[i].state)), 1, states[i].bytes);
	return 0;
}

int host_parse_vmstat(struct host_reading *r, struct str vmstat)
{
	static const struct {
		const char *type, *direction;
	} labels[] = { { "major", "page_in" }, { "major", "page_out" }, { "minor", "page_in" }, { "minor", "page_out" } };
	enum { SWAP_IN, SWAP_OUT, IN, OUT, FAULTS, MAJOR, PAIRS };
	struct pair p[PAIRS] = { { .name = "pswpin" },	{ .name = "pswpout" }, { .name = "pgpgin" },
				 { .name = "pgpgout" }, { .name = "pgfault" }, { .name = "pgmajfault" } };

	read_pairs(r, vmstat, p, PAIRS, 1);
	if (!p[FAULTS].is_there || !p[MAJOR].is_there)
		return -EBADMSG;
	for (size_t i = 0; i < ARRAY_LEN(labels); i++)
		if (p[SWAP_IN + i].is_there)
			host_reading_int(r, HOST_PAGING_OPERATIONS,
					 (struct host_label[]){ LABEL("type", str_z(labels[i].type)),
								LABEL("direction", str_z(labels[i].direction)) },
					 2, p[SWAP_IN + i].value);
	host_reading_int(r, HOST_PAGING_FAULTS, &LABEL("type", STR("major")), 1, p[MAJOR].value);
	host_reading_int(r, HOST_PAGING_FAULTS, &LABEL("type", STR("minor")), 1,
			 words_without(p[FAULTS].value, p[MAJOR].value));
	return 0;
}

/* --- /proc/swaps --- */

/* "Filename Type Size Used Priority", in KiB; a blank in a name is \040. */
int host_parse_swaps(struct host_reading *r, struct str swaps)
{
	struct str line, name, type, device;
	uint64_t size, used;
	unsigned devices = 0;

	if (!words_line(&swaps, &line))
		return -EBADMSG;
	while (words_line(&swaps, &line)) {
		if (!words_next(&line, &name) || !words_next(&line, &type) || !words_u64(&line, &size) ||
		    !words_u64(&line, &used) || __builtin_mul_overflow(size, 1024u, &size) ||
		    __builtin_mul_overflow(used, 1024u, &used)) {
			r->bad_lines++;
			continue;
		}
		if (devices++ >= HOST_DEVICES_MAX) {
			r->left_out++;
			continue;
		}
		if (!host_reading_keep(r, name, &device))
			continue;
		host_reading_int(r, HOST_PAGING_USAGE,
				 (struct host_label[]){ LABEL("device", device), LABEL("state", STR("used")) }, 2, used);
		host_reading_int(r, HOST_PAGING_USAGE,
				 (struct host_label[]){ LABEL("device", device), LABEL("state", STR("free")) }, 2,
				 words_without(size, used));
	}
	return 0;
}

/* --- /proc/loadavg --- */

int host_parse_loadavg(struct host_reading *r, struct str loadavg, unsigned cpus)
{
	static const enum host_metric metrics[] = { HOST_LOAD_1M, HOST_LOAD_5M, HOST_LOAD_15M };
	double values[ARRAY_LEN(metrics)];
	struct str line;

	if (!words_line(&loadavg, &line))
		return -EBADMSG;
	for (size_t i = 0; i < ARRAY_LEN(metrics); i++)
		if (!words_real(&line, &values[i]))
			return -EBADMSG;
	for (size_t i = 0; i < ARRAY_LEN(metrics); i++)
		host_reading_real(r, metrics[i], NULL, 0, values[i] / cpus);
	return 0;
}
