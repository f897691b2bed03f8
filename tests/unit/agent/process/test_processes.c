/* SPDX-License-Identifier: Apache-2.0 */
/* The table of processes: how long it keeps those that have ended. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/process/process_objects.h"
#include "agent/process/processes.h"
#include "base/clock.h"
#include "tests/unit/descriptors.h"

enum { MANY = 3000, FIRST_PID = 1 << 23 /* above any real one */, ROUNDS = 20 };

static void tell(struct processes *ps, enum side_band_kind kind, uint32_t pid)
{
	struct side_band_record *r = calloc(1, sizeof(*r) + 1);
	struct process *changed;

	assert_non_null(r);
	r->kind = kind;
	r->pid = r->tid = pid;
	r->parent_pid = (uint32_t)getpid();
	r->is_exec = kind == SIDE_BAND_COMM;
	assert_int_equal(processes_apply(ps, r, &changed), 0);
	free(r);
}

static void count_gone(void *arg, struct process *p)
{
	assert_true(p->pid >= FIRST_PID);
	++*(uint32_t *)arg;
}

static struct processes *new_table(void)
{
	struct processes *ps;

	assert_int_equal(processes_new(NULL, &ps), 0);
	/* Our own, which forks all others, and which is there all the time. */
	tell(ps, SIDE_BAND_COMM, (uint32_t)getpid());
	return ps;
}

/* A storm of short processes is forgotten in one round, whatever their number. */
static void test_storm(void **state)
{
	struct processes *ps = new_table();
	uint32_t gone = 0, before;

	(void)state;
	for (uint32_t i = 0; i < MANY; i++)
		tell(ps, SIDE_BAND_FORK, FIRST_PID + i);
	before = processes_count(ps);
	for (uint32_t i = 0; i < MANY; i++)
		tell(ps, SIDE_BAND_EXIT, FIRST_PID + i);
	processes_expire(ps, count_gone, &gone);
	assert_int_equal(gone, MANY);
	assert_int_equal(processes_count(ps), before - MANY);
	processes_free(ps);
}

/* Whose exit was not heard of goes too, a while later. */
static void test_unheard(void **state)
{
	struct processes *ps = new_table();
	uint32_t gone = 0, before;

	(void)state;
	tell(ps, SIDE_BAND_FORK, FIRST_PID);
	before = processes_count(ps);
	processes_expire(ps, count_gone, &gone);
	assert_int_equal(gone, 0);
	for (int i = 0; i < ROUNDS; i++)
		processes_expire(ps, count_gone, &gone);
	assert_int_equal(gone, 1);
	assert_int_equal(processes_count(ps), before - 1);
	processes_free(ps);
}

/* What many hold in common counts once. */
static void test_memory(void **state)
{
	struct processes *ps = new_table();
	size_t before = processes_memory_bytes(ps), after;

	(void)state;
	for (uint32_t i = 0; i < MANY; i++)
		tell(ps, SIDE_BAND_FORK, FIRST_PID + i);
	after = processes_memory_bytes(ps);
	assert_true(after > before + MANY * sizeof(struct process));
	assert_true(after < before + MANY * (sizeof(struct process) + 256));
	processes_free(ps);
}

/* Who comes into our pid namespace from outside has a parent without a number: nothing is shared with a process 0. */
static void test_from_outside(void **state)
{
	struct processes *ps = new_table();
	struct side_band_record fork = { .kind = SIDE_BAND_FORK, .pid = FIRST_PID, .tid = FIRST_PID };
	struct process *changed;

	(void)state;
	assert_int_equal(processes_apply(ps, &fork, &changed), 0);
	assert_null(processes_peek(ps, 0));
	assert_non_null(processes_peek(ps, FIRST_PID));
	assert_ptr_equal(processes_outside(ps), processes_outside(ps));
	assert_null(processes_peek(ps, 0));
	assert_true(processes_outside(ps)->is_outside);
	processes_free(ps);
}

/* Functions of scripts by their addresses: each is held until another takes its place, there are too many, or the process is
 * gone. */
static void test_objects(void **state)
{
	enum { MOST = 1 << 16, FEW = 3, CHECK = 0x51234567 };
	struct processes *ps = new_table();
	struct process *p = processes_peek(ps, (uint32_t)getpid());
	struct object *objects[FEW];
	struct objects *all;

	(void)state;
	assert_int_equal(objects_new(&all), 0);
	for (uint32_t i = 0; i < FEW; i++)
		assert_int_equal(objects_add(all, 0, &i, sizeof(i), &objects[i]), 0);
	assert_null(process_object(p, 0x1000, CHECK));
	assert_int_equal(process_set_object(p, 0x1000, CHECK, objects[0]), 0);
	assert_int_equal(process_set_object(p, 0x2000, CHECK, objects[0]), 0);
	assert_int_equal(process_set_object(p, 0x1000, CHECK, objects[0]), 0); /* the same again */
	assert_int_equal(objects[0]->refs, 3);
	assert_int_equal(process_set_object(p, 0x1000, CHECK, objects[1]), 0);
	assert_true(objects[0]->refs == 2 && objects[1]->refs == 2);
	assert_ptr_equal(process_object(p, 0x1000, CHECK), objects[1]);
	assert_ptr_equal(process_object(p, 0x2000, CHECK), objects[0]);
	assert_null(process_object(p, 0x3000, CHECK));
	assert_null(process_object(p, 0x1000, CHECK + 1)); /* another one, there before or since */
	for (uint64_t i = 2; i < MOST; i++)
		assert_int_equal(process_set_object(p, 0x3000 + i, CHECK, objects[2]), 0);
	assert_int_equal(objects[2]->refs, 1 + MOST - 2);
	assert_int_equal(process_set_object(p, 0x2000, CHECK, objects[1]), 0); /* the place of one that is there */
	assert_ptr_equal(process_object(p, 0x1000, CHECK), objects[1]);
	assert_int_equal(process_set_object(p, 1, CHECK, objects[0]), 0);
	assert_true(objects[0]->refs == 2 && objects[1]->refs == 1 && objects[2]->refs == 1);
	assert_null(process_object(p, 0x1000, CHECK));
	assert_ptr_equal(process_object(p, 1, CHECK), objects[0]);
	processes_free(ps);
	for (uint32_t i = 0; i < FEW; i++) {
		assert_int_equal(objects[i]->refs, 1);
		object_put(objects[i]);
	}
	assert_int_equal(objects_count(all), 0);
	objects_free(all);
}

/* Reading mappings again and again is paid off first. */
static void test_allowance(void **state)
{
	struct allowance a = { 0 };
	uint64_t now = 100 * NSEC_PER_SEC, spent = 0;

	(void)state;
	for (int i = 0; i < 10000; i++, now += NSEC_PER_MSEC) {
		if (!allowance_is_left(&a, now))
			continue;
		allowance_spend(&a, now, now + 10 * NSEC_PER_MSEC);
		now += 10 * NSEC_PER_MSEC;
		spent += 10 * NSEC_PER_MSEC;
	}
	assert_in_range(spent, (now - 100 * NSEC_PER_SEC) / 25, (now - 100 * NSEC_PER_SEC) / 15);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_storm),	     cmocka_unit_test(test_unheard), cmocka_unit_test(test_memory),
		cmocka_unit_test(test_from_outside), cmocka_unit_test(test_objects), cmocka_unit_test(test_allowance),
	};

	return run_group_of_descriptors(tests, NULL, NULL);
}
