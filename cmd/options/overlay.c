/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/options/overlay.h"

#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "cmd/options/command.h"
#include "cmd/options/config.h"
#include "cmd/options/options.h"
#include "cmd/pipeline/pipelines.h"

/* The command's own option of that name, or another's: `serve` has stages, too. */
static const struct option_spec *find_option(const struct config *config, const char *name)
{
	const struct option_spec *found = NULL;
	size_t count;
	const struct option_spec *specs = options_table(&count);

	for (size_t i = 0; i < count; i++) {
		if (strcmp(specs[i].name, name) != 0)
			continue;
		if (!config->cmd || specs[i].commands & config->cmd->bit)
			return &specs[i];
		found = found ? found : &specs[i];
	}
	return found;
}

/* The process's own list is another's to free. */
static void forget(const struct option_spec *spec, struct config *config)
{
	void *field = (char *)config + spec->offset;

	if (spec->kind == OPTION_LIST || spec->kind == OPTION_WORDS)
		*(struct string_list *)field = (struct string_list){ 0 };
	else if (spec->kind == OPTION_PIDS)
		*(struct pid_list *)field = (struct pid_list){ 0 };
}

static int set(const struct tree *t, const struct option_spec *spec, struct config *config, struct buf *error)
{
	size_t count = t->kind == TREE_LIST ? t->count : 1;
	int err = 0;

	for (size_t i = 0; i < count && !err; i++) {
		const struct tree *item = t->kind == TREE_LIST ? &t->items[i] : t;
		AUTO(buf_fini) struct buf origin = BUF_EMPTY;

		tree_place(item, &origin);
		buf_puts(&origin, spec->name);
		err = option_set(spec, item->text, buf_text(&origin), config, error);
	}
	return err;
}

int overlay_init(const struct component *c, const struct config *config, struct config *ret, struct buf *error)
{
	int err = 0;

	*ret = *config;
	for (size_t i = 0; i < c->settings.count; i++) { /* all of them, so that what is freed is ours */
		const struct option_spec *spec = find_option(config, c->settings.items[i].key);

		if (spec)
			forget(spec, ret);
	}
	for (size_t i = 0; i < c->settings.count && !err; i++) {
		const struct option_spec *spec = find_option(config, c->settings.items[i].key);

		if (spec)
			err = set(&c->settings.items[i], spec, ret, error);
	}
	return err;
}

void overlay_fini(const struct component *c, struct config *config)
{
	for (size_t i = 0; i < c->settings.count; i++) {
		const struct option_spec *spec = find_option(config, c->settings.items[i].key);

		if (spec)
			option_clear(spec, config);
	}
}

static int check(const struct component *c, struct buf *error)
{
	struct config own;
	int err = overlay_init(c, &(struct config){ 0 }, &own, error);

	overlay_fini(c, &own);
	return err;
}

int overlay_check(const struct pipelines *p, struct buf *error)
{
	int err = 0;

	for (size_t i = 0; i < pipelines_count(p) && !err; i++) {
		const struct pipeline *pl = pipelines_get(p, i);

		for (size_t k = 0; k < pl->processor_count && !err; k++)
			err = check(pl->processors[k], error);
		for (size_t k = 0; k < pl->exporter_count && !err; k++)
			err = check(pl->exporters[k], error);
	}
	return err;
}
