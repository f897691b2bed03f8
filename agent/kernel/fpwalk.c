/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/kernel/fpwalk.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "base/cleanup.h"
#include "bpf/fpwalk.skel.h"

enum { MAX_FRAMES = 127, MAX_PROGRAMS = 64 };
enum { PID_TGID = 1, USER_BYTES = 3 }; /* words of a record */

struct fpwalk {
	struct fpwalk_config config;
	struct fpwalk_bpf *skel;
	struct ring_buffer *ring;
	uint64_t stacks_of[MAX_FRAMES + 1]; /* stacks[n]: how many stacks had n user frames */
};

static bool is_counted(const struct fpwalk_config *config, pid_t pid)
{
	for (size_t i = 0; i < config->pid_count; i++)
		if (config->pids[i] == pid)
			return true;
	return !config->pids;
}

static int count_frames(void *arg, void *data, size_t len)
{
	struct fpwalk *f = arg;
	const uint64_t *record = data;
	uint64_t frames = len > USER_BYTES * sizeof(*record) ? record[USER_BYTES] / sizeof(*record) : MAX_FRAMES + 1;

	if (frames <= MAX_FRAMES && is_counted(&f->config, (pid_t)(record[PID_TGID] >> 32)))
		f->stacks_of[frames]++;
	return 0;
}

static int attach(struct bpf_program *program, unsigned hz)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.freq = 1,
		.sample_freq = hz,
	};
	const int cpus = libbpf_num_possible_cpus();
	cpu_set_t ours;

	if (sched_getaffinity(0, sizeof(ours), &ours))
		return -errno;
	for (int cpu = 0; cpu < cpus && cpu < CPU_SETSIZE; cpu++) {
		int fd;

		if (!CPU_ISSET(cpu, &ours))
			continue;
		fd = (int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);

		if (fd < 0 && errno == ENODEV)
			continue; /* offline */
		if (fd < 0 ||
		    !bpf_program__attach_perf_event(program, fd)) /* the link holds the event, and ends with the process */
			return -errno;
	}
	return 0;
}

static int load(struct fpwalk *f)
{
	struct fpwalk_bpf *skel = f->skel = fpwalk_bpf__open();
	const bool is_empty = f->config.is_empty;
	int err;

	if (!skel)
		return -ENOMEM;
	bpf_program__set_autoload(is_empty ? skel->progs.fp_sample : skel->progs.empty_sample, false);
	if (f->config.comm)
		memcpy((void *)(uintptr_t)&skel->rodata->only_comm, f->config.comm,
		       strnlen(f->config.comm, sizeof(skel->rodata->only_comm)));
	skel->rodata->no_stack = f->config.no_stack;
	err = fpwalk_bpf__load(skel);
	if (err)
		return err;
	f->ring = ring_buffer__new(bpf_map__fd(skel->maps.ring), count_frames, f, NULL);
	return f->ring ? attach(is_empty ? skel->progs.empty_sample : skel->progs.fp_sample, f->config.hz) : -errno;
}

int fpwalk_new(const struct fpwalk_config *config, struct fpwalk **ret)
{
	struct fpwalk *f = calloc(1, sizeof(*f));
	int err;

	if (!f)
		return -ENOMEM;
	f->config = *config;
	err = load(f);
	if (err)
		fpwalk_free(f);
	else
		*ret = f;
	return err;
}

uint64_t fpwalk_drain(struct fpwalk *f, unsigned *frames_ret)
{
	uint64_t total = 0, below = 0;
	unsigned frames = 0;

	ring_buffer__consume(f->ring);
	for (unsigned i = 0; i <= MAX_FRAMES; i++)
		total += f->stacks_of[i];
	while (frames < MAX_FRAMES && (below += f->stacks_of[frames]) * 2 < total)
		frames++;
	*frames_ret = frames;
	return total;
}

void fpwalk_free(struct fpwalk *f)
{
	if (!f)
		return;
	ring_buffer__free(f->ring);
	fpwalk_bpf__destroy(f->skel);
	free(f);
}

/* --- the time that programs take --- */

int fpwalk_count_time(void)
{
	int fd = bpf_enable_stats(BPF_STATS_RUN_TIME);

	return fd < 0 ? -errno : fd;
}

/* If the descriptor is a program on perf events, returns its id and the time that it took; else 0. */
static uint32_t read_program(const char *path, struct fpwalk_time *ret)
{
	AUTO_FCLOSE FILE *file = fopen(path, "re");
	uint32_t type = 0, id = 0;
	char line[256];

	*ret = (struct fpwalk_time){ 0 };
	while (file && fgets(line, sizeof(line), file)) {
		(void)sscanf(line, "prog_type: %" SCNu32, &type);
		(void)sscanf(line, "prog_id: %" SCNu32, &id);
		(void)sscanf(line, "run_time_ns: %" SCNu64, &ret->ns);
		(void)sscanf(line, "run_cnt: %" SCNu64, &ret->runs);
	}
	return type == BPF_PROG_TYPE_PERF_EVENT && ret->runs ? id : 0;
}

int fpwalk_time_of(pid_t pid, struct fpwalk_time *ret)
{
	uint32_t seen[MAX_PROGRAMS];
	size_t count = 0;
	char path[300];
	struct dirent *entry;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fdinfo", (int)pid);
	dir = opendir(path);
	*ret = (struct fpwalk_time){ 0 };
	if (!dir)
		return -errno;
	while ((entry = readdir(dir)) && count < MAX_PROGRAMS) {
		struct fpwalk_time one;
		uint32_t id;
		bool is_new = true;

		snprintf(path, sizeof(path), "/proc/%d/fdinfo/%s", (int)pid, entry->d_name);
		id = read_program(path, &one);
		for (size_t i = 0; i < count; i++)
			is_new &= seen[i] != id;
		if (!id || !is_new)
			continue;
		seen[count++] = id;
		ret->ns += one.ns;
		ret->runs += one.runs;
	}
	closedir(dir);
	return 0;
}
