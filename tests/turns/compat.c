/* SPDX-License-Identifier: Apache-2.0 */
/* A 32-bit program without any library: named as not supported, counted, and shown without a user stack that is not its. */
static long call(long number, long a, long b, long c)
{
	__asm__ volatile("int $0x80" : "+a"(number) : "b"(a), "c"(b), "d"(c) : "memory");
	return number;
}

struct timespec {
	long sec, nsec;
};

void _start(void);
void _start(void)
{
	static const char told[] = "stack \nend 32-bit\nseen 10 ^\\|\n";
	struct timespec now;

	call(4, 1, (long)told, sizeof(told) - 1); /* write */
	do {
		for (volatile int i = 0; i < 1000000; i++)
			;
		call(265, 2, (long)&now, 0); /* clock_gettime, of this process's time */
	} while (now.sec == 0 && now.nsec < 500000000);
	call(1, 0, 0, 0); /* exit */
}
