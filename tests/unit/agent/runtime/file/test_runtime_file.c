/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Facts about runtimes in real files: the interpreters that are installed, which say the same of themselves while they run,
 * this process's C library, and programs that are neither. Copies that end early or have bits turned over.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <link.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/runtime/file/runtime_file.h"
#include "base/cleanup.h"
#include "bpf/runtime/python_state.h"
#include "symbols/elf_image.h"
#include "symbols/sources/symbol_image.h"

enum { PATH_BYTES = 512, TURNED = 4000, CUTS = 60 };

static const char python[] = "/usr/bin/python3";

static bool read_path(const char *path, struct symbol_image *image, struct elf_image *im, struct runtime_file *ret)
{
	AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || symbol_image_map(fd, image))
		return false;
	memset(ret, 0xff, sizeof(*ret));
	assert_int_equal(elf_image_open(image->data, image->len_bytes, im), 0);
	runtime_file_read(im, ret);
	return true;
}

/* --- CPython --- */

/* Prints the file that has the type of code objects, its address in it, and the version; with a way to the thread's state,
 * as struct thread_locator has it, whether it leads there. */
static const char script[] =
	"import sys,types\n"
	"code=id(types.CodeType)\n"
	"maps=[l.split() for l in open('/proc/self/maps')]\n"
	"maps=[(int(m[0].split('-')[0],16),int(m[0].split('-')[1],16),m[5]) for m in maps if len(m)>5]\n"
	"path=[m[2] for m in maps if m[0]<=code<m[1]][0]\n"
	"base=min(m[0] for m in maps if m[2]==path)\n"
	"base=0 if open(path,'rb').read(17)[16]==2 else base\n" /* ET_EXEC */
	"v=sys.version_info\n"
	"if len(sys.argv)<2: sys.exit(print(path,code-base,v[0]<<16|v[1]<<8|v[2]))\n"
	"try: import ctypes as c\n"
	"except ImportError: sys.exit(print('no ctypes'))\n"
	"def word(at): return c.c_uint64.from_address(at%2**64).value\n"
	"def tls(at): return word(word(tp+8)+word(at)*16)+word(at+8)\n" /* x86-64 */
	"place,offset,addr=[int(a) for a in sys.argv[1:]]\n"
	"addr+=base\n"
	"now=c.pythonapi.PyThreadState_Get\n"
	"me=c.CDLL(None).pthread_self\n"
	"get=c.CDLL(None).pthread_getspecific\n"
	"now.restype=me.restype=get.restype=c.c_void_p\n"
	"tp=me()\n"
	"if place==4: at=get(c.c_uint(c.c_int.from_address(addr).value))\n"
	"else: at=word(offset+[lambda: tp,lambda: tp+word(addr),lambda: tls(addr)][place]())\n"
	"print('same' if at==now() else 'other')\n";

/* The first line that @interpreter prints when it runs the script above. */
static bool ask(const char *interpreter, const struct thread_locator *way, char *line, size_t len)
{
	char command[PATH_BYTES + sizeof(script)], numbers[64] = "";
	FILE *f;
	bool ok;

	if (way)
		snprintf(numbers, sizeof(numbers), "%u %d %llu", way->place, way->offset, (unsigned long long)way->addr);
	snprintf(command, sizeof(command), "'%s' -I -c \"%s\" %s", interpreter, script, numbers);
	f = popen(command, "r");
	assert_non_null(f);
	ok = fgets(line, (int)len, f);
	return !pclose(f) && ok;
}

