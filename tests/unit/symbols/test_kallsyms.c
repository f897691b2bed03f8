/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel's symbols: a small list with every peculiarity, the running kernel's own list, and broken ones. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "symbols/symbols.h"

enum { HASH_AT = 24, HEAD_BYTES = 48 }; /* of a kept list: struct head of symbols/kallsyms.c */

/* The list @text as a file. */
static int load(const char *text, size_t len, struct kallsyms **ret)
{
	AUTO_CLOSE int fd = memfd_create("kallsyms", MFD_CLOEXEC);
	char path[64];

	assert_int_equal(write(fd, text, len), len);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return kallsyms_new(path, ret);
}

static const char list[] = "0000000000000000 A fixed_percpu_data\n"
			   "ffffffff81000000 T _text\n"
			   "ffffffff81000000 t local_start\n"
			   "ffffffff81000000 T startup_64\n"
			   "ffffffff81000000 T startup_64_long\n"
			   "ffffffff81001000 T __pfx_do_one\n"
			   "ffffffff81001010 T do_one\n"
			   "ffffffff81001080 W weak_two\n"
			   "ffffffff81001100 D not_code\n"
			   "ffffffff81002000 T _etext\n"
			   "ffffffff82000000 R rodata\n"
			   "nonsense\n"
			   "\n"
			   "ffffffff81001180 q unknown_type\n"
			   "ffffffffc0002000 t second_mod\t[beta]\n"
			   "ffffffffc0000000 t first_init\t[alpha]\n"
			   "ffffffffc0000100 t first_do\t[alpha]\n"
			   "ffffffffc0000200 r first_data\t[alpha]\n"
			   "ffffffffc0000180 d more_data\t[alpha]\n"
			   "ffffffffc0004000 t lone_do\t[gamma]\n"
			   "ffffffffc0004000 d same_place\t[gamma]\n"
			   "ffffffffc0003000 t bpf_prog_0123456789abcdef_walk\t[bpf]";

static void test_list(void **state)
{
	static const struct {
		uint64_t addr;
		const char *name, *module;
		uint64_t start;
	} cases[] = {
		{ 0xffffffff80ffffff, NULL, NULL, 0 },
		{ 0xffffffff81000000, "startup_64", "", 0xffffffff81000000 },
		{ 0xffffffff81001005, "startup_64", "", 0xffffffff81000000 }, /* padding symbols are passed over */
		{ 0xffffffff81001010, "do_one", "", 0xffffffff81001010 },
		{ 0xffffffff8100107f, "do_one", "", 0xffffffff81001010 },
		{ 0xffffffff81001fff, "weak_two", "", 0xffffffff81001080 },
		{ 0xffffffff81002000, NULL, NULL, 0 },
		{ 0xffffffff83000000, NULL, NULL, 0 },
		{ 0xffffffffc0000001, "first_init", "alpha", 0xffffffffc0000000 },
		{ 0xffffffffc000017f, "first_do", "alpha", 0xffffffffc0000100 },
		{ 0xffffffffc0000180, NULL, NULL, 0 }, /* the module's data */
		{ 0xffffffffc00001ff, NULL, NULL, 0 },
		{ 0xffffffffc0000abc, NULL, NULL, 0 },
		{ 0xffffffffc0002abc, "second_mod", "beta", 0xffffffffc0002000 },
		{ 0xffffffffc0003004, "bpf_prog_0123456789abcdef_walk", "bpf", 0xffffffffc0003000 },
		{ 0xffffffffc0003fff, "bpf_prog_0123456789abcdef_walk", "bpf", 0xffffffffc0003000 },
		{ 0xffffffffc0004fff, "lone_do", "gamma", 0xffffffffc0004000 }, /* the last of its text */
		{ 0xffffffffc0005000, NULL, NULL, 0 },
		{ 0xffffffffc0103004, NULL, NULL, 0 },
		{ 0, NULL, NULL, 0 },
		{ UINT64_MAX, NULL, NULL, 0 },
	};
	struct kallsyms *k;

	(void)state;
	assert_int_equal(load(list, sizeof(list) - 1, &k), 0);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const char *name = NULL, *module = NULL;
		uint64_t start = 0;
		int r = kallsyms_find(k, cases[i].addr, &name, &module, &start);

		assert_int_equal(r, cases[i].name ? 0 : -ENOENT);
		if (r)
			continue;
		assert_string_equal(name, cases[i].name);
		assert_string_equal(module, cases[i].module);
		assert_int_equal(start, cases[i].start);
	}
	assert_true(kallsyms_memory_bytes(k) > 100 && kallsyms_memory_bytes(k) < 10000);
	kallsyms_free(k);
}

