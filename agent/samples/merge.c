/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "agent/process/process_objects.h"
#include "agent/samples/merge.h"

/* A segment of a chain: words [from, to) are its frames. */
struct segment {
	uint32_t from, to;
	uint32_t at;	  /* index of the native frame that it stands for; NOWHERE */
	uint32_t before;  /* the native frame before which it stands, or that it stands for */
	uint32_t runtime; /* enum runtime_id */
	bool has_marker;
	bool is_open;  /* it ended with the chain, not with a marker */
	bool has_none; /* no native frame stands for it: it waited while its coroutine slept */
};

enum { MAX_SEGMENTS = MAX_CHAIN_WORDS / 2 };
#define NOWHERE UINT32_MAX

struct merge {
	const struct process *process;
	const struct pending_sample *sample;
	const uint64_t *user, *sps;
	uint32_t user_cnt;
	struct segment segments[MAX_SEGMENTS];
	uint32_t segment_cnt;
	struct chain_counts *counts;
	struct merged *out;
	/* the chain that is read */
	uint32_t first; /* its first segment */
	uint32_t runtime;
	enum chain_end end;
	uint32_t next;		      /* the native frame where the next marker is looked for first */
	uint32_t paired;	      /* segments before this one have been paired with native frames ... */
	uint32_t paired_user;	      /* ... and native frames before this one have been */
	uint64_t loops[MAX_SEGMENTS]; /* CHAIN_LOOP */
	uint32_t loop_cnt;
	uint32_t bodies; /* bit i: frames of the body of enum runtime_id i have segments that stand for them */
};

static void put(struct merge *m, uint64_t frame)
{
	if (m->out->count < MAX_MERGED_FRAMES)
		m->out->frames[m->out->count++] = frame;
}

/* The counts of @runtime; NULL: there is no such runtime. */
static struct chain_counts *counts_of(const struct merge *m, uint32_t runtime)
{
	return runtime < RUNTIME_ID_MAX ? &m->counts[runtime] : NULL;
}

/*
 * The native frame, from number m->next on, whose part of the stack holds @marker. How far the outermost frame's part goes
 * nobody knows: the walk may have ended early.
 */
static uint32_t find_marker(const struct merge *m, uint64_t marker)
{
	for (uint32_t i = m->next; marker && i + 1 < m->user_cnt; i++)
		if (m->sps[i] <= marker && marker < m->sps[i + 1] && m->sps[i + 1] != UINT64_MAX)
			return i;
	return NOWHERE;
}

/* Adds a segment of the words [from, to) that ends with @marker. */
static void add_segment(struct merge *m, uint32_t from, uint32_t to, uint64_t marker, bool is_open)
{
	uint32_t at = find_marker(m, marker);

	if (m->segment_cnt == MAX_SEGMENTS)
		return;
	m->segments[m->segment_cnt++] = (struct segment){
		.from = from,
		.to = to,
		.at = at,
		.runtime = m->runtime,
		.has_marker = marker != 0,
		.is_open = is_open,
	};
	if (at != NOWHERE)
		m->next = at + 1;
}

/* Is native frame @i in code of the interpreter @runtime: its loop, or its body? */
static bool is_in(const struct merge *m, uint32_t i, uint32_t runtime, bool is_body)
{
	uint64_t addr = (m->user[i] & ~FRAME_EXACT) - !(m->user[i] & FRAME_EXACT);
	const struct mapping *in = address_space_find(m->process->as, addr);
	const struct runtime_file *file = in && in->file ? &in->file->info.runtime : NULL;
	uint64_t start, end;

	if (!file || file->kind != RUNTIME_FILE_CHAIN || file->id != runtime)
		return false;
	start = is_body ? file->body.start : file->loop.start;
	end = is_body ? file->body.end : file->loop.end;
	return addr - in->bias >= start && addr - in->bias < end;
}

/* The native frames of the loop up to number @end, innermost first: those that the chain told of, or those in its code. */
static uint32_t find_loops(struct merge *m, uint32_t end, uint32_t loops[static MAX_USER_FRAMES])
{
	uint32_t count = 0;

	for (uint32_t k = 0; k < m->loop_cnt && count < MAX_USER_FRAMES; k++) {
		uint32_t at = find_marker(m, m->loops[k]);

		loops[count++] = at;
		if (at != NOWHERE)
			m->next = at + 1;
	}
	for (uint32_t i = m->paired_user; !m->loop_cnt && i < end && count < MAX_USER_FRAMES; i++)
		if (is_in(m, i, m->runtime, false))
			loops[count++] = i;
	return count;
}

