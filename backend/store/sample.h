/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a sample for all stores alike: its events, and the CPU among its attributes. */
#ifndef HEARTH_BACKEND_STORE_SAMPLE_H
#define HEARTH_BACKEND_STORE_SAMPLE_H

#include <string.h>

#include "base/clock.h"
#include "proto/profiles.h"

struct store_event {
	uint64_t time_ns; /* Unix; anything that was sent */
	int64_t weight;
};

/* A sample without times is one event. */
static inline uint32_t store_event_count(const struct sample *s)
{
	return s->timestamp_count ? s->timestamp_count : 1;
}

/* Event @i of store_event_count(). One without a time is of its profile's, or of now; it has the sum of the values. Without
 * a value for each time an event weighs 1. */
static inline struct store_event store_event_at(const struct profile *profile, const struct sample *s, uint32_t i)
{
	struct store_event e = { 0 };

	if (s->timestamp_count)
		return (struct store_event){ s->timestamps_unix_ns[i],
					     s->value_count == s->timestamp_count ? s->values[i] : 1 };
	e.time_ns = profile->time_unix_ns ? profile->time_unix_ns : clock_unix_ns();
	e.weight = s->value_count ? 0 : 1;
	for (uint32_t v = 0; v < s->value_count; v++)
		e.weight = (int64_t)((uint64_t)e.weight + (uint64_t)s->values[v]);
	return e;
}

/*
 * Values of a moment, such as memory in use, are not to be summed over time. So they are kept as the time for which they
 * held, their profile's, times the value, in seconds, under a unit that says so: over any range that has a sum, and divided
 * by the range's length it is the mean. Returns that unit; NULL: @profile has values that add up.
 */
static inline const char *store_gauge_unit(const struct profiles *p, const struct profile *profile)
{
	struct str type = profiles_string(p, profile->sample_type.type_strindex);

	if (type.len < 6 || memcmp(type.data, "inuse_", 6) != 0)
		return NULL;
	return str_is(profiles_string(p, profile->sample_type.unit_strindex), "bytes") ? "byte_seconds" : "count_seconds";
}

/* Event @i of store_event_count() as it is kept. Of a profile that does not say for how long a value held, one second. */
static inline struct store_event store_event_kept(const struct profiles *p, const struct profile *profile,
						  const struct sample *s, uint32_t i)
{
	struct store_event e = store_event_at(profile, s, i);
	double seconds = profile->duration_ns ? (double)profile->duration_ns / (double)NSEC_PER_SEC : 1;

	if (store_gauge_unit(p, profile))
		e.weight = (int64_t)((double)e.weight * seconds);
	return e;
}

/* Does @a say on which CPU a sample was taken? Such numbers are kept apart from other labels. */
static inline bool store_is_cpu(const struct profiles *p, const struct profile_attribute *a)
{
	return a->value.kind == VALUE_INT && !a->unit_strindex && a->value.integer >= 0 && a->value.integer < UINT16_MAX &&
	       str_is(profiles_string(p, a->key_strindex), "cpu.logical_number");
}

#endif
