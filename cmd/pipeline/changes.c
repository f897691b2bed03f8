/* SPDX-License-Identifier: Apache-2.0 */
/* Compares pipelines with those that were read before: by name, so that a value that is secret is not told. */
#include <string.h>

#include "cmd/pipeline/component.h"

struct telling {
	const struct pipelines *before, *after;
	struct buf *out;
	size_t told;
};

static void tell(struct telling *t, const char *what, const char *name, const char *how)
{
	buf_printf(t->out, "%s%s %s%s", t->told++ ? ", " : "", what, name, how);
}

/* --- pipelines --- */

static const struct pipeline *find_pipeline(const struct pipelines *p, const char *name)
{
	for (size_t i = 0; p && i < pipelines_count(p); i++)
		if (!strcmp(pipelines_get(p, i)->name, name))
			return pipelines_get(p, i);
	return NULL;
}

static bool equal_names(struct component *const *a, size_t count, struct component *const *b, size_t other)
{
	bool yes = count == other;

	for (size_t i = 0; yes && i < count; i++)
		yes = !strcmp(a[i]->name, b[i]->name);
	return yes;
}

static bool equal_pipelines(const struct pipeline *a, const struct pipeline *b)
{
	return equal_names(a->receivers, a->receiver_count, b->receivers, b->receiver_count) &&
	       equal_names(a->processors, a->processor_count, b->processors, b->processor_count) &&
	       equal_names(a->exporters, a->exporter_count, b->exporters, b->exporter_count);
}

/* --- components --- */

static const char *const words[COMPONENT_CLASSES] = {
	[CLASS_RECEIVER] = "receiver", [CLASS_PROCESSOR] = "processor", [CLASS_EXPORTER] = "exporter"
};

/* The components of that class in @pl. */
static struct component *const *of_class(const struct pipeline *pl, enum component_class class, size_t *count)
{
	*count = class == CLASS_RECEIVER    ? pl->receiver_count
		 : class == CLASS_PROCESSOR ? pl->processor_count
					    : pl->exporter_count;
	return class == CLASS_RECEIVER ? pl->receivers : class == CLASS_PROCESSOR ? pl->processors : pl->exporters;
}

/* The component @name in the first @end pipelines; NULL: none has it. */
static const struct component *find_component(const struct pipelines *p, size_t end, enum component_class class,
					      const char *name)
{
	for (size_t i = 0; p && i < end; i++) {
		size_t count;
		struct component *const *list = of_class(pipelines_get(p, i), class, &count);

		for (size_t k = 0; k < count; k++)
			if (!strcmp(list[k]->name, name))
				return list[k];
	}
	return NULL;
}

/* A receiver's options are the process's: they are told as such. */
static bool equal_components(const struct component *a, const struct component *b, enum component_class class)
{
	if (class == CLASS_RECEIVER)
		return a->source == b->source && a->interval_ns == b->interval_ns && a->samples == b->samples;
	return tree_equal(a->node, b->node);
}

static void tell_component(struct telling *t, enum component_class class, const struct component *now)
{
	const size_t end = t->before ? pipelines_count(t->before) : 0;
	const struct component *then = find_component(t->before, end, class, now->name);

	if (!then)
		tell(t, words[class], now->name, " (new)");
	else if (!equal_components(then, now, class))
		tell(t, words[class], now->name, "");
}

/* The components of @p, each once. */
static void each_component(struct telling *t, const struct pipelines *p, enum component_class class,
			   void (*fn)(struct telling *t, enum component_class class, const struct component *c))
{
	for (size_t i = 0; p && i < pipelines_count(p); i++) {
		size_t count;
		struct component *const *list = of_class(pipelines_get(p, i), class, &count);

		for (size_t k = 0; k < count; k++)
			if (!find_component(p, i, class, list[k]->name))
				fn(t, class, list[k]);
	}
}

static void tell_gone(struct telling *t, enum component_class class, const struct component *then)
{
	if (!find_component(t->after, t->after ? pipelines_count(t->after) : 0, class, then->name))
		tell(t, words[class], then->name, " (gone)");
}

void pipelines_tell_changes(const struct pipelines *before, const struct pipelines *after, struct buf *out)
{
	struct telling t = { before, after, out, 0 };

	for (size_t i = 0; after && i < pipelines_count(after); i++) {
		const struct pipeline *now = pipelines_get(after, i), *then = find_pipeline(before, now->name);

		if (!then)
			tell(&t, "pipeline", now->name, " (new)");
		else if (!equal_pipelines(then, now))
			tell(&t, "pipeline", now->name, "");
	}
	for (size_t i = 0; before && i < pipelines_count(before); i++)
		if (!find_pipeline(after, pipelines_get(before, i)->name))
			tell(&t, "pipeline", pipelines_get(before, i)->name, " (gone)");
	for (enum component_class class = CLASS_RECEIVER; class <= CLASS_EXPORTER; class ++) {
		each_component(&t, after, class, tell_component);
		each_component(&t, before, class, tell_gone);
	}
}
