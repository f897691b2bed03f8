/* SPDX-License-Identifier: Apache-2.0 */
/* The facts that a file tells of Perl: files made by hand, with the symbols that Perl has, and the Perl that is installed.
 */
#include <elf.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/runtime/file/runtime_file.h"
#include "base/cleanup.h"
#include "bpf/runtime/perl_state.h"
#include "symbols/elf_image.h"
#include "symbols/sources/symbol_image.h"

/* From NAMES on: what a Perl with threads has not all of. */
enum { LOOP, FIRST, SIZE, OLD_SIZE, KEY, NEWS, NAMES, COP, STACK, TOP_ENV, START_ENV, PHASE, FILE_NAME, OP, SYMBOLS };
enum { LOOP_ADDR = 0x1200, LOOP_BYTES = 0x4c, FIRST_ADDR = 0x7000, KEY_ADDR = 0x7010, OP_ADDR = 0x8000 };

static const char *const names[SYMBOLS] = {
	"Perl_runops_standard", "PL_curinterp",	 "PL_interp_size", "PL_interp_size_5_18_0",
	"PL_thr_key",		"Perl_newSVpvz", "PL_op_name",	   "PL_curcop",
	"PL_curstackinfo",	"PL_top_env",	 "PL_start_env",   "PL_phase",
	"PL_origfilename",	"PL_op"
};

/* A file: all of it is loaded at address 0. */
struct made {
	Elf64_Ehdr head;
	Elf64_Phdr load;
	Elf64_Shdr sections[4]; /* none, .dynsym, .dynstr, names of sections */
	Elf64_Sym symbols[SYMBOLS];
	uint16_t sizes[2];
	char strings[512], section_names[32];
};

/* Where the variable @i of a Perl without threads is: the last one is the lowest. */
static uint64_t variable_at(unsigned i)
{
	return OP_ADDR + (OP - i) * 0x18;
}

/* Makes the file; the bits of @without say which symbols it lacks. */
static void make(struct made *m, uint16_t size, uint16_t old_size, unsigned without)
{
	static const char section_names[] = "\0.dynsym\0.dynstr\0.shstrtab";
	size_t at = 1;

	memset(m, 0, sizeof(*m));
	m->head = (Elf64_Ehdr){ .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
				.e_type = ET_DYN,
				.e_machine = EM_X86_64,
				.e_version = EV_CURRENT,
				.e_ehsize = sizeof(m->head),
				.e_phentsize = sizeof(m->load),
				.e_phnum = 1,
				.e_phoff = offsetof(struct made, load),
				.e_shentsize = sizeof(m->sections[0]),
				.e_shnum = 4,
				.e_shoff = offsetof(struct made, sections),
				.e_shstrndx = 3 };
	m->load = (Elf64_Phdr){ .p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_filesz = sizeof(*m), .p_memsz = sizeof(*m) };
	m->sections[1] = (Elf64_Shdr){ .sh_name = 1,
				       .sh_type = SHT_DYNSYM,
				       .sh_offset = offsetof(struct made, symbols),
				       .sh_size = sizeof(m->symbols) };
	m->sections[2] = (Elf64_Shdr){ .sh_name = 9,
				       .sh_type = SHT_STRTAB,
				       .sh_offset = offsetof(struct made, strings),
				       .sh_size = sizeof(m->strings) };
	m->sections[3] = (Elf64_Shdr){ .sh_name = 17,
				       .sh_type = SHT_STRTAB,
				       .sh_offset = offsetof(struct made, section_names),
				       .sh_size = sizeof(m->section_names) };
	memcpy(m->section_names, section_names, sizeof(section_names));
	m->sizes[0] = size;
	m->sizes[1] = old_size;
	for (unsigned i = 0; i < SYMBOLS; i++) {
		static const uint64_t addrs[SYMBOLS] = {
			LOOP_ADDR, FIRST_ADDR, offsetof(struct made, sizes[0]), offsetof(struct made, sizes[1]), KEY_ADDR,
			LOOP_ADDR, OP_ADDR
		};

		m->symbols[i] = (Elf64_Sym){ .st_name = (uint32_t)at,
					     .st_value = i < COP ? addrs[i] : variable_at(i),
					     .st_size = i == LOOP ? LOOP_BYTES : 2,
					     .st_shndx = without >> i & 1 ? SHN_UNDEF : 1 };
		at += (size_t)snprintf(m->strings + at, sizeof(m->strings) - at, "%s", names[i]) + 1;
	}
}

