/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles that are taken out before anybody else sees them: those that are left close ranks, nothing is freed. */
#include "backend/ingest/unusable.h"

#include <stdio.h>

#include "proto/profiles.h"

/* The first sample of @f that cannot be used, or its sample_count. */
static uint32_t find_unusable(const struct profile *f)
{
	for (uint32_t i = 0; i < f->sample_count; i++) {
		const struct sample *s = &f->samples[i];
		if (s->value_count && s->timestamp_count && s->value_count != s->timestamp_count)
			return i;
	}
	return f->sample_count;
}

static uint64_t count_events(const struct profile *f)
{
	uint64_t events = 0;

	for (uint32_t i = 0; i < f->sample_count; i++)
		events += f->samples[i].timestamp_count ? f->samples[i].timestamp_count : 1;
	return events;
}

int64_t drop_unusable(struct profiles *p, char *why, size_t why_size)
{
	int64_t dropped = 0;

	for (uint32_t i = 0; i < p->resource_count; i++) {
		for (uint32_t j = 0; j < p->resources[i].scope_count; j++) {
			struct scope_profiles *scope = &p->resources[i].scopes[j];
			uint32_t kept = 0;

			for (uint32_t k = 0; k < scope->profile_count; k++) {
				const struct profile *f = &scope->profiles[k];
				uint32_t bad = find_unusable(f);

				if (bad == f->sample_count) {
					scope->profiles[kept++] = *f;
					continue;
				}
				if (!dropped++)
					snprintf(why, why_size,
						 "resource_profiles[%u].scope_profiles[%u].profiles[%u].samples[%u] has %u "
						 "values for %u "
						 "time stamps",
						 i, j, k, bad, f->samples[bad].value_count, f->samples[bad].timestamp_count);
				p->sample_events -= count_events(f);
			}
			scope->profile_count = kept;
		}
	}
	if (dropped)
		p->message = STR("");
	return dropped;
}
