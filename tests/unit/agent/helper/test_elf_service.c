/* SPDX-License-Identifier: Apache-2.0 */
/* The ELF service against what the dynamic linker and the row builder say of the same files, and on bad requests. */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/helper/elf_service.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "tests/unit/descriptors.h"

enum { BLOCK = 256, SELF = 1, LINKER = 2 };

static struct elf_service *service;
static struct buf reply;
static int self_fd = -1, linker_fd = -1;
static uint64_t self_bias;

static int find_files(struct dl_phdr_info *info, size_t size, void *arg)
{
	(void)size, (void)arg;
	if (!info->dlpi_name[0])
		self_bias = info->dlpi_addr;
	else if (strstr(info->dlpi_name, "/ld-linux"))
		linker_fd = open(info->dlpi_name, O_RDONLY | O_CLOEXEC);
	return 0;
}

static int make(void **state)
{
	(void)state;
	dl_iterate_phdr(find_files, NULL);
	self_fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	return self_fd < 0 || linker_fd < 0 || elf_service_new(&service);
}

static int destroy(void **state)
{
	(void)state;
	elf_service_free(service);
	buf_fini(&reply);
	close(self_fd);
	close(linker_fd);
	return 0;
}

static int call(enum elf_op op, uint32_t file, int fd, uint64_t addr, uint64_t addr_end, const void *payload, size_t len)
{
	struct elf_request request = { .op = op, .file = file, .addr = addr, .addr_end = addr_end };

	return elf_service_call(service, &request, fd, payload, len, &reply);
}

/* --- info --- */

static int compare_segments(struct dl_phdr_info *linker, size_t size, void *arg)
{
	struct elf_info info;
	uint32_t count = 0;

	(void)size, (void)arg;
	if (linker->dlpi_name[0])
		return 0;
	assert_int_equal(reply.len, sizeof(info));
	memcpy(&info, reply.data, sizeof(info));
	for (int i = 0; i < linker->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &linker->dlpi_phdr[i];

		if (ph->p_type == PT_LOAD && ph->p_flags & PF_X) {
			assert_true(count < info.segment_count);
			assert_int_equal(info.segments[count].vaddr, ph->p_vaddr);
			assert_int_equal(info.segments[count].offset, ph->p_offset);
			assert_int_equal(info.segments[count++].size_bytes, ph->p_filesz);
		}
		if (ph->p_type == PT_NOTE) { /* the build id as it stands in memory */
			const uint8_t *note = (const uint8_t *)linker->dlpi_addr + ph->p_vaddr;
			const ElfW(Nhdr) *head = (const void *)note;
			char hex[2 * 20 + 1] = "";

			if (head->n_type != NT_GNU_BUILD_ID || head->n_descsz != 20 ||
			    memcmp(note + sizeof(*head), "GNU", 4) != 0)
				continue;
			for (size_t k = 0; k < 20; k++)
				snprintf(hex + 2 * k, 3, "%02x", note[sizeof(*head) + 4 + k]);
			assert_string_equal(info.build_ids.gnu, hex);
		}
	}
	assert_int_equal(count, info.segment_count);
	assert_int_equal(strlen(info.build_ids.htlhash), 32);
	return 1;
}

static void test_info(void **state)
{
	(void)state;
	assert_int_equal(call(ELF_OP_INFO, SELF, self_fd, 0, 0, NULL, 0), 0);
	assert_int_equal(dl_iterate_phdr(compare_segments, NULL), 1);
	assert_int_equal(lseek(self_fd, 0, SEEK_CUR), 0);
}

/* --- rows --- */

static struct row_source *direct;

static void assert_same_row(const struct row *a, const struct row *b)
{
	assert_true(a->start == b->start && a->end == b->end && a->cfa == b->cfa && a->cfa_reg == b->cfa_reg);
	assert_true(a->is_signal_frame == b->is_signal_frame && a->is_guess == b->is_guess);
	assert_true(a->cfa_off == b->cfa_off && a->cfa_off2 == b->cfa_off2);
	assert_memory_equal(a->saved, b->saved, sizeof(a->saved));
}

