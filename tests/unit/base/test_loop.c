/* SPDX-License-Identifier: Apache-2.0 */
/* The event loop: descriptors, timers, signals, and watches that come and go inside callbacks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/loop.h"
#include "tests/unit/descriptors.h"

enum { STEP_MS = 2000 }; /* far longer than anything here takes */

static struct loop *loop;

static int setup(void **state)
{
	(void)state;
	return loop_new(&loop);
}

static int teardown(void **state)
{
	(void)state;
	loop_free(loop);
	return 0;
}

struct source {
	int fd, calls;
	uint32_t events;
	struct loop_watch *watch, *to_remove;
};

static void on_fd(void *arg, int fd, uint32_t events)
{
	struct source *s = arg;

	assert_int_equal(fd, s->fd);
	s->calls++;
	s->events = events;
	loop_remove(s->to_remove);
	s->to_remove = NULL;
}

static void add_source(struct source *s, unsigned initial)
{
	*s = (struct source){ .fd = eventfd(initial, EFD_NONBLOCK | EFD_CLOEXEC) };
	assert_int_equal(loop_add_fd(loop, s->fd, EPOLLIN, on_fd, s, &s->watch), 0);
}

static void test_fd(void **state)
{
	struct source s;

	(void)state;
	add_source(&s, 0);
	assert_int_equal(loop_step(loop, 0), 0);
	assert_int_equal(s.calls, 0);
	eventfd_write(s.fd, 1);
	assert_int_equal(loop_step(loop, STEP_MS), 0);
	assert_int_equal(s.calls, 1);
	assert_int_equal(s.events, EPOLLIN);
	assert_int_equal(loop_change_fd(s.watch, EPOLLOUT), 0);
	loop_step(loop, STEP_MS);
	assert_int_equal(s.calls, 2);
	assert_int_equal(s.events, EPOLLOUT);
	loop_remove(s.watch);
	loop_step(loop, 0);
	assert_int_equal(s.calls, 2);
	assert_int_equal(fcntl(s.fd, F_GETFD), FD_CLOEXEC); /* still open: the loop does not own it */
	close(s.fd);
}

static void test_refused_fd(void **state)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct loop_watch *watch = NULL;

	(void)state;
	assert_int_equal(loop_add_fd(loop, fd, EPOLLIN, on_fd, NULL, &watch), -EPERM); /* plain files cannot be watched */
	assert_int_equal(loop_add_fd(loop, -1, EPOLLIN, on_fd, NULL, &watch), -EBADF);
	assert_null(watch);
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	close(fd);
}

/* Both are ready in one round; whichever comes first removes the other, which must then not be called. */
static void test_remove_other_in_callback(void **state)
{
	struct source a, b;

	(void)state;
	add_source(&a, 1);
	add_source(&b, 1);
	a.to_remove = b.watch;
	b.to_remove = a.watch;
	loop_step(loop, STEP_MS);
	assert_int_equal(a.calls + b.calls, 1);
	loop_step(loop, STEP_MS);
	assert_int_equal(a.calls + b.calls, 2);
	assert_true(a.calls == 0 || b.calls == 0);
	close(a.fd);
	close(b.fd);
}

static void test_remove_self_in_callback(void **state)
{
	struct source s;

	(void)state;
	add_source(&s, 1);
	s.to_remove = s.watch;
	loop_step(loop, STEP_MS);
	loop_step(loop, 0);
	assert_int_equal(s.calls, 1);
	close(s.fd);
}

static struct source added;

static void replace_watch(void *arg, int fd, uint32_t events)
{
	struct loop_watch **own = arg;

	(void)fd;
	(void)events;
	loop_remove(*own);
	add_source(&added, 1);
	loop_step(loop, 0); /* a round within the round */
	assert_int_equal(added.calls, 1);
}

static void test_add_and_nest_in_callback(void **state)
{
	int fd = eventfd(1, EFD_NONBLOCK);
	struct loop_watch *own;

	(void)state;
	assert_int_equal(loop_add_fd(loop, fd, EPOLLIN, replace_watch, &own, &own), 0);
	loop_step(loop, STEP_MS);
	loop_step(loop, STEP_MS);
	assert_int_equal(added.calls, 2);
	close(fd);
	loop_remove(added.watch);
	close(added.fd);
}

