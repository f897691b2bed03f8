/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order is: take the time, read all side-band rings, then the sample rings, and apply what is older than the time taken.
 * A record of an exec, mmap or fork stands in its ring before the system call returns, so before the code that it made
 * possible runs anywhere, and both streams carry the same clock: no record that a sample older than that time depends on is
 * still on its way. So every sample sees the process as it was at the sample's time. Agent's thread.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/context/process_context.h"
#include "agent/feed.h"
#include "agent/user_part.h"
#include "agent/process/chain_states.h"
#include "agent/process/process_objects.h"
#include "agent/process/restless.h"
#include "agent/runtime/object.h"
#include "agent/samples/contentions.h"
#include "base/cleanup.h"
#include "base/clock.h"

/* --- reading --- */

/* Is @r of a process that maps code more often than can be followed? The kernel stops walking by what it knew of it. */
static bool is_passed_over(struct intake *in, const struct side_band_record *r)
{
	struct process *p = r->kind == SIDE_BAND_MMAP ? processes_peek(in->processes, r->pid) : NULL;
	bool began = false, is_so = p && restless_count(p, r->time_ns, &began);

	in->counts.mappings_not_followed += is_so;
	if (began)
		process_publish(p, in->sampler);
	return is_so;
}

/* Opens the file of a mapping: its process may be gone when the record is applied. If the mapping replaces another one, the
 * kernel must stop walking by the old one: samples miss until the record is applied. */
static void read_mmap(struct intake *in, const struct side_band_record *r)
{
	const struct file_place at = { .pid = r->pid, .tid = r->tid, .start = r->start, .end = r->end };
	struct file *file = r->key.inode ? files_open(in->files, &r->key, r->name, &at) : NULL;
	struct process *p = processes_peek(in->processes, r->pid);
	uint64_t off = r->pgoff;

	if (p && !file)
		file = address_space_code_file(p->as, r->start, r->end, &off);
	if (p && p->is_known && address_space_would_replace(p->as, r->start, r->end, off, file))
		(void)sampler_forget_proc(in->sampler, r->pid);
}

/* The first sample of a program, or one taken while it ends: finds the program's facts, in the sample, or in /proc before
 * the program is gone. */
static void meet_program(struct intake *in, const struct record *record)
{
	const struct sample_record *r = (const void *)record;
	const struct sample_regs *regs;
	struct program_id id = { 0 };
	struct pending_sample s;
	const struct process *p;

	if (record_parse(record, &s) || r->flags & SAMPLE_OUTSIDE || (!s.regs && r->end != END_EXITING))
		return;
	regs = s.regs;
	id.pid = r->pid;
	if (regs) {
		id.start_boottime_ns = regs->start_boottime_ns;
		id.exec_id = regs->exec_id;
	}
	p = processes_peek(in->processes, r->pid);
	if (!p || !p->has_own_facts || (regs && (p->start_boottime_ns != id.start_boottime_ns || p->exec_id != id.exec_id)))
		facts_reader_meet(in->facts, &id,
				  &(struct program_told){ .time_ns = record->time_ns,
							  .cgroup = s.cgroup,
							  .environment = s.environment,
							  .environment_bytes = s.environment_bytes });
}

static void add_side_band(struct intake *in, struct side_band_record *record)
{
	if (pending_add_side_band(in->pending, record))
		in->reread_all = true;
}

/* The first look at a record. Returns whether there is more to it. */
static bool read_side_band(struct intake *in, struct side_band_record *record)
{
	bool is_passed = record->kind == SIDE_BAND_LOST || is_passed_over(in, record);

	if (record->kind == SIDE_BAND_MMAP && !is_passed) {
		read_mmap(in, record);
		sampler_process_mapped(in->sampler, record->pid, record->name);
	} else if (record->kind == SIDE_BAND_COMM && record->is_exec) {
		sampler_process_changed(in->sampler, record->pid);
	} else if (record->kind == SIDE_BAND_FORK && record->pid != record->parent_pid) {
		sampler_process_began(in->sampler, record->parent_pid, record->pid);
	} else if (record->kind == SIDE_BAND_EXIT && record->pid == record->tid) {
		sampler_process_ended(in->sampler, record->pid);
	}
	if (!is_passed)
		return true;
	in->reread_all |= record->kind == SIDE_BAND_LOST;
	free(record);
	return false;
}

