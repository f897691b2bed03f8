/* SPDX-License-Identifier: Apache-2.0 */
/* Inlined into both files of the program that the DWARF tests build. */
#define ALWAYS static inline __attribute__((always_inline))
#define NEVER  __attribute__((noinline))

ALWAYS int in_header(int x)
{
	return x * 3 + (x >> 2);
}

int far_call(int x);
int far_inlined(int x);