struct ticker {
	int calls, stop_at;
	struct loop_watch *watch;
};

static void on_tick(void *arg)
{
	struct ticker *t = arg;

	if (++t->calls == t->stop_at)
		loop_stop(loop);
}

static void test_timer_repeats(void **state)
{
	struct ticker t = { .stop_at = 3 };
	uint64_t start = clock_mono_ns();

	(void)state;
	assert_int_equal(loop_add_timer(loop, on_tick, &t, &t.watch), 0);
	assert_int_equal(loop_set_timer(t.watch, 20 * NSEC_PER_MSEC, 10 * NSEC_PER_MSEC), 0);
	assert_int_equal(loop_run(loop), 0);
	assert_int_equal(t.calls, 3);
	assert_in_range(clock_mono_ns() - start, 20 * NSEC_PER_MSEC, 10 * NSEC_PER_SEC);
	t.stop_at = 5;
	assert_int_equal(loop_run(loop), 0); /* a stopped loop can run again */
	assert_int_equal(t.calls, 5);
}

static void test_timer_once_and_disarmed(void **state)
{
	struct ticker once = { 0 }, never = { 0 }, last = { .stop_at = 1 };

	(void)state;
	loop_add_timer(loop, on_tick, &once, &once.watch);
	loop_add_timer(loop, on_tick, &never, &never.watch);
	loop_add_timer(loop, on_tick, &last, &last.watch);
	loop_set_timer(once.watch, NSEC_PER_MSEC, 0);
	loop_set_timer(never.watch, NSEC_PER_MSEC, NSEC_PER_MSEC);
	loop_set_timer(never.watch, 0, 0);
	loop_set_timer(last.watch, 40 * NSEC_PER_MSEC, 0);
	assert_int_equal(loop_run(loop), 0);
	assert_int_equal(once.calls, 1);
	assert_int_equal(never.calls, 0);
	loop_remove(once.watch);
	loop_remove(NULL);
}

struct signal_watch {
	struct loop_watch *watch;
	int calls, last;
	struct signal_watch *successor;
};

static sigset_t user_signals;

/* One signal, then another watch takes over, whose descriptor gets the number that this one's had. */
static void on_signal(void *arg, int signo)
{
	struct signal_watch *s = arg;

	s->calls++;
	s->last = signo;
	loop_remove(s->watch);
	if (s->successor)
		assert_int_equal(loop_add_signals(loop, &user_signals, on_signal, s->successor, &s->successor->watch), 0);
}

static void test_signals(void **state)
{
	struct signal_watch second = { 0 }, first = { .successor = &second };
	sigset_t before;

	(void)state;
	sigprocmask(SIG_SETMASK, NULL, &before);
	sigemptyset(&user_signals);
	sigaddset(&user_signals, SIGUSR1);
	sigaddset(&user_signals, SIGUSR2);
	assert_int_equal(loop_add_signals(loop, &user_signals, on_signal, &first, &first.watch), 0);
	kill(getpid(), SIGUSR2);
	kill(getpid(), SIGUSR1);
	loop_step(loop, STEP_MS);
	assert_int_equal(first.calls, 1);
	assert_int_equal(first.last, SIGUSR1);
	assert_int_equal(second.calls, 0); /* the other signal is still pending */
	loop_step(loop, STEP_MS);
	assert_int_equal(first.calls, 1);
	assert_int_equal(second.calls, 1);
	assert_int_equal(second.last, SIGUSR2);
	sigprocmask(SIG_SETMASK, &before, NULL);
}

static void run_inner(void *arg, int fd, uint32_t events)
{
	(void)fd;
	(void)events;
	loop_step(arg, 0);
}

