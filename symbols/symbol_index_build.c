/* SPDX-License-Identifier: Apache-2.0 */
/* From files to an index in one step, for commands and the process that does it for the agent. */
#include <errno.h>
#include <string.h>

#include "symbols/source.h"
#include "symbols/symbol_index.h"

bool symbol_index_is_behind(const struct symbol_index_head *head, const struct symbol_files *files)
{
	return (files->debug.data && !head->had_debug) || (files->common.data && !head->had_common) ||
	       (files->package.data && !head->had_package);
}

int symbol_index_build(const struct symbol_files *files, const char *build_id, struct buf *out)
{
	struct symbol_index_head head = { .had_debug = files->debug.data,
					  .had_common = files->common.data,
					  .had_package = files->package.data };
	struct code_names *names = code_names_new(NULL, 0);
	struct symbol_sources_result result;
	int r = names ? symbol_sources_read(files, names, &result) : -ENOMEM;

	if (r == 0) {
		strncpy(head.build_id, build_id, sizeof(head.build_id) - 1);
		head.best = result.best;
		head.is_broken = result.is_broken;
		r = symbol_index_write(names, &head, out);
	}
	code_names_free(names);
	return r;
}
