/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names against what nm says of this program, of the C library (dynamic symbols only) and of freshly compiled C, C++ and
 * Rust programs; the order among several names against symbols written by hand; and damaged files.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "symbols/symbols.h"

/* --- the rules, on symbols written by hand --- */

__asm__(".pushsection .text.hand_symbols,\"ax\",@progbits\n"
	".balign 16\n"
	".globl hand_first\n"
	"hand_first:\n"
	".type local_alias, @function\n"
	"local_alias:\n"
	".weak weak_alias\n	.type weak_alias, @function\n"
	"weak_alias:\n"
	".globl long_global_alias\n	.type long_global_alias, @function\n"
	"long_global_alias:\n"
	".globl global_alias\n	.type global_alias, @function\n"
	"global_alias:\n"
	".globl short_size\n	.type short_size, @function\n"
	"short_size: .skip 16, 0x90\n"
	".size local_alias, 16\n .size weak_alias, 16\n .size global_alias, 16\n .size long_global_alias, 16\n"
	".size short_size, 8\n"
	".skip 16, 0x90\n" /* +16: beyond every size, before the next symbol */
	".type nested, @function\n"
	"nested: .skip 8, 0x90\n" /* +32 */
	"inside: .skip 8, 0x90\n" /* +40: a label without size inside a sized function */
	".size nested, 16\n"
	"bare: .skip 8, 0x90\n" /* +48: no size, reaches to the next */
	".type _ZN4hand7mangledEi, @function\n"
	"_ZN4hand7mangledEi: .skip 8, 0x90\n" /* +56 */
	".size _ZN4hand7mangledEi, 8\n"
	".type hand_object, @object\n"
	"hand_object: .skip 8, 0x90\n" /* +64: data among the code */
	".size hand_object, 8\n"
	"last_bare: .skip 8, 0x90\n"	    /* +72 */
	"\"versioned@V1\": .skip 8, 0x90\n" /* +80 */
	".popsection\n");
extern const char hand_first[];

/* Where this program was loaded. */
static uint64_t own_bias(void)
{
	extern const char __ehdr_start[];

	return (uintptr_t)__ehdr_start;
}

static void test_rules(void **state)
{
	static const struct {
		int offset;
		const char *name; /* NULL: none */
		int start;
	} cases[] = {
		{ 72, "last_bare", 72 },   { 0, "global_alias", 0 }, /* global, FUNC, longest, shortest name */
		{ 15, "global_alias", 0 }, { 16, NULL, 0 },	     { 31, NULL, 0 },	 { 32, "nested", 32 },
		{ 41, "nested", 32 },	   { 48, "bare", 48 },	     { 55, "bare", 48 }, { 60, "hand::mangled", 56 },
		{ 64, NULL, 0 },	   { 55, "bare", 48 },	    /* asked twice */
		{ 79, "last_bare", 72 },   { 87, "versioned", 80 }, /* to the end of the section */
	};
	AUTO_CLOSE int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct symbol_query queries[ARRAY_LEN(cases)];
	struct buf names = BUF_EMPTY;
	uint64_t base = (uintptr_t)hand_first - own_bias();

	(void)state;
	buf_puts(&names, "before");
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		queries[i] = (struct symbol_query){ .addr = base + (uint64_t)cases[i].offset, .name_len = 99 };
	assert_int_equal(symbols_resolve_elf(fd, queries, ARRAY_LEN(queries), &names), 0);
	assert_memory_equal(names.data, "before", 6);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const struct symbol_query *q = &queries[i];

		assert_int_equal(q->addr, base + (uint64_t)cases[i].offset);
		if (!cases[i].name) {
			assert_int_equal(q->name_len, 0);
			continue;
		}
		assert_int_equal(q->name_len, strlen(cases[i].name));
		assert_memory_equal(names.data + q->name_off, cases[i].name, q->name_len);
		assert_int_equal(q->sym_addr, base + (uint64_t)cases[i].start);
		if (strchr(cases[i].name, ':')) {
			assert_int_equal(q->raw_len, strlen("_ZN4hand7mangledEi"));
			assert_memory_equal(names.data + q->raw_off, "_ZN4hand7mangledEi", q->raw_len);
		} else {
			assert_int_equal(q->raw_len, 0);
		}
	}
	buf_fini(&names);
}

