/* SPDX-License-Identifier: Apache-2.0 */
/* The facts that a file tells of PHP: files made by hand, with the symbols and the text that PHP has. */
#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "agent/runtime/file/runtime_file.h"
#include "base/cleanup.h"
#include "bpf/runtime/php_state.h"
#include "symbols/elf_image.h"
#include "tests/unit/symbols/dwarf_elf.h"

enum { GLOBALS = 0x7000, GLOBALS_BYTES = 1800, LOOP = 0x1200, LOOP_BYTES = 0x900 };

struct made {
	const char *globals, *loop; /* names */
	const char *text;	    /* read-only data */
	uint64_t globals_bytes;
};

static const struct made php_8_2 = { "executor_globals", "execute_ex", "..\0X-Powered-By: PHP/8.2.36\0..", GLOBALS_BYTES };

static size_t text_bytes(const char *text)
{
	return text[0] ? 3 + strlen(text + 3) : 0;
}

/* Reads the file that @m describes. */
static struct runtime_file read_made(const struct made *m)
{
	AUTO(buf_fini) struct buf file = BUF_EMPTY;
	AUTO(buf_fini) struct buf names = BUF_EMPTY;
	Elf64_Sym symbols[3] = { 0 };
	struct runtime_file ret;
	struct elf_image im;

	buf_putc(&names, 0);
	symbols[1] = (Elf64_Sym){
		.st_name = (uint32_t)names.len, .st_value = GLOBALS, .st_size = m->globals_bytes, .st_shndx = 1
	};
	buf_append(&names, m->globals, strlen(m->globals) + 1);
	symbols[2] = (Elf64_Sym){ .st_name = (uint32_t)names.len, .st_value = LOOP, .st_size = LOOP_BYTES, .st_shndx = 1 };
	buf_append(&names, m->loop, strlen(m->loop) + 1);
	dwarf_elf_build(&file,
			(struct dwarf_elf_section[]){ { ".dynsym", symbols, sizeof(symbols), SHF_ALLOC },
						      { ".dynstr", names.data, names.len, SHF_ALLOC },
						      { ".rodata", m->text, text_bytes(m->text), SHF_ALLOC } },
			3);
	assert_int_equal(elf_image_open(file.data, file.len, &im), 0);
	runtime_file_read(&im, &ret);
	return ret;
}

static void test_versions(void **state)
{
	static const struct {
		const char *text;
		uint32_t version;
		uint16_t opcodes, file, closure_bit, current, trampoline_bit;
	} cases[] = {
		{ "..\0X-Powered-By: PHP/7.3.13", 0x07030d, 64, 128, 20, 488, 21 },
		{ "..\0X-Powered-By: PHP/7.4.33", 0x070421, 64, 136, 20, 488, 18 },
		{ "..\0X-Powered-By: PHP/8.0.30", 0x08001e, 72, 144, 22, 488, 18 },
		{ "..\0X-Powered-By: PHP/8.1.29", 0x08011d, 72, 144, 22, 488, 18 },
		{ "..\0X-Powered-By: PHP/8.2.36", 0x080224, 88, 152, 22, 488, 18 },
		{ "..\0X-Powered-By: PHP/8.3.1", 0x080301, 80, 144, 22, 488, 18 },
		{ "..\0X-Powered-By: PHP/8.4.5-dev", 0x080405, 104, 168, 22, 488, 18 },
		{ "..\0X-Powered-By: PHP/8.5.7", 0x080507, 104, 168, 22, 512, 18 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct made m = php_8_2;
		struct runtime_file f;

		m.text = cases[i].text;
		f = read_made(&m);
		assert_int_equal(f.kind, RUNTIME_FILE_CHAIN);
		assert_int_equal(f.id, RUNTIME_PHP);
		assert_int_equal(f.state.runtime, RUNTIME_PHP);
		assert_int_equal(f.version, cases[i].version);
		assert_int_equal(f.loop.start, LOOP);
		assert_int_equal(f.loop.end, LOOP + LOOP_BYTES);
		assert_int_equal(f.state.thread.place, THREAD_GLOBAL);
		assert_int_equal(f.state.thread.addr, GLOBALS + cases[i].current);
		assert_int_equal(f.state.offset[PHP_FUNCTION_OPCODES], cases[i].opcodes);
		assert_int_equal(f.state.offset[PHP_FUNCTION_FILE], cases[i].file);
		assert_int_equal(f.state.offset[PHP_CLOSURE_BIT], cases[i].closure_bit);
		assert_int_equal(f.state.offset[PHP_TRAMPOLINE_BIT], cases[i].trampoline_bit);
		assert_true(f.state.offset[PHP_FUNCTION_LINE] + 4 <= PHP_HEAD_BYTES);
	}
}

/* It is PHP, but nothing says how its frames look: its state has no way to them. */
static void test_unknown(void **state)
{
	static const char *const texts[] = {
		"",
		"..\0no version here",
		"..\0X-Powered-By: PHP/",
		"..\0X-Powered-By: PHP/8",
		"..\0X-Powered-By: PHP/8.2",
		"..\0X-Powered-By: PHP/5.6.40",
		"..\0X-Powered-By: PHP/9.9.1",
		"..\0X-Powered-By: PHP/x.y.z",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(texts) + 1; i++) {
		struct made m = php_8_2;
		struct runtime_file f;

		if (i < ARRAY_LEN(texts))
			m.text = texts[i];
		else
			m.globals_bytes = 880; /* of another build: the last thing that is read lies behind it */
		f = read_made(&m);
		assert_int_equal(f.kind, RUNTIME_FILE_CHAIN);
		assert_int_equal(f.id, RUNTIME_PHP);
		assert_int_equal(f.state.thread.addr, 0);
	}
}

static void test_others(void **state)
{
	struct made m = php_8_2;
	struct runtime_file f;

	(void)state;
	m.loop = "execute_eX";
	assert_int_equal(read_made(&m).kind, RUNTIME_FILE_NONE);
	m = php_8_2;
	m.globals = "executor_globalz";
	assert_int_equal(read_made(&m).kind, RUNTIME_FILE_NONE);
	m.globals = "executor_globals_offset"; /* with threads, whose memory it does not say how to find */
	assert_int_equal(read_made(&m).kind, RUNTIME_FILE_CHAIN);
	f = read_made(&m);
	assert_true(!runtime_file_has_threads(&f) && !f.state.global);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_versions),
		cmocka_unit_test(test_unknown),
		cmocka_unit_test(test_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
