/* SPDX-License-Identifier: Apache-2.0 */
/* The agent's insides, shared by agent.c, cpus.c and accounting.c. */
#ifndef HEARTH_AGENT_AGENT_STATE_H
#define HEARTH_AGENT_AGENT_STATE_H

#include "agent/agent.h"
#include "agent/intake.h"
#include "agent/interval.h"
#include "agent/names.h"

struct loop_watch;

struct agent {
	struct intake in; /* owns what its pointers lead to, but the metrics */
	struct indexes *indexes;
	struct names *names;
	struct truth_counts *truths;
	struct module_status *modules;
	struct interval *interval;
	struct sink *out;  /* borrowed */
	struct loop *loop; /* borrowed */
	struct extra_report *extra_reports;
	struct loop_watch *side_band_watch, *ring_watch, *settle_timer, *report_timer, *cpu_timer, *clock_watch;
	bool is_settling; /* the settle timer is set */
	int clock_fd;
	uint32_t *cpus; /* sampled now */
	uint32_t cpu_cnt, cpu_cap;
	unsigned freq_hz;
	uint64_t period;  /* instead of it, when not 0 */
	uint32_t *chosen; /* of --cpu; none: all are */
	uint32_t chosen_cnt;
	unsigned random; /* state of rand_r */
	uint64_t report_interval_ns;
	double report_jitter;
	uint64_t interval_start_ns;
	uint64_t rows_saved_ns; /* when rows were last kept for later lives */
	/* The interval before, which waits for names: until the next one ends at most. */
	struct traces *held; /* empty: none does */
	uint64_t held_start_ns, held_end_ns;
	uint64_t delivered, not_sampled;
	int sink_error; /* the last that was not -EAGAIN */
	bool paused, stopped;
};

enum { AGENT_MAX_CPUS = 4096 };

/* Opens events on CPUs that are online now, closes those of CPUs that went. 0 or the last error. */
int agent_follow_cpus(struct agent *a);

/* Takes the CPUs of @filter. All must be there when we start; one that goes later is waited for. 0; -ENODEV with @err
 * filled; -errno. */
int agent_choose_cpus(struct agent *a, const struct agent_filter *filter, struct agent_error *err);

/* What is read so far becomes a report now; what a report held back for its names goes out without them. */
void agent_report(struct agent *a);
void agent_hand_over_held(struct agent *a);

/* Those asked for by agent_report_at() that are still to come do not come. */
void agent_drop_extra_reports(struct agent *a);

/* Says what the kernel's caches did not have, to who wants to know more. */
void agent_tell_misses(const struct agent *a);

/* Says in the metrics what each part of the agent holds. */
void agent_tell_memory(struct agent *a);

/* Registers the agent's counters, refreshed when metrics are collected. 0 or -ENOMEM. */
int agent_metrics(struct agent *a);
void agent_metrics_off(struct agent *a);

#endif
