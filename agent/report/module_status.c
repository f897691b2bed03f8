/* SPDX-License-Identifier: Apache-2.0 */
/* Modules are counted from when they are known; when there are too many, modules that are not shown are summed and
 * forgotten. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/report/module_status.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/intern.h"
#include "base/metrics.h"
#include "base/vec.h"
#include "proto/sums/modules.h"

enum { MAX_MODULES = 1024 };

struct module {
	uint64_t samples;
	const char *source;
};

struct module_status {
	struct metrics *metrics;
	struct intern *keys;	/* name NUL build id NUL */
	struct module *modules; /* parallel */
	uint32_t cap;
	uint64_t other;				  /* samples of modules that were forgotten */
	struct metric *series[MODULES_SHOWN + 1]; /* the last: [other] */
	struct buf key;
};

int module_status_new(struct metrics *metrics, struct module_status **ret)
{
	struct module_status *m = calloc(1, sizeof(*m));

	if (!m)
		return -ENOMEM;
	m->metrics = metrics;
	m->keys = intern_new();
	if (!m->keys) {
		module_status_free(m);
		return -ENOMEM;
	}
	*ret = m;
	return 0;
}

void module_status_free(struct module_status *m)
{
	if (!m)
		return;
	intern_free(m->keys);
	free(m->modules);
	buf_fini(&m->key);
	free(m);
}

size_t module_status_memory_bytes(const struct module_status *m)
{
	return sizeof(*m) + intern_memory_bytes(m->keys) + m->cap * sizeof(*m->modules) + m->key.cap;
}

uint32_t module_status_find(struct module_status *m, struct str name, const char *build_id, const char *source)
{
	uint32_t count = intern_count(m->keys), index;
	int status;

	if (vec_reach(&m->modules, &m->cap, count))
		return UINT32_MAX;
	buf_reset(&m->key);
	buf_append(&m->key, name.data, name.len);
	buf_putc(&m->key, '\0');
	buf_append(&m->key, build_id, strlen(build_id) + 1);
	status = m->key.failed ? -ENOMEM : intern_add(m->keys, m->key.data, m->key.len, &index);
	if (status < 0)
		return UINT32_MAX;
	if (status)
		m->modules[index] = (struct module){ 0 };
	m->modules[index].source = source;
	return index;
}

void module_status_add(struct module_status *m, uint32_t module, uint64_t samples)
{
	if (module == UINT32_MAX)
		m->other += samples;
	else
		m->modules[module].samples += samples;
}

/* --- publishing --- */

static int by_samples(const void *a, const void *b, void *arg)
{
	const struct module *modules = arg, *x = &modules[*(const uint32_t *)a], *y = &modules[*(const uint32_t *)b];

	return x->samples != y->samples			     ? (x->samples > y->samples ? -1 : 1)
	       : *(const uint32_t *)a < *(const uint32_t *)b ? -1
							     : 1;
}

static void show(struct module_status *m, uint32_t place, const char *name, const char *build_id, const char *source,
		 uint64_t samples)
{
	const char *quality = modules_quality((struct str){ source, (uint32_t)strlen(source) });
	AUTO(buf_fini) struct buf labels = BUF_EMPTY;

	metrics_label(&labels, "module", name, strlen(name));
	if (source[0]) {
		metrics_label(&labels, "build_id", build_id, strlen(build_id));
		metrics_label(&labels, "source", source, strlen(source));
		metrics_label(&labels, "quality", quality, strlen(quality));
	}
	m->series[place] = metrics_gauge(m->metrics, "hearth_module_symbols_samples", buf_text(&labels),
					 "Samples with a frame in a file, and what its names come from.");
	metric_set(m->series[place], samples);
}

/* Forgets all that are not among the first @shown of @order. */
static void forget(struct module_status *m, const uint32_t *order, uint32_t shown)
{
	struct intern *keys = intern_new();
	struct module kept[MODULES_SHOWN];
	uint32_t count = intern_count(m->keys);

	for (uint32_t i = 0, index; keys && i < shown; i++) {
		size_t len;
		const void *key = intern_get(m->keys, order[i], &len);

		kept[i] = m->modules[order[i]];
		if (intern_add(keys, key, len, &index) < 0) {
			intern_free(keys);
			keys = NULL;
		}
	}
	if (!keys) /* the next interval tries again */
		return;
	for (uint32_t i = shown; i < count; i++)
		m->other += m->modules[order[i]].samples;
	intern_free(m->keys);
	m->keys = keys;
	memcpy(m->modules, kept, shown * sizeof(*kept));
}

void module_status_publish(struct module_status *m)
{
	uint32_t count = intern_count(m->keys), shown = count < MODULES_SHOWN ? count : MODULES_SHOWN;
	AUTO_FREE uint32_t *order = reallocarray(NULL, count + 1, sizeof(*order));
	uint64_t other = m->other;

	if (!order)
		return;
	for (uint32_t i = 0; i < count; i++)
		order[i] = i;
	qsort_r(order, count, sizeof(*order), by_samples, m->modules);
	for (uint32_t i = 0; i <= MODULES_SHOWN; i++) {
		metrics_remove(m->metrics, m->series[i]);
		m->series[i] = NULL;
	}
	for (uint32_t i = 0; i < count; i++) {
		const struct module *module = &m->modules[order[i]];
		const char *name = intern_get(m->keys, order[i], NULL);

		if (i < shown)
			show(m, i, name, name + strlen(name) + 1, module->source, module->samples);
		else
			other += module->samples;
	}
	if (other)
		show(m, MODULES_SHOWN, "[other]", "", "", other);
	if (count >= MAX_MODULES)
		forget(m, order, shown);
}