static void check_python(const char *interpreter)
{
	struct symbol_image image = { 0 };
	char line[PATH_BYTES], path[PATH_BYTES];
	struct runtime_file found;
	struct elf_image im;
	unsigned long long type = 0;
	unsigned version = 0;

	if (!ask(interpreter, NULL, line, sizeof(line)) || sscanf(line, "%511s %llu %u", path, &type, &version) != 3)
		fail_msg("%s says %s", interpreter, line);
	print_message("%s: %s, version %#x\n", interpreter, path, version);
	assert_true(read_path(path, &image, &im, &found));
	assert_int_equal(found.kind, RUNTIME_FILE_CHAIN);
	assert_int_equal(found.id, RUNTIME_PYTHON);
	assert_int_equal(found.version, version >= 0x030b00 ? version : version & ~0xffu);
	assert_int_equal(found.state.runtime, RUNTIME_PYTHON);
	assert_int_equal(found.state.type, type);
	assert_true(runtime_file_has_threads(&found));
	assert_true(version >= 0x030f00 || found.state.thread.place == THREAD_KEY);
	assert_int_equal(found.state.offset[PYTHON_CODE_VERSION], version >> 8);
	assert_int_equal(found.loop.start != 0, version < 0x030a00);
	assert_true(!found.loop.start ||
		    (found.loop.end > found.loop.start && runtime_file_bytes(&im, found.loop.start, 16)));
	assert_true(!found.state.asid && !found.state.seq_head && !found.state.seq_tail);
	assert_true(runtime_file_is_sound(&found));
	assert_true(ask(interpreter, &found.state.thread, line, sizeof(line)));
	if (!strncmp(line, "no ctypes", 9))
		print_message("  (it has no ctypes: the way to its thread's state is not looked at)\n");
	else
		assert_string_equal(line, "same\n");
	symbol_image_unmap(&image);
}

static void test_python(void **state)
{
	(void)state;
	if (access(python, X_OK)) {
		print_message("%s is missing\n", python);
		skip();
	}
	check_python(python);
}

/* Those of pyenv, from 3.6 on, where there are some, and one that HEARTH_TEST_PYTHON names. */
static void test_other_pythons(void **state)
{
	char pattern[PATH_BYTES];
	glob_t found;

	(void)state;
	if (getenv("HEARTH_TEST_PYTHON"))
		check_python(getenv("HEARTH_TEST_PYTHON"));
	snprintf(pattern, sizeof(pattern), "%s/.pyenv/versions/3.*/bin/python3", getenv("HOME") ? getenv("HOME") : "");
	if (glob(pattern, 0, NULL, &found)) {
		print_message("no other interpreters in %s\n", pattern);
		skip();
	}
	for (size_t i = 0; i < found.gl_pathc; i++) {
		unsigned minor = 0;

		sscanf(strstr(found.gl_pathv[i], "versions/3."), "versions/3.%u", &minor);
		if (minor >= 6)
			check_python(found.gl_pathv[i]);
	}
	globfree(&found);
}

/* --- C libraries --- */

static int find_libc(struct dl_phdr_info *info, size_t size, void *arg)
{
	(void)size;
	if (strstr(info->dlpi_name, "/libc.so.6"))
		snprintf(arg, PATH_BYTES, "%s", info->dlpi_name);
	return 0;
}

/* The values of a thread's keys are where the library says, as bpf/runtime/chain.bpf.h looks for them. */
static void test_libc(void **state)
{
	enum { KEYS = 100 };
	struct symbol_image image = { 0 };
	char path[PATH_BYTES] = "";
	struct runtime_file found;
	pthread_key_t keys[KEYS];
	struct elf_image im;

	(void)state;
	dl_iterate_phdr(find_libc, path);
	assert_true(read_path(path, &image, &im, &found));
	assert_int_equal(found.kind, RUNTIME_FILE_LIBC);
	assert_int_equal(found.state.thread.place, THREAD_KEY);
	assert_true(runtime_file_is_sound(&found));
	for (uint32_t i = 0; i < KEYS; i++) {
		const uint8_t *tp = __builtin_thread_pointer();
		const uint8_t *block, *value;

		assert_int_equal(pthread_key_create(&keys[i], NULL), 0);
		assert_int_equal(pthread_setspecific(keys[i], &keys[i]), 0);
		memcpy(&block, tp + found.state.thread.offset + keys[i] / 32 * 8, sizeof(block));
		assert_non_null(block);
		memcpy(&value, block + keys[i] % 32 * 16 + 8, sizeof(value));
		assert_ptr_equal(value, &keys[i]);
	}
	for (uint32_t i = 0; i < KEYS; i++)
		pthread_key_delete(keys[i]);
	symbol_image_unmap(&image);
}

