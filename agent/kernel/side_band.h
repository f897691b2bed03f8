/* SPDX-License-Identifier: Apache-2.0 */
/*
 * perf side-band records: mmap, comm, fork and exit of every process, and code the kernel makes, on one dummy event a CPU,
 * stamped with CLOCK_MONOTONIC as the samples are. The records survive the process that they are about.
 */
#ifndef HEARTH_AGENT_KERNEL_SIDE_BAND_H
#define HEARTH_AGENT_KERNEL_SIDE_BAND_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/proc/file_key.h"

struct loop;
struct metrics;

enum side_band_kind { SIDE_BAND_MMAP, SIDE_BAND_COMM, SIDE_BAND_FORK, SIDE_BAND_EXIT, SIDE_BAND_KSYMBOL, SIDE_BAND_LOST };

struct side_band_record {
	enum side_band_kind kind;
	uint64_t time_ns;
	uint32_t pid, tid;
	uint32_t parent_pid;	    /* FORK */
	bool is_exec;		    /* COMM: a new program */
	bool is_unregister;	    /* KSYMBOL: the code is gone */
	uint64_t start, end, pgoff; /* MMAP; KSYMBOL: code the kernel made, without pgoff */
	struct file_key key;	    /* MMAP */
	char name[];		    /* MMAP: path; COMM, KSYMBOL: name; NUL-terminated */
};

struct side_band;

/*
 * Opens one event for each online CPU (see side_band_add_cpu); -errno. The kernel writes pids of this process's own
 * namespace: @has_pids says that these are the pids used everywhere; otherwise only records of KSYMBOL and LOST come.
 * Records of tasks without a pid in that namespace are counted and left out.
 */
int side_band_new(struct metrics *metrics, bool has_pids, struct side_band **ret);
void side_band_free(struct side_band *s);

/* Each record makes side_band_fd() readable, for whoever must act on it soon. Before the first CPU is added. */
void side_band_wake_at_once(struct side_band *s);

/* Follows a CPU that came online. 0, -EEXIST, -errno. */
int side_band_add_cpu(struct side_band *s, uint32_t cpu);
void side_band_remove_cpu(struct side_band *s, uint32_t cpu);

/* An epoll descriptor that is readable when the ring of any CPU is half full: a single record wakes nobody, unless
 * side_band_wake_at_once() was called. */
int side_band_fd(const struct side_band *s);

/* Hands out all records of the rings, the oldest first; @fn takes ownership of each (free()). It may not call this again. */
void side_band_drain(struct side_band *s, void (*fn)(void *arg, struct side_band_record *record), void *arg);

#endif