static void test_rows(void **state)
{
	uint64_t at = ((uintptr_t)test_rows - self_bias) / BLOCK * BLOCK;
	struct row expected[BLOCK];
	size_t count;

	(void)state;
	assert_int_equal(row_source_new(self_fd, &direct), 0);
	for (uint64_t addr = at - 8 * BLOCK; addr < at + 8 * BLOCK; addr += BLOCK) {
		assert_int_equal(rows_build(direct, addr, addr + BLOCK, expected, BLOCK, &count), 0);
		assert_int_equal(call(ELF_OP_ROWS, SELF, self_fd, addr, addr + BLOCK, NULL, 0), 0);
		assert_int_equal(reply.len, count * sizeof(*expected));
		for (size_t i = 0; i < count; i++)
			assert_same_row((const struct row *)(const void *)reply.data + i, &expected[i]);
	}
	row_source_free(direct);
}

static uint64_t entry_of(int fd)
{
	Elf64_Ehdr eh;

	assert_int_equal(pread(fd, &eh, sizeof(eh), 0), sizeof(eh));
	return eh.e_entry;
}

/* Is there a root row at @addr? */
static bool has_root_at(uint32_t file, int fd, uint64_t addr)
{
	const struct row *rows;

	assert_int_equal(call(ELF_OP_ROWS, file, fd, addr, addr + 1, NULL, 0), 0);
	rows = (const void *)reply.data;
	return reply.len >= sizeof(*rows) && rows[0].cfa == ROW_CFA_ROOT;
}

/* The start code of the dynamic linker has no tables: the service adds its root. Where tables cover the entry point, what
 * follows it is other code, covered or not. */
static void test_entry(void **state)
{
	uint64_t entry = entry_of(self_fd), after;
	struct row first;
	size_t count;

	(void)state;
	assert_int_equal(row_source_new(linker_fd, &direct), 0);
	assert_int_equal(rows_build(direct, entry_of(linker_fd), entry_of(linker_fd) + 1, &first, 1, &count), 0);
	row_source_free(direct);
	if (!count)
		assert_true(has_root_at(LINKER, linker_fd, entry_of(linker_fd)));

	assert_true(has_root_at(SELF, self_fd, entry)); /* the C library's _start says so itself */
	assert_int_equal(row_source_new(self_fd, &direct), 0);
	for (after = entry; after < entry + 128; after++) {
		assert_int_equal(rows_build(direct, after, after + 1, &first, 1, &count), 0);
		assert_int_equal(has_root_at(SELF, self_fd, after), count && first.cfa == ROW_CFA_ROOT);
	}
	row_source_free(direct);
}

/* --- one frame, exactly --- */

static int read_words(void *arg, uint64_t addr, void *dst, size_t len)
{
	const uint64_t *words = arg;

	if (addr < 0x1000 || addr + len > 0x1000 + 64 * 8)
		return -EFAULT;
	memcpy(dst, (const uint8_t *)words + (addr - 0x1000), len);
	return 0;
}

