/* SPDX-License-Identifier: Apache-2.0 */
/* The plug-in of plugin_host.c, loaded with dlopen. */
#include "plugin.h"
#include "truth.h"

FRAME unsigned long plugin_leaf(unsigned long x);
FRAME unsigned long plugin_leaf(unsigned long x)
{
	return spin(x);
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
