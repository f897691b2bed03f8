/* SPDX-License-Identifier: Apache-2.0 */
/* Things that the plug-in and its host know of each other. */
#ifndef TRUTH_PLUGIN_H
#define TRUTH_PLUGIN_H

typedef unsigned long plugin_fn(unsigned long x);

/* Calls @back through a function of the plug-in. */
unsigned long plugin_enter(plugin_fn *back, unsigned long x);
/* Where the time goes, in the plug-in again. */
unsigned long plugin_work(unsigned long x);

unsigned long plugin_pure(unsigned long x);

#endif
