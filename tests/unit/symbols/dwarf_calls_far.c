/* SPDX-License-Identifier: Apache-2.0 */
#include "dwarf_calls.h"

int far_inlined(int x)
{
	return in_header(x + 7) ^ 0x55;
}

NEVER int far_call(int x)
{
	for (int i = 0; i < x; i++)
		x ^= in_header(i) + far_inlined(x);
	return x;
}
