/* SPDX-License-Identifier: Apache-2.0 */
/* Variables of a thread's own by the code that returns them: instructions of compilers (objdump -d), cut at each byte. */
#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "agent/runtime/file/thread_code.h"
#include "base/cleanup.h"

enum { ADDR = 0x400000 };

struct example {
	const char *from;
	uint16_t machine;
	struct thread_locator way;
	size_t len; /* up to the last instruction that tells */
	uint8_t code[48];
};

static const struct example examples[] = {
	{ "Debian's python3.15, gcc",
	  EM_X86_64,
	  { .place = THREAD_TLS, .offset = -40 },
	  13,
	  { 0xf3, 0x0f, 0x1e, 0xfa, 0x64, 0x48, 0x8b, 0x04, 0x25, 0xd8, 0xff, 0xff, 0xff, 0xc3 } },
	{ "musl's self->tsd",
	  EM_X86_64,
	  { .place = THREAD_TLS, .offset = 128 },
	  16,
	  { 0x64, 0x48, 0x8b, 0x04, 0x25, 0, 0, 0, 0, 0x48, 0x8b, 0x80, 0x80, 0, 0, 0, 0x89, 0xff } },
	{ "the same, below, in a byte",
	  EM_X86_64,
	  { .place = THREAD_TLS, .offset = -8 },
	  13,
	  { 0x64, 0x48, 0x8b, 0x04, 0x25, 0, 0, 0, 0, 0x48, 0x8b, 0x40, 0xf8, 0xc3 } },
	{ "Ruby 3.4 in an executable",
	  EM_X86_64,
	  { .place = THREAD_TLS, .offset = -80 },
	  11,
	  { 0x48, 0xc7, 0xc0, 0xb0, 0xff, 0xff, 0xff, 0x64, 0x48, 0x8b, 0, 0x48, 0x8b, 0x40, 0x70, 0xc3 } },
	{ "general dynamic, made local by the linker",
	  EM_X86_64,
	  { .place = THREAD_TLS, .offset = -16 },
	  23,
	  { 0x48, 0x83, 0xec, 0x08, 0x64, 0x48, 0x8b, 0x04, 0x25, 0,	0, 0,
	    0,	  0x48, 0x8d, 0x80, 0xf0, 0xff, 0xff, 0xff, 0x48, 0x8b, 0, 0xc3 } },
	{ "the same by Debian 13's linker",
	  EM_X86_64,
	  { .place = THREAD_TLS, .offset = -16 },
	  23,
	  { 0x48, 0x83, 0xec, 0x08, 0x66, 0x66, 0x66, 0x64, 0x48, 0x8b, 0x04, 0x25, 0,	  0,
	    0,	  0,	0x48, 0x8b, 0x80, 0xf0, 0xff, 0xff, 0xff, 0x48, 0x8b, 0x40, 0x70, 0xc3 } },
	{ "libruby 4.0",
	  EM_X86_64,
	  { .place = THREAD_TLS_INDEX, .addr = ADDR + 12 + 0x6d864c },
	  23,
	  { 0x48, 0x83, 0xec, 0x18, 0x66, 0x48, 0x8d, 0x3d, 0x4c, 0x86, 0x6d, 0,    0x66, 0x66,
	    0x48, 0xe8, 1,    2,    3,	  4,	0x48, 0x8b, 0,	  0x48, 0x89, 0x44, 0x24, 0x08 } },
	{ "erts_get_scheduler_data of OTP 25",
	  EM_X86_64,
	  { .place = THREAD_KEY, .addr = ADDR + 6 + 0x3820b2 },
	  11,
	  { 0x8b, 0x3d, 0xb2, 0x20, 0x38, 0, 0xe9, 0x55, 0x0b, 0x27, 0 } },
	{ "gcc and clang, initial-exec",
	  EM_X86_64,
	  { .place = THREAD_TLS_SLOT, .addr = ADDR + 7 + 0x2ea9 },
	  11,
	  { 0x48, 0x8b, 0x05, 0xa9, 0x2e, 0, 0, 0x64, 0x48, 0x8b, 0, 0xc3 } },
	{ "Debian's libpython3.15",
	  EM_X86_64,
	  { .place = THREAD_TLS_INDEX, .addr = ADDR + 15 + 0x4aa661, .offset = 0x28 },
	  28,
	  { 0xf3, 0x0f, 0x1e, 0xfa, 0x55, 0x48, 0x89, 0xe5, 0x48, 0x8d, 0x3d, 0x61, 0xa6, 0x4a, 0,
	    0xe8, 0x5c, 0x9d, 0xcf, 0xff, 0x5d, 0x48, 0x8b, 0x80, 0x28, 0,    0,    0,	  0xc3 } },
	{ "gcc, local dynamic, without a PLT",
	  EM_X86_64,
	  { .place = THREAD_TLS_INDEX, .addr = ADDR + 11 + 0x2e85 },
	  24,
	  { 0x48, 0x83, 0xec, 0x08, 0x48, 0x8d, 0x3d, 0x85, 0x2e, 0,	0,    0xff, 0x15, 0xa7, 0x2e,
	    0,	  0,	0x48, 0x8b, 0x80, 0,	0,    0,    0,	  0x48, 0x83, 0xc4, 0x08, 0xc3 } },
	{ "clang, general dynamic",
	  EM_X86_64,
	  { .place = THREAD_TLS_INDEX, .addr = ADDR + 9 - 0x10 },
	  20,
	  { 0x50, 0x66, 0x48, 0x8d, 0x3d, 0xf0, 0xff, 0xff, 0xff, 0x66, 0x66,
	    0x48, 0xe8, 1,    2,    3,	  4,	0x48, 0x8b, 0,	  0x59, 0xc3 } },
	{ "gcc, -mtls-dialect=gnu2",
	  EM_X86_64,
	  { .place = THREAD_TLS_DESC, .addr = ADDR + 11 + 0x2ed5 },
	  17,
	  { 0x48, 0x83, 0xec, 0x08, 0x48, 0x8d, 0x05, 0xd5, 0x2e, 0, 0,
	    0xff, 0x10, 0x64, 0x48, 0x8b, 0,	0x48, 0x83, 0xc4, 8, 0xc3 } },
	{ "the same, with an offset",
	  EM_X86_64,
	  { .place = THREAD_TLS_DESC, .addr = ADDR + 8 + 0x2ed4, .offset = 16 },
	  18,
	  { 0x55, 0x48, 0x8d, 0x05, 0xd4, 0x2e, 0, 0, 0xff, 0x10, 0x64, 0x48, 0x8b, 0x80, 16, 0, 0, 0, 0x5d, 0xc3 } },
	{ "CPython 3.6, the key",
	  EM_X86_64,
	  { .place = THREAD_KEY, .addr = ADDR + 16 + 0x138180 },
	  21,
	  { 0x48, 0x83, 0x3d, 0x70, 0xa1, 0x18, 0, 0, 0x74, 0x0e, 0x8b, 0x3d, 0x80, 0x81, 0x13, 0, 0xe9 } },
	{ "PHP 7.4 with threads, the key",
	  EM_X86_64,
	  { .place = THREAD_KEY, .addr = ADDR + 6 + 0x67079a },
	  11,
	  { 0x8b, 0x3d, 0x9a, 0x07, 0x67, 0, 0xe9, 0xf5, 0xc2, 0xe5, 0xff } },
	{ "Debian's python3.15 for arm64",
	  EM_AARCH64,
	  { .place = THREAD_TLS, .offset = 32 },
	  40,
	  { 0x5f, 0x24, 0x03, 0xd5, 0x40, 0xd0, 0x3b, 0xd5, 0x3f, 0x23, 0x03, 0xd5, 0xfd, 0x7b, 0xbf,
	    0xa9, 0x1f, 0x20, 0x03, 0xd5, 0,	0x80, 0,    0x91, 0xfd, 0x03, 0,    0x91, 0xfd, 0x7b,
	    0xc1, 0xa8, 0xbf, 0x23, 0x03, 0xd5, 0,    0,    0x40, 0xf9, 0xc0, 0x03, 0x5f, 0xd6 } },
	{ "Debian's libpython3.15 for arm64",
	  EM_AARCH64,
	  { .place = THREAD_TLS_DESC, .addr = ADDR + 0x4b7000 + 736 },
	  36,
	  { 0x3f, 0x23, 0x03, 0xd5, 0x41, 0xd0, 0x3b, 0xd5, 0xfd, 0x7b, 0xbf, 0xa9, 0xfd, 0x03, 0,    0x91, 0xa0, 0x25,
	    0,	  0xf0, 0x02, 0x70, 0x41, 0xf9, 0,    0x80, 0x0b, 0x91, 0x40, 0,    0x3f, 0xd6, 0x20, 0x68, 0x60, 0xf8 } },
};

