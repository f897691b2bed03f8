/* SPDX-License-Identifier: Apache-2.0 */
/* Names from standard input, one a line, demangled.   demangle short|full [hash] */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "symbols/demangle.h"

int main(int argc, char **argv)
{
	AUTO(buf_fini) struct buf out = BUF_EMPTY;
	AUTO_FREE char *line = NULL;
	size_t cap = 0;
	ssize_t len;

	if (argc < 2)
		return 2;
	symbols_set_demangling(strcmp(argv[1], "full") ? DEMANGLE_SHORT : DEMANGLE_FULL, argc > 2);
	while ((len = getline(&line, &cap, stdin)) > 0) {
		buf_reset(&out);
		symbols_demangle(line, (size_t)len - (line[len - 1] == '\n'), &out);
		puts(buf_text(&out));
	}
	return 0;
}