/* --- nm --- */

struct nm_symbol {
	uint64_t addr, size;
	char name[4096];
};

struct nm_table {
	struct nm_symbol *symbols;
	size_t count;
};

/* The code symbols with a size that `nm @options @path` tells of. */
static struct nm_table read_nm(const char *options, const char *path)
{
	struct nm_table t = { .symbols = calloc(100000, sizeof(struct nm_symbol)) };
	AUTO_FREE char *line = NULL;
	size_t cap = 0;
	char command[1024];
	FILE *f;

	assert_non_null(t.symbols);
	snprintf(command, sizeof(command), "LC_ALL=C nm --defined-only -S %s '%s' 2>/dev/null", options, path);
	f = popen(command, "r");
	assert_non_null(f);
	while (getline(&line, &cap, f) > 0 && t.count < 100000) {
		struct nm_symbol *s = &t.symbols[t.count];
		unsigned long addr, size;
		char type;

		if (sscanf(line, "%lx %lx %c %4095s", &addr, &size, &type, s->name) != 4 || !strchr("tTwWi", type) || !size)
			continue;
		if (addr < 0x1000) /* an offset into a thread's own data, which nm calls weak */
			continue;
		s->name[strcspn(s->name, "@")] = '\0';
		if (strcmp(s->name, "hand_object") == 0) /* nm goes by the section, we by the type */
			continue;
		s->addr = addr;
		s->size = size;
		t.count++;
	}
	pclose(f);
	return t;
}

static bool nm_has(const struct nm_table *t, uint64_t addr, const char *name, size_t len)
{
	for (size_t i = 0; i < t->count; i++) {
		const struct nm_symbol *s = &t->symbols[i];

		if (s->addr == addr && strlen(s->name) == len && memcmp(s->name, name, len) == 0)
			return true;
	}
	return false;
}

/* Asks for the first, middle and last byte of every symbol: the answer is it, one at the same place, or one that starts
 * nearer. */
static size_t check_against_nm(const char *path, const char *options)
{
	AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct nm_table t = read_nm(options, path);
	AUTO_FREE struct nm_symbol *symbols = t.symbols;
	AUTO_FREE struct symbol_query *queries = calloc(t.count * 3 + 1, sizeof(*queries));
	struct buf names = BUF_EMPTY;

	assert_non_null(queries);
	for (size_t i = 0; i < t.count; i++) {
		queries[3 * i].addr = symbols[i].addr + symbols[i].size - 1;
		queries[3 * i + 1].addr = symbols[i].addr;
		queries[3 * i + 2].addr = symbols[i].addr + symbols[i].size / 2;
	}
	assert_int_equal(symbols_resolve_elf(fd, queries, t.count * 3, &names), 0);
	for (size_t i = 0; i < t.count * 3; i++) {
		const struct symbol_query *q = &queries[i];
		bool has_raw = q->raw_len > 0;

		assert_true(q->name_len > 0);
		assert_true(q->sym_addr >= symbols[i / 3].addr && q->sym_addr <= q->addr);
		assert_true(nm_has(&t, q->sym_addr, (char *)names.data + (has_raw ? q->raw_off : q->name_off),
				   has_raw ? q->raw_len : q->name_len));
	}
	buf_fini(&names);
	return t.count;
}

static void test_own_symtab(void **state)
{
	char path[64];

	(void)state;
	snprintf(path, sizeof(path), "/proc/%d/exe", getpid()); /* nm has a "self" of its own */
	assert_true(check_against_nm(path, "") > 10);
}

static void test_libc_dynsym(void **state)
{
	static const char *const paths[] = { "/lib/x86_64-linux-gnu/libc.so.6", "/lib64/libc.so.6" };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
		if (access(paths[i], R_OK) == 0) {
			assert_true(check_against_nm(paths[i], "-D") > 1000);
			return;
		}
	}
	skip();
}

