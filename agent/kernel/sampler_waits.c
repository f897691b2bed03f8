/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads the object, gives it what it shares with the sampler's, and turns its programs on. Two things stay with the kernel
 * while it is loaded: a small ring of each CPU, which nobody reads, as a perf event interrupts its CPU only for a record
 * that somebody could read; and the walk over all threads, which is read once to begin and then at each interval's end.
 */
#include <bpf/btf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/kernel/kernel_ranges.h"
#include "agent/kernel/kernel_types.h"
#include "agent/kernel/sampler_waits.h"
#include "agent/kernel/wait_calls.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "bpf/offcpu.skel.h"

enum {
	STACKS_A_SECOND = 2000,	 /* of waits, on each CPU; half a second's may be saved up */
	TABLE_THREADS = 1 << 16, /* without task storage: entries of 112 bytes */
	RING_BYTES = 2 * 4096,	 /* the control page and one of data */
	READ_BYTES = 64 << 10,
};

struct waits {
	struct offcpu_bpf *skel;
	struct bpf_link *threads; /* the walk over all threads; NULL: not loaded */
	struct wait_kinds kinds;
	bool is_on;
	uint32_t cpu_cnt;
	void **rings; /* by CPU; NULL: none */
};

/* --- loading --- */

/* The number of arguments that the tracepoint @name hands to a program. -errno. */
static int argument_count(const struct btf *btf, const char *name)
{
	int id = btf__find_by_name_kind(btf, name, BTF_KIND_TYPEDEF);
	const struct btf_type *type = id < 0 ? NULL : btf__type_by_id(btf, (uint32_t)id);

	while (type && !btf_is_func_proto(type)) {
		if (!btf_is_typedef(type) && !btf_is_ptr(type))
			return -ENOENT;
		type = btf__type_by_id(btf, type->type);
	}
	return type ? btf_vlen(type) - 1 : -ENOENT; /* the first is the tracepoint's own */
}

static bool switch_has_state(void)
{
	struct btf *btf = btf__load_vmlinux_btf();
	bool has = btf && argument_count(btf, "btf_trace_sched_switch") > 3;

	btf__free(btf);
	return has;
}

static void configure(struct sampler *s, struct waits *w, uint64_t mean_ns, bool has_storage)
{
	const struct code_range *irqs = kernel_ranges()->irqs;
	struct offcpu_bpf *skel = w->skel;

	skel->rodata->cfg_tracepoint = true;
	skel->rodata->cfg_values = true;
	skel->rodata->cfg_mean_ns = mean_ns;
	wait_calls_fill((uint8_t *)skel->rodata->cfg_calls);
	skel->rodata->cfg_blocked_kind = w->kinds.blocked;
	skel->rodata->cfg_runnable_kind = w->kinds.runnable;
	skel->rodata->cfg_wakers = w->kinds.has_wakers;
	skel->rodata->cfg_waker_kind = w->kinds.waker;
	skel->rodata->cfg_task_storage = has_storage;
	skel->rodata->cfg_switch_has_state = switch_has_state();
	skel->rodata->cfg_wait_cost_ns = NSEC_PER_SEC / STACKS_A_SECOND;
	skel->rodata->cfg_wait_burst_ns = NSEC_PER_SEC / 2;
	(void)bpf_map__set_autocreate(skel->maps.wait_storage, has_storage);
	if (!has_storage)
		bpf_map__set_max_entries(skel->maps.wait_table, TABLE_THREADS);
	bpf_map__set_max_entries(skel->maps.wanted_stacks, s->possible_cpus);
	bpf_map__set_max_entries(skel->maps.self_interrupts, s->possible_cpus);
	if (w->kinds.has_wakers) {
		skel->rodata->cfg_irq_start = irqs[0].start;
		skel->rodata->cfg_irq_end = irqs[0].end;
		skel->rodata->cfg_irq_too_start = irqs[1].start;
		skel->rodata->cfg_irq_too_end = irqs[1].end;
		bpf_map__set_max_entries(skel->maps.wanted_wakers, s->possible_cpus);
		bpf_map__set_max_entries(skel->maps.irq_records, s->possible_cpus);
	}
	bpf_program__set_autoload(skel->progs.on_again, !s->tail_form);
	bpf_program__set_autoload(skel->progs.on_again_tail, s->tail_form);
	bpf_program__set_autoload(skel->progs.again_walk_tail, s->tail_form);
	bpf_program__set_autoload(skel->progs.again_send_tail, s->tail_form);
}

