/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Named counters and gauges, and their Prometheus text (exposition format 0.0.4). Every place that can lose something owns a
 * counter here. Values are atomic: any thread may add; registering and writing out take a lock. Series live as long as the
 * registry, or until metrics_remove.
 */
#ifndef HEARTH_BASE_METRICS_H
#define HEARTH_BASE_METRICS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

struct metrics;

struct metric { /* one series; add through the functions below */
	_Atomic uint64_t value;
	_Atomic uint64_t other; /* the part of it that another process of hearth tells (metrics_other) */
};

struct metrics *metrics_new(void);
void metrics_free(struct metrics *m);

/*
 * Returns the series @name{@labels}, and makes it if there is none yet. @name and @help are string literals or outlive the
 * registry; @labels is copied: Prometheus label text without the braces (`reason="ring full"`), NULL for none; build it with
 * metrics_label for outside text. NULL without memory or when the bound on series (10,000) is reached.
 */
struct metric *metrics_counter(struct metrics *m, const char *name, const char *labels, const char *help);
struct metric *metrics_gauge(struct metrics *m, const char *name, const char *labels, const char *help);

/* A counter of nanoseconds that is written in seconds, Prometheus' unit of time; @name ends in _seconds_total. */
struct metric *metrics_seconds(struct metrics *m, const char *name, const char *labels, const char *help);

/* One series for another process. @type is a literal. */
struct metric_view {
	const char *name, *help, *labels;
	const char *type; /* "counter", "gauge" */
	bool in_ns;	  /* made by metrics_seconds() */
	uint64_t value;
};

/* Refreshes as metrics_write does, then calls @fn, which must not register series, for each series with what this process
 * has counted. */
void metrics_view(struct metrics *m, void (*fn)(void *arg, const struct metric_view *view), void *arg);

/* Takes what another process has counted: it is written out as part of the series of the same name and labels, which is made
 * if there is none. The texts are copied. 0, -ENOMEM, or -EINVAL: the name stands for another type here. */
int metrics_other(struct metrics *m, const struct metric_view *view);

/* Takes a series out of the registry and frees it; nobody else may hold it. Accepts NULL. */
void metrics_remove(struct metrics *m, struct metric *series);

/* Bytes of memory held, series included. */
size_t metrics_memory_bytes(struct metrics *m);

/* Registers @fn to be called before each write-out, to refresh gauges that take long to keep up to date. */
int metrics_on_collect(struct metrics *m, void (*fn)(void *arg), void *arg);

/* Undoes one metrics_on_collect. */
void metrics_off_collect(struct metrics *m, void (*fn)(void *arg), void *arg);

/* Appends `key="value"` to @labels with Prometheus escapes, a comma first when it is not empty. */
void metrics_label(struct buf *labels, const char *key, const char *value, size_t value_len);

/* All of these accept NULL (registration may have failed). */
static inline void metric_add(struct metric *s, uint64_t n)
{
	if (s)
		atomic_fetch_add_explicit(&s->value, n, memory_order_relaxed);
}

static inline void metric_set(struct metric *s, uint64_t v)
{
	if (s)
		atomic_store_explicit(&s->value, v, memory_order_relaxed);
}

static inline uint64_t metric_get(const struct metric *s)
{
	return s ? atomic_load_explicit(&((struct metric *)(uintptr_t)s)->value, memory_order_relaxed) : 0;
}

/* The whole registry as text: # HELP, # TYPE, series sorted by name, in registration order within a name. */
void metrics_write(struct metrics *m, struct buf *out);

/*
 * Refreshes as metrics_write does, then calls @fn for every series in its order; @value has whole seconds only. @fn must not
 * register series.
 */
void metrics_each(struct metrics *m, void (*fn)(void *arg, const char *name, const char *labels, uint64_t value), void *arg);

#endif
