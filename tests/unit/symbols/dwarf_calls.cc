/* SPDX-License-Identifier: Apache-2.0 */
/* The C++ program of the DWARF tests: names in namespaces with and without a name, in classes, local classes and lambdas,
 * templates, and what is called as in C. */
#include <stdio.h>
#include <stdlib.h>

#include "dwarf_calls.h"

namespace outer
{
namespace
{
struct hidden {
	int v;
	NEVER int get(int x)
	{
		return v + in_header(x);
	}
	inline __attribute__((always_inline)) int bump(int x)
	{
		if (x <= 3)
			return v;
		int z = in_header(x);
		v += z;
		return z;
	}
};

NEVER int anonymous(int a)
{
	hidden h{ a };
	return h.get(a) + h.bump(a);
}
} // namespace

class shown
{
      public:
	int a = 1;
	int method(int x);
	template <typename T> T templated(T x);
	struct inner {
		static int deep(int x);
	};
};

int shown::method(int x)
{
	return a + anonymous(x);
}

int shown::inner::deep(int x)
{
	return x ^ in_header(x);
}

template <typename T> NEVER T shown::templated(T x)
{
	return x + (T)in_header(a);
}

NEVER static int only_here(int x)
{
	if (__builtin_expect(x == 12345, 0))
		abort();
	return x * x;
}

extern "C" int as_in_c(int x)
{
	return only_here(x) + 1;
}
} // namespace outer

NEVER static int local_things(int x)
{
	auto lambda = [x](int y) NEVER { return x * y + in_header(y); };
	struct local {
		int q;
		NEVER int go(int z)
		{
			return q * z;
		}
	} l{ x };
	return lambda(x) + l.go(x);
}

int main(int argc, char **)
{
	outer::shown s;

	printf("%d %d %d %f %d\n", s.method(argc), outer::shown::inner::deep(argc), outer::as_in_c(argc),
	       s.templated(1.5) + s.templated(3), local_things(argc));
	return 0;
}
