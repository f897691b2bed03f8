/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The chain of sources of names, the best first: Go's table has names, lines and inlined calls at little cost; DWARF has the
 * same for all other languages; then come names of functions alone, and what is made for code that has none.
 */
#include <errno.h>

#include "base/cleanup.h"
#include "symbols/code/names_parts.h"
#include "symbols/code/source.h"

static const struct {
	enum code_source kind;
	symbol_source_fn read;
	bool is_quick; /* names of functions cost little here */
} sources[] = {
	{ CODE_SOURCE_GO, source_go, true },	     { CODE_SOURCE_DWARF, source_dwarf, false },
	{ CODE_SOURCE_SYMTAB, source_symtab, true }, { CODE_SOURCE_SYMTAB, source_debugdata, true },
	{ CODE_SOURCE_DYNSYM, source_dynsym, true }, { CODE_SOURCE_PLT, source_plt, true },
	{ CODE_SOURCE_V8, source_v8, true },	     { CODE_SOURCE_UNWIND, source_unwind, true },
};

/* Is the last node from a source of @kind, and behind the first @before? */
static bool has_added(const struct code_names *names, uint32_t before, enum code_source kind)
{
	struct code_names_parts parts = code_names_parts(names);

	return parts.node_count > before && parts.nodes[parts.node_count - 1].source == kind;
}

static int read_all(const struct symbol_files *files, bool is_quick, struct code_names *names,
		    struct symbol_sources_result *ret)
{
	*ret = (struct symbol_sources_result){ .best = CODE_SOURCE_NONE };
	for (size_t i = 0; i < ARRAY_LEN(sources); i++) {
		uint32_t before = code_names_parts(names).node_count;
		int error;

		if ((is_quick && !sources[i].is_quick) || (sources[i].kind == CODE_SOURCE_UNWIND && !files->with_ranges))
			continue;
		error = sources[i].read(files, names);
		if (error == -ENOMEM)
			return error;
		if (error == -EBADMSG)
			ret->is_broken = true;
		if (ret->best == CODE_SOURCE_NONE && sources[i].kind != CODE_SOURCE_UNWIND &&
		    has_added(names, before, sources[i].kind))
			ret->best = sources[i].kind;
	}
	return code_names_finish(names);
}

int symbol_sources_read(const struct symbol_files *files, struct code_names *names, struct symbol_sources_result *ret)
{
	return read_all(files, false, names, ret);
}

int symbol_sources_read_quick(const struct symbol_files *files, struct code_names *names, struct symbol_sources_result *ret)
{
	return read_all(files, true, names, ret);
}
