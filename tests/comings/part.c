/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One chain under a name chosen at build time (-DNAME=...), as a program (part MS [NEXT ARG...]: after its time it executes
 * NEXT) or, with -DLIBRARY, as a library whose NAME_outer others call through "enter". All builds have the same
 * number of pages, so one fits exactly where another was.
 */
#include "comings.h"

#define CHAIN_OF(name) CHAIN(name)
#define NAMED_(a, b)   a##b
#define NAMED(a, b)    NAMED_(a, b)
CHAIN_OF(NAME)

#ifdef LIBRARY
unsigned long enter(unsigned long ms);
FRAME unsigned long enter(unsigned long ms)
{
	truth_sink += NAMED(NAME, _outer)(ms) ^ ms;
	return truth_sink;
}
#else
int main(int argc, char **argv)
{
#ifdef COMM /* for files that all have one name */
	name_me(COMM);
#endif
	truth_sink = NAMED(NAME, _outer)((unsigned long)atol(argv[1]));
	if (argc > 2)
		execv(argv[2], argv + 2);
	return argc > 2;
}
#endif