static void test_modules(void **state)
{
	static const char one[] =
		"xfs 1843200 2 - Live 0xffffffffc0a00000\nkvm 1400832 1 kvm_intel, Live 0xffffffffc0600000 (OE)\n";
	static const char used[] = "xfs 1843200 9 - Live 0xffffffffc0a00000\nkvm 1400832 0 - Live 0xffffffffc0600000 (OE)\n";
	static const char moved[] =
		"xfs 1843200 2 - Live 0xffffffffc0b00000\nkvm 1400832 1 kvm_intel, Live 0xffffffffc0600000 (OE)\n";
	struct buf a = BUF_EMPTY, b = BUF_EMPTY;

	(void)state;
	kallsyms_modules(one, &a);
	kallsyms_modules(used, &b); /* who uses it is no matter */
	assert_string_equal(buf_text(&a), "xfs 1843200 Live 0xffffffffc0a00000\nkvm 1400832 Live 0xffffffffc0600000 (OE)\n");
	assert_string_equal(buf_text(&b), buf_text(&a));
	buf_reset(&b);
	kallsyms_modules(moved, &b);
	assert_string_not_equal(buf_text(&b), buf_text(&a));
	buf_reset(&b);
	kallsyms_modules("", &b);
	assert_int_equal(b.len, 0);
	kallsyms_modules("a\nb 1", &b); /* whatever it is: not read past its end */
	assert_true(b.len > 0);
	buf_fini(&a);
	buf_fini(&b);
}

/* The notes of those modules that the folder has, whole, with NULs in them. */
static void test_module_ids(void **state)
{
	static const char note[] = "\4\0\0\0\3\0\0\0\3\0\0\0GNU\0\1\2\3";
	char folder[] = "/tmp/test_kallsyms.XXXXXX", command[256];
	struct buf ids = BUF_EMPTY;
	FILE *f;

	(void)state;
	assert_non_null(mkdtemp(folder));
	snprintf(command, sizeof(command), "mkdir -p %s/kvm/notes %s/xfs %s/other/notes", folder, folder, folder);
	assert_int_equal(system(command), 0);
	for (int i = 0; i < 2; i++) {
		snprintf(command, sizeof(command), "%s/%s/notes/.note.gnu.build-id", folder, i ? "other" : "kvm");
		f = fopen(command, "w");
		assert_non_null(f);
		assert_int_equal(fwrite(note, 1, sizeof(note), f), sizeof(note));
		fclose(f);
	}
	kallsyms_module_ids("", folder, &ids);
	assert_int_equal(ids.len, 0);
	kallsyms_module_ids("xfs 1843200 Live 0xffffffffc0a00000\nkvm 1400832 Live 0xffffffffc0600000 (OE)", folder, &ids);
	assert_int_equal(ids.len, sizeof(note));
	assert_memory_equal(ids.data, note, sizeof(note));
	kallsyms_module_ids("kvm 1 Live 0x1\nother 2 Live 0x2\n", folder, &ids);
	assert_int_equal(ids.len, 3 * sizeof(note));
	buf_fini(&ids);
	snprintf(command, sizeof(command), "rm -r %s", folder);
	assert_int_equal(system(command), 0);
}

static void test_broken(void **state)
{
	static const char hidden[] = "0000000000000000 T _text\n0000000000000000 t other\n";
	AUTO_FREE char *endless = malloc(200000);
	struct kallsyms *k;

	(void)state;
	assert_int_equal(load(hidden, sizeof(hidden) - 1, &k), -EPERM);
	assert_int_equal(load("", 0, &k), -EPERM);
	assert_int_equal(load("ffffffff81000000 D data\n", 24, &k), 0); /* no code at all */
	assert_int_equal(
		kallsyms_find(k, 0xffffffff81000000, &(const char *){ NULL }, &(const char *){ NULL }, &(uint64_t){ 0 }),
		-ENOENT);
	kallsyms_free(k);
	assert_non_null(endless);
	memset(endless, 'a', 200000);
	assert_int_equal(load(endless, 200000, &k), -EINVAL);
	assert_int_equal(kallsyms_new("/nonexistent/kallsyms", &k), -ENOENT);
	kallsyms_free(NULL);
}

