/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel and the half of libbpf that speaks with it. Objects are opened by libbpf itself; what then is asked of the
 * kernel is written down, a line each, and any of it can be made to fail. Include it after cmocka.h, in one file of a
 * binary.
 */
#ifndef HEARTH_TESTS_BPF_STAND_IN_H
#define HEARTH_TESTS_BPF_STAND_IN_H

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/kernel/kernel_types.h"
#include "agent/kernel/kernel_version.h"
#include "agent/kernel/probe_ways.h"
#include "agent/kernel/sampler_state.h"
#include "base/cleanup.h"
#include "tests/unit/descriptors.h"

enum { STAND_IN_CPUS = 2, FIRST_MAP = 1000, FIRST_PROGRAM = 2000, STAND_IN_PLACES = 256 };

/* --- what was asked, and what is to be answered --- */

static struct {
	char log[1 << 16];
	size_t len;
	unsigned calls, fail_at;  /* that can fail, so far; the one that does: 0: none */
	int error;		  /* with this */
	const char *fail_call;	  /* this one fails ... */
	int fail_left;		  /* ... when so many went well ... */
	int fail_times;		  /* ... so often; 0: always */
	int live;		  /* links that are there */
	bool helpers_missing;	  /* no helper is there */
	enum bpf_func_id missing; /* this one is not; 0: all are */
	bool notes_shared;	  /* maps of the same name that are shared */
	unsigned version;
	uint32_t uprobe, kprobe; /* numbers of the units */
	bool has_multi;
	uint64_t missed; /* of each program */
	uint32_t random;
	const struct bpf_map *maps[STAND_IN_PLACES];
	const struct bpf_program *programs[STAND_IN_PLACES];
	uint8_t value[1 << 16]; /* of the last update */
	const void *walk;	/* what a walk over threads gives */
	size_t walk_bytes;
	void (*on_walk)(const struct bpf_object_skeleton *loaded); /* while it is made; NULL */
	const struct bpf_object_skeleton *loaded;		   /* the last one */
	struct perf_event_attr attr;				   /* of the last event */
	enum bpf_prog_type type;				   /* of the last program that was loaded */
} kernel;

__attribute__((format(printf, 1, 2))) static void note(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	kernel.len += (size_t)vsnprintf(kernel.log + kernel.len, sizeof(kernel.log) - kernel.len, format, args);
	va_end(args);
	assert_true(kernel.len < sizeof(kernel.log));
}

/* Fails this call, if it is its turn. */
static bool is_refused(const char *call)
{
	bool is = ++kernel.calls == kernel.fail_at;

	if (kernel.fail_call && !strcmp(kernel.fail_call, call)) {
		is |= kernel.fail_left <= 0;
		kernel.fail_left -= kernel.fail_left > 0;
		if (is && kernel.fail_times && !--kernel.fail_times)
			kernel.fail_call = NULL;
	}
	if (!is)
		return false;
	note("%s fails\n", call);
	errno = kernel.error;
	return true;
}

static void kernel_begins(void)
{
	memset(&kernel, 0, sizeof(kernel));
	kernel.version = 6008;
	kernel.uprobe = 9;
	kernel.kprobe = 8;
	kernel.error = EPERM;
}

/* From now on @call fails with @error when it went well @count times more. */
static inline void kernel_refuses(const char *call, int count, int error)
{
	kernel.fail_call = call;
	kernel.fail_left = count;
	kernel.fail_times = 0;
	kernel.error = error;
}

/* Exactly this was asked since the last time. */
static inline void asked(const char *text)
{
	if (strcmp(kernel.log, text))
		fail_msg("asked:\n%s\nand not:\n%s", kernel.log, text);
	kernel.len = 0;
	kernel.log[0] = '\0';
}

static inline void asked_whatever(void)
{
	kernel.len = 0;
	kernel.log[0] = '\0';
}

/* A descriptor that is closed by whoever gets it. */
static int some_descriptor(void)
{
	int fd = memfd_create("hearth-stand-in", MFD_CLOEXEC);

	assert_true(fd >= 0 && !ftruncate(fd, 2 * 4096));
	return fd;
}