static struct runtime_file read_made(const struct made *m)
{
	struct runtime_file ret;
	struct elf_image im;

	memset(&ret, 0xff, sizeof(ret));
	assert_int_equal(elf_image_open(m, sizeof(*m), &im), 0);
	runtime_file_read(&im, &ret);
	return ret;
}

static void test_versions(void **state)
{
	static const struct {
		uint16_t size, old_size;
		uint32_t version;
		uint16_t env, phase, require;
		unsigned without;
	} cases[] = {
#ifdef __aarch64__
		{ 3888, 3008, 0x052000, 760, 2628, 342, 1 << NEWS }, { 3864, 2976, 0x052400, 744, 2608, 342, 1 << NEWS },
		{ 3864, 2720, 0x052800, 760, 2312, 345, 1 << NEWS }, { 3864, 2720, 0x052a00, 760, 2312, 349, 0 },
		{ 3872, 2720, 0x052c00, 760, 2312, 349, 0 },
#else
		{ 3792, 2912, 0x052000, 776, 2532, 342, 1 << NEWS }, { 3768, 2880, 0x052400, 760, 2512, 342, 1 << NEWS },
		{ 3768, 2624, 0x052800, 776, 2216, 345, 1 << NEWS }, { 3768, 2624, 0x052a00, 776, 2216, 349, 0 },
		{ 3776, 2624, 0x052c00, 776, 2216, 349, 0 },
#endif
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct runtime_file f;
		struct made m;

		make(&m, cases[i].size, cases[i].old_size, cases[i].without | 1 << COP);
		f = read_made(&m);
		assert_int_equal(f.kind, RUNTIME_FILE_CHAIN);
		assert_int_equal(f.id, RUNTIME_PERL);
		assert_int_equal(f.version, cases[i].version);
		assert_int_equal(f.loop.start, LOOP_ADDR);
		assert_int_equal(f.loop.end, LOOP_ADDR + LOOP_BYTES);
		assert_int_equal(f.state.runtime, RUNTIME_PERL);
		assert_int_equal(f.state.type, FIRST_ADDR);
		assert_int_equal(f.state.thread.place, THREAD_KEY);
		assert_int_equal(f.state.thread.addr, KEY_ADDR);
		assert_int_equal(f.state.offset[PERL_TOP_ENV], cases[i].env);
		assert_int_equal(f.state.offset[PERL_OP], 8);
		assert_int_equal(f.state.offset[PERL_GLOBALS], 0);
		assert_int_equal(f.state.offset[PERL_PHASE], cases[i].phase);
		assert_int_equal(f.state.offset[PERL_OP_REQUIRE], cases[i].require);
		assert_int_equal(f.state.offset[PERL_OP_ENTEREVAL], cases[i].require + 3);
		assert_int_equal(f.state.offset[PERL_ENV_CATCHES], sizeof(void *) + sizeof(sigjmp_buf) + sizeof(int));
	}
}

/* It is Perl, but of a version that is not known, or without threads: its state has no way to it. */
static void test_unknown(void **state)
{
	static const struct {
		uint16_t size, old_size;
		unsigned without;
	} cases[] = { { 3768, 2881, 0 },	{ 3760, 2880, 0 },	   { 0, 0, 0 },
		      { 3768, 2880, 1 << KEY }, { 3768, 2880, 1 << SIZE }, { 3768, 2880, 1 << OLD_SIZE } };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct runtime_file f;
		struct made m;

		make(&m, cases[i].size, cases[i].old_size, cases[i].without);
		f = read_made(&m);
		assert_int_equal(f.kind, RUNTIME_FILE_CHAIN);
		assert_int_equal(f.id, RUNTIME_PERL);
		assert_int_equal(f.version, 0);
		assert_int_equal(f.state.thread.addr, 0);
	}
}