/* This program's own list of libraries begins where its file says. */
static void check_linked(const struct runtime_file *f)
{
	const uint64_t bias = (uint64_t)(uintptr_t)_DYNAMIC - f->linked.dynamic;
	const struct r_debug *debug;

	assert_true(f->linked.dynamic && f->linked.debug > f->linked.dynamic);
	debug = *(const struct r_debug **)(uintptr_t)(f->linked.debug + bias);
	assert_ptr_equal(debug->r_map->l_ld, _DYNAMIC);
	assert_int_equal(debug->r_map->l_addr, bias);
}

static void test_neither(void **state)
{
	static const struct runtime_file none = { .kind = RUNTIME_FILE_NONE };
	struct symbol_image image = { 0 };
	struct runtime_file found;
	struct runtime_symbol symbol;
	struct elf_image im;

	(void)state;
	assert_true(read_path("/proc/self/exe", &image, &im, &found));
	check_linked(&found);
	memset(&found.linked, 0, sizeof(found.linked));
	assert_memory_equal(&found, &none, sizeof(none));
	assert_int_equal(runtime_file_symbol(&im, "_PyRuntime", &symbol), -ENOENT);
	assert_int_equal(runtime_file_symbol(&im, "_assert_true", &symbol), -ENOENT); /* cmocka's */
	assert_int_equal(runtime_file_symbol(&im, "", &symbol), -ENOENT);
	symbol_image_unmap(&image);
}

/* A file without a hash table is the same: each symbol is looked at, and those that are another file's are none. */
static void test_no_hash(void **state)
{
	static const char name[] = ".gnu.hash";
	struct symbol_image image = { 0 };
	struct runtime_file found, again;
	AUTO_FREE uint8_t *copy = NULL;
	struct runtime_symbol symbol;
	char path[PATH_BYTES] = "";
	struct elf_image im;
	uint8_t *at;

	(void)state;
	dl_iterate_phdr(find_libc, path);
	assert_true(read_path(path, &image, &im, &found));
	copy = malloc(image.len_bytes);
	assert_non_null(copy);
	memcpy(copy, image.data, image.len_bytes);
	while ((at = memmem(copy, image.len_bytes, name, sizeof(name))))
		*at = 'x';
	assert_int_equal(elf_image_open(copy, image.len_bytes, &im), 0);
	runtime_file_read(&im, &again);
	assert_memory_equal(&again, &found, sizeof(found));
	assert_int_equal(runtime_file_symbol(&im, "malloc", &symbol), 0);
	assert_int_equal(runtime_file_symbol(&im, "_rtld_global", &symbol), -ENOENT); /* the linker's */
	symbol_image_unmap(&image);
}

/* --- files that lie --- */

