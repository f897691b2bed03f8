/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What of a capture is looked at, and by what it is grouped: the samples of a walk (proto/stack_walk.h), less those that a
 * pattern leaves out, each with the name of its group. Every aggregate reads its samples through one of these, so that each
 * filter means the same in each of them. Patterns are regular expressions (base/pattern.h) that may match anywhere. Set up
 * by one thread; then any thread may walk through it.
 */
#ifndef HEARTH_PROTO_VIEW_H
#define HEARTH_PROTO_VIEW_H

#include "proto/stack_walk.h"

enum view_pattern {
	VIEW_PROCESS, /* samples of processes so named; a number: with that pid */
	VIEW_COMM,    /* samples of threads so named */
	VIEW_THREAD,  /* the same; a number: with that tid */
	VIEW_FOCUS,   /* samples with a frame whose function or module is so named */
	VIEW_IGNORE,  /* not samples with such a frame */
	VIEW_HIDE,    /* such frames are taken out of their stacks */
	VIEW_PATTERN_MAX,
};

struct view;

/* Everything, not grouped. NULL for want of memory. */
struct view *view_new(void);
void view_free(struct view *v);

/* Sets the pattern @which. 0; -EINVAL with what is wrong with @expression in @error; -ENOMEM. */
int view_match(struct view *v, enum view_pattern which, const char *expression, struct buf *error);

/* Groups by "process", "thread", "container", "cpu", "comm", or "label=KEY": an attribute of the sample, its profile or its
 * resource. 0; -EINVAL with what is wrong with @by in @error; -ENOMEM. */
int view_group(struct view *v, const char *by, struct buf *error);

/* @v may be NULL in all that follows: everything, not grouped. */
bool view_is_grouped(const struct view *v);

/* As profiles_each_stack(). */
int view_each_stack(const struct view *v, const struct profiles *p, int (*fn)(void *arg, const struct stack_sample *s),
		    void *arg);

/* As profiles_each_sum(), unless @v looks at more than frames: then each sample comes alone. */
int view_each_sum(const struct view *v, const struct profiles *p, int (*fn)(void *arg, const struct stack_sample *s),
		  void *arg);

/* The attribute @key of a sample, else of its profile, else of its resource; NULL. */
const struct any_value *stack_sample_label(const struct stack_sample *s, const char *key);
/* It as a number, -1 when it is none. */
int64_t stack_sample_number(const struct stack_sample *s, const char *key);

#endif
