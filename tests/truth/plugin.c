/* SPDX-License-Identifier: Apache-2.0 */
/* The plug-in of plugin_host.c, loaded with dlopen. */
#include "plugin.h"
#include "truth.h"

volatile int *plugin_turns = &truth_turns;

FRAME unsigned long plugin_leaf(unsigned long x);
FRAME unsigned long plugin_leaf(unsigned long x)
{
	truth_turns = *plugin_turns;
	return spin(x);
}

/* Uses no data, for a test that maps the code alone. */
FRAME unsigned long plugin_pure(unsigned long x)
{
	return turn(x, LONG_TURNS);
}

FRAME unsigned long plugin_work(unsigned long x)
{
	truth_sink += plugin_leaf(x + 1) ^ x;
	return truth_sink;
}

FRAME unsigned long plugin_middle(plugin_fn *back, unsigned long x);
FRAME unsigned long plugin_middle(plugin_fn *back, unsigned long x)
{
	truth_sink += back(x + 1) ^ x;
	return truth_sink;
}

FRAME unsigned long plugin_enter(plugin_fn *back, unsigned long x)
{
	truth_sink += plugin_middle(back, x + 1) ^ x;
	return truth_sink;
}
