/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A probe is a perf event of the kernel's kprobe or uprobe unit, for all CPUs and processes, that runs the program; many
 * probes in files are one link where the kernel has such (uprobe_multi, 6.6), and a trampoline is a link of its own. The
 * kernel tells the program by a cookie which probe it is; before 5.15 it does not, nor does it ever for a trampoline, so
 * there the object is loaded once for each probe.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/kernel/kernel_version.h"
#include "agent/kernel/probe_ways.h"
#include "agent/kernel/kernel_types.h"
#include "agent/kernel/sampler_probes.h"
#include "agent/probe/probe.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/vec.h"
#include "bpf/probe.skel.h"

enum {
	MULTI_FROM = 8,	       /* a single probe costs less by a perf event */
	OBJECTS_MAX = 64,      /* where each probe needs its own */
	RETURN_BIT = 1,	       /* PERF_PROBE_CONFIG_IS_RETPROBE, kernel/events/core.c */
	SEMAPHORE_SHIFT = 32,  /* PERF_UPROBE_REF_CTR_OFFSET_SHIFT */
	TRAMPOLINE_FRAMES = 2, /* of the program and of the trampoline */
};

enum family { FAMILY_USER, FAMILY_KERNEL, FAMILY_TRAMPOLINE, FAMILY_MAX };

struct probe_object {
	struct probe_bpf *skel;
	struct bpf_program *entry;
	struct bpf_program *walk, *send; /* of the form with tail calls */
};

struct probes {
	const struct probe_set *set; /* borrowed */
	uint64_t period;
	uint32_t kind;
	bool has_cookies, is_multi, is_on;
	struct probe_object *objects;
	uint32_t object_cnt, object_cap;
	uint32_t first[FAMILY_MAX]; /* 1 + the first object of each family; 0: there is none */
	uint32_t *object_of;	    /* by probe */
	int *fds;		    /* links and events; closing one ends it */
	uint32_t fd_cnt, fd_cap;
	bool is_told;	 /* which of a pattern are refused */
	uint64_t missed; /* of links that are closed */
};

static enum family family_of(const struct probe *p)
{
	if (probe_types[p->type].is_user)
		return FAMILY_USER;
	return p->type == PROBE_FENTRY || p->type == PROBE_FEXIT ? FAMILY_TRAMPOLINE : FAMILY_KERNEL;
}

/* --- loading --- */

static void choose_programs(const struct sampler *s, enum family family, bool is_return, struct probe_object *o)
{
	struct probe_bpf *skel = o->skel;
	bool tail = s->tail_form;
	struct bpf_program *program;

	if (family != FAMILY_TRAMPOLINE) {
		o->entry = tail ? skel->progs.on_probe_tail : skel->progs.on_probe;
		o->walk = skel->progs.probe_walk_tail;
		o->send = skel->progs.probe_send_tail;
	} else if (is_return) {
		o->entry = tail ? skel->progs.on_return_tail : skel->progs.on_return;
		o->walk = skel->progs.return_walk_tail;
		o->send = skel->progs.return_send_tail;
	} else {
		o->entry = tail ? skel->progs.on_function_tail : skel->progs.on_function;
		o->walk = skel->progs.function_walk_tail;
		o->send = skel->progs.function_send_tail;
	}
	bpf_object__for_each_program(program, skel->obj) bpf_program__set_autoload(
		program, program == o->entry || (tail && (program == o->walk || program == o->send)));
}

static bool wants_arguments(const struct probe_set *set)
{
	for (uint32_t i = 0; i < set->count; i++)
		if (set->list[i].args.count)
			return true;
	return false;
}

/* Tells the program where the arguments are. */
static int fill_arguments(const struct probes *p, const struct probe_object *o)
{
	int error = 0;

	for (uint32_t i = 0; i < p->set->count && !error && o->skel->rodata->cfg_arguments; i++)
		error = bpf_map_update_elem(bpf_map__fd(o->skel->maps.probe_arguments), &i, &p->set->list[i].args, BPF_ANY)
				? -errno
				: 0;
	return error;
}

