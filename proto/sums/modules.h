/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tells what names the files of a capture had, and what would make them better. The agent says it on each mapping, with the
 * attribute MODULES_SOURCE_KEY: the best source of its names there is ("dwarf" or "go": with lines and inlined calls,
 * "symtab", "dynsym": exported functions alone, "plt"), "none", or "pending" while it is still being read.
 */
#ifndef HEARTH_PROTO_SUMS_MODULES_H
#define HEARTH_PROTO_SUMS_MODULES_H

#include "base/buf.h"
#include "proto/profiles.h"

#define MODULES_SOURCE_KEY "hearth.symbols.source"

/* How good the names out of a source are: "full", "symbols", "exports only", "none", "pending". */
const char *modules_quality(struct str source);

struct modules;

struct modules *modules_new(void);
void modules_free(struct modules *m);
int modules_add(struct modules *m, const struct profiles *p);

/* Appends to @out what to do for better names of the file @path with @build_id ("": none); nothing when it does not know. */
typedef void (*modules_advise_fn)(void *arg, const char *path, const char *build_id, struct buf *out);

/* The table as text, modules in most samples first, equal ones by name, appended to @out. 0 or -ENOMEM. */
int modules_report(struct modules *m, modules_advise_fn advise, void *arg, struct buf *out);

#endif
