/* SPDX-License-Identifier: Apache-2.0 */
/* An ack that counts how often it was completed and keeps the last error. */
#ifndef HEARTH_TESTS_COUNTED_ACK_H
#define HEARTH_TESTS_COUNTED_ACK_H

#include <stdatomic.h>

#include "proto/sink.h"

struct counted_ack {
	struct ack ack;
	_Atomic int done;
	_Atomic int error;
};

static inline void counted_done(struct ack *ack, int error)
{
	struct counted_ack *c = (struct counted_ack *)ack;

	c->error = error;
	c->done++;
}

#endif
