/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "agent/report/event_labels.h"
#include "agent/report/script_frames.h"
#include "agent/samples/walk_ends.h"
#include "proto/sums/truth.h"

#define GIL_KEY "cpython.gil" /* enum chain_lock; of the runtimes CPython alone tells it */

uint32_t event_labels_build(struct builder *b, const struct traces *t, const struct trace_event *e,
			    const struct probe_set *probes, enum walk_end end, int32_t *attributes)
{
	char outcome[SCRIPT_OUTCOME_BYTES];
	uint32_t count = 0;

	attributes[count++] = builder_attribute_string(b, "thread.name", str_z(e->comm));
	attributes[count++] = builder_attribute_int(b, "cpu.logical_number", e->cpu);
	if (!e->process->is_outside)
		attributes[count++] = builder_attribute_int(b, "thread.id", e->tid);
	if (e->script)
		attributes[count++] = builder_attribute_string(b, TRUTH_SCRIPT_KEY, script_outcome(e->script, outcome));
	if (e->lock)
		attributes[count++] = builder_attribute_string(b, GIL_KEY, script_lock(e->lock));
	count += wait_labels_build(b, t, e, &attributes[count]);
	count += probe_labels_build(b, e, traces_args(t), probes, &attributes[count]);
	if (walk_end_is_truncated(end))
		attributes[count++] = builder_attribute_string(b, TRUTH_TRUNCATED_KEY, str_z(walk_end_text(end)));
	return count;
}

int32_t event_labels_marker(struct builder *b, enum walk_end end, int32_t type)
{
	struct profile_line line = { 0 };
	char name[64];

	snprintf(name, sizeof(name), TRUTH_MARKER_NAME, walk_end_text(end));
	line.function_index = builder_function(b, builder_string_z(b, name), 0, 0, 0);
	return builder_location(b, 0, 0, &line, 1, &type, 1);
}