static void test_eval(void **state)
{
	struct {
		struct elf_eval eval;
		uint64_t words[64];
	} payload = { .eval = { .regs = { .known = (1ull << USER_REGS) - 1, .is_exact = true }, .stack_addr = 0x1000 } };
	uint64_t addr = (uintptr_t)test_eval - self_bias; /* its first byte: the return address is at rsp */
	struct row_regs expected;

	(void)state;
	for (uint64_t i = 0; i < ARRAY_LEN(payload.words); i++)
		payload.words[i] = 0xabc000 + i;
	for (uint64_t i = 0; i < USER_REGS; i++)
		payload.eval.regs.value[i] = 0x700 + i;
	payload.eval.regs.value[REG_SP] = 0x1000 + 5 * 8;
	assert_int_equal(row_source_new(self_fd, &direct), 0);
	memset(&expected, 0, sizeof(expected));
	assert_int_equal(row_eval(direct, addr, &payload.eval.regs, read_words, payload.words, &expected), 0);
	row_source_free(direct);
	assert_int_equal(call(ELF_OP_EVAL, SELF, self_fd, addr, 0, &payload, sizeof(payload)), 0);
	assert_int_equal(reply.len, sizeof(expected));
	assert_memory_equal(reply.data, &expected, sizeof(expected));
	assert_true(expected.value[REG_PC] == 0xabc005 && expected.value[REG_SP] == 0x1000 + 6 * 8);

	assert_int_equal(call(ELF_OP_EVAL, SELF, self_fd, entry_of(self_fd), 0, &payload, sizeof(payload)), 1);
	assert_int_equal(reply.len, 0);
	assert_int_equal(call(ELF_OP_EVAL, SELF, self_fd, 1, 0, &payload, sizeof(payload)), -ENOENT);
	/* the stack ends before the return address does; or begins behind it */
	assert_int_equal(call(ELF_OP_EVAL, SELF, self_fd, addr, 0, &payload, sizeof(payload.eval) + 6 * 8), 0);
	assert_int_equal(call(ELF_OP_EVAL, SELF, self_fd, addr, 0, &payload, sizeof(payload.eval) + 6 * 8 - 1), -EFAULT);
	assert_int_equal(call(ELF_OP_EVAL, SELF, self_fd, addr, 0, &payload, sizeof(payload.eval)), -EFAULT);
	payload.eval.stack_addr = 0x1001 + 5 * 8;
	assert_int_equal(call(ELF_OP_EVAL, SELF, self_fd, addr, 0, &payload, sizeof(payload)), -EFAULT);
	assert_int_equal(call(ELF_OP_EVAL, SELF, self_fd, addr, 0, &payload, sizeof(payload.eval) - 1), -EBADMSG);
}

/* --- state, and requests that make no sense --- */

/* More files than the service keeps, then the first again; one forgotten and met again; its id given to another file. */
static void test_many_files(void **state)
{
	uint64_t addr = (uintptr_t)test_many_files - self_bias, linker_entry = entry_of(linker_fd);
	struct row first;

	(void)state;
	assert_int_equal(call(ELF_OP_ROWS, 100, self_fd, addr, addr + 1, NULL, 0), 0);
	assert_int_equal(reply.len, sizeof(first));
	memcpy(&first, reply.data, sizeof(first));
	for (uint32_t round = 0; round < 2; round++) {
		for (uint32_t i = 0; i < 120; i++) {
			if (i % 3 == 2)
				assert_int_equal(call(ELF_OP_FORGET, 100 + i / 2, -1, 0, 0, NULL, 0), 0);
			assert_int_equal(call(ELF_OP_ROWS, 100 + i, self_fd, addr, addr + 1, NULL, 0), 0);
			assert_int_equal(reply.len, sizeof(first));
			assert_memory_equal(reply.data, &first, sizeof(first));
		}
	}
	assert_int_equal(call(ELF_OP_FORGET, 219, -1, 0, 0, NULL, 0), 0);
	assert_int_equal(call(ELF_OP_FORGET, 219, -1, 0, 0, NULL, 0), 0);
	assert_true(has_root_at(219, linker_fd, linker_entry));
}

/* Bytes that this process has in memory of the file that is mapped under @name. */
static unsigned long resident_kb(const char *name)
{
	AUTO_FCLOSE FILE *f = fopen("/proc/self/smaps", "re");
	unsigned long all = 0, kb;
	bool is_it = false;
	char line[512];

	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		if (strchr("0123456789abcdef", line[0]))
			is_it = strstr(line, name) != NULL;
		else if (is_it && sscanf(line, "Rss: %lu", &kb) == 1)
			all += kb;
	}
	return all;
}

