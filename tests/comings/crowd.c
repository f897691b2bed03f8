/* SPDX-License-Identifier: Apache-2.0 */
/* crowd SECONDS THREADS: so many threads, each of which works for a tenth of a millisecond now and then. */
#include <pthread.h>

#include "comings.h"

static double end;

CHAIN(crowd)

FRAME void *crowd_start(void *arg);
FRAME void *crowd_start(void *arg)
{
	unsigned random = (unsigned)(unsigned long)arg;

	name_me("crowd_thread");
	while (now_seconds(CLOCK_MONOTONIC) < end) {
		usleep((unsigned)rand_r(&random) % 4000000);
		truth_sink += crowd_outer(0);
	}
	return arg;
}

int main(int argc, char **argv)
{
	int count = argc > 2 ? atoi(argv[2]) : 5000;
	pthread_t *threads = calloc((size_t)count, sizeof(*threads));
	pthread_attr_t small;

	end = now_seconds(CLOCK_MONOTONIC) + seconds_argument(argc, argv);
	tell("crowd_thread", "crowd", "crowd_start", "crowd");
	truth_told();
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 64 * 1024);
	for (long i = 0; i < count; i++)
		must(pthread_create(&threads[i], &small, crowd_start, (void *)i) == 0, "pthread_create");
	for (int i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
