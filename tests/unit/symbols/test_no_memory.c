/* SPDX-License-Identifier: Apache-2.0 */
/* Names of code for want of memory at every place: of a program's file, of its index, of generated code, of scripts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "symbols/find/symbol_files.h"
#include "symbols/index/cache.h"
#include "symbols/jit/jitdump.h"
#include "symbols/jit/perf_map.h"
#include "symbols/script/block_names.h"
#include "symbols/script/script.h"
#include "symbols/symbols.h"
#include "tests/unit/failing_memory.h"
#include "tests/unit/symbols/jitdump_bytes.h"

static char folder[] = "/tmp/hearth-names-XXXXXX";

/* --- a program --- */

#define PROGRAM                                                                                                 \
	"struct pair { int a, b; };\nstatic inline int sum(const struct pair *p) { return p->a + p->b; }\n"     \
	"static inline int twice(const struct pair *p) { return sum(p) * sum(p); }\n"                           \
	"__attribute__((noinline)) int work(struct pair *p) { p->a++; return twice(p); }\n#include <stdio.h>\n" \
	"int main(int argc, char **argv) { struct pair p = { argc, argv[0][0] }; printf(\"%d\", work(&p)); return 0; }\n"

static int make_program(void **state)
{
	char path[64], command[256];
	FILE *f;

	(void)state;
	if (!mkdtemp(folder))
		return -1;
	snprintf(path, sizeof(path), "%s/a.c", folder);
	f = fopen(path, "w");
	if (!f || fputs(PROGRAM, f) < 0 || fclose(f))
		return -1;
	snprintf(command, sizeof(command),
		 "cd %s && gcc -O2 -g -o program a.c && gcc -O2 -g -gsplit-dwarf -o split a.c && gcc -O2 -s -o bare a.c",
		 folder);
	return system(command);
}

static int remove_program(void **state)
{
	char command[64];

	(void)state;
	snprintf(command, sizeof(command), "rm -r %s", folder);
	return system(command);
}

static int open_program(const char *name)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	return fd;
}

/* The index of a program with all of its sources, and what it tells of each address of .text. */
static int index_of(const char *name, struct buf *out)
{
	AUTO_CLOSE int fd = open_program(name);
	struct symbol_files files = { 0 };
	struct symbol_index *x = NULL;
	struct buf bytes = BUF_EMPTY;
	char path[64];
	int error;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	error = symbol_files_open(fd, path, NULL, NULL, &files);
	files.with_ranges = true;
	if (!error)
		error = symbol_index_build(&files, "0123456789abcdef", &bytes);
	if (!error)
		error = symbol_index_open(bytes.data, bytes.len, &x);
	for (uint64_t addr = 0x1000; !error && addr < 0x1400; addr += 4) {
		struct code_answer answer;

		error = symbol_index_find(x, addr, &answer);
		error = error == -ENOENT ? 0 : error;
		for (uint32_t i = 0; !error && i < answer.frame_count; i++) {
			const struct code_frame *frame = &answer.frames[i];

			buf_printf(out, "%d:", (int)frame->line);
			if (frame->function != CODE_NONE)
				error = symbol_index_name(x, frame->function, out);
			if (!error && frame->file != CODE_NONE)
				error = symbol_index_path(x, frame->file, out);
		}
	}
	symbol_index_close(x);
	symbol_files_close(&files);
	buf_fini(&bytes);
	return error;
}

static int program(struct buf *out)
{
	return index_of("program", out);
}

static int split_program(struct buf *out)
{
	return index_of("split", out);
}

static int bare_program(struct buf *out)
{
	return index_of("bare", out);
}

static int quick(struct buf *out)
{
	struct symbol_query queries[256];
	AUTO_CLOSE int fd = open_program("program");
	struct buf names = BUF_EMPTY;
	int error;

	for (uint32_t i = 0; i < ARRAY_LEN(queries); i++)
		queries[i] = (struct symbol_query){ .addr = 0x1000 + 4 * i };
	error = symbols_resolve_elf(fd, queries, ARRAY_LEN(queries), &names);
	if (!error)
		error = names.failed ? -ENOMEM : 0;
	for (uint32_t i = 0; !error && i < ARRAY_LEN(queries); i++)
		buf_append(out, names.data + queries[i].name_off, queries[i].name_len);
	buf_fini(&names);
	return error;
}

/* --- the cache of indexes --- */

static int cached(struct buf *out)
{
	struct build_ids ids = { .gnu = "00112233445566778899aabbccddeeff00112233",
				 .htlhash = "00112233445566778899aabbccddeeff" };
	struct symbol_index_head head = { .best = CODE_SOURCE_SYMTAB };
	struct code_names *names = code_names_new(NULL, 0);
	struct symbol_cache_entry entry = { 0 };
	struct symbol_cache_pruned pruned;
	struct symbol_cache *cache = NULL;
	struct buf bytes = BUF_EMPTY;
	struct symbol_cache_key key;
	int error = names ? 0 : -ENOMEM;
	char path[64];

	snprintf(path, sizeof(path), "%s/cache", folder);
	symbol_cache_key(&ids, 0, &key);
	memcpy(head.build_id, key.build_id, sizeof(head.build_id));
	if (!error) {
		code_names_begin(names, CODE_SOURCE_SYMTAB);
		code_names_range(names, 16, 32,
				 code_names_node(names, CODE_NONE, code_names_function(names, "f", 1, 0), CODE_NONE, 0, 0));
		error = code_names_finish(names);
	}
	error = error ? error : symbol_index_write(names, &head, &bytes);
	error = error ? error : symbol_cache_open(path, 1 << 20, &cache);
	error = error ? error : symbol_cache_add(cache, &key, bytes.data, bytes.len);
	error = error ? error : symbol_cache_find(cache, &key, &entry);
	if (!error) {
		buf_printf(out, "%zu bytes", entry.file.len_bytes);
		symbol_cache_entry_close(&entry);
		error = symbol_cache_prune(cache, &pruned);
	}
	if (!error)
		error = symbol_cache_remove(cache, &key);
	symbol_cache_close(cache);
	code_names_free(names);
	buf_fini(&bytes);
	return error;
}