/*
 * Pairs the segments of a chain whose markers have no addresses with the frames of its loop. From the root: where there is
 * one frame more it is the innermost, which has just begun or is about to end, and where there is a segment more, as the
 * chain told of all frames, its frame is about to begin. From the innermost frame where the root's part of the chain or of
 * the native stack is missing.
 */
static void pair_with_loops(struct merge *m)
{
	uint32_t loops[MAX_USER_FRAMES], count, wanted = m->segment_cnt - m->paired, skipped = 0, ahead = 0;

	for (uint32_t k = m->paired; k < m->segment_cnt; k++)
		if (m->segments[k].has_marker)
			return;
	if (m->loop_cnt && wanted && m->end == CHAIN_END_ROOT && m->segments[m->segment_cnt - 1].is_open)
		wanted--;
	count = wanted ? find_loops(m, m->user_cnt, loops) : 0;
	if (m->end == CHAIN_END_ROOT && count > wanted)
		skipped = count - wanted;
	else if (m->end == CHAIN_END_ROOT && m->loop_cnt)
		ahead = wanted - count;
	for (uint32_t k = 0; ahead + k < wanted && skipped + k < count; k++)
		m->segments[m->paired + ahead + k].at = loops[skipped + k];
}

/*
 * Pairs the segments of a coroutine, which the native frame that holds @addr began or went on with, with the frames of the
 * loop inside of that: from the outermost, but those that waited while it slept, which are its outermost ones, have none.
 */
static void end_coroutine(struct merge *m, uint64_t addr)
{
	uint32_t loops[MAX_USER_FRAMES], count, wanted = m->segment_cnt - m->paired, bound, skipped;

	m->next = m->paired_user;
	bound = find_marker(m, addr);
	m->next = 0;
	if (bound == NOWHERE) /* the native stack is not complete */
		return;
	count = find_loops(m, bound, loops);
	skipped = count > wanted ? count - wanted : 0;
	for (uint32_t k = 0; k < wanted; k++) {
		struct segment *segment = &m->segments[m->paired + k];

		segment->has_none = k + skipped >= count;
		segment->at = segment->has_none ? NOWHERE : loops[skipped + k];
		segment->before = segment->has_none ? bound : segment->at;
	}
	m->paired = m->segment_cnt;
	m->paired_user = bound;
}

/* Finds the places of the segments of the chain that was read. One without a native frame stands right before the next that
 * has one, or at the root. */
static void end_chain(struct merge *m)
{
	struct chain_counts *counts = counts_of(m, m->runtime);
	uint32_t before = m->user_cnt, end = m->end;

	pair_with_loops(m);
	for (uint32_t k = m->segment_cnt; k-- > m->first;) {
		struct segment *segment = &m->segments[k];

		if (segment->has_none) {
			before = segment->before;
			continue;
		}
		if (segment->at != NOWHERE)
			before = segment->at;
		if (segment->at != NOWHERE && m->loop_cnt && counts)
			m->bodies |= 1u << m->runtime;
		else if (segment->at == NOWHERE && counts &&
			 segment->from < segment->to) /* Python has one without frames at the root */
			counts->unplaced_segments++;
		if (segment->at == NOWHERE && end == CHAIN_END_ROOT)
			end = SCRIPT_MISFIT;
		segment->before = before;
	}
	if (counts && end != CHAIN_END_NO_THREAD &&
	    (end != CHAIN_END_ROOT || (!m->out->outcome && m->segment_cnt > m->first)))
		m->out->outcome = SCRIPT_OUTCOME(m->runtime, end);
	m->first = m->paired = m->segment_cnt;
	m->next = m->paired_user = 0;
	m->loop_cnt = 0;
}

