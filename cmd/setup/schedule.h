/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decides when a session samples: after --delay, and with --probabilistic only in the intervals that chance chooses. Main
 * thread.
 */
#ifndef HEARTH_CMD_SETUP_SCHEDULE_H
#define HEARTH_CMD_SETUP_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

struct agent;
struct buf;
struct config;
struct loop;
struct loop_watch;

struct schedule {
	struct agent *agent; /* borrowed */
	struct loop_watch *timer;
	uint64_t delay_ns;
	uint64_t interval_ns; /* 0: chance is asked once */
	double percent;
	bool has_begun;	 /* the delay is over */
	unsigned random; /* state of rand_r */
};

/* Fills @s from @config; starts nothing yet. 0; -EINVAL with what is wrong in @error, one line. */
int schedule_init(struct schedule *s, const struct config *config, struct buf *error);

/* "PERCENT" or "PERCENT/TIME" (0 when there is none). 0 or -EINVAL. */
int schedule_parse(const char *text, double *percent_ret, uint64_t *interval_ns_ret);

/* Does sampling begin later, or not always? Then the agent is to be started paused. */
bool schedule_is_on(const struct schedule *s);

/* Takes the settings of chance from @to; the delay stays. 0 or -errno. */
int schedule_change(struct schedule *s, const struct schedule *to, struct loop *loop);

/* Takes over from the agent's start on. 0 or -errno. */
int schedule_start(struct schedule *s, struct loop *loop, struct agent *agent);

#endif
