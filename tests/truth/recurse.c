/* SPDX-License-Identifier: Apache-2.0 */
/* One function that calls itself until it is DEPTH frames deep: main, down * DEPTH, leaf. IN_TURNS: it and another one call
 * each other. */
#include "truth.h"

#include "bpf/deep.h"

#ifndef DEPTH
#define DEPTH 400
#endif

FRAME unsigned long leaf(unsigned long x);
FRAME unsigned long leaf(unsigned long x)
{
	return spin(x);
}

FRAME unsigned long down(int left, unsigned long x);
#ifdef IN_TURNS
FRAME unsigned long over(int left, unsigned long x);
FRAME unsigned long over(int left, unsigned long x)
{
	truth_sink += (left > 1 ? down(left - 1, x + 1) : leaf(x)) ^ x;
	return truth_sink;
}
#else
#define over down
#endif

FRAME unsigned long down(int left, unsigned long x)
{
	truth_sink += (left > 1 ? over(left - 1, x + 1) : leaf(x)) ^ x;
	return truth_sink;
}

INLINE unsigned long all_down(unsigned long x)
{
	return down(DEPTH, x);
}

/* A line of @count calls, of which @end is the last. */
static void print_chain(int count, const char *end)
{
	printf("chain main");
	for (int i = 0; i < count; i++)
		printf(" down");
	puts(end);
}

int main(int argc, char **argv)
{
	/* Of deeper recursion hearth passes over what is behind DEEP_FRAMES, leaf included; but for these frames are main
	 * and the three below it. */
	if (DEPTH <= FOLD_FRAMES) {
		print_chain(DEPTH, " leaf");
	} else {
		print_chain(DEEP_FRAMES - 1, " leaf");
		print_chain(DEEP_FRAMES, "");
		print_chain(FOLD_FRAMES, "");
	}
	RUN_CHAIN(all_down, seconds_argument(argc, argv));
	return 0;
}
