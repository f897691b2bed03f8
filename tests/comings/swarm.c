/* SPDX-License-Identifier: Apache-2.0 */
/* swarm SECONDS PROGRAM NAME MS: starts PROGRAM MS again and again, one at a time, and says how often. */
#include "comings.h"

int main(int argc, char **argv)
{
	double end = now_seconds(CLOCK_MONOTONIC) + seconds_argument(argc, argv);
	const char *exe = strrchr(argv[2], '/') + 1;
	int count = 0;

	puts("chain swarm swarm main"); /* a child's samples before exec are its parent's; none is after it */
	tell(exe, exe, "main", argv[3]);
	for (; now_seconds(CLOCK_MONOTONIC) < end; count++) {
		pid_t child = fork();

		if (child == 0) {
			execl(argv[2], argv[2], argv[4], (char *)NULL);
			_exit(127);
		}
		must(child > 0 && status_of(child) == 0, "a child");
	}
	printf("started %d\n", count);
	return 0;
}
