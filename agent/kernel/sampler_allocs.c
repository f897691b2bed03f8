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
#include "agent/kernel/sampler_allocs.h"
#include "agent/probe/allocator.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "bpf/allocs.skel.h"

struct allocs {
	struct allocs_bpf *skel;
	const struct alloc_set *set; /* borrowed */
	int *fds;		     /* a link for each place; -1: it is not attached */
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
}

static int load_object(struct sampler *s, struct allocs *a, uint64_t mean_bytes, uint32_t kind)
{
	int error;

	a->skel = allocs_bpf__open();
	if (!a->skel)
		return -errno;
	error = sampler_share_options(s, a->skel->obj);
	set_options(s, a->skel, mean_bytes, kind);
	if (!error)
		error = sampler_share_maps(s, a->skel->obj);
	if (!error)
		error = allocs_bpf__load(a->skel);
	sampler_leave_bytes(a->skel->skeleton);
	if (!error)
		error = sampler_fill_draws(s, a->skel->maps.alloc_draws, mean_bytes);
	if (error || !s->tail_form)
		return error;
	return sampler_set_walk(a->skel->maps.programs, a->skel->progs.alloc_walk_tail);
}

/* Says what it costs before it does. */
static void tell_cost(const struct alloc_set *set)
{
	for (uint32_t i = 0; i < set->count; i++)
		if (!i || set->list[i].pid != set->list[i - 1].pid)
			log_warn("malloc: while this runs, each allocation of process %u costs it 0.5 to 1 us more, many "
				 "times "
				 "what it costs without (%s)",
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
	int error;

	if (!a)
		return -ENOMEM;
	s->allocs = a;
	a->set = what->allocs;
	a->fds = malloc(a->set->count * sizeof(*a->fds));
	if (!a->fds)
		return -ENOMEM;
	memset(a->fds, -1, a->set->count * sizeof(*a->fds));
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

static int attach(const struct sampler *s, const struct allocs *a, const struct alloc_place *place)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = probe_unit("uprobe"),
		.config1 = (uintptr_t)place->file,
		.config2 = place->offset,
	};
	LIBBPF_OPTS(bpf_link_create_opts, opts, .perf_event.bpf_cookie = place->size);
	AUTO_CLOSE int event = -1;
	int link;

	if (!attr.type)
		return -ENOSYS;
	event = (int)syscall(SYS_perf_event_open, &attr, (int)place->pid, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (event < 0)
		return -errno;
	link = bpf_link_create(bpf_program__fd(entry_of(s, a)), event, BPF_PERF_EVENT, &opts);
	return link;
}

static void detach(struct allocs *a)
{
	for (uint32_t i = 0; a->fds && i < a->set->count; i++) {
		if (a->fds[i] >= 0)
			close(a->fds[i]);
		a->fds[i] = -1;
	}
	a->is_on = false;
}

int sampler_allocs_enable(struct sampler *s, bool on)
{
	struct allocs *a = s->allocs;
	int error = 0;

	if (!a || a->is_on == on)
		return 0;
	for (uint32_t i = 0; on && i < a->set->count && !error; i++) {
		a->fds[i] = attach(s, a, &a->set->list[i]);
		error = a->fds[i] == -ESRCH ? 0 : a->fds[i] < 0 ? a->fds[i] : 0; /* a process may have ended */
	}
	if (!on || error)
		detach(a);
	a->is_on = on && !error;
	return error;
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
	detach(a);
	allocs_bpf__destroy(a->skel);
	free(a->fds);
	free(a);
	s->allocs = NULL;
}
