/* SPDX-License-Identifier: Apache-2.0 */
/* A perf event of the kernel's uprobe unit for each function and process: the trap is only in that process's memory. */
#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/kernel/kernel_version.h"
#include "agent/kernel/probe_ways.h"
#include "agent/kernel/kernel_types.h"
#include "agent/kernel/sampler_allocs.h"
#include "agent/probe/allocator.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/vec.h"
#include "bpf/allocs.skel.h"

enum {
	MAX_PROBED = 1024, /* functions of all processes together: each costs some 100 us of the agent's time */
	MAX_PLACES = 8192, /* of all processes that there were */
};

/* A function of a process. */
struct probed {
	uint32_t pid;
	uint32_t size;	  /* enum alloc_size */
	uint64_t offset;  /* in @file */
	const char *file; /* borrowed from the set, as long as that lives */
	int fd;		  /* of its link; -1: it is not attached */
};

/* A process that has become another program, whose allocator is still looked for among the files that it maps. */
struct searched {
	uint32_t pid;
	bool has_libc;
};

struct allocs {
	struct allocs_bpf *skel;
	struct alloc_set *set; /* borrowed; new places are added */
	struct probed *list;
	uint32_t count, cap;
	struct searched *searched;
	uint32_t searched_cnt, searched_cap;
	uint32_t not_followed; /* processes for which there was no room */
	bool is_on;
};

static struct bpf_program *entry_of(const struct sampler *s, const struct allocs *a)
{
	return s->tail_form ? a->skel->progs.on_alloc_tail : a->skel->progs.on_alloc;
}

/* --- loading --- */

void sampler_allocs_configure(struct sampler *s)
{
	bpf_map__set_max_entries(s->skel->maps.tracepoint_cpus, s->possible_cpus);
	if (s->tail_form || s->skel->rodata->cfg_pool_levels)
		return;
	s->skel->rodata->cfg_pool_levels = POOL_LEVELS;
	s->levels += POOL_LEVELS;
}

static void set_options(const struct sampler *s, struct allocs_bpf *skel, uint64_t mean_bytes, uint32_t kind)
{
	skel->rodata->cfg_kind = kind;
	skel->rodata->cfg_tracepoint = true;
	skel->rodata->cfg_values = true;
	skel->rodata->cfg_pages = true;
	skel->rodata->cfg_no_kernel = true; /* the kernel's stack is that of the probe's trap */
	skel->rodata->cfg_preempted = !s->tail_form;
	skel->rodata->cfg_mean_bytes = mean_bytes;
	bpf_map__set_max_entries(skel->maps.alloc_draws, s->possible_cpus);
	bpf_program__set_autoload(skel->progs.on_alloc, !s->tail_form);
	bpf_program__set_autoload(skel->progs.on_alloc_tail, s->tail_form);
	bpf_program__set_autoload(skel->progs.alloc_walk_tail, s->tail_form);
	bpf_program__set_autoload(skel->progs.alloc_send_tail, s->tail_form);
}

static int load_object(struct sampler *s, struct allocs *a, uint64_t mean_bytes, uint32_t kind)
{
	int error;

	a->skel = allocs_bpf__open_opts(kernel_types_opts());
	if (!a->skel)
		return -errno;
	error = sampler_share_options(s, a->skel->obj);
	set_options(s, a->skel, mean_bytes, kind);
	if (!error)
		error = sampler_share_maps(s, a->skel->obj);
	if (!error)
		error = sampler_load_object(s, a->skel->obj, a->skel->skeleton);
	if (!error)
		error = sampler_fill_draws(s, a->skel->maps.alloc_draws, mean_bytes);
	if (error || !s->tail_form)
		return error;
	return sampler_set_called(a->skel->maps.programs, a->skel->progs.alloc_walk_tail, a->skel->progs.alloc_send_tail);
}

static int add_probed(struct allocs *a, const struct probed *p, uint32_t pid)
{
	struct probed copy = *p; /* it may be of the list */

	if (vec_reach(&a->list, &a->cap, a->count))
		return -ENOMEM;
	copy.pid = pid;
	copy.fd = -1;
	a->list[a->count++] = copy;
	return 0;
}

