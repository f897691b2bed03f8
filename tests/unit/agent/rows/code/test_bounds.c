/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of code in a file that has neither symbols nor tables and is too big to be searched for calls, as browsers are: where
 * functions begin is told by the look of the code. The code below is assembled, loaded, and put into such a file; beside it
 * stands what is right at each of its places of interest.
 */
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/rows/code/state.h"
#include "agent/rows/row_builder.h"
#include "base/cleanup.h"
#include "tests/unit/descriptors.h"
#include "tests/unit/elf_head.h"

/* check REGISTER, OFFSET: at this place CFA = register + offset. PADDING stands before functions as the compiler puts it. */
static const char text[] =
	".macro check reg, off\n9: .pushsection .data\n.quad 9b - start, \\reg, \\off\n.popsection\n.endm\n"
	".macro frame\n check 7, 8\n push %rbp\n check 7, 16\n mov %rsp, %rbp\n.endm\n"
	".set SP, 7\n.set FP, 6\n"
	".data\n.globl checks\nchecks:\n"
	".text\n.globl start, stop\n.balign 4096\nstart:\n"
	/* ordinary ones; the second without a frame, behind no padding */
	"frame\n check 6, 16\n mov -8(%rbp), %rax\n call start\n check 6, 16\n pop %rbp\n check 7, 8\n ret\n"
	".balign 16, 0xcc\n frame\n .rept 10\n nop\n .endr\n check 6, 16\n pop %rbp\n check 7, 8\n ret\n"
	"check 7, 8\n xor %eax, %eax\n check 7, 8\n ret\n .balign 16, 0xcc\n"
	/* one that ends with a call that never returns, and another right behind it that makes its frame late */
	"frame\n check 6, 16\n push %rbx\n push %rax\n mov -8(%rbp), %rax\n pop %rax\n pop %rbx\n check 6, 16\n pop %rbp\n "
	"ret\n"
	" .balign 16, 0xcc\n"
	"frame\n push %rbx\n nop\n nop\n test %eax, %eax\n je start\n check 6, 16\n call start\n"
	"check 7, 8\n test %rdi, %rdi\n je 1f\n push %rbp\n mov %rsp, %rbp\n check 6, 16\n call start\n pop %rbp\n"
	" check 7, 8\n 1: ret\n .balign 16, 0xcc\n"
	/* a jump table; a case of it stands where a function could, behind a trap and without */
	"frame\n sub $64, %rsp\n jmp *%rax\n .balign 16, 0x90\n"
	" check 6, 16\n mov -16(%rbp), %rax\n int3\n .balign 16, 0x90\n ud2\n check 6, 16\n mov %rax, %rbx\n leave\n check "
	"7, 8\n ret\n"
	" .balign 16, 0xcc\n"
	/* 0xcccccccd is no padding */
	"frame\n call start\n nop\n nop\n mov $0xcccccccd, %eax\n check 6, 16\n mul %ecx\n pop %rbp\n ret\n "
	".balign 16, 0xcc\n"
	/* as V8 has them: traps inside, behind which the function goes on in its frame; a frame made where the way forks
	 * off; callees that take their arguments away */
	"cmp %eax, %ebx\n check 7, 8\n je 3f\n ret\n"
	"3: frame\n push %rdi\n push %rdi\n call start\n check 6, 16\n jmp 4f\n .balign 16, 0xcc\n"
	"4: mov %rax, %rcx\n check 6, 16\n call start\n mov -8(%rbp), %rax\n mov %rbp, %rsp\n pop %rbp\n check 7, 8\n ret\n "
	".balign 64, 0xcc\n"
	/* the return address moves to make room for arguments */
	"mov %rsp, %r8\n sub %r10, %rsp\n check 8, 8\n mov (%r8), %rax\n mov %rax, (%rsp)\n lea 8(%rsp), %r8\n check 7, 8\n "
	"jmp *%rcx\n"
	" .balign 64, 0xcc\n"
	/* what was on top of the stack is no return address: it was pushed for the function */
	"pop %r15\n push %rbp\n mov %rsp, %rbp\n check 6, 16\n call start\n .balign 64, 0xcc\n"
	/* bytes of an instruction that look like the end of a function and a trap before the beginning of another, like a
	 * stub, and like another return and trap */
	"frame\n push %rbx\n push %rbx\n .rept 10\n mov -8(%rbp), %rax\n mov -16(%rbp), %rcx\n .endr\n .balign 16, 0x90\n"
	" .rept 13\n nop\n .endr\n add $0xfffffbcc, %ebx\n check 6, 16\n .balign 16, 0x90\n"
	" .rept 12\n nop\n .endr\n .byte 0xe8, 0xbf, 0xb7, 0xff, 0xff\n check 6, 16\n and $0xff7, %eax\n .balign 16, 0x90\n"
	" .rept 10\n nop\n .endr\n mov %rax, %rdx\n .byte 0xe8, 0x3e, 0xcc, 0xff, 0xff\n check 6, 16\n nop\n"
	" pop %rbx\n pop %rbx\n check 6, 16\n pop %rbp\n check 7, 8\n ret\n .balign 16, 0xcc\n"
	/* what may be jumped to begins one, with a frame or without, right behind a trap */
	"endbr64\n frame\n push %rbx\n push %rbx\n call start\n mov -8(%rbp), %rax\n check 6, 16\n je 5f\n pop %rbx\n pop "
	"%rbx\n pop "
	"%rbp\n ret\n"
	" .balign 16, 0x90\n .rept 14\n nop\n .endr\n 5: ud2\n"
	"endbr64\n check 7, 8\n test %rdi, %rdi\n je 5f\n jmp 4f\n nop\n 4: frame\n push %rbx\n check 6, 16\n pop %rbx\n "
	"pop %rbp\n check 7, 8\n"
	" 5: ret\n .balign 16, 0xcc\n"
	/* as V8 has it: a part that looks like a function, and behind it what only the real beginning leads to */
	"test %edx, %edx\n check 7, 8\n jne 7f\n push %rdi\n push %rsi\n check 7, 24\n je 8f\n pop %rsi\n pop %rdi\n jmp "
	"6f\n"
	" .balign 16, 0x90\n"
	"6: frame\n push $16\n check 6, 16\n mov %rbp, %rsp\n pop %rbp\n check 7, 8\n ret\n"
	"7: mov %rax, %rcx\n check 7, 8\n ret\n"
	"8: mov %rax, %rcx\n check 7, 24\n pop %rsi\n pop %rdi\n check 7, 8\n ret\n .balign 64, 0xcc\n"
	/* stubs */
	".rept 3\n check 7, 8\n jmp *start(%rip)\n push $0x12345\n check 7, 16\n .byte 0xe9, 0, 0, 0, 0\n .endr\n"
	" hlt\n"
	"stop: .section .note.GNU-stack\n.data\n.quad 0, 0, 0\n";

