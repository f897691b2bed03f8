/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts by module: a file is told by path and build id, however many mappings a capture has of it. The latest mapping says
 * how good the file's names are, as they come while it is recorded. Events are counted, not weights. Not shared between
 * threads.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/intern.h"
#include "base/vec.h"
#include "proto/sums/modules.h"
#include "proto/sums/stack_walk.h"
#include "proto/text.h"
#include "proto/unnamed.h"

enum { MAX_ADVISED = 20 }; /* modules, from the first on; the others are in few samples */

struct module {
	uint64_t samples, frames, named;
	uint64_t own, named_own;     /* samples whose innermost function is in it, and where that has a name */
	uint64_t last_sample;	     /* the number of the sample that was counted last */
	uint32_t source;	     /* in @texts */
	const char *path, *build_id; /* while printing */
};

struct modules {
	struct intern *keys;	/* path NUL build id NUL */
	struct module *modules; /* parallel */
	uint32_t cap;
	struct intern *texts;		/* NUL-terminated */
	uint64_t events, sample_number; /* of all added so far */
	struct buf key;
};

const char *modules_quality(struct str source)
{
	static const struct {
		const char *source, *quality;
	} known[] = {
		{ "dwarf", "full" },	   { "go", "full" },	     { "symtab", "symbols" }, { "dynsym", "exports only" },
		{ "plt", "exports only" }, { "v8", "exports only" }, { "none", "none" },      { "pending", "pending" },
	};

	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		if (str_is(source, known[i].source))
			return known[i].quality;
	return "-";
}

struct modules *modules_new(void)
{
	struct modules *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	m->keys = intern_new();
	m->texts = intern_new();
	if (!m->keys || !m->texts) {
		modules_free(m);
		return NULL;
	}
	return m;
}

void modules_free(struct modules *m)
{
	if (!m)
		return;
	intern_free(m->keys);
	intern_free(m->texts);
	free(m->modules);
	buf_fini(&m->key);
	free(m);
}

/* --- counting --- */

static struct str attribute(const struct profiles *p, const struct profile_mapping *mapping, const char *key)
{
	return profiles_value_text(p, profiles_find_attribute(p, &mapping->attributes, key));
}

/* Memory with generated code is counted under its program. */
static void put_path(struct buf *key, const struct profiles *p, const struct profile_mapping *mapping)
{
	AUTO(buf_fini) struct buf text = BUF_EMPTY;
	struct str path = profiles_string(p, mapping->filename_strindex);

	if (!unnamed_is_generated(path)) {
		stack_walk_put_key(key, path);
		return;
	}
	unnamed_print(&(struct unnamed){ .process = attribute(p, mapping, CODE_PROCESS_KEY), .is_generated = true }, &text);
	stack_walk_put_key(key, (struct str){ buf_text(&text), (uint32_t)text.len });
	key->failed |= text.failed;
}

/* The number of @mapping's module. -ENOMEM. */
static int64_t find_module(struct modules *m, const struct profiles *p, const struct profile_mapping *mapping)
{
	struct str source = attribute(p, mapping, MODULES_SOURCE_KEY);
	uint32_t index, text;
	int status;

	buf_reset(&m->key);
	put_path(&m->key, p, mapping);
	stack_walk_put_key(&m->key, attribute(p, mapping, "process.executable.build_id.gnu"));
	status = m->key.failed ? -ENOMEM : intern_add(m->keys, m->key.data, m->key.len, &index);
	if (status < 0)
		return status;
	if (vec_reach(&m->modules, &m->cap, index))
		return -ENOMEM;
	if (status)
		m->modules[index] = (struct module){ 0 };
	buf_reset(&m->key);
	stack_walk_put_key(&m->key, source);
	if (m->key.failed || intern_add(m->texts, m->key.data, m->key.len, &text) < 0)
		return -ENOMEM;
	m->modules[index].source = text;
	return index;
}

static void add_sample(struct modules *m, const struct profiles *p, const uint32_t *module_of, const struct sample *sample)
{
	const struct indices *stack = &p->dict.stacks[sample->stack_index];
	uint64_t events = sample->timestamp_count ? sample->timestamp_count : 1;

	m->events += events;
	m->sample_number++;
	for (uint32_t i = 0; i < stack->count; i++) {
		const struct profile_location *l = &p->dict.locations[stack->items[i]];
		struct module *module;

		if (!l->mapping_index)
			continue;
		module = &m->modules[module_of[l->mapping_index]];
		module->frames += events;
		module->named += l->line_count ? events : 0;
		if (!i) {
			module->own += events;
			module->named_own += l->line_count ? events : 0;
		}
		if (module->last_sample != m->sample_number)
			module->samples += events;
		module->last_sample = m->sample_number;
	}
}

