/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Windows stand in a list under a lock, which the sink takes while there are any. Of each report it makes one that has
 * nothing but hearth's own samples on a CPU in the window, in the report's memory, and adds that to the window's pprof.
 */
#include "backend/compat/own_profiles.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/ourselves.h"
#include "proto/formats/pprof.h"
#include "proto/profiles_hide.h"

enum {
	MOST_WINDOWS = 8,
	SLACK_NS = 20 * 1000 * 1000, /* between the clocks by which a window's end is told */
};

#define MOST_BYTES ((size_t)64 << 20)

struct own_profiles {
	size_t most_bytes;
	_Atomic unsigned open;
	pthread_mutex_t lock; /* over the rest */
	struct own_window *windows;
	uint64_t told_ns; /* Unix: profiles up to then have come since a window was opened */
};

struct own_sink {
	struct sink sink;
	struct sink_ops ops; /* durable as @next is */
	struct own_profiles *own;
	struct sink *next; /* owned */
};

struct own_profiles *own_profiles_new(size_t most_bytes)
{
	struct own_profiles *o = calloc(1, sizeof(*o));

	if (!o)
		return NULL;
	o->most_bytes = most_bytes ? most_bytes : MOST_BYTES;
	pthread_mutex_init(&o->lock, NULL);
	return o;
}

void own_profiles_free(struct own_profiles *o)
{
	if (!o)
		return;
	pthread_mutex_destroy(&o->lock);
	free(o);
}

/* --- the part of a report that is a window's --- */

static void put(struct profiles **p)
{
	profiles_put(*p);
}

static bool is_in(const struct own_window *w, uint64_t time_ns)
{
	return time_ns >= w->from_ns && time_ns < w->to_ns;
}

/* Whether the resource is a process of hearth. Its executable's name is looked at, too: a helper's pid may be another's by
 * now. */
static bool is_ours(const struct profiles *p, const struct resource_profiles *r, const struct ourselves *us)
{
	const struct any_value *pid = profiles_find_key(p, &r->resource.attributes, "process.pid");
	const struct any_value *name = profiles_find_key(p, &r->resource.attributes, "process.executable.name");

	return pid && pid->kind == VALUE_INT && pid->integer > 0 && pid->integer <= INT32_MAX &&
	       ourselves_has(us, (uint32_t)pid->integer) && str_is(profiles_value_text(p, name), ourselves_name());
}

static bool is_of_cpu(const struct profiles *p, const struct profile *profile)
{
	return str_is(profiles_string(p, profile->sample_type.type_strindex), "cpu") ||
	       str_is(profiles_string(p, profile->period_type.type_strindex), "cpu");
}

/* Leaves the times of @s that are in the window. 1: there are some; 0: none; -ENOMEM. */
static int cut_sample(struct profiles *p, const struct own_window *w, struct sample *s)
{
	const bool has_values = s->value_count == s->timestamp_count;
	uint64_t *times;
	int64_t *values;
	uint32_t count = 0;

	for (uint32_t i = 0; i < s->timestamp_count; i++)
		count += is_in(w, s->timestamps_unix_ns[i]);
	if (!count || count == s->timestamp_count || (s->value_count && !has_values))
		return count > 0;
	times = profiles_alloc(p, count * sizeof(*times));
	values = has_values ? profiles_alloc(p, count * sizeof(*values)) : NULL;
	if (!times || (has_values && !values))
		return -ENOMEM;
	count = 0;
	for (uint32_t i = 0; i < s->timestamp_count; i++) {
		if (!is_in(w, s->timestamps_unix_ns[i]))
			continue;
		if (values)
			values[count] = s->values[i];
		times[count++] = s->timestamps_unix_ns[i];
	}
	s->timestamps_unix_ns = times;
	s->timestamp_count = count;
	s->values = values ? values : s->values;
	s->value_count = values ? count : s->value_count;
	return 1;
}

/* The samples of @profile in the window take the place of all. */
static int cut_profile(struct profiles *p, const struct own_window *w, struct profile *profile)
{
	struct sample *samples = profiles_alloc(p, (profile->sample_count + 1) * sizeof(*samples));
	uint64_t end_ns = profile->time_unix_ns + profile->duration_ns;
	uint32_t count = 0;

	if (!samples)
		return -ENOMEM;
	for (uint32_t i = 0; i < profile->sample_count; i++) {
		int is_some;

		samples[count] = profile->samples[i];
		is_some = cut_sample(p, w, &samples[count]);
		if (is_some < 0)
			return is_some;
		count += is_some > 0;
	}
	profile->samples = samples;
	profile->sample_count = count;
	end_ns = end_ns < w->to_ns ? end_ns : w->to_ns;
	profile->time_unix_ns = profile->time_unix_ns > w->from_ns ? profile->time_unix_ns : w->from_ns;
	profile->duration_ns = end_ns > profile->time_unix_ns ? end_ns - profile->time_unix_ns : 0;
	return 0;
}

static int cut_scope(struct profiles *p, const struct own_window *w, struct scope_profiles *scope)
{
	struct profile *profiles = profiles_alloc(p, (scope->profile_count + 1) * sizeof(*profiles));
	uint32_t count = 0;
	int err = profiles ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < scope->profile_count && !err; i++) {
		if (!is_of_cpu(p, &scope->profiles[i]))
			continue;
		profiles[count] = scope->profiles[i];
		err = cut_profile(p, w, &profiles[count]);
		count += !err && profiles[count].sample_count;
	}
	scope->profiles = profiles;
	scope->profile_count = count;
	return err;
}

