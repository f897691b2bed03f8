/* SPDX-License-Identifier: Apache-2.0 */
/* The receiver hostmetrics: which scrapers, and what each leaves out. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text/nearest.h"
#include "base/text/parse.h"
#include "base/text/pattern.h"
#include "cmd/pipeline/component.h"

static const struct component_key host_keys[] = {
	{ "collection_interval", NULL, NULL },
	{ "initial_delay", NULL, NULL },
	{ "root_path", NULL, NULL },
	{ "scrapers", NULL, NULL },
	{ "timeout", NULL, "the kernel answers at once" },
	{ "metadata_collection_interval", NULL, "events of entities are logs, which are not told" },
	{ NULL, NULL, NULL },
};

/* --- lists of names --- */

static const struct filter_key {
	enum host_scraper scraper;
	enum host_filter_kind kind;
	const char *include, *exclude, *list;
} filter_keys[] = {
	{ HOST_DISK, HOST_BY_DISK, "include", "exclude", "devices" },
	{ HOST_NETWORK, HOST_BY_INTERFACE, "include", "exclude", "interfaces" },
	{ HOST_FILESYSTEM, HOST_BY_DEVICE, "include_devices", "exclude_devices", "devices" },
	{ HOST_FILESYSTEM, HOST_BY_TYPE, "include_fs_types", "exclude_fs_types", "fs_types" },
	{ HOST_FILESYSTEM, HOST_BY_MOUNT_POINT, "include_mount_points", "exclude_mount_points", "mount_points" },
};

static int take_name(struct reader *r, const struct tree *t, bool is_regexp, struct host_name *name)
{
	struct pattern_error why;
	int err;

	if (t->kind != TREE_TEXT)
		return pipeline_refuse(r, t, "this is a name");
	name->text = t->text;
	if (!is_regexp)
		return 0;
	err = pattern_new(t->text, 0, &name->pattern, &why);
	return err == -EINVAL ? pipeline_refuse(r, t, "'%s': %s", t->text, why.message) : err;
}

/* {match_type, LIST} at @t. */
static int take_names(struct reader *r, const struct tree *t, const char *list_key, struct host_names *names)
{
	const struct component_key keys[] = { { "match_type", NULL, NULL }, { list_key, NULL, NULL }, { NULL, NULL, NULL } };
	const struct tree *type = tree_find(t, "match_type"), *list = tree_find(t, list_key);
	const bool is_regexp = type && type->kind == TREE_TEXT && !strcmp(type->text, "regexp");
	struct tree none = TREE_EMPTY;
	int err = component_read_keys(r, t, t->key, keys, &none);

	if (err)
		return err;
	if (!type || type->kind != TREE_TEXT || (!is_regexp && strcmp(type->text, "strict") != 0))
		return pipeline_refuse(r, type ? type : t, "'%s' is a map with a 'match_type', which is strict or regexp",
				       t->key);
	if (!list || list->kind != TREE_LIST || !list->count)
		return pipeline_refuse(r, list ? list : t, "'%s' has a list of '%s'", t->key, list_key);
	names->items = calloc(list->count, sizeof(*names->items));
	if (!names->items)
		return -ENOMEM;
	for (size_t i = 0; i < list->count && !err; i++)
		err = take_name(r, &list->items[i], is_regexp, &names->items[names->count++]);
	return err;
}

static int take_filters(struct reader *r, const struct tree *t, enum host_scraper scraper, struct host_config *config)
{
	int err = 0;

	for (size_t i = 0; i < ARRAY_LEN(filter_keys) && !err; i++) {
		const struct filter_key *key = &filter_keys[i];
		struct host_filter *filter = &config->filters[key->kind];
		const struct tree *include = tree_find(t, key->include), *exclude = tree_find(t, key->exclude);

		if (key->scraper != scraper)
			continue;
		if (include)
			err = take_names(r, include, key->list, &filter->include);
		if (!err && exclude)
			err = take_names(r, exclude, key->list, &filter->exclude);
	}
	return err;
}

/* --- metrics --- */

static int refuse_metric(struct reader *r, const struct tree *t, enum host_scraper scraper)
{
	AUTO(buf_fini) struct buf all = BUF_EMPTY;

	for (size_t i = 0; i < HOST_METRICS; i++)
		if (host_metric_types[i].scraper == scraper)
			buf_printf(&all, "%s%s", all.len ? ", " : "", host_metric_types[i].name);
	return pipeline_refuse(r, t, "'%s' is not among the metrics that hearth's '%s' tells: %s", t->key,
			       host_scraper_names[scraper], buf_text(&all));
}

/* NAME: { enabled: false } */
static int take_metric(struct reader *r, const struct tree *t, enum host_scraper scraper, struct host_config *config)
{
	static const struct component_key keys[] = { { "enabled", NULL, NULL }, { NULL, NULL, NULL } };
	const struct tree *enabled;
	struct tree none = TREE_EMPTY;
	bool is_on = true;
	int err = component_read_keys(r, t, t->key, keys, &none);

	if (err)
		return err;
	enabled = tree_find(t, "enabled");
	if (enabled && (enabled->kind != TREE_TEXT || parse_bool(enabled->text, &is_on)))
		return pipeline_refuse(r, enabled, "'enabled' is true or false");
	for (size_t i = 0; i < HOST_METRICS; i++) {
		if (host_metric_types[i].scraper != scraper || strcmp(host_metric_types[i].name, t->key) != 0)
			continue;
		config->is_off[i] = !is_on;
		return 0;
	}
	if (is_on)
		return refuse_metric(r, t, scraper);
	return pipeline_note(r, t, "'%s' is not told anyway", t->key);
}

