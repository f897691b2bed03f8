/* SPDX-License-Identifier: Apache-2.0 */
/* A function that is probed where it returns, 3 deep within itself, and the work below it, for so long after the first
 * second.   spin MILLISECONDS */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define NOT_INLINED __attribute__((noinline, noclone))

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

NOT_INLINED uint64_t work(uint64_t n)
{
	for (int i = 0; i < 20000; i++)
		n = n * 2862933555777941757ull + 3037000493ull;
	return n;
}

NOT_INLINED uint64_t between(uint64_t n)
{
	n = work(n) + 1;
	__asm__ volatile("" ::: "memory");
	return n;
}

NOT_INLINED uint64_t deep(int depth, uint64_t n)
{
	n = depth > 1 ? deep(depth - 1, n) : between(n);
	__asm__ volatile("" ::: "memory");
	return n;
}

int main(int argc, char **argv)
{
	uint64_t n = (uint64_t)argc, calls = 0, end = 0;

	while (!end || now_ms() < end) {
		n = deep(3, n);
		if (calls++ < 20) /* who walks stacks gets time to see what they are made of */
			usleep(50000);
		else if (!end)
			end = now_ms() + (uint64_t)atoi(argv[1]);
	}
	printf("%lu\n", (unsigned long)calls * 3);
	return n == 1;
}
