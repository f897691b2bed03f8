/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The registry: families (one name, sorted) that own their series in registration order. A series is an allocation of its
 * own, so the pointers handed out stay good while the registry grows. Series are found by the hash of (family, labels).
 * Everything but the values is guarded by @lock; collect callbacks run without it, since they may register.
 */
#include "base/metrics.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/clock.h"
#include "base/map.h"
#include "base/search.h"

enum { MAX_SERIES = 10000 };

struct series {
	struct metric metric; /* first, so that its address is the series' */
	struct family *family;
	struct series *next;	  /* next series of the family */
	struct series *same_hash; /* next series under the same key of by_hash */
	char labels[];		  /* "" for none */
};

struct family {
	const char *name, *help, *type;
	bool in_ns;  /* values are nanoseconds, and written in seconds */
	char *owned; /* the memory of @name and @help where they are copies */
	struct series *first, **last;
};

struct collector {
	void (*fn)(void *arg);
	void *arg;
	struct collector *next;
};

struct metrics {
	pthread_mutex_t lock;
	struct family **families; /* sorted by name */
	size_t family_count;
	size_t series_count;
	struct map by_hash; /* to struct series */
	struct collector *collectors, **last_collector;
};

struct metrics *metrics_new(void)
{
	struct metrics *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	pthread_mutex_init(&m->lock, NULL);
	m->last_collector = &m->collectors;
	return m;
}

void metrics_free(struct metrics *m)
{
	if (!m)
		return;
	for (size_t i = 0; i < m->family_count; i++) {
		struct family *f = m->families[i];

		while (f->first) {
			struct series *s = f->first;

			f->first = s->next;
			free(s);
		}
		free(f->owned);
		free(f);
	}
	free(m->families);
	while (m->collectors) {
		struct collector *c = m->collectors;

		m->collectors = c->next;
		free(c);
	}
	map_fini(&m->by_hash);
	pthread_mutex_destroy(&m->lock);
	free(m);
}

static struct family *find_or_add_family(struct metrics *m, const char *name, const char *help, const char *type, bool in_ns)
{
	size_t place = search_first(at, m->family_count, strcmp(m->families[at]->name, name) >= 0);
	struct family **families, *f;

	if (place < m->family_count && !strcmp(m->families[place]->name, name))
		return m->families[place];
	families = realloc(m->families, (m->family_count + 1) * sizeof(struct family *));
	if (!families)
		return NULL;
	m->families = families;
	f = calloc(1, sizeof(*f));
	if (!f)
		return NULL;
	*f = (struct family){ .name = name, .help = help, .type = type, .in_ns = in_ns, .last = &f->first };
	memmove(families + place + 1, families + place, (m->family_count - place) * sizeof(struct family *));
	families[place] = f;
	m->family_count++;
	return f;
}

static struct series *add_series(struct metrics *m, struct family *f, const char *labels, uint64_t hash)
{
	size_t labels_size = strlen(labels) + 1;
	struct series *s;

	if (m->series_count >= MAX_SERIES)
		return NULL;
	s = calloc(1, sizeof(*s) + labels_size);
	if (!s)
		return NULL;
	s->family = f;
	s->same_hash = map_get(&m->by_hash, hash);
	memcpy(s->labels, labels, labels_size);
	if (map_put(&m->by_hash, hash, s)) {
		free(s);
		return NULL;
	}
	*f->last = s;
	f->last = &s->next;
	m->series_count++;
	return s;
}

static uint64_t hash_of(const struct family *f, const char *labels)
{
	return XXH3_64bits_withSeed(labels, strlen(labels), (uintptr_t)f);
}

static struct series *find_or_add_series(struct metrics *m, struct family *f, const char *labels)
{
	uint64_t hash = hash_of(f, labels);

	for (struct series *s = map_get(&m->by_hash, hash); s; s = s->same_hash)
		if (s->family == f && !strcmp(s->labels, labels))
			return s;
	return add_series(m, f, labels, hash);
}

