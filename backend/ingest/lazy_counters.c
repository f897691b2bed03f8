/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lazy backend's counters: profiles (as there, one a ScopeProfiles) by container, samples by container and executable,
 * frames by container, executable and language. Whatever has no value is labelled "unknown".
 *
 * No string is built or compared for a sample: what the tables of a request say is looked up once a request, label sets once
 * a resource and executable, and sums are kept in the sets until the request is through. Series are registered at first use.
 * Sets and series are bounded; what comes later counts under "other". Loop's thread only; series belong to the registry.
 */
#include "backend/ingest/lazy_counters.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/cleanup.h"
#include "base/map.h"
#include "base/metrics.h"
#include "base/text/utf8.h"
#include "proto/profiles.h"

enum {
	SETS_MAX = 2000,
	SERIES_MAX = 6000,  /* of the registry's 10,000 */
	LABEL_MAX = 128,    /* bytes of a value; longer ones are cut */
	LANGUAGES_MAX = 32, /* frame types told apart */
	LANGUAGE_UNKNOWN = 0,
	LANGUAGE_OTHER = LANGUAGES_MAX - 1,
	LANGUAGE_UNSET = LANGUAGES_MAX, /* an attribute that is no frame type */
};

enum { SERIES_PROFILES, SERIES_SAMPLES, SERIES_LOCATIONS /* + language */, SERIES_COUNT = SERIES_LOCATIONS + LANGUAGES_MAX };

static const struct {
	const char *name, *help;
} families[] = {
	[SERIES_PROFILES] = { "lazybackend_received_profiles_total", "The total number of received profiles." },
	[SERIES_SAMPLES] = { "lazybackend_received_samples_total", "The total number of received samples." },
	[SERIES_LOCATIONS] = { "lazybackend_received_locations_total", "The total number of received locations." },
};

/* The labels of one container.id and process.executable.name, or of a container alone when executable is empty. */
struct label_set {
	struct label_set *fallback; /* takes what is beyond the bounds; NULL: this is it */
	struct label_set *next_pending;
	bool has_pending;
	uint64_t pending[SERIES_COUNT]; /* of the request being counted */
	struct metric *series[SERIES_COUNT];
	struct buf labels; /* as Prometheus text */
	size_t key_len;
	uint8_t key[];
};

struct lazy_counters {
	struct metrics *metrics;
	struct metric *uncounted;
	struct map sets; /* hash of the key -> owned struct label_set */
	struct label_set *other, *other_containers;
	struct label_set *pending; /* the sets that have any */
	uint64_t seed;
	unsigned series_left;
	char *languages[LANGUAGES_MAX];
	unsigned language_count; /* the last is "other" and not counted */
};

/* --- label sets --- */

static void set_free(struct label_set *set)
{
	if (set)
		buf_fini(&set->labels);
	free(set);
}

static struct label_set *set_new(const uint8_t *key, size_t key_len, struct str container, struct str executable)
{
	struct label_set *set = calloc(1, sizeof(*set) + key_len);
	if (!set)
		return NULL;
	memcpy(set->key, key, key_len);
	set->key_len = key_len;
	metrics_label(&set->labels, "container_id", container.data, container.len);
	if (executable.len)
		metrics_label(&set->labels, "process_executable_name", executable.data, executable.len);
	if (set->labels.failed) {
		set_free(set);
		return NULL;
	}
	return set;
}

static struct label_set *set_find(struct lazy_counters *lc, struct str container, struct str executable)
{
	uint8_t key[sizeof(container.len) + 2 * LABEL_MAX];
	memcpy(key, &container.len, sizeof(container.len));
	memcpy(key + sizeof(container.len), container.data, container.len);
	memcpy(key + sizeof(container.len) + container.len, executable.data, executable.len);
	size_t len = sizeof(container.len) + container.len + executable.len;
	uint64_t hash = XXH3_64bits_withSeed(key, len, lc->seed);

	struct label_set *other = executable.len ? lc->other : lc->other_containers;
	struct label_set *set = map_get(&lc->sets, hash);
	if (set)
		return set->key_len == len && memcmp(set->key, key, len) == 0 ? set : other;
	if (lc->sets.count >= SETS_MAX)
		return other;
	set = set_new(key, len, container, executable);
	if (!set || map_put(&lc->sets, hash, set)) {
		set_free(set);
		return other;
	}
	set->fallback = other;
	return set;
}

/* Whatever the sender's strings hold, /metrics stays UTF-8 text without control bytes, or nobody could scrape it. */
static void scrub(struct buf *labels)
{
	for (size_t i = 0, len, skip; i < labels->len; i += len) {
		len = utf8_sequence(labels->data + i, labels->len - i, &skip);
		if (len == 0 || labels->data[i] < ' ') {
			labels->data[i] = '?';
			len = 1;
		}
	}
}

