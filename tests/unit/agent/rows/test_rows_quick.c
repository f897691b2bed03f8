/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows asked for without what takes long, against all that can be known, over the code of libraries, byte by byte: what is
 * said is the same, what is not said is marked, and asking for the sake of a marked address says everything.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "agent/rows/code/state.h"
#include "agent/helper/elf_service.h"
#include "base/cleanup.h"
#include "tests/unit/descriptors.h"

enum { GROUP = 4096 };

struct answer {
	struct row rows[GROUP];
	size_t count;
};

static struct answer all, quick, again;

static const uint8_t *code; /* of the segment at base_addr */
static uint64_t base_addr, code_end;

static const struct row *row_at(const struct answer *a, uint64_t addr)
{
	for (size_t i = 0; i < a->count; i++)
		if (addr >= a->rows[i].start && addr < a->rows[i].end)
			return &a->rows[i];
	return NULL;
}

static bool same(const struct row *a, const struct row *b)
{
	return a->cfa == b->cfa && a->cfa_reg == b->cfa_reg && a->cfa_off == b->cfa_off && a->cfa_off2 == b->cfa_off2 &&
	       a->is_guess == b->is_guess && a->is_signal_frame == b->is_signal_frame &&
	       memcmp(a->saved, b->saved, sizeof(a->saved)) == 0;
}

/* Is the byte at @addr one of an instruction that fills up room? */
static bool is_padding(uint64_t addr)
{
	for (uint64_t from = addr; from + 15 > addr && from >= base_addr && addr < code_end; from--)
		if (from + code_padding_bytes(code + (from - base_addr), code_end - from) > addr)
			return true;
	return false;
}

/* Returns how many bytes of the group at @start are marked. */
static unsigned check_group(struct row_source *src, uint64_t start, uint64_t end)
{
	unsigned marked = 0;

	assert_int_equal(rows_build(src, start, end, all.rows, GROUP, &all.count), 0);
	assert_int_equal(rows_build_at(src, UINT64_MAX, start, end, quick.rows, GROUP, &quick.count), 0);
	for (uint64_t addr = start; addr < end; addr++) {
		const struct row *whole = row_at(&all, addr), *said = row_at(&quick, addr);

		if (said && said->cfa == ROW_CFA_UNASKED) {
			if (marked++)
				continue;
			assert_int_equal(rows_build_at(src, addr, start, end, again.rows, GROUP, &again.count), 0);
			assert_int_equal(again.count, all.count);
			for (size_t i = 0; i < all.count; i++)
				assert_true(same(&again.rows[i], &all.rows[i]) && again.rows[i].start == all.rows[i].start);
			continue;
		}
		if (whole && whole->is_guess && is_padding(addr))
			continue; /* a search may take it for a function, as it looks at bytes */
		if (!whole != !said || (said && !same(said, whole)))
			fail_msg("%llx: %s", (unsigned long long)addr, said ? "another row" : "no row and no mark");
	}
	return marked;
}

static void check_library(const char *name)
{
	void *library = dlopen(name, RTLD_NOW);
	struct elf_service *service;
	struct buf reply = BUF_EMPTY;
	uint64_t bytes = 0, marked = 0;
	struct row_source *src;
	struct elf_info info;
	struct link_map *map;
	AUTO_CLOSE int fd = -1;

	assert_non_null(library);
	assert_int_equal(dlinfo(library, RTLD_DI_LINKMAP, &map), 0);
	fd = open(map->l_name, O_RDONLY | O_CLOEXEC);
	assert_int_equal(elf_service_new(&service), 0);
	assert_int_equal(elf_service_call(service, &(struct elf_request){ .op = ELF_OP_INFO }, fd, NULL, 0, &reply), 0);
	memcpy(&info, reply.data, sizeof(info));
	assert_int_equal(row_source_new(fd, &src), 0);
	for (uint32_t i = 0; i < info.segment_count; i++) {
		uint64_t end = info.segments[i].vaddr + info.segments[i].size_bytes;

		code = (const uint8_t *)(map->l_addr + info.segments[i].vaddr);
		base_addr = info.segments[i].vaddr;
		code_end = end;
		/* The last one reaches beyond the segment, as it does when it is asked for. */
		for (uint64_t at = info.segments[i].vaddr / GROUP * GROUP; at < end; at += GROUP, bytes += GROUP)
			marked += check_group(src, at, at + GROUP);
	}
	print_message("%s: %llu bytes, %llu of them only by their instructions\n", name, (unsigned long long)bytes,
		      (unsigned long long)marked);
	assert_in_range(marked, 1, bytes / 20); /* .init and .fini at the least */
	row_source_free(src);
	elf_service_free(service);
	buf_fini(&reply);
	dlclose(library);
}

static void test_libraries(void **state)
{
	(void)state;
	check_library("libc.so.6");
	check_library("libm.so.6");
}

int main(void)
{
	static const struct CMUnitTest tests[] = { cmocka_unit_test(test_libraries) };

	return run_group_of_descriptors(tests, NULL, NULL);
}
