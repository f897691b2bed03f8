/* SPDX-License-Identifier: Apache-2.0 */
/* Puts profiles into a store, as one that sends them does; included after cmocka. */
#ifndef HEARTH_TESTS_STORE_PUT_H
#define HEARTH_TESTS_STORE_PUT_H

#include "backend/store/store_write.h"
#include "base/clock.h"
#include "tests/unit/sinks/counted_ack.h"

/* @s takes @p, which stays the caller's, and has said so once. */
static inline void store_put(struct store *s, struct profiles *p)
{
	struct counted_ack ack = { .ack.done = counted_done };
	struct sink *sink;

	assert_int_equal(s->write->writer(s, &sink), 0);
	assert_int_equal(sink_consume(sink, p, &ack.ack), 0);
	assert_int_equal(sink_flush(sink, clock_mono_ns() + 20 * NSEC_PER_SEC), 0);
	assert_int_equal(ack.done, 1);
	assert_int_equal(ack.error, 0);
	sink_free(sink);
}

#endif
