/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An agent's parts, for want of memory: whatever part fails, those before it leave nothing behind, and the message names the
 * one that failed. The kernel's side is made up here, so that this needs no privileges.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/agent_state.h"
#include "agent/code/code_state.h"
#include "agent/kernel/sampler.h"
#include "agent/kernel/side_band.h"
#include "base/cleanup.h"
#include "base/loop.h"
#include "base/metrics.h"
#include "tests/unit/failing_memory.h"

enum { OF_THE_SCAN = 4 };

/* --- the kernel's side --- */

struct sampler {
	int fd;
};

struct side_band {
	int fd;
};

/* A thing of the kernel's that is a descriptor; it fails as the thing does when there is no memory. */
static int make(struct sampler **ret)
{
	struct sampler *s = malloc(sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->fd = eventfd(0, EFD_CLOEXEC);
	*ret = s;
	return 0;
}

int sampler_new(const struct agent_config *config, const struct sampled *const *kinds, uint32_t count, uint32_t pid_ns,
		struct sampler **ret, struct agent_error *err)
{
	(void)config, (void)kinds, (void)count, (void)pid_ns, (void)err;
	return make(ret);
}

void sampler_raise_limits(void)
{
}

void sampler_free(struct sampler *s)
{
	if (s)
		close(s->fd);
	free(s);
}

int sampler_fd(const struct sampler *s)
{
	return s->fd;
}

int side_band_new(struct metrics *metrics, bool has_pids, struct side_band **ret)
{
	(void)metrics, (void)has_pids;
	return make((struct sampler **)ret);
}

void side_band_wake_at_once(struct side_band *s)
{
	(void)s;
}

void side_band_free(struct side_band *s)
{
	sampler_free((struct sampler *)s);
}

int side_band_fd(const struct side_band *s)
{
	return s->fd;
}

int side_band_add_cpu(struct side_band *s, uint32_t cpu)
{
	(void)s, (void)cpu;
	return 0;
}

void side_band_remove_cpu(struct side_band *s, uint32_t cpu)
{
	(void)s, (void)cpu;
}

void side_band_drain(struct side_band *s, void (*fn)(void *arg, struct side_band_record *record), void *arg)
{
	(void)s, (void)fn, (void)arg;
}

int sampler_add_cpu(struct sampler *s, uint32_t cpu)
{
	(void)s, (void)cpu;
	return 0;
}

void sampler_remove_cpu(struct sampler *s, uint32_t cpu)
{
	(void)s, (void)cpu;
}

int sampler_enable(struct sampler *s, bool on)
{
	(void)s, (void)on;
	return 0;
}

int sampler_drain(struct sampler *s, void (*fn)(void *arg, const struct record *record), void *arg)
{
	(void)s, (void)fn, (void)arg;
	return 0;
}

uint64_t sampler_malformed(const struct sampler *s)
{
	(void)s;
	return 0;
}

void sampler_counters(const struct sampler *s, uint64_t counters[COUNTER_MAX])
{
	(void)s;
	memset(counters, 0, COUNTER_MAX * sizeof(*counters));
}

uint64_t sampler_threads_refused(const struct sampler *s)
{
	(void)s;
	return 0;
}

void sampler_kind_counters(const struct sampler *s, uint32_t kind, struct kind_counts *ret)
{
	(void)s, (void)kind;
	*ret = (struct kind_counts){ 0 };
}

uint64_t sampler_not_sampled(struct sampler *s)
{
	(void)s;
	return 0;
}

int sampler_set_proc(struct sampler *s, struct proc_value *value)
{
	(void)s, (void)value;
	return 0;
}

int sampler_forget_proc(struct sampler *s, uint32_t pid)
{
	(void)s, (void)pid;
	return 0;
}

int sampler_set_program(struct sampler *s, const struct program_key *key, const struct program_value *value)
{
	(void)s, (void)key, (void)value;
	return 0;
}

int sampler_set_chain(struct sampler *s, struct chain_state *state)
{
	(void)s, (void)state;
	return 0;
}

bool sampler_chain_failed(const struct sampler *s, uint32_t id)
{
	(void)s, (void)id;
	return false;
}

int sampler_set_mapping(struct sampler *s, struct mapping_value *value)
{
	(void)s, (void)value;
	return 0;
}

void sampler_forget_block(struct sampler *s, uint32_t file, uint32_t block)
{
	(void)s, (void)file, (void)block;
}

int sampler_set_capture(struct sampler *s, uint32_t number, const struct capture_class *what)
{
	(void)s, (void)number, (void)what;
	return 0;
}

int sampler_set_block(struct sampler *s, struct unwind_block *block)
{
	(void)s, (void)block;
	return 0;
}

int sampler_filter_add(struct sampler *s, uint32_t pid)
{
	(void)s, (void)pid;
	return 0;
}

bool sampler_filter_has(const struct sampler *s, uint32_t pid)
{
	(void)s, (void)pid;
	return false;
}

void sampler_filter_remove(struct sampler *s, uint32_t pid)
{
	(void)s, (void)pid;
}

uint64_t sampler_map_bytes(const struct sampler *s)
{
	(void)s;
	return 0;
}

const char *sampler_form(const struct sampler *s)
{
	(void)s;
	return "";
}

uint32_t sampler_rings(const struct sampler *s)
{
	(void)s;
	return 1;
}

void sampler_rings_settle(struct sampler *s)
{
	(void)s;
}

uint64_t sampler_rings_bytes(const struct sampler *s)
{
	(void)s;
	return 4096;
}

uint32_t sampler_cpus(const struct sampler *s)
{
	(void)s;
	return 1;
}

/* What the kinds would turn on, as in agent/kernel/sampler_state.h, which needs the programs. */
struct bpf_program;
struct sampled_kind;
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
	return -ENODEV;
}

