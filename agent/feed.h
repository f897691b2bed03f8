/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent's intake: reads both streams of the kernel (side band and samples), applies them in the order of time, walks
 * samples that missed, and puts each sample into the traces of the interval.
 */
#ifndef HEARTH_AGENT_FEED_H
#define HEARTH_AGENT_FEED_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/code/code_spaces.h"
#include "agent/names/indexes.h"
#include "agent/kernel/kernel_names.h"
#include "agent/proc/wait_targets.h"
#include "agent/walk/late_walk.h"
#include "agent/walk/wait_stacks.h"
#include "agent/samples/reorder.h"
#include "agent/process/processes.h"
#include "agent/runtime/runtimes.h"
#include "agent/kernel/sampler.h"
#include "agent/kernel/side_band.h"
#include "agent/objects/objects.h"
#include "agent/samples/merge.h"
#include "agent/samples/traces.h"
#include "base/allowance.h"
#include "base/buf.h"

/* The places where user space may lose a sample. X(name, text) */
#define INTAKE_LOSSES(X)                 \
	X(MEMORY, "out of memory")       \
	X(WAITING, "too many waiting")   \
	X(MALFORMED, "malformed record") \
	X(SINK, "refused by the sink")   \
	X(ALONE, "waker without its wait")

#define X(name, text) LOSS_##name,
enum intake_loss { INTAKE_LOSSES(X) LOSS_MAX };
#undef X

/* Records that were read early, for the next intake_run. */
struct intake_kept {
	struct buf records;	 /* of samples and objects */
	struct process_bytes of; /* of @records */
	struct buf side_band;	 /* pointers to records, owned */
	uint64_t read_ns;	 /* when the rings were last emptied */
};

/* What became of the samples, since the start. */
struct intake_counts {
	struct sample_sum lost[LOSS_MAX][MAX_KINDS];
	uint64_t ends[END_MAX];	  /* how user walks ended, late ones by their late end */
	uint64_t misses[END_MAX]; /* samples to be walked again, by the entry that the kernel did not have */
	uint64_t late_walks;
	struct sample_sum made[MAX_KINDS]; /* taken here, not in the kernel (agent/heap/) */
	uint64_t malformed;		   /* sample records of the rings that made no sense */
	uint64_t mappings_not_followed;	   /* records of processes that map code without end (agent/process/restless.h) */
	uint64_t chunks_not_kept;	   /* pieces of copied stacks for which there was no room */
	struct chain_counts chains[RUNTIME_ID_MAX];
};

struct intake {
	/* the parts that it reads from and gives to: borrowed */
	struct metrics *metrics;
	struct files *files;
	struct processes *processes;
	struct facts_reader *facts;
	struct sampler *sampler;
	struct side_band *side_band;
	struct pending *pending;
	struct late *late;
	struct wait_stacks *waits;
	struct wait_targets *targets;
	struct traces *traces;
	struct indexes *indexes;
	struct runtimes *runtimes;
	struct objects *objects;
	struct merged *merged; /* of the sample that is applied */
	struct code_spaces *code;
	struct kernel_names *kernel_names;
	uint32_t kind_cnt;	  /* kinds of the session */
	uint32_t contention_kind; /* that of contentions; 0: not told */

	struct intake_kept kept;
	bool reread_all; /* side-band records were lost */
	struct allowance rereading;
	uint64_t waits_since_ns; /* the first sample of the pending ones waits for a file; 0: none waits */
	uint64_t oldest_ns;	 /* time of the samples in the traces; 0: none */

	struct intake_counts counts;
};

/* Reads all records; applies those that were there when it began. */
void intake_run(struct intake *in);

/* Does the same, and applies everything: no more records come. */
void intake_run_all(struct intake *in);

/* Have all records that were read been applied? */
bool intake_is_done(const struct intake *in);

/* Empties the rings into memory for the next intake_run, unless that was done a moment ago. To be called while something
 * else takes long; also from inside intake_run. */
void intake_read_ahead(struct intake *in);

/* Reads the side band alone for the next intake_run: opens files, and stops the kernel from walking by mappings that were
 * replaced. */
void intake_read_side_band(struct intake *in);

/* Does the same for samples alone; these open no file. */
void intake_keep_samples(struct intake *in);

/* Reads a sample of each thread that is off its CPU for long, for the next intake_run. */
void intake_read_asleep(struct intake *in);

/* Puts @s, and the samples of other kinds that come with it, into the traces, with the @count user frames @user. False:
 * there is no memory; they count as lost. */
bool intake_add(struct intake *in, struct process *p, const struct pending_sample *s, const uint64_t *user, uint32_t count,
		enum walk_end end);

/* Frees the kept records; the objects that the pointers lead to are the caller's. */
void intake_fini(struct intake *in);

#endif