static void set_options(const struct sampler *s, const struct probes *p, enum family family, uint32_t probe,
			struct probe_object *o)
{
	struct probe_bpf *skel = o->skel;

	skel->rodata->cfg_kind = p->kind;
	skel->rodata->cfg_tracepoint = true;
	skel->rodata->cfg_every = p->period;
	skel->rodata->cfg_probes = true;
	skel->rodata->cfg_cookies = p->has_cookies && family != FAMILY_TRAMPOLINE;
	skel->rodata->cfg_probe = probe;
	skel->rodata->cfg_arguments = family != FAMILY_TRAMPOLINE && wants_arguments(p->set);
	skel->rodata->cfg_preempted = family == FAMILY_USER && !s->tail_form;
	skel->rodata->cfg_no_kernel |= family == FAMILY_USER; /* the kernel's stack is that of the probe's trap */
	skel->rodata->cfg_skipped_frames = family == FAMILY_TRAMPOLINE ? TRAMPOLINE_FRAMES : 0;
}

/* The programs' types, and for a trampoline the function. */
static int set_targets(const struct probes *p, enum family family, const struct probe *probe, const struct sampler *s,
		       struct probe_object *o)
{
	int error;

	if (family == FAMILY_USER && p->is_multi) {
		(void)bpf_program__set_expected_attach_type(o->entry, (enum bpf_attach_type)UPROBE_MULTI);
		(void)bpf_program__set_expected_attach_type(o->walk, (enum bpf_attach_type)UPROBE_MULTI);
		(void)bpf_program__set_expected_attach_type(o->send, (enum bpf_attach_type)UPROBE_MULTI);
	}
	if (family != FAMILY_TRAMPOLINE)
		return 0;
	error = bpf_program__set_attach_target(o->entry, 0, probe->target);
	if (!error && s->tail_form)
		error = bpf_program__set_attach_target(o->walk, 0, probe->target);
	if (!error && s->tail_form)
		error = bpf_program__set_attach_target(o->send, 0, probe->target);
	return error;
}

static int load_object(struct sampler *s, struct probes *p, enum family family, uint32_t index, struct probe_object *o)
{
	const struct probe *probe = &p->set->list[index];
	struct probe_object *first = p->first[family] ? &p->objects[p->first[family] - 1] : NULL;
	int error;

	o->skel = probe_bpf__open_opts(kernel_types_opts());
	if (!o->skel)
		return -errno;
	choose_programs(s, family, probe_types[probe->type].is_return, o);
	error = sampler_share_options(s, o->skel->obj);
	set_options(s, p, family, index, o);
	if (!error)
		error = set_targets(p, family, probe, s, o);
	if (!error)
		error = sampler_share_maps(s, o->skel->obj);
	if (!error && first && family != FAMILY_TRAMPOLINE)
		error = bpf_map__reuse_fd(o->skel->maps.programs, bpf_map__fd(first->skel->maps.programs));
	if (o->skel->rodata->cfg_arguments)
		bpf_map__set_max_entries(o->skel->maps.probe_arguments, p->set->count);
	if (!error)
		error = sampler_load_object(s, o->skel->obj, o->skel->skeleton);
	if (!error)
		error = fill_arguments(p, o);
	if (error || !s->tail_form)
		return error;
	return sampler_set_called(o->skel->maps.programs, o->walk, o->send);
}

/* Has chains collected at the probes of a family. Not at trampolines: each would need those programs for its own. */
static void add_caller(struct sampler *s, const struct probes *p, enum family family, const struct probe_object *o)
{
	if (family != FAMILY_TRAMPOLINE)
		sampler_chains_add_caller(s,
					  &(struct chain_caller){ .type = BPF_PROG_TYPE_KPROBE,
								  .attach_type = family == FAMILY_USER && p->is_multi
											 ? (enum bpf_attach_type)UPROBE_MULTI
											 : (enum bpf_attach_type)0,
								  .programs = bpf_map__fd(o->skel->maps.programs),
								  .is_preempted = family == FAMILY_USER && !s->tail_form });
}

