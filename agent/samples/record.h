/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sample record of a ring, taken apart. Only this place reads the record's lengths, and trusts none of them: all other
 * code works on the result of record_parse(). No state.
 */
#ifndef HEARTH_AGENT_SAMPLES_RECORD_H
#define HEARTH_AGENT_SAMPLES_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "bpf/event.h"

struct stack_area;

/* A sample as user space works on it: pointers into its record, or NULL where that has no such section. */
struct pending_sample {
	const struct sample_record *record;
	const uint64_t *kernel;		  /* innermost first */
	const uint64_t *user;		  /* innermost first, with FRAME_EXACT */
	const struct sample_regs *regs;	  /* NULL: the kernel's walk stands as it is */
	const uint64_t *chain;		  /* words of SECTION_CHAIN */
	const uint64_t *first_sp;	  /* sp of the first of @user; NULL: stack pointers are not told */
	const uint64_t *more;		  /* pairs of kind and value of further samples with this stack */
	const struct wait_info *wait;	  /* NULL: the thread was on a CPU */
	const struct wait_target *target; /* NULL: nothing is known of what it waited for */
	const struct wake *wakes;	  /* NULL: the sample is not of a waker */
	const uint64_t *returns;	  /* of SECTION_RETURNS */
	const struct probe_info *probe;	  /* NULL: it is of no probe */
	const struct span_info *span;	  /* NULL: the thread said of none */
	const uint64_t *labels;		  /* words of SECTION_LABELS */
	const uint8_t *context;		  /* bytes of SECTION_CONTEXT */
	const uint32_t *sps;		  /* of each of @user: how far its sp is above; SP_FAR */
	const uint64_t *captures;	  /* words of SECTION_CAPTURES */
	const char *environment;	  /* bytes of SECTION_ENVIRONMENT; NULL: not told */
	uint64_t cgroup;		  /* id of the control group of version 2; 0: not told */
	uint64_t page;			  /* address in memory that was touched; 0: it is of none */
	bool is_logical;		  /* inlined calls have frames of their own (struct trace) */
	const char *target_name;	  /* NULL or "": not known. Not of the record: who applies the sample finds it */
	uint64_t value;			  /* its weight in the unit of its kind */
	uint32_t kernel_cnt, user_cnt, chain_cnt, sp_cnt, capture_cnt, more_cnt, return_cnt; /* return_cnt: of pairs */
	uint32_t arg_cnt;								     /* of @probe that are there */
	uint32_t label_words, context_bytes, environment_bytes;
	uint32_t wake_cnt;
	bool is_irq;			/* an interrupt woke: whatever stack the interrupted thread has is no part of it */
	uint32_t unknown_cnt;		/* sections that were passed over */
	uint32_t area_cnt;		/* of the copied stacks; 0 after record_parse() */
	const struct stack_area *areas; /* by address */
};

/* The stack pointer of user frame number @i of @s; UINT64_MAX: not known. */
static inline uint64_t sample_sp(const struct pending_sample *s, uint32_t i)
{
	return i < s->sp_cnt && s->sps[i] != SP_FAR ? *s->first_sp + s->sps[i] : UINT64_MAX;
}

/* The return address in place of @pc, which a uretprobe took, of the frame that ends at @cfa; @pc if it is none, or nobody
 * knows. */
uint64_t sample_put_back(const struct pending_sample *s, uint64_t pc, uint64_t cfa);

/* Are the @count @frames, of another walk, not those of the kernel's, as far as both go? What the kernel left to us counts
 * as equal, and whether a frame is exact, which may become known only by its row. */
bool sample_differs(const struct pending_sample *s, const uint64_t *frames, uint32_t count);

/* One of a sample's labels; the texts are where the words are. */
struct sample_label {
	const char *key, *value;
	uint32_t key_bytes, value_bytes;
};

/* Reads the label at word *@at of @words, of which there are @count, and goes on to the next. False: there is none more, or
 * the words make no sense. */
bool sample_next_label(const uint64_t *words, uint32_t count, uint32_t *at, struct sample_label *ret);

/* The process that @record, of any kind, is of; 0: it does not say. */
uint32_t record_pid(const struct record *record);

/* Takes the sample @record apart, of which hdr.size bytes can be read. 0, or -EBADMSG: the record makes no sense. */
int record_parse(const struct record *record, struct pending_sample *ret);

#endif
