/* SPDX-License-Identifier: Apache-2.0 */
/* Text files of the source tree inside the program. The Makefile says which objects depend on which files. */
#ifndef HEARTH_BASE_EMBED_H
#define HEARTH_BASE_EMBED_H

#include <stddef.h>

/* Declares @symbol[] and @symbol_end[]. The content of the file @path (from the top of the tree) stands between them. */
#define EMBED(symbol, path)                                                                                                 \
	__asm__(".pushsection .rodata\n.hidden " #symbol "\n.hidden " #symbol "_end\n.global " #symbol "\n.global " #symbol \
		"_end\n" #symbol ":\n.incbin \"" path "\"\n" #symbol "_end:\n.byte 0\n.popsection");                        \
	extern const char symbol[];                                                                                         \
	extern const char symbol##_end[]

#define EMBEDDED_LEN(symbol) ((size_t)(symbol##_end - (symbol)))

#endif
