/* SPDX-License-Identifier: Apache-2.0 */
/* A message that the decoder accepted comes through encoding unchanged, and through splitting without a loss. */
#ifndef HEARTH_TESTS_OTLP_ACCEPTED_H
#define HEARTH_TESTS_OTLP_ACCEPTED_H

#include <string.h>

#include "proto/otlp/otlp.h"
#include "tests/fuzz/require.h"

static const struct otlp_decode_options no_guess = { .no_guess = true };

static inline int check_part(void *arg, const uint8_t *msg, size_t len, uint64_t sample_events)
{
	uint64_t *events = arg;
	struct otlp_error err;
	struct profiles *p;
	int r = otlp_decode_with((uint8_t *)(uintptr_t)msg, len, false, &no_guess, &p, &err);

	*events += sample_events;
	REQUIRE(r == 0 && p->sample_events == sample_events);
	profiles_put(p);
	return 0;
}

/* Returns it decoded again; the caller puts it. */
static inline struct profiles *check_accepted(const struct profiles *p)
{
	struct buf once = BUF_EMPTY, twice = BUF_EMPTY;
	struct otlp_error err;
	struct profiles *again;
	uint64_t events = 0;

	REQUIRE(otlp_encode(p, NULL, &once) == 0);
	REQUIRE(otlp_decode_with(once.data, once.len, false, &no_guess, &again, &err) == 0);
	REQUIRE(again->resource_count == p->resource_count && again->sample_events == p->sample_events);
	REQUIRE(again->dict.string_count == p->dict.string_count && again->dict.stack_count == p->dict.stack_count);
	REQUIRE(again->dict.location_count == p->dict.location_count && again->dict.link_count == p->dict.link_count);
	REQUIRE(otlp_encode(again, NULL, &twice) == 0);
	REQUIRE(once.len == twice.len && memcmp(once.data, twice.data, once.len) == 0);
	REQUIRE(otlp_encode_split(p, once.len / 3 + 1, check_part, &events) == 0);
	REQUIRE(events == p->sample_events);
	buf_fini(&once);
	buf_fini(&twice);
	return again;
}

#endif
