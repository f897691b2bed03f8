/* SPDX-License-Identifier: Apache-2.0 */
/* The questions of backend/store/store_read.h: query.c, times.c, labels.c and export.c answer them. */
#ifndef HEARTH_BACKEND_STORE_SQLITE_QUERY_H
#define HEARTH_BACKEND_STORE_SQLITE_QUERY_H

#include "backend/store/sqlite/db.h"
#include "backend/store/store_read.h"

int store_sum_stacks(struct store *s, const struct store_selection *sel, const char *by,
		     int (*fn)(void *arg, const char *group, uint32_t node, int64_t weight, uint64_t events), void *arg);
int store_sum_times(struct store *s, const struct store_selection *sel, uint64_t step_ns, const char *by,
		    int (*fn)(void *arg, const char *group, uint32_t bucket, int64_t weight, uint64_t events), void *arg);
int store_labels(struct store *s, const struct store_selection *sel, int (*fn)(void *arg, const char *label), void *arg);
int store_series(struct store *s, const struct store_selection *sel,
		 int (*fn)(void *arg, const struct key_values *labels, int64_t weight, uint64_t events), void *arg);
int store_label_values(struct store *s, const struct store_selection *sel, const char *label,
		       int (*fn)(void *arg, const char *value, int64_t weight, uint64_t events), void *arg);
int store_kinds(struct store *s, const struct store_selection *sel, int (*fn)(void *arg, const struct store_kind *kind),
		void *arg);
int store_executables(struct store *s, const struct store_selection *sel,
		      int (*fn)(void *arg, const struct store_executable *e), void *arg);
int store_export(struct store *s, const struct store_selection *sel, int (*fn)(void *arg, struct profiles *p), void *arg);

#endif
