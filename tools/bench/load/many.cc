/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One link of an 80-deep chain of calls: run.sh compiles this file once for each LINK, from 39 down to 0, and links them. Each
 * has a function with locals of its own size and a virtual method that may throw; the last one spins, the first is main's.
 */
#include <stdexcept>
#include <string>

#include "tests/truth/truth.h"

#define PASTE(a, b)  a##b
#define NAME(a, b)   PASTE(a, b)
#define LAST_LINK    39

struct link_base {
	virtual ~link_base() = default;
	virtual unsigned long follow(unsigned long x, const std::string &text) = 0;
};

#if LINK == LAST_LINK
INLINE unsigned long next(unsigned long x, const std::string &text)
{
	return spin(x + text.size());
}
#else
unsigned long NAME(link_, NEXT)(unsigned long x, const std::string &text);
#define next NAME(link_, NEXT)
#endif

namespace
{
struct chain_link : link_base {
	unsigned long room[1 + LINK % 7];

	FRAME unsigned long follow(unsigned long x, const std::string &text) override
	{
		try {
			if (x == ~0ul)
				throw std::runtime_error(text);
			room[x % (1 + LINK % 7)] = next(x + 1, text);
		} catch (const std::runtime_error &error) {
			truth_sink += std::string(error.what()).size();
		}
		return room[0] ^ x;
	}
};
}

FRAME unsigned long NAME(link_, LINK)(unsigned long x, const std::string &text)
{
	chain_link it;
	link_base *volatile base = &it;

	truth_sink += base->follow(x + LINK, text) ^ x;
	return truth_sink;
}

#if LINK == 0
int main(int argc, char **argv)
{
	double end = now_seconds(CLOCK_MONOTONIC) + seconds_argument(argc, argv);
	std::string text = "one link of the chain";

	while (now_seconds(CLOCK_MONOTONIC) < end)
		truth_sink += link_0(truth_sink % 1000, text);
	return 0;
}
#endif
