/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions that are called as often as they say.   calls THREADS CALLS [FILE: wait for it] ...
 * Each thread calls each function CALLS times: one, again() (which calls itself 5 deep), ours::Thing::method, a static
 * function, one of a library, passes an event (USDT), and asks the kernel for its parent. At the end a line a function: its name and how often it was called.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* A note of <sys/sdt.h>'s form: event ours:passed with two arguments, and a counter that turns it on. */
extern "C" {
unsigned short passed_semaphore __attribute__((section(".probes"), used)) = 0;
int from_library(int n);
}
#define PASSED(a, b)                                                                                               \
	__asm__ volatile("990: nop\n"                                                                              \
			 ".pushsection .note.stapsdt,\"\",\"note\"\n.balign 4\n"                                   \
			 ".4byte 992f-991f, 994f-993f, 3\n991: .asciz \"stapsdt\"\n992: .balign 4\n"               \
			 "993: .8byte 990b, _.stapsdt.base, passed_semaphore\n"                                    \
			 ".asciz \"ours\"\n.asciz \"passed\"\n.asciz \"-4@%0 8@%1\"\n994: .balign 4\n.popsection\n" \
			 ".ifndef _.stapsdt.base\n"                                                                \
			 ".pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n"                   \
			 ".weak _.stapsdt.base\n.hidden _.stapsdt.base\n_.stapsdt.base: .space 1\n"                \
			 ".size _.stapsdt.base, 1\n.popsection\n.endif\n"                                          \
			 :                                                                                         \
			 : "r"((int)(a)), "r"((uint64_t)(b)))

#define NOT_INLINED __attribute__((noinline, noclone))

static int calls;

extern "C" NOT_INLINED int one(int n)
{
	__asm__ volatile("" ::: "memory");
	return n + 1;
}

/* Not a tail call, so that there is a frame for each. */
extern "C" NOT_INLINED int again(int n)
{
	int below = n > 1 ? again(n - 1) : one(n);

	__asm__ volatile("" ::: "memory");
	return below + n;
}

namespace ours
{
struct Thing {
	int count;
	NOT_INLINED int method(int n)
	{
		__asm__ volatile("" ::: "memory");
		return count += n;
	}
	NOT_INLINED int operator+(int n)
	{
		__asm__ volatile(" " ::: "memory");
		return count + n;
	}
};
}

static NOT_INLINED int hidden_one(int n)
{
	__asm__ volatile("" ::: "memory");
	return n - 1;
}

extern "C" NOT_INLINED void outer(ours::Thing *thing, int i)
{
	thing->count = again(5) + one(i) + from_library(i);
	thing->method(hidden_one(i));
	thing->count = *thing + i;
	PASSED(i, thing);
	(void)getppid();
	__asm__ volatile("" ::: "memory");
}

static void *run(void *)
{
	ours::Thing thing = {0};

	for (int i = 0; i < calls; i++) {
		outer(&thing, i);
		if (i < 20) /* who walks stacks gets time to see what they are made of */
			usleep(50000);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	int count = atoi(argv[1]);
	pthread_t threads[64];
	long all;

	calls = atoi(argv[2]);
	while (argc > 3 && access(argv[3], F_OK))
		usleep(1000);
	for (int i = 1; i < count; i++)
		pthread_create(&threads[i], NULL, run, NULL);
	run(NULL);
	for (int i = 1; i < count; i++)
		pthread_join(threads[i], NULL);
	all = (long)count * calls;
	printf("one %ld\nagain %ld\nmethod %ld\nhidden_one %ld\nfrom_library %ld\npassed %ld\ngetppid %ld\n", 2 * all, 5 * all, all, all, all,
	       all, all);
	return 0;
}