struct check {
	uint64_t at, reg, off;
};

/* Assembles and loads the code. NULL: there is no compiler. */
static void *load(void)
{
	char folder[] = "/tmp/hearth-bounds-XXXXXX", source[64], library[64], command[256];
	void *loaded = NULL;
	FILE *f;

	assert_non_null(mkdtemp(folder));
	snprintf(source, sizeof(source), "%s/code.s", folder);
	snprintf(library, sizeof(library), "%s/code.so", folder);
	f = fopen(source, "we");
	assert_non_null(f);
	assert_int_equal(fwrite(text, 1, sizeof(text) - 1, f), sizeof(text) - 1);
	assert_int_equal(fclose(f), 0);
	snprintf(command, sizeof(command), "cc -shared -nostdlib -Wl,-Bsymbolic -o %s %s", library, source);
	if (system(command) == 0)
		loaded = dlopen(library, RTLD_NOW);
	unlink(source);
	unlink(library);
	rmdir(folder);
	return loaded;
}

enum { CODE_AT = 4096, FILE_BYTES = 80 << 20 }; /* more than is searched for calls; hardly a page of it is touched */

/* A file of one segment that has the @len bytes at @code at its beginning. */
static void make_image(struct row_image *image, const void *code, size_t len)
{
	Elf64_Ehdr ehdr = {
		ELF_HEAD(EM_X86_64),
		.e_phoff = sizeof(Elf64_Ehdr),
		.e_phnum = 1,
	};
	Elf64_Phdr segment = { .p_type = PT_LOAD,
			       .p_flags = PF_R | PF_X,
			       .p_offset = CODE_AT,
			       .p_vaddr = CODE_AT,
			       .p_filesz = FILE_BYTES - CODE_AT,
			       .p_memsz = FILE_BYTES - CODE_AT };
	uint8_t *data = mmap(NULL, FILE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	assert_ptr_not_equal(data, MAP_FAILED);
	memcpy(data, &ehdr, sizeof(ehdr));
	memcpy(data + sizeof(ehdr), &segment, sizeof(segment));
	memcpy(data + CODE_AT, code, len);
	assert_true(elf_version(EV_CURRENT) != EV_NONE);
	*image = (struct row_image){ .data = data, .len = FILE_BYTES };
	image->elf = elf_memory((char *)data, FILE_BYTES);
	assert_non_null(image->elf);
}

static void check_row(void *state, const struct check *c)
{
	struct row row;
	size_t count;

	assert_int_equal(rows_code.build(state, CODE_AT + c->at, CODE_AT + c->at + 1, &row, 1, &count), 0);
	if (count != 1 || row.cfa != ROW_CFA_REG || row.cfa_reg != c->reg || row.cfa_off != (int64_t)c->off)
		fail_msg("at %#llx: %s register %u + %d instead of %llu + %llu", (unsigned long long)c->at,
			 count ? "CFA =" : "no row,", count ? row.cfa_reg : 0, count ? row.cfa_off : 0,
			 (unsigned long long)c->reg, (unsigned long long)c->off);
	assert_true(row.is_guess && row.saved[SAVED_RA] == -8);
	assert_int_equal(row.saved[SAVED_FP],
			 c->reg == REG_FP || (c->off == 16 && row.saved[SAVED_FP] != ROW_SAME) ? -16 : ROW_SAME);
}

static void test_rows(void **unused)
{
	void *library = load(), *state;
	const struct check *checks;
	struct row_image image;
	int count = 0;

	(void)unused;
	if (!library)
		skip();
	checks = dlsym(library, "checks");
	make_image(&image, dlsym(library, "start"),
		   (size_t)((char *)dlsym(library, "stop") - (char *)dlsym(library, "start")));
	assert_int_equal(rows_code.open(&image, &state), 0);
	for (; checks[count].reg; count++)
		check_row(state, &checks[count]);
	assert_true(count > 60);
	rows_code.close(state);
	elf_end(image.elf);
	munmap((void *)image.data, image.len);
	dlclose(library);
}

int main(void)
{
	static const struct CMUnitTest tests[] = { cmocka_unit_test(test_rows) };

	return run_group_of_descriptors(tests, NULL, NULL);
}
