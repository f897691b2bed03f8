/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Merges what several intervals say of the same thing: resources that are equal, and have one profile of equal kind, become
 * one, and in its profile the samples of equal identity, as OTLP wants them. Works on a model that its maker has not handed
 * out yet. Indices are compared, not what they refer to: the dictionary names equal things once, as that of a capture's run
 * does.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/intern.h"
#include "proto/otlp/otlp.h"
#include "proto/profiles.h"

/* --- samples --- */
static int compare_indices(const void *x, const void *y)
{
	int32_t a = *(const int32_t *)x, b = *(const int32_t *)y;

	return (a > b) - (a < b);
}

/* Builds the key that tells sample @number of a profile from the others. A sample that has no times, or other values than
 * one a time, stays alone. */
static void put_identity(struct sample *s, uint32_t number, struct buf *out)
{
	bool is_alone = !s->timestamp_count || (s->value_count && s->value_count != s->timestamp_count);
	int32_t head[] = { s->stack_index, s->link_index, s->value_count != 0, is_alone ? (int32_t)number : -1 };

	if (s->attributes.count)
		qsort(s->attributes.items, s->attributes.count, sizeof(*s->attributes.items), compare_indices);
	buf_reset(out);
	buf_append(out, head, sizeof(head));
	buf_append(out, s->attributes.items, s->attributes.count * sizeof(*s->attributes.items));
}

/* Room for @events in @s, behind those it has. */
static int widen(struct profiles *p, struct sample *s, uint32_t events)
{
	uint64_t *times = profiles_alloc(p, events * sizeof(*times));
	int64_t *values = s->value_count ? profiles_alloc(p, events * sizeof(*values)) : NULL;

	if (!times || (s->value_count && !values))
		return -ENOMEM;
	memcpy(times, s->timestamps_unix_ns, s->timestamp_count * sizeof(*times));
	if (values)
		memcpy(values, s->values, s->value_count * sizeof(*values));
	s->timestamps_unix_ns = times;
	s->values = values;
	return 0;
}

static void append_events(struct sample *s, const struct sample *more)
{
	memcpy(s->timestamps_unix_ns + s->timestamp_count, more->timestamps_unix_ns,
	       more->timestamp_count * sizeof(*s->timestamps_unix_ns));
	if (s->value_count)
		memcpy(s->values + s->value_count, more->values, more->value_count * sizeof(*s->values));
	s->timestamp_count += more->timestamp_count;
	s->value_count += more->value_count;
}

/* @numbers: of the sample that each becomes part of; @events: how many that has then. */
static int join_samples(struct profiles *p, struct profile *profile, const uint32_t *numbers, const uint32_t *events)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < profile->sample_count; i++) {
		struct sample *from = &profile->samples[i], *to = &profile->samples[numbers[i]];

		if (numbers[i] < count) {
			append_events(to, from);
			continue;
		}
		*to = *from;
		count++;
		if (events[numbers[i]] > to->timestamp_count && widen(p, to, events[numbers[i]]))
			return -ENOMEM;
	}
	profile->sample_count = count;
	return 0;
}

static int merge_samples(struct profiles *p, struct profile *profile, struct intern *identities)
{
	AUTO_FREE uint32_t *numbers = calloc(profile->sample_count + 1ull, sizeof(*numbers));
	AUTO_FREE uint32_t *events = calloc(profile->sample_count + 1ull, sizeof(*events));
	AUTO(buf_fini) struct buf identity = BUF_EMPTY;

	if (!numbers || !events)
		return -ENOMEM;
	intern_reset(identities);
	for (uint32_t i = 0; i < profile->sample_count; i++) {
		put_identity(&profile->samples[i], i, &identity);
		if (identity.failed || intern_add(identities, identity.data, identity.len, &numbers[i]) < 0)
			return -ENOMEM;
		events[numbers[i]] += profile->samples[i].timestamp_count;
	}
	return join_samples(p, profile, numbers, events);
}

