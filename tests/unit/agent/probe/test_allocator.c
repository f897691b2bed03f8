/* SPDX-License-Identifier: Apache-2.0 */
/* The functions by which this process allocates: those that the dynamic linker bound, at the places where it found them. */
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/config.h"
#include "agent/probe/allocator.h"
#include "base/cleanup.h"
#include "bpf/alloc_size.h"
#include "tests/unit/descriptors.h"

/* Where in its file the function at @addr stands. */
struct place {
	uint64_t addr, offset;
};

static int find_offset(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct place *p = arg;

	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];

		if (ph->p_type != PT_LOAD || p->addr - info->dlpi_addr - ph->p_vaddr >= ph->p_filesz)
			continue;
		p->offset = p->addr - info->dlpi_addr - ph->p_vaddr + ph->p_offset;
		return 1;
	}
	return 0;
}

static void test_own_allocator(void **state)
{
	static const struct {
		const char *name;
		uint32_t size, of_libc;
	} wanted[] = {
		{ "malloc", ALLOC_SIZE_FIRST, ALLOC_SIZE_FIRST },
		{ "calloc", ALLOC_SIZE_PRODUCT, ALLOC_SIZE_PRODUCT },
		{ "realloc", ALLOC_SIZE_SECOND, ALLOC_SIZE_GROWN },
		{ "posix_memalign", ALLOC_SIZE_THIRD, ALLOC_SIZE_THIRD },
	};
	const uint32_t pid = (uint32_t)getpid();
	struct agent_error err = { "" };
	struct alloc_set *set = calloc(1, sizeof(*set));

	(void)state;
	assert_non_null(set);
	assert_int_equal(allocator_add(set, pid, &err), 0);
	for (size_t i = 0; i < ARRAY_LEN(wanted); i++) {
		struct place place = { .addr = (uintptr_t)dlsym(RTLD_DEFAULT, wanted[i].name) };
		uint32_t count = 0;
		Dl_info file;

		assert_true(place.addr && dladdr((void *)place.addr, &file) && dl_iterate_phdr(find_offset, &place));
		for (uint32_t k = 0; k < set->count; k++) {
			const struct alloc_place *p = &set->list[k];

			assert_int_equal(p->pid, pid);
			if (p->offset != place.offset)
				continue;
			count++;
			assert_int_equal(p->size, strstr(file.dli_fname, "libc.so") ? wanted[i].of_libc : wanted[i].size);
			if (strstr(file.dli_fname, "libc.so"))
				assert_non_null(strstr(p->file, "/libc.so"));
		}
		assert_int_equal(count, 1); /* a function with two names once */
	}
	allocator_set_free(set);
}

static void test_nobody(void **state)
{
	struct agent_error err = { "" };
	struct alloc_set set = { .count = 0 };

	(void)state;
	assert_int_equal(allocator_add(&set, 1u << 30, &err), -ENOENT);
	assert_string_equal(err.message, "malloc of process 1073741824: there is no such process");
	assert_int_equal(set.count, 0);
	allocator_set_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_own_allocator), cmocka_unit_test(test_nobody) };

	return run_group_of_descriptors(tests, NULL, NULL);
}
