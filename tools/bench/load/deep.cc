/* SPDX-License-Identifier: Apache-2.0 */
/* DEPTH different functions deep, main and the leaf included. */
#include "tests/truth/truth.h"

template <int N> FRAME unsigned long down(unsigned long x)
{
	unsigned long volatile room[1 + N % 5] = { x };

	if constexpr (N == 1)
		truth_sink += spin(x);
	else
		truth_sink += down<N - 1>(x + 1) ^ x;
	return truth_sink + room[0];
}

int main(int argc, char **argv)
{
	double end = now_seconds(CLOCK_MONOTONIC) + seconds_argument(argc, argv);

	while (now_seconds(CLOCK_MONOTONIC) < end)
		truth_sink += down<DEPTH - 1>(truth_sink);
	return 0;
}
