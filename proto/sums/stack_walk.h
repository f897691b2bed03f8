/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The iterator that every aggregation stands on: (stack, weight) over the samples of a struct profiles, frames resolved once
 * a location. Weight of a sample: the number of its timestamps, or the sum of its values when it has values.
 */
#ifndef HEARTH_PROTO_SUMS_STACK_WALK_H
#define HEARTH_PROTO_SUMS_STACK_WALK_H

#include "proto/profiles.h"

struct buf;

/* A frame as a person reads it. A location with several lines (inlining) gives one frame a line. */
struct frame {
	struct str function; /* empty: has no name; see proto/unnamed.h */
	struct str file;     /* source file */
	struct str module;   /* base name of the mapping's file, "[kernel]" for kernel code without one, "" when unknown */
	struct str type;     /* profile.frame.type, "unknown" when absent */
	struct str source;   /* what the names of its module are from, as in MODULES_SOURCE_KEY; "" when not told */
	int64_t line;
	uint64_t address;
	const struct profiles *profiles; /* NULL: of none */
	uint32_t location;		 /* of @profiles */
	uint32_t id;  /* equal for equal (location, line) within one walk, dense: what a frame led to can be kept by it */
	bool inlined; /* is an inlined call of the frame after it */
};

/* The quantity that a profile's samples measure; found out once a profile. */
struct sample_kind {
	struct str type, unit;
	uint64_t cpu_ns;    /* of CPU time that a weight of 1 is; 0: it is no such time */
	bool counts_events; /* values are numbers of samples */
};

/* One sample with its context. Strings live in @profiles, frames until the end of the walk. */
struct stack_sample {
	const struct profiles *profiles;
	const struct resource_profiles *resource;
	const struct profile *profile;
	const struct sample_kind *kind; /* of @profile */
	const struct sample *sample;
	uint64_t weight;
	uint64_t events;	   /* how often it was seen */
	struct str comm;	   /* sample's thread.name, else resource's process.executable.name, else "" */
	struct str group;	   /* what a view (proto/sums/view.h) groups by, until the next sample; else "" */
	int64_t pid;		   /* process.pid, -1 when absent */
	const uint32_t *frame_ids; /* leaf first */
	uint32_t frame_count;
	const struct frame *frames; /* of the walk, by id */
};

/* Frame @i of @s, counted from the leaf. */
static inline const struct frame *stack_frame(const struct stack_sample *s, uint32_t i)
{
	return &s->frames[s->frame_ids[i]];
}

/* The time of event @i of @s. */
static inline uint64_t stack_time(const struct stack_sample *s, uint64_t i)
{
	return s->sample->timestamp_count ? s->sample->timestamps_unix_ns[i] : s->profile->time_unix_ns;
}

/* Calls @fn for every sample, for those of time on a CPU first: an aggregate that takes one type of samples takes that where
 * nobody asks for another. Stops when @fn returns not 0 and returns that. -ENOMEM. */
int stack_walk_each(const struct profiles *p, int (*fn)(void *arg, const struct stack_sample *s), void *arg);

/* The same, but samples of one profile that have the same stack come as one, whose @sample is any of theirs, with the sums
 * of their weights and events: for callers that need no more. */
int stack_walk_each_sum(const struct profiles *p, int (*fn)(void *arg, const struct stack_sample *s), void *arg);

/* How many frame ids a walk of @p hands out. */
size_t stack_walk_frame_count(const struct profiles *p);

/* The parts of a frame that are printed beside its name. */
enum frame_extra {
	FRAME_INLINED = 1, /* " (inlined)", where it is */
	FRAME_PLACE = 2,   /* " file.c:12", where it is known: so frames of a function are told apart by their lines */
};

/* The name to print for a frame: function, or what is known of code without a name (proto/unnamed.h); then the @extras.
 * Appends to @out. */
void stack_frame_print(const struct frame *f, unsigned extras, struct buf *out);

/* Appends @text up to its first NUL, and a NUL: a part of a key, of which no text can be taken for two. */
void stack_walk_put_key(struct buf *key, struct str text);

/* The same of a frame's name, with '?' for each NUL in it. */
void stack_walk_put_key_name(struct buf *key, const struct frame *f, unsigned extras);

/*
 * The sum of an aggregate. Weights of different kinds (samples, nanoseconds off CPU) make no sum, so an aggregate takes the
 * sample type of the first sample it is given and counts the events of others apart.
 */
struct weight_sum {
	char type[48]; /* "samples", "off_cpu", ...; cut to fit */
	char unit[48]; /* "count", "nanoseconds", ... */
	uint64_t weight;
	uint64_t events;
	uint64_t cpu_ns;       /* weight * period where the period is CPU time, or the weight itself where that is */
	uint64_t other_events; /* of other sample types: left out */
};

/* The time that the whole weight is; 0: it is no time. */
static inline uint64_t stack_sum_ns(const struct weight_sum *sum)
{
	return sum->cpu_ns ? sum->cpu_ns : strcmp(sum->unit, "nanoseconds") ? 0 : sum->weight;
}

/* Adds @s; false when it is of another type and must be left out. */
bool stack_weight_add(struct weight_sum *sum, const struct stack_sample *s);

#endif