/* Compiles @source with @compiler; false when it is missing. */
static bool compile(const char *compiler, const char *suffix, const char *source, char *binary, size_t size)
{
	char command[1024], path[64] = "/tmp/test_elf_names.XXXXXX";
	FILE *f;

	snprintf(command, sizeof(command), "command -v %s >/dev/null", compiler);
	if (system(command))
		return false;
	assert_non_null(mkdtemp(path));
	snprintf(binary, size, "%s/program", path);
	snprintf(command, sizeof(command), "%s%s", binary, suffix);
	f = fopen(command, "w");
	assert_non_null(f);
	fputs(source, f);
	fclose(f);
	snprintf(command, sizeof(command), "%s -O -o %s %s%s && rm %s%s", compiler, binary, binary, suffix, binary, suffix);
	assert_int_equal(system(command), 0);
	return true;
}

static void test_languages(void **state)
{
	static const struct {
		const char *compiler, *suffix, *source, *expected;
	} cases[] = {
		{ "gcc", ".c",
		  "__attribute__((noinline)) int leaf(int x) { __asm__ volatile(\"\"); return x + 1; }\n"
		  "int main(int c, char **v) { (void)v; return leaf(c); }\n",
		  "leaf" },
		{ "g++", ".cc",
		  "namespace deep { template <class T> struct box { __attribute__((noinline)) T get(T x) const "
		  "{ __asm__ volatile(\"\"); return x + 1; } }; }\n"
		  "int main(int c, char **) { return deep::box<int>().get(c); }\n",
		  "deep::box<int>::get" },
		{ "rustc", ".rs",
		  "mod deep { #[inline(never)] pub fn leaf(x: usize) -> usize { x + std::env::args().count() } }\n"
		  "fn main() { println!(\"{}\", deep::leaf(2)); }\n",
		  "program::deep::leaf" },
		{ "rustc -C symbol-mangling-version=v0", ".rs",
		  "mod deep { #[inline(never)] pub fn leaf(x: usize) -> usize { x + std::env::args().count() } }\n"
		  "fn main() { println!(\"{}\", deep::leaf(2)); }\n",
		  "program::deep::leaf" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct buf names = BUF_EMPTY;
		struct symbol_query *queries;
		struct nm_table t;
		char path[256];
		bool found = false;
		int fd;

		if (!compile(cases[i].compiler, cases[i].suffix, cases[i].source, path, sizeof(path))) {
			print_message("left out: %s not here\n", cases[i].compiler);
			continue;
		}
		assert_true(check_against_nm(path, "") >= 2);
		t = read_nm("", path);
		queries = calloc(t.count, sizeof(*queries));
		assert_non_null(queries);
		for (size_t s = 0; s < t.count; s++)
			queries[s].addr = t.symbols[s].addr;
		fd = open(path, O_RDONLY | O_CLOEXEC);
		assert_int_equal(symbols_resolve_elf(fd, queries, t.count, &names), 0);
		for (size_t s = 0; s < t.count; s++)
			found |= queries[s].name_len == strlen(cases[i].expected) &&
				 memcmp(names.data + queries[s].name_off, cases[i].expected, queries[s].name_len) == 0;
		assert_true(found);
		close(fd);
		free(queries);
		free(t.symbols);
		buf_fini(&names);
		unlink(path);
		*strrchr(path, '/') = '\0';
		rmdir(path);
	}
}

/* --- damaged files --- */

static int resolve_bytes(const uint8_t *data, size_t len, uint32_t *named)
{
	AUTO_CLOSE int fd = memfd_create("damaged", MFD_CLOEXEC);
	struct symbol_query queries[] = { { .addr = 0 },
					  { .addr = (uintptr_t)hand_first - own_bias() },
					  { .addr = UINT64_MAX } };
	struct buf names = BUF_EMPTY;
	int r;

	assert_int_equal(write(fd, data, len), len);
	r = symbols_resolve_elf(fd, queries, ARRAY_LEN(queries), &names);
	*named = queries[1].name_len;
	buf_fini(&names);
	return r;
}

static uint8_t *read_self(size_t *len)
{
	AUTO_CLOSE int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct stat st;
	uint8_t *data;

	assert_int_equal(fstat(fd, &st), 0);
	*len = (size_t)st.st_size;
	data = malloc(*len);
	assert_non_null(data);
	assert_int_equal(read(fd, data, *len), *len);
	return data;
}

static Elf64_Shdr *section_of(uint8_t *data, uint32_t type)
{
	Elf64_Ehdr *ehdr = (Elf64_Ehdr *)data;
	Elf64_Shdr *sections = (Elf64_Shdr *)(data + ehdr->e_shoff);

	for (int i = 0; i < ehdr->e_shnum; i++)
		if (sections[i].sh_type == type)
			return &sections[i];
	fail_msg("no section of type %u", type);
	abort();
}

static void test_damaged(void **state)
{
	size_t len;
	AUTO_FREE uint8_t *data = read_self(&len);
	Elf64_Ehdr ehdr, *e = (Elf64_Ehdr *)data;
	Elf64_Shdr saved, *symtab = section_of(data, SHT_SYMTAB);
	Elf64_Sym *symbols = (Elf64_Sym *)(data + symtab->sh_offset);
	uint32_t named;

	(void)state;
	assert_int_equal(resolve_bytes(data, len, &named), 0);
	assert_int_equal(named, strlen("global_alias"));
	for (size_t i = 0; i <= 64; i++) /* cut short anywhere */
		resolve_bytes(data, len * i / 65, &named);
	assert_int_equal(resolve_bytes(data, 0, &named), -ENOEXEC);
	assert_int_equal(resolve_bytes((const uint8_t *)"#!/bin/sh\n", 10, &named), -ENOEXEC);

	ehdr = *e;
	e->e_shoff = len - 10;
	resolve_bytes(data, len, &named);
	assert_int_equal(named, 0);
	e->e_shoff = UINT64_MAX - 8;
	resolve_bytes(data, len, &named);
	assert_int_equal(named, 0);
	*e = ehdr;
	e->e_shnum = 0;
	resolve_bytes(data, len, &named);
	e->e_shnum = 65279;
	resolve_bytes(data, len, &named);
	*e = ehdr;
	e->e_ident[EI_CLASS] = ELFCLASS32;
	assert_int_equal(resolve_bytes(data, len, &named), -ENOEXEC);
	*e = ehdr;

	saved = *symtab;
	symtab->sh_entsize = 0;
	resolve_bytes(data, len, &named);
	*symtab = saved;
	symtab->sh_link = 60000;
	assert_int_equal(resolve_bytes(data, len, &named), 0);
	assert_true(named == 0 || named == strlen("global_alias")); /* the dynamic symbols may know it */
	*symtab = saved;
	symtab->sh_offset = len - 1;
	assert_int_equal(resolve_bytes(data, len, &named), 0);
	*symtab = saved;
	symtab->sh_size = UINT64_MAX;
	assert_int_equal(resolve_bytes(data, len, &named), 0);
	*symtab = saved;
	for (size_t i = 0; i < saved.sh_size / sizeof(*symbols); i++)
		symbols[i].st_name = UINT32_MAX - (uint32_t)i;
	assert_int_equal(resolve_bytes(data, len, &named), 0);
	for (size_t i = 0; i < saved.sh_size / sizeof(*symbols); i++)
		symbols[i] = (Elf64_Sym){
			.st_name = 1, .st_shndx = (uint16_t)(i * 7), .st_value = i, .st_size = UINT64_MAX - i
		};
	assert_int_equal(resolve_bytes(data, len, &named), 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rules),	  cmocka_unit_test(test_own_symtab), cmocka_unit_test(test_libc_dynsym),
		cmocka_unit_test(test_languages), cmocka_unit_test(test_damaged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
