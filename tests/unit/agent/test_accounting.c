/* SPDX-License-Identifier: Apache-2.0 */
/* Samples taken = delivered + lost + pending: sums over the kinds of a session, by a kernel half that is made up here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/agent_state.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/metrics.h"

/* --- the kernel's side --- */

static struct {
	uint64_t counters[COUNTER_MAX];
	struct kind_counts kinds[MAX_KINDS];
	uint64_t not_sampled;
} half;

void sampler_counters(const struct sampler *s, uint64_t counters[COUNTER_MAX])
{
	(void)s;
	memcpy(counters, half.counters, sizeof(half.counters));
}

void sampler_kind_counters(const struct sampler *s, uint32_t kind, struct kind_counts *ret)
{
	(void)s;
	*ret = half.kinds[kind];
}

uint64_t sampler_threads_refused(const struct sampler *s)
{
	(void)s;
	return 0;
}

uint64_t sampler_not_sampled(struct sampler *s)
{
	(void)s;
	return half.not_sampled;
}

uint32_t sampler_cpus(const struct sampler *s)
{
	(void)s;
	return 4;
}

const char *sampler_form(const struct sampler *s)
{
	(void)s;
	return "bpf_loop";
}

uint32_t sampler_rings(const struct sampler *s)
{
	(void)s;
	return 1;
}

uint64_t sampler_rings_bytes(const struct sampler *s)
{
	(void)s;
	return 1 << 20;
}

uint64_t sampler_map_bytes(const struct sampler *s)
{
	(void)s;
	return 123;
}

bool sampler_chain_failed(const struct sampler *s, uint32_t id)
{
	(void)s;
	return id == RUNTIME_PHP;
}

/* What the tables would tell it, who are not asked here. */
int sampler_forget_proc(struct sampler *s, uint32_t pid)
{
	(void)s, (void)pid;
	return 0;
}

int sampler_set_proc(struct sampler *s, struct proc_value *value)
{
	(void)s, (void)value;
	return 0;
}

int sampler_set_chain(struct sampler *s, struct chain_state *state)
{
	(void)s, (void)state;
	return 0;
}

int sampler_set_program(struct sampler *s, const struct program_key *key, const struct program_value *value)
{
	(void)s, (void)key, (void)value;
	return 0;
}

/* What the kinds would turn on, as in agent/sampler_state.h, which needs the programs. */
struct bpf_program;
struct bpf_program *sampler_entry(const struct sampler *s);
int sampler_open_event(struct sampler *s, const struct sampled_kind *k, uint32_t cpu);
void sampler_note_idle(struct sampler *s);

struct bpf_program *sampler_entry(const struct sampler *s)
{
	(void)s;
	return NULL;
}

int sampler_open_event(struct sampler *s, const struct sampled_kind *k, uint32_t cpu)
{
	(void)s, (void)k, (void)cpu;
	return -1;
}

void sampler_note_idle(struct sampler *s)
{
	(void)s;
}

/* --- the agent's --- */

static struct agent agent;

static int make(void **state)
{
	(void)state;
	memset(&half, 0, sizeof(half));
	agent = (struct agent){ .in.metrics = metrics_new() };
	agent.kinds.count = 2;
	agent.kinds.list[0] = (struct session_kind){ .kind = &kind_cpu, .event = "samples", .what.freq_hz = 20 };
	agent.kinds.list[1] = (struct session_kind){ .kind = &kind_off_cpu, .event = "off-cpu", .what.period = 50000000 };
	return !agent.in.metrics || processes_new(NULL, &agent.in.processes) || pending_new(1, &agent.in.pending);
}

static int destroy(void **state)
{
	(void)state;
	pending_free(agent.in.pending);
	processes_free(agent.in.processes);
	metrics_free(agent.in.metrics);
	return 0;
}

static void test_sums(void **state)
{
	AUTO(buf_fini) struct buf text = BUF_EMPTY;
	struct agent_stats stats;

	(void)state;
	agent_stats_read(&agent, &stats);
	assert_true(!stats.taken && !stats.delivered && !stats.lost && !stats.pending);
	agent_losses_print(&agent, &text);
	assert_int_equal(text.len, 0);
	half.kinds[0].taken.samples = 100;
	half.kinds[1].taken.samples = 50;
	half.kinds[0].lost[KERNEL_LOSS_RING].samples = 3;
	half.kinds[1].lost[KERNEL_LOSS_RING].samples = 3;
	half.kinds[1].lost[KERNEL_LOSS_LATE].samples = 1;
	agent.delivered[0].samples = 80;
	agent.delivered[1].samples = 30;
	agent.in.counts.lost[LOSS_MEMORY][0].samples = 2;
	agent.in.counts.lost[LOSS_MEMORY][1].samples = 5;
	agent.in.counts.lost[LOSS_SINK][1].samples = 6;
	agent.in.counts.ends[END_ROOT] = 70;
	agent.in.counts.ends[END_NO_RULE] = 2;
	agent.in.counts.ends[END_DEPTH] = 5;
	agent_stats_read(&agent, &stats);
	assert_int_equal(stats.taken, 150);
	assert_int_equal(stats.delivered, 110);
	assert_int_equal(stats.lost, 20);
	assert_int_equal(stats.pending, 20);
	assert_int_equal(stats.complete, 70);
	assert_int_equal(stats.truncated, 7);
	assert_string_equal(stats.chief, "depth");
	assert_int_equal(stats.chief_count, 5);
	agent_losses_print(&agent, &text);
	assert_string_equal(buf_text(&text), "ring full 6, thread went on 1, out of memory 7, refused by the sink 6");
}

