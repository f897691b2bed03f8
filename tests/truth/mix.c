/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A chain in which every function has a frame of another kind. The matrix is about what a compiler makes of it, so
 * nothing here depends on an option.
 */
#include <alloca.h>
#include <stdarg.h>

#include "truth.h"

struct big {
	unsigned long words[24];
};

static volatile int always = 1;

#define DECLARE(name, ...) FRAME unsigned long name(__VA_ARGS__)

/* No frame of its own: the locals lie in the red zone, where there is one. */
DECLARE(leaf, unsigned long x);
FRAME unsigned long leaf(unsigned long x)
{
	volatile unsigned long local[4] = { x, x + 1, x + 2, x + 3 };

	return spin(local[x & 3]);
}

/* static, and placed among the code that is seldom used */
__attribute__((cold)) FRAME static unsigned long rare(unsigned long x)
{
	truth_sink += leaf(x + 1) ^ x;
	return truth_sink;
}

/* The call is in the part that compilers split off for being seldom used. */
FRAME static unsigned long parted(unsigned long x)
{
	if (always) {
		truth_sink += rare(x + 1) ^ x;
		truth_sink += x * 3;
	} else {
		truth_sink ^= x;
	}
	return truth_sink;
}

/* calls itself */
DECLARE(recursing, int left, unsigned long x);
FRAME unsigned long recursing(int left, unsigned long x)
{
	truth_sink += (left > 1 ? recursing(left - 1, x + 1) : parted(x)) ^ x;
	return truth_sink;
}

/* a jump table */
DECLARE(choosing, unsigned long x);
FRAME unsigned long choosing(unsigned long x)
{
	switch (always + (int)(x & 0)) {
	case 0:
		return x;
	case 1:
		truth_sink += recursing(3, x) ^ x;
		break;
	case 2:
		truth_sink ^= x << 3;
		break;
	case 3:
		truth_sink = x >> 5;
		break;
	case 4:
		truth_sink *= x;
		break;
	case 5:
		truth_sink -= x;
		break;
	default:
		truth_sink++;
	}
	return truth_sink;
}

/* through a pointer */
DECLARE(pointing, unsigned long x);
FRAME unsigned long pointing(unsigned long x)
{
	static unsigned long (*volatile to)(unsigned long) = choosing;

	truth_sink += to(x + 1) ^ x;
	return truth_sink;
}

/* a structure by value, another one as the result */
struct big handing(struct big in, unsigned long x);
FRAME struct big handing(struct big in, unsigned long x)
{
	in.words[x % 24] += pointing(in.words[(x + 1) % 24]);
	truth_sink++;
	return in;
}

DECLARE(handed, unsigned long x);
FRAME unsigned long handed(unsigned long x)
{
	struct big b = { { x, truth_sink } };

	b = handing(b, x);
	truth_sink += b.words[x % 24];
	return truth_sink;
}

/* more arguments than there are registers, so that some are pushed around the call */
DECLARE(crowded, unsigned long a, unsigned long b, unsigned long c, unsigned long d, unsigned long e, unsigned long f,
	unsigned long g, unsigned long h, unsigned long i, struct big *j);
FRAME unsigned long crowded(unsigned long a, unsigned long b, unsigned long c, unsigned long d, unsigned long e,
			    unsigned long f, unsigned long g, unsigned long h, unsigned long i, struct big *j)
{
	truth_sink += handed(a + b) ^ c ^ d ^ e ^ f ^ g ^ h ^ i ^ j->words[3];
	return truth_sink;
}

DECLARE(crowding, unsigned long x);
FRAME unsigned long crowding(unsigned long x)
{
	struct big b = { { x } };

	truth_sink += crowded(x, x + 1, x ^ 2, x + 3, x ^ 4, x + 5, x ^ 6, x + 7, x ^ 8, &b) ^ x;
	return truth_sink;
}

/* as many arguments as it is told */
DECLARE(listing, int count, ...);
FRAME unsigned long listing(int count, ...)
{
	unsigned long sum = 0;
	va_list list;

	va_start(list, count);
	for (int i = 0; i < count; i++)
		sum += (unsigned long)va_arg(list, double);
	truth_sink += crowding(sum) ^ va_arg(list, unsigned long);
	va_end(list);
	return truth_sink;
}

/* aligned beyond what the stack is: the frame is found from a register or from memory */
DECLARE(aligned, unsigned long x);
FRAME unsigned long aligned(unsigned long x)
{
	_Alignas(64) volatile unsigned long local[16] = { x };

	local[x & 15] = listing(3, 1.0, 2.0, (double)(x & 7), x) ^ local[0];
	truth_sink += local[x & 15];
	return truth_sink;
}

/* of a size that only the call knows */
DECLARE(sized, unsigned long x);
FRAME unsigned long sized(unsigned long x)
{
	volatile unsigned char *local = alloca(16 + (x & 255));

	local[x & 15] = (unsigned char)x;
	truth_sink += aligned(x + 1) ^ local[x & 15];
	return truth_sink;
}

/* both of the above */
DECLARE(sized_aligned, unsigned long x);
FRAME unsigned long sized_aligned(unsigned long x)
{
	_Alignas(32) volatile unsigned long fixed[8] = { x };
	volatile unsigned char *local = alloca(16 + (x & 127));

	local[x & 15] = (unsigned char)x;
	fixed[x & 7] += sized(x + 1);
	truth_sink += fixed[x & 7] ^ local[x & 15];
	return truth_sink;
}

/* several pages */
DECLARE(wide, unsigned long x);
FRAME unsigned long wide(unsigned long x)
{
	volatile unsigned char local[20000];

	local[x % sizeof(local)] = (unsigned char)x;
	truth_sink += sized_aligned(x + 1) ^ local[x % sizeof(local)];
	return truth_sink;
}

/* many values that outlive the call: all registers that a call preserves are in use */
DECLARE(holding, unsigned long x);
FRAME unsigned long holding(unsigned long x)
{
	unsigned long a = x * 3, b = x ^ 5, c = x + 7, d = x - 9, e = x * 11, f = x ^ 13, g = x + 15;

	asm volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d), "+r"(e), "+r"(f));
	truth_sink += wide(g);
	asm volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d), "+r"(e), "+r"(f));
	truth_sink += a ^ b ^ c ^ d ^ e ^ f ^ g;
	return truth_sink;
}

/* two ways through it, one without a frame: compilers push registers on the other alone */
DECLARE(early, unsigned long x);
FRAME unsigned long early(unsigned long x)
{
	if (!always)
		return x + 1;
	for (unsigned long i = 0; i < 2; i++)
		truth_sink += i ? holding(x + i) ^ x : x;
	return truth_sink;
}

DECLARE(first, unsigned long x);
FRAME unsigned long first(unsigned long x)
{
	truth_sink += early(x + 1) ^ x;
	return truth_sink;
}

int main(int argc, char **argv)
{
	puts("chain main first early holding wide sized_aligned sized aligned listing crowding crowded handed handing "
	     "pointing "
	     "choosing recursing recursing recursing parted rare leaf\n"
	     "calls * mem* libc: __mem* musl:"); /* what compilers copy and clear structures with */
	RUN_CHAIN(first, seconds_argument(argc, argv));
	return 0;
}