static struct metric *series_new(struct lazy_counters *lc, const struct label_set *set, unsigned which)
{
	struct buf labels = BUF_EMPTY;
	buf_append(&labels, set->labels.data, set->labels.len);
	if (which >= SERIES_LOCATIONS) {
		const char *language = lc->languages[which - SERIES_LOCATIONS];
		metrics_label(&labels, "language", language, strlen(language));
	}
	scrub(&labels);

	unsigned kind = which < SERIES_LOCATIONS ? which : SERIES_LOCATIONS;
	struct metric *series = metrics_counter(lc->metrics, families[kind].name, buf_text(&labels), families[kind].help);
	buf_fini(&labels);
	return series;
}

static void add(struct lazy_counters *lc, struct label_set *set, unsigned which, uint64_t n)
{
	set->pending[which] += n;
	if (set->has_pending)
		return;
	set->has_pending = true;
	set->next_pending = lc->pending;
	lc->pending = set;
}

static void publish(struct lazy_counters *lc, struct label_set *set, unsigned which)
{
	uint64_t n = set->pending[which];
	set->pending[which] = 0;
	if (!set->series[which] && set->fallback && lc->series_left == 0)
		set = set->fallback;
	if (!set->series[which]) {
		set->series[which] = series_new(lc, set, which);
		if (set->fallback && set->series[which])
			lc->series_left--;
	}
	metric_add(set->series[which], n);
}

static void publish_all(struct lazy_counters *lc)
{
	for (struct label_set *set = lc->pending; set; set = set->next_pending) {
		for (unsigned which = 0; which < SERIES_COUNT; which++)
			if (set->pending[which])
				publish(lc, set, which);
		set->has_pending = false;
	}
	lc->pending = NULL;
}

/* --- a request --- */

static struct str cut(struct str s)
{
	if (s.len == 0)
		return STR("unknown");
	return (struct str){ s.data, (uint32_t)utf8_cut(s.data, s.len, LABEL_MAX) };
}

static unsigned language_of(struct lazy_counters *lc, struct str name)
{
	name = cut(name);
	for (unsigned i = 0; i < lc->language_count; i++)
		if (str_is(name, lc->languages[i]))
			return i;
	if (lc->language_count == LANGUAGE_OTHER || memchr(name.data, '\0', name.len))
		return LANGUAGE_OTHER;
	char *copy = strndup(name.data, name.len);
	if (!copy)
		return LANGUAGE_OTHER;
	lc->languages[lc->language_count] = copy;
	return lc->language_count++;
}

struct attribute_class {
	uint8_t language;      /* of profile.frame.type, LANGUAGE_UNSET for other keys */
	bool is_executable;    /* process.executable.name */
	uint32_t resource;     /* number of the resource, from 1, that @set is for */
	struct label_set *set; /* NULL: the name is empty */
};

struct location_class {
	uint32_t rows; /* lines, at least 1 */
	uint8_t language;
};

/* The meaning of a request's attributes and locations, looked up once in its tables. */
struct tables {
	struct attribute_class *attributes;
	struct location_class *locations;
};

static void classify(struct lazy_counters *lc, const struct profiles *p, struct tables *t)
{
	for (uint32_t i = 0; i < p->dict.attribute_count; i++) {
		const struct profile_attribute *a = &p->dict.attributes[i];
		struct str key = profiles_string(p, a->key_strindex);
		t->attributes[i].is_executable = str_is(key, "process.executable.name");
		t->attributes[i].language = LANGUAGE_UNSET;
		if (str_is(key, "profile.frame.type"))
			t->attributes[i].language = (uint8_t)language_of(lc, profiles_value_text(p, &a->value));
	}
	for (uint32_t i = 0; i < p->dict.location_count; i++) {
		const struct profile_location *l = &p->dict.locations[i];
		t->locations[i].rows = l->line_count ? l->line_count : 1;
		t->locations[i].language = LANGUAGE_UNKNOWN;
		for (uint32_t k = 0; k < l->attributes.count; k++) {
			uint8_t language = t->attributes[l->attributes.items[k]].language;
			if (language == LANGUAGE_UNSET)
				continue;
			t->locations[i].language = language;
			break;
		}
	}
}

struct context {
	const struct profiles *profiles;
	const struct tables *tables;
	uint32_t resource;
	struct str container, executable; /* of the resource */
	struct label_set *set;		  /* of samples that name no executable; NULL: not looked up yet */
};

