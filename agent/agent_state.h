/* SPDX-License-Identifier: Apache-2.0 */
/* The agent's state, shared by agent.c, cpus.c and accounting.c. */
#ifndef HEARTH_AGENT_AGENT_STATE_H
#define HEARTH_AGENT_AGENT_STATE_H

#include "agent/agent.h"
#include "agent/feed.h"
#include "agent/report/interval.h"
#include "agent/kind/kind.h"
#include "agent/names/names.h"
#include "agent/proc/proc_root.h"

struct file_opener;
struct heaps;
struct loop_watch;

struct agent {
	unsigned part_cnt;		 /* parts that were started, of the table in agent/parts.c */
	struct intake in;		 /* owns the objects that its pointers lead to, but not the metrics */
	struct elf_service *code_reader; /* until the processes have it */
	struct indexes *indexes;
	struct names *names;
	struct truth_counts *truths;
	struct module_status *modules;
	struct interval *interval;
	struct sink *out;  /* borrowed */
	struct loop *loop; /* borrowed */
	struct extra_report *extra_reports;
	struct loop_watch *side_band_watch, *ring_watch, *settle_timer, *report_timer, *cpu_timer, *clock_watch, *code_timer;
	struct pid_space pids; /* the pids that samples have */
	bool is_settling;      /* the settle timer is set */
	bool looks_at_code;    /* the code timer is set */
	int clock_fd;
	uint32_t *cpus; /* sampled now */
	uint32_t cpu_cnt, cpu_cap;
	struct session_kinds kinds;
	struct heaps *heaps; /* NULL: they are not asked for */
	uint32_t *chosen;    /* CPUs of --cpu; none: all are sampled */
	uint32_t chosen_cnt;
	unsigned random;			    /* state of rand_r */
	uint64_t report_interval_ns, report_due_ns; /* due: CLOCK_MONOTONIC */
	double report_jitter;
	uint64_t interval_start_ns;
	uint64_t rows_saved_ns; /* when rows were last written for later starts */
	/* The interval before, while it waits for names, at most until the next one ends. */
	struct traces *held; /* empty: none waits */
	uint64_t held_start_ns, held_end_ns;
	uint32_t held_named; /* names of so many of its frames come no more */
	struct sample_sum delivered[MAX_KINDS];
	uint64_t not_sampled;
	int sink_error; /* the last error that was not -EAGAIN */
	bool paused, stopped;
};

enum { AGENT_MAX_CPUS = 4096 };

/* Has the agent hear of files: of names that came, and of waits, in which samples must be read on. */
void agent_follow_files(struct agent *a, struct file_opener *opener);
/* The same of waits for the reader of generated code. */
void agent_follow_code(struct agent *a);

/* Adds the sources of events to the loop. 0 or -errno; agent_unwatch() either way. */
int agent_watch(struct agent *a);
void agent_unwatch(struct agent *a);

/* Opens events on CPUs that are online now, closes the events of CPUs that went. 0 or the last error. */
int agent_follow_cpus(struct agent *a);

/* Takes the CPUs of @filter. All must be there when we start; a CPU that goes later is waited for. 0; -ENODEV with @err
 * filled; -errno. */
int agent_choose_cpus(struct agent *a, const struct agent_filter *filter, struct agent_error *err);

/* Reports the samples read so far now. A report that was held back for names goes out without them. */
void agent_report(struct agent *a);
void agent_hand_over_held(struct agent *a);

/* Drops the reports that agent_report_at() asked for and that are still to come. */
void agent_drop_extra_reports(struct agent *a);

/* Logs what the kernel's caches did not have, at the debug level. */
void agent_tell_misses(const struct agent *a);

/* Says in the metrics how much memory each part of the agent holds. */
void agent_tell_memory(struct agent *a);

/* Registers the agent's counters, refreshed when metrics are collected. 0 or -ENOMEM. */
int agent_metrics(struct agent *a);
void agent_metrics_off(struct agent *a);

#endif
