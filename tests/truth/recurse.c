/* SPDX-License-Identifier: Apache-2.0 */
/* One function that calls itself until it is DEPTH frames deep: main, down * DEPTH, leaf. */
#include "truth.h"

#ifndef DEPTH
#define DEPTH 400
#endif

FRAME unsigned long leaf(unsigned long x);
FRAME unsigned long leaf(unsigned long x)
{
	return spin(x);
}

FRAME unsigned long down(int left, unsigned long x);
FRAME unsigned long down(int left, unsigned long x)
{
	truth_sink += (left > 1 ? down(left - 1, x + 1) : leaf(x)) ^ x;
	return truth_sink;
}

INLINE unsigned long all_down(unsigned long x)
{
	return down(DEPTH, x);
}

int main(int argc, char **argv)
{
	printf("chain main");
	for (int i = 0; i < DEPTH; i++)
		printf(" down");
	puts(" leaf");
	RUN_CHAIN(all_down, seconds_argument(argc, argv));
	return 0;
}