/* Built without threads: variables in the place of struct interpreter's members. */
static void test_globals(void **state)
{
	static const struct {
		unsigned operators, without;
		uint32_t version;
		uint16_t require;
	} cases[] = {
		{ 401, 0, 0x052000, 342 },     { 415, 0, 0x052400, 342 }, { 423, 0, 0x052800, 345 },
		{ 427, 0, 0x052a00, 349 },     { 428, 0, 0, 0 },	  { 427, 1 << COP, 0, 0 },
		{ 427, 1 << FILE_NAME, 0, 0 }, { 427, 1 << OP, 0, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct runtime_file f;
		struct made m;

		make(&m, 0, 0, cases[i].without | 1 << KEY | 1 << SIZE | 1 << OLD_SIZE);
		m.symbols[NAMES].st_size = cases[i].operators * sizeof(char *);
		f = read_made(&m);
		assert_int_equal(f.id, RUNTIME_PERL);
		assert_int_equal(f.version, cases[i].version);
		assert_int_equal(f.state.thread.addr, cases[i].version ? OP_ADDR : 0);
		if (!cases[i].version)
			continue;
		assert_int_equal(f.state.thread.place, THREAD_GLOBAL);
		assert_int_equal(f.state.offset[PERL_GLOBALS], 1);
		assert_int_equal(f.state.offset[PERL_OP], 0);
		assert_int_equal(f.state.offset[PERL_COP], variable_at(COP) - OP_ADDR);
		assert_int_equal(f.state.offset[PERL_START_ENV], variable_at(START_ENV) - OP_ADDR);
		assert_int_equal(f.state.offset[PERL_FILE], variable_at(FILE_NAME) - OP_ADDR);
		assert_int_equal(f.state.offset[PERL_OP_REQUIRE], cases[i].require);
	}
	{ /* too far from each other */
		struct runtime_file f;
		struct made m;

		make(&m, 0, 0, 1 << KEY | 1 << SIZE | 1 << OLD_SIZE);
		m.symbols[NAMES].st_size = 427 * sizeof(char *);
		m.symbols[PHASE].st_value += UINT16_MAX;
		f = read_made(&m);
		assert_int_equal(f.version, 0);
	}
}

static void test_others(void **state)
{
	static const unsigned without[] = { 1 << LOOP, 1 << FIRST, (1 << SYMBOLS) - 1 };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(without); i++) {
		struct made m;

		make(&m, 3768, 2880, without[i]);
		assert_int_equal(read_made(&m).kind, RUNTIME_FILE_NONE);
	}
}

#ifdef __aarch64__
#define OWN_CPU "aarch64"
#else
#define OWN_CPU "x86_64"
#endif

/* The Perl that is here says of itself how large its interpreter's structure is meant to be: it is of a version, with
 * threads. Under an emulator the one that runs may be another CPU's, and of another version. */
static void test_installed(void **state)
{
	static const char script[] = "perl -MConfig -e 'printf(\"%d %d %.7s\", $] * 1000 % 1000, !!$Config{useithreads}, "
				     "$Config{archname})'";
	AUTO_CLOSE int fd = open("/usr/bin/perl", O_RDONLY | O_CLOEXEC);
	struct symbol_image image = { 0 };
	struct runtime_file found;
	struct elf_image im;
	unsigned minor, threads;
	char cpu[8];
	FILE *f;

	(void)state;
	if (fd < 0)
		skip();
	f = popen(script, "r");
	assert_non_null(f);
	assert_int_equal(fscanf(f, "%u %u %7s", &minor, &threads, cpu), 3);
	assert_int_equal(pclose(f), 0);
	assert_int_equal(symbol_image_map(fd, &image), 0);
	assert_int_equal(elf_image_open(image.data, image.len_bytes, &im), 0);
	runtime_file_read(&im, &found);
	if (found.kind == RUNTIME_FILE_NONE || strncmp(cpu, OWN_CPU, strlen(OWN_CPU))) /* its code is in libperl */
		skip();
	assert_int_equal(found.id, RUNTIME_PERL);
	assert_true(found.loop.end > found.loop.start);
	assert_non_null(runtime_file_bytes(&im, found.loop.start, found.loop.end - found.loop.start));
	if (found.version) {
		assert_int_equal(found.version, 5 << 16 | minor << 8);
		assert_true(found.state.thread.addr && !threads == (found.state.offset[PERL_GLOBALS] != 0));
	}
	symbol_image_unmap(&image);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_versions), cmocka_unit_test(test_unknown),   cmocka_unit_test(test_globals),
		cmocka_unit_test(test_others),	 cmocka_unit_test(test_installed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
