/* SPDX-License-Identifier: Apache-2.0 */
/* The C program of the DWARF tests: calls inlined within each other and in loops, a function within another (gcc), cold
 * code, one that the linker may drop, and with link-time optimization calls inlined out of the other file. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dwarf_calls.h"

ALWAYS int two(int x)
{
	return in_header(x) + 2;
}

ALWAYS int three(int x)
{
	for (int i = 0; i < 3; i++) {
		int y = two(x + i);

		x += y ^ in_header(y);
	}
	return x;
}

NEVER int callee(int x)
{
	return three(x) + two(x) + far_inlined(x);
}

/* Calls in blocks behind calls that are in none. */
NEVER static int blocks(int x)
{
	int a = three(x);

	if (a > 3) {
		int b = in_header(a);

		for (int i = 0; i < b; i++) {
			int c = two(b - i);

			a ^= c;
		}
	}
	return a;
}

NEVER int dropped(int x)
{
	return three(x) * 5;
}

#ifndef __clang__
NEVER static int nest(int x)
{
	int k = x;
	NEVER int within(int y)
	{
		k += y;
		return y * k + two(y);
	}

	return three(within(x) + within(x + 1)) + k;
}
#else
NEVER static int nest(int x)
{
	return x + two(x);
}
#endif

static int compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

NEVER __attribute__((cold)) static void fail(int x)
{
	printf("bad %d\n", two(x));
	abort();
}

int main(int argc, char **argv)
{
	if (argc > 100)
		fail(argc);
	qsort(argv, (size_t)argc, sizeof(*argv), compare);
	printf("%d %d %d\n", callee(argc) + blocks(argc), nest(argc), far_call(argc));
	return 0;
}
