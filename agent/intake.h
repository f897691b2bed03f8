/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent's intake: reads both streams of the kernel (side band and samples), applies them in the order of time, walks
 * what missed, and puts each sample into the traces of the interval.
 */
#ifndef HEARTH_AGENT_INTAKE_H
#define HEARTH_AGENT_INTAKE_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/indexes.h"
#include "agent/jit_names.h"
#include "agent/kernel_names.h"
#include "agent/late.h"
#include "agent/pending.h"
#include "agent/processes.h"
#include "agent/sampler.h"
#include "agent/side_band.h"
#include "agent/traces.h"
#include "base/buf.h"

/* Where user space may lose a sample. X(name, text) */
#define INTAKE_LOSSES(X)                 \
	X(MEMORY, "out of memory")       \
	X(MALFORMED, "malformed record") \
	X(SINK, "refused by the sink")

#define X(name, text) LOSS_##name,
enum intake_loss { INTAKE_LOSSES(X) LOSS_MAX };
#undef X

struct intake {
	struct metrics *metrics; /* borrowed */
	struct files *files;
	struct processes *processes;
	struct facts_reader *facts;
	struct sampler *sampler;
	struct side_band *side_band;
	struct pending *pending;
	struct late *late;
	struct traces *traces;
	struct indexes *indexes; /* borrowed */
	struct jit_names *jit_names;
	struct kernel_names *kernel_names;
	struct buf kept;	   /* records of intake_read_ahead() ... */
	struct buf kept_side_band; /* ... and pointers to those of the side band, owned */
	uint64_t chunks_not_kept;  /* pieces of copied stacks for which there was no room */
	uint64_t read_ns;	   /* when the rings were last emptied */
	uint64_t waits_since_ns;   /* the first sample of the pending ones waits for a file; 0: it does not */
	bool reread_all;	   /* side-band records were lost */
	uint64_t malformed;	   /* sample records of the rings that made no sense */
	uint64_t lost[LOSS_MAX];
	uint64_t ends[END_MAX];	  /* how user walks ended, late ones by their late end */
	uint64_t misses[END_MAX]; /* samples that came to be walked again, by what the kernel did not have */
	uint64_t late_walks;
	uint64_t oldest_ns; /* of the samples in the traces; 0: none */
};

/* Reads what is there; applies what was there when it began. */
void intake_run(struct intake *in);

/* The same, and applies everything: nothing more comes. */
void intake_run_all(struct intake *in);

/* Is nothing read that was not applied? */
bool intake_is_done(const struct intake *in);

/* Empties the rings into memory for the next intake_run, unless that was done a moment ago. For when something else takes
 * long; also from inside intake_run. */
void intake_read_ahead(struct intake *in);

/* Reads the side band alone for the next intake_run: opens files, and stops the kernel from walking by what was replaced. */
void intake_read_side_band(struct intake *in);

/* The same for samples alone, from which no file is opened. */
void intake_keep_samples(struct intake *in);

/* Frees what is kept; what the pointers lead to is the caller's. */
void intake_fini(struct intake *in);

#endif
