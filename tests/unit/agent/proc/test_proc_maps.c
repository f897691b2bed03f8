/* SPDX-License-Identifier: Apache-2.0 */
/* The maps parser on lines as kernels print them, on broken ones, and on this very process. */
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/proc/proc_maps.h"
#include "base/cleanup.h"
#include "tests/unit/descriptors.h"

enum { PAGE = 4096 };

static char *guarded; /* a page, and behind it one that cannot be read */

static int map_guarded(void **state)
{
	(void)state;
	guarded = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return guarded == MAP_FAILED || mprotect(guarded + PAGE, PAGE, PROT_NONE);
}

static int unmap_guarded(void **state)
{
	(void)state;
	return munmap(guarded, 2 * PAGE);
}

/* Parses @len bytes that end where reading on would be fatal. */
static int parse_at_guard(const char *line, size_t len, struct proc_map *ret)
{
	char *at = guarded + PAGE - len;

	memcpy(at, line, len);
	return proc_maps_parse_line(at, len, ret);
}

static const struct {
	const char *line;
	uint64_t start, end, offset, inode;
	uint32_t dev_major, dev_minor;
	bool executable;
	const char *path;
} good[] = {
	{ "00400000-00452000 r-xp 00000000 08:02 173521      /usr/bin/dbus-daemon", 0x400000, 0x452000, 0, 173521, 8, 2,
	  true, "/usr/bin/dbus-daemon" },
	{ "7f8a3c1f2000-7f8a3c35a000 r--p 0019d000 fe:100000 2 /lib/libc.so.6", 0x7f8a3c1f2000, 0x7f8a3c35a000, 0x19d000, 2,
	  0xfe, 0x100000, false, "/lib/libc.so.6" },
	{ "7f0000000000-7f0000001000 --xs ffffffff000 103:0a 5  /opt/a b/two  blanks.so (deleted)", 0x7f0000000000,
	  0x7f0000001000, 0xffffffff000, 5, 0x103, 10, true, "/opt/a b/two  blanks.so (deleted)" },
	{ "7f0000000000-7f0000001000 rwxp 00000000 00:00 0 ", 0x7f0000000000, 0x7f0000001000, 0, 0, 0, 0, true, "" },
	{ "7f0000000000-7f0000001000 rw-p 00000000 00:00 0", 0x7f0000000000, 0x7f0000001000, 0, 0, 0, 0, false, "" },
	{ "7ffc0b9f8000-7ffc0b9fa000 r-xp 00000000 00:00 0                          [vdso]", 0x7ffc0b9f8000, 0x7ffc0b9fa000,
	  0, 0, 0, 0, true, "[vdso]" },
	{ "ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]", 0xffffffffff600000,
	  0xffffffffff601000, 0, 0, 0, 0, true, "[vsyscall]" },
	{ "1000-ffffffffffffffff r-xp ffffffffffffffff ffffffff:ffffffff 18446744073709551615 /memfd:jit (deleted)", 0x1000,
	  UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT32_MAX, UINT32_MAX, true, "/memfd:jit (deleted)" },
	{ "7f0000000000-7f0000001000 r-xp 00001000 00:01 1024 /dev/shm/with\\012newline and -: signs", 0x7f0000000000,
	  0x7f0000001000, 0x1000, 1024, 0, 1, true, "/dev/shm/with\\012newline and -: signs" },
	{ "7f0000000000-7f0000001000 r-xp 00000000 00:00 0 [anon:code 1]", 0x7f0000000000, 0x7f0000001000, 0, 0, 0, 0, true,
	  "[anon:code 1]" },
};

static void test_good_lines(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		struct proc_map m;

		print_message("%s\n", good[i].line);
		assert_int_equal(parse_at_guard(good[i].line, strlen(good[i].line), &m), 0);
		assert_true(m.start == good[i].start && m.end == good[i].end && m.offset == good[i].offset);
		assert_true(m.inode == good[i].inode);
		assert_true(m.dev_major == good[i].dev_major && m.dev_minor == good[i].dev_minor);
		assert_int_equal(m.executable, good[i].executable);
		assert_int_equal(m.path_len, strlen(good[i].path));
		assert_memory_equal(m.path, good[i].path, m.path_len);
	}
}