static int cut_resource(struct profiles *p, const struct own_window *w, struct resource_profiles *r)
{
	struct scope_profiles *scopes = profiles_alloc(p, (r->scope_count + 1) * sizeof(*scopes));
	int err = scopes ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < r->scope_count && !err; i++) {
		scopes[i] = r->scopes[i];
		err = cut_scope(p, w, &scopes[i]);
	}
	r->scopes = scopes;
	return err;
}

/* What of @p is @us and in the window, in memory of its own and of @p's. */
static int cut(struct profiles *p, const struct own_window *w, const struct ourselves *us, struct profiles **ret)
{
	AUTO(put) struct profiles *part = profiles_derive(p);
	uint32_t count = 0;

	if (!part)
		return -ENOMEM;
	for (uint32_t i = 0; i < part->resource_count; i++) {
		if (!is_ours(p, &part->resources[i], us))
			continue;
		part->resources[count] = part->resources[i];
		if (cut_resource(part, w, &part->resources[count++]))
			return -ENOMEM;
	}
	part->resource_count = count;
	*ret = MOVE(part);
	return 0;
}

/* --- the sink --- */

static int add(struct own_profiles *o, struct own_window *w, struct profiles *p, const struct ourselves *us)
{
	AUTO(put) struct profiles *part = NULL, *hidden = NULL;
	int err = cut(p, w, us, &part);

	if (err || !part->resource_count)
		return err;
	if (w->hides_addresses)
		err = profiles_hide_addresses(part, &hidden);
	err = err ? err : pprof_add(w->sum, hidden ? hidden : part);
	return !err && pprof_memory_bytes(w->sum) > o->most_bytes ? -E2BIG : err;
}

static void note_end(struct own_profiles *o, const struct profile *profile)
{
	const uint64_t end_ns = profile->time_unix_ns + profile->duration_ns;

	o->told_ns = end_ns > o->told_ns ? end_ns : o->told_ns;
}

static void take(struct own_profiles *o, struct profiles *p)
{
	struct ourselves us;

	ourselves_known(&us);
	pthread_mutex_lock(&o->lock);
	for (struct own_window *w = o->windows; w; w = w->next) {
		if (w->error)
			continue;
		w->error = add(o, w, p, &us);
		if (!w->error)
			continue;
		pprof_free(w->sum);
		w->sum = NULL;
	}
	for (uint32_t r = 0; r < p->resource_count; r++)
		for (uint32_t s = 0; s < p->resources[r].scope_count; s++)
			for (uint32_t i = 0; i < p->resources[r].scopes[s].profile_count; i++)
				note_end(o, &p->resources[r].scopes[s].profiles[i]);
	pthread_mutex_unlock(&o->lock);
}

static int own_consume(struct sink *sink, struct profiles *p, struct ack *ack)
{
	struct own_sink *s = (struct own_sink *)sink;

	if (atomic_load_explicit(&s->own->open, memory_order_relaxed))
		take(s->own, p);
	return sink_consume(s->next, p, ack);
}

static int own_consume_other(struct sink *sink, enum otlp_signal signal, const uint8_t *data, size_t len, struct ack *ack)
{
	return sink_consume_other(((struct own_sink *)sink)->next, signal, data, len, ack);
}

static int own_flush(struct sink *sink, uint64_t deadline_ns)
{
	return sink_flush(((struct own_sink *)sink)->next, deadline_ns);
}

static void own_free(struct sink *sink)
{
	sink_free(((struct own_sink *)sink)->next);
	free(sink);
}

int own_profiles_sink_new(struct own_profiles *o, struct sink *next, struct sink **ret)
{
	struct own_sink *s = calloc(1, sizeof(*s));

	if (!s) {
		sink_free(next);
		return -ENOMEM;
	}
	s->ops = (struct sink_ops){
		.name = next->ops->name,
		.durable = next->ops->durable,
		.consume = own_consume,
		.consume_other = own_consume_other,
		.flush = own_flush,
		.free = own_free,
	};
	s->sink.ops = &s->ops;
	s->own = o;
	s->next = next;
	*ret = &s->sink;
	return 0;
}

/* --- windows --- */

int own_profiles_open(struct own_profiles *o, struct own_window *w)
{
	int err = 0;

	w->error = 0;
	w->sum = pprof_new();
	if (!w->sum)
		return -ENOMEM;
	pthread_mutex_lock(&o->lock);
	if (o->open >= MOST_WINDOWS) {
		err = -EAGAIN;
	} else {
		o->told_ns = o->windows ? o->told_ns : 0;
		w->next = o->windows;
		o->windows = w;
		o->open++;
	}
	pthread_mutex_unlock(&o->lock);
	if (!err)
		return 0;
	pprof_free(w->sum);
	w->sum = NULL;
	return err;
}

bool own_profiles_is_whole(struct own_profiles *o, const struct own_window *w)
{
	bool is_whole;

	pthread_mutex_lock(&o->lock);
	is_whole = w->error || o->told_ns + SLACK_NS >= w->to_ns;
	pthread_mutex_unlock(&o->lock);
	return is_whole;
}

int own_profiles_close(struct own_profiles *o, struct own_window *w, struct buf *out)
{
	struct own_window **link = &o->windows;
	int err;

	pthread_mutex_lock(&o->lock);
	while (*link != w)
		link = &(*link)->next;
	*link = w->next;
	o->open--;
	pthread_mutex_unlock(&o->lock);
	err = w->error;
	if (!err && out)
		err = pprof_write_packed(w->sum, out);
	pprof_free(w->sum);
	w->sum = NULL;
	return err;
}
