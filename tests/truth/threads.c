/* SPDX-License-Identifier: Apache-2.0 */
/* Eight threads, each with a chain of its own: tN_start, tN_outer, tN_inner, tN_leaf. The leader only waits. */
#include <pthread.h>

#include "truth.h"

static double end;

#define THREAD(n)                                              \
	FRAME unsigned long t##n##_leaf(unsigned long x);      \
	FRAME unsigned long t##n##_leaf(unsigned long x)       \
	{                                                      \
		return spin(x + n);                            \
	}                                                      \
	FRAME unsigned long t##n##_inner(unsigned long x);     \
	FRAME unsigned long t##n##_inner(unsigned long x)      \
	{                                                      \
		truth_sink = t##n##_leaf(x) ^ x;               \
		return truth_sink;                             \
	}                                                      \
	FRAME unsigned long t##n##_outer(unsigned long x);     \
	FRAME unsigned long t##n##_outer(unsigned long x)      \
	{                                                      \
		truth_sink = t##n##_inner(x + 1) ^ x;          \
		return truth_sink;                             \
	}                                                      \
	FRAME void *t##n##_start(void *arg);                   \
	FRAME void *t##n##_start(void *arg)                    \
	{                                                      \
		while (now_seconds(CLOCK_MONOTONIC) < end)     \
			truth_sink = t##n##_outer(truth_sink); \
		return arg;                                    \
	}

THREAD(0)
THREAD(1)
THREAD(2)
THREAD(3)
THREAD(4)
THREAD(5)
THREAD(6)
THREAD(7)

int main(int argc, char **argv)
{
	void *(*const start[])(void *) = { t0_start, t1_start, t2_start, t3_start, t4_start, t5_start, t6_start, t7_start };
	pthread_t thread[8];

	end = now_seconds(CLOCK_MONOTONIC) + seconds_argument(argc, argv);
	puts("chain main\ncalls main *pthread_*\ncalls t*_start *clock_gettime");
	for (int i = 0; i < 8; i++)
		printf("chain t%d_start t%d_outer t%d_inner t%d_leaf\n", i, i, i, i);
	truth_told();
	for (int i = 0; i < 8; i++)
		if (pthread_create(&thread[i], NULL, start[i], NULL) != 0)
			return 1;
	for (int i = 0; i < 8; i++)
		pthread_join(thread[i], NULL);
	return 0;
}
