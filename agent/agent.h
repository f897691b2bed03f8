/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The profiler as commands see it: made, started, run by the caller's loop, stopped and drained. It builds one struct
 * profiles each report interval and hands it to one sink. Everything runs on the loop's thread.
 */
#ifndef HEARTH_AGENT_AGENT_H
#define HEARTH_AGENT_AGENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct agent;
struct buf;
struct loop;
struct metrics;
struct sink;

/* Whether functions are named, and how well. */
enum symbols_wanted {
	SYMBOLS_FULL,	/* with inlined calls, files and lines */
	SYMBOLS_TABLES, /* names out of tables of symbols */
	SYMBOLS_OFF,
};

/* What is sampled. Filters of different kinds must all let a sample pass, of the values of one kind any will do; a kind
 * without values is off. Everything is borrowed. */
struct agent_filter {
	const uint32_t *pids; /* these processes (and their later children) ... */
	size_t pid_count;
	bool follow_pids_only; /* filter by pid even when @pids is empty: agent_add_pid() will add some */
	bool no_inherit;       /* children of @pids are not followed */
	const uint32_t *tids;  /* ... and these threads */
	size_t tid_count;
	const uint32_t *cpus;
	size_t cpu_count;
	const uint32_t *uids;
	size_t uid_count;
	const char *const *cgroups; /* of version 2, with those below them */
	size_t cgroup_count;
	const char *const *containers; /* by id or its beginning; one kind with @cgroups */
	size_t container_count;
	const char *const *comms; /* shell patterns for names of threads, or of the processes they are of */
	size_t comm_count;
	uint64_t min_age_ns; /* of a process */
	bool idle;	     /* idle CPUs too */
	bool no_kernel;	     /* no kernel frames and no kernel threads */
	bool kernel_only;    /* nothing but time in the kernel */
};

struct agent_config {
	unsigned freq_hz; /* samples per second and CPU; 0: as many as the kernel allows, AGENT_MAX_FREQ at most */
	uint64_t period; /* events from sample to sample, instead of @freq_hz when not 0; nanoseconds where the event is time
			  */
	const char *event; /* cpu-clock, task-clock, cycles, instructions, ... as perf names them */
	struct agent_filter filter;
	uint64_t report_interval_ns;
	double report_jitter; /* 0.2: each interval is drawn from +-20 % */
	/* What is told of each process's resource, beside what hearth sees: variables of its environment; and for all that
	 * say nothing else of themselves, in the form of OTEL_RESOURCE_ATTRIBUTES, and a service's name. NULL: none. */
	const char *const *env_vars;
	size_t env_var_count;
	const char *resource_attributes, *service_name;
	unsigned stack_chunks;	/* 4 KB chunks of stack a missing sample may carry; 64 when 0 */
	size_t ring_bytes;	/* a ring buffer; chosen by the number of CPUs when 0 */
	unsigned map_scale;	/* the caches doubled so many times, 0 to 8 */
	unsigned bpf_log_level; /* of the verifier: 0 none, 1 brief, 2 all */
	bool error_frames;	/* a frame at the root of each truncated stack says why */
	bool no_version_check;	/* start although the kernel is older than any that was tried */
	bool unsafe_kernel;	/* start although the kernel has the copy_from_user_nofault bug */
	enum symbols_wanted symbols;
	const char *symbol_cache;    /* folder of indexes of names; NULL: the default one */
	uint64_t symbol_cache_bytes; /* what they may take */
	bool no_helper;		     /* read other programs' files in this process */
	bool no_bpf_loop;	     /* use the tail-call form of the walk also where bpf_loop exists (tests) */
};

/* Says in a person's words why starting failed; one or two sentences, no newline. */
struct agent_error {
	char message[512];
};

enum { AGENT_MAX_FREQ = 10000 };

/* Checks of the event and the filters what needs no kernel. 0, or -EINVAL with @err filled; @option_ret: the option that is
 * wrong. Whether this machine has the event shows when it is opened. */
int agent_check_config(const struct agent_config *config, const char **option_ret, struct agent_error *err);

/* Reads a list of CPUs such as "0-3,8" into @cpus. Their number, or -EBADMSG, -ENOSPC. */
int agent_parse_cpus(const char *text, uint32_t *cpus, size_t max);

/* Loads the programs and reads /proc; samples nothing yet. 0 or -errno with @err filled. @out and @metrics are borrowed. */
int agent_new(const struct agent_config *config, struct loop *loop, struct metrics *metrics, struct sink *out,
	      struct agent **ret, struct agent_error *err);

/* Starts sampling. */
int agent_start(struct agent *a, struct agent_error *err);

/* Goes on without sampling, and with it again; what was sampled is reported as ever. 0 or -errno. */
int agent_pause(struct agent *a, bool on);

/* Other report intervals, from the next one on. */
void agent_set_interval(struct agent *a, uint64_t report_interval_ns, double report_jitter);

/* Adds a process to the pid filter. */
int agent_add_pid(struct agent *a, uint32_t pid);

/* Has what is sampled until @at_ns (CLOCK_MONOTONIC) reported soon after it, out of turn. 0 or -errno. */
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
	uint64_t not_sampled; /* what the time of busy CPUs implies and the program never saw; an estimate, printed apart */
	uint64_t complete;    /* samples whose user walk reached a root */
	uint64_t truncated;   /* the others that had a user part */
	const char *chief;    /* most frequent reason of these, NULL when there are none ... */
	uint64_t chief_count; /* ... and how many it has */
	uint64_t late;	      /* walked in user space */
	uint64_t cpus;	      /* online now */
	uint64_t processes;   /* known now */
};
void agent_stats_read(struct agent *a, struct agent_stats *ret);

/* Appends one "name count" pair for each loss that is not 0, comma separated; nothing when none. */
void agent_losses_print(struct agent *a, struct buf *out);

/* One line of what was configured and found (kernel, CPUs, form of the walk, rings), for the log. */
void agent_describe(struct agent *a, struct buf *out);

/* What hearth needs of a kernel, its settings and its own privileges, for `hearth check`. */
enum check_result {
	CHECK_YES,
	CHECK_PARTLY,  /* it works, but less well, or not all of it */
	CHECK_NO,      /* it does not work */
	CHECK_UNKNOWN, /* it cannot be told, and nothing hangs on it alone */
	CHECK_RESULT_MAX,
};
struct check {
	const char *name; /* of the requirement */
	enum check_result result;
	const char *found;  /* what is there; "" when there is nothing to say */
	const char *means;  /* what it is for */
	const char *advice; /* what to do about it; "" when the result is yes */
};

/* Calls @fn for each requirement. Returns how many of them are CHECK_NO. */
int agent_check(bool any_version, void (*fn)(void *arg, const struct check *check), void *arg);

#endif
