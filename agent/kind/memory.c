/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory where it is first touched, in bytes (bpf/memory.bpf.c). The programs are attached once for all CPUs, and look in a
 * map whether the CPU is sampled.
 */
#include "agent/kind/kind.h"
#include "agent/kernel/sampler_memory.h"
#include "base/buf.h"

static void describe(const struct session_kind *k, struct builder_profile_spec *spec)
{
	spec->sample_type = "memory";
	spec->sample_unit = "bytes";
	spec->period_type = "memory";
	spec->period_unit = "bytes";
	spec->period = (int64_t)k->what.period;
}

static void print(const struct session_kind *k, struct buf *out)
{
	buf_printf(out, "memory, a sample each %.4g KB", (double)k->what.period / 1024);
}

static void configure(struct sampler *s, const struct sampled_kind *k)
{
	(void)k;
	sampler_memory_configure(s);
}

static int load(struct sampler *s, const struct sampled_kind *k, struct agent_error *err)
{
	(void)err;
	sampler_memory_load(s, k->what->period, (uint32_t)(k - s->kinds));
	return 0;
}

static int enable(struct sampler *s, struct sampled_kind *k, bool on)
{
	(void)k;
	return sampler_memory_enable(s, on);
}

static uint64_t not_sampled(struct sampler *s, struct sampled_kind *k)
{
	(void)k;
	return sampler_memory_missed(s);
}

const struct kind kind_memory = {
	.has = kind_has_no_event,
	.settle = kind_settle_nothing,
	.describe = describe,
	.print = print,
	.events = { .levels = 1,
		    .has_own_programs = true,
		    .configure = configure,
		    .load = load,
		    .enable_cpu = kind_enable_cpu,
		    .enable = enable,
		    .not_sampled = not_sampled },
};
