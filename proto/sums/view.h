/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Selects and groups the samples of a capture: the samples of a walk (proto/sums/stack_walk.h), less those that a pattern
 * leaves out, each with the name of its group. Every aggregate reads its samples through one of these, so that each filter
 * means the same in each of them. Patterns are regular expressions (base/text/pattern.h) that may match anywhere. Set up by
 * one thread; then any thread may walk through it.
 */
#ifndef HEARTH_PROTO_SUMS_VIEW_H
#define HEARTH_PROTO_SUMS_VIEW_H

#include "proto/sums/stack_walk.h"

enum view_pattern {
	VIEW_PROCESS, /* samples of processes so named; a number: with that pid */
	VIEW_COMM,    /* samples of threads so named, and of all threads of processes so named */
	VIEW_THREAD,  /* samples of threads so named; a number: with that tid */
	VIEW_FOCUS,   /* samples with a frame whose function or module is so named */
	VIEW_IGNORE,  /* not samples with such a frame */
	VIEW_HIDE,    /* such frames are taken out of their stacks */
	VIEW_IDLE,    /* not samples of waits (proto/sums/idle_waits.h) with such a frame */
	VIEW_PATTERN_MAX,
};

struct view;

/* Makes a view of everything, not grouped. NULL without memory. */
struct view *view_new(void);
void view_free(struct view *v);

/* Sets the pattern @which. 0; -EINVAL with what is wrong with @expression in @error; -ENOMEM. */
int view_match(struct view *v, enum view_pattern which, const char *expression, struct buf *error);

/* Did the pattern @which, in some walk so far, take too many steps to tell whether a name matches? Then its matches are not
 * all. */
bool view_gave_up(const struct view *v, enum view_pattern which);

/* Takes samples of the type @type alone (NULL: any, as at first); or of VIEW_WALL: time on a CPU, off_cpu and runnable
 * together, in nanoseconds. 0 or -ENOMEM. */
#define VIEW_WALL "wall"
int view_kind(struct view *v, const char *type);

/* Groups by "process", "thread", "container", "cpu", "comm", "exe", or "label=KEY": an attribute of the sample, its profile
 * or its resource. 0; -EINVAL with what is wrong with @by in @error; -ENOMEM. */
int view_group(struct view *v, const char *by, struct buf *error);

/* @v may be NULL in all that follows: everything, not grouped. */
bool view_is_grouped(const struct view *v);

/* Does stack_walk_each() for the samples of the view. */
int view_each_stack(const struct view *v, const struct profiles *p, int (*fn)(void *arg, const struct stack_sample *s),
		    void *arg);

/* Does stack_walk_each_sum() for the view; if @v looks at more than frames, each sample comes alone. */
int view_each_sum(const struct view *v, const struct profiles *p, int (*fn)(void *arg, const struct stack_sample *s),
		  void *arg);

/* The attribute @key of a sample, else of its profile, else of its resource; NULL. */
const struct any_value *view_sample_label(const struct stack_sample *s, const char *key);
/* The same attribute as a number, -1 when it is none. */
int64_t view_sample_number(const struct stack_sample *s, const char *key);

#endif