static struct metric *find_or_add(struct metrics *m, const char *name, const char *labels, const char *help,
				  const char *type, bool in_ns)
{
	struct series *s = NULL;
	struct family *f;

	labels = labels ? labels : "";
	pthread_mutex_lock(&m->lock);
	f = find_or_add_family(m, name, help, type, in_ns);
	if (f) {
		/* one name is a counter or a gauge everywhere */
		assert(!strcmp(f->type, type) && f->in_ns == in_ns);
		s = find_or_add_series(m, f, labels);
	}
	pthread_mutex_unlock(&m->lock);
	return s ? &s->metric : NULL;
}

struct metric *metrics_counter(struct metrics *m, const char *name, const char *labels, const char *help)
{
	return find_or_add(m, name, labels, help, "counter", false);
}

struct metric *metrics_gauge(struct metrics *m, const char *name, const char *labels, const char *help)
{
	return find_or_add(m, name, labels, help, "gauge", false);
}

struct metric *metrics_seconds(struct metrics *m, const char *name, const char *labels, const char *help)
{
	return find_or_add(m, name, labels, help, "counter", true);
}

/* Takes @s out of the chain under its hash. */
static void unhash(struct metrics *m, struct series *s)
{
	uint64_t hash = hash_of(s->family, s->labels);
	struct series *first = map_get(&m->by_hash, hash);

	if (first != s) {
		while (first->same_hash != s)
			first = first->same_hash;
		first->same_hash = s->same_hash;
	} else if (s->same_hash) {
		(void)map_put(&m->by_hash, hash, s->same_hash); /* replaces in place */
	} else {
		map_del(&m->by_hash, hash);
	}
}

void metrics_remove(struct metrics *m, struct metric *series)
{
	struct series *s = (struct series *)series, **link;

	if (!s)
		return;
	pthread_mutex_lock(&m->lock);
	for (link = &s->family->first; *link != s; link = &(*link)->next)
		;
	*link = s->next;
	if (!s->next)
		s->family->last = link;
	unhash(m, s);
	m->series_count--;
	pthread_mutex_unlock(&m->lock);
	free(s);
}

size_t metrics_memory_bytes(struct metrics *m)
{
	size_t bytes;

	pthread_mutex_lock(&m->lock);
	bytes = sizeof(*m) + map_memory_bytes(&m->by_hash);
	for (size_t i = 0; i < m->family_count; i++) {
		bytes += sizeof(struct family) + sizeof(struct family *);
		for (const struct series *s = m->families[i]->first; s; s = s->next)
			bytes += sizeof(*s) + strlen(s->labels) + 1;
	}
	pthread_mutex_unlock(&m->lock);
	return bytes;
}

int metrics_on_collect(struct metrics *m, void (*fn)(void *arg), void *arg)
{
	struct collector *c = malloc(sizeof(*c));

	if (!c)
		return -ENOMEM;
	*c = (struct collector){ .fn = fn, .arg = arg };
	pthread_mutex_lock(&m->lock);
	*m->last_collector = c;
	m->last_collector = &c->next;
	pthread_mutex_unlock(&m->lock);
	return 0;
}

void metrics_off_collect(struct metrics *m, void (*fn)(void *arg), void *arg)
{
	pthread_mutex_lock(&m->lock);
	for (struct collector **link = &m->collectors; *link; link = &(*link)->next) {
		struct collector *c = *link;

		if (c->fn != fn || c->arg != arg)
			continue;
		*link = c->next;
		if (!*link)
			m->last_collector = link;
		free(c);
		break;
	}
	pthread_mutex_unlock(&m->lock);
}

static void append_escaped(struct buf *out, const char *text, size_t len, bool with_quotes)
{
	for (size_t i = 0; i < len; i++) {
		if (text[i] == '\n')
			buf_puts(out, "\\n");
		else if (text[i] == '\\' || (text[i] == '"' && with_quotes))
			buf_printf(out, "\\%c", text[i]);
		else
			buf_putc(out, text[i]);
	}
}

void metrics_label(struct buf *labels, const char *key, const char *value, size_t value_len)
{
	if (labels->len)
		buf_putc(labels, ',');
	buf_printf(labels, "%s=\"", key);
	append_escaped(labels, value, value_len, true);
	buf_putc(labels, '"');
}

