/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A Collector's configuration, read into what hearth does: receivers, processors, exporters and extensions by name, and the
 * pipelines of profiles, and of metrics of the host, that join them. Components become settings, those of the options'
 * table: a receiver's and an extension's are the process's own, an exporter's and a stage's count for it alone. Nothing is
 * passed over in silence: what is not known is an error with its line and the nearest name, what has no effect here is a
 * note. Read-only once it is made.
 */
#ifndef HEARTH_CMD_PIPELINE_PIPELINES_H
#define HEARTH_CMD_PIPELINE_PIPELINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/text/tree.h"
#include "cmd/host/host.h"
#include "sinks/stage/stage.h"

struct pipelines;

enum component_class { CLASS_RECEIVER, CLASS_PROCESSOR, CLASS_EXPORTER, CLASS_EXTENSION, COMPONENT_CLASSES };

/* Where a receiver's profiles, or metrics (SOURCE_HOST), come from. */
enum source_kind { SOURCE_NONE, SOURCE_AGENT, SOURCE_OTLP, SOURCE_MADE_UP, SOURCE_HOST };

/* How a processor is made. */
enum stage_kind { STAGE_NONE, STAGE_KUBERNETES, STAGE_EDIT, STAGE_FILTER, STAGE_LIMIT, STAGE_DETECT };

struct component {
	const char *name; /* TYPE or TYPE/NAME, as in the file; borrowed from it */
	const struct component_type *type;
	const struct tree *node; /* what stands behind the name */
	bool is_used;
	bool has_metrics;     /* a pipeline of metrics uses it */
	struct tree settings; /* a map of options and values: for the process, or for this exporter or stage alone */
	/* A receiver's */
	enum source_kind source;
	uint64_t interval_ns;	 /* of SOURCE_MADE_UP ... */
	uint32_t samples;	 /* ... in each; 0: a resource and nothing else */
	struct host_config host; /* of SOURCE_HOST */
	/* A processor's */
	enum stage_kind stage;
	struct stage_edits edits;
	struct stage_filter filter;
	struct stage_limit limit;
	struct stage_detect detect;
	/* An exporter's: NAME[=VALUE], as --sink has it; owned */
	char *sink;	    /* NULL: it fills what --rest-address tells */
	bool writes_files;  /* others than a store's */
	bool writes_folder; /* ... more than one, whose names it makes */
};

struct pipeline {
	const char *name;   /* profiles or profiles/NAME; metrics, ... */
	bool is_of_metrics; /* of the host: its receivers are SOURCE_HOST, all of them */
	struct component **receivers, **processors, **exporters; /* arrays owned */
	size_t receiver_count, processor_count, exporter_count;
};

/* Whether @root has a key that only pipeline files have. */
bool pipelines_are_in(const struct tree *root);

/* Reads @root, which outlives them. 0; -EINVAL with "SOURCE:LINE: ..." in @error; -ENOMEM. */
int pipelines_new(const struct tree *root, struct pipelines **ret, struct buf *error);
void pipelines_free(struct pipelines *p);

/* The settings of the process, each with an option's name as its key. */
size_t pipelines_setting_count(const struct pipelines *p);
const struct tree *pipelines_setting(const struct pipelines *p, size_t i);

/* The pipelines, in the file's order. */
size_t pipelines_count(const struct pipelines *p);
const struct pipeline *pipelines_get(const struct pipelines *p, size_t i);

/* Whether a receiver of @kind, or a stage of @kind, is in one of them. */
bool pipelines_have_source(const struct pipelines *p, enum source_kind kind);
bool pipelines_have_stage(const struct pipelines *p, enum stage_kind kind);

/* Where the host's root is mounted for receivers of SOURCE_HOST; NULL: there are none, or it is "/". */
const char *pipelines_host_root(const struct pipelines *p);

/* Whether an exporter in one of them writes files, others than a store's; a folder of them; is or has a server. */
bool pipelines_write_files(const struct pipelines *p);
bool pipelines_write_folders(const struct pipelines *p);
bool pipelines_have_server(const struct pipelines *p);

/* Whether a stage in one of them asks a network: for pods, or who the host is. */
bool pipelines_ask_network(const struct pipelines *p);

/* Calls @fn with each text that a stage or an exporter in them has for the option @name, to look at or to replace. */
void pipelines_each_text(const struct pipelines *p, const char *name, void (*fn)(void *arg, char **text), void *arg);

/* The same with each exporter's sink, NAME[=VALUE]. */
void pipelines_each_sink(const struct pipelines *p, void (*fn)(void *arg, char **sink), void *arg);

/* Calls @fn with "SOURCE:LINE: ..." for each thing that has no effect, in the file's order. */
void pipelines_notes(const struct pipelines *p, void (*fn)(void *arg, const char *note), void *arg);

/* Appends what they are, and what they are in options, as the file has them, for `hearth check --config FILE --print`. */
void pipelines_show(const struct pipelines *p, struct buf *out);

/* Appends "profiling -> k8sattributes -> debug, otlp", a line each. */
void pipelines_draw(const struct pipelines *p, struct buf *out);

/* Appends to @out, with ", " between them, the names of pipelines and components that are other than @before ("exporter
 * otlp, processor filter/b (new)"), but for those whose settings are options of the process. NULL: no pipelines. */
void pipelines_tell_changes(const struct pipelines *before, const struct pipelines *after, struct buf *out);

#endif
