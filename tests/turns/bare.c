/* SPDX-License-Identifier: Apache-2.0 */
/* A program without any library, whose entry point no table covers: it is the outermost frame all the same. */
static long call(long number, long a, long b, long c)
{
	__asm__ volatile("syscall" : "+a"(number) : "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
	return number;
}

struct timespec {
	long sec, nsec;
};

void begin(void);
__asm__(".text\n.globl _start\n.type _start, @function\n_start: xor %ebp, %ebp\n and $-16, %rsp\n call begin\n hlt\n"
	".size _start, . - _start\n");

__attribute__((noipa)) void leaf(void);
__attribute__((noipa)) void leaf(void)
{
	for (volatile int i = 0; i < 1000000; i++)
		;
}

void begin(void)
{
	static const char told[] = "stack _start(;begin(;leaf)?)?\nseen 10 ^_start;begin;leaf\n";
	struct timespec now;

	call(1, 1, (long)told, sizeof(told) - 1); /* write */
	do {
		leaf();
		call(228, 2, (long)&now, 0); /* clock_gettime, of this process's time */
	} while (now.sec == 0 && now.nsec < 500000000);
	call(60, 0, 0, 0); /* exit */
}
