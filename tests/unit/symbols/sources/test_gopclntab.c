/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Go's function table against Go's own tools: every function that nm lists, and the places of thousands of instructions
 * against addr2line, in programs of two toolchains, stripped, position-independent and linked by the system's linker, with
 * and without section headers. Then small tables made by hand, sound and broken.
 */
#include <elf.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "symbols/sources/gopclntab.h"
#include "symbols/symbols.h"
#include "tests/unit/symbols/go_program.h"

enum { MANY = 1000, LINES = 3000 };

/* The first is the one whose symbol table knows the addresses of the second. */
static struct go_program programs[] = {
	{ .name = "plain", .go = NEW_GO, .options = "" },
	{ .name = "stripped", .go = NEW_GO, .options = "'-ldflags=-s -w'" },
	{ .name = "pie", .go = NEW_GO, .options = "-buildmode=pie" },
	{ .name = "external", .go = NEW_GO, .options = "-buildmode=pie -ldflags=-linkmode=external" },
	{ .name = "old", .go = OLD_GO, .options = "" },
	{ .name = "old_external", .go = OLD_GO, .options = "-buildmode=pie -ldflags=-linkmode=external" },
};
enum { PLAIN, STRIPPED };

static int build_all(void **state)
{
	(void)state;
	return go_programs_build(programs, ARRAY_LEN(programs));
}

static int remove_all(void **state)
{
	(void)state;
	return go_programs_remove(programs, ARRAY_LEN(programs));
}

static const struct go_program *symbols_of(const struct go_program *p)
{
	return p == &programs[STRIPPED] ? &programs[PLAIN] : p;
}

static void open_table(const struct go_program *p, struct gopclntab *t)
{
	assert_int_equal(gopclntab_open(p->image, p->len, t), 0);
	assert_true(t->function_count > MANY);
}

/* --- against go tool nm --- */

static size_t check_names(const struct go_program *p, const struct gopclntab *t)
{
	char command[128], line[4096], plain[2][2048];
	struct gopclntab_function fn = { 0 };
	uint64_t last = 0;
	size_t found = 0;
	FILE *nm;

	snprintf(command, sizeof(command), "go tool nm -n %s", symbols_of(p)->path);
	nm = popen(command, "r");
	assert_non_null(nm);
	while (fgets(line, sizeof(line), nm)) {
		char type, name[2048];
		uint64_t addr;
		uint32_t index;

		if (sscanf(line, "%lx %c %2047[^\n]", &addr, &type, name) != 3 || (type != 't' && type != 'T') ||
		    gopclntab_find(t, addr, &index))
			continue;
		assert_int_equal(gopclntab_function(t, index, &fn), 0);
		if (strcmp(name, "runtime.text") == 0 || strcmp(name, "runtime.etext") == 0)
			continue;
		go_plain_name(name, plain[0], sizeof(plain[0]));
		go_plain_name(fn.name, plain[1], sizeof(plain[1]));
		assert_int_equal(fn.entry, addr);
		assert_string_equal(plain[0], plain[1]);
		found += addr != last;
		last = addr;
	}
	assert_int_equal(pclose(nm), 0);
	return found;
}

static void test_names(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(programs); i++) {
		struct gopclntab t;

		if (!programs[i].path[0])
			continue;
		open_table(&programs[i], &t);
		assert_int_equal(check_names(&programs[i], &t), t.function_count);
	}
}

/* --- against go tool addr2line --- */

static void check_line(const struct gopclntab *t, uint64_t addr, const char *truth)
{
	struct gopclntab_function fn;
	const char *file;
	char text[1024];
	uint32_t index;
	int32_t line;
	size_t len;

	assert_int_equal(gopclntab_find(t, addr, &index), 0);
	assert_int_equal(gopclntab_function(t, index, &fn), 0);
	if (gopclntab_line(t, &fn, addr, &file, &len, &line)) {
		assert_string_equal(truth, ":-1"); /* between functions */
		return;
	}
	snprintf(text, sizeof(text), "%.*s:%d", (int)len, file, line);
	assert_string_equal(text, truth);
}