/* Finds the object of probe number @index, or loads it. */
static int load_for(struct sampler *s, struct probes *p, uint32_t index)
{
	enum family family = family_of(&p->set->list[index]);
	bool is_shared = family != FAMILY_TRAMPOLINE && p->has_cookies;
	struct probe_object *o;
	int error;

	if (is_shared && p->first[family]) {
		p->object_of[index] = p->first[family] - 1;
		return 0;
	}
	if (p->object_cnt >= OBJECTS_MAX)
		return -E2BIG;
	if (vec_reach(&p->objects, &p->object_cap, p->object_cnt))
		return -ENOMEM;
	o = &p->objects[p->object_cnt];
	*o = (struct probe_object){ 0 };
	error = load_object(s, p, family, index, o);
	if (error) {
		probe_bpf__destroy(o->skel);
		return error;
	}
	p->object_of[index] = p->object_cnt++;
	if (!p->first[family]) {
		p->first[family] = p->object_cnt;
		add_caller(s, p, family, o);
	}
	return 0;
}

/* --- attaching --- */

static int keep(struct probes *p, int fd)
{
	if (fd < 0)
		return fd;
	if (vec_reach(&p->fds, &p->fd_cap, p->fd_cnt)) {
		close(fd);
		return -ENOMEM;
	}
	p->fds[p->fd_cnt++] = fd;
	return 0;
}

