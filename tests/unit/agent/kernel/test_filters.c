/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of filters: patterns of names (against fnmatch(3)), names of events (against linux/perf_event.h),
 * containers. */
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/agent.h"
#include "agent/proc/cgroups.h"
#include "agent/kernel/comm_pattern.h"
#include "agent/kernel/perf_event.h"
#include "agent/kernel/tracepoints.h"
#include "base/cleanup.h"
#include "tests/unit/descriptors.h"

/* --- names --- */

static bool matches(const char *pattern, const char *comm)
{
	struct comm_automaton a;
	size_t which;

	assert_int_equal(comm_patterns_compile(&pattern, 1, &a, &which), 0);
	return comm_automaton_matches(&a, comm);
}

static void random_text(char *out, size_t max, const char *letters)
{
	size_t len = (size_t)rand() % (max + 1);

	for (size_t i = 0; i < len; i++)
		out[i] = letters[(size_t)rand() % strlen(letters)];
	out[len] = '\0';
}

static void test_patterns_as_fnmatch(void **state)
{
	(void)state;
	srand(1);
	for (int i = 0; i < 200000; i++) {
		char pattern[13], comm[13];

		random_text(pattern + 1, sizeof(pattern) - 2, "aabb*?[]!-^");
		pattern[0] = 'a'; /* not empty */
		random_text(comm, sizeof(comm) - 1, "aabb]-");
		if (matches(pattern, comm) != !fnmatch(pattern, comm, 0))
			fail_msg("'%s' and '%s'", pattern, comm);
	}
}

static void test_several_patterns(void **state)
{
	static const char *const patterns[] = { "ab", "*x", "c*", "d?" };
	struct comm_automaton a;
	size_t which;

	(void)state;
	assert_int_equal(comm_patterns_compile(patterns, ARRAY_LEN(patterns), &a, &which), 0);
	assert_true(comm_automaton_matches(&a, "ab"));
	assert_true(comm_automaton_matches(&a, "ax"));
	assert_true(comm_automaton_matches(&a, "c"));
	assert_true(comm_automaton_matches(&a, "d1"));
	assert_false(comm_automaton_matches(&a, "abx1")); /* one does not run into the next */
	assert_false(comm_automaton_matches(&a, "abc"));
	assert_false(comm_automaton_matches(&a, "a"));
	assert_false(comm_automaton_matches(&a, ""));
}

static void test_pattern_lengths(void **state)
{
	static const char *const empty[] = { "a", "" }, *const wide[] = { "*aaaaaaaaaaaaaaaa" };
	static const char *const many[] = { "aaaaaaaaaaaaaaa", "baaaaaaaaaaaaaa", "caaaaaaaaaaaaaa", "daaaaaaaaaaaaaa",
					    "e" };
	struct comm_automaton a;
	size_t which;

	(void)state;
	assert_true(matches("gnome-terminal-server", "gnome-terminal-")); /* as the kernel cuts it */
	assert_false(matches("gnome-terminal-server", "gnome-terminal"));
	assert_true(matches("\\*", "*"));
	assert_false(matches("\\*", "a"));
	assert_true(matches("[\x80-\xff]", "\xe4"));
	assert_int_equal(comm_patterns_compile(empty, 2, &a, &which), -EINVAL);
	assert_int_equal(which, 1);
	assert_int_equal(comm_patterns_compile(wide, 1, &a, &which), -EINVAL);
	assert_int_equal(comm_patterns_compile(many, 4, &a, &which), 0);
	assert_true(comm_automaton_matches(&a, "daaaaaaaaaaaaaa"));
	assert_int_equal(comm_patterns_compile(many, 5, &a, &which), -E2BIG);
}

/* --- events --- */

static void test_events(void **state)
{
	static const struct {
		const char *text;
		uint32_t type;
		uint64_t config;
		unsigned exclude_user, exclude_kernel, precise;
	} good[] = {
		{ "cpu-clock", PERF_TYPE_SOFTWARE, 0, 0, 0, 0 },
		{ "cs", PERF_TYPE_SOFTWARE, 3, 0, 0, 0 },
		{ "faults:u", PERF_TYPE_SOFTWARE, 2, 0, 1, 0 },
		{ "cycles:k", PERF_TYPE_HARDWARE, 0, 1, 0, 0 },
		{ "cycles:uk", PERF_TYPE_HARDWARE, 0, 0, 0, 0 },
		{ "instructions:ppu", PERF_TYPE_HARDWARE, 1, 0, 1, 2 },
		{ "L1-dcache-load-misses", PERF_TYPE_HW_CACHE, 0x10000, 0, 0, 0 },
		{ "LLC-stores", PERF_TYPE_HW_CACHE, 0x102, 0, 0, 0 },
		{ "iTLB-prefetch-misses", PERF_TYPE_HW_CACHE, 0x10204, 0, 0, 0 },
		{ "r1a8", PERF_TYPE_RAW, 0x1a8, 0, 0, 0 },
		{ "sched:sched_switch", PERF_TYPE_TRACEPOINT, 0, 0, 0, 0 },
	};
	static const char *const bad[] = { "",	     "cycle", "cycles:", "cycles:x", "r",	"rxyz",
					   "LLC-",   "LLC",   ":u",	 "cycels:u", "cycles,", "r12345678123456789",
					   "a:../b", "a:b:c", "a:",	 "sched:*",  "a b:c" };
	struct agent_error error;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		struct perf_event_attr attr = { 0 };

		assert_int_equal(perf_event_parse(good[i].text, &attr, &error), 0);
		assert_int_equal(attr.type, good[i].type);
		assert_int_equal(attr.config, good[i].config);
		assert_int_equal(attr.exclude_user, good[i].exclude_user);
		assert_int_equal(attr.exclude_kernel, good[i].exclude_kernel);
		assert_int_equal(attr.precise_ip, good[i].precise);
		assert_int_equal(perf_event_is_time(&attr), !strcmp(good[i].text, "cpu-clock"));
	}
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct perf_event_attr attr = { 0 };

		error.message[0] = '\0';
		assert_int_equal(perf_event_parse(bad[i], &attr, &error), -EINVAL);
		assert_true(error.message[0]);
	}
}

