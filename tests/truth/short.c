/* SPDX-License-Identifier: Apache-2.0 */
/* A process that uses 15 ms of CPU and is gone, started again and again: main, brief, leaf. */
#include "truth.h"

FRAME unsigned long leaf(unsigned long x);
FRAME unsigned long leaf(unsigned long x)
{
	return spin(x);
}

FRAME unsigned long brief(unsigned long x);
FRAME unsigned long brief(unsigned long x)
{
	truth_sink += leaf(x) ^ x;
	return truth_sink;
}

int main(int argc, char **argv)
{
	int status;

	if (argc > 1 && strcmp(argv[1], "once") == 0) {
		while (now_seconds(CLOCK_PROCESS_CPUTIME_ID) < 0.015)
			truth_sink += brief(truth_sink);
		return 0;
	}
	puts("chain main brief leaf");
	truth_told_again();
	status = again(argv[0], seconds_argument(argc, argv));
	truth_sink++;
	return status;
}
