/* SPDX-License-Identifier: Apache-2.0 */
/* Refuses profiles while the process takes too much memory: the processor memory_limiter. Looks again each check interval.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/metrics.h"
#include "base/usage.h"
#include "sinks/stage/stage_sink.h"

struct limit_stage {
	struct stage stage;
	uint64_t interval_ns, soft_bytes;
	uint64_t checked_ns;
	bool is_over;
	struct metric *refused;
	struct log_limit log;
};

/* Where control groups bound the memory of a container, a limit in bytes is the one to give. */
static uint64_t machine_bytes(void)
{
	long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);

	return pages > 0 && size > 0 ? (uint64_t)pages * (uint64_t)size : UINT64_MAX;
}

static void look(struct limit_stage *s)
{
	uint64_t now_ns = clock_mono_ns();

	if (s->checked_ns && now_ns - s->checked_ns < s->interval_ns)
		return;
	s->checked_ns = now_ns;
	s->is_over = usage_of_process().resident_bytes >= s->soft_bytes;
	if (!s->is_over)
		return;
	memory_give_back();
	s->is_over = usage_of_process().resident_bytes >= s->soft_bytes;
}

static int limit_consume(struct sink *sink, struct profiles *p, struct ack *ack)
{
	struct limit_stage *s = (struct limit_stage *)sink;

	look(s);
	if (!s->is_over)
		return sink_consume(s->stage.next, p, ack);
	metric_add(s->refused, p->sample_events);
	log_limited(&s->log, 10 * NSEC_PER_SEC, LOG_WARN,
		    "memory_limiter: %" PRIu64 " samples are refused: hearth takes %" PRIu64 " MiB, %" PRIu64 " are allowed",
		    p->sample_events, usage_of_process().resident_bytes >> 20, s->soft_bytes >> 20);
	return -EAGAIN;
}

static void limit_free(struct sink *sink)
{
	struct limit_stage *s = (struct limit_stage *)sink;

	sink_free(s->stage.next);
	free(s);
}

static uint64_t part_of(uint64_t all, uint64_t percent)
{
	return all / 100 * percent;
}

int stage_limit_new(const struct stage_limit *limit, struct sink *next, struct metrics *metrics, struct sink **ret)
{
	struct limit_stage *s = calloc(1, sizeof(*s));
	uint64_t machine = machine_bytes();

	if (!s) {
		sink_free(next);
		return -ENOMEM;
	}
	stage_init(&s->stage, next, limit_consume, limit_free);
	s->interval_ns = limit->check_interval_ns;
	s->soft_bytes = limit->limit_bytes ? limit->limit_bytes - limit->spike_bytes
					   : part_of(machine, limit->limit_percent) - part_of(machine, limit->spike_percent);
	s->refused = metrics_counter(metrics, "hearth_memory_limiter_refused_samples_total", NULL,
				     "Samples that a memory_limiter refused as the process took too much memory.");
	*ret = &s->stage.sink;
	return 0;
}
