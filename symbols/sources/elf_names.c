/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of functions for a batch of addresses of one file, at once: the quick sources are read for these addresses alone,
 * and nothing of them stays. Text is appended to the caller's buffer. One thread a call.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "symbols/elf_image.h"
#include "symbols/code/source.h"
#include "symbols/sources/symbol_image.h"
#include "symbols/symbols.h"

static void names_free(struct code_names **c)
{
	code_names_free(*c);
}

static int compare_queries(const void *a, const void *b)
{
	const struct symbol_query *x = *(struct symbol_query *const *)a, *y = *(struct symbol_query *const *)b;

	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

/* The name of @function, as it is and demangled, to @names; where it is to @q. */
static int answer(const struct code_names *c, uint32_t function, struct symbol_query *q, struct buf *names)
{
	size_t raw_len, start = names->len, len;
	const char *raw = code_names_name(c, function, &raw_len);

	symbols_demangle(raw, raw_len, names);
	len = names->len - start;
	if (!names->failed && (len != raw_len || memcmp(names->data + start, raw, len) != 0))
		buf_append(names, raw, raw_len);
	if (names->failed || names->len > UINT32_MAX)
		return -ENOMEM;
	q->name_off = (uint32_t)start;
	q->name_len = (uint32_t)len;
	q->raw_off = (uint32_t)(start + len);
	q->raw_len = (uint32_t)(names->len - start - len);
	return 0;
}

/* @sorted by address, so that those which one function answers follow each other and share its text. */
static int answer_all(const struct code_names *c, struct symbol_query **sorted, size_t count, struct buf *names)
{
	uint32_t last = CODE_NONE;		/* the function of the answer before ... */
	const struct symbol_query *same = NULL; /* ... and the query */

	for (size_t i = 0; i < count; i++) {
		struct symbol_query *q = sorted[i];
		struct code_answer found;
		uint32_t function;

		if (code_names_find(c, q->addr, &found))
			continue;
		function = found.frames[found.frame_count - 1].function;
		if (function == last) {
			uint64_t addr = q->addr;

			*q = *same;
			q->addr = addr;
		} else if (answer(c, function, q, names)) {
			return -ENOMEM;
		}
		q->sym_addr = found.start;
		last = function;
		same = q;
	}
	return 0;
}

static int resolve(const struct symbol_files *files, struct symbol_query *queries, size_t count, struct buf *names)
{
	AUTO_FREE struct symbol_query **sorted = calloc(count, sizeof(*sorted));
	AUTO_FREE uint64_t *wanted = calloc(count, sizeof(*wanted));
	AUTO(names_free) struct code_names *c = NULL;
	struct symbol_sources_result result;

	if (!sorted || !wanted)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		sorted[i] = &queries[i];
	qsort(sorted, count, sizeof(struct symbol_query *), compare_queries);
	for (size_t i = 0; i < count; i++)
		wanted[i] = sorted[i]->addr;
	c = code_names_new(wanted, count);
	if (!c || symbol_sources_read_quick(files, c, &result))
		return -ENOMEM;
	return answer_all(c, sorted, count, names);
}

int symbols_resolve_elf(int fd, struct symbol_query *queries, size_t count, struct buf *names)
{
	struct symbol_files files = { 0 };
	struct elf_image im;
	int error;

	for (size_t i = 0; i < count; i++)
		queries[i] = (struct symbol_query){ .addr = queries[i].addr };
	error = symbol_image_map(fd, &files.program);
	if (error)
		return error == -ENOMEM ? error : -ENOEXEC;
	error = elf_image_open(files.program.data, files.program.len_bytes, &im);
	if (!error && count)
		error = resolve(&files, queries, count, names);
	symbol_image_unmap(&files.program);
	return error;
}
