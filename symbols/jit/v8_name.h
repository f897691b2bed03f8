/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names V8 gives to JavaScript code in perf maps and jitdumps: "JS:*foo /path/file.js:12:3" is function foo, optimized,
 * that begins at that line and column. Leaf module.
 */
#ifndef HEARTH_SYMBOLS_JIT_V8_NAME_H
#define HEARTH_SYMBOLS_JIT_V8_NAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct v8_name {
	const char *name; /* within the text, or a constant where the function has none */
	size_t name_len;
	const char *file; /* within the text; file_len 0: not told */
	size_t file_len;
	uint32_t line, column; /* where the function begins; 0: not told */
	bool is_optimized;
};

/* Whether @text is such a name and nothing else's: tag, colon, and the mark of V8's tier. Builtins and stubs are not. */
bool v8_name_parse(const char *text, size_t len, struct v8_name *ret);

#endif
