/* SPDX-License-Identifier: Apache-2.0 */
/* N frames deep, main() included, to be built with frame pointers: depth N [cold]. Cold: the innermost walks 64 MB. */
#include <stdlib.h>
#include <string.h>

enum { BYTES = 64 << 20, ROUNDS = 1000 };

static volatile unsigned result = 1;
static volatile int ended;    /* never */
static unsigned char *memory; /* NULL: not cold */

static unsigned spin(void)
{
	while (!ended)
		for (unsigned i = 0; i < ROUNDS; i++)
			result = memory ? result + !!memchr(memory, 1, BYTES) : result * 33 + i;
	return result;
}

static __attribute__((noinline)) unsigned descend(int left)
{
	return left > 0 ? descend(left - 1) + result : spin();
}

int main(int argc, char **argv)
{
	if (argc > 2) {
		memory = malloc(BYTES);
		if (!memory)
			return 1;
		memset(memory, 2, BYTES);
	}
	return argc < 2 || (int)descend(atoi(argv[1]) - 2);
}