static void check_lines(const struct go_program *p, const struct gopclntab *t)
{
	struct gopclntab_function first, last;
	char command[192], line[4096];
	bool blind = false;
	uint64_t step;
	FILE *f;

	assert_int_equal(gopclntab_function(t, 0, &first), 0);
	assert_int_equal(gopclntab_function(t, t->function_count - 1, &last), 0);
	step = (last.entry - first.entry) / LINES;
	snprintf(command, sizeof(command),
		 "python3 -c 'for i in range(%d): print(hex(%lu + i * %lu))' | go tool addr2line %s", LINES, first.entry,
		 step, symbols_of(p)->path);
	f = popen(command, "r");
	assert_non_null(f);
	for (uint64_t i = 0; i < LINES; i++) {
		assert_non_null(fgets(line, sizeof(line), f)); /* the function, of inlined code the outer one */
		assert_non_null(fgets(line, sizeof(line), f));
		line[strcspn(line, "\n")] = 0;
		if (i == 0 && strcmp(line, "?:0") == 0) /* Go 1.19's tool and position-independent files */
			blind = true;
		if (blind)
			assert_string_equal(line, "?:0");
		else
			check_line(t, first.entry + i * step, line);
	}
	assert_int_equal(pclose(f), 0);
	if (blind)
		print_message("left out: %s go tool addr2line knows none of its addresses\n", p->name);
}

static void test_lines(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(programs); i++) {
		struct gopclntab t;

		if (!programs[i].path[0])
			continue;
		open_table(&programs[i], &t);
		check_lines(&programs[i], &t);
		if (!gopclntab_open_inlined(&t)) /* its calls end within the file */
			assert_true(t.inlined_len <= t.image_len - (size_t)(t.inlined - (const uint8_t *)t.image));
	}
}

/* --- finding it --- */

/* Without section headers the same table is found by its bytes. */
static void test_search(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(programs); i++) {
		struct go_program *p = &programs[i];
		struct gopclntab by_name, by_bytes;
		Elf64_Ehdr ehdr, none;

		if (!p->path[0])
			continue;
		open_table(p, &by_name);
		memcpy(&ehdr, p->image, sizeof(ehdr));
		none = ehdr;
		none.e_shoff = none.e_shnum = none.e_shstrndx = 0;
		memcpy(p->image, &none, sizeof(none));
		open_table(p, &by_bytes);
		memcpy(p->image, &ehdr, sizeof(ehdr));
		assert_ptr_equal(by_name.data, by_bytes.data);
		assert_int_equal(by_name.text, by_bytes.text);
		assert_ptr_equal(by_name.code, by_bytes.code);
	}
}

static void test_other_files(void **state)
{
	static const char *const paths[] = { "/proc/self/exe", "/bin/sh" };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
		AUTO_CLOSE int fd = open(paths[i], O_RDONLY | O_CLOEXEC);
		struct gopclntab t;
		struct stat st;
		void *map;

		assert_int_equal(fstat(fd, &st), 0);
		map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
		assert_ptr_not_equal(map, MAP_FAILED);
		assert_int_equal(gopclntab_open(map, (size_t)st.st_size, &t), -ENODATA);
		munmap(map, (size_t)st.st_size);
	}
}

/* --- names of a stripped file --- */

