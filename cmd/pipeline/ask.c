/* SPDX-License-Identifier: Apache-2.0 */
/* Answers about pipelines that are read. */
#include <string.h>

#include "cmd/pipeline/component.h"

size_t pipelines_setting_count(const struct pipelines *p)
{
	return p->settings.count;
}

const struct tree *pipelines_setting(const struct pipelines *p, size_t i)
{
	return &p->settings.items[i];
}

size_t pipelines_count(const struct pipelines *p)
{
	return p->count;
}

const struct pipeline *pipelines_get(const struct pipelines *p, size_t i)
{
	return &p->items[i];
}

bool pipelines_have_source(const struct pipelines *p, enum source_kind kind)
{
	for (size_t i = 0; i < p->lists[CLASS_RECEIVER].count; i++)
		if (p->lists[CLASS_RECEIVER].items[i]->is_used && p->lists[CLASS_RECEIVER].items[i]->source == kind)
			return true;
	return false;
}

const char *pipelines_host_root(const struct pipelines *p)
{
	for (size_t i = 0; i < p->lists[CLASS_RECEIVER].count; i++) {
		const struct component *c = p->lists[CLASS_RECEIVER].items[i];

		if (c->is_used && c->source == SOURCE_HOST && c->host.root[0])
			return c->host.root;
	}
	return NULL;
}

bool pipelines_have_stage(const struct pipelines *p, enum stage_kind kind)
{
	for (size_t i = 0; i < p->lists[CLASS_PROCESSOR].count; i++)
		if (p->lists[CLASS_PROCESSOR].items[i]->is_used && p->lists[CLASS_PROCESSOR].items[i]->stage == kind)
			return true;
	return false;
}

bool pipelines_write_files(const struct pipelines *p)
{
	for (size_t i = 0; i < p->lists[CLASS_EXPORTER].count; i++)
		if (p->lists[CLASS_EXPORTER].items[i]->is_used && p->lists[CLASS_EXPORTER].items[i]->writes_files)
			return true;
	return false;
}

bool pipelines_write_folders(const struct pipelines *p)
{
	for (size_t i = 0; i < p->lists[CLASS_EXPORTER].count; i++)
		if (p->lists[CLASS_EXPORTER].items[i]->is_used && p->lists[CLASS_EXPORTER].items[i]->writes_folder)
			return true;
	return false;
}

bool pipelines_have_server(const struct pipelines *p)
{
	for (size_t i = 0; i < p->lists[CLASS_EXPORTER].count; i++)
		if (p->lists[CLASS_EXPORTER].items[i]->is_used && p->lists[CLASS_EXPORTER].items[i]->type->is_server)
			return true;
	return false;
}

static bool asks_network(const struct component *c)
{
	bool asks = c->stage == STAGE_KUBERNETES;

	for (const char *const *d = c->detect.detectors; c->stage == STAGE_DETECT && *d; d++)
		asks |= strcmp(*d, "env") != 0 && strcmp(*d, "system") != 0;
	return asks;
}

bool pipelines_ask_network(const struct pipelines *p)
{
	for (size_t i = 0; i < p->lists[CLASS_PROCESSOR].count; i++)
		if (p->lists[CLASS_PROCESSOR].items[i]->is_used && asks_network(p->lists[CLASS_PROCESSOR].items[i]))
			return true;
	return false;
}

void pipelines_each_text(const struct pipelines *p, const char *name, void (*fn)(void *arg, char **text), void *arg)
{
	for (size_t class = CLASS_PROCESSOR; class <= CLASS_EXPORTER; class ++)
		for (size_t i = 0; i < p->lists[class].count; i++) {
			struct component *c = p->lists[class].items[i];
			struct tree *t = c->is_used ? tree_find(&c->settings, name) : NULL;

			if (t && t->kind == TREE_TEXT)
				fn(arg, &t->text);
		}
}

void pipelines_each_sink(const struct pipelines *p, void (*fn)(void *arg, char **sink), void *arg)
{
	for (size_t i = 0; i < p->lists[CLASS_EXPORTER].count; i++) {
		struct component *c = p->lists[CLASS_EXPORTER].items[i];

		if (c->is_used && c->sink)
			fn(arg, &c->sink);
	}
}