static bool is_name_of(int fd, const char **ret)
{
	if (fd >= FIRST_PROGRAM && fd < FIRST_PROGRAM + STAND_IN_PLACES && kernel.programs[fd - FIRST_PROGRAM])
		*ret = bpf_program__name(kernel.programs[fd - FIRST_PROGRAM]);
	else if (fd >= FIRST_MAP && fd < FIRST_MAP + STAND_IN_PLACES && kernel.maps[fd - FIRST_MAP])
		*ret = bpf_map__name(kernel.maps[fd - FIRST_MAP]);
	else
		return false;
	return true;
}

static const char *name_of(int fd)
{
	const char *name = "?";

	(void)is_name_of(fd, &name);
	return name;
}

/* --- the kernel's types: no object is relocated here --- */

const struct bpf_object_open_opts *kernel_types_opts(void)
{
	return NULL;
}

void kernel_types_give(const struct bpf_object *object)
{
	(void)object;
}

/* --- maps --- */

int bpf_map__fd(const struct bpf_map *map)
{
	for (int i = 0; i < STAND_IN_PLACES; i++) {
		kernel.maps[i] = kernel.maps[i] ? kernel.maps[i] : map;
		if (kernel.maps[i] == map)
			return FIRST_MAP + i;
	}
	fail_msg("too many maps");
	return -1;
}

int bpf_map__reuse_fd(struct bpf_map *map, int fd)
{
	if (is_refused("reuse"))
		return -errno;
	if (kernel.notes_shared || strcmp(bpf_map__name(map), name_of(fd)))
		note("%s takes %s\n", bpf_map__name(map), name_of(fd));
	return 0;
}

int bpf_map_update_elem(int fd, const void *key, const void *value, __u64 flags)
{
	const struct bpf_map *map = fd >= FIRST_MAP && fd < FIRST_MAP + STAND_IN_PLACES ? kernel.maps[fd - FIRST_MAP] : NULL;
	uint32_t bytes = map ? bpf_map__value_size(map) : 4;
	const char *name = NULL;

	assert_int_equal(flags, BPF_ANY);
	if (is_refused("update"))
		return -1;
	assert_true(bytes <= sizeof(kernel.value));
	memcpy(kernel.value, value, bytes);
	note("%s[%u] = ", name_of(fd), *(const uint32_t *)key);
	if (bytes == 4 && is_name_of(*(const int *)value, &name))
		note("%s\n", name);
	else if (bytes == 4 && map && strstr(bpf_map__name(map), "interrupts"))
		note("descriptor\n");
	else if (bytes == 4)
		note("%u\n", *(const uint32_t *)value);
	else
		note("%u bytes, %u\n", bytes, *(const uint32_t *)value);
	return 0;
}

/* --- programs --- */

int bpf_program__fd(const struct bpf_program *program)
{
	for (int i = 0; i < STAND_IN_PLACES; i++) {
		kernel.programs[i] = kernel.programs[i] ? kernel.programs[i] : program;
		if (kernel.programs[i] == program)
			return FIRST_PROGRAM + i;
	}
	fail_msg("too many programs");
	return -1;
}

int bpf_program__set_attach_target(struct bpf_program *program, int fd, const char *name)
{
	assert_int_equal(fd, 0);
	if (is_refused("target"))
		return -errno;
	note("%s is of %s\n", bpf_program__name(program), name);
	return 0;
}

static void note_programs(const struct bpf_object *object)
{
	struct bpf_program *program;

	bpf_object__for_each_program(program, object)
	{
		if (!bpf_program__autoload(program))
			continue;
		kernel.type = bpf_program__type(program);
		note(" %s", bpf_program__name(program));
		if (bpf_program__expected_attach_type(program) == (enum bpf_attach_type)UPROBE_MULTI)
			note("(multi)");
	}
	note("\n");
}

int bpf_object__load(struct bpf_object *object)
{
	if (is_refused("load"))
		return -errno;
	note("load");
	note_programs(object);
	return 0;
}

int bpf_object__load_skeleton(struct bpf_object_skeleton *s)
{
	if (is_refused("load"))
		return -errno;
	kernel.loaded = s;
	note("load %s:", s->name);
	note_programs(*s->obj);
	return 0;
}