static void take_side_band(void *arg, struct side_band_record *record)
{
	if (read_side_band(arg, record))
		add_side_band(arg, record);
}

enum { MAX_KEPT_SIDE_BAND = 1 << 16 }; /* records; of more all processes are read again */

static void keep_side_band(void *arg, struct side_band_record *record)
{
	struct intake *in = arg;

	if (!read_side_band(in, record))
		return;
	if (in->kept.side_band.len >= MAX_KEPT_SIDE_BAND * sizeof(record) ||
	    buf_reserve(&in->kept.side_band, sizeof(record))) {
		in->reread_all = true;
		free(record);
		return;
	}
	buf_append(&in->kept.side_band, &record, sizeof(record));
}

enum {
	MAX_KEPT_BYTES = 128 << 20,  /* bytes of waiting samples with stack copies: 2 s of 1,000 a second that all miss */
	MAX_KEPT_OF_ONE = 8 << 20,   /* of these, bytes of one process */
	FOR_SAMPLES_BYTES = 8 << 20, /* more bytes for samples alone: stack copies are dropped before samples are; a
				      * quarter of it for those of one process */
	READ_AHEAD_MS = 1,	     /* a program that runs a few milliseconds is seen before it is gone */
};

/* Counts a sample of @kind as lost by @loss; of the first kind where that makes no sense. */
static void lose_one(struct intake *in, enum intake_loss loss, uint64_t kind, uint64_t value)
{
	struct sample_sum *sum = &in->counts.lost[loss][kind < in->kind_cnt ? kind : 0];

	sum->samples++;
	sum->value += value;
}

/* Counts the sample @s, and those that came with it, as lost. */
static void lose_sample(struct intake *in, enum intake_loss loss, const struct pending_sample *s)
{
	if (!s->wakes)
		lose_one(in, loss, s->record->kind, s->value);
	for (uint32_t i = 0; i < s->wake_cnt; i++)
		lose_one(in, loss, s->record->kind, s->wakes[i].value);
	for (uint32_t i = 0; i < s->more_cnt; i++)
		lose_one(in, loss, s->more[2 * i], s->more[2 * i + 1]);
}

/* @record, which may be part of a sample, could not be kept for @loss. */
static void lose(struct intake *in, enum intake_loss loss, const struct record *record)
{
	struct pending_sample s;

	if (record->kind != RECORD_SAMPLE)
		in->counts.chunks_not_kept++;
	else if (record_parse(record, &s))
		lose_one(in, loss, 0, 0);
	else
		lose_sample(in, loss, &s);
}

static size_t padded(const struct record *record)
{
	return (record->size + 7ull) & ~7ull;
}

/* Is there room for one more record of the rings, which may be larger than all else? A record without room is counted as
 * lost. */
static bool has_room(struct intake *in, const struct record *record)
{
	size_t rings = (size_t)sampler_rings_bytes(in->sampler);
	size_t more = record->kind == RECORD_SAMPLE ? FOR_SAMPLES_BYTES : 0, bytes = padded(record);
	uint32_t pid = record_pid(record);

	if (in->kept.records.len + pending_bytes(in->pending) + bytes <=
		    (rings > MAX_KEPT_BYTES ? rings : MAX_KEPT_BYTES) + more &&
	    *process_bytes(&in->kept.of, pid) + pending_bytes_of(in->pending, pid) + bytes <=
		    (rings > MAX_KEPT_OF_ONE ? rings : MAX_KEPT_OF_ONE) + more / 4)
		return true;
	lose(in, LOSS_WAITING, record);
	return false;
}

/* Takes a record of a ring, or one that was kept. */
static void add_record(struct intake *in, const struct record *record)
{
	int error = pending_add(in->pending, record);

	if (record->kind != RECORD_SAMPLE)
		return;
	if (error == -ENOMEM)
		lose(in, LOSS_MEMORY, record);
	else if (error)
		in->counts.malformed++;
}

static void read_record(void *arg, const struct record *record)
{
	struct intake *in = arg;

	meet_program(in, record);
	if (has_room(in, record))
		add_record(in, record);
}

