/* SPDX-License-Identifier: Apache-2.0 */
/*
 * 35 functions deep, each with its own small frame: main, f01 ... f33, leaf. Built in several ways (see build.sh). With COLD
 * the leaf walks 64 MB of memory, so that nothing that a sampler touched is in a CPU cache at its next sample. With SHALLOW
 * main calls f31, which leaves 5 functions: the difference to the whole chain is what 30 frames cost.
 */
#include "truth.h"

#ifdef COLD
enum { COLD_BYTES = 64 << 20, LINE_BYTES = 64 };
static unsigned char memory[COLD_BYTES];

INLINE unsigned long burn(unsigned long x)
{
	for (unsigned long i = 0; i < COLD_BYTES; i += LINE_BYTES)
		x += memory[i]++;
	return x;
}
#else
#define burn spin
#endif

FRAME unsigned long leaf(unsigned long x);
FRAME unsigned long leaf(unsigned long x)
{
	return burn(x);
}

#define LINK(name, next)                           \
	FRAME unsigned long name(unsigned long x); \
	FRAME unsigned long name(unsigned long x)  \
	{                                          \
		truth_sink += next(x + 1) ^ x;     \
		return truth_sink;                 \
	}

/* innermost first, as C wants them */
LINK(f33, leaf)
LINK(f32, f33)
LINK(f31, f32)
LINK(f30, f31)
LINK(f29, f30)
LINK(f28, f29)
LINK(f27, f28)
LINK(f26, f27)
LINK(f25, f26)
LINK(f24, f25)
LINK(f23, f24)
LINK(f22, f23)
LINK(f21, f22)
LINK(f20, f21)
LINK(f19, f20)
LINK(f18, f19)
LINK(f17, f18)
LINK(f16, f17)
LINK(f15, f16)
LINK(f14, f15)
LINK(f13, f14)
LINK(f12, f13)
LINK(f11, f12)
LINK(f10, f11)
LINK(f09, f10)
LINK(f08, f09)
LINK(f07, f08)
LINK(f06, f07)
LINK(f05, f06)
LINK(f04, f05)
LINK(f03, f04)
LINK(f02, f03)
LINK(f01, f02)

#ifdef SHALLOW
enum { FIRST = 31 };
#define first f31
#else
enum { FIRST = 1 };
#define first f01
#endif

int main(int argc, char **argv)
{
	double end = now_seconds(CLOCK_MONOTONIC) + seconds_argument(argc, argv);

	printf("chain main");
	for (int i = FIRST; i <= 33; i++)
		printf(" f%02d", i);
	puts(" leaf");
	truth_told();
	while (now_seconds(CLOCK_MONOTONIC) < end)
		truth_sink += first(truth_sink);
	return 0;
}