static void test_nested_loop(void **state)
{
	struct loop *outer;
	struct source s;

	(void)state;
	assert_int_equal(loop_new(&outer), 0);
	assert_int_equal(loop_add_fd(outer, loop_fd(loop), EPOLLIN, run_inner, loop, NULL), 0);
	add_source(&s, 1);
	loop_step(outer, STEP_MS);
	assert_int_equal(s.calls, 1);
	loop_free(outer);
	loop_remove(s.watch);
	close(s.fd);
}

static int count_fds(void)
{
	int count = 0;

	for (int fd = 0; fd < 256; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

static void test_free_closes_own(void **state)
{
	int before = count_fds();
	struct loop *own;
	struct loop_watch *watch;
	sigset_t set;

	(void)state;
	sigemptyset(&set);
	sigaddset(&set, SIGWINCH);
	assert_int_equal(loop_new(&own), 0);
	assert_int_equal(loop_add_timer(own, on_tick, NULL, &watch), 0);
	assert_int_equal(loop_add_signals(own, &set, on_signal, NULL, NULL), 0);
	assert_int_equal(count_fds(), before + 4); /* epoll, posts, timer, signals */
	loop_remove(watch);
	assert_int_equal(count_fds(), before + 3);
	loop_free(own);
	assert_int_equal(count_fds(), before);
}

struct post {
	struct loop_work work;
	unsigned *calls;
	unsigned number, again;
};

/* Counts, and sees that the work of one thread comes in its order. */
static void on_post(struct loop_work *work)
{
	struct post *post = (struct post *)work;

	assert_int_equal(*post->calls % 1000, post->number);
	(*post->calls)++;
	if (post->again) {
		post->again--;
		*post->calls = post->number;
		loop_post(loop, work);
	}
}

static void *post_many(void *arg)
{
	struct post *posts = arg;

	for (int i = 0; i < 1000; i++)
		loop_post(loop, &posts[i].work);
	return NULL;
}

static void test_post(void **state)
{
	static struct post posts[2][1000];
	unsigned calls[2] = { 0 };
	pthread_t threads[2];

	(void)state;
	for (unsigned t = 0; t < 2; t++)
		for (unsigned i = 0; i < 1000; i++)
			posts[t][i] = (struct post){ .work.fn = on_post, .calls = &calls[t], .number = i };
	for (int t = 0; t < 2; t++)
		assert_int_equal(pthread_create(&threads[t], NULL, post_many, posts[t]), 0);
	for (int round = 0; round < 5000 && calls[0] + calls[1] < 2000; round++)
		loop_step(loop, STEP_MS);
	for (int t = 0; t < 2; t++)
		pthread_join(threads[t], NULL);
	assert_int_equal(calls[0], 1000);
	assert_int_equal(calls[1], 1000);

	/* Work that posts itself is called in the next round, not in this one. */
	posts[0][0].again = 1;
	calls[0] = 0;
	loop_post(loop, &posts[0][0].work);
	loop_step(loop, STEP_MS);
	assert_int_equal(calls[0], 0);
	loop_step(loop, STEP_MS);
	assert_int_equal(calls[0], 1);
	loop_step(loop, 0);
	assert_int_equal(calls[0], 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_fd, setup, teardown),
		cmocka_unit_test_setup_teardown(test_refused_fd, setup, teardown),
		cmocka_unit_test_setup_teardown(test_remove_other_in_callback, setup, teardown),
		cmocka_unit_test_setup_teardown(test_remove_self_in_callback, setup, teardown),
		cmocka_unit_test_setup_teardown(test_add_and_nest_in_callback, setup, teardown),
		cmocka_unit_test_setup_teardown(test_timer_repeats, setup, teardown),
		cmocka_unit_test_setup_teardown(test_timer_once_and_disarmed, setup, teardown),
		cmocka_unit_test_setup_teardown(test_signals, setup, teardown),
		cmocka_unit_test_setup_teardown(test_nested_loop, setup, teardown),
		cmocka_unit_test_setup_teardown(test_post, setup, teardown),
		cmocka_unit_test_setup_teardown(test_free_closes_own, setup, teardown),
	};

	return run_group_of_descriptors(tests, NULL, NULL);
}