static void test_resolve_stripped(void **state)
{
	struct symbol_query ours[MANY], truth[MANY];
	struct buf our_names = BUF_EMPTY, true_names = BUF_EMPTY;
	AUTO_CLOSE int stripped = -1;
	AUTO_CLOSE int plain = -1;
	struct gopclntab t;
	size_t same = 0;

	(void)state;
	if (!programs[PLAIN].path[0])
		skip();
	open_table(&programs[PLAIN], &t);
	for (uint32_t i = 0; i < MANY; i++) {
		struct gopclntab_function fn;

		assert_int_equal(gopclntab_function(&t, i, &fn), 0);
		/* out of order, in the middle and at both ends; some functions twice */
		ours[(i * 7) % MANY].addr = truth[(i * 7) % MANY].addr = fn.entry + (i % 3 == 0 ? 0 : i % 3);
	}
	stripped = open(programs[STRIPPED].path, O_RDONLY | O_CLOEXEC);
	plain = open(programs[PLAIN].path, O_RDONLY | O_CLOEXEC);
	assert_int_equal(symbols_resolve_elf(stripped, ours, MANY, &our_names), 0);
	assert_int_equal(symbols_resolve_elf(plain, truth, MANY, &true_names), 0);
	for (size_t i = 0; i < MANY; i++) {
		char name[2][2048], text[2048];

		if (!truth[i].name_len) /* behind the end of a function of two bytes */
			continue;
		snprintf(text, sizeof(text), "%.*s", (int)ours[i].name_len, (char *)our_names.data + ours[i].name_off);
		go_plain_name(text, name[0], sizeof(name[0]));
		snprintf(text, sizeof(text), "%.*s", (int)truth[i].name_len, (char *)true_names.data + truth[i].name_off);
		go_plain_name(text, name[1], sizeof(name[1]));
		assert_string_equal(name[0], name[1]);
		assert_int_equal(ours[i].sym_addr, truth[i].sym_addr);
		assert_int_equal(ours[i].raw_len, 0);
		same++;
	}
	assert_true(same > MANY * 9 / 10);
	buf_fini(&our_names);
	buf_fini(&true_names);
}

/* --- made by hand --- */

enum {
	CODE_ADDR = 0x1000,
	TABLE_ADDR = 0x2000,
	TABLE_OFF = 0x100, /* in the file */
	CODE_OFF = 0x400,
	FILE_BYTES = 0x500,
	NAMES = 72,
	FILES = 88,
	UNITS = 104,
	VALUES = 112,
	FUNCTIONS = 144,
};

struct small {
	uint8_t bytes[FILE_BYTES];
};

static void put(struct small *s, size_t off, const void *data, size_t len)
{
	memcpy(s->bytes + TABLE_OFF + off, data, len);
}

static void put_u32(struct small *s, size_t off, uint32_t value)
{
	put(s, off, &value, 4);
}

/* Two functions, "a" with 16 bytes and "bc" with 32, the second with a frame of 8 from its 2nd to its 30th byte. */
static void make_small(struct small *s)
{
	Elf64_Ehdr ehdr = {
		.e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
		.e_type = ET_EXEC,
		.e_machine = EM_X86_64,
		.e_phoff = sizeof(Elf64_Ehdr),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = 3,
	};
	Elf64_Phdr segments[] = {
		{ .p_type = PT_LOAD, .p_flags = PF_R, .p_offset = TABLE_OFF, .p_vaddr = TABLE_ADDR, .p_filesz = 0x300 },
		{ .p_type = PT_LOAD, .p_flags = PF_X, .p_offset = CODE_OFF, .p_vaddr = CODE_ADDR, .p_filesz = 0x100 },
		{ .p_type = PT_NOTE, .p_offset = TABLE_OFF + 0x200, .p_filesz = 20 },
	};
	const uint64_t header[] = { 0x08010000fffffff1, 2, 1, CODE_ADDR, NAMES, UNITS, FILES, VALUES, FUNCTIONS };
	static const uint8_t values[] = { 0,
					  /* at 1: 0 x2, 8 x28, 0 x2 */ 2,
					  2,
					  16,
					  28,
					  15,
					  2,
					  0,
					  /* at 8: 7 x32 */ 16,
					  32,
					  0,
					  /* at 11: 0 x32 */ 2,
					  32,
					  0 };
	const uint32_t a = 24, bc = 24 + 44;

	memset(s, 0, sizeof(*s));
	memcpy(s->bytes, &ehdr, sizeof(ehdr));
	memcpy(s->bytes + sizeof(ehdr), segments, sizeof(segments));
	put(s, 0, header, sizeof(header));
	put(s, NAMES, "\0a\0bc", 6);
	put(s, FILES, "\0some.go", 9);
	put_u32(s, UNITS, 1);
	put(s, VALUES, values, sizeof(values));
	put(s, FUNCTIONS, (uint32_t[]){ 0, a, 16, bc, 48 }, 20);
	put_u32(s, FUNCTIONS + a + 4, 1);
	put_u32(s, FUNCTIONS + bc, 16);
	put_u32(s, FUNCTIONS + bc + 4, 3);
	put(s, FUNCTIONS + bc + 16, (uint32_t[]){ 1, 11, 8 }, 12);
	s->bytes[TABLE_OFF + FUNCTIONS + bc + 41] = GOPCLNTAB_TOP_FRAME;
	put(s, 0x200, "\4\0\0\0\4\0\0\0\4\0\0\0Go\0\0abcd", 20);
}

