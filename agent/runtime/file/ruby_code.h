/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Places in Ruby's code and data that have no symbols, as a stripped file has only those of functions for extensions: found
 * by what such functions do. For x86-64; on arm64 nothing is found. No state.
 */
#ifndef HEARTH_AGENT_RUNTIME_FILE_RUBY_CODE_H
#define HEARTH_AGENT_RUNTIME_FILE_RUBY_CODE_H

#include <stdbool.h>
#include <stdint.h>

struct elf_image;

struct ruby_code {
	struct {
		uint64_t start, end;
	} loop,		   /* rb_vm_exec(), which makes a tag and calls ... */
		body;	   /* ... vm_exec_core(), that runs instructions; 0: it is part of the loop, or not found */
	uint64_t symbols;  /* ruby_global_symbols.ids; 0: not found */
	bool has_own_jump; /* the tag's jump is the compiler's (__builtin_setjmp), not the C library's */
};

/* Looks at the code of the file @im. False: the loop was not found. */
bool ruby_code_read(const struct elf_image *im, struct ruby_code *ret);

#endif