/* --- scrapers --- */

static int find_scraper(struct reader *r, const struct tree *t, enum host_scraper *ret)
{
	AUTO(buf_fini) struct buf all = BUF_EMPTY;

	for (size_t i = 0; i < HOST_SCRAPERS; i++) {
		buf_printf(&all, "%s%s", all.len ? ", " : "", host_scraper_names[i]);
		if (strcmp(host_scraper_names[i], t->key) != 0)
			continue;
		*ret = (enum host_scraper)i;
		return 0;
	}
	return pipeline_refuse(r, t, "hearth has no scraper '%s'; there are %s", t->key, buf_text(&all));
}

/* Whether @key, of a scraper, is one that take_scraper() reads. */
static bool is_key_of(enum host_scraper scraper, const char *key)
{
	if (!strcmp(key, "metrics"))
		return true;
	for (size_t i = 0; i < ARRAY_LEN(filter_keys); i++)
		if (filter_keys[i].scraper == scraper &&
		    (!strcmp(key, filter_keys[i].include) || !strcmp(key, filter_keys[i].exclude)))
			return true;
	return (scraper == HOST_LOAD && !strcmp(key, "cpu_average")) ||
	       (scraper == HOST_FILESYSTEM && !strcmp(key, "include_virtual_filesystems"));
}

static int take_switch(struct reader *r, const struct tree *t, const char *key, bool *ret)
{
	const struct tree *at = tree_find(t, key);

	if (!at || at->kind == TREE_NULL)
		return 0;
	return at->kind == TREE_TEXT && !parse_bool(at->text, ret) ? 0
								   : pipeline_refuse(r, at, "'%s' is true or false", key);
}

static int take_scraper(struct reader *r, const struct tree *t, struct host_config *config)
{
	const struct tree *metrics;
	enum host_scraper scraper = HOST_CPU;
	int err = find_scraper(r, t, &scraper);

	if (err)
		return err;
	config->has[scraper] = true;
	if (t->kind == TREE_NULL)
		return 0;
	if (t->kind != TREE_MAP)
		return pipeline_refuse(r, t, "'%s' has keys below it, not a text or a list", t->key);
	for (size_t i = 0; i < t->count; i++)
		if (!is_key_of(scraper, t->items[i].key))
			return pipeline_refuse(r, &t->items[i], "the scraper '%s' has no key '%s'", t->key, t->items[i].key);
	err = take_filters(r, t, scraper, config);
	if (!err)
		err = take_switch(r, t, "cpu_average", &config->is_per_cpu);
	if (!err)
		err = take_switch(r, t, "include_virtual_filesystems", &config->has_virtual);
	metrics = tree_find(t, "metrics");
	if (!err && metrics && metrics->kind != TREE_MAP && metrics->kind != TREE_NULL)
		return pipeline_refuse(r, metrics, "'metrics' is a map of names");
	for (size_t i = 0; metrics && i < metrics->count && !err; i++)
		err = take_metric(r, &metrics->items[i], scraper, config);
	return err;
}

/* --- the receiver --- */

static int take_times(struct reader *r, struct component *c)
{
	static const char interval[] = "collection_interval", delay[] = "initial_delay";
	struct host_config *config = &c->host;
	int err = component_duration(r, c, interval, MINUTE_NS, &config->interval_ns);

	if (!err)
		err = component_duration(r, c, delay, NSEC_PER_SEC, &config->delay_ns);
	if (err)
		return err;
	if (config->interval_ns < 100 * NSEC_PER_MSEC || config->interval_ns > 24 * HOUR_NS)
		return pipeline_refuse(r, component_at(c, interval), "'%s' is a time from 100ms to 24h", interval);
	if (config->delay_ns > 24 * HOUR_NS)
		return pipeline_refuse(r, component_at(c, delay), "'%s' is a time up to 24h", delay);
	return 0;
}

static int take_host(struct reader *r, struct component *c)
{
	const struct tree *scrapers = component_at(c, "scrapers"), *root = component_at(c, "root_path");
	int err = take_times(r, c);

	c->source = SOURCE_HOST;
	c->host.root = "";
	if (err)
		return err;
	if (root && (root->kind != TREE_TEXT || (root->text[0] && root->text[0] != '/')))
		return pipeline_refuse(r, root, "'root_path' is the folder where the host's root is mounted");
	if (root && strcmp(root->text, "/") != 0)
		c->host.root = root->text;
	if (!scrapers || scrapers->kind != TREE_MAP || !scrapers->count)
		return pipeline_refuse(r, scrapers ? scrapers : c->node,
				       "'%s' has a map of 'scrapers', such as { cpu: , memory: }", c->name);
	for (size_t i = 0; i < scrapers->count && !err; i++)
		err = take_scraper(r, &scrapers->items[i], &c->host);
	return err;
}

const struct component_type host_metrics_type = {
	.class = CLASS_RECEIVER,
	.names = { "hostmetrics", "host_metrics" },
	.keys = host_keys,
	.take = take_host,
	.has_metrics = true,
};