static int load_object(struct sampler *s, struct waits *w, uint64_t mean_ns, bool has_storage)
{
	int error;

	w->skel = offcpu_bpf__open_opts(kernel_types_opts());
	if (!w->skel)
		return -errno;
	error = sampler_share_options(s, w->skel->obj);
	configure(s, w, mean_ns, has_storage);
	if (!error)
		error = sampler_share_maps(s, w->skel->obj);
	return error ? error : sampler_load_object(s, w->skel->obj, w->skel->skeleton);
}

static int link_programs(struct sampler *s, struct waits *w)
{
	int error = s->tail_form ? sampler_set_called(w->skel->maps.programs, w->skel->progs.again_walk_tail,
						      w->skel->progs.again_send_tail)
				 : 0;

	if (error)
		return error;
	w->threads = bpf_program__attach_iter(w->skel->progs.tell_asleep, NULL);
	return w->threads ? 0 : -errno;
}

/* Reads the walk over all threads; hands out each record that it writes. 0 or -errno. */
static int walk_threads(struct waits *w, void (*fn)(void *arg, const struct record *record), void *arg)
{
	AUTO_CLOSE int fd = bpf_iter_create(bpf_link__fd(w->threads));
	AUTO_FREE uint8_t *bytes = malloc(READ_BYTES);
	size_t len = 0;
	ssize_t n;

	if (fd < 0 || !bytes)
		return fd < 0 ? -errno : -ENOMEM;
	while ((n = read(fd, bytes + len, READ_BYTES - len)) > 0) {
		size_t at = 0;

		len += (size_t)n;
		while (len - at >= sizeof(struct record)) {
			const struct record *record = (const void *)(bytes + at);

			if (record->size < sizeof(*record) || record->size > MAX_RECORD_BYTES)
				return -EBADMSG;
			if (record->size > len - at)
				break;
			if (fn)
				fn(arg, record);
			at += record->size;
		}
		memmove(bytes, bytes + at, len - at);
		len -= at;
	}
	return n < 0 ? -errno : 0;
}

/* Loads the object, and gives all threads their struct wait. 0; -ENOSPC: some got none; or another -errno. */
static int try_load(struct sampler *s, struct waits *w, uint64_t mean_ns, bool has_storage)
{
	int error = load_object(s, w, mean_ns, has_storage);

	if (!error)
		error = link_programs(s, w);
	if (error)
		return error;
	w->skel->bss->begins = true;
	error = walk_threads(w, NULL, NULL);
	return !error && w->skel->bss->waits_refused ? -ENOSPC : error;
}

/* Task storage in programs like these came with 5.12; before that there is a table. From 7.0 on CPUs that cannot compare and
 * exchange 16 bytes give no storage. */
static int load(struct sampler *s, struct waits *w, uint64_t mean_ns)
{
	int error = try_load(s, w, mean_ns, true);

	if (error) {
		bpf_link__destroy(MOVE(w->threads));
		offcpu_bpf__destroy(w->skel);
		error = try_load(s, w, mean_ns, false);
	}
	if (error && error != -ENOSPC)
		return error;
	w->cpu_cnt = s->possible_cpus;
	w->rings = calloc(w->cpu_cnt, sizeof(*w->rings));
	return w->rings ? 0 : -ENOMEM;
}

static void waits_free(struct waits *w)
{
	if (!w)
		return;
	bpf_link__destroy(w->threads);
	for (uint32_t i = 0; w->rings && i < w->cpu_cnt; i++)
		if (w->rings[i])
			munmap(w->rings[i], RING_BYTES);
	free(w->rings);
	offcpu_bpf__destroy(w->skel);
	free(w);
}

