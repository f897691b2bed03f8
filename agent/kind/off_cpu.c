/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Time of threads off their CPUs, in two kinds: blocked, until they are woken, and runnable, until they have a CPU; and, on
 * request, the first once more by who woke them. The same programs take all (bpf/offcpu.bpf.c), which the first kind turns
 * on; it stands directly before the second in a session, and that before the third. How often threads waited for locks is
 * told here by what the first is of (agent/samples/contentions.h), not by the kernel.
 */
#include <errno.h>

#include "agent/kind/kind.h"
#include "agent/kernel/sampler_waits.h"
#include "base/buf.h"
#include "base/clock.h"

static void describe_as(const char *type, struct builder_profile_spec *spec)
{
	spec->sample_type = type;
	spec->sample_unit = "nanoseconds";
	spec->period_type = spec->period_unit = ""; /* receivers take off_cpu only so */
	spec->period = 0;
}

static void describe_blocked(const struct session_kind *k, struct builder_profile_spec *spec)
{
	(void)k;
	describe_as("off_cpu", spec);
}

static void describe_runnable(const struct session_kind *k, struct builder_profile_spec *spec)
{
	(void)k;
	describe_as("runnable", spec);
}

static void describe_waker(const struct session_kind *k, struct builder_profile_spec *spec)
{
	(void)k;
	describe_as("waker", spec);
}

static void describe_contention(const struct session_kind *k, struct builder_profile_spec *spec)
{
	(void)k;
	describe_as("contentions", spec);
	spec->sample_unit = "count";
}

static void print(const struct session_kind *k, struct buf *out)
{
	buf_printf(out, "waits of %.3g ms and longer, shorter ones by chance",
		   (double)k->what.period / (double)NSEC_PER_MSEC);
}

/* Many threads wait at once, but for each of them alone the mean bounds how often it is sampled. */
static unsigned expected_hz(const struct sampled *what)
{
	enum { THREADS = 2 }; /* for each CPU; where there are more the rings grow */

	return (unsigned)(THREADS * NSEC_PER_SEC / what->period);
}

static unsigned expected_none(const struct sampled *what)
{
	(void)what;
	return 0;
}

static int load(struct sampler *s, const struct sampled_kind *k, struct agent_error *err)
{
	const struct wait_kinds kinds = {
		.blocked = (uint32_t)(k - s->kinds),
		.runnable = (uint32_t)(k - s->kinds) + 1,
		.waker = (uint32_t)(k - s->kinds) + 2,
		.has_wakers = k + 2 < s->kinds + s->kind_cnt && k[2].what->ops == &kind_waker.events,
	};

	(void)err;
	sampler_waits_load(s, k->what->period, &kinds);
	return 0;
}

static int add_cpu(struct sampler *s, struct sampled_kind *k, struct cpu_event *e)
{
	int fd = sampler_waits_add_cpu(s, e->cpu);

	(void)k;
	e->fd = fd;
	return fd < -1 ? fd : 0;
}

/* All CPUs are turned on at once. */
static void enable_cpu(struct sampler *s, struct sampled_kind *k, struct cpu_event *e, bool on)
{
	(void)s, (void)k;
	e->since_ns = on ? clock_mono_ns() : 0;
}

static int enable(struct sampler *s, struct sampled_kind *k, bool on)
{
	(void)k;
	return sampler_waits_enable(s, on);
}

static uint64_t not_sampled(struct sampler *s, struct sampled_kind *k)
{
	(void)k;
	return sampler_waits_missed(s);
}

static uint64_t none_missed(struct sampler *s, struct sampled_kind *k)
{
	(void)s, (void)k;
	return 0;
}

const struct kind kind_off_cpu = {
	.has = kind_has_no_event,
	.settle = kind_settle_nothing,
	.describe = describe_blocked,
	.print = print,
	.events = { .levels = 1,
		    .has_own_programs = true,
		    .expected_hz = expected_hz,
		    .load = load,
		    .add_cpu = add_cpu,
		    .enable_cpu = enable_cpu,
		    .enable = enable,
		    .not_sampled = not_sampled },
};

const struct kind kind_runnable = {
	.has = kind_has_no_event,
	.settle = kind_settle_nothing,
	.describe = describe_runnable,
	.print = NULL,
	.events = { .has_own_programs = true,
		    .expected_hz = expected_none,
		    .enable_cpu = enable_cpu,
		    .not_sampled = none_missed },
};

const struct kind kind_waker = {
	.has = kind_has_no_event,
	.settle = kind_settle_nothing,
	.describe = describe_waker,
	.print = NULL,
	.events = { .has_own_programs = true,
		    .expected_hz = expected_hz,
		    .enable_cpu = enable_cpu,
		    .not_sampled = none_missed },
};

const struct kind kind_contention = {
	.has = kind_has_no_event,
	.settle = kind_settle_nothing,
	.describe = describe_contention,
	.print = NULL,
	.events = { .has_own_programs = true,
		    .expected_hz = expected_none,
		    .enable_cpu = enable_cpu,
		    .not_sampled = none_missed },
};
