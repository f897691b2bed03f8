/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Aggregation: an iterator of (stack, weight) over profiles, and what report, the live table and the API make of it: the table
 * of functions (self, total) and the call tree. Weight of a sample: number of timestamps, or the sum of its values when it
 * has values.
 */
#ifndef HEARTH_PROTO_AGGREGATE_H
#define HEARTH_PROTO_AGGREGATE_H

#include "proto/profiles.h"

/* A frame as a person reads it. A location with several lines (inlining) gives one frame a line. */
struct frame {
	struct str function; /* empty: has no name; print it as module+0xaddress */
	struct str file;     /* source file */
	struct str module;   /* base name of the mapping's file, "" when unknown */
	struct str type;     /* profile.frame.type, "unknown" when absent */
	int64_t line;
	uint64_t address;
	bool inlined; /* is an inlined call of the frame after it */
};

/* One sample with its context. Strings live in @profiles. */
struct stack_sample {
	const struct profiles *profiles;
	const struct resource_profiles *resource;
	const struct profile *profile;
	const struct sample *sample;
	uint64_t weight;
	uint64_t events;	 /* how often it was seen */
	struct str comm;	 /* sample's thread.name, else resource's process.executable.name, else "" */
	int64_t pid;		 /* process.pid, -1 when absent */
	const struct frame *frames; /* leaf first */
	uint32_t frame_count;
};

/* Calls @fn for every sample; stops when it returns not 0 and returns that. -ENOMEM. */
int profiles_each_stack(const struct profiles *p, int (*fn)(void *arg, const struct stack_sample *s), void *arg);

/* The name to print for a frame: function, or module+0xaddress, or 0xaddress. Appends to @out. */
struct buf;
void frame_print(const struct frame *f, struct buf *out);

/* --- the table of functions --- */
struct top;

struct top_row {
	const char *name;   /* as frame_print */
	const char *module; /* base name */
	const char *type;   /* frame type */
	uint64_t self;	    /* weight of samples with this function at the leaf */
	uint64_t total;	    /* weight of samples with it anywhere (once a sample) */
};

struct top *top_new(void);
void top_free(struct top *t);
int top_add(struct top *t, const struct profiles *p);
void top_reset(struct top *t);
uint64_t top_weight(const struct top *t); /* sum over all samples */
uint64_t top_events(const struct top *t);
/* The rows by falling self (ties: total, then name). Valid until the next call on @t. */
const struct top_row *top_rows(struct top *t, uint32_t *count_ret);

/* --- the call tree --- */
struct tree_node {
	const char *name;
	uint64_t self;
	uint64_t total;
	struct tree_node *child;   /* heaviest first after tree_root() */
	struct tree_node *sibling;
};

struct tree;

struct tree *tree_new(void);
void tree_free(struct tree *t);
/* Root first; the outermost level is the comm. */
int tree_add(struct tree *t, const struct profiles *p);
/* The sorted tree; its root node has the name "" and the total of everything. Valid until the next call on @t. */
const struct tree_node *tree_root(struct tree *t);

/* --- text forms, each appended to @out; return 0 or -ENOMEM --- */
int report_top(struct top *t, uint32_t max_rows, struct buf *out);
int report_tree(struct tree *t, double min_percent, struct buf *out);
/* comm;root;...;leaf COUNT, equal stacks merged, sorted; ';' and newlines inside names become ':' and ' '. */
int report_folded(struct tree *t, struct buf *out);
/* {"samples":N,"weight":N,"functions":[{name,module,type,self,total}...],"tree":{...}} */
int report_json(struct top *t, struct tree *tree, struct buf *out);

#endif
