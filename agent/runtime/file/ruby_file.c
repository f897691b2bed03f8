/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ruby in an executable or libruby: its version, the layout of its structures by version, and the places in it that
 * ruby_code.h finds. The layouts were measured by offsetof in gdb on builds with DWARF (gdb -batch -ex 'p (int)&((struct
 * rb_iseq_constant_body *)0)->insns_info' libruby.so.4.0 and the like); those of 2.7 and 3.1 on Debian's headers
 * rb_mjit_min_header-*.h.
 */
#include <stdio.h>
#include <string.h>

#include "agent/runtime/file/ruby_code.h"
#include "agent/runtime/file/runtime_file.h"
#include "agent/runtime/file/thread_code.h"
#include "base/cleanup.h"
#include "bpf/runtime/ruby_state.h"
#include "symbols/elf_image.h"

enum {
	VERSION_2_7 = 0x0207,
	VERSION_3_0 = 0x0300,
	VERSION_3_1,
	VERSION_3_2,
	VERSION_3_3,
	VERSION_3_4,
	VERSION_4_0 = 0x0400,
};

/* offset is in the order of enum ruby_offset: machine.stack_start; size of rb_control_frame_t; insns_info's body, size,
 * succ_index_table, size of an entry; shift of first_lineno; text in struct RString; singleton bit; tLAST_OP_ID; struct
 * RClass's variables; classpath, permanent_classpath, attached_object (of RClass_and_rb_classext_t). */
static const struct runtime_layout layouts[] = {
	{ VERSION_2_7, RUBY_NAMES_TABLE, 0, { 152, 56, 120, 136, 144, 8, 1, 16, 12, 168 } },
	{ VERSION_3_0, RUBY_NAMES_TABLE, 0, { 0, 56, 120, 136, 144, 8, 1, 16, 12, 168 } },
	{ VERSION_3_1, RUBY_NAMES_TABLE, 0, { 0, 64, 120, 136, 144, 12, 1, 16, 12, 169 } },
	{ VERSION_3_2, RUBY_NAMES_FIRST, 0, { 0, 64, 112, 128, 136, 12, 0, 24, 12, 169, 32 } },
	{ VERSION_3_3, RUBY_NAMES_PATH, 0, { 0, 56, 112, 128, 136, 12, 0, 24, 12, 169, 0, 152, 149, 128 } },
	{ VERSION_3_4, RUBY_NAMES_PATH, 0, { 0, 56, 112, 128, 136, 12, 0, 24, 13, 170, 0, 152, 149, 128 } },
	{ VERSION_4_0, RUBY_NAMES_PATH, 0, { 0, 56, 112, 128, 136, 12, 0, 24, 13, 171, 0, 152, 149, 136 } },
};

/* In struct rb_vm_tag, behind two words, is what the jump needs: the compiler's five words (frame, address, stack), or
 * glibc's jmp_buf of 200 bytes (sysdeps/x86_64/jmpbuf-offsets.h: JB_PC), which musl's is like. */
enum { TAG_JUMP = 16, OWN_JUMP_PC = 8, OWN_JUMP_BYTES = 40, LIBC_JUMP_PC = 56, LIBC_JUMP_BYTES = 200 };

/* The version that the file tells: the text ruby_version. 0: none. */
static uint32_t find_version(const struct elf_image *im)
{
	struct runtime_symbol symbol;
	unsigned major, minor, micro;
	const uint8_t *bytes;
	char text[16] = "";

	if (runtime_file_symbol(im, "ruby_version", &symbol) || symbol.size_bytes >= sizeof(text))
		return 0;
	bytes = runtime_file_bytes(im, symbol.addr, symbol.size_bytes);
	if (!bytes)
		return 0;
	memcpy(text, bytes, symbol.size_bytes);
	return sscanf(text, "%2u.%2u.%3u", &major, &minor, &micro) == 3 ? major << 16 | minor << 8 | (micro & 0xff) : 0;
}

static void fill(struct chain_state *s, const struct runtime_layout *l, const struct ruby_code *code)
{
	s->runtime = RUNTIME_RUBY;
	s->style = l->style;
	s->type = code->loop.start;
	s->data[RUBY_SYMBOLS] = code->symbols;
	memcpy(s->offset, l->offset, sizeof(s->offset));
	s->offset[RUBY_LOOP_BYTES] = (uint16_t)(code->loop.end - code->loop.start);
	s->offset[RUBY_TAG_PC] = TAG_JUMP + (code->has_own_jump ? OWN_JUMP_PC : LIBC_JUMP_PC);
	s->offset[RUBY_TAG_PREVIOUS] = TAG_JUMP + (code->has_own_jump ? OWN_JUMP_BYTES : LIBC_JUMP_BYTES);
}

/* The way to the state of a thread: until 2.7 a variable for all, then one of the thread's own, which rb_errinfo() reads
 * first. */
static void find_thread(const struct elf_image *im, struct thread_locator *ret)
{
	struct runtime_symbol symbol;
	const uint8_t *code;

	if (!runtime_file_symbol(im, "ruby_current_execution_context_ptr", &symbol)) {
		*ret = (struct thread_locator){ .place = THREAD_GLOBAL, .addr = symbol.addr };
		return;
	}
	if (runtime_file_symbol(im, "rb_errinfo", &symbol))
		return;
	code = runtime_file_bytes(im, symbol.addr, symbol.size_bytes);
	if (!code || !thread_code_read(im->ehdr.e_machine, code, symbol.size_bytes, symbol.addr, ret))
		memset(ret, 0, sizeof(*ret));
}

bool ruby_file_read(const struct elf_image *im, struct runtime_file *ret)
{
	struct runtime_symbol symbol;
	const struct runtime_layout *l;
	struct ruby_code code;

	if (runtime_file_symbol(im, "ruby_api_version", &symbol) || runtime_file_symbol(im, "rb_iseq_eval", &symbol))
		return false;
	ret->kind = RUNTIME_FILE_CHAIN;
	ret->id = RUNTIME_RUBY;
	ret->version = find_version(im);
	l = runtime_layout_find(layouts, ARRAY_LEN(layouts), ret->version);
	if (!l || !ruby_code_read(im, &code) || code.loop.end - code.loop.start > UINT16_MAX)
		return true; /* of a version that is not known, or not as it is built: without a way to its threads */
	ret->loop.start = code.loop.start;
	ret->loop.end = code.loop.end;
	ret->body.start = code.body.start;
	ret->body.end = code.body.end;
	fill(&ret->state, l, &code);
	if (l->style == RUBY_NAMES_TABLE && !runtime_file_symbol(im, "rb_cObject", &symbol))
		ret->state.data[RUBY_OBJECT] = symbol.addr;
	find_thread(im, &ret->state.thread);
	return true;
}
