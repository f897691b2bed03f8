/* SPDX-License-Identifier: Apache-2.0 */
/* Makes an index from files in one step, for commands and the backend. */
#include <errno.h>
#include <string.h>

#include "symbols/code/source.h"
#include "symbols/index/index.h"

bool symbol_index_is_behind(const struct symbol_index_head *head, const struct symbol_files *files)
{
	return (files->debug.data && !head->had_debug) || (files->common.data && !head->had_common) ||
	       (files->package.data && !head->had_package) || (files->with_ranges && !head->has_ranges);
}

typedef int (*read_fn)(const struct symbol_files *files, struct code_names *names, struct symbol_sources_result *ret);

static int build(const struct symbol_files *files, read_fn read, struct symbol_index_head *head, struct buf *out)
{
	struct code_names *names = code_names_new(NULL, 0);
	struct symbol_sources_result result;
	int r = names ? read(files, names, &result) : -ENOMEM;

	if (r == 0) {
		head->best = result.best;
		head->is_broken |= result.is_broken;
		r = symbol_index_write(names, head, out);
	}
	code_names_free(names);
	return r;
}

int symbol_index_build(const struct symbol_files *files, const char *build_id, struct buf *out)
{
	struct symbol_index_head head = { .had_debug = files->debug.data,
					  .had_common = files->common.data,
					  .had_package = files->package.data,
					  .has_ranges = files->with_ranges };
	int r;

	strncpy(head.build_id, build_id, sizeof(head.build_id) - 1);
	r = build(files, symbol_sources_read, &head, out);
	if (r != -E2BIG)
		return r;
	head.is_broken = true; /* something is missing */
	return build(files, symbol_sources_read_quick, &head, out);
}