void sampler_note_idle(struct sampler *s)
{
	(void)s;
}

/* --- an agent --- */

static char messages[1 << 16]; /* what failing agents said, a line each */
static char folder[] = "/tmp/hearth-parts-XXXXXX";

/* Code of this process, as a runtime's would be, and what it saw of @agent when it went. */
static struct code {
	struct as_code as_code; /* first */
	const struct agent *agent;
	bool has_gone, is_detached;
} code;

static void code_free(struct as_code *as_code)
{
	struct code *c = (struct code *)as_code;
	const struct code_spaces *all = c->agent->in.code;

	c->has_gone = true;
	c->is_detached = all->is_over && !all->sampler && !all->service->on_wait.run;
}

static void add_code(const struct agent *agent)
{
	struct process *p = processes_find(agent->in.processes, (uint32_t)getpid());

	assert_non_null(p);
	assert_non_null(agent->in.code->sampler);
	assert_non_null(agent->in.code->service->on_wait.run);
	code = (struct code){ .as_code = { .refs = 1, .free = code_free }, .agent = agent };
	assert_int_equal(address_space_set_code(&p->as, &code.as_code), 1);
}

static void (*on_agent)(const struct agent *agent);

static int make_agent(struct buf *out)
{
	struct agent_config config = { .freq_hz = 20,
				       .report_interval_ns = 1000000000,
				       .no_version_check = true,
				       .unsafe_kernel = true,
				       .symbols = SYMBOLS_OFF,
				       .symbol_cache = folder,
				       .no_helper = true };
	struct metrics *metrics = metrics_new();
	struct agent_error error = { "" };
	struct agent *agent = NULL;
	struct loop *loop = NULL;
	const char *option;
	int err = metrics ? loop_new(&loop) : -ENOMEM;

	(void)out;
	err = err ? err : agent_config_settle(&config, &option, &error);
	if (!err) {
		err = agent_new(&config, loop, metrics, NULL, &agent, &error);
		if (err)
			snprintf(messages + strlen(messages), sizeof(messages) - strlen(messages), "%s\n", error.message);
		else if (on_agent)
			on_agent(agent);
	}
	agent_free(agent);
	agent_config_fini(&config);
	loop_free(loop);
	metrics_free(metrics);
	return err;
}

/* Each of the allocations fails up to the events of CPUs; of the look at /proc, which takes long, and what follows, a few.
 */
static void test_parts(void **state)
{
	static const char *const names[] = { "readers of programs' files",
					     "runtimes",
					     "facts about processes",
					     "processes",
					     "the order of samples",
					     "stacks",
					     "names",
					     "reports",
					     "the sampler",
					     "late walk",
					     "side band",
					     "perf events" };
	static const struct memory_scenario scenario = { "an agent", make_agent, false };
	const struct buf nothing = BUF_EMPTY;
	unsigned live, files, count, told = 0;
	struct buf out = BUF_EMPTY;

	(void)state;
	assert_int_equal(memory_run(&scenario, 0, &out), 0); /* what is made once for good is there now */
	live = memory.live;
	files = open_descriptors();
	assert_int_equal(memory_run(&scenario, 0, &out), 0);
	count = memory.count;
	assert_int_equal(memory.live, live);
	assert_int_equal(open_descriptors(), files);
	for (unsigned at = 1, step = 1; at <= count; at += step) {
		told += memory_fails_at(&scenario, at, &nothing, live, files);
		if (step == 1 && strstr(messages, "perf events: "))
			step = 1 + (count - at) / OF_THE_SCAN;
	}
	assert_true(told > ARRAY_LEN(names));
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (!strstr(messages, names[i]))
			fail_msg("no agent failed for %s: %s", names[i], messages);
}

/* Processes go behind the sampler: their code must not be told to it then, nor wait for the helper with the agent's hook. */
static void test_code_goes_last(void **state)
{
	struct buf out = BUF_EMPTY;

	(void)state;
	on_agent = add_code;
	assert_int_equal(make_agent(&out), 0);
	on_agent = NULL;
	assert_true(code.has_gone);
	assert_true(code.is_detached);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_parts), cmocka_unit_test(test_code_goes_last) };
	int failed;

	if (!mkdtemp(folder))
		return 1;
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	rmdir(folder);
	return failed;
}