/* --- resources --- */
static struct profile *only_profile(const struct resource_profiles *rp)
{
	struct profile *p = rp->scope_count == 1 && rp->scopes[0].profile_count == 1 ? rp->scopes[0].profiles : NULL;

	return p && p->sample_count && !p->original_payload.len ? p : NULL;
}

/* All that @rp says but its samples, their times and the profile's id, as the message that it would be. */
static int put_kind(const struct resource_profiles *rp, const struct profile *only, struct buf *out)
{
	struct profile profile = *only;
	struct scope_profiles scope = rp->scopes[0];
	struct resource_profiles bare = *rp;
	struct profiles alone = { .resources = &bare, .resource_count = 1 };

	profile.sample_count = 0;
	profile.time_unix_ns = profile.duration_ns = 0;
	profile.profile_id = STR("");
	scope.profiles = &profile;
	bare.scopes = &scope;
	buf_reset(out);
	return otlp_encode(&alone, NULL, out);
}

/* Adds @from's samples to @to's, which have room for them. */
static void append_profile(struct profile *to, const struct profile *from)
{
	uint64_t to_end = to->time_unix_ns + to->duration_ns, from_end = from->time_unix_ns + from->duration_ns;

	memcpy(to->samples + to->sample_count, from->samples, from->sample_count * sizeof(*from->samples));
	to->sample_count += from->sample_count;
	to->time_unix_ns = from->time_unix_ns < to->time_unix_ns ? from->time_unix_ns : to->time_unix_ns;
	to->duration_ns = (from_end > to_end ? from_end : to_end) - to->time_unix_ns;
}

/* Numbers the resources by kind in @numbers, from 1; 0: stays alone. @samples: of all of a kind. */
static int number_kinds(const struct profiles *p, struct intern *kinds, uint32_t *numbers, uint32_t *samples)
{
	AUTO(buf_fini) struct buf kind = BUF_EMPTY;

	for (uint32_t r = 0; r < p->resource_count; r++) {
		const struct profile *profile = only_profile(&p->resources[r]);

		if (!profile)
			continue;
		if (put_kind(&p->resources[r], profile, &kind) || intern_add(kinds, kind.data, kind.len, &numbers[r]) < 0)
			return -ENOMEM;
		samples[++numbers[r]] += profile->sample_count;
	}
	return 0;
}

static int join_resources(struct profiles *p, const uint32_t *numbers, const uint32_t *samples, struct profile **first)
{
	uint32_t count = 0;

	for (uint32_t r = 0; r < p->resource_count; r++) {
		struct profile *profile = only_profile(&p->resources[r]);
		struct sample *all;

		if (numbers[r] && first[numbers[r]]) {
			append_profile(first[numbers[r]], profile);
			continue;
		}
		p->resources[count++] = p->resources[r];
		if (!numbers[r] || samples[numbers[r]] == profile->sample_count)
			continue;
		all = profiles_alloc(p, samples[numbers[r]] * sizeof(*all));
		if (!all)
			return -ENOMEM;
		memcpy(all, profile->samples, profile->sample_count * sizeof(*all));
		profile->samples = all;
		first[numbers[r]] = profile;
	}
	p->resource_count = count;
	return 0;
}

static void free_intern(struct intern **t)
{
	intern_free(*t);
}

int profiles_merge(struct profiles *p)
{
	uint32_t count = p->resource_count;
	AUTO(free_intern) struct intern *seen = intern_new();
	AUTO_FREE uint32_t *numbers = calloc(count + 1ull, sizeof(*numbers));
	AUTO_FREE uint32_t *samples = calloc(count + 1ull, sizeof(*samples));
	AUTO_FREE struct profile **first = calloc(count + 1ull, sizeof(struct profile *));
	int err = seen && numbers && samples && first ? number_kinds(p, seen, numbers, samples) : -ENOMEM;

	p->message = STR("");
	if (!err)
		err = join_resources(p, numbers, samples, first);
	for (uint32_t i = 1; !err && i <= count; i++)
		if (first[i])
			err = merge_samples(p, first[i], seen);
	return err;
}
