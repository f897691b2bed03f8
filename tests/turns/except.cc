/* SPDX-License-Identifier: Apache-2.0 */
/*
 * C++ exceptions while they unwind: thrown below ten functions, with a destructor in every second one, through a rethrow.
 * The unwinder's own stack stands on the stack it unwinds. exc_step runs a whole throw below a trap.
 */
#include "step.h"

#include <stdexcept>

enum { LEVELS = 10 };

struct guard {
	unsigned long n;
	FRAME ~guard();
};

FRAME guard::~guard()
{
	turn_sink = turn_sink + n;
}

extern "C" {
FRAME unsigned long level(unsigned long n);
FRAME unsigned long guarded(unsigned long n);
FRAME unsigned long catcher(unsigned long n);

FRAME unsigned long level(unsigned long n)
{
	if (n == 0)
		throw std::runtime_error("turn");
	return guarded(n - 1) + 1;
}

FRAME unsigned long guarded(unsigned long n)
{
	guard g = { n };

	return level(n) + g.n;
}

FRAME unsigned long catcher(unsigned long n)
{
	try {
		return level(n);
	} catch (std::exception &e) {
		return n + (unsigned long)e.what()[0];
	}
}
}

#define LIBRARY                                                                                                             \
	"(;(stub\\+|libstdc\\+\\+[^;]*\\+|libgcc_s\\.so\\.1\\+|except\\w*\\+|@libs|_Unwind\\w*|__cxa\\w*|__gxx\\w*|std::[^" \
	";]*|"                                                                                                              \
	"operator[^;]*|__gcc\\w*|__cxxabiv1::[^;]*))*"
#define LEVEL "((;level;guarded)*(;level(\\.cold)?|;level;guarded\\.cold)?)"

static void told_exceptions(const char *name)
{
	printf("stack @main;%s;catcher(\\.cold)?" LIBRARY "\n", name);
	printf("stack @main;%s(;catcher(" LEVEL LIBRARY "|(;level;guarded(\\.cold)?)+;guard::~guard\\S*)?)?@trap\n", name);
	printf("seen 4 %s;catcher(;level;guarded){10};level(\\.cold)?;__cxa_throw;.*_Unwind_RaiseException\n", name);
	/* The unwinder writes where it goes over its own return address before it leaves. */
	printf("odd 30 (catcher" LEVEL ";)?(guarded|catcher)(\\.cold)?;_Unwind_R\n");
	printf("seen 5 %s;catcher(;level;guarded)+;.*_Unwind_Resume\n", name);
	told();
}

static void throwing()
{
	told_exceptions("throwing");
	while (running())
		for (int i = 0; i < 10; i++)
			turn_sink = turn_sink + catcher(LEVELS);
}

/* Where the unwinder leaves by itself: rsp and all registers come from what it computed. */
static void step_throw()
{
	printf("stack @main;step_throw;catcher(\\.cold)?" LIBRARY "@trap\n");
	printf("odd 30 (guarded|catcher)(\\.cold)?;_Unwind_R\n");
	printf("stack @main;step_throw(;catcher(" LEVEL LIBRARY "|(;level;guarded(\\.cold)?)+;guard::~guard\\S*)?)?@trap\n");
	printf("seen 4 catcher;level;guarded;level(\\.cold)?;__cxa_throw.*on_trap\n");
	told();
	catcher(1);
	step_begin(0);
	step_us = 20;
	while (running()) {
		step_on();
		turn_sink = turn_sink + catcher(1);
		step_off();
	}
}

TURNS({ "throwing", throwing }, { "step_throw", step_throw })
