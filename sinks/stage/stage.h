/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stages of a pipeline: sinks that hold a sink. A stage changes attributes of resources, or keeps resources back, and hands
 * on the rest in its producer's thread; profiles are not copied. Other signals go on as they are. Samples that it keeps back
 * are counted. A stage is durable, and has the name, of what stands behind it. Settings are read by the commands, borrowed,
 * and outlive the stage.
 */
#ifndef HEARTH_SINKS_STAGE_STAGE_H
#define HEARTH_SINKS_STAGE_STAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/sink.h"

struct buf;
struct metrics;
struct pattern;

/* --- which resources --- */

/* An attribute of the resource is there and, if there is one of them, equals @value or matches @pattern. */
struct stage_test {
	const char *key;
	const char *value;
	struct pattern *pattern;
};

struct stage_match { /* all of them */
	struct stage_test *tests;
	size_t count;
};

/* --- edits --- */

enum edit_action {
	EDIT_INSERT, /* where the key is not there */
	EDIT_UPDATE, /* where it is */
	EDIT_UPSERT,
	EDIT_DELETE,
	EDIT_CONVERT, /* to the kind of @value */
};

struct stage_edit {
	enum edit_action action;
	const char *key; /* NULL: those that @pattern matches, to be deleted */
	struct pattern *pattern;
	struct any_value value; /* string, bool, int or double */
	const char *from;	/* the attribute that has the value; NULL: @value is it */
};

struct stage_edits {
	struct stage_edit *items;
	size_t count;
	bool has_include, has_exclude;
	struct stage_match include, exclude; /* resources that are edited, and those of them that are not */
};

int stage_edit_new(const struct stage_edits *edits, struct sink *next, struct metrics *metrics, struct sink **ret);

/* --- filters --- */

struct stage_filter {
	bool has_include, has_exclude;
	struct stage_match include, exclude; /* resources that go on, and those of them that do not */
};

int stage_filter_new(const struct stage_filter *filter, struct sink *next, struct metrics *metrics, struct sink **ret);

/* --- memory --- */

struct stage_limit {
	uint64_t check_interval_ns;
	uint64_t limit_bytes, spike_bytes;     /* refuse from limit less spike on */
	uint64_t limit_percent, spike_percent; /* the same of the memory that there is, where the former are 0 */
};

/* Refuses what comes (-EAGAIN) while the process takes more memory than it may. */
int stage_limit_new(const struct stage_limit *limit, struct sink *next, struct metrics *metrics, struct sink **ret);

/* --- resource detection --- */

enum { DETECTORS_MAX = 16 };

struct stage_detect {
	const char *detectors[DETECTORS_MAX + 1]; /* NULL-terminated; the first to tell an attribute wins */
	uint64_t timeout_ns;			  /* of each that asks somebody */
	bool keeps;				  /* attributes that are there stay */
};

/* Asks Kubernetes' API server, as whoever made the stage knows to. */
struct stage_kubernetes {
	/* Appends the object at @path to @out. 0 or -errno. NULL: there is none to ask. */
	int (*get)(const void *arg, const char *path, uint64_t timeout_ns, struct buf *out);
	const void *arg; /* outlives the stage */
};

/* The names of all detectors, NULL-terminated. */
extern const char *const stage_detectors[];

int stage_detect_new(const struct stage_detect *detect, struct stage_kubernetes kube, struct sink *next,
		     struct metrics *metrics, struct sink **ret);

/*
 * All of these own @next from the call on, also when they fail, and hand the caller one sink to free: 0 or -errno.
 *
 * A sink that several producers feed: each call is by one thread at a time. One more reference is stage_share()'s, each to
 * be freed; the last one frees @next.
 */
int stage_shared_new(struct sink *next, struct sink **ret);
struct sink *stage_share(struct sink *shared);

/* Whether @match is true of resource @r of @p. */
bool stage_matches(const struct stage_match *match, const struct profiles *p, const struct resource_profiles *r);

/* Frees arrays and patterns, not the texts. */
void stage_edits_fini(struct stage_edits *edits);
void stage_filter_fini(struct stage_filter *filter);

#endif
