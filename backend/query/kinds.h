/* SPDX-License-Identifier: Apache-2.0 */
/* The kinds of samples in the order in which they are offered. Any thread that may ask the store. */
#ifndef HEARTH_BACKEND_QUERY_KINDS_H
#define HEARTH_BACKEND_QUERY_KINDS_H

#include "backend/store/store_read.h"

/*
 * Does what the store's kinds() does, but tells time on a CPU first, then the others, those with the most events first: who
 * asks for no kind means the first. Threads that wait may have more samples than those that run.
 */
int kinds_each(struct store *store, const struct store_selection *sel, int (*fn)(void *arg, const struct store_kind *kind),
	       void *arg);

#endif