static int open_event(const struct probe *probe)
{
	bool is_user = probe_types[probe->type].is_user;
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = probe_unit(is_user ? "uprobe" : "kprobe"),
		.config = (probe_types[probe->type].is_return ? RETURN_BIT : 0) | probe->semaphore << SEMAPHORE_SHIFT,
		.config1 = (uintptr_t)probe->target,
		.config2 = probe->offset,
		.disabled = 1, /* the program runs all the same */
	};
	int fd;

	if (!attr.type)
		return -ENOSYS;
	fd = (int)syscall(SYS_perf_event_open, &attr, -1, sched_getcpu(), -1, PERF_FLAG_FD_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int attach_event(struct probes *p, uint32_t index)
{
	int program = bpf_program__fd(p->objects[p->object_of[index]].entry);
	LIBBPF_OPTS(bpf_link_create_opts, opts, .perf_event.bpf_cookie = index);
	AUTO_CLOSE int event = open_event(&p->set->list[index]);
	int link;

	if (event < 0)
		return event;
	if (!p->has_cookies)
		return ioctl(event, PERF_EVENT_IOC_SET_BPF, program) ? -errno : keep(p, MOVE_FD(event));
	link = bpf_link_create(program, event, BPF_PERF_EVENT, &opts);
	return keep(p, link);
}

static int attach_trampoline(struct probes *p, uint32_t index)
{
	return keep(p, bpf_raw_tracepoint_open(NULL, bpf_program__fd(p->objects[p->object_of[index]].entry)));
}

/* The arguments of one link for all probes of one file. */
struct multi {
	uint64_t *offsets, *semaphores, *cookies;
	uint32_t count;
};

static void multi_fini(struct multi *m)
{
	free(m->offsets);
	free(m->semaphores);
	free(m->cookies);
}

/* Attaches all probes of @first's file that stand where that does, at a function's begin or its end. */
static int attach_multi(struct probes *p, uint32_t first, bool *done)
{
	const struct probe *list = p->set->list;
	AUTO(multi_fini)
	struct multi m = { calloc(p->set->count, 8), calloc(p->set->count, 8), calloc(p->set->count, 8), 0 };
	bool is_return = probe_types[list[first].type].is_return;

	if (!m.offsets || !m.semaphores || !m.cookies)
		return -ENOMEM;
	for (uint32_t i = first; i < p->set->count; i++) {
		if (family_of(&list[i]) != FAMILY_USER || probe_types[list[i].type].is_return != is_return ||
		    strcmp(list[i].target, list[first].target))
			continue;
		m.offsets[m.count] = list[i].offset;
		m.semaphores[m.count] = list[i].semaphore;
		m.cookies[m.count++] = i;
		done[i] = true;
	}
	return keep(p, probe_multi_link(bpf_program__fd(p->objects[p->object_of[first]].entry), list[first].target,
					m.offsets, m.semaphores, m.cookies, m.count, is_return));
}

static const char *reason_of(const struct probe *probe, int error)
{
	bool is_user = probe_types[probe->type].is_user;

	if (error == -ENOSYS)
		return is_user ? "this kernel has no uprobes (CONFIG_UPROBE_EVENTS)"
			       : "this kernel has no kprobes (CONFIG_KPROBES)";
	if (error == -EPERM || error == -EACCES)
		return "not permitted: run it as root, and see /sys/kernel/security/lockdown";
	if (error == -524) /* ENOTSUPP */
		return family_of(probe) == FAMILY_TRAMPOLINE ? "this kernel has no trampolines for it; try kprobe"
							     : "the instruction there cannot be probed";
	if (!is_user && (error == -EINVAL || error == -EADDRNOTAVAIL || error == -EILSEQ))
		return "the kernel does not let this place be probed, or has several functions of that name";
	if (family_of(probe) == FAMILY_TRAMPOLINE && (error == -ESRCH || error == -ENOENT))
		return "the kernel's BTF does not have it; try kprobe";
	return strerror(-error);
}

/* @count of a pattern's functions were refused, @index the last of them. */
static void tell_refused(struct probes *p, uint32_t count, uint32_t index, int error)
{
	if (count && !p->is_told)
		log_warn("%u of %u functions are not probed, %s among them: %s", count, p->set->count,
			 p->set->list[index].label, reason_of(&p->set->list[index], error));
	p->is_told = true;
}

static void detach(struct probes *p);

/* Attaches to all. -errno with the place that it is of in @index_ret. */
static int attach(struct probes *p, uint32_t *index_ret)
{
	AUTO_FREE bool *done = calloc(p->set->count, sizeof(*done));
	uint32_t refused = 0, last = 0;
	int error = done ? 0 : -ENOMEM, why = 0;

	for (uint32_t i = 0; i < p->set->count && !error; i++) {
		enum family family = family_of(&p->set->list[i]);

		*index_ret = i;
		if (done[i])
			continue;
		error = family == FAMILY_TRAMPOLINE	       ? attach_trampoline(p, i)
			: family == FAMILY_USER && p->is_multi ? attach_multi(p, i, done)
							       : attach_event(p, i);
		if (!error || !p->set->list[i].is_of_pattern || error == -ENOSYS || error == -EMFILE || error == -ENOMEM)
			continue;
		refused++;
		last = i;
		why = error;
		error = 0;
	}
	if (!error && refused == p->set->count)
		error = why;
	if (!error)
		tell_refused(p, refused, last, why);
	p->is_on = !error;
	if (error)
		detach(p);
	return error;
}

/* --- counts --- */

/* struct bpf_link_info of a perf event's link: its type at 0, and from 16 on the event's type; a kprobe's "missed" (6.7)
 * stands at 48 (uapi/linux/bpf.h). */
struct link_info {
	uint32_t type, id, program, pad, event_type, pad2;
	uint64_t function;
	uint32_t name_len, offset;
	uint64_t addr, missed, cookie, more[8];
};

enum { LINK_PERF_EVENT = 7, EVENT_KPROBE = 3, EVENT_KRETPROBE = 4 };

/* How often the kernel could not run the probe of @fd: returns of functions that too many threads were in at once. */
static uint64_t missed_by_link(int fd)
{
	struct link_info info = { 0 };
	uint32_t size = sizeof(info);

	if (bpf_obj_get_info_by_fd(fd, (struct bpf_prog_info *)&info, &size) || size < 56 || info.type != LINK_PERF_EVENT ||
	    (info.event_type != EVENT_KPROBE && info.event_type != EVENT_KRETPROBE))
		return 0;
	return info.missed;
}

uint64_t sampler_probes_missed(const struct sampler *s)
{
	const struct probes *p = s->probes;
	uint64_t sum = p ? p->missed : 0;

	for (uint32_t i = 0; p && i < p->object_cnt; i++)
		sum += sampler_program_missed(p->objects[i].entry);
	for (uint32_t i = 0; p && p->has_cookies && i < p->fd_cnt; i++)
		sum += missed_by_link(p->fds[i]);
	return p ? sum / p->period : 0;
}

/* --- on and off --- */

static void detach(struct probes *p)
{
	for (uint32_t i = 0; i < p->fd_cnt; i++) {
		p->missed += p->has_cookies ? missed_by_link(p->fds[i]) : 0;
		close(p->fds[i]);
	}
	p->fd_cnt = 0;
	p->is_on = false;
}

int sampler_probes_enable(struct sampler *s, bool on)
{
	struct probes *p = s->probes;
	uint32_t index;

	if (!p || p->is_on == on)
		return 0;
	if (on)
		return attach(p, &index);
	detach(p);
	return 0;
}

static uint32_t count_family(const struct probe_set *set, enum family family)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < set->count; i++)
		count += family_of(&set->list[i]) == family;
	return count;
}