/* What reading a file takes of memory is given back when some pages have been touched; the answers are the same after it. */
static void test_rest(void **state)
{
	enum { PAGES = 200, PAGE_BYTES = 4096 };
	uint64_t addr = (uint64_t)(uintptr_t)test_rest - self_bias;
	AUTO_FREE uint8_t *first = NULL;
	int fd = memfd_create("of-a-program", MFD_CLOEXEC);
	struct buf bytes = BUF_EMPTY;
	char *pages;
	size_t len;

	(void)state;
	assert_int_equal(io_read_file("/proc/self/exe", SIZE_MAX, &bytes), 0);
	assert_int_equal(io_write_all(fd, bytes.data, bytes.len), 0);
	buf_fini(&bytes);
	assert_int_equal(call(ELF_OP_ROWS, 400, fd, addr, addr + BLOCK, NULL, 0), 0);
	assert_true(reply.len);
	assert_int_equal(call(ELF_OP_ROWS, 400, fd, addr, addr + BLOCK, NULL, 0), 0); /* nothing was touched but the file */
	len = reply.len;
	first = malloc(len);
	assert_non_null(first);
	memcpy(first, reply.data, len);
	pages = mmap(NULL, PAGES * PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(pages, MAP_FAILED);
	assert_int_equal(madvise(pages, PAGES * PAGE_BYTES, MADV_NOHUGEPAGE), 0);
	assert_true(resident_kb("of-a-program") > 0);
	for (int i = 0; i < PAGES; i++)
		pages[i * PAGE_BYTES] = 1;
	assert_int_equal(call(ELF_OP_ROWS, 400, fd, addr, addr + BLOCK, NULL, 0), 0);
	assert_int_equal(resident_kb("of-a-program"), 0);
	assert_int_equal(call(ELF_OP_ROWS, 400, fd, addr, addr + BLOCK, NULL, 0), 0);
	assert_int_equal(reply.len, len);
	assert_memory_equal(reply.data, first, len);
	assert_int_equal(call(ELF_OP_FORGET, 400, -1, 0, 0, NULL, 0), 0);
	munmap(pages, PAGES * PAGE_BYTES);
	close(fd);
}

static void test_bad_requests(void **state)
{
	int empty = memfd_create("empty", MFD_CLOEXEC), text = memfd_create("text", MFD_CLOEXEC);
	static const enum elf_op about_rows[] = { ELF_OP_ROWS, ELF_OP_EVAL };

	(void)state;
	assert_int_equal(write(text, "#!/bin/sh\n", 10), 10);
	assert_int_equal(call(ELF_OP_GIVE + 1, SELF, self_fd, 0, 0, NULL, 0), -EBADMSG);
	assert_int_equal(call(UINT32_MAX, SELF, self_fd, 0, 0, NULL, 0), -EBADMSG);
	assert_int_equal(call(ELF_OP_ROWS, SELF, self_fd, 0x1000, 0x1000, NULL, 0), -EBADMSG);
	assert_int_equal(call(ELF_OP_ROWS, SELF, self_fd, 0x1000, 0xfff, NULL, 0), -EBADMSG);
	assert_int_equal(call(ELF_OP_ROWS, SELF, self_fd, 0, 65537, NULL, 0), -EBADMSG);
	assert_int_equal(call(ELF_OP_ROWS, SELF, self_fd, 0, UINT64_MAX, NULL, 0), -EBADMSG);
	assert_int_equal(call(ELF_OP_ROWS, SELF, self_fd, UINT64_MAX - 255, UINT64_MAX, NULL, 0), 0);
	assert_int_equal(reply.len, 0);
	for (uint32_t i = 0; i < 2; i++) { /* told the same the second time, without looking again */
		for (size_t k = 0; k < ARRAY_LEN(about_rows); k++) {
			assert_int_equal(call(about_rows[k], 301, empty, 0, 256, NULL, 0), -ENOEXEC);
			assert_int_equal(call(about_rows[k], 302, text, 0, 256, NULL, 0), -ENOEXEC);
			assert_int_equal(call(about_rows[k], 303, -1, 0, 256, NULL, 0), -EBADF);
		}
		assert_int_equal(call(ELF_OP_INFO, 301, empty, 0, 0, NULL, 0), -ENOEXEC);
		assert_int_equal(call(ELF_OP_INFO, 302, text, 0, 0, NULL, 0), -ENOEXEC);
		assert_true(call(ELF_OP_INFO, 303, -1, 0, 0, NULL, 0) < 0);
		assert_int_equal(reply.len, 0);
	}
	close(empty);
	close(text);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_info),	     cmocka_unit_test(test_rows),	cmocka_unit_test(test_entry),
		cmocka_unit_test(test_eval),	     cmocka_unit_test(test_many_files), cmocka_unit_test(test_rest),
		cmocka_unit_test(test_bad_requests),
	};

	return run_group_of_descriptors(tests, make, destroy);
}
