/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads the object, gives it what it shares with the sampler's, and attaches its programs while sampling is on: to the
 * tracepoints of page faults, and where there are huge pages to that of a process's growth.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "agent/kernel/kernel_types.h"
#include "agent/kernel/sampler_memory.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "base/log.h"
#include "bpf/memory.skel.h"

enum { PROGRAMS = 3 };

struct memory {
	struct memory_bpf *skel;
	struct bpf_program *programs[PROGRAMS]; /* those of the form that is loaded; NULL: it is not needed */
	struct bpf_link *links[PROGRAMS];
	bool is_refused; /* the kernel has no such tracepoints */
};

/* Does the file @path say @word? */
static bool says(const char *path, const char *word)
{
	char text[128];
	ssize_t n = io_read_text(AT_FDCWD, path, text, sizeof(text));

	return n > 0 && strstr(text, word);
}

/* Documentation/admin-guide/mm/transhuge.rst: the state for all sizes, which a size may inherit (6.8) or not. */
static bool has_huge_pages(void)
{
	static const char all[] = "/sys/kernel/mm/transparent_hugepage/enabled",
			  size[] = "/sys/kernel/mm/transparent_hugepage/hugepages-2048kB/enabled";

	return says(all, "[always]") || says(all, "[madvise]") || says(size, "[always]") || says(size, "[madvise]");
}

/* --- loading --- */

static void choose_programs(struct memory *m, bool is_tail, bool has_huge)
{
	const struct memory_bpf *skel = m->skel;

	m->programs[0] = is_tail ? skel->progs.on_fault_tail : skel->progs.on_fault;
	m->programs[1] = is_tail ? skel->progs.on_kernel_fault_tail : skel->progs.on_kernel_fault;
	if (has_huge)
		m->programs[2] = is_tail ? skel->progs.on_growth_tail : skel->progs.on_growth;
}

static void set_autoload(const struct memory *m, bool is_tail)
{
	struct bpf_program *program;

	bpf_object__for_each_program(program, m->skel->obj)
	{
		bool is_used = is_tail &&
			       (program == m->skel->progs.memory_walk_tail || program == m->skel->progs.memory_send_tail);

		for (int i = 0; i < PROGRAMS; i++)
			is_used |= program == m->programs[i];
		bpf_program__set_autoload(program, is_used);
	}
}

static void configure(const struct sampler *s, struct memory *m, uint64_t mean_bytes, uint32_t kind)
{
	struct memory_bpf *skel = m->skel;
	bool has_huge = has_huge_pages();

	skel->rodata->cfg_kind = kind;
	skel->rodata->cfg_tracepoint = true;
	skel->rodata->cfg_values = true;
	skel->rodata->cfg_pages = true;
	skel->rodata->cfg_no_kernel = true; /* those frames would be the fault's own */
	skel->rodata->cfg_mean_bytes = mean_bytes;
	skel->rodata->cfg_huge_pages = has_huge;
	bpf_map__set_max_entries(skel->maps.fault_cpus, s->possible_cpus);
	choose_programs(m, s->tail_form, has_huge);
	set_autoload(m, s->tail_form);
}

static int load(struct sampler *s, struct memory *m, uint64_t mean_bytes, uint32_t kind)
{
	int error;

	m->skel = memory_bpf__open_opts(kernel_types_opts());
	if (!m->skel)
		return -errno;
	error = sampler_share_options(s, m->skel->obj);
	configure(s, m, mean_bytes, kind);
	if (!error)
		error = sampler_share_maps(s, m->skel->obj);
	if (!error)
		error = sampler_load_object(s, m->skel->obj, m->skel->skeleton);
	if (!error)
		error = sampler_fill_draws(s, m->skel->maps.fault_cpus, mean_bytes);
	if (error || !s->tail_form)
		return error;
	return sampler_set_called(m->skel->maps.programs, m->skel->progs.memory_walk_tail, m->skel->progs.memory_send_tail);
}

static void detach(struct memory *m)
{
	for (int i = 0; i < PROGRAMS; i++)
		bpf_link__destroy(MOVE(m->links[i]));
}

static void memory_free(struct memory *m)
{
	if (!m)
		return;
	detach(m);
	memory_bpf__destroy(m->skel);
	free(m);
}

void sampler_memory_configure(struct sampler *s)
{
	bpf_map__set_max_entries(s->skel->maps.tracepoint_cpus, s->possible_cpus);
}

void sampler_memory_load(struct sampler *s, uint64_t mean_bytes, uint32_t kind)
{
	struct memory *m = calloc(1, sizeof(*m));
	int error = m ? load(s, m, mean_bytes, kind) : -ENOMEM;

	if (error) {
		log_warn("memory is not sampled: this kernel refuses the programs for it: %s", strerror(-error));
		memory_free(m);
		return;
	}
	s->memory = m;
	sampler_chains_add_caller(s, &(struct chain_caller){ .type = BPF_PROG_TYPE_RAW_TRACEPOINT,
							     .programs = bpf_map__fd(m->skel->maps.programs) });
}

void sampler_memory_free(struct sampler *s)
{
	memory_free(s->memory);
	s->memory = NULL;
}

/* --- on and off --- */

static int attach(struct memory *m)
{
	int error = 0;

	for (int i = 0; i < PROGRAMS && !error; i++) {
		if (!m->programs[i])
			continue;
		m->links[i] = bpf_program__attach(m->programs[i]);
		error = m->links[i] ? 0 : -errno;
	}
	if (error)
		detach(m);
	return error;
}

int sampler_memory_enable(struct sampler *s, bool on)
{
	struct memory *m = s->memory;
	int error;

	if (!m || m->is_refused || on == !!m->links[0])
		return 0;
	if (!on) {
		detach(m);
		return 0;
	}
	error = attach(m);
	m->is_refused = error == -ENOENT;
	if (m->is_refused)
		log_warn("memory is not sampled: this kernel has no tracepoints at page faults, as other CPUs than x86-64 "
			 "have "
			 "none");
	return m->is_refused ? 0 : error;
}

uint64_t sampler_memory_missed(const struct sampler *s)
{
	const struct bpf_program *program = s->memory ? s->memory->programs[2] : NULL;

	return program ? sampler_program_missed(program) : 0;
}
