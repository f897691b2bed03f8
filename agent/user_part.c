/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel's walk is taken but for what its rows may have been out of date for; what the kernel could not walk, and a
 * thread that sleeps, is walked here. Agent's thread. */
#include <stddef.h>

#include "agent/user_part.h"
#include "agent/feed.h"
#include "base/clock.h"

enum { MAX_WAIT_MS = 2000 }; /* how long samples wait for a file that is being read */

/* How many frames there are up to the first whose row may be out of date. */
static uint32_t cut_stale(const struct process *p, const struct pending_sample *s, enum walk_end *end)
{
	uint32_t i;

	for (i = 0; i < s->user_cnt; i++) {
		uint64_t addr = (s->user[i] & ~FRAME_EXACT) - !(s->user[i] & FRAME_EXACT);

		if (!address_space_is_stale(p->as, s->record->asid, addr))
			continue;
		*end = END_STALE;
		return i + 1; /* the frame was there, but its row's word on the caller is not believed */
	}
	return i;
}

/* Must the sample with @result wait for a file? It does not wait for ever, as the file's reader may be stuck. */
static bool must_wait(struct intake *in, const struct late_result *result)
{
	uint64_t now_ns = clock_mono_ns();

	if (!result->is_unfinished)
		in->waits_since_ns = 0;
	else if (!in->waits_since_ns)
		in->waits_since_ns = now_ns;
	return result->is_unfinished && now_ns - in->waits_since_ns < MAX_WAIT_MS * NSEC_PER_MSEC;
}

/* Walks @s. Returns whether it must wait for a file. */
static bool walk_late(struct intake *in, struct process *p, const struct pending_sample *s, struct user_part *part)
{
	const struct late_result *result = late_walk(in->late, p, s);

	if (must_wait(in, result))
		return true;
	*part = (struct user_part){ .frames = result->frames,
				    .sps = result->sps,
				    .captures = result->captures,
				    .count = result->count,
				    .capture_cnt = result->capture_cnt,
				    .end = result->end };
	return false;
}

/* Does the same for a thread that still sleeps, unless it is known from the last time. */
static bool walk_asleep(struct intake *in, struct process *p, const struct pending_sample *s, struct user_part *part)
{
	const struct wait_stack *known = wait_stacks_find(in->waits, s, p->as->asid);
	struct asleep_sample asleep;

	if (known) {
		*part = (struct user_part){ .frames = known->frames, .count = known->count, .end = known->end };
		return false;
	}
	part->end = END_COPY_LIMIT;
	for (int more = 0; more < 2 && part->end == END_COPY_LIMIT; more++) {
		bool sleeps = wait_stacks_read(in->waits, s, more, &asleep);

		if (walk_late(in, p, &asleep.sample, part))
			return true;
		if (!sleeps)
			return false;
	}
	if (!code_spaces_has_code(p->as)) /* code that is generated may be named otherwise the next time */
		wait_stacks_keep(in->waits, s, p->as->asid, part->frames, part->count, part->end);
	return false;
}

bool user_part_find(struct intake *in, struct process *p, const struct pending_sample *s, struct user_part *part)
{
	const struct sample_record *r = s->record;

	*part = (struct user_part){ .frames = s->user,
				    .captures = s->captures,
				    .count = s->user_cnt,
				    .capture_cnt = s->capture_cnt,
				    .end = s->is_irq ? END_NONE : r->end };
	if (s->regs && r->flags & SAMPLE_ASLEEP)
		return walk_asleep(in, p, s, part);
	if (s->regs) {
		if (walk_late(in, p, s, part))
			return true;
		in->counts.late_walks++;
		in->counts.misses[r->end]++;
		intake_read_ahead(in); /* many of these in a row take long */
	} else if (r->asid != p->as->asid && r->asid) {
		part->count = cut_stale(p, s, &part->end);
	}
	return false;
}