int bpf_obj_get_info_by_fd(int fd, void *info, __u32 *len)
{
	if (fd >= FIRST_PROGRAM) {
		struct bpf_prog_info *of = info;

		if (is_refused("info"))
			return -1;
		assert_int_equal(*len, sizeof(*of));
		of->recursion_misses = kernel.missed;
		return 0;
	}
	/* a link of a probe in the kernel (uapi/linux/bpf.h since 6.7): its type, the event's type, how often it was missed
	 */
	assert_true(*len >= 56);
	memcpy(info, &(uint32_t){ 7 }, 4);
	memcpy((uint8_t *)info + 16, &(uint32_t){ 3 }, 4);
	memcpy((uint8_t *)info + 48, &(uint64_t){ 10 }, 8);
	return 0;
}

int libbpf_probe_bpf_helper(enum bpf_prog_type type, enum bpf_func_id helper, const void *opts)
{
	(void)type, (void)opts;
	return !kernel.helpers_missing && (!kernel.missing || helper != kernel.missing);
}

int libbpf_num_possible_cpus(void)
{
	return STAND_IN_CPUS;
}

/* --- links --- */

struct bpf_link {
	char name[64];
};

static struct bpf_link *make_link(const char *name)
{
	struct bpf_link *link = calloc(1, sizeof(*link));

	assert_non_null(link);
	snprintf(link->name, sizeof(link->name), "%s", name);
	note("attach %s\n", name);
	kernel.live++;
	return link;
}

struct bpf_link *bpf_program__attach(const struct bpf_program *program)
{
	return is_refused("attach") ? NULL : make_link(bpf_program__name(program));
}

struct bpf_link *bpf_program__attach_iter(const struct bpf_program *program, const struct bpf_iter_attach_opts *opts)
{
	assert_null(opts);
	return is_refused("attach") ? NULL : make_link(bpf_program__name(program));
}

int bpf_link__fd(const struct bpf_link *link)
{
	assert_non_null(link);
	return 3000;
}

int bpf_link__destroy(struct bpf_link *link)
{
	if (!link)
		return 0;
	note("detach %s\n", link->name);
	kernel.live--;
	free(link);
	return 0;
}

int bpf_link_create(int program, int event, enum bpf_attach_type type, const struct bpf_link_create_opts *opts)
{
	assert_int_equal(type, BPF_PERF_EVENT);
	assert_true(event >= 0 && fcntl(event, F_GETFD) >= 0);
	if (is_refused("link"))
		return -errno;
	note("link %s, cookie %u\n", name_of(program), (unsigned)opts->perf_event.bpf_cookie);
	return some_descriptor();
}

int bpf_raw_tracepoint_open(const char *name, int program)
{
	assert_null(name);
	if (is_refused("trampoline"))
		return -errno;
	note("trampoline %s\n", name_of(program));
	return some_descriptor();
}

/* A pipe, as a walk's file gives what there is in pieces of any size. */
int bpf_iter_create(int link)
{
	int ends[2];

	assert_int_equal(link, 3000);
	if (is_refused("iterate"))
		return -errno;
	note("iterate\n");
	if (kernel.on_walk)
		kernel.on_walk(kernel.loaded);
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	assert_int_equal(write(ends[1], kernel.walk, kernel.walk_bytes), kernel.walk_bytes);
	close(ends[1]);
	return ends[0];
}

int bpf_object__attach_skeleton(struct bpf_object_skeleton *s)
{
	if (is_refused("attach"))
		return -errno;
	note("attach all of %s\n", s->name);
	return 0;
}

void bpf_object__destroy_skeleton(struct bpf_object_skeleton *s)
{
	if (!s)
		return;
	for (int i = 0; i < s->prog_cnt; i++)
		bpf_link__destroy(*s->progs[i].link);
	note("close %s\n", s->name);
	bpf_object__close(*s->obj);
	free(s->maps);
	free(s->progs);
	free(s);
}

/* --- system calls --- */

