/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reports out of turn, for callers that need the samples up to now and cannot wait for the next report. Each has a timer of
 * its own and is freed with it. Runs on the loop's thread.
 */
#include <errno.h>
#include <stdlib.h>

#include "agent/agent.h"
#include "agent/agent_state.h"
#include "base/clock.h"
#include "base/loop.h"

enum {
	SETTLE_MS = 20, /* until the last samples before a point in time have been read */
	HELD_MS = 250,	/* time to wait for names; then the stacks go out without them */
};

/* A report out of turn, and soon after it the stacks that were held back for names. */
struct extra_report {
	struct agent *agent;
	struct extra_report *next;
	struct loop_watch *timer;
	bool is_made;
};

static void forget_extra_report(struct extra_report *e)
{
	struct extra_report **link = &e->agent->extra_reports;

	while (*link != e)
		link = &(*link)->next;
	*link = e->next;
	loop_remove(e->timer);
	free(e);
}

static void on_extra_report(void *arg)
{
	struct extra_report *e = arg;

	if (!e->is_made) {
		agent_report(e->agent);
		e->is_made = true;
		if (!loop_set_timer(e->timer, HELD_MS * NSEC_PER_MSEC, 0))
			return;
	}
	agent_hand_over_held(e->agent);
	forget_extra_report(e);
}

int agent_report_at(struct agent *a, uint64_t at_ns)
{
	struct extra_report *e = calloc(1, sizeof(*e));
	uint64_t now_ns = clock_mono_ns();
	int err = e ? loop_add_timer(a->loop, on_extra_report, e, &e->timer) : -ENOMEM;

	if (err) {
		free(e);
		return err;
	}
	e->agent = a;
	e->next = a->extra_reports;
	a->extra_reports = e;
	/* The last samples have settled a little later. */
	at_ns += 2 * SETTLE_MS * NSEC_PER_MSEC;
	err = loop_set_timer(e->timer, at_ns > now_ns ? at_ns - now_ns : 1, 0);
	if (err)
		forget_extra_report(e);
	return err;
}

void agent_drop_extra_reports(struct agent *a)
{
	while (a->extra_reports)
		forget_extra_report(a->extra_reports);
}
