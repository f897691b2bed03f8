/* SPDX-License-Identifier: Apache-2.0 */
/* Pipelines as text: who hands on to whom, what each says, and what the same is in options. */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "cmd/options/hide.h"
#include "cmd/pipeline/component.h"

static void draw_names(struct component *const *list, size_t count, const char *between, struct buf *out)
{
	for (size_t i = 0; i < count; i++)
		buf_printf(out, "%s%s", i ? between : "", list[i]->name);
}

void pipelines_draw(const struct pipelines *p, struct buf *out)
{
	for (size_t i = 0; i < pipelines_count(p); i++) {
		const struct pipeline *pl = pipelines_get(p, i);

		buf_printf(out, "%s: ", pl->name);
		draw_names(pl->receivers, pl->receiver_count, ", ", out);
		buf_puts(out, pl->processor_count ? " -> " : "");
		draw_names(pl->processors, pl->processor_count, " -> ", out);
		buf_puts(out, " -> ");
		draw_names(pl->exporters, pl->exporter_count, ", ", out);
		buf_putc(out, '\n');
	}
}

/* --- as options --- */

static void show_setting(const struct tree *t, struct buf *out)
{
	struct tree copy = *t; /* borrows all of it */
	struct tree map = { .kind = TREE_MAP, .items = &copy, .count = 1 };

	tree_write(&map, 1, out);
}

static void show_settings(const struct tree *settings, struct buf *out)
{
	for (size_t i = 0; i < settings->count; i++)
		show_setting(&settings->items[i], out);
}

static const char *stage_word(const struct component *c)
{
	static const char *const words[] = {
		[STAGE_NONE] = "nothing",
		[STAGE_KUBERNETES] = "pods",
		[STAGE_EDIT] = "edits of attributes",
		[STAGE_FILTER] = "a filter",
		[STAGE_LIMIT] = "a limit of memory",
		[STAGE_DETECT] = "what the host tells of itself",
	};

	return words[c->stage];
}

/* Each component once, where it is met first. */
static bool is_first(const struct pipelines *p, size_t end, const struct component *c)
{
	for (size_t i = 0; i < end; i++) {
		const struct pipeline *pl = pipelines_get(p, i);

		for (size_t k = 0; k < pl->processor_count; k++)
			if (pl->processors[k] == c)
				return false;
		for (size_t k = 0; k < pl->exporter_count; k++)
			if (pl->exporters[k] == c)
				return false;
	}
	return true;
}

static void show_host(const struct component *c, struct buf *out)
{
	const char *interval = component_text(c, "collection_interval");
	const char *between = "";

	buf_printf(out, "# %s: ", c->name);
	for (size_t i = 0; i < HOST_SCRAPERS; i++) {
		if (!c->host.has[i])
			continue;
		buf_printf(out, "%s%s", between, host_scraper_names[i]);
		between = ", ";
	}
	buf_printf(out, "; each %s%s%s\n", interval ? interval : "1m", c->host.root[0] ? ", below " : "", c->host.root);
}

static void show_sink(const struct component *c, struct buf *out)
{
	AUTO_FREE char *shown = c->sink ? strdup(c->sink) : NULL;

	if (shown)
		hide_password(strchr(shown, '=') ? strchr(shown, '=') + 1 : shown);
	out->failed |= c->sink && !shown;
	buf_printf(out, "# %s\n", c->name);
	if (shown)
		buf_printf(out, "  sink: %s\n", shown);
	show_settings(&c->settings, out); /* a server's are above, too */
}

static void show_components(const struct pipelines *p, struct buf *out)
{
	for (size_t i = 0; i < pipelines_count(p); i++) {
		const struct pipeline *pl = pipelines_get(p, i);

		for (size_t k = 0; k < pl->processor_count; k++) {
			if (!is_first(p, i, pl->processors[k]))
				continue;
			buf_printf(out, "# %s: %s\n", pl->processors[k]->name, stage_word(pl->processors[k]));
			show_settings(&pl->processors[k]->settings, out);
		}
		for (size_t k = 0; k < pl->exporter_count; k++)
			if (is_first(p, i, pl->exporters[k]))
				show_sink(pl->exporters[k], out);
	}
}

void pipelines_write(const struct pipelines *p, struct buf *out)
{
	pipelines_draw(p, out);
	buf_puts(out, "\n# in options, of the process\n");
	for (size_t i = 0; i < pipelines_setting_count(p); i++)
		show_setting(pipelines_setting(p, i), out);
	for (size_t i = 0; i < p->lists[CLASS_RECEIVER].count; i++)
		if (p->lists[CLASS_RECEIVER].items[i]->is_used && p->lists[CLASS_RECEIVER].items[i]->source == SOURCE_HOST)
			show_host(p->lists[CLASS_RECEIVER].items[i], out);
	show_components(p, out);
}