/* The label set of the sample's first process.executable.name that is not empty, or the resource's. */
static struct label_set *set_of_sample(struct lazy_counters *lc, struct context *ctx, const struct sample *s)
{
	for (uint32_t i = 0; i < s->attributes.count; i++) {
		int32_t index = s->attributes.items[i];
		struct attribute_class *a = &ctx->tables->attributes[index];
		if (!a->is_executable)
			continue;
		if (a->resource != ctx->resource) {
			struct str name = profiles_value_text(ctx->profiles, &ctx->profiles->dict.attributes[index].value);
			a->resource = ctx->resource;
			a->set = name.len ? set_find(lc, ctx->container, cut(name)) : NULL;
		}
		if (a->set)
			return a->set;
	}
	if (!ctx->set)
		ctx->set = set_find(lc, ctx->container, ctx->executable);
	return ctx->set;
}

static void add_profile(struct lazy_counters *lc, struct context *ctx, const struct profile *profile)
{
	for (uint32_t i = 0; i < profile->sample_count; i++) {
		const struct sample *s = &profile->samples[i];
		const struct indices *stack = &ctx->profiles->dict.stacks[s->stack_index];
		struct label_set *set = set_of_sample(lc, ctx, s);
		add(lc, set, SERIES_SAMPLES, 1);
		for (uint32_t k = 0; k < stack->count; k++) {
			const struct location_class *l = &ctx->tables->locations[stack->items[k]];
			set->pending[SERIES_LOCATIONS + l->language] += l->rows;
		}
	}
}

static void add_resource(struct lazy_counters *lc, struct context *ctx, const struct resource_profiles *r)
{
	const struct key_values *attributes = &r->resource.attributes;
	ctx->resource++;
	ctx->container = cut(
		profiles_value_text(ctx->profiles, profiles_find_key(ctx->profiles, attributes, "container.id")));
	ctx->executable = cut(
		profiles_value_text(ctx->profiles, profiles_find_key(ctx->profiles, attributes, "process.executable.name")));
	ctx->set = NULL;
	if (r->scope_count)
		add(lc, set_find(lc, ctx->container, STR("")), SERIES_PROFILES, r->scope_count);
	for (uint32_t i = 0; i < r->scope_count; i++)
		for (uint32_t k = 0; k < r->scopes[i].profile_count; k++)
			add_profile(lc, ctx, &r->scopes[i].profiles[k]);
}

void lazy_counters_add(struct lazy_counters *lc, const struct profiles *p)
{
	struct tables t;
	AUTO_FREE void *attributes = t.attributes = calloc(p->dict.attribute_count + 1ul, sizeof(*t.attributes));
	AUTO_FREE void *locations = t.locations = calloc(p->dict.location_count + 1ul, sizeof(*t.locations));
	if (!attributes || !locations) {
		metric_add(lc->uncounted, 1);
		return;
	}
	classify(lc, p, &t);

	struct context ctx = { .profiles = p, .tables = &t };
	for (uint32_t i = 0; i < p->resource_count; i++)
		add_resource(lc, &ctx, &p->resources[i]);
	publish_all(lc);
}

/* --- life --- */

struct lazy_counters *lazy_counters_new(struct metrics *metrics)
{
	static const uint8_t key[1]; /* none */
	struct lazy_counters *lc = calloc(1, sizeof(*lc));
	if (!lc)
		return NULL;
	lc->metrics = metrics;
	lc->series_left = SERIES_MAX;
	/* Without random bytes a sender could make label sets collide; they would then count as "other", nothing worse. */
	if (getrandom(&lc->seed, sizeof(lc->seed), GRND_NONBLOCK) < 0)
		lc->seed = (uintptr_t)lc;
	lc->uncounted = metrics_counter(metrics, "hearth_uncounted_requests_total", NULL,
					"Requests missing from the lazybackend counters for want of memory.");
	lc->other = set_new(key, 0, STR("other"), STR("other"));
	lc->other_containers = set_new(key, 0, STR("other"), STR(""));
	lc->languages[LANGUAGE_UNKNOWN] = strdup("unknown");
	lc->languages[LANGUAGE_OTHER] = strdup("other");
	lc->language_count = 1;
	if (!lc->other || !lc->other_containers || !lc->languages[LANGUAGE_UNKNOWN] || !lc->languages[LANGUAGE_OTHER]) {
		lazy_counters_free(lc);
		return NULL;
	}
	return lc;
}

void lazy_counters_free(struct lazy_counters *lc)
{
	if (!lc)
		return;
	size_t pos = 0;
	uint64_t hash;
	void *set;
	while (map_next(&lc->sets, &pos, &hash, &set))
		set_free(set);
	map_fini(&lc->sets);
	set_free(lc->other);
	set_free(lc->other_containers);
	for (unsigned i = 0; i < LANGUAGES_MAX; i++)
		free(lc->languages[i]);
	free(lc);
}