void sampler_probes_configure(struct sampler *s, const struct sampled *what)
{
	bpf_map__set_max_entries(s->skel->maps.tracepoint_cpus, s->possible_cpus);
	if (s->tail_form || s->skel->rodata->cfg_pool_levels || !count_family(what->probes, FAMILY_USER))
		return;
	s->skel->rodata->cfg_pool_levels = POOL_LEVELS;
	s->levels += POOL_LEVELS;
}

static int explain(const struct probes *p, uint32_t index, bool is_loading, int error, struct agent_error *err)
{
	const struct probe *probe = &p->set->list[index];
	bool is_unknown = family_of(probe) == FAMILY_TRAMPOLINE && (error == -ESRCH || error == -ENOENT);

	if (error == -E2BIG)
		snprintf(err->message, sizeof(err->message),
			 "%u probes are too many here: fentry and fexit, and all probes before Linux 5.15, take a program "
			 "each, "
			 "%d at most",
			 p->set->count, OBJECTS_MAX);
	else if (error == -EMFILE)
		snprintf(err->message, sizeof(err->message), "%u probes need as many descriptors: raise 'ulimit -n'",
			 p->set->count);
	else if (is_loading && !is_unknown)
		snprintf(
			err->message, sizeof(err->message),
			"cannot load the program of probes, for '%.200s': %s. 'hearth check' says what this kernel allows%s",
			probe->label, strerror(-error),
			family_of(probe) == FAMILY_TRAMPOLINE ? "; where there are no trampolines kprobe does the same"
							      : "");
	else
		snprintf(err->message, sizeof(err->message), "cannot probe '%.300s': %s", probe->label,
			 reason_of(probe, error));
	return error;
}

static int load(struct sampler *s, struct probes *p, struct agent_error *err)
{
	uint32_t users = count_family(p->set, FAMILY_USER), index = 0;
	int error = 0;

	p->has_cookies = libbpf_probe_bpf_helper(BPF_PROG_TYPE_KPROBE, BPF_FUNC_get_attach_cookie, NULL) == 1;
	p->is_multi = p->has_cookies && users > MULTI_FROM && probe_way_is_there(PROBE_WAY_MULTI);
	if (users && s->tail_form && kernel_version() >= 6000) {
		snprintf(err->message, sizeof(err->message),
			 "--no-bpf-loop does not go with uprobes on this kernel, which lets their programs be preempted");
		return -EINVAL;
	}
	for (; index < p->set->count && !error; index++)
		error = load_for(s, p, index);
	if (error)
		return explain(p, index - 1, true, error, err);
	error = attach(p, &index);
	return error ? explain(p, index, false, error, err) : 0;
}

int sampler_probes_load(struct sampler *s, const struct sampled *what, uint32_t kind, struct agent_error *err)
{
	struct probes *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	s->probes = p;
	p->set = what->probes;
	p->period = what->period;
	p->kind = kind;
	p->object_of = calloc(p->set->count, sizeof(*p->object_of));
	return p->object_of ? load(s, p, err) : -ENOMEM;
}

void sampler_probes_free(struct sampler *s)
{
	struct probes *p = s->probes;

	if (!p)
		return;
	detach(p);
	for (uint32_t i = 0; i < p->object_cnt; i++)
		probe_bpf__destroy(p->objects[i].skel);
	free(p->objects);
	free(p->object_of);
	free(p->fds);
	free(p);
	s->probes = NULL;
}
