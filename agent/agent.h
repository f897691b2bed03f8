/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The profiler as commands use it: they make it, start it, run it in their loop, stop and drain it. The profiler builds one
 * struct profiles each report interval and hands it to one sink. Everything runs on the loop's thread.
 */
#ifndef HEARTH_AGENT_AGENT_H
#define HEARTH_AGENT_AGENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/config.h"

struct agent;
struct buf;
struct loop;
struct metrics;
struct sink;

/* Finds @config's kinds of samples, and checks its filters, as far as that needs no kernel. 0, -ENOMEM, or -EINVAL with @err
 * filled; @option_ret: the option that is wrong. Whether this machine has the event shows when it is opened. */
int agent_config_settle(struct agent_config *config, const char **option_ret, struct agent_error *err);

/* Adds the allocator of the process @pid, a command's that waits for its start, to what @config samples, which is settled
 * and samples malloc. 0, or -errno with @err filled. */
int agent_config_add_malloc(const struct agent_config *config, uint32_t pid, struct agent_error *err);

/* Does @event, as -e takes it, name a probe? agent_config.probes is a list of such, and event is another. */
bool agent_is_probe(const char *event);

/* Frees what agent_config_settle() made, after an error too. */
void agent_config_fini(struct agent_config *config);

/* Reads a list of CPUs such as "0-3,8" into @cpus. Their number, or -EBADMSG, -ENOSPC. */
int agent_parse_cpus(const char *text, uint32_t *cpus, size_t max);

/* Loads the programs and reads /proc; samples nothing yet. 0 or -errno with @err filled. @config is a settled one. Its texts
 * are borrowed, and so are @out and @metrics. */
int agent_new(const struct agent_config *config, struct loop *loop, struct metrics *metrics, struct sink *out,
	      struct agent **ret, struct agent_error *err);

/* Starts sampling. */
int agent_start(struct agent *a, struct agent_error *err);

/* Turns sampling off, or on again; samples taken before are reported as usual. 0 or -errno. */
int agent_pause(struct agent *a, bool on);

/* Sets the length of report intervals, from the next one on. */
void agent_set_interval(struct agent *a, uint64_t report_interval_ns, double report_jitter);

/* Adds a process to the pid filter. */
int agent_add_pid(struct agent *a, uint32_t pid);

/* Has the samples until @at_ns (CLOCK_MONOTONIC) reported soon after that time, out of turn. 0 or -errno. */
int agent_report_at(struct agent *a, uint64_t at_ns);

/* Stops taking samples, reads out what the kernel still holds, waits for names until @deadline_ns (CLOCK_MONOTONIC) at most,
 * and hands the last profiles to the sink (which is not flushed). The counts below are final after it. 0, or the last error
 * of the sink's consume() other than -EAGAIN. */
int agent_stop(struct agent *a, uint64_t deadline_ns);

void agent_free(struct agent *a);

/* The accounting. taken = delivered + lost + pending exactly; pending is 0 after agent_stop. */
struct agent_stats {
	uint64_t taken;	      /* entries of our program that passed the filters */
	uint64_t delivered;   /* in profiles that the sink took */
	uint64_t lost;	      /* sum of the named losses */
	uint64_t pending;     /* read from the kernel or still there, not in a profile yet */
	uint64_t not_sampled; /* samples that the time of busy CPUs implies and the program never saw; an estimate, printed
				 apart */
	uint64_t complete;    /* samples whose user walk reached a root */
	uint64_t truncated;   /* other samples with a user part */
	const char *chief;    /* most frequent reason of these, NULL when there are none ... */
	uint64_t chief_count; /* ... and how many it has */
	uint64_t late;	      /* walked in user space */
	uint64_t cpus;	      /* online now */
	uint64_t processes;   /* known now */
};
void agent_stats_read(struct agent *a, struct agent_stats *ret);

/* Appends a line for each kind of samples, where there are several: "off_cpu: N samples taken = N delivered + N lost", and
 * of kinds whose samples have a length of time, the same of that. */
void agent_kinds_print(struct agent *a, struct buf *out);

/* Appends one "name count" pair for each loss that is not 0, comma separated. */
void agent_losses_print(struct agent *a, struct buf *out);

/* One line about the configuration and the machine (kernel, CPUs, form of the walk, rings), for the log. */
void agent_describe(struct agent *a, struct buf *out);

/* The requirements that hearth has of a kernel, its settings and its own privileges, for `hearth check`. */
enum check_result {
	CHECK_YES,
	CHECK_PARTLY,  /* it works, but less well, or not all of it */
	CHECK_NO,      /* it does not work */
	CHECK_UNKNOWN, /* it cannot be told, and hearth may work without it */
	CHECK_RESULT_MAX,
};
struct check {
	const char *name; /* name of the requirement */
	enum check_result result;
	const char *found;  /* the state that was found; "" when there is nothing to say */
	const char *means;  /* the use that hearth has for it */
	const char *advice; /* advice; "" when the result is yes */
};

/* Calls @fn for each requirement, with the programs' files below @proc. Returns how many of them are CHECK_NO. */
int agent_check(bool any_version, const char *proc, void (*fn)(void *arg, const struct check *check), void *arg);

#endif
