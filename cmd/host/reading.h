/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One reading of the machine: data points by metric, and their encoding. Want of memory sticks in @failed; counts that stand
 * here are of the scraper that reads at the moment, and its caller moves them on. One thread.
 */
#ifndef HEARTH_CMD_HOST_READING_H
#define HEARTH_CMD_HOST_READING_H

#include "base/buf.h"
#include "cmd/host/host.h"
#include "proto/otlp/metrics.h"

struct arena;

enum { HOST_LABELS_MAX = 5 };

struct host_label {
	const char *key; /* a literal */
	struct str value;
};

struct host_reading {
	const struct host_config *config;    /* borrowed */
	uint64_t start_unix_ns, now_unix_ns; /* since when totals count, and the time of the reading */
	uint64_t points;		     /* in all */
	uint64_t bad_lines, left_out;	     /* lines that make no sense; devices beyond the bound */
	bool failed;			     /* there was no memory for all of it */
	struct metric_data data[HOST_METRICS];
	uint32_t caps[HOST_METRICS]; /* of the arrays of points */
	struct arena *arena;	     /* what points refer to */
};

/* Begins an empty one. 0 or -ENOMEM; host_reading_fini() in either case. */
int host_reading_init(struct host_reading *r, const struct host_config *config);
void host_reading_fini(struct host_reading *r);

/* Adds a point with the @count (HOST_LABELS_MAX at most) of @labels, whose values outlive the reading; a number above
 * INT64_MAX counts as a bad line. Nothing where @metric is not wanted. */
void host_reading_int(struct host_reading *r, enum host_metric metric, const struct host_label *labels, uint32_t count,
		      uint64_t value);
void host_reading_real(struct host_reading *r, enum host_metric metric, const struct host_label *labels, uint32_t count,
		       double value);

/* A copy of @text that lives as long as the reading. False: it is no UTF-8 or empty, which is a bad line; or there is no
 * memory. */
bool host_reading_keep(struct host_reading *r, struct str text, struct str *ret);

/* Appends all of it as a request of OTLP metrics of a resource with @attributes. 0 or -ENOMEM. */
int host_reading_encode(const struct host_reading *r, const struct key_values *attributes, struct buf *out);

#endif
