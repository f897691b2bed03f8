/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes that the table tells of a process, as "key=value" lines in the order of precedence, each key once. Include it
 * after cmocka.h. */
#ifndef HEARTH_TESTS_DESCRIBING_H
#define HEARTH_TESTS_DESCRIBING_H

#include <string.h>

#include "base/buf.h"
#include "base/metrics.h"
#include "enrich/known/known.h"

static inline void describing_add(void *arg, const char *key, const char *value, enum known_form form)
{
	struct buf *out = arg, line = BUF_EMPTY;

	buf_printf(&line, "\n%s=", key);
	if (!strstr(buf_text(out), buf_text(&line))) {
		buf_puts(out, buf_text(&line) + (out->len == 1));
		buf_printf(out, form == KNOWN_LIST ? "[%s]" : form == KNOWN_REPLACE ? "%s!" : "%s", value);
	}
	buf_fini(&line);
}

/* The text lasts until the next call. */
static inline const char *describing(struct known *k, struct known_query q)
{
	static struct buf out;

	buf_reset(&out);
	buf_puts(&out, "\n");
	q.container_id = q.container_id ? q.container_id : "";
	q.pod_uid = q.pod_uid ? q.pod_uid : "";
	q.unit = q.unit ? q.unit : "";
	q.executable = q.executable ? q.executable : "";
	known_describe(k, &q, describing_add, &out);
	return out.len > 1 ? buf_text(&out) + 1 : "";
}

/* The value of a counter. */
struct describing_metric {
	const char *name, *labels;
	uint64_t value;
};

static inline void describing_metric(void *arg, const char *name, const char *labels, uint64_t value)
{
	struct describing_metric *m = arg;

	if (!strcmp(name, m->name) && !strcmp(labels ? labels : "", m->labels))
		m->value = value;
}

static inline uint64_t describing_count(struct metrics *metrics, const char *name, const char *labels)
{
	struct describing_metric m = { name, labels, 0 };

	metrics_each(metrics, describing_metric, &m);
	return m.value;
}

#endif