/* A line for each kind; of waits the time, too, which adds up as the samples do. */
static void test_kinds(void **state)
{
	AUTO(buf_fini) struct buf text = BUF_EMPTY;

	(void)state;
	half.kinds[0].taken.samples = 12;
	half.kinds[1].taken = (struct sample_sum){ 9, 4500000000 };
	half.kinds[1].lost[KERNEL_LOSS_LIMIT] = (struct sample_sum){ 1, 250000000 };
	agent.in.counts.lost[LOSS_MEMORY][1] = (struct sample_sum){ 2, 1000000000 };
	agent.delivered[0].samples = 12;
	agent.delivered[1] = (struct sample_sum){ 6, 3250000000 };
	agent_kinds_print(&agent, &text);
	assert_string_equal(buf_text(&text),
			    "samples: 12 samples taken = 12 delivered + 0 lost\n"
			    "off_cpu: 9 samples taken = 6 delivered + 3 lost; 4.500 s = 3.250 s + 1.250 s\n");
	agent.kinds.list[1].kind = &kind_memory;
	buf_reset(&text);
	half.kinds[1].taken.value = 9 << 19;
	half.kinds[1].lost[KERNEL_LOSS_LIMIT].value = 1 << 19;
	agent.in.counts.lost[LOSS_MEMORY][1].value = 2 << 19;
	agent.in.counts.made[1] = (struct sample_sum){ 1, 1 << 19 };
	agent.delivered[1] = (struct sample_sum){ 7, 7 << 19 };
	agent_kinds_print(&agent, &text);
	assert_non_null(
		strstr(buf_text(&text), "memory: 10 samples taken = 7 delivered + 3 lost; 5120 KB = 3584 KB + 1536 KB\n"));
	agent.kinds.count = 1;
	buf_reset(&text);
	agent_kinds_print(&agent, &text);
	assert_int_equal(text.len, 0);
}

/* An estimate that never goes back. */
static void test_not_sampled(void **state)
{
	struct agent_stats stats;

	(void)state;
	half.not_sampled = 9;
	agent_stats_read(&agent, &stats);
	assert_int_equal(stats.not_sampled, 9);
	half.not_sampled = 7;
	agent_stats_read(&agent, &stats);
	assert_int_equal(stats.not_sampled, 9);
}

static void test_metrics(void **state)
{
	static const char *const lines[] = {
		"\nhearth_samples_taken_total 40\n",
		"\nhearth_samples_delivered_total 30\n",
		"\nhearth_samples_lost_total{reason=\"ring full\"} 1\n",
		"\nhearth_samples_lost_total{reason=\"malformed record\"} 8\n",
		"\nhearth_bpf_events_total{event=\"of these on an idle CPU\"} 6\n",
		"\nhearth_unknown_sections_total 0\n",
		"\nhearth_kind_samples_total{kind=\"off_cpu\",state=\"taken\"} 40\n",
		"\nhearth_kind_nanoseconds_total{kind=\"off_cpu\",state=\"taken\"} 77\n",
		"\nhearth_kernel_map_bytes 123\n",
		"\nhearth_script_frames_total{runtime=\"python\"} 12\n",
		"\nhearth_script_frames_unknown_total{runtime=\"python\"} 3\n",
		"\nhearth_script_segments_unplaced_total{runtime=\"perl\"} 4\n",
		"\nhearth_script_objects_malformed_total{runtime=\"php\"} 5\n",
		"\nhearth_script_chain_ends_total{runtime=\"perl\",end=\"torn\"} 6\n",
		"\nhearth_runtime_failures_total{runtime=\"python\"} 0\n",
		"\nhearth_runtime_failures_total{runtime=\"php\"} 1\n",
	};
	AUTO(buf_fini) struct buf text = BUF_EMPTY;

	(void)state;
	half.counters[COUNTER_IDLE] = 6;
	agent.in.counts.chains[RUNTIME_PYTHON] = (struct chain_counts){ .frames = 12, .unknown_objects = 3 };
	agent.in.counts.chains[RUNTIME_PERL] = (struct chain_counts){ .unplaced_segments = 4, .ends[CHAIN_END_TORN] = 6 };
	agent.in.counts.chains[RUNTIME_PHP].malformed_objects = 5;
	half.kinds[1].taken = (struct sample_sum){ 40, 77 };
	half.kinds[1].lost[KERNEL_LOSS_RING].samples = 1;
	agent.delivered[1].samples = 30;
	agent.in.counts.lost[LOSS_MALFORMED][0].samples = 8;
	assert_int_equal(agent_metrics(&agent), 0);
	metrics_write(agent.in.metrics, &text);
	for (size_t i = 0; i < ARRAY_LEN(lines); i++)
		if (!strstr(buf_text(&text), lines[i]))
			fail_msg("no line %s in %s", lines[i], buf_text(&text));
	agent_metrics_off(&agent);
}

static void test_description(void **state)
{
	AUTO(buf_fini) struct buf text = BUF_EMPTY;

	(void)state;
	agent_describe(&agent, &text);
	assert_non_null(strstr(buf_text(&text), ", 4 CPUs, 20 Hz, waits of 50 ms and longer, shorter ones by chance, 0 "
						"processes, walk by bpf_loop, 1 ring of "
						"1024 KB"));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_sums, make, destroy),
		cmocka_unit_test_setup_teardown(test_kinds, make, destroy),
		cmocka_unit_test_setup_teardown(test_not_sampled, make, destroy),
		cmocka_unit_test_setup_teardown(test_metrics, make, destroy),
		cmocka_unit_test_setup_teardown(test_description, make, destroy),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
