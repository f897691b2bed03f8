/* SPDX-License-Identifier: Apache-2.0 */
/* When a recording of processes ends: with the last of them, at once when none is left, never when none was named. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/loop.h"
#include "cmd/options/config.h"
#include "cmd/setup/targets.h"
#include "tests/unit/descriptors.h"

enum { PROCESSES = 3, MOST_MS = 10000 };

struct fixture {
	struct loop *loop;
	struct targets targets;
	struct config config;
	uint32_t pids[PROCESSES];
	int ended;
	int open_files;
};

static void on_end(void *arg)
{
	struct fixture *f = arg;

	f->ended++;
}

static void end_process(struct fixture *f, size_t i)
{
	if (!f->pids[i])
		return;
	kill((pid_t)f->pids[i], SIGKILL);
	assert_int_equal(waitpid((pid_t)f->pids[i], NULL, 0), (pid_t)f->pids[i]);
	f->pids[i] = 0;
}

static int setup(void **state)
{
	static struct fixture f;

	memset(&f, 0, sizeof(f));
	f.open_files = open_descriptors();
	assert_int_equal(loop_new(&f.loop), 0);
	for (size_t i = 0; i < PROCESSES; i++) {
		pid_t pid = fork();

		assert_true(pid >= 0);
		if (!pid) {
			for (;;)
				pause();
		}
		f.pids[i] = (uint32_t)pid;
	}
	*state = &f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	for (size_t i = 0; i < PROCESSES; i++)
		end_process(f, i);
	targets_fini(&f->targets);
	loop_free(f->loop);
	assert_int_equal(open_descriptors(), f->open_files);
	return 0;
}

static void watch(struct fixture *f, size_t pid_count, size_t tid_count, uint32_t *ids)
{
	f->config.pids.items = ids;
	f->config.pids.count = pid_count;
	f->config.tids.items = ids + pid_count;
	f->config.tids.count = tid_count;
	assert_int_equal(targets_watch(&f->targets, &f->config, f->loop, on_end, f), 0);
}

/* Steps until it is told, or for a little. */
static void step(struct fixture *f, bool is_awaited)
{
	uint64_t end_ns = clock_mono_ns() + (is_awaited ? MOST_MS : 20) * NSEC_PER_MSEC;

	while (!f->ended && clock_mono_ns() < end_ns)
		assert_int_equal(loop_step(f->loop, 10), 0);
	assert_int_equal(f->ended, is_awaited);
}

static void test_last(void **state)
{
	struct fixture *f = *state;
	uint32_t ids[PROCESSES];

	memcpy(ids, f->pids, sizeof(ids));
	watch(f, 2, 1, ids);
	assert_int_equal(f->targets.alive, 3);
	step(f, false);
	end_process(f, 1);
	step(f, false);
	end_process(f, 0);
	step(f, false);
	assert_int_equal(f->targets.alive, 1);
	end_process(f, 2);
	step(f, true);
	step(f, true); /* and once only */
}

static void test_none_left(void **state)
{
	struct fixture *f = *state;
	uint32_t ids[PROCESSES];

	memcpy(ids, f->pids, sizeof(ids));
	end_process(f, 0);
	end_process(f, 1);
	watch(f, 2, 0, ids);
	assert_int_equal(f->ended, 1);
}

static void test_some_left(void **state)
{
	struct fixture *f = *state;
	uint32_t ids[PROCESSES];

	memcpy(ids, f->pids, sizeof(ids));
	end_process(f, 0);
	watch(f, 2, 0, ids);
	assert_int_equal(f->ended, 0);
	assert_int_equal(f->targets.alive, 1);
	end_process(f, 1);
	step(f, true);
}

static void test_none_named(void **state)
{
	struct fixture *f = *state;

	watch(f, 0, 0, f->pids);
	step(f, false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_last, setup, teardown),
		cmocka_unit_test_setup_teardown(test_none_left, setup, teardown),
		cmocka_unit_test_setup_teardown(test_some_left, setup, teardown),
		cmocka_unit_test_setup_teardown(test_none_named, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
