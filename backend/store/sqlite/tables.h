/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of a struct profiles while it is made from the store: the store's numbers become the message's indices. */
#ifndef HEARTH_BACKEND_STORE_SQLITE_TABLES_H
#define HEARTH_BACKEND_STORE_SQLITE_TABLES_H

#include "backend/store/sqlite/names.h"
#include "base/intern.h"

/* One table of the dictionary while it grows; element 0 is there. */
struct out_table {
	struct intern *keys; /* content or number -> index */
	char *rows;
	size_t size, cap;
};

enum out_kind {
	OUT_STRINGS,
	OUT_ATTRIBUTES,
	OUT_FUNCTIONS,
	OUT_MAPPINGS,
	OUT_LOCATIONS,
	OUT_STACKS,
	OUT_LINKS,
	OUT_SETS, /* struct indices of (set, cpu): no table of the message's */
	OUT_KINDS,
};

struct out_tables {
	struct store_names *names;
	struct profiles *p; /* all that the rows point to is in its memory */
	struct out_table tables[OUT_KINDS];
	int32_t *stack; /* owned: locations of the stack that is being made */
};

/* 0 or -ENOMEM; out_tables_fini() after either. */
int out_tables_init(struct out_tables *t, struct store_names *names, struct profiles *p);
void out_tables_fini(struct out_tables *t);

/* Bytes of memory held, without the profiles'. */
size_t out_tables_memory_bytes(const struct out_tables *t);

/* Moves the tables into the profiles: nothing may be asked afterwards. 0 or -ENOMEM. */
int out_tables_finish(struct out_tables *t);

/* Indices; negative: -errno. */
int32_t out_string(struct out_tables *t, const char *text);
int32_t out_stack(struct out_tables *t, uint32_t node);
int32_t out_link(struct out_tables *t, uint32_t link);

/* Indices of a set's attributes, the cpu's (its number + 1; 0: none) behind them. 0 or -errno. */
int out_set(struct out_tables *t, uint32_t set, uint32_t cpu, struct indices *ret);

/* A set as a resource has it. 0 or -errno. */
int out_key_values(struct out_tables *t, uint32_t set, struct key_values *ret);

#endif