static void test_small(void **state)
{
	static const struct {
		uint64_t start, end;
		int32_t value;
	} truth[] = { { 0x1010, 0x1012, 0 }, { 0x1012, 0x102e, 8 }, { 0x102e, 0x1030, 0 } };
	struct gopclntab_values it;
	struct gopclntab_function fn;
	struct gopclntab t;
	struct small s;
	const char *file;
	uint32_t index;
	size_t len;
	int32_t line;

	(void)state;
	make_small(&s);
	assert_int_equal(gopclntab_open(&s, sizeof(s), &t), 0);
	assert_int_equal(t.function_count, 2);
	assert_int_equal(gopclntab_find(&t, CODE_ADDR - 1, &index), -ENOENT);
	assert_int_equal(gopclntab_find(&t, CODE_ADDR + 48, &index), -ENOENT);
	assert_int_equal(gopclntab_find(&t, CODE_ADDR + 15, &index), 0);
	assert_int_equal(index, 0);
	assert_int_equal(gopclntab_find(&t, CODE_ADDR + 47, &index), 0);
	assert_int_equal(index, 1);
	assert_int_equal(gopclntab_function(&t, 2, &fn), -EBADMSG);
	assert_int_equal(gopclntab_function(&t, 1, &fn), 0);
	assert_string_equal(fn.name, "bc");
	assert_int_equal(fn.flags, GOPCLNTAB_TOP_FRAME);
	gopclntab_values_init(&t, &fn, fn.sp_values, &it);
	for (size_t i = 0; i < ARRAY_LEN(truth); i++) {
		uint64_t start, end;
		int32_t value;

		assert_true(gopclntab_values_next(&it, &start, &end, &value));
		assert_true(start == truth[i].start && end == truth[i].end && value == truth[i].value);
	}
	assert_false(gopclntab_values_next(&it, &(uint64_t){ 0 }, &(uint64_t){ 0 }, &line));
	assert_int_equal(gopclntab_line(&t, &fn, 0x1011, &file, &len, &line), 0);
	assert_string_equal(file, "some.go");
	assert_int_equal(line, 7);
}

/* One word changed: what does not hold together is not opened, or the function says so. */
static void test_broken(void **state)
{
	static const struct {
		uint32_t off, value;
		int open, function;
	} cases[] = {
		{ 0, 0xfffffffb, -ENODATA, 0 },		     /* Go 1.2 */
		{ 4, 0x04010000, -ENODATA, 0 },		     /* 32-bit */
		{ 8, 0, -ENODATA, 0 },			     /* no functions */
		{ 8, 0x7fffffff, -ENODATA, 0 },		     /* too many */
		{ 24, 0x9000, -ENODATA, 0 },		     /* code that is not there */
		{ 24, TABLE_ADDR, -ENODATA, 0 },	     /* data, not code */
		{ 32, 0x7fffffff, -ENODATA, 0 },	     /* names behind the end */
		{ 68, 1, -ENODATA, 0 },			     /* functions far behind it */
		{ FUNCTIONS + 16, 0x101, -ENODATA, 0 },	     /* last function longer than the code */
		{ FUNCTIONS + 12, 0xfffffff0, 0, -EBADMSG }, /* function's data behind the end */
		{ FUNCTIONS + 8, 48, 0, -EBADMSG },	     /* function of no length */
		{ FUNCTIONS + 68 + 4, 0x2ff, 0, -EBADMSG },  /* name behind the end */
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct gopclntab_function fn;
		struct gopclntab t;
		struct small s;

		make_small(&s);
		put_u32(&s, cases[i].off, cases[i].value);
		assert_int_equal(gopclntab_open(&s, sizeof(s), &t), cases[i].open);
		if (cases[i].open == 0)
			assert_int_equal(gopclntab_function(&t, 1, &fn), cases[i].function);
	}
}