static void keep_record(void *arg, const struct record *record)
{
	static const uint8_t padding[8];
	struct intake *in = arg;

	meet_program(in, record);
	if (!has_room(in, record))
		return;
	if (buf_reserve(&in->kept.records, padded(record))) {
		lose(in, LOSS_MEMORY, record);
		return;
	}
	*process_bytes(&in->kept.of, record_pid(record)) += padded(record);
	buf_append(&in->kept.records, record, record->size);
	buf_append(&in->kept.records, padding, padded(record) - record->size);
}

void intake_keep_samples(struct intake *in)
{
	(void)sampler_drain(in->sampler, keep_record, in);
}

void intake_read_ahead(struct intake *in)
{
	uint64_t now_ns = clock_mono_ns();

	if (now_ns - in->kept.read_ns < READ_AHEAD_MS * NSEC_PER_MSEC)
		return;
	in->kept.read_ns = now_ns;
	side_band_drain(in->side_band, keep_side_band, in);
	intake_keep_samples(in);
}

static void read_kept(struct intake *in)
{
	struct side_band_record *const *records = (void *)in->kept.side_band.data;

	for (size_t i = 0; i < in->kept.side_band.len / sizeof(*records); i++)
		add_side_band(in, records[i]);
	buf_fini(&in->kept.side_band);
	for (size_t off = 0; off < in->kept.records.len;) {
		const struct record *record = (const void *)(in->kept.records.data + off);

		add_record(in, record);
		off += padded(record);
	}
	buf_fini(&in->kept.records);
	memset(&in->kept.of, 0, sizeof(in->kept.of));
}

/* --- applying --- */

static void publish_asid(void *arg, struct process *p)
{
	struct intake *in = arg;

	process_publish(p, in->sampler);
}

/* Facts for a sample from before an exec that were read after the exec are the new program's. */
static void forget_mistaken(struct intake *in, const struct side_band_record *record)
{
	struct process *p = processes_peek(in->processes, record->pid);

	if (!p || !p->has_own_facts || !p->facts || p->facts->read_ns < record->time_ns)
		return;
	process_facts_put(p->facts);
	p->facts = NULL;
	facts_reader_count_mistaken(in->facts);
}

static void apply_side_band(void *arg, const struct side_band_record *record)
{
	struct intake *in = arg;
	struct process *changed;

	if (record->kind == SIDE_BAND_COMM && record->is_exec)
		forget_mistaken(in, record);
	if (record->kind == SIDE_BAND_KSYMBOL)
		kernel_names_apply(in->kernel_names, record);
	else if (processes_apply(in->processes, record, &changed))
		in->reread_all = true;
	else if (changed)
		publish_asid(in, changed);
}

/* Takes over what the kernel said of the process's identity; tells the kernel the asid when it did not know it. */
static struct process *identify(struct intake *in, struct process *p, const struct pending_sample *s)
{
	const struct sample_regs *id = s->regs;

	/* The pid has another process, or another program, than the one we know: records were lost. */
	if ((p->is_known && p->start_boottime_ns != id->start_boottime_ns) ||
	    ((p->is_known || p->expects_exec_id) && p->exec_id != id->exec_id)) {
		p = processes_renew(in->processes, p->pid);
		if (!p)
			return NULL;
	}
	if (!p->is_known || s->record->end == END_MISS_PROC) {
		p->start_boottime_ns = id->start_boottime_ns;
		p->exec_id = id->exec_id;
		p->is_known = true;
		p->as->chains_told = false; /* where the kernel forgot the one it may have forgotten the other */
		publish_asid(in, p);
	}
	return p;
}

/* Takes the facts that were read when @s arrived. If the process was gone, its parent's facts still hold: it has run nothing
 * else. */
static void take_facts(struct intake *in, struct process *p, const struct pending_sample *s)
{
	struct program_id id = { .pid = p->pid };
	struct process_facts *facts;

	if (p->has_own_facts || (!s->regs && s->record->end != END_EXITING))
		return;
	if (s->regs) {
		id.start_boottime_ns = s->regs->start_boottime_ns;
		id.exec_id = s->regs->exec_id;
	}
	facts = facts_reader_take(in->facts, &id);
	p->has_own_facts = true;
	if (facts && p->facts && !facts->is_whole) {
		process_facts_put(facts);
	} else if (facts) {
		process_facts_put(p->facts);
		p->facts = facts;
	}
}

