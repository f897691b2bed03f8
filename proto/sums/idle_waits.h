/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waits in which nobody waits for anything but work: event loops, servers that listen, worker pools. They are known by the
 * name of a function that does nothing else. No state.
 */
#ifndef HEARTH_PROTO_SUMS_IDLE_WAITS_H
#define HEARTH_PROTO_SUMS_IDLE_WAITS_H

#include <stdbool.h>

#include "proto/profiles.h"

/* A regular expression (base/text/pattern.h) for these names. */
const char *idle_waits_pattern(void);

/* Are samples of @type of waits, of which idle ones may be left out? Time that a thread waits for a CPU is none: it has work
 * then. */
bool idle_waits_are_in(struct str type);

#endif
