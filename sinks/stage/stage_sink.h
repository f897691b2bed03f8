/* SPDX-License-Identifier: Apache-2.0 */
/* Inside sinks/stage: the sink that all stages begin with. */
#ifndef HEARTH_SINKS_STAGE_STAGE_SINK_H
#define HEARTH_SINKS_STAGE_STAGE_SINK_H

#include "sinks/stage/stage.h"

struct stage {
	struct sink sink;
	struct sink_ops ops; /* name and durability are the next sink's */
	struct sink *next;   /* owned */
};

/* Makes @s a stage in front of @next, whose consume() is @consume and whose free() is @free; the rest goes on to @next. */
void stage_init(struct stage *s, struct sink *next, int (*consume)(struct sink *sink, struct profiles *p, struct ack *ack),
		void (*free)(struct sink *sink));

/* The counter of samples that no memory was there to change. */
struct metric *stage_unchanged(struct metrics *metrics);

/* pattern_matches(), in any thread. */
bool stage_pattern_matches(struct pattern *pattern, struct str text);

/* Ends what was given to the stage and does not go on: it is done. 0. */
int stage_settle(const struct stage *s, struct ack *ack);

#endif