static void test_sound(void **state)
{
	const struct runtime_file last_way = { .way = RUNTIME_WAY_MAX - 1 }, no_way = { .way = RUNTIME_WAY_MAX };
	static const struct {
		uint32_t kind, id, runtime;
		bool is_sound;
	} cases[] = {
		{ RUNTIME_FILE_NONE, 0, 0, true },
		{ RUNTIME_FILE_LIBC, 0, 0, true },
		{ RUNTIME_FILE_CHAIN, RUNTIME_ID_MAX - 1, RUNTIME_ID_MAX - 1, true },
		{ RUNTIME_FILE_CODE, 0, 0, true },
		{ RUNTIME_FILE_CODE + 1, 0, 0, false },
		{ RUNTIME_FILE_CHAIN, RUNTIME_ID_MAX, 0, false },
		{ RUNTIME_FILE_CHAIN, 0, RUNTIME_ID_MAX, false },
		{ RUNTIME_FILE_CHAIN, 0, 32, false },
		{ UINT32_MAX, 0, 0, false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const struct runtime_file f = { .kind = cases[i].kind,
						.id = cases[i].id,
						.state = { .runtime = cases[i].runtime } };

		assert_int_equal(runtime_file_is_sound(&f), cases[i].is_sound);
	}
	assert_true(runtime_file_is_sound(&last_way));
	assert_false(runtime_file_is_sound(&no_way));
}

/* Reads @len bytes of a file, changed or cut. */
static void read_bytes(const uint8_t *bytes, size_t len)
{
	struct runtime_file found;
	struct elf_image im;

	if (elf_image_open(bytes, len, &im))
		return;
	memset(&found, 0xff, sizeof(found));
	runtime_file_read(&im, &found);
	assert_true(runtime_file_is_sound(&found));
}

/* An area of the file that says where things are. */
static Elf64_Shdr area_of(const struct elf_image *im, uint32_t which)
{
	static const char *const names[] = { ".dynsym", ".dynstr", ".gnu.hash", ".gnu.hash", ".dynamic" };
	Elf64_Shdr area = { .sh_offset = 0, .sh_size = sizeof(Elf64_Ehdr) };

	if (which == 1)
		area = (Elf64_Shdr){ .sh_offset = im->ehdr.e_phoff, .sh_size = im->ehdr.e_phnum * sizeof(Elf64_Phdr) };
	else if (which == 2)
		area = (Elf64_Shdr){ .sh_offset = im->ehdr.e_shoff, .sh_size = im->ehdr.e_shnum * sizeof(Elf64_Shdr) };
	else if (which > 2)
		assert_true(elf_image_find(im, names[which - 3], &area));
	if (which == 5)
		area.sh_size = 16; /* the table's head */
	return area;
}

static void test_turned_bits(void **state)
{
	struct symbol_image image = { 0 };
	AUTO_FREE uint8_t *copy = NULL;
	struct runtime_file found;
	struct elf_image im;

	(void)state;
	if (!read_path(python, &image, &im, &found)) {
		print_message("%s is missing\n", python);
		skip();
	}
	copy = malloc(image.len_bytes);
	assert_non_null(copy);
	memcpy(copy, image.data, image.len_bytes);
	srandom(7);
	for (int i = 0; i < TURNED; i++) {
		Elf64_Shdr area = area_of(&im, (uint32_t)i % 8);

		for (long k = random() % 4; k >= 0; k--)
			copy[area.sh_offset + (uint64_t)random() % area.sh_size] ^= (uint8_t)(1 << random() % 8);
		read_bytes(copy, image.len_bytes);
		memcpy(copy + area.sh_offset, (const uint8_t *)image.data + area.sh_offset, area.sh_size);
	}
	symbol_image_unmap(&image);
}

static void test_cut(void **state)
{
	struct symbol_image image = { 0 };
	struct runtime_file found;
	struct elf_image im;

	(void)state;
	if (!read_path(python, &image, &im, &found)) {
		print_message("%s is missing\n", python);
		skip();
	}
	srandom(8);
	for (uint32_t i = 0; i < CUTS; i++) {
		size_t len = i < 8 ? area_of(&im, i).sh_offset + area_of(&im, i).sh_size / 2
				   : (uint64_t)random() % image.len_bytes;
		AUTO_FREE uint8_t *copy = malloc(len + 1);

		assert_non_null(copy);
		memcpy(copy + 1, image.data, len); /* ends where its memory ends, and is not aligned */
		read_bytes(copy + 1, len);
	}
	symbol_image_unmap(&image);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_python),	    cmocka_unit_test(test_other_pythons), cmocka_unit_test(test_libc),
		cmocka_unit_test(test_neither),	    cmocka_unit_test(test_no_hash),	  cmocka_unit_test(test_sound),
		cmocka_unit_test(test_turned_bits), cmocka_unit_test(test_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