int modules_add(struct modules *m, const struct profiles *p)
{
	AUTO_FREE uint32_t *module_of = calloc((size_t)p->dict.mapping_count + 1, sizeof(*module_of));

	if (!module_of)
		return -ENOMEM;
	for (uint32_t i = 1; i < p->dict.mapping_count; i++) {
		int64_t index = find_module(m, p, &p->dict.mappings[i]);

		if (index < 0)
			return (int)index;
		module_of[i] = (uint32_t)index;
	}
	for (uint32_t r = 0; r < p->resource_count; r++)
		for (uint32_t s = 0; s < p->resources[r].scope_count; s++)
			for (uint32_t i = 0; i < p->resources[r].scopes[s].profile_count; i++) {
				const struct profile *profile = &p->resources[r].scopes[s].profiles[i];

				for (uint32_t k = 0; k < profile->sample_count; k++)
					add_sample(m, p, module_of, &profile->samples[k]);
			}
	return 0;
}

/* --- printing --- */

static int by_samples(const void *a, const void *b)
{
	const struct module *x = a, *y = b;

	if (x->samples != y->samples)
		return x->samples > y->samples ? -1 : 1;
	return strcmp(x->path, y->path) ? strcmp(x->path, y->path) : strcmp(x->build_id, y->build_id);
}

static const char *source_of(const struct modules *m, const struct module *module)
{
	return intern_get(m->texts, module->source, NULL);
}

static struct str quality_key(const char *source)
{
	return (struct str){ source, (uint32_t)strlen(source) };
}

static void print_module(const struct modules *m, const struct module *module, unsigned columns, struct buf *out)
{
	const char *source = source_of(m, module);

	buf_printf(out, "%9" PRIu64 "  ", module->samples);
	if (module->own)
		buf_printf(out, "%9.2f%%  ", text_percent(module->named_own, module->own));
	else
		buf_printf(out, "%10s  ", "-");
	buf_printf(out, "%11.2f%%  %-7s  %-12s  ", text_percent(module->named, module->frames), source[0] ? source : "-",
		   modules_quality(quality_key(source)));
	if (module->build_id[0]) {
		text_padded(out, module->path, columns);
		buf_puts(out, "  ");
		text_name(out, module->build_id, 0);
	} else {
		text_name(out, module->path, 0);
	}
	buf_putc(out, '\n');
}

/* Prints what would make the names of @module better, on a line of its own. */
static void print_advice(const struct modules *m, const struct module *module, modules_advise_fn advise, void *arg,
			 bool *has_title, struct buf *out)
{
	AUTO(buf_fini) struct buf text = BUF_EMPTY;
	const char *quality = modules_quality(quality_key(source_of(m, module)));

	if (!strcmp(quality, "full") || !strcmp(quality, "pending") || !strcmp(quality, "-") || !advise)
		return;
	advise(arg, module->path, module->build_id, &text);
	if (!text.len)
		return;
	if (!*has_title)
		buf_puts(out, "\nfor inlined calls, files and lines (servers in $DEBUGINFOD_URLS are asked, too)\n");
	*has_title = true;
	buf_puts(out, "  ");
	text_name(out, module->path, 0);
	buf_puts(out, ": ");
	text_name(out, buf_text(&text), 0);
	buf_putc(out, '\n');
	out->failed |= text.failed;
}

/* Prints what gives names to the generated code of @module, on a line of its own. */
static void print_generated(const struct module *module, bool *has_title, struct buf *out)
{
	struct unnamed u;

	if (module->named == module->frames || !unnamed_read(str_z(module->path), &u) || !u.is_generated)
		return;
	if (!*has_title)
		buf_puts(out, "\nfor names of code that is made while a program runs\n");
	*has_title = true;
	buf_puts(out, "  ");
	text_name(out, module->path, 0);
	buf_printf(out, ": %s\n", unnamed_generated_advice(u.process.data));
}

int modules_report(struct modules *m, modules_advise_fn advise, void *arg, struct buf *out)
{
	uint32_t count = intern_count(m->keys), shown = 0;
	AUTO_FREE struct module *sorted = reallocarray(NULL, count + 1, sizeof(*sorted));
	unsigned columns = (unsigned)strlen("MODULE");
	bool has_title = false;

	if (!sorted)
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++) {
		sorted[i] = m->modules[i];
		sorted[i].path = intern_get(m->keys, i, NULL);
		sorted[i].build_id = sorted[i].path + strlen(sorted[i].path) + 1;
		if (m->modules[i].samples && sorted[i].build_id[0] && text_columns(sorted[i].path) > columns)
			columns = text_columns(sorted[i].path);
	}
	qsort(sorted, count, sizeof(*sorted), by_samples);
	while (shown < count && sorted[shown].samples)
		shown++;
	buf_printf(out, "%" PRIu64 " samples, %" PRIu32 " modules\n", m->events, shown);
	if (shown)
		buf_printf(out, "\n  SAMPLES  NAMED TIME  NAMED FRAMES  SOURCE   NAMES ARE     %-*s  BUILD ID\n",
			   (int)columns, "MODULE");
	for (uint32_t i = 0; i < shown; i++)
		print_module(m, &sorted[i], columns, out);
	for (uint32_t i = 0; i < shown && i < MAX_ADVISED; i++)
		print_advice(m, &sorted[i], advise, arg, &has_title, out);
	has_title = false;
	for (uint32_t i = 0; i < shown && i < MAX_ADVISED; i++)
		print_generated(&sorted[i], &has_title, out);
	return out->failed ? -ENOMEM : 0;
}