/* Has the names of the last sample's files fetched from now on; the frames from @known on are new. */
static void meet_files(struct intake *in, uint32_t known)
{
	const struct trace_frame *innermost = traces_last_user_frame(in->traces);

	for (uint32_t i = known; i < traces_frame_count(in->traces); i++) {
		const struct trace_frame *frame = traces_frame(in->traces, i);

		if (!frame->file)
			continue;
		files_mark(in->files, frame->file, frame->addr);
		indexes_meet(in->indexes, frame->file);
	}
	if (innermost && innermost->file && innermost->file->index)
		innermost->file->index->samples++;
}

/* Takes the function's object that the kernel copied: the samples behind it have frames in it. */
static void apply_object(void *arg, const struct object_record *r)
{
	struct intake *in = arg;
	struct process *p = processes_find(in->processes, r->pid);
	const struct chain_state *layout = p ? chain_layout(p->as, r->runtime) : NULL;
	AUTO(buf_fini) struct buf content = BUF_EMPTY;
	struct object *object;

	if (!layout || object_read(r, layout, &content) ||
	    objects_add(in->objects, r->runtime, content.data, (uint32_t)content.len, &object)) {
		in->counts.chains[r->runtime < RUNTIME_ID_MAX ? r->runtime : 0].malformed_objects++;
		return;
	}
	(void)process_set_object(p, r->addr, r->check, object);
	object_put(object);
}

/* The stack of @s with the frames of scripts in it. Returns how many frames it has; *@user are those of the native walk
 * before. */
static uint32_t merge(struct intake *in, const struct process *p, const struct pending_sample *s, const uint64_t *sps,
		      const uint64_t **user, uint32_t user_cnt)
{
	merge_chains(p, s, *user, sps, user_cnt, in->counts.chains, in->merged);
	*user = in->merged->frames;
	return in->merged->count;
}

/* Adds a sample of how often a lock was waited for, if the one that was added last is of such a wait. */
static void add_contentions(struct intake *in, const struct pending_sample *s)
{
	uint32_t kind = in->contention_kind;
	uint64_t count = kind ? contentions_of(s) : 0;

	in->counts.made[kind].samples += count > 0;
	in->counts.made[kind].value += count;
	if (count && traces_add_contentions(in->traces, kind, count))
		lose_one(in, LOSS_MEMORY, kind, count);
}

/* Adds the samples of other kinds that came with the one that was added last, and that of who ended its wait. */
static void add_more(struct intake *in, const struct pending_sample *s)
{
	add_contentions(in, s);
	traces_join_waker(in->traces, s);
	for (uint32_t i = 0; i < s->more_cnt; i++) {
		uint64_t kind = s->more[2 * i], value = s->more[2 * i + 1];

		if (kind >= in->kind_cnt)
			in->counts.malformed++;
		else if (traces_add_more(in->traces, (uint32_t)kind, value))
			lose_one(in, LOSS_MEMORY, kind, value);
	}
}

bool intake_add(struct intake *in, struct process *p, const struct pending_sample *s, const uint64_t *user, uint32_t count,
		enum walk_end end)
{
	uint32_t known = traces_frame_count(in->traces);

	if ((s->wakes ? traces_add_waker : traces_add)(in->traces, p, s, user, count, end)) {
		lose_sample(in, LOSS_MEMORY, s);
		return false;
	}
	if (s->chain_cnt && !s->wakes)
		traces_note_script(in->traces, in->merged->outcome, in->merged->lock);
	add_more(in, s);
	meet_files(in, known);
	return true;
}

