/* SPDX-License-Identifier: Apache-2.0 */
/*
 * C++: a namespace, templates, a virtual call, a lambda behind std::function, and a frame that runs on inside its catch
 * block (exceptions are thrown and caught all the time). Names are printed without parameter lists.
 */
#include <functional>
#include <memory>

#include "truth.h"

#ifdef __clang__
#define LAMBDA "$_0"
#else
#define LAMBDA "{lambda#1}"
#endif

namespace truth
{

FRAME unsigned long leaf(unsigned long x)
{
	return spin(x);
}

/* Throws, and calls on while the exception is being handled. Not on the sampled way there and back, which would be spent in
 * the unwinder: where that puts the registers of another frame in place there is no stack to be true. */
FRAME unsigned long catcher(unsigned long x)
{
	try {
		if (truth_turns != NO_TURNS)
			throw x;
		truth_sink += leaf(x) ^ x;
	} catch (unsigned long caught) {
		truth_sink += leaf(caught) ^ x;
	}
	return truth_sink;
}

template <typename T> struct box {
	T value;
	FRAME unsigned long open(T x);
};

template <typename T> FRAME unsigned long box<T>::open(T x)
{
	truth_sink += catcher((unsigned long)(x + value)) ^ (unsigned long)x;
	return truth_sink;
}

struct shape {
	virtual ~shape() = default;
	virtual unsigned long area(unsigned long x) = 0;
};

struct disc : shape {
	box<int> inside{ 1 };
	FRAME unsigned long area(unsigned long x) override
	{
		truth_sink += inside.open((int)x) ^ x;
		return truth_sink;
	}
};

struct square : shape {
	FRAME unsigned long area(unsigned long x) override
	{
		return x * x;
	}
};

FRAME std::unique_ptr<shape> make(bool round)
{
	if (round)
		return std::make_unique<disc>();
	return std::make_unique<square>();
}

template <typename F> FRAME unsigned long apply(F f, unsigned long x)
{
	truth_sink += f(x + 1) ^ x;
	return truth_sink;
}

FRAME unsigned long outer(unsigned long x)
{
	static const std::unique_ptr<shape> it = make(true);
	auto lambda = [x](unsigned long y) __attribute__((noinline))
	{
		truth_sink += it->area(x + y) ^ y;
		return (unsigned long)truth_sink;
	};

	truth_sink += apply(lambda, x + 1) ^ x;
	return truth_sink;
}

} // namespace truth

int main(int argc, char **argv)
{
	puts("chain main truth::outer truth::apply<truth::outer::" LAMBDA "> truth::outer::" LAMBDA "::operator() "
	     "truth::disc::area truth::box<int>::open truth::catcher truth::leaf\n"
	     "calls truth::catcher __cxa_* __gxx_* _Unwind_* libstdc++: free free@plt\ncalls truth::* std::*\ncalls truth::outer truth::make __cxa_*");
	RUN_CHAIN(truth::outer, seconds_argument(argc, argv));
	return 0;
}
