/* SPDX-License-Identifier: Apache-2.0 */
/* CPUs that come and go: which are followed, which of them are sampled, and what becomes of one that cannot be opened. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/agent.h"
#include "agent/agent_state.h"
#include "agent/kernel/perf_event.h"
#include "base/cleanup.h"

/* --- what the agent asks of others --- */

static struct {
	uint32_t online[16];
	int count;		      /* of these, or -errno */
	int band_error, sample_error; /* on the CPU ... */
	uint32_t bad;
	char said[512]; /* "+b1 +s1 -s1 -b1 ": band and samples of a CPU opened and closed */
} host;

static void say(char sign, char what, uint32_t cpu)
{
	size_t len = strlen(host.said);

	snprintf(host.said + len, sizeof(host.said) - len, "%c%c%u ", sign, what, cpu);
}

static int told_online(uint32_t *cpus, size_t max)
{
	for (int i = 0; i < host.count; i++) {
		assert_true((size_t)i < max);
		cpus[i] = host.online[i];
	}
	return host.count;
}

static int open_band(uint32_t cpu)
{
	if (cpu == host.bad && host.band_error && host.band_error != -EEXIST)
		return host.band_error;
	say('+', 'b', cpu);
	return cpu == host.bad ? host.band_error : 0;
}

static int open_samples(uint32_t cpu)
{
	if (cpu == host.bad && host.sample_error)
		return host.sample_error;
	say('+', 's', cpu);
	return 0;
}

#define perf_event_cpus_online(cpus, max) told_online(cpus, max)
#define side_band_add_cpu(band, cpu)	  open_band(cpu)
#define side_band_remove_cpu(band, cpu)	  say('-', 'b', cpu)
#define sampler_add_cpu(sampler, cpu)	  open_samples(cpu)
#define sampler_remove_cpu(sampler, cpu)  say('-', 's', cpu)

#include "agent/cpus.c"

static struct agent agent;

static int setup(void **state)
{
	(void)state;
	memset(&host, 0, sizeof(host));
	memset(&agent, 0, sizeof(agent));
	host.bad = UINT32_MAX;
	agent.cpu_cap = 8;
	agent.cpus = calloc(agent.cpu_cap, sizeof(*agent.cpus));
	return !agent.cpus;
}

static int teardown(void **state)
{
	(void)state;
	free(agent.cpus);
	free(agent.chosen);
	return 0;
}

/* The CPUs @list are online from now on; following them ends with @error, and says what is done. */
static void follow(const char *list, int error, const char *said)
{
	host.count = 0;
	host.said[0] = '\0';
	for (; *list; list++)
		host.online[host.count++] = (uint32_t)(*list - '0');
	assert_int_equal(agent_follow_cpus(&agent), error);
	assert_string_equal(host.said, said);
}

static void choose(const uint32_t *cpus, size_t count)
{
	const struct agent_filter filter = { .cpus = cpus, .cpu_count = count };
	struct agent_error err = { .message = "" };

	host.count = 4;
	for (uint32_t i = 0; i < 4; i++)
		host.online[i] = i;
	assert_int_equal(agent_choose_cpus(&agent, &filter, &err), 0);
}

/* --- tests --- */

static void test_all_at_the_start(void **state)
{
	(void)state;
	follow("012", 0, "+b0 +s0 +b1 +s1 +b2 +s2 ");
	assert_int_equal(agent.cpu_cnt, 3);
	follow("012", 0, "");
}

static void test_one_comes_and_one_goes(void **state)
{
	(void)state;
	follow("01", 0, "+b0 +s0 +b1 +s1 ");
	follow("12", 0, "-s0 -b0 +b2 +s2 ");
	assert_int_equal(agent.cpu_cnt, 2);
	follow("0123", 0, "+b0 +s0 +b3 +s3 ");
	follow("3", 0, "-s0 -b0 -s2 -b2 -s1 -b1 ");
	assert_int_equal(agent.cpu_cnt, 1);
	assert_int_equal(agent.cpus[0], 3);
}