/* Lines that stand across the borders of reads, and many modules. */
static void test_long_list(void **state)
{
	enum { COUNT = 20000 };
	size_t len = 0, size = COUNT * 64;
	AUTO_FREE char *text = malloc(size);
	struct kallsyms *k;

	(void)state;
	assert_non_null(text);
	for (int i = COUNT - 1; i >= 0; i--)
		len += (size_t)snprintf(text + len, size - len, "%016llx t function_%d\t[m%d]\n",
					0xffffffffc0000000ull + (unsigned)i * 32, i, i / 10);
	assert_int_equal(load(text, len, &k), 0);
	for (int i = 0; i < COUNT; i++) {
		const char *name, *module;
		char expected[2][32];
		uint64_t start;

		snprintf(expected[0], sizeof(expected[0]), "function_%d", i);
		snprintf(expected[1], sizeof(expected[1]), "m%d", i / 10);
		assert_int_equal(kallsyms_find(k, 0xffffffffc0000000ull + (unsigned)i * 32 + 31, &name, &module, &start), 0);
		assert_string_equal(name, expected[0]);
		assert_string_equal(module, expected[1]);
	}
	kallsyms_free(k);
}

/* The kernel's list as it is now: it changes whenever a BPF program comes or goes. */
static char *read_own_list(size_t *len)
{
	AUTO_CLOSE int fd = open("/proc/kallsyms", O_RDONLY | O_CLOEXEC);
	size_t cap = 64 << 20;
	char *text = malloc(cap);
	ssize_t n;

	assert_non_null(text);
	for (*len = 0; (n = read(fd, text + *len, cap - *len - 1)) > 0; *len += (size_t)n)
		;
	text[*len] = '\0';
	return text;
}

/* Every text symbol of the running kernel is found at its own address, under its own or a same-placed name. */
static void test_running_kernel(void **state)
{
	size_t len, count = 0, same = 0;
	AUTO_FREE char *text = read_own_list(&len);
	struct kallsyms *k;
	char *save = NULL;
	int r = load(text, len, &k);

	(void)state;
	if (r == -EPERM)
		skip();
	assert_int_equal(r, 0);
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		const char *found, *module;
		unsigned long addr;
		uint64_t start;
		char type, name[512];

		if (sscanf(line, "%lx %c %511s", &addr, &type, name) != 3 || !strchr("tT", type) ||
		    strncmp(name, "__pfx_", 6) == 0 || strncmp(name, "__cfi_", 6) == 0)
			continue;
		if (kallsyms_find(k, addr, &found, &module, &start)) {
			assert_true(strcmp(name, "_etext") == 0 || strcmp(name, "_einittext") == 0);
			continue;
		}
		assert_int_equal(start, addr);
		same += strcmp(found, name) == 0;
		count++;
	}
	assert_true(count > 1000);
	assert_true(same > count * 9 / 10);
	kallsyms_free(k);
	r = kallsyms_new(NULL, &k); /* by its own path, whatever it holds by now */
	assert_int_equal(r, 0);
	kallsyms_free(k);
}

static const char key[KALLSYMS_KEY_BYTES] = "a boot's modules";

/* The same answer of both lists to @addr. */
static void same(const struct kallsyms *a, const struct kallsyms *b, uint64_t addr)
{
	const char *names[2] = { "", "" }, *modules[2] = { "", "" };
	uint64_t starts[2] = { 0 };
	int status = kallsyms_find(a, addr, &names[0], &modules[0], &starts[0]);

	assert_int_equal(kallsyms_find(b, addr, &names[1], &modules[1], &starts[1]), status);
	assert_string_equal(names[0], names[1]);
	assert_string_equal(modules[0], modules[1]);
	assert_int_equal(starts[0], starts[1]);
}