void sampler_waits_load(struct sampler *s, uint64_t mean_ns, const struct wait_kinds *kinds)
{
	struct waits *w = calloc(1, sizeof(*w));
	int error = w ? 0 : -ENOMEM;

	if (w) {
		w->kinds = *kinds;
		error = load(s, w, mean_ns);
	}
	if (error) {
		log_warn("time off the CPUs is not sampled: this kernel refuses the programs for it: %s", strerror(-error));
		waits_free(w);
		return;
	}
	s->waits = w;
	sampler_chains_add_caller(s, &(struct chain_caller){ .type = BPF_PROG_TYPE_RAW_TRACEPOINT,
							     .programs = bpf_map__fd(w->skel->maps.programs) });
}

void sampler_waits_free(struct sampler *s)
{
	waits_free(s->waits);
	s->waits = NULL;
}

/* --- CPUs --- */

int sampler_waits_add_cpu(struct sampler *s, uint32_t cpu)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_BPF_OUTPUT,
		.sample_type = PERF_SAMPLE_RAW,
		.sample_period = 1,
		.wakeup_events = 1,
	};
	struct waits *w = s->waits;
	AUTO_CLOSE int fd = -1;
	void *ring;

	if (!w || cpu >= w->cpu_cnt)
		return -1;
	fd = (int)syscall(SYS_perf_event_open, &attr, -1, (int)cpu, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0)
		return -errno;
	/* Not writable for us: the kernel overwrites the oldest. */
	ring = mmap(NULL, RING_BYTES, PROT_READ, MAP_SHARED, fd, 0);
	if (ring == MAP_FAILED)
		return -errno;
	if (w->rings[cpu])
		munmap(w->rings[cpu], RING_BYTES);
	w->rings[cpu] = ring;
	if (bpf_map_update_elem(bpf_map__fd(w->skel->maps.self_interrupts), &cpu, &fd, BPF_ANY))
		return -errno;
	return MOVE_FD(fd);
}

/* --- on and off --- */

static int turn_on(struct sampler *s)
{
	struct waits *w = s->waits;
	struct offcpu_bpf *skel = w->skel;
	struct bpf_program *again = s->tail_form ? skel->progs.on_again_tail : skel->progs.on_again;

	skel->links.on_again = bpf_program__attach(again);
	if (skel->links.on_again)
		skel->links.on_new_thread = bpf_program__attach(skel->progs.on_new_thread);
	if (skel->links.on_new_thread)
		skel->links.on_waking = bpf_program__attach(skel->progs.on_waking);
	if (skel->links.on_waking)
		skel->links.on_switch = bpf_program__attach(skel->progs.on_switch);
	if (!skel->links.on_switch)
		return -errno;
	w->is_on = true;
	skel->bss->begins = true;
	return walk_threads(w, NULL, NULL);
}

static void turn_off(struct waits *w)
{
	struct bpf_link **const links[] = { &w->skel->links.on_switch, &w->skel->links.on_waking,
					    &w->skel->links.on_new_thread, &w->skel->links.on_again };

	w->is_on = false;
	for (size_t i = 0; i < ARRAY_LEN(links); i++) {
		bpf_link__destroy(*links[i]);
		*links[i] = NULL;
	}
}

int sampler_waits_enable(struct sampler *s, bool on)
{
	int error = 0;

	if (!s->waits || s->waits->is_on == on)
		return 0;
	if (on)
		error = turn_on(s);
	if (!on || error)
		turn_off(s->waits);
	return error;
}

/* --- facts --- */

uint64_t sampler_waits_missed(const struct sampler *s)
{
	const struct offcpu_bpf *skel = s->waits ? s->waits->skel : NULL;

	return skel ? sampler_program_missed(skel->progs.on_switch) + sampler_program_missed(skel->progs.on_waking) : 0;
}

void sampler_waits_count(const struct sampler *s, uint32_t kind, struct sample_sum *taken)
{
	if (!s->waits || kind != s->waits->kinds.blocked)
		return;
	taken->samples += s->waits->skel->bss->asleep_taken;
	taken->value += s->waits->skel->bss->asleep_value;
}

uint64_t sampler_waits_refused(const struct sampler *s)
{
	return s->waits ? s->waits->skel->bss->waits_refused : 0;
}

int sampler_tell_asleep(struct sampler *s, void (*fn)(void *arg, const struct record *record), void *arg)
{
	if (!s->waits || !s->waits->is_on)
		return 0;
	s->waits->skel->bss->begins = false;
	return walk_threads(s->waits, fn, arg);
}
