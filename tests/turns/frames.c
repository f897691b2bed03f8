/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prologues and epilogues, built in many ways (see build.sh), each instruction of them run below a trap, and all of them at
 * full speed. Functions whose time goes into opening and closing their frames.
 */
#include "step.h"

#include <stdarg.h>

FRAME unsigned long leaf(unsigned long x);
FRAME unsigned long leaf(unsigned long x)
{
	return x * 3;
}

FRAME unsigned long saves(unsigned long a, unsigned long b, unsigned long c, unsigned long d, unsigned long e);
FRAME unsigned long saves(unsigned long a, unsigned long b, unsigned long c, unsigned long d, unsigned long e)
{
	unsigned long x = leaf(a), y = leaf(b + x), z = leaf(c + y);

	return a * x + b * y + c * z + d * leaf(x + e) + e * leaf(z) + y * z;
}

FRAME unsigned long roomy(unsigned long x);
FRAME unsigned long roomy(unsigned long x)
{
	volatile unsigned char room[12000]; /* three pages: probed one by one with -fstack-clash-protection */

	room[x & 4095] = (unsigned char)x;
	return leaf(x) + room[x & 4095];
}

FRAME unsigned long varies(int count, ...);
FRAME unsigned long varies(int count, ...)
{
	unsigned long x = 0;
	va_list args;

	va_start(args, count);
	while (count--)
		x += leaf(va_arg(args, unsigned long));
	va_end(args);
	return x;
}

/* Leaves early, before its frame opens. */
FRAME unsigned long shrinks(unsigned long x, unsigned long y);
FRAME unsigned long shrinks(unsigned long x, unsigned long y)
{
	if (x & 1)
		return y;
	y += leaf(x) * x;
	return y * leaf(y) + x;
}

/* Becomes its callee, where the compiler makes a jump of it. */
FRAME unsigned long tails(unsigned long x);
FRAME unsigned long tails(unsigned long x)
{
	return leaf(x + 1);
}

struct pair {
	unsigned long a, b, c, d;
};

FRAME struct pair pairs(struct pair p, unsigned long x);
FRAME struct pair pairs(struct pair p, unsigned long x)
{
	p.a += leaf(x);
	p.d -= leaf(p.b);
	return p;
}

FRAME unsigned long chooses(unsigned long x);
FRAME unsigned long chooses(unsigned long x)
{
	switch (x & 7) {
	case 0:
		return leaf(x) + 1;
	case 1:
		return leaf(x + 4) * x;
	case 2:
		return x;
	case 3:
		return leaf(x ^ 5) - leaf(x);
	case 4:
		return x * 17;
	case 5:
		return saves(x, x, x, x, x) + 3;
	default:
		return leaf(leaf(x)) + x;
	}
}

FRAME unsigned long all(unsigned long i);
FRAME unsigned long all(unsigned long i)
{
	struct pair p = { i, 1, 2, 3 };
	unsigned long x = saves(i, 2, 3, 4, 5) + roomy(i);

	x += varies(3, i, x, i) + shrinks(i, x) + tails(i);
	p = pairs(p, x);
	return x + p.a + p.d + chooses(i);
}

#define ALL "(;all(;(saves|roomy|varies|shrinks|pairs|tails|chooses(;saves)?)(;leaf)?|;leaf)?)?"

static void frames(void)
{
	right("@main;frames" ALL);
	seen(10, "frames;all;[a-z]*\\|");
	told();
	while (running())
		for (unsigned long i = 0; i < 20000; i++)
			turn_sink += all(i);
}

static void step_frames(void)
{
	right("@main;step_frames" ALL "@trap");
	seen(10, "step_frames;all;[a-z]*;@signal;on_trap");
	told();
	step_begin(0);
	step_us = 500;
	for (unsigned long i = 0; running(); i++) {
		step_on();
		turn_sink += all(i);
		step_off();
	}
}

TURNS({ "frames", frames }, { "step_frames", step_frames })