/* A line cut anywhere before its inode is none; cut behind it, only the path is shorter. */
static void test_cut_lines(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		const char *line = good[i].line, *inode = strchr(strchr(line, ':'), ' ') + 1;

		for (size_t len = 0; len < strlen(line); len++) {
			struct proc_map m;
			int error = parse_at_guard(line, len, &m);

			assert_int_equal(error, len <= (size_t)(inode - line) ? -EBADMSG : 0);
			if (!error)
				assert_true(m.path == guarded + PAGE - m.path_len && m.start == good[i].start);
		}
	}
}

static void test_bad_lines(void **state)
{
	static const char *const bad[] = {
		"",
		"-",
		" 1000-2000 r-xp 0 0:0 0",
		"1g00-2000 r-xp 0 0:0 0",
		"-2000 r-xp 0 0:0 0",
		"1000 2000 r-xp 0 0:0 0",
		"1000- r-xp 0 0:0 0",
		"1000-20x0 r-xp 0 0:0 0",
		"10000000000000000-2 r-xp 0 0:0 0",
		"1000-10000000000000000 r-xp 0 0:0 0",
		"2000-1000 r-xp 0 0:0 0",
		"1000-1000 r-xp 0 0:0 0",
		"1000-2000 r-x 0 0:0 0",
		"1000-2000 r-xpp 0 0:0 0",
		"1000-2000 r-xp  0:0 0",
		"1000-2000 r-xp z 0:0 0",
		"1000-2000 r-xp 10000000000000000 0:0 0",
		"1000-2000 r-xp 0 00 0",
		"1000-2000 r-xp 0 :0 0",
		"1000-2000 r-xp 0 0: 0",
		"1000-2000 r-xp 0 100000000:0 0",
		"1000-2000 r-xp 0 0:100000000 0",
		"1000-2000 r-xp 0 0:0 ",
		"1000-2000 r-xp 0 0:0  /no/inode",
		"1000-2000 r-xp 0 0:0 -1 /file",
		"1000-2000 r-xp 0 0:0 12ab /file",
		"1000-2000 r-xp 0 0:0 18446744073709551616 /file",
		"1000-2000 r-xp 0 0:0 99999999999999999999 /file",
	};
	struct proc_map m, before;

	(void)state;
	memset(&m, 0x5a, sizeof(m));
	before = m;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		print_message("%s\n", bad[i]);
		assert_int_equal(parse_at_guard(bad[i], strlen(bad[i]), &m), -EBADMSG);
		assert_memory_equal(&m, &before, sizeof(m));
	}
}

/* --- this process --- */

enum { MAX_SEEN = 1024 };

struct seen {
	struct proc_map maps[MAX_SEEN];
	char paths[MAX_SEEN][256];
	size_t count;
};

static int note(void *arg, const struct proc_map *map)
{
	struct seen *seen = arg;

	if (!map->executable)
		return 0;
	assert_true(seen->count < MAX_SEEN && map->path_len < sizeof(seen->paths[0]));
	assert_true(!seen->count || map->start >= seen->maps[seen->count - 1].end);
	memcpy(seen->paths[seen->count], map->path, map->path_len);
	seen->paths[seen->count][map->path_len] = '\0';
	seen->maps[seen->count++] = *map;
	return 0;
}

static const struct proc_map *find_seen(const struct seen *seen, uint64_t addr)
{
	for (size_t i = 0; i < seen->count; i++)
		if (addr >= seen->maps[i].start && addr < seen->maps[i].end)
			return &seen->maps[i];
	return NULL;
}

static const struct proc_map *must_find(const struct seen *seen, uint64_t addr)
{
	const struct proc_map *m = find_seen(seen, addr);

	if (!m) {
		fail_msg("no mapping holds %llx", (unsigned long long)addr);
		abort();
	}
	return m;
}

