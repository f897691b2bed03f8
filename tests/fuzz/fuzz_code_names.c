/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions, ranges and lines in any order and overlap: the input is operations of four bytes. Whatever they are, an index
 * of the names says what the names say, and so do names of which only some were wanted.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "symbols/code/names.h"
#include "symbols/index/index.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX_NODES = 512 };

static struct code_names *tell(const uint8_t *data, size_t size, const uint64_t *wanted, size_t count)
{
	struct code_names *c = code_names_new(wanted, count);
	uint32_t nodes[MAX_NODES] = { CODE_NONE }, node_count = 1;
	int sources = 0;

	if (!c)
		return NULL;
	for (size_t i = 0; i + 4 <= size; i += 4) {
		const uint8_t *op = data + i;
		uint64_t addr = 0x100 + op[1] + (op[0] & 0x80 ? UINT64_MAX - 0x300 : 0);
		char name[2] = { (char)('a' + op[2] % 26), (char)('a' + op[3] % 26) };

		switch (op[0] & 7) {
		case 0:
			if (sources < CODE_SOURCE_MAX - 1)
				code_names_begin(c, (enum code_source)++ sources);
			node_count = 1; /* a tree is one source's */
			break;
		case 1:
		case 2:
			if (sources && node_count < MAX_NODES)
				nodes[node_count] = code_names_node(
					c, nodes[op[1] % node_count], code_names_function(c, name, op[0] & 8 ? 0 : 2, op[3]),
					op[0] & 16 ? CODE_NONE : code_names_file(c, name, 1), op[2], op[3]);
			node_count += sources && node_count < MAX_NODES;
			break;
		case 3:
		case 4:
			if (sources)
				code_names_range(c, addr, addr + op[2] - (op[0] & 8 ? 10 : 0), nodes[op[3] % node_count]);
			break;
		default:
			if (sources)
				code_names_line(c, addr, op[0] & 8 ? CODE_NONE : code_names_file(c, name, 1), op[2], op[3]);
		}
	}
	if (code_names_finish(c))
		abort();
	return c;
}

static bool frames_equal(const struct code_frame *a, const struct code_frame *b)
{
	return a->line == b->line && a->column == b->column && (a->file == CODE_NONE) == (b->file == CODE_NONE) &&
	       (a->function == CODE_NONE) == (b->function == CODE_NONE);
}

static void compare_index(const struct code_names *c)
{
	struct symbol_index_head head = { .build_id = "ab" };
	struct buf bytes = BUF_EMPTY, text = BUF_EMPTY;
	struct symbol_index *x;

	if (symbol_index_write(c, &head, &bytes) || symbol_index_open(bytes.data, bytes.len, &x))
		abort();
	for (uint64_t i = 0; i < 0x500; i++) {
		uint64_t addr = i < 0x280 ? i : UINT64_MAX - (i - 0x280);
		struct code_answer a, b;
		int r = code_names_find(c, addr, &a);

		if (symbol_index_find(x, addr, &b) != r || a.frame_count != b.frame_count || a.start != b.start ||
		    a.source != b.source || a.decl_line != b.decl_line)
			abort();
		for (uint32_t f = 0; f < a.frame_count; f++) {
			size_t len;

			if (!frames_equal(&a.frames[f], &b.frames[f]))
				abort();
			if (a.frames[f].function == CODE_NONE)
				continue;
			buf_reset(&text);
			if (symbol_index_name(x, b.frames[f].function, &text) || text.len != 2 ||
			    memcmp(text.data, code_names_name(c, a.frames[f].function, &len), 2) != 0)
				abort();
		}
	}
	symbol_index_close(x);
	buf_fini(&bytes);
	buf_fini(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint64_t wanted[] = { 0x100, 0x101, 0x140, 0x180, 0x1ff, UINT64_MAX - 0x1f0, UINT64_MAX - 0x1ef };
	struct code_names *all = tell(data, size, NULL, 0), *some = tell(data, size, wanted, ARRAY_LEN(wanted));

	if (!all || !some)
		abort();
	compare_index(all);
	for (size_t i = 0; i < ARRAY_LEN(wanted); i++) {
		struct code_answer a, b;
		int r = code_names_find(all, wanted[i], &a);

		/* A line may be missing that a later source knows than the one that names it; and where an inlined call
		 * reaches out of its function, the function's range. Of two ranges of a function that overlap the later one
		 * may have no start of its own. */
		if (code_names_find(some, wanted[i], &b) != r || a.source != b.source || a.decl_line != b.decl_line ||
		    (r == 0 && (a.frame_count != b.frame_count || (a.frame_count == 1 && b.start > a.start))))
			abort();
	}
	code_names_free(all);
	code_names_free(some);
	return 0;
}
