/* SPDX-License-Identifier: Apache-2.0 */
/* The meaning of the ends of a user walk (bpf/event.h, WALK_ENDS). */
#ifndef HEARTH_AGENT_SAMPLES_WALK_ENDS_H
#define HEARTH_AGENT_SAMPLES_WALK_ENDS_H

#include <stdbool.h>

#include "bpf/event.h"

const char *walk_end_text(enum walk_end end);

/* There was a user stack to walk. */
bool walk_end_has_stack(enum walk_end end);

/* There was a user stack, and the walk did not reach its outermost frame. */
bool walk_end_is_truncated(enum walk_end end);

#endif
