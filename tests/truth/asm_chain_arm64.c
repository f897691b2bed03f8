/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hand-written functions without a word of call frame information, each with a frame of another kind: one that x29 points
 * at, lr alone on the stack with x29 in use for something else, registers in pairs and lr in their middle, a signed lr and a
 * stack of variable size, two paths, no size.
 */
#include "truth.h"

unsigned long leaf(unsigned long x);
unsigned long framed(unsigned long x);

FRAME unsigned long leaf(unsigned long x)
{
	return spin(x);
}

#define FUNCTION(name, body) ".globl " #name "\n.type " #name ", @function\n" #name ":\n" body
#define SIZED(name)	     ".size " #name ", . - " #name "\n"

__asm__(".text\n.p2align 4\n" FUNCTION(framed, "stp x29, x30, [sp, #-32]!\n mov x29, sp\n str x19, [sp, #16]\n mov x19, x0\n"
					       "bl single\n add x0, x0, x19\n ldr x19, [sp, #16]\n"
					       "ldp x29, x30, [sp], #32\n ret\n") SIZED(framed)
		FUNCTION(single, "str x30, [sp, #-32]!\n str x29, [sp, #8]\n mov x29, #12345\n bl pairs\n add x0, x0, x29\n"
				 "ldr x29, [sp, #8]\n ldr x30, [sp], #32\n ret\n") SIZED(single)
			FUNCTION(pairs,
				 "sub sp, sp, #64\n stp x19, x20, [sp]\n stp x21, x30, [sp, #16]\n str x29, [sp, #32]\n"
				 "mov x29, xzr\n mov x21, x0\n bl sized\n eor x0, x0, x21\n ldr x29, [sp, #32]\n"
				 "ldp x21, x30, [sp, #16]\n ldp x19, x20, [sp]\n add sp, sp, #64\n ret\n") SIZED(pairs)
				FUNCTION(sized,
					 "hint #25\n stp x29, x30, [sp, #-16]!\n mov x29, sp\n and x9, x0, #0xf0\n"
					 "sub sp, sp, x9\n bl ways\n mov sp, x29\n ldp x29, x30, [sp], #16\n hint #29\n"
					 "ret\n") SIZED(sized)
					FUNCTION(ways,
						 "tbz x0, #4, 1f\n stp x29, x30, [sp, #-48]!\n mov x29, sp\n bl nosize\n"
						 "ldp x29, x30, [sp], #48\n ret\n"
						 "1: stp x29, x30, [sp, #-16]!\n mov x29, sp\n bl nosize\n"
						 "ldp x29, x30, [sp], #16\n ret\n") SIZED(ways)
						FUNCTION(nosize,
							 "sub sp, sp, #16\n str x30, [sp]\n bl leaf\n add x0, x0, #1\n"
							 "ldr x30, [sp]\n add sp, sp, #16\n ret\n"));

int main(int argc, char **argv)
{
	double end = now_seconds(CLOCK_MONOTONIC) + seconds_argument(argc, argv);

	puts("chain main framed single pairs sized ways nosize leaf");
	truth_told();
	while (now_seconds(CLOCK_MONOTONIC) < end)
		truth_sink += framed(truth_sink);
	return 0;
}