/* --- generated code --- */

/* Tells what stands at some addresses. */
static void tell_code(const struct jit_code *code, struct buf *out)
{
	struct jit_answer a;

	for (uint64_t addr = 0x1000; addr < 0x8000; addr += 0x80)
		if (!jit_code_find(code, addr, UINT64_MAX, &a))
			buf_printf(out, "%.*s %.*s:%u\n", (int)a.name_len, a.name, (int)a.file_len, a.file, a.line);
}

static int dumped(struct buf *out)
{
	static const struct jitdump_line lines[] = { { 0x1000, 7, "/src/a.c" }, { 0x1080, 8, "b.c" } };
	int fd = memfd_create("dump", MFD_CLOEXEC);
	struct jit_code *code = jit_code_new();
	struct jitdump dump = { 0 };
	static uint8_t bytes[256];
	int error = code ? 0 : -ENOMEM;
	FILE *f = fdopen(dup(fd), "w");

	assert_non_null(f);
	jitdump_header(f, 62, 1, 1, 0);
	for (uint64_t i = 0; i < 20; i++) {
		char name[16];

		snprintf(name, sizeof(name), "f%d", (int)i);
		if (!i)
			jitdump_lines(f, 1, 0x1000, lines, ARRAY_LEN(lines));
		jitdump_load(f, 1, 10 + i, 0x1000 + 0x100 * i, bytes, sizeof(bytes), i, name);
	}
	jitdump_load(f, 1, 50, 0x1400, bytes, sizeof(bytes), 30, "in the place of f4");
	jitdump_move(f, 1, 60, 0x1500, 0x7000, sizeof(bytes), 5);
	fclose(f);
	if (!error)
		error = jitdump_read(&dump, fd, 1000, UINT64_MAX, code);
	if (!error)
		error = jit_code_remove(code, 0x1600, 0x1700, 70);
	if (!error)
		tell_code(code, out);
	jitdump_fini(&dump);
	jit_code_free(code);
	close(fd);
	return error;
}

static int mapped(struct buf *out)
{
	int fd = memfd_create("map", MFD_CLOEXEC);
	struct jit_code *code = jit_code_new();
	int error = code ? 0 : -ENOMEM;
	struct perf_map map = { 0 };

	for (int i = 0; i < 100; i++)
		dprintf(fd, "%x 80 LazyCompile:*f%d /a.js:%d:1\n", 0x1000 + 0x80 * i, i, i + 1);
	if (!error)
		error = perf_map_read(&map, fd, 0, UINT64_MAX, code);
	if (!error)
		tell_code(code, out);
	jit_code_free(code);
	close(fd);
	return error;
}

/* --- scripts and pieces of code --- */

static int blocks(struct buf *out)
{
	struct block_names *n = block_names_new();
	struct block_line lines[BLOCK_NAMES_MAX_DEPTH];
	struct buf bytes = BUF_EMPTY;
	int error = n ? 0 : -ENOMEM;

	for (uint32_t i = 0; n && i < 200; i++) {
		char name[16];
		uint16_t function, scope;

		snprintf(name, sizeof(name), "f%u", i);
		function = block_names_function(n, name, strlen(name), "/a.c", 4, i);
		scope = block_names_scope(n, BLOCK_NAMES_NONE, function, i + 1);
		block_names_place(n, 8 * i, block_names_scope(n, scope, function, i + 2), 0);
	}
	if (n)
		error = block_names_write(n, &bytes);
	for (uint32_t place = 0; !error && place < 1600; place += 8) {
		uint32_t count = block_names_find(bytes.data, bytes.len, place, false, lines);

		for (uint32_t i = 0; i < count; i++)
			buf_printf(out, "%.*s:%u ", (int)lines[i].name_bytes, lines[i].name, lines[i].line);
	}
	block_names_free(n);
	buf_fini(&bytes);
	return error;
}

static int kernel(struct buf *out)
{
	struct kallsyms *k = NULL;
	const char *name, *module;
	char path[64];
	uint64_t start;
	FILE *f;
	int error;

	snprintf(path, sizeof(path), "%s/kallsyms", folder);
	f = fopen(path, "w");
	assert_non_null(f);
	for (int i = 0; i < 100; i++)
		fprintf(f, "ffffffff81%06x t function_%d%s\n", i * 64, i, i > 50 ? "\t[mod]" : "");
	fclose(f);
	error = kallsyms_new(path, &k);
	for (uint64_t i = 0; !error && i < 100; i++)
		if (!kallsyms_find(k, 0xffffffff81000000 + i * 64 + 3, &name, &module, &start))
			buf_printf(out, "%s %s\n", name, module);
	kallsyms_free(k);
	return error;
}

static const struct memory_scenario scenarios[] = {
	{ "a program's index", program, false },
	{ "the same, .dwo beside it", split_program, false },
	{ "without symbols", bare_program, false },
	{ "functions alone", quick, false },
	{ "the cache", cached, false },
	{ "a jitdump", dumped, false },
	{ "a perf map", mapped, false },
	{ "pieces of code", blocks, false },
	{ "the kernel", kernel, false },
};

static void test_scenarios(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(scenarios); i++)
		memory_fails_everywhere(&scenarios[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_scenarios) };

	return cmocka_run_group_tests(tests, make_program, remove_program);
}
