/* SPDX-License-Identifier: Apache-2.0 */
/* The index of a file with functions of all kinds: named ones, inlined ones with lines, one of which only the range is
 * known. */
#ifndef HEARTH_TESTS_KNOWN_INDEX_H
#define HEARTH_TESTS_KNOWN_INDEX_H

#include <stdio.h>

#include "agent/files/file_index.h"
#include "base/buf.h"
#include "symbols/code/names.h"

enum { NAMED_BELOW = 0x8000 }; /* addresses that the index below names */

static struct buf index_bytes;
static struct file_index file_index;

/* fn_ADDRESS at each address below NAMED_BELOW; at INLINED a function of file and line, inlined into two others; at UNNAMED
 * a function of which only its range is known. */
enum { INLINED = 0x7000, UNNAMED = 0xa010 };

static int known_index_make(void)
{
	const struct symbol_index_head head = { .build_id = "a1", .best = CODE_SOURCE_DWARF };
	struct code_names *c = code_names_new(NULL, 0);
	uint32_t file, other, node;
	char name[32];

	code_names_begin(c, CODE_SOURCE_DWARF);
	for (uint64_t addr = 0; addr < NAMED_BELOW; addr++) {
		int len = snprintf(name, sizeof(name), "fn_%llx", (unsigned long long)addr);

		if (addr < INLINED || addr >= INLINED + 0x10)
			code_names_range(c, addr, addr + 1,
					 code_names_node(c, CODE_NONE, code_names_function(c, name, (size_t)len, 0),
							 CODE_NONE, 0, 0));
	}
	file = code_names_file(c, "/src/a.cc", 9);
	other = code_names_file(c, "/src/b.h", 8);
	node = code_names_node(c, CODE_NONE, code_names_function(c, "outer", 5, 100), CODE_NONE, 0, 0);
	code_names_range(c, INLINED, INLINED + 0x10, node);
	node = code_names_node(c, node, code_names_function(c, "_Z6middlei", 10, 50), file, 103, 7);
	code_names_range(c, INLINED, INLINED + 8, node);
	node = code_names_node(c, node, code_names_function(c, "inner", 5, 20), other, 52, 9);
	code_names_range(c, INLINED, INLINED + 4, node);
	code_names_line(c, INLINED, other, 21, 3);
	code_names_line(c, INLINED + 4, file, 53, 0);
	code_names_line(c, INLINED + 8, file, 104, 0);
	code_names_line(c, INLINED + 0x10, CODE_NONE, 0, 0);
	code_names_begin(c, CODE_SOURCE_UNWIND);
	code_names_range(c, UNNAMED, UNNAMED + 0x48,
			 code_names_node(c, CODE_NONE, code_names_function(c, "+48", 3, 0), CODE_NONE, 0, 0));
	buf_reset(&index_bytes);
	if (code_names_finish(c) || symbol_index_write(c, &head, &index_bytes) ||
	    symbol_index_open(index_bytes.data, index_bytes.len, &file_index.entry.index))
		return -1;
	code_names_free(c);
	file_index.state = FILE_INDEX_DONE;
	return 0;
}

#endif