/* --- containers --- */

#define ID_A "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define ID_B "0123456789abffff0123456789abcdef0123456789abcdef0123456789abcdef"

static void test_container_names(void **state)
{
	static const struct {
		const char *name, *id;
		bool is_it;
	} names[] = {
		{ ID_A, ID_A, true },
		{ ID_A, "0123456789ab", true },
		{ ID_A, "123456789ab", false },
		{ "docker-" ID_A ".scope", ID_A, true },
		{ "docker-" ID_A ".scope", "0123", true },
		{ "docker-" ID_A ".scope", "docker", false },
		{ "cri-containerd-" ID_A ".scope", ID_A, true },
		{ "libpod-conmon-" ID_A ".scope", ID_A, false },
		{ "crio-conmon-" ID_A ".scope", ID_A, false },
		{ "machine-web.scope", "web", true },
		{ "machine-web.scope", "we", false },
		{ "systemd-nspawn@my\\x2dweb.service", "my-web", true },
		{ "libpod-payload-" ID_A, "0123", true },
		{ "web", "web", true },
		{ "system.slice", "system", false },
		{ "0123456789abcdef0123456789abcdef-1234567890", "01234567", true }, /* ECS */
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		char found[CONTAINER_ID_BYTES];

		if (cgroup_name_is_container("", names[i].name, names[i].id, found) != names[i].is_it)
			fail_msg("'%s' and '%s'", names[i].name, names[i].id);
	}
}

static void make(const char *root, const char *name)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/%s", root, name);
	assert_int_equal(mkdir(path, 0755), 0);
}

static int find(const char *root, const char *id)
{
	struct agent_error error = { "" };
	int fd = cgroup_open_container_below(root, id, &error);

	assert_true(fd >= 0 || error.message[0]);
	if (fd >= 0)
		close(fd);
	return fd < 0 ? fd : 0;
}

static void test_container_tree(void **state)
{
	char root[] = "/tmp/hearth-cgroups-XXXXXX", command[128];

	(void)state;
	assert_non_null(mkdtemp(root));
	make(root, "a");
	make(root, "a/kubepods");
	make(root, "a/kubepods/cri-" ID_A ".scope");
	make(root, "a/kubepods/cri-" ID_A ".scope/" ID_A);
	make(root, "docker-conmon-" ID_A ".scope");
	assert_int_equal(find(root, "0123456789ab"), 0);
	assert_int_equal(find(root, "fff"), -ENOENT);
	make(root, "a/" ID_B);
	assert_int_equal(find(root, "0123456789ab"), -EEXIST);
	assert_int_equal(find(root, "0123456789abf"), 0);
	assert_int_equal(find("/nowhere", "a"), -ENOENT);
	snprintf(command, sizeof(command), "rm -r %s", root);
	assert_int_equal(system(command), 0);
}

/* --- tracepoints --- */

static void test_tracepoints(void **state)
{
	static const struct {
		const char *name;
		int result;
		const char *says;
	} cases[] = {
		{ "sched:sched_switch", 0, "" },
		{ "sched:sched_swich", -ENOENT, "did you mean sched:sched_switch?" },
		{ "sched:nothing_like_it", -ENOENT, "in this kernel; " },
		{ "irq:sched_switch", -ENOENT, "did you mean sched:sched_switch?" },
		{ "shed:waking", -ENOENT, "there is a system sched" },
		{ "sched:broken", -EIO, "does not tell the number" },
	};
	char root[] = "/tmp/hearth-tracefs-XXXXXX", command[256], suggestion[64] = "";
	struct agent_error error;
	uint64_t id;
	int fd;

	(void)state;
	assert_non_null(mkdtemp(root));
	snprintf(command, sizeof(command),
		 "cd %s && mkdir -p sched/sched_switch sched/broken && echo 314 >sched/sched_switch/id && >sched/broken/id",
		 root);
	assert_int_equal(system(command), 0);
	fd = open(root, O_RDONLY | O_DIRECTORY);
	assert_true(fd >= 0);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		error.message[0] = '\0';
		assert_int_equal(tracepoint_find_in(fd, cases[i].name, &id, &error), cases[i].result);
		assert_non_null(strstr(error.message, cases[i].says));
		if (!cases[i].result)
			assert_int_equal(id, 314);
	}
	tracepoint_suggest_in(fd, "sched_switch", suggestion, sizeof(suggestion));
	assert_string_equal(suggestion, " (did you mean sched:sched_switch?)");
	suggestion[0] = '\0';
	tracepoint_suggest_in(fd, "../sched", suggestion, sizeof(suggestion));
	assert_string_equal(suggestion, "");
	close(fd);
	snprintf(command, sizeof(command), "rm -r %s", root);
	assert_int_equal(system(command), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_patterns_as_fnmatch), cmocka_unit_test(test_several_patterns),
		cmocka_unit_test(test_pattern_lengths),	    cmocka_unit_test(test_events),
		cmocka_unit_test(test_container_names),	    cmocka_unit_test(test_container_tree),
		cmocka_unit_test(test_tracepoints),
	};

	return run_group_of_descriptors(tests, NULL, NULL);
}