/* adrp counts pages from its own, also where it is the last instruction of that. */
static void test_page(void **state)
{
	const struct example *e = &examples[ARRAY_LEN(examples) - 1];
	enum { AT = 16, PAGE = 4096 }; /* adrp in the code */
	struct thread_locator found;

	(void)state;
	assert_true(thread_code_read(EM_AARCH64, e->code, e->len, ADDR + PAGE - 4 - AT, &found));
	assert_true(found.addr == e->way.addr);
	assert_true(thread_code_read(EM_AARCH64, e->code, e->len, ADDR + PAGE - AT, &found));
	assert_true(found.addr == e->way.addr + PAGE);
}

static void test_examples(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(examples); i++) {
		const struct example *e = &examples[i];
		struct thread_locator found;

		print_message("%s\n", e->from);
		memset(&found, 0xff, sizeof(found));
		assert_true(thread_code_read(e->machine, e->code, sizeof(e->code), ADDR, &found));
		assert_memory_equal(&found, &e->way, sizeof(found));
		assert_true(thread_code_read(e->machine, e->code, e->len, ADDR, &found));
		for (size_t len = 0; len < e->len; len++)
			assert_false(thread_code_read(e->machine, e->code, len, ADDR, &found));
		assert_false(thread_code_read(EM_RISCV, e->code, sizeof(e->code), ADDR, &found));
	}
}

