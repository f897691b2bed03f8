/* SPDX-License-Identifier: Apache-2.0 */
/*
 * main, four functions that differ from those of a twin by the size of their frames alone (ROOM bytes; the same instructions
 * at the same addresses), leaf. Memory of one twin's code leads astray in the other's.
 */
#include "truth.h"

FRAME unsigned long leaf(unsigned long x);
FRAME unsigned long leaf(unsigned long x)
{
	return spin(x);
}

#define TEXT(x)	 #x
#define VALUE(x) TEXT(x)
#define LINK(name, next)                                                                                                    \
	unsigned long name(unsigned long x);                                                                                \
	asm(".text\n"                                                                                                       \
	    ".globl " #name "\n"                                                                                            \
	    ".type " #name ", @function\n" #name ":\n"                                                                      \
	    ".cfi_startproc\n"                                                                                              \
	    "sub $" VALUE(ROOM) ", %rsp\n"                                                                                  \
				".cfi_adjust_cfa_offset " VALUE(ROOM) "\n"                                                  \
								      "call " #next "\n"                                    \
								      "add $" VALUE(ROOM) ", %rsp\n"                        \
											  ".cfi_adjust_cfa_offset -" VALUE( \
												  ROOM) "\n"                \
													"ret\n"             \
													".cfi_endproc\n"    \
													".size " #name      \
													", . - " #name      \
													"\n");

LINK(inner, leaf)
LINK(third, inner)
LINK(second, third)
LINK(outer, second)

int main(int argc, char **argv)
{
	double end = now_seconds(CLOCK_MONOTONIC) + seconds_argument(argc, argv);

	puts("chain main outer second third inner leaf");
	truth_told();
	while (now_seconds(CLOCK_MONOTONIC) < end)
		truth_sink += outer(truth_sink);
	return 0;
}