/* The lists behind a function's head end with the table: the last one that fits is read, the next is not believed. */
static void test_lists_at_end(void **state)
{
	enum { BC = FUNCTIONS + 24 + 44, LISTS = BC + 44, TABLE_BYTES = 0x300, LAST = (TABLE_BYTES - LISTS) / 4 - 1 };
	struct gopclntab_function fn;
	struct gopclntab t;
	struct small s;

	(void)state;
	make_small(&s);
	s.bytes[TABLE_OFF + LISTS - 1] = 4; /* so much data: the inlined calls are the last */
	put_u32(&s, LISTS + 4 * 2, 4242);
	put_u32(&s, LISTS + 4 * LAST, 77);
	put_u32(&s, BC + 28, LAST - 3);
	assert_int_equal(gopclntab_open(&s, sizeof(s), &t), 0);
	assert_int_equal(t.len, TABLE_BYTES);
	assert_int_equal(gopclntab_function(&t, 1, &fn), 0);
	assert_int_equal(fn.inlined, 77);
	assert_int_equal(fn.inlined_values, 4242);
	put_u32(&s, BC + 28, LAST - 2);
	assert_int_equal(gopclntab_function(&t, 1, &fn), 0);
	assert_int_equal(fn.inlined, UINT32_MAX);
	put_u32(&s, BC + 28, UINT32_MAX);
	assert_int_equal(gopclntab_function(&t, 1, &fn), 0);
	assert_int_equal(fn.inlined, UINT32_MAX);
	put_u32(&s, BC + 28, 2); /* too few values to tell the inlined ones */
	assert_int_equal(gopclntab_function(&t, 1, &fn), 0);
	assert_int_equal(fn.inlined, UINT32_MAX);
	put_u32(&s, BC + 28, 3);
	s.bytes[TABLE_OFF + LISTS - 1] = 3; /* too little data */
	assert_int_equal(gopclntab_function(&t, 1, &fn), 0);
	assert_int_equal(fn.inlined, UINT32_MAX);
	s.bytes[TABLE_OFF + LISTS - 1] = 4;
	assert_int_equal(gopclntab_function(&t, 1, &fn), 0);
	assert_int_equal(fn.inlined_values, 4242);
}

/* Cut anywhere, it is refused or read within its bounds (the sanitizers watch). */
static void test_cut(void **state)
{
	struct small s;

	(void)state;
	make_small(&s);
	for (size_t len = 0; len < sizeof(s); len++) {
		AUTO_FREE uint8_t *copy = malloc(len + 1);
		struct gopclntab_function fn;
		struct gopclntab t;

		assert_non_null(copy);
		memcpy(copy, &s, len);
		if (gopclntab_open(copy, len, &t) == 0)
			for (uint32_t i = 0; i < t.function_count; i++)
				gopclntab_function(&t, i, &fn);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_search),
		cmocka_unit_test(test_other_files),
		cmocka_unit_test(test_resolve_stripped),
		cmocka_unit_test(test_small),
		cmocka_unit_test(test_broken),
		cmocka_unit_test(test_lists_at_end),
		cmocka_unit_test(test_cut),
	};

	return cmocka_run_group_tests(tests, build_all, remove_all);
}