struct comparison {
	const struct seen *seen;
	size_t segments;
};

/* Each executable segment the dynamic linker knows of is one of the mappings, in the same place of the same file. */
static int compare_module(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct comparison *c = arg;

	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
		uint64_t addr = info->dlpi_addr + ph->p_vaddr;
		const struct proc_map *m;
		struct stat st, by_path;
		const char *path;

		if (ph->p_type != PT_LOAD || !(ph->p_flags & PF_X))
			continue;
		m = must_find(c->seen, addr);
		assert_true(addr + ph->p_memsz <= m->end);
		path = c->seen->paths[m - c->seen->maps];
		if (strcmp(path, "[vdso]") == 0)
			continue;
		c->segments++;
		assert_true(m->start == addr / PAGE * PAGE && m->offset == ph->p_offset / PAGE * PAGE);
		assert_int_equal(stat(info->dlpi_name[0] ? info->dlpi_name : "/proc/self/exe", &st), 0);
		assert_int_equal(m->inode, st.st_ino);
		assert_int_equal(stat(path, &by_path), 0);
		assert_int_equal(by_path.st_ino, st.st_ino);
	}
	return 0;
}

static void test_own_process(void **state)
{
	AUTO_FREE struct seen *seen = calloc(1, sizeof(*seen));
	struct comparison c = { .seen = seen };
	size_t of_files = 0;

	(void)state;
	assert_int_equal(proc_maps_each((uint32_t)getpid(), note, seen), 0);
	dl_iterate_phdr(compare_module, &c);
	for (size_t i = 0; i < seen->count; i++)
		of_files += seen->maps[i].inode != 0;
	assert_true(c.segments >= 3); /* the program, the C library, the dynamic linker */
	assert_int_equal(of_files, c.segments);
}

/* Far more text than one read gives: a page of code behind every page of none. */
static void test_many_mappings(void **state)
{
	enum { PAIRS = 700 };
	AUTO_FREE struct seen *seen = calloc(1, sizeof(*seen));
	uint8_t *area = mmap(NULL, 2 * PAIRS * PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)state;
	assert_true(area != MAP_FAILED);
	for (size_t i = 0; i < PAIRS; i++)
		assert_int_equal(mprotect(area + 2 * i * PAGE, PAGE, PROT_READ | PROT_EXEC), 0);
	assert_int_equal(proc_maps_each((uint32_t)getpid(), note, seen), 0);
	for (size_t i = 0; i < PAIRS; i++) {
		const struct proc_map *m = must_find(seen, (uintptr_t)area + 2 * i * PAGE);

		assert_true(m->start == (uintptr_t)area + 2 * i * PAGE && m->end == m->start + PAGE);
	}
	assert_int_equal(munmap(area, 2 * PAIRS * PAGE), 0);
}

/*
 * A line longer than the reader's buffer (12 KB), whose path has a part that reads like a line of its own just where the
 * buffer ends. The kernel prints a path from column 73 on.
 */