static bool apply_sample(void *arg, const struct pending_sample *s)
{
	const struct sample_record *r = s->record;
	struct intake *in = arg;
	bool is_outside = r->flags & SAMPLE_OUTSIDE;
	struct process *p = is_outside ? processes_outside(in->processes) : processes_find(in->processes, r->pid);
	uint64_t kernel_sps[MAX_USER_FRAMES], made[MAX_USER_FRAMES];
	struct pending_sample mended;
	struct user_part part;

	if (r->kind >= in->kind_cnt) {
		in->counts.malformed++;
		return false;
	}
	if (s->wait || s->wakes) {
		mended = *s;
		wait_stacks_mend(&mended);
		if (s->target)
			mended.target_name = wait_targets_name(in->targets, r->pid, s->target);
		s = &mended;
	}
	if (p && s->regs && !is_outside)
		p = identify(in, p, s);
	if (!p) {
		lose_sample(in, LOSS_MEMORY, s);
		return false;
	}
	p->own_pid = r->own_pid;
	p->is_met = true;
	if (p->is_restless && restless_ends(in->processes, p, clock_mono_ns()))
		publish_asid(in, p);
	if (!is_outside)
		take_facts(in, p, s);
	if (s->span && !process_context_of(p))
		process_context_look(p, true);
	if (user_part_find(in, p, s, &part))
		return true;
	/* A frame-pointer walk ends where the return address is no code: that address is no frame. */
	if (part.end == END_NO_MAPPING && part.count > 1)
		part.count--;
	if (part.capture_cnt && !p->as->code)
		(void)code_spaces_meet(in->code, p);
	if (p->as->code) {
		part.count = code_frames(in->code, p, s, part.frames, part.count, part.captures, part.capture_cnt, made,
					 &part.end);
		part.frames = made;
	}
	if (s->chain_cnt && !part.sps)
		for (uint32_t i = 0; i < part.count; i++)
			kernel_sps[i] = sample_sp(s, i);
	if (s->chain_cnt)
		part.count = merge(in, p, s, part.sps ? part.sps : kernel_sps, &part.frames, part.count);
	if (!intake_add(in, p, s, part.frames, part.count, part.end))
		return false;
	code_settle(p);
	if (traces_last_asks_runtimes(in->traces))
		runtimes_see(in->runtimes, p);
	in->counts.ends[traces_last_end(in->traces)]++;
	if (!in->oldest_ns || r->hdr.time_ns < in->oldest_ns)
		in->oldest_ns = r->hdr.time_ns;
	return false;
}

void intake_read_asleep(struct intake *in)
{
	wait_stacks_begin(in->waits);
	wait_targets_begin(in->targets);
	(void)sampler_tell_asleep(in->sampler, read_record, in);
}

void intake_read_side_band(struct intake *in)
{
	side_band_drain(in->side_band, keep_side_band, in);
}

/* Reads all records and applies those older than @before_ns; 0: older than the moment when reading began. */
static void run(struct intake *in, uint64_t before_ns)
{
	static const struct pending_ops ops = { .object = apply_object,
						.sample = apply_sample,
						.side_band = apply_side_band };
	uint64_t now_ns = clock_mono_ns();

	read_kept(in);
	side_band_drain(in->side_band, take_side_band, in);
	/* Opening a mapped file may have waited. Records kept meanwhile are older than those released below. */
	read_kept(in);
	(void)sampler_drain(in->sampler, read_record, in);
	in->kept.read_ns = now_ns;
	in->counts.lost[LOSS_MALFORMED][0].samples = in->counts.malformed + sampler_malformed(in->sampler);
	pending_release(in->pending, before_ns ? before_ns : now_ns, &ops, in);
	if (in->reread_all && allowance_is_left(&in->rereading, now_ns)) {
		now_ns = clock_mono_ns();
		in->reread_all = false;
		processes_reread_all(in->processes, publish_asid, in);
		allowance_spend(&in->rereading, now_ns, clock_mono_ns());
	}
}

void intake_run(struct intake *in)
{
	run(in, 0);
}

void intake_run_all(struct intake *in)
{
	run(in, UINT64_MAX);
}

bool intake_is_done(const struct intake *in)
{
	return pending_is_empty(in->pending) && !in->kept.records.len && !in->kept.side_band.len;
}

void intake_fini(struct intake *in)
{
	struct side_band_record **records = (void *)in->kept.side_band.data;

	for (size_t i = 0; i < in->kept.side_band.len / sizeof(*records); i++)
		free(records[i]);
	buf_fini(&in->kept.side_band);
	buf_fini(&in->kept.records);
}