/* What is kept answers as the list did, but for code that comes and goes. */
static void test_kept(void **state)
{
	static const char passing[] = "ffffffffc0000000 t first\t[alpha]\n"
				      "ffffffffc0000800 d data\t[alpha]\n"
				      "ffffffffc0001000 t insn\t[__builtin__kprobes]\n"
				      "ffffffffc0002000 t prog\t[bpf]\n"
				      "ffffffffc0003000 t last\t[beta]";
	char folder[] = "/tmp/test_kallsyms.XXXXXX";
	const char *name, *module;
	struct kallsyms *k, *kept;
	uint64_t start;
	int dir_fd;

	(void)state;
	assert_non_null(mkdtemp(folder));
	dir_fd = open(folder, O_RDONLY | O_DIRECTORY);
	assert_true(dir_fd >= 0);
	assert_int_equal(kallsyms_kept(dir_fd, "list", key, &kept), -ENOENT);
	assert_int_equal(load(list, sizeof(list) - 1, &k), 0);
	assert_int_equal(kallsyms_keep(k, dir_fd, "list", key), 0);
	assert_int_equal(kallsyms_kept(dir_fd, "list", "another boot's m", &kept), -ESTALE);
	assert_int_equal(kallsyms_kept(dir_fd, "list", key, &kept), 0);
	for (uint64_t addr = 0xffffffff80fffff0; addr < 0xffffffff81002010; addr += 8)
		same(k, kept, addr);
	for (uint64_t addr = 0xffffffffc0000000 - 8; addr < 0xffffffffc0003000; addr += 8)
		same(k, kept, addr);
	same(k, kept, 0);
	same(k, kept, UINT64_MAX);
	kallsyms_rest(kept);
	assert_true(kallsyms_memory_bytes(kept) < kallsyms_memory_bytes(k) / 2);
	kallsyms_free(k);
	kallsyms_free(kept);
	/* In the place of another one. */
	assert_int_equal(load(passing, sizeof(passing) - 1, &k), 0);
	assert_int_equal(kallsyms_keep(k, dir_fd, "list", key), 0);
	assert_int_equal(kallsyms_kept(dir_fd, "list", key, &kept), 0);
	same(k, kept, 0xffffffffc0000010);
	same(k, kept, 0xffffffffc0000900);
	same(k, kept, 0xffffffffc0003010);
	assert_int_equal(kallsyms_find(k, 0xffffffffc0001010, &name, &module, &start), 0);
	assert_int_equal(kallsyms_find(kept, 0xffffffffc0001010, &name, &module, &start), -ENOENT);
	assert_int_equal(kallsyms_find(k, 0xffffffffc0002010, &name, &module, &start), 0);
	assert_int_equal(kallsyms_find(kept, 0xffffffffc0002010, &name, &module, &start), -ENOENT);
	kallsyms_free(k);
	kallsyms_free(kept);
	unlinkat(dir_fd, "list", 0);
	assert_int_equal(rmdir(folder), 0);
	close(dir_fd);
}

/* Every byte changed, and every beginning: an error, or answers that are within the file. */
static void test_broken_file(void **state)
{
	char folder[] = "/tmp/test_kallsyms.XXXXXX", path[64];
	uint8_t whole[4096], bytes[4096];
	struct kallsyms *k, *kept;
	uint64_t start;
	ssize_t len;
	int dir_fd, fd;

	(void)state;
	assert_non_null(mkdtemp(folder));
	dir_fd = open(folder, O_RDONLY | O_DIRECTORY);
	assert_int_equal(load(list, sizeof(list) - 1, &k), 0);
	assert_int_equal(kallsyms_keep(k, dir_fd, "list", key), 0);
	kallsyms_free(k);
	snprintf(path, sizeof(path), "%s/list", folder);
	fd = open(path, O_RDWR);
	len = read(fd, whole, sizeof(whole));
	assert_true(len > 200 && len < (ssize_t)sizeof(whole));
	for (ssize_t i = 0; i < 2 * len; i++) {
		size_t cut = i < len ? (size_t)len : (size_t)(i - len);
		int status;

		memcpy(bytes, whole, (size_t)len);
		if (i < len)
			bytes[i] ^= 0x41;
		assert_int_equal(ftruncate(fd, 0), 0);
		assert_int_equal(pwrite(fd, bytes, cut, 0), cut);
		status = kallsyms_kept(dir_fd, "list", key, &kept);
		assert_true(status == -ESTALE || status == -EBADMSG);
	}
	/* A right checksum over wrong numbers. */
	for (ssize_t i = HEAD_BYTES; i < len; i++) {
		uint64_t hash;

		memcpy(bytes, whole, (size_t)len);
		bytes[i] ^= 0xff;
		hash = XXH3_64bits(bytes + HEAD_BYTES, (size_t)len - HEAD_BYTES);
		memcpy(bytes + HASH_AT, &hash, sizeof(hash));
		assert_int_equal(pwrite(fd, bytes, (size_t)len, 0), len);
		if (kallsyms_kept(dir_fd, "list", key, &kept)) {
			assert_int_equal(i, len - 1); /* the last name has no end */
			continue;
		}
		for (uint64_t addr = 0xffffffff80ff0000; addr < 0xffffffffc0005000; addr += 0x100000) {
			const char *name = "", *module = "";

			if (!kallsyms_find(kept, addr, &name, &module, &start))
				assert_true(strlen(name) < (size_t)len && strlen(module) < (size_t)len);
		}
		kallsyms_free(kept);
	}
	close(fd);
	unlink(path);
	rmdir(folder);
	close(dir_fd);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_list),   cmocka_unit_test(test_modules),	   cmocka_unit_test(test_module_ids),
		cmocka_unit_test(test_broken), cmocka_unit_test(test_long_list),   cmocka_unit_test(test_running_kernel),
		cmocka_unit_test(test_kept),   cmocka_unit_test(test_broken_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
