/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The budget's rules: who is served when, and that a crowd of claims of every kind always ends. The crowd is a model of
 * requests: each asks for a body at once or in steps, perhaps for as much again to unpack it, then gives it all back.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "backend/ingest/budget.h"
#include "base/cleanup.h"

static struct loop *loop;
static struct budget budget;
static unsigned granted_count;
static struct claim *last_granted;

static int setup(void **state)
{
	(void)state;
	granted_count = 0;
	last_granted = NULL;
	if (loop_new(&loop))
		return -1;
	budget_init(&budget, loop, 400, 100);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	loop_free(loop);
	return 0;
}

static void on_granted(struct claim *c)
{
	granted_count++;
	last_granted = c;
}

static void settle(void)
{
	while (budget.posted)
		assert_int_equal(loop_step(loop, 0), 0);
}

static void test_first_come_first_served(void **state)
{
	struct claim claims[7];
	(void)state;

	for (size_t i = 0; i < ARRAY_LEN(claims); i++)
		claim_init(&claims[i], &budget, on_granted);
	for (size_t i = 0; i < 4; i++)
		assert_true(claim_more(&claims[i], 100));
	assert_false(claim_more(&claims[4], 100));
	assert_false(claim_more(&claims[5], 1)); /* would fit sooner, but came later */
	claim_set(&claims[0], 50);
	settle();
	assert_int_equal(granted_count, 0);
	claim_fini(&claims[1]);
	settle();
	assert_int_equal(granted_count, 2);
	assert_ptr_equal(last_granted, &claims[5]);
	assert_int_equal(budget.used_bytes, 351);

	/* One who leaves the queue does not hold up who is behind. */
	claim_fini(&claims[1]);
	claim_init(&claims[1], &budget, on_granted);
	assert_false(claim_more(&claims[1], 100));
	assert_false(claim_more(&claims[6], 10));
	claim_fini(&claims[1]);
	settle();
	assert_ptr_equal(last_granted, &claims[6]);
	for (size_t i = 0; i < ARRAY_LEN(claims); i++)
		claim_fini(&claims[i]);
	assert_int_equal(budget.used_bytes, 0);
	assert_null(budget.waiting.first);
}

/* Bodies that may grow leave room for one of them to end. */
static void test_growing_ones_leave_room(void **state)
{
	struct claim open[5], closed;
	(void)state;

	claim_init(&closed, &budget, on_granted);
	for (size_t i = 0; i < ARRAY_LEN(open); i++) {
		claim_init(&open[i], &budget, on_granted);
		claim_open(&open[i]);
	}
	for (size_t i = 0; i < 4; i++)
		assert_true(claim_more(&open[i], 50));
	assert_true(claim_more(&open[4], 50)); /* over 200: the privileged one */
	assert_ptr_equal(budget.privileged, &open[4]);
	assert_true(claim_more(&closed, 100));
	assert_false(claim_more(&open[0], 10));
	settle();
	assert_int_equal(granted_count, 0);
	assert_true(claim_more(&open[4], 50)); /* all that is left */
	assert_false(claim_more(&open[4], 100));
	claim_fini(&closed);
	settle();
	assert_ptr_equal(last_granted, &open[4]);
	claim_close(&open[4]); /* done growing: another one may */
	settle();
	assert_ptr_equal(budget.privileged, &open[0]);
	assert_int_equal(granted_count, 1);
	claim_fini(&open[4]);
	settle();
	assert_ptr_equal(last_granted, &open[0]);
	for (size_t i = 0; i < ARRAY_LEN(open); i++)
		claim_fini(&open[i]);
	assert_int_equal(budget.used_bytes, 0);
	assert_int_equal(budget.growing_bytes, 0);
	assert_null(budget.privileged);
}

/* What is moved is held once, and the empty claim may be used anew. */
static void test_moved(void **state)
{
	struct claim from, to = { 0 };

	(void)state;
	claim_init(&from, &budget, on_granted);
	claim_open(&from);
	assert_true(claim_more(&from, 60));
	claim_move(&to, &from);
	assert_int_equal(budget.used_bytes, 60);
	assert_int_equal(budget.growing_bytes, 60);
	assert_true(claim_more(&from, 20)); /* nobody opened it */
	assert_int_equal(budget.growing_bytes, 60);
	claim_close(&to);
	assert_int_equal(budget.growing_bytes, 0);
	claim_fini(&from);
	assert_int_equal(budget.used_bytes, 60);
	assert_int_equal(budget.growing_bytes, 0);
	claim_fini(&to);
	assert_int_equal(budget.used_bytes, 0);
}

static void test_overdrawn(void **state)
{
	struct claim decoded, next;
	(void)state;

	claim_init(&decoded, &budget, on_granted);
	claim_init(&next, &budget, on_granted);
	assert_true(claim_more(&decoded, 100));
	assert_true(claim_more(&next, 100));
	assert_true(claim_more(&next, 0));
	claim_set(&decoded, 500);
	assert_false(claim_more(&next, 0));
	claim_set(&decoded, 301);
	settle();
	assert_int_equal(granted_count, 0);
	claim_set(&decoded, 300);
	settle();
	assert_ptr_equal(last_granted, &next);
	assert_int_equal(next.bytes, 100);
	claim_fini(&decoded);
	claim_fini(&next);
	assert_int_equal(budget.used_bytes, 0);
}