static struct probed probed_of(const struct alloc_place *place)
{
	return (struct probed){ .size = place->size, .offset = place->offset, .file = place->file };
}

/* Says what it costs before it does. */
static void tell_cost(const struct alloc_set *set)
{
	for (uint32_t i = 0; i < set->count; i++)
		if (!i || set->list[i].pid != set->list[i - 1].pid)
			log_warn("malloc: while this runs, each allocation of process %u and its children costs them 0.5 to "
				 "1 us more, many times what it costs without (%s)",
				 set->list[i].pid, set->list[i].file);
}

static int explain(int error, struct agent_error *err)
{
	if (kernel_version() < 5015)
		snprintf(err->message, sizeof(err->message), "-e malloc needs Linux 5.15");
	else
		snprintf(err->message, sizeof(err->message),
			 "cannot load the programs for malloc: %s. 'hearth check' says what this kernel allows",
			 strerror(-error));
	return error;
}

int sampler_allocs_load(struct sampler *s, const struct sampled *what, uint32_t kind, struct agent_error *err)
{
	struct allocs *a = calloc(1, sizeof(*a));
	int error = 0;

	if (!a)
		return -ENOMEM;
	s->allocs = a;
	a->set = what->allocs;
	for (uint32_t i = 0; i < a->set->count && !error; i++) {
		struct probed p = probed_of(&a->set->list[i]);

		error = add_probed(a, &p, a->set->list[i].pid);
	}
	if (error)
		return error;
	if (s->tail_form && kernel_version() >= 6000) {
		snprintf(err->message, sizeof(err->message),
			 "--no-bpf-loop does not go with -e malloc on this kernel, which lets its programs be preempted");
		return -EINVAL;
	}
	error = load_object(s, a, what->period, kind);
	if (error)
		return explain(error, err);
	sampler_chains_add_caller(s, &(struct chain_caller){ .type = BPF_PROG_TYPE_KPROBE,
							     .programs = bpf_map__fd(a->skel->maps.programs),
							     .is_preempted = !s->tail_form });
	tell_cost(a->set);
	return 0;
}

/* --- on and off --- */

/* Attaches the program. 0, or -errno; a process that has ended needs none. */
static int attach(const struct sampler *s, struct probed *p)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = probe_unit("uprobe"),
		.config1 = (uintptr_t)p->file,
		.config2 = p->offset,
	};
	LIBBPF_OPTS(bpf_link_create_opts, opts, .perf_event.bpf_cookie = p->size);
	AUTO_CLOSE int event = -1;
	int link;

	if (!attr.type)
		return -ENOSYS;
	event = (int)syscall(SYS_perf_event_open, &attr, (int)p->pid, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (event < 0)
		return errno == ESRCH ? 0 : -errno;
	link = bpf_link_create(bpf_program__fd(entry_of(s, s->allocs)), event, BPF_PERF_EVENT, &opts);
	if (link < 0)
		return link;
	p->fd = link;
	return 0;
}

static void detach(struct probed *p)
{
	if (p->fd >= 0)
		close(p->fd);
	p->fd = -1;
}

int sampler_allocs_enable(struct sampler *s, bool on)
{
	struct allocs *a = s->allocs;
	int error = 0;

	if (!a || a->is_on == on)
		return 0;
	for (uint32_t i = 0; on && i < a->count && !error; i++)
		error = attach(s, &a->list[i]);
	a->is_on = on && !error;
	for (uint32_t i = 0; !a->is_on && i < a->count; i++)
		detach(&a->list[i]);
	return error;
}

/* --- children, and other programs --- */

/* Probes the function @p in @pid, too. False: there is no room. */
static bool follow(struct sampler *s, const struct probed *p, uint32_t pid)
{
	struct allocs *a = s->allocs;

	if (a->count >= MAX_PROBED || add_probed(a, p, pid)) {
		if (!a->not_followed++)
			log_warn("malloc: allocations of process %u, and of others that come now, are not sampled: %u "
				 "functions "
				 "are probed already, which is the most",
				 pid, a->count);
		return false;
	}
	if (a->is_on && attach(s, &a->list[a->count - 1]))
		log_debug("malloc of process %u: %s at %#llx cannot be probed", pid, p->file, (unsigned long long)p->offset);
	return true;
}

