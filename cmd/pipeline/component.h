/* SPDX-License-Identifier: Apache-2.0 */
/* Inside cmd/pipeline: types of components, and what their readers use. */
#ifndef HEARTH_CMD_PIPELINE_COMPONENT_H
#define HEARTH_CMD_PIPELINE_COMPONENT_H

#include "cmd/pipeline/pipelines.h"

struct component_list {
	struct component **items; /* each owned: pipelines point to them */
	size_t count, cap;
};

struct pipelines {
	const struct tree *root;
	struct component_list lists[COMPONENT_CLASSES];
	struct pipeline *items;
	size_t count, cap;
	struct tree settings; /* of the process: a map of options */
	char **notes;
	size_t note_count, note_cap;
	bool is_muted;	  /* notes are of no interest */
	struct buf shown; /* what they are, as the file says it */
};

/* What is being read. */
struct reader {
	struct pipelines *pipelines;
	struct buf *error;
};

/*
 * A key of a component, "below.each.other". It sets an option; or has no effect, for which a note says why; or neither: the
 * type reads it itself. Case and underscores do not count, as keys were written in both ways over the years.
 */
struct component_key {
	const char *path; /* NULL at the end */
	const char *option;
	const char *note;
};

struct component_type {
	enum component_class class;
	const char *names[4]; /* by which it is known, the usual one first; NULL-terminated */
	const struct component_key *keys;
	int (*take)(struct reader *r, struct component *c); /* reads what keys alone do not say; NULL: nothing */
	const char *refusal;				    /* why it cannot be in a pipeline here; NULL: it can */
	const char *note;				    /* what to say where it is used; NULL: nothing */
	bool is_server;	  /* it listens, at an address of the process, of which there is one */
	bool has_metrics; /* it may be in a pipeline of metrics; a receiver: it may be in no other */
};

extern const struct component_type host_metrics_type; /* host_metrics.c */

/* The types of a class, NULL-terminated. */
extern const struct component_type *const receiver_types[];
extern const struct component_type *const processor_types[];
extern const struct component_type *const exporter_types[];
extern const struct component_type *const extension_types[];

/* Appends what pipelines_show() does. */
void pipelines_write(const struct pipelines *p, struct buf *out);

/* Reads a component's keys by its type. */
int component_read(struct reader *r, struct component *c);

/* Reads @node by @keys into @settings; all keys must be among them. @what is the owner's name in messages. */
int component_read_keys(struct reader *r, const struct tree *node, const char *what, const struct component_key *keys,
			struct tree *settings);

/* The value at @path of @c's node, by the rule of keys; NULL: there is none, or it is null. */
const struct tree *component_at(const struct component *c, const char *path);

/* The text there; NULL: there is none, or it is no text. */
const char *component_text(const struct component *c, const char *path);

/* The value there as a boolean, as @usual when there is none. -EINVAL and an error when it is none. */
int component_bool(struct reader *r, const struct component *c, const char *path, bool usual, bool *ret);
int component_u64(struct reader *r, const struct component *c, const char *path, uint64_t usual, uint64_t *ret);
int component_duration(struct reader *r, const struct component *c, const char *path, uint64_t usual_ns, uint64_t *ret_ns);

/* The texts of a list, or the one text; *@ret is an array to be freed, of texts that are borrowed. */
int component_texts(struct reader *r, const struct component *c, const char *path, const char ***ret, size_t *count);

/* Adds @option with @text to @settings, at the place of @at; a second one makes a list. */
int component_add(struct tree *settings, const struct tree *at, const char *option, const char *text);

/* Adds @option with the "HOST:PORT" at @at; a Collector's ":1777" is all addresses. -EINVAL and an error when it is none. */
int component_add_address(struct reader *r, const struct tree *at, const char *option, struct tree *settings);

/* "SOURCE:LINE: " and what is wrong, with -EINVAL. */
int pipeline_refuse(struct reader *r, const struct tree *at, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
int pipeline_note(struct reader *r, const struct tree *at, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* service.telemetry: settings of the process. */
int extensions_read_telemetry(struct reader *r, const struct tree *node, struct tree *settings);

/* Reads k8sattributes (kube_attributes.c), the lists of edits and the tests of filters (stages.c). */
int kube_attributes_take(struct reader *r, struct component *c);
int kube_attributes_take_auth(struct reader *r, struct component *c, const char *path); /* 'auth_type' at @path */
int stages_take_edits(struct reader *r, struct component *c);
int stages_take_filter(struct reader *r, struct component *c);
int stages_take_limit(struct reader *r, struct component *c);
int stages_take_detect(struct reader *r, struct component *c);

#endif