/* Of a CPU that was not chosen the side band is read, and no samples are taken. */
static void test_chosen(void **state)
{
	const uint32_t chosen[] = { 1, 3 };

	(void)state;
	choose(chosen, 2);
	assert_int_equal(agent.chosen_cnt, 2);
	follow("0123", 0, "+b0 +b1 +s1 +b2 +b3 +s3 ");
}

static void test_chosen_one_is_not_there(void **state)
{
	const uint32_t chosen[] = { 1, 4 };
	const struct agent_filter filter = { .cpus = chosen, .cpu_count = 2 };
	struct agent_error err = { .message = "" };

	(void)state;
	host.count = 2;
	host.online[0] = 0;
	host.online[1] = 1;
	assert_int_equal(agent_choose_cpus(&agent, &filter, &err), -ENODEV);
	assert_string_equal(err.message, "CPU 4 is not online");
}

/* Nothing is chosen: all are sampled. */
static void test_none_chosen(void **state)
{
	(void)state;
	choose(NULL, 0);
	assert_int_equal(agent.chosen_cnt, 0);
	follow("0", 0, "+b0 +s0 ");
}

static void test_nobody_tells(void **state)
{
	const struct agent_filter filter = { .cpu_count = 0 };
	struct agent_error err = { .message = "" };

	(void)state;
	host.count = -EIO;
	assert_int_equal(agent_follow_cpus(&agent), -EIO);
	assert_int_equal(agent_choose_cpus(&agent, &filter, &err), -EIO);
	host.count = 0;
	assert_int_equal(agent_follow_cpus(&agent), -ENODEV);
}

/* A CPU whose samples cannot be had is given up with what was opened of it, and tried again; the others are followed. */
static void test_samples_of_one_fail(void **state)
{
	(void)state;
	host.bad = 1;
	host.sample_error = -EMFILE;
	follow("012", -EMFILE, "+b0 +s0 +b1 -b1 +b2 +s2 ");
	assert_int_equal(agent.cpu_cnt, 2);
	host.sample_error = 0;
	follow("012", 0, "+b1 +s1 ");
	assert_int_equal(agent.cpu_cnt, 3);
}

static void test_the_band_of_one_fails(void **state)
{
	(void)state;
	host.bad = 1;
	host.band_error = -EMFILE;
	follow("01", -EMFILE, "+b0 +s0 -b1 ");
	assert_int_equal(agent.cpu_cnt, 1);
}

/* One that is open already is no error. */
static void test_open_already(void **state)
{
	(void)state;
	host.bad = 1;
	host.band_error = -EEXIST;
	follow("01", 0, "+b0 +s0 +b1 +s1 ");
	assert_int_equal(agent.cpu_cnt, 2);
}

static void test_samples_are_open_already(void **state)
{
	(void)state;
	host.bad = 1;
	host.sample_error = -EEXIST;
	follow("01", 0, "+b0 +s0 +b1 ");
	assert_int_equal(agent.cpu_cnt, 2);
}

/* No more than there is room for. */
static void test_no_room(void **state)
{
	(void)state;
	agent.cpu_cap = 2;
	follow("012", 0, "+b0 +s0 +b1 +s1 ");
	follow("02", 0, "-s1 -b1 +b2 +s2 ");
}

#define CPU_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CPU_TEST(test_all_at_the_start),
		CPU_TEST(test_one_comes_and_one_goes),
		CPU_TEST(test_chosen),
		CPU_TEST(test_chosen_one_is_not_there),
		CPU_TEST(test_none_chosen),
		CPU_TEST(test_nobody_tells),
		CPU_TEST(test_samples_of_one_fail),
		CPU_TEST(test_the_band_of_one_fails),
		CPU_TEST(test_open_already),
		CPU_TEST(test_samples_are_open_already),
		CPU_TEST(test_no_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