static void test_least_limit(void **state)
{
	struct budget b;
	(void)state;

	budget_init(&b, loop, 10, 100);
	assert_int_equal(b.limit_bytes, 200);
	budget_init(&b, loop, 10, SIZE_MAX);
	assert_true(b.limit_bytes >= 2 * b.largest_bytes);
}

/* --- the crowd --- */

enum { CROWD = 300, LARGEST = 100 };

struct client {
	struct claim claim;
	size_t body, step, unpacked; /* step 0: all at once; unpacked 0: as it is */
	enum { ASKS, UNPACKS, DECODES, HOLDS, DONE } state;
	bool waits;
};

static struct client crowd[CROWD];

static void decode(struct client *c)
{
	assert_false(budget_is_overdrawn(&budget));
	claim_set(&c->claim, c->claim.bytes * 3);
	c->state = HOLDS;
}

static void on_client_granted(struct claim *c)
{
	struct client *client = (struct client *)c;
	assert_true(client->waits);
	client->waits = false;
	if (client->state == DECODES)
		decode(client);
}

static void ask(struct client *c, size_t bytes)
{
	c->waits = !claim_more(&c->claim, bytes);
}

/* One step of a client that does not wait. */
static void advance(struct client *c)
{
	switch (c->state) {
	case ASKS:
		if (c->claim.bytes < c->body) {
			size_t rest = c->body - c->claim.bytes;
			ask(c, c->step && c->step < rest ? c->step : rest);
			break;
		}
		c->state = UNPACKS;
		if (c->unpacked)
			ask(c, c->unpacked);
		break;
	case UNPACKS:
		if (c->unpacked)
			claim_set(&c->claim, c->unpacked);
		claim_close(&c->claim);
		c->state = DECODES;
		ask(c, 0);
		if (!c->waits)
			decode(c);
		break;
	case DECODES:
		break;
	case HOLDS:
		claim_fini(&c->claim);
		c->state = DONE;
		break;
	case DONE:
		break;
	}
}

static void crowd_start(unsigned *seed)
{
	for (size_t i = 0; i < CROWD; i++) {
		struct client *c = &crowd[i];

		*c = (struct client){ .body = 1 + (size_t)rand_r(seed) % LARGEST };
		if (rand_r(seed) % 2)
			c->step = 1 + (size_t)rand_r(seed) % 40;
		if (rand_r(seed) % 2)
			c->unpacked = 1 + (size_t)rand_r(seed) % LARGEST;
		claim_init(&c->claim, &budget, on_client_granted);
		if (c->step || c->unpacked)
			claim_open(&c->claim);
	}
}

static bool crowd_step(unsigned *seed)
{
	bool moved = false;
	size_t sum = 0;

	for (size_t i = 0; i < CROWD; i++) {
		struct client *c = &crowd[(size_t)rand_r(seed) % CROWD];
		if (c->state == DONE || c->waits)
			continue;
		if (rand_r(seed) % 100 == 0 && c->state < HOLDS) { /* its client goes away */
			claim_fini(&c->claim);
			c->state = DONE;
		} else {
			advance(c);
		}
		moved = true;
	}
	moved |= budget.posted;
	settle();
	for (size_t i = 0; i < CROWD; i++) {
		sum += crowd[i].claim.bytes;
		moved |= crowd[i].state != DONE && !crowd[i].waits; /* the dice passed it over */
	}
	assert_int_equal(sum, budget.used_bytes);
	assert_true(budget.used_bytes <= budget.limit_bytes + 2 * LARGEST);
	return moved;
}

static void test_a_crowd_always_ends(void **state)
{
	(void)state;
	for (unsigned round = 0; round < 60; round++) {
		unsigned seed = round;

		budget_init(&budget, loop, 200 + (round % 4) * 50, LARGEST);
		crowd_start(&seed);
		while (crowd_step(&seed))
			;
		for (size_t i = 0; i < CROWD; i++)
			if (crowd[i].state != DONE)
				fail_msg("round %u: client %zu waits for ever in state %d", round, i, crowd[i].state);
		assert_int_equal(budget.used_bytes, 0);
		assert_int_equal(budget.growing_bytes, 0);
		assert_null(budget.privileged);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_first_come_first_served, setup, teardown),
		cmocka_unit_test_setup_teardown(test_growing_ones_leave_room, setup, teardown),
		cmocka_unit_test_setup_teardown(test_moved, setup, teardown),
		cmocka_unit_test_setup_teardown(test_overdrawn, setup, teardown),
		cmocka_unit_test_setup_teardown(test_least_limit, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_crowd_always_ends, setup, teardown),
	};
	return cmocka_run_group_tests_name("budget", tests, NULL, NULL);
}