static void begin_chain(struct merge *m, const uint64_t *head)
{
	struct chain_counts *counts;

	m->runtime = (uint32_t)CHAIN_VALUE(head[0]);
	m->end = CHAIN_END_OF(head[1]) < CHAIN_END_MAX ? (enum chain_end)CHAIN_END_OF(head[1]) : CHAIN_END_TORN;
	if (CHAIN_LOCK_OF(head[1]) < CHAIN_LOCK_MAX && !m->out->lock)
		m->out->lock = CHAIN_LOCK_OF(head[1]);
	counts = counts_of(m, m->runtime);
	if (counts)
		counts->ends[m->end]++;
}

/* Splits the chains into segments. */
static void find_segments(struct merge *m)
{
	const uint64_t *words = m->sample->chain;
	uint32_t from = 0;

	for (uint32_t i = 0; i + 1 < m->sample->chain_cnt; i += 2) {
		switch (CHAIN_KIND(words[i])) {
		case CHAIN_HEAD:
			if (from < i) /* the chain before ended in the middle of a segment */
				add_segment(m, from, i, 0, true);
			end_chain(m);
			begin_chain(m, &words[i]);
			from = i + 2;
			break;
		case CHAIN_LOOP:
			if (m->loop_cnt < MAX_SEGMENTS)
				m->loops[m->loop_cnt++] = CHAIN_VALUE(words[i]);
			from = i + 2;
			break;
		case CHAIN_COROUTINE:
			end_coroutine(m, CHAIN_VALUE(words[i]));
			from = i + 2;
			break;
		case CHAIN_MARKER:
			add_segment(m, from, i, CHAIN_VALUE(words[i]), false);
			from = i + 2;
			break;
		default:
			break;
		}
	}
	if (from + 1 < m->sample->chain_cnt)
		add_segment(m, from, m->sample->chain_cnt, 0, true);
	end_chain(m);
}

/* By place; those of a chain are nearly in order, and segments of one place stay in theirs. */
static void sort_segments(struct merge *m)
{
	for (uint32_t i = 1; i < m->segment_cnt; i++) {
		struct segment segment = m->segments[i];
		uint32_t k = i;

		for (; k && m->segments[k - 1].before > segment.before; k--)
			m->segments[k] = m->segments[k - 1];
		m->segments[k] = segment;
	}
}

static void put_segment(struct merge *m, const struct segment *segment)
{
	struct chain_counts *counts = counts_of(m, segment->runtime);
	const uint64_t *words = m->sample->chain;

	for (uint32_t i = segment->from; i + 1 < segment->to; i += 2) {
		const struct object *object;

		if (CHAIN_KIND(words[i]) != CHAIN_FRAME)
			continue;
		object = process_object(m->process, CHAIN_VALUE(words[i]), CHAIN_CHECK(words[i + 1]));
		put(m, FRAME_OF_SCRIPT(object ? object->id : 0, words[i + 1]));
		if (counts) {
			counts->frames++;
			counts->unknown_objects += !object;
		}
	}
}

/* Does native frame @i only run the instructions of the script, for a frame of the loop that a segment stands for? */
static bool is_body(const struct merge *m, uint32_t i)
{
	for (uint32_t id = 0; id < RUNTIME_ID_MAX; id++)
		if (m->bodies >> id & 1 && is_in(m, i, id, true))
			return true;
	return false;
}

void merge_chains(const struct process *p, const struct pending_sample *s, const uint64_t *user, const uint64_t *sps,
		  uint32_t count, struct chain_counts counts[static RUNTIME_ID_MAX], struct merged *ret)
{
	struct merge m = {
		.process = p, .sample = s, .user = user, .sps = sps, .user_cnt = count, .counts = counts, .out = ret
	};
	uint32_t done = 0;

	ret->count = 0;
	ret->outcome = 0;
	ret->lock = CHAIN_LOCK_UNKNOWN;
	m.runtime = RUNTIME_ID_MAX; /* words before the first head are nobody's */
	find_segments(&m);
	sort_segments(&m);
	for (uint32_t i = 0; i < count; i++) {
		bool is_replaced = false;

		for (; done < m.segment_cnt && m.segments[done].before == i; done++) {
			put_segment(&m, &m.segments[done]);
			is_replaced |= m.segments[done].at == i;
		}
		if (!is_replaced && !is_body(&m, i))
			put(&m, user[i]);
	}
	for (; done < m.segment_cnt; done++)
		put_segment(&m, &m.segments[done]);
}
