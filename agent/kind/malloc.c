/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allocations of the processes of --pid, in bytes, at the functions of their own allocator (bpf/allocs.bpf.c). Each call
 * costs the process a trap, so nobody gets this who does not ask for it.
 */
#include "agent/kind/kind.h"
#include "agent/kernel/sampler_allocs.h"
#include "base/buf.h"

static void describe(const struct session_kind *k, struct builder_profile_spec *spec)
{
	spec->sample_type = "malloc";
	spec->sample_unit = "bytes";
	spec->period_type = "space";
	spec->period_unit = "bytes";
	spec->period = (int64_t)k->what.period;
}

static void print(const struct session_kind *k, struct buf *out)
{
	buf_printf(out, "malloc, a sample each %.4g KB", (double)k->what.period / 1024);
}

static void configure(struct sampler *s, const struct sampled_kind *k)
{
	(void)k;
	sampler_allocs_configure(s);
}

static int load(struct sampler *s, const struct sampled_kind *k, struct agent_error *err)
{
	return sampler_allocs_load(s, k->what, (uint32_t)(k - s->kinds), err);
}

static int enable(struct sampler *s, struct sampled_kind *k, bool on)
{
	(void)k;
	return sampler_allocs_enable(s, on);
}

static uint64_t not_sampled(struct sampler *s, struct sampled_kind *k)
{
	(void)k;
	return sampler_allocs_missed(s);
}

const struct kind kind_malloc = {
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
