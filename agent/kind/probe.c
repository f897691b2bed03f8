/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls of functions, in programs and in the kernel. All probes of a session are of one kind; samples say which of them they
 * are of. Their programs are attached once for all CPUs, and look in a map whether the CPU is sampled, as a tracepoint's do.
 */
#include "agent/kind/kind.h"
#include "agent/kernel/sampler_probes.h"
#include "agent/probe/probe.h"
#include "base/buf.h"
#include "base/clock.h"

/* Each passing is a sample, as with perf. */
static void settle(struct sampled *what)
{
	if (!what->period)
		what->period = 1;
}

static void describe(const struct session_kind *k, struct builder_profile_spec *spec)
{
	spec->sample_type = spec->period_type = "events";
	spec->sample_unit = spec->period_unit = "count";
	spec->period = (int64_t)k->what.period;
}

static void print(const struct session_kind *k, struct buf *out)
{
	buf_printf(out, "%u probe%s, ", k->what.probes->count, k->what.probes->count == 1 ? "" : "s");
	kind_print_event(k, out);
}

static void configure(struct sampler *s, const struct sampled_kind *k)
{
	sampler_probes_configure(s, k->what);
}

static int load(struct sampler *s, const struct sampled_kind *k, struct agent_error *err)
{
	return sampler_probes_load(s, k->what, (uint32_t)(k - s->kinds), err);
}

static int enable(struct sampler *s, struct sampled_kind *k, bool on)
{
	(void)k;
	return sampler_probes_enable(s, on);
}

static uint64_t not_sampled(struct sampler *s, struct sampled_kind *k)
{
	(void)k;
	return sampler_probes_missed(s);
}

const struct kind kind_probe = {
	.has = kind_has_no_event,
	.settle = settle,
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
