/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The heap of Go programs, as go tool pprof has it: objects and bytes that were allocated, objects and bytes in use. The
 * kernel has no part in it: agent/heap/ makes the samples when a report is due.
 */
#include "agent/kind/kind.h"
#include "agent/kernel/sampler_state.h"
#include "base/buf.h"
#include "base/clock.h"

enum { GO_RATE_BYTES = 512 << 10 /* runtime.MemProfileRate, where a program does not set it */ };

static void describe_as(const char *type, const char *unit, struct builder_profile_spec *spec)
{
	spec->sample_type = type;
	spec->sample_unit = unit;
	spec->period_type = "space"; /* as Go's own profiles have it */
	spec->period_unit = "bytes";
	spec->period = GO_RATE_BYTES;
}

static void describe_alloc_objects(const struct session_kind *k, struct builder_profile_spec *spec)
{
	(void)k;
	describe_as("alloc_objects", "count", spec);
}

static void describe_alloc_space(const struct session_kind *k, struct builder_profile_spec *spec)
{
	(void)k;
	describe_as("alloc_space", "bytes", spec);
}

static void describe_inuse_objects(const struct session_kind *k, struct builder_profile_spec *spec)
{
	(void)k;
	describe_as("inuse_objects", "count", spec);
}

static void describe_inuse_space(const struct session_kind *k, struct builder_profile_spec *spec)
{
	(void)k;
	describe_as("inuse_space", "bytes", spec);
}

static void print(const struct session_kind *k, struct buf *out)
{
	(void)k;
	buf_puts(out, "heaps of Go programs");
}

static unsigned expected_none(const struct sampled *what)
{
	(void)what;
	return 0;
}

static void enable_cpu(struct sampler *s, struct sampled_kind *k, struct cpu_event *e, bool on)
{
	(void)s, (void)k;
	e->since_ns = on ? clock_mono_ns() : 0;
}

static uint64_t none_missed(struct sampler *s, struct sampled_kind *k)
{
	(void)s, (void)k;
	return 0;
}

#define HEAP_KIND(name, description, printed)                                \
	const struct kind name = { .has = kind_has_no_event,                 \
				   .settle = kind_settle_nothing,            \
				   .describe = description,                  \
				   .print = printed,                         \
				   .events = { .has_own_programs = true,     \
					       .expected_hz = expected_none, \
					       .enable_cpu = enable_cpu,     \
					       .not_sampled = none_missed } }

HEAP_KIND(kind_alloc_objects, describe_alloc_objects, print);
HEAP_KIND(kind_alloc_space, describe_alloc_space, NULL);
HEAP_KIND(kind_inuse_objects, describe_inuse_objects, NULL);
HEAP_KIND(kind_inuse_space, describe_inuse_space, NULL);
