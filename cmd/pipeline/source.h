/* SPDX-License-Identifier: Apache-2.0 */
/* Reads what --config names: a file, or what the Collector's providers name by a scheme. Main thread. */
#ifndef HEARTH_CMD_PIPELINE_SOURCE_H
#define HEARTH_CMD_PIPELINE_SOURCE_H

struct buf;
struct tree;

/*
 * Reads @sources in their order, each laid over those before it, then @sets (KEY=VALUE, keys with '.' between them); both
 * are NULL-terminated or NULL. A source is PATH, file:PATH, env:VARIABLE (its value is the document), yaml:TEXT (keys may
 * have `::` between them), http://... or https://..., whose answer is the document. In a document with pipelines ${...} is
 * replaced (expand.h). All of it is at most 1 MiB a source. The tree borrows the texts of @sources and @sets. 0; -EINVAL
 * with @error filled; -ENOMEM.
 */
int source_read_all(const char *const *sources, const char *const *sets, struct tree *ret, struct buf *error);

/* Appends what @source holds to @out; as above. */
int source_read_text(const char *source, struct buf *out, struct buf *error);

/* @source without password, for messages; the caller frees it. NULL without memory. */
char *source_shown(const char *source);

#endif
