/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tells how much memory each part of the agent takes. Each part is asked at the end of an interval, on the agent's thread,
 * which alone may look at them. Code is not counted, nor are profiles on their way to the sinks, the store and the servers,
 * which tell for themselves.
 */
#include "agent/agent_state.h"
#include "base/memory.h"
#include "base/metrics.h"

void agent_tell_memory(struct agent *a)
{
	struct metrics *m = a->in.metrics;
	struct files_memory files;

	files_memory(a->in.files, &files);
	memory_tell(m, "processes", processes_memory_bytes(a->in.processes));
	memory_tell(m, "files", files.files_bytes);
	memory_tell(m, "unwind rows", files.rows_bytes);
	memory_tell(m, "samples to walk",
		    pending_memory_bytes(a->in.pending) + a->in.kept.records.cap + a->in.kept.side_band.cap);
	memory_tell(m, "stacks", traces_memory_bytes(a->in.traces) + traces_memory_bytes(a->held));
	memory_tell(m, "stacks of waits", wait_stacks_memory_bytes(a->in.waits) + wait_targets_memory_bytes(a->in.targets));
	memory_tell(m, "functions of scripts", objects_memory_bytes(a->in.objects));
	memory_tell(m, "rows of generated code", code_spaces_memory_bytes(a->in.code));
	memory_tell(m, "names", names_memory_bytes(a->names));
	memory_tell(m, "kernel symbols", kernel_names_memory_bytes(a->in.kernel_names));
	runtimes_tell_memory(a->in.runtimes, m);
	memory_tell(m, "profile builder", interval_memory_bytes(a->interval));
	memory_tell(m, "truth", truth_counts_memory_bytes(a->truths) + module_status_memory_bytes(a->modules));
	memory_tell(m, "metrics", metrics_memory_bytes(m));
	memory_tell_mapped(m, "rings", sampler_rings_bytes(a->in.sampler));
	memory_tell_mapped(m, "symbol indexes", files.mapped_indexes_bytes);
	memory_tell_mapped(m, "unwind rows", files.mapped_rows_bytes);
	memory_tell_mapped(m, "kernel symbols", kernel_names_mapped_bytes(a->in.kernel_names));
}
