/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stacks that a program took itself, as Go does: a call that was inlined has an address of its own behind that of the code
 * it is in. Our names tell all calls that are inlined at an address, so these further ones are not shown. No state.
 */
#ifndef HEARTH_AGENT_REPORT_LOGICAL_FRAMES_H
#define HEARTH_AGENT_REPORT_LOGICAL_FRAMES_H

#include <stdint.h>

#include "agent/names/names.h"
#include "agent/samples/traces.h"

/* Puts those of the @count frames @ids, innermost first, that are to be shown into @kept, which has room for all. The frames
 * of Go's runtime that are the innermost, its allocator, are not, as in Go's own profiles. Returns their number. */
uint32_t logical_frames(const struct names *names, const struct traces *t, const uint32_t *ids, uint32_t count,
			uint32_t *kept);

#endif