static void test_others(void **state)
{
	static const uint8_t glibc[] = {
		0x83, 0xff, 0x1f, 0x77, 0x3b, 0x89, 0xf8, 0x48, 0xc1, 0xe0, 0x04, 0x64, 0x48, 0x03,
		0x04, 0x25, 0x10, 0,	0,    0,    0x48, 0x8b, 0x80, 0x18, 3,	  0,	0
	}; /* pthread_getspecific */
	static const uint8_t python[] = { 0xf3, 0x0f, 0x1e, 0xfa, 0x83, 0x3d, 0x3b, 0x49, 0x77, 0, 0, 0x74,
					  0x0a, 0xbf, 0xe0, 0x10, 0xba, 0,    0xe9, 1,	  2,	3, 4 }; /* 3.14's is a key */
	static const uint8_t zeros[64] = { 0 }, self[] = { 0x64, 0x48, 0x8b, 0x04, 0x25, 0, 0, 0, 0, 0xc3 };
	struct thread_locator found;

	(void)state;
	assert_false(thread_code_read(EM_X86_64, glibc, sizeof(glibc), ADDR, &found));
	assert_false(thread_code_read(EM_X86_64, python, sizeof(python), ADDR, &found));
	assert_false(thread_code_read(EM_X86_64, self, sizeof(self), ADDR, &found)); /* of the thread pointer itself */
	assert_false(thread_code_read(EM_X86_64, zeros, sizeof(zeros), ADDR, &found));
	assert_false(thread_code_read(EM_AARCH64, zeros, sizeof(zeros), ADDR, &found));
	/* a call of something else than __tls_get_addr's or a descriptor's form */
	for (size_t i = 0; i < ARRAY_LEN(examples); i++) {
		uint8_t code[sizeof(examples[i].code)];

		for (size_t k = 0; k < examples[i].len; k++) {
			memcpy(code, examples[i].code, sizeof(code));
			code[k] ^= 0x10; /* another instruction or number, never a read beyond the end */
			(void)thread_code_read(examples[i].machine, code, examples[i].len, ADDR, &found);
		}
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_examples),
		cmocka_unit_test(test_page),
		cmocka_unit_test(test_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