static void test_overlong_line(void **state)
{
	enum { COLUMN = 73, BUFFER = 12288, STEP = 120, BEHIND = 10 };
	AUTO_FREE struct seen *seen = calloc(1, sizeof(*seen));
	char top[] = "/tmp/hearth-maps-XXXXXX", name[2 * STEP], command[64];
	int left = BUFFER - COLUMN - (int)strlen(top) - 1, dir, fd;
	void *code;

	(void)state;
	assert_non_null(mkdtemp(top));
	dir = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (; left > -BEHIND * STEP; left -= (int)strlen(name) + 1) {
		int next, len = left > 0 && left < 2 * STEP ? left - 1 : STEP - 1;

		snprintf(name, sizeof(name), "1000-2000 r-xp 0 0:0 1%*s", len - 22, "x");
		assert_int_equal(mkdirat(dir, name, 0700), 0);
		next = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		assert_true(next >= 0);
		close(dir);
		dir = next;
	}
	fd = openat(dir, "file", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	close(dir);
	assert_int_equal(ftruncate(fd, PAGE), 0);
	code = mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	close(fd);
	snprintf(command, sizeof(command), "rm -rf %s", top);
	assert_int_equal(system(command), 0);
	assert_true(code != MAP_FAILED);
	assert_int_equal(proc_maps_each((uint32_t)getpid(), note, seen), 0);
	assert_null(find_seen(seen, (uintptr_t)code));
	assert_null(find_seen(seen, 0x1000));
	must_find(seen, (uintptr_t)test_overlong_line); /* what stands before it, and behind it */
	must_find(seen, getauxval(AT_SYSINFO_EHDR));
	assert_int_equal(munmap(code, PAGE), 0);
}

/* A thread whose leader has ended is found, and its mappings with it. */
static void *outlive(void *arg)
{
	(void)arg;
	pause();
	return NULL;
}

static void test_leader_gone(void **state)
{
	AUTO_FREE struct seen *seen = calloc(1, sizeof(*seen));
	char exe[PATH_MAX], expected[PATH_MAX] = "", begin[8];
	uint32_t task;
	pid_t child;

	(void)state;
	assert_true(readlink("/proc/self/exe", expected, sizeof(expected) - 1) > 8);
	assert_int_equal(proc_maps_task((uint32_t)getpid(), exe, sizeof(exe)), (uint32_t)getpid());
	assert_string_equal(exe, expected);
	assert_int_equal(proc_maps_task((uint32_t)getpid(), begin, sizeof(begin)), (uint32_t)getpid());
	assert_memory_equal(begin, expected, 7);
	child = fork();
	if (!child) {
		pthread_t thread;

		(void)pthread_create(&thread, NULL, outlive, NULL);
		syscall(SYS_exit, 0);
	}
	assert_true(child > 0);
	for (int i = 0; i < 500 && (task = proc_maps_task((uint32_t)child, exe, sizeof(exe))) == (uint32_t)child; i++)
		usleep(10000);
	assert_true(task != (uint32_t)child);
	assert_string_equal(exe, expected);
	assert_int_equal(proc_maps_each((uint32_t)child, note, seen), 0);
	assert_int_equal(seen->count, 0);
	assert_int_equal(proc_maps_each(task, note, seen), 0);
	must_find(seen, (uintptr_t)test_leader_gone);
	assert_int_equal(kill(child, SIGKILL), 0);
	assert_int_equal(waitpid(child, NULL, 0), child);
	assert_int_equal(proc_maps_task((uint32_t)child, exe, sizeof(exe)), (uint32_t)child); /* none is left */
	assert_string_equal(exe, "");
}

static void test_strip(void **state)
{
	char paths[][40] = { "/a/b (deleted)", "/a/b", " (deleted)", "/a (deleted)b", "/memfd:x (deleted) (deleted)" };
	const char *const stripped[] = { "/a/b", "/a/b", " (deleted)", "/a (deleted)b", "/memfd:x (deleted)" };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
		proc_path_strip(paths[i]);
		assert_string_equal(paths[i], stripped[i]);
	}
}

static int stop_at_third(void *arg, const struct proc_map *map)
{
	int *calls = arg;

	(void)map;
	return ++*calls == 3 ? -ECANCELED : 0;
}

static void test_errors(void **state)
{
	int calls = 0;

	(void)state;
	assert_int_equal(proc_maps_each((uint32_t)getpid(), stop_at_third, &calls), -ECANCELED);
	assert_int_equal(calls, 3);
	assert_int_equal(proc_maps_each(UINT32_MAX, stop_at_third, &calls), -ENOENT);
	assert_int_equal(calls, 3);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_good_lines),    cmocka_unit_test(test_cut_lines),
		cmocka_unit_test(test_bad_lines),     cmocka_unit_test(test_own_process),
		cmocka_unit_test(test_many_mappings), cmocka_unit_test(test_overlong_line),
		cmocka_unit_test(test_leader_gone),   cmocka_unit_test(test_strip),
		cmocka_unit_test(test_errors),
	};

	return run_group_of_descriptors(tests, map_guarded, unmap_guarded);
}