static bool is_followed(const struct allocs *a, uint32_t pid)
{
	for (uint32_t i = 0; i < a->count; i++)
		if (a->list[i].pid == pid)
			return true;
	return false;
}

static struct searched *searched_of(const struct allocs *a, uint32_t pid)
{
	for (uint32_t i = 0; i < a->searched_cnt; i++)
		if (a->searched[i].pid == pid)
			return &a->searched[i];
	return NULL;
}

static void end_search(struct allocs *a, struct searched *s)
{
	if (s)
		*s = a->searched[--a->searched_cnt];
}

/* Is @file, by its path from here, what a process calls @path? */
static bool is_file(const char *file, const char *path)
{
	size_t whole = strlen(file), len = strlen(path);

	return whole >= len && !strcmp(file + whole - len, path);
}

static bool has_probes_in(const struct allocs *a, uint32_t pid, const char *path)
{
	for (uint32_t i = 0; i < a->count; i++)
		if (a->list[i].pid == pid && is_file(a->list[i].file, path))
			return true;
	return false;
}

/* Takes the functions of @pid off, but for those in the file @path, which may be NULL. */
static void forget(struct allocs *a, uint32_t pid, const char *path)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < a->count; i++)
		if (a->list[i].pid == pid && !(path && is_file(a->list[i].file, path)))
			detach(&a->list[i]);
		else
			a->list[count++] = a->list[i];
	a->count = count;
}

/* Probes the functions of the file @path of @pid that the set has. */
static void follow_file(struct sampler *s, uint32_t pid, const char *path)
{
	const struct alloc_set *set = s->allocs->set;

	for (uint32_t i = 0; i < set->count; i++) {
		const struct probed p = probed_of(&set->list[i]);

		if (set->list[i].pid == pid && is_file(p.file, path) && !follow(s, &p, pid))
			return;
	}
}

/* A child has its parent's memory; where it becomes another program, that mostly maps the same C library. */
void sampler_process_began(struct sampler *s, uint32_t parent, uint32_t child)
{
	struct allocs *a = s->allocs;
	uint32_t count = a && a->set->follows_children ? a->count : 0;

	for (uint32_t i = 0; i < count; i++)
		if (a->list[i].pid == parent && !follow(s, &a->list[i], child))
			return;
}

void sampler_process_changed(struct sampler *s, uint32_t pid)
{
	struct allocs *a = s->allocs;

	if (!a || !is_followed(a, pid) || searched_of(a, pid) || vec_reach(&a->searched, &a->searched_cap, a->searched_cnt))
		return;
	a->searched[a->searched_cnt++] = (struct searched){ .pid = pid };
}

/* The first file with an allocator is the one, as the dynamic linker maps files in the order in which it looks through
 * them; but the C library's gives way to another that comes after it. Functions that are probed already stay so. */
void sampler_process_mapped(struct sampler *s, uint32_t pid, const char *path)
{
	struct allocs *a = s->allocs;
	struct searched *search = a ? searched_of(a, pid) : NULL;

	if (!search || (search->has_libc && allocator_is_libc(path)))
		return;
	if (!has_probes_in(a, pid, path)) {
		if (a->set->count >= MAX_PLACES || allocator_add_file(a->set, pid, path))
			return;
		follow_file(s, pid, path);
	}
	forget(a, pid, path);
	log_debug("malloc of process %u: in %s", pid, path);
	search->has_libc = allocator_is_libc(path);
	if (!search->has_libc)
		end_search(a, search);
}

void sampler_process_ended(struct sampler *s, uint32_t pid)
{
	struct allocs *a = s->allocs;

	if (!a)
		return;
	end_search(a, searched_of(a, pid));
	forget(a, pid, NULL);
}

uint64_t sampler_allocs_missed(const struct sampler *s)
{
	return s->allocs ? sampler_program_missed(entry_of(s, s->allocs)) : 0;
}

void sampler_allocs_free(struct sampler *s)
{
	struct allocs *a = s->allocs;

	if (!a)
		return;
	for (uint32_t i = 0; i < a->count; i++)
		detach(&a->list[i]);
	allocs_bpf__destroy(a->skel);
	free(a->searched);
	free(a->list);
	free(a);
	s->allocs = NULL;
}
