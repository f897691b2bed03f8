/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/samples/contentions.h"

/* @part / @whole, up or down to an integer so that the mean is right: by @seed, which is another one for each sample. */
static uint64_t divide(uint64_t part, uint64_t whole, uint64_t seed)
{
	uint64_t count = part / whole, rest = part % whole, chance = seed * 0x9E3779B97F4A7C15u >> 32;

	return count + (chance * whole >> 32 < rest);
}

uint64_t contentions_of(const struct pending_sample *s)
{
	const struct sample_record *r = s->record;
	uint64_t length_ns;

	if (!s->wait || !s->target || s->target->kind != TARGET_FUTEX || !s->value)
		return 0;
	if (r->flags & SAMPLE_ASLEEP)
		return r->hdr.time_ns - s->value == s->wait->since_ns;
	length_ns = s->wait->woken_ns - s->wait->since_ns;
	if (s->wait->woken_ns <= s->wait->since_ns || length_ns > UINT32_MAX || s->value < length_ns)
		return s->wait->woken_ns > s->wait->since_ns && s->value == length_ns;
	return divide(s->value, length_ns, s->wait->woken_ns);
}
