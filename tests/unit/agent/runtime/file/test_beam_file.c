/* SPDX-License-Identifier: Apache-2.0 */
/* The Erlang that is installed says what the reader needs; a file that is none, and one that is cut, say nothing. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <fcntl.h>
#include <glob.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/runtime/file/beam_facts.h"
#include "agent/runtime/file/runtime_file.h"
#include "symbols/elf_image.h"

static bool read_file(const char *path, size_t max_bytes, struct runtime_file *ret)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct elf_image image;
	struct stat st;
	void *bytes;
	bool is_beam;

	assert_true(fd >= 0 && !fstat(fd, &st));
	bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	assert_true(bytes != MAP_FAILED);
	close(fd);
	memset(ret, 0, sizeof(*ret));
	is_beam = !elf_image_open(bytes, (size_t)st.st_size < max_bytes ? (size_t)st.st_size : max_bytes, &image) &&
		  beam_file_read(&image, ret);
	munmap(bytes, (size_t)st.st_size);
	return is_beam;
}

static void test_installed(void **state)
{
	struct runtime_file file;
	glob_t found;

	(void)state;
	if (glob("/usr/lib/erlang/erts-*/bin/beam.smp", 0, NULL, &found))
		skip();
	assert_true(read_file(found.gl_pathv[0], SIZE_MAX, &file));
	assert_true(runtime_file_is_sound(&file));
	assert_int_equal(file.code.id, CODE_BEAM);
	for (int i = 0; i < BEAM_FACT_MAX; i++)
		assert_true(file.code.fact[i]);
	assert_true(file.code.fact[BEAM_FACT_DATA_START] < file.code.fact[BEAM_FACT_DATA_END]);
	if (file.version >> 16 == 25 || file.version >> 16 == 27) {
		assert_int_equal(file.state.thread.place, THREAD_KEY);
		assert_true(file.state.offset[BEAM_STACK_POINTER] && file.state.offset[BEAM_STACK_END]);
	}
	for (size_t bytes = 64; bytes < 1 << 20; bytes += 65536 / 3)
		(void)read_file(found.gl_pathv[0], bytes, &file);
	globfree(&found);
}

static void test_other(void **state)
{
	struct runtime_file file;

	(void)state;
	assert_false(read_file("/proc/self/exe", SIZE_MAX, &file));
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_installed), cmocka_unit_test(test_other) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