/* Collectors are only ever added at the end, so the lock may be released for each call while the list is walked. */
static void collect(struct metrics *m)
{
	struct collector *c;

	pthread_mutex_lock(&m->lock);
	for (c = m->collectors; c; c = c->next) {
		pthread_mutex_unlock(&m->lock);
		c->fn(c->arg);
		pthread_mutex_lock(&m->lock);
	}
	pthread_mutex_unlock(&m->lock);
}

static void append_value(struct buf *out, const struct family *f, uint64_t value)
{
	const uint64_t second = NSEC_PER_SEC;

	if (f->in_ns)
		buf_printf(out, "%" PRIu64 ".%09" PRIu64, value / second, value % second);
	else
		buf_printf(out, "%" PRIu64, value);
}

static uint64_t sum_of(const struct series *s)
{
	return metric_get(&s->metric) + atomic_load_explicit(&s->metric.other, memory_order_relaxed);
}

void metrics_write(struct metrics *m, struct buf *out)
{
	collect(m);
	pthread_mutex_lock(&m->lock);
	for (size_t i = 0; i < m->family_count; i++) {
		const struct family *f = m->families[i];

		if (!f->first)
			continue;
		buf_printf(out, "# HELP %s ", f->name);
		append_escaped(out, f->help, strlen(f->help), false);
		buf_printf(out, "\n# TYPE %s %s\n", f->name, f->type);
		for (const struct series *s = f->first; s; s = s->next) {
			const char *open = *s->labels ? "{" : "", *close = *s->labels ? "}" : "";

			buf_printf(out, "%s%s%s%s ", f->name, open, s->labels, close);
			append_value(out, f, sum_of(s));
			buf_putc(out, '\n');
		}
	}
	pthread_mutex_unlock(&m->lock);
}

void metrics_each(struct metrics *m, void (*fn)(void *arg, const char *name, const char *labels, uint64_t value), void *arg)
{
	collect(m);
	pthread_mutex_lock(&m->lock);
	for (size_t i = 0; i < m->family_count; i++) {
		const struct family *f = m->families[i];

		for (const struct series *s = f->first; s; s = s->next)
			fn(arg, f->name, s->labels, sum_of(s) / (f->in_ns ? NSEC_PER_SEC : 1));
	}
	pthread_mutex_unlock(&m->lock);
}

/* --- the series of two processes as one --- */

void metrics_view(struct metrics *m, void (*fn)(void *arg, const struct metric_view *view), void *arg)
{
	collect(m);
	pthread_mutex_lock(&m->lock);
	for (size_t i = 0; i < m->family_count; i++) {
		const struct family *f = m->families[i];

		for (const struct series *s = f->first; s; s = s->next)
			fn(arg, &(struct metric_view){ .name = f->name,
						       .help = f->help,
						       .labels = s->labels,
						       .type = f->type,
						       .in_ns = f->in_ns,
						       .value = metric_get(&s->metric) });
	}
	pthread_mutex_unlock(&m->lock);
}

/* The family that @view names; a new one owns copies of the texts. */
static struct family *family_of_view(struct metrics *m, const struct metric_view *view)
{
	size_t name_size = strlen(view->name) + 1, help_size = strlen(view->help) + 1;
	const bool is_gauge = !strcmp(view->type, "gauge");
	char *owned = malloc(name_size + help_size);
	struct family *f = NULL;

	if (owned) {
		memcpy(owned, view->name, name_size);
		memcpy(owned + name_size, view->help, help_size);
		f = find_or_add_family(m, owned, owned + name_size, is_gauge ? "gauge" : "counter", view->in_ns);
	}
	if (f && f->name == owned)
		f->owned = owned;
	else
		free(owned);
	return f;
}

int metrics_other(struct metrics *m, const struct metric_view *view)
{
	struct series *s = NULL;
	struct family *f;
	int err = -ENOMEM;

	pthread_mutex_lock(&m->lock);
	f = family_of_view(m, view);
	if (f && (strcmp(f->type, view->type) != 0 || f->in_ns != view->in_ns))
		err = -EINVAL;
	else if (f)
		s = find_or_add_series(m, f, view->labels);
	if (s)
		atomic_store_explicit(&s->metric.other, view->value, memory_order_relaxed);
	pthread_mutex_unlock(&m->lock);
	return s ? 0 : err;
}
