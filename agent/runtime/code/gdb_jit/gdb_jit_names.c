/* SPDX-License-Identifier: Apache-2.0 */
/* Functions, lines and inlined calls of a registered file, by its symbols and DWARF, as of any file. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/runtime/code/gdb_jit/gdb_jit.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "symbols/code/names_parts.h"
#include "symbols/code/source.h"
#include "symbols/demangle.h"

struct naming {
	struct code_names *from;
	const struct code_block *block;
	struct block_names *to;
	struct buf text;
};

static void naming_fini(struct naming *n)
{
	code_names_free(n->from);
	buf_fini(&n->text);
}

/* Numba marks each version of a function by tags, with a digest of the compiler's settings: name[abi:v1][abi:c8t...]. They
 * differ from run to run. */
static size_t cut_tags(const char *name, size_t len)
{
	static const char mark[] = "[abi:v";
	const char *tag = memmem(name, len, mark, sizeof(mark) - 1);

	if (!tag || name[len - 1] != ']' || tag + sizeof(mark) > name + len || tag[sizeof(mark) - 1] < '0' ||
	    tag[sizeof(mark) - 1] > '9')
		return len;
	return (size_t)(tag - name);
}

static uint16_t function_of(struct naming *n, const struct code_frame *frame, uint32_t decl_line)
{
	size_t name_len, path_len = 0;
	const char *name = code_names_name(n->from, frame->function, &name_len), *path = "";

	if (frame->file != CODE_NONE)
		path = code_names_path(n->from, frame->file, &path_len);
	buf_reset(&n->text);
	symbols_demangle(name, name_len, &n->text);
	if (!n->text.len || n->text.failed)
		return BLOCK_NAMES_NONE;
	return block_names_function(n->to, (const char *)n->text.data, cut_tags((const char *)n->text.data, n->text.len),
				    path, path_len, decl_line);
}

/* The scope of the innermost function of @answer; BLOCK_NAMES_NONE: there is none. */
static uint16_t scope_of(struct naming *n, const struct code_answer *answer)
{
	uint16_t scope = BLOCK_NAMES_NONE;

	for (uint32_t i = answer->frame_count; i-- > 0;) {
		const struct code_frame *frame = &answer->frames[i];
		uint16_t function = function_of(n, frame, i ? 0 : answer->decl_line);

		if (function != BLOCK_NAMES_NONE)
			scope = block_names_scope(n->to, scope, function, frame->line);
	}
	return scope;
}

static void place(struct naming *n, uint64_t addr)
{
	struct code_answer answer;
	uint16_t scope = code_names_find(n->from, addr, &answer) ? BLOCK_NAMES_NONE : scope_of(n, &answer);

	block_names_place(n->to, (uint32_t)(addr - n->block->start), scope, 0);
}

/* Places each address of the block at which one of two runs of steps begins. */
static void place_steps(struct naming *n, const struct code_steps *a, const struct code_steps *b)
{
	size_t i = 0, k = 0;

	place(n, n->block->start);
	while (i < a->count || k < b->count) {
		uint64_t x = i < a->count ? a->data[i].addr : UINT64_MAX, y = k < b->count ? b->data[k].addr : UINT64_MAX;
		uint64_t addr = x < y ? x : y;

		i += x == addr && i < a->count;
		k += y == addr && k < b->count;
		if (addr > n->block->start && addr < n->block->end)
			place(n, addr);
	}
}

int gdb_jit_names(void *state, struct code_memory *m, const struct code_block *b, struct block_names *n)
{
	AUTO(naming_fini) struct naming naming = { .block = b, .to = n };
	struct symbol_files files = { .program = { .len_bytes = b->own[GDB_JIT_OWN_BYTES] } };
	struct symbol_sources_result result;
	struct code_names_parts parts;
	AUTO_FREE uint8_t *image = NULL;
	int error;

	(void)state;
	if (b->kind == GDB_JIT_NONE)
		return -ENODATA;
	image = gdb_jit_image_read(m, b->own[GDB_JIT_OWN_IMAGE], b->own[GDB_JIT_OWN_BYTES]);
	if (!image)
		return m->is_spent ? -EDQUOT : -EFAULT;
	files.program.data = image;
	naming.from = code_names_new(NULL, 0);
	error = naming.from ? symbol_sources_read(&files, naming.from, &result) : -ENOMEM;
	if (error)
		return error;
	parts = code_names_parts(naming.from);
	place_steps(&naming, parts.functions, parts.lines);
	return 0;
}