static long open_event(const struct perf_event_attr *attr, int pid, int cpu, int group, unsigned long flags)
{
	assert_int_equal(attr->size, sizeof(*attr));
	assert_int_equal(group, -1);
	assert_int_equal(flags, PERF_FLAG_FD_CLOEXEC);
	if (is_refused("event"))
		return -1;
	kernel.attr = *attr;
	if (attr->type == kernel.uprobe)
		note("event of pid %d, cpu %s: %s + %#llx, config %#llx%s\n", pid, cpu < 0 ? "any" : "this",
		     (const char *)(uintptr_t)attr->config1, (unsigned long long)attr->config2,
		     (unsigned long long)attr->config, attr->disabled ? ", disabled" : "");
	else if (attr->type == kernel.kprobe)
		note("event of the kernel: %s + %#llx, config %#llx%s\n", (const char *)(uintptr_t)attr->config1,
		     (unsigned long long)attr->config2, (unsigned long long)attr->config,
		     attr->disabled ? ", disabled" : "");
	else
		note("event of pid %d, cpu %d: type %u, config %llu, period %llu%s%s\n", pid, cpu, attr->type,
		     (unsigned long long)attr->config, (unsigned long long)attr->sample_period, attr->freq ? " Hz" : "",
		     attr->disabled ? ", disabled" : "");
	return some_descriptor();
}

long syscall(long number, ...)
{
	const struct perf_event_attr *attr;
	int pid, cpu, group;
	va_list args;
	long result;

	if (number != SYS_perf_event_open) {
		errno = ENOSYS;
		return -1;
	}
	va_start(args, number);
	attr = va_arg(args, const struct perf_event_attr *);
	pid = va_arg(args, int);
	cpu = va_arg(args, int);
	group = va_arg(args, int);
	result = open_event(attr, pid, cpu, group, (unsigned long)va_arg(args, int));
	va_end(args);
	return result;
}

int ioctl(int fd, unsigned long request, ...)
{
	va_list args;
	int program;

	assert_true(fcntl(fd, F_GETFD) >= 0);
	va_start(args, request);
	program = va_arg(args, int);
	va_end(args);
	if (is_refused("ioctl"))
		return -1;
	note("%s %s\n",
	     request == PERF_EVENT_IOC_SET_BPF	 ? "event runs"
	     : request == PERF_EVENT_IOC_ENABLE	 ? "event on"
	     : request == PERF_EVENT_IOC_DISABLE ? "event off"
	     : request == PERF_EVENT_IOC_RESET	 ? "event from 0"
						 : "other",
	     request == PERF_EVENT_IOC_SET_BPF ? name_of(program) : "");
	return 0;
}

/* Random numbers are a quarter, a half, three quarters of what there may be, and so on. Libraries that begin ask for more.
 */
ssize_t getrandom(void *dst, size_t len, unsigned flags)
{
	(void)flags;
	if (len != 4)
		return (ssize_t)len;
	kernel.random += 0x40000000;
	memcpy(dst, &kernel.random, 4);
	return 4;
}

unsigned kernel_version(void)
{
	return kernel.version;
}

uint32_t probe_unit(const char *name)
{
	return !strcmp(name, "uprobe") ? kernel.uprobe : kernel.kprobe;
}

bool probe_way_is_there(enum probe_way way)
{
	assert_int_equal(way, PROBE_WAY_MULTI);
	return kernel.has_multi;
}

int probe_multi_link(int program, const char *path, const uint64_t *offsets, const uint64_t *semaphores,
		     const uint64_t *cookies, uint32_t count, bool is_return)
{
	if (is_refused("multi"))
		return -errno;
	note("multi %s in %s%s:", name_of(program), path, is_return ? ", returns" : "");
	for (uint32_t i = 0; i < count; i++)
		note(" %u:%#x/%#x", (unsigned)cookies[i], (unsigned)offsets[i], (unsigned)semaphores[i]);
	note("\n");
	return some_descriptor();
}

/* --- a sampler that is loaded --- */

static inline struct sampler *sampler_of_stand_in(bool tail_form)
{
	struct sampler *s = calloc(1, sizeof(*s));

	assert_non_null(s);
	*s = (struct sampler){ .possible_cpus = STAND_IN_CPUS, .levels = 1, .tail_form = tail_form };
	s->skel = sampler_bpf__open();
	assert_non_null(s->skel);
	return s;
}

static inline void sampler_of_stand_in_free(struct sampler *s)
{
	sampler_bpf__destroy(s->skel);
	free(s);
	asked_whatever();
	assert_int_equal(kernel.live, 0);
}

#endif
