/* SPDX-License-Identifier: Apache-2.0 */
/* The runtimes that `hearth check` lists, of processes that are made up: alike ones are one line, in the order of their
 * numbers, with versions and troubles in words. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/check/check_host.h"
#include "agent/files/files.h"
#include "agent/process/chain_states.h"
#include "agent/process/processes.h"
#include "agent/runtime/choice.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "tests/unit/descriptors.h"

enum { MAX = 80 };

static struct file files[MAX];
static struct mapping maps[MAX];
static struct address_space spaces[MAX];
static struct process list[MAX];
static uint32_t process_count, map_count;
static int scan_error, new_error;
static bool is_root;
static struct buf said;

uid_t geteuid(void)
{
	return is_root ? (uid_t)syscall(SYS_geteuid) : 1000; /* the process that reads files asks, too */
}

/* --- the processes --- */

int processes_new(struct files *of, struct processes **ret)
{
	assert_non_null(of);
	*ret = new_error ? NULL : (struct processes *)list;
	return new_error;
}

void processes_free(struct processes *ps)
{
	assert_true(!ps || ps == (struct processes *)list);
}

int processes_scan(struct processes *ps)
{
	assert_ptr_equal(ps, list);
	return scan_error;
}

void processes_each(struct processes *ps, void (*fn)(void *arg, struct process *p), void *arg)
{
	assert_ptr_equal(ps, list);
	for (uint32_t i = 0; i < process_count; i++)
		fn(arg, &list[i]);
}

/* The trouble of a chain is its file's offset of the thread's state. */
enum chain_trouble chain_state_of(const struct address_space *as, const struct mapping *m, struct chain_state *ret)
{
	assert_true(m >= as->maps && m < as->maps + as->count);
	(void)ret;
	return (enum chain_trouble)m->file->info.runtime.loop.start;
}

uint32_t chain_states_tell(struct address_space *as, const char *exe_path, struct sampler *sampler)
{
	(void)as;
	(void)exe_path;
	(void)sampler;
	return 0;
}

const struct chain_state *chain_layout(const struct address_space *as, uint32_t id)
{
	(void)as;
	(void)id;
	return NULL;
}

/* --- --- */

static void on_check(void *arg, const struct check *check)
{
	static const char *const results[] = { "yes", "partly", "no", "unknown" };

	assert_ptr_equal(arg, &said);
	buf_printf(&said, "%s|%s|%s|%.20s|%.20s\n", check->name, results[check->result], check->found, check->means,
		   check->advice);
}

static void begin(void)
{
	process_count = map_count = 0;
	scan_error = new_error = 0;
	is_root = true;
	memset(files, 0, sizeof(files));
}

/* A process that has nothing yet. */
static void add_process(void)
{
	spaces[process_count] = (struct address_space){ .maps = &maps[map_count] };
	list[process_count] = (struct process){ .pid = 100 + process_count, .as = &spaces[process_count] };
	process_count++;
}

/* One more piece of the last process's memory. */
static void map(struct file *file)
{
	maps[map_count++] = (struct mapping){ .file = file };
	spaces[process_count - 1].count++;
}

static struct file *chain(uint32_t i, uint32_t id, uint32_t version, uint32_t way, uint32_t trouble, const char *path)
{
	files[i].path = (char *)(uintptr_t)path;
	files[i].info.runtime = (struct runtime_file){
		.kind = RUNTIME_FILE_CHAIN, .id = id, .version = version, .way = way, .loop.start = trouble
	};
	return &files[i];
}

static struct file *code(uint32_t i, uint32_t id, uint32_t version, const char *path)
{
	files[i].path = (char *)(uintptr_t)path;
	files[i].info.runtime = (struct runtime_file){ .kind = RUNTIME_FILE_CODE,
						       .version = version,
						       .code = { .id = id, .version = version } };
	return &files[i];
}

static void says(const char *wanted)
{
	const int before = open_descriptors();
	struct checker c = { .fn = on_check, .arg = &said };

	buf_reset(&said);
	check_runtimes(&c);
	assert_string_equal(buf_text(&said), wanted);
	assert_int_equal(c.failed, 0);
	assert_int_equal(open_descriptors(), before);
}

#define SHOWN  "the functions of its"
#define HIDDEN "its stacks stay thos|nothing to be done h"

static void test_alike(void **state)
{
	struct file *one, *same, *other;

	(void)state;
	begin();
	one = chain(0, RUNTIME_PYTHON, 3 << 16 | 11 << 8 | 2, RUNTIME_WAY_DYNSYM, 0, "/usr/bin/python3");
	same = chain(1, RUNTIME_PYTHON, 3 << 16 | 11 << 8 | 2, RUNTIME_WAY_DYNSYM, 0, "/usr/bin/python3");
	other = chain(2, RUNTIME_PYTHON, 3 << 16 | 11 << 8 | 2, RUNTIME_WAY_DYNSYM, 0, "/opt/python3");
	add_process();
	map(NULL);
	map(one);
	map(one); /* a second piece of it */
	add_process();
	map(&files[9]); /* of no runtime */
	map(same);
	add_process();
	map(other);
	says("python 3.11.2 (/usr/bin/python3)|yes|2 processes, recognised by .dynsym|" SHOWN "|\n"
	     "python 3.11.2 (/opt/python3)|yes|1 process, recognised by .dynsym|" SHOWN "|\n");
	/* neither is like a file whose name is not known, nor are those of two versions, or of two troubles */
	same->path = NULL;
	other->path = one->path;
	other->info.runtime.version++;
	says("python 3.11.2 (/usr/bin/python3)|yes|1 process, recognised by .dynsym|" SHOWN "|\n"
	     "python 3.11.2 (a file without a name)|yes|1 process, recognised by .dynsym|" SHOWN "|\n"
	     "python 3.11.3 (/usr/bin/python3)|yes|1 process, recognised by .dynsym|" SHOWN "|\n");
	same->path = one->path;
	same->info.runtime.loop.start = CHAIN_TROUBLE_LAYOUT;
	other->info.runtime = one->info.runtime;
	other->info.runtime.id = RUNTIME_RUBY;
	says("python 3.11.2 (/usr/bin/python3)|yes|1 process, recognised by .dynsym|" SHOWN "|\n"
	     "python 3.11.2 (/usr/bin/python3)|partly|1 process, recognised by .dynsym; this version is not known|" HIDDEN
	     "\n"
	     "ruby 3.11.2 (/usr/bin/python3)|yes|1 process, recognised by .dynsym|" SHOWN "|\n");
}

/* In the order of numbers, whatever that of processes is. */
static void test_order(void **state)
{
	(void)state;
	begin();
	add_process();
	map(code(0, CODE_BEAM, 26 << 16, "/b"));
	map(code(1, CODE_HOTSPOT, 17 << 16 | 1 << 8, "/h"));
	map(chain(2, RUNTIME_LUAJIT, 2 << 16 | 1 << 8, RUNTIME_WAY_SYMTAB, CHAIN_TROUBLE_LIBC, "/l"));
	map(chain(3, RUNTIME_PHP, 8 << 16 | 2 << 8, RUNTIME_WAY_DEBUG_FILE, 0, "/p"));
	map(chain(4, RUNTIME_PERL, 0, RUNTIME_WAY_CONTENT, 0, "/e"));
	map(code(5, CODE_V8, 14 << 16 | 6 << 8, "/v"));
	map(code(6, CODE_DOTNET, 1 << 16 | 2 << 8 | 3, "/d"));
	map(code(7, CODE_ID_MAX, 1 << 16, "/nobody reads it"));
	says("php 8.2 (/p)|yes|1 process, recognised by its debug file|" SHOWN "|\n"
	     "perl of an unknown version (/e)|yes|1 process, recognised by its content|" SHOWN "|\n"
	     "luajit 2.1 (/l)|partly|1 process, recognised by .symtab; its C library is not known, by which its threads are "
	     "found|" HIDDEN "\n"
	     "hotspot 17.1 (/h)|yes|1 process, recognised by .dynsym|" SHOWN "|\n"
	     "v8 14.6 (/v)|partly|1 process, recognised by .dynsym; this version is not known|" HIDDEN "\n"
	     "beam 26 (/b)|yes|1 process, recognised by .dynsym|" SHOWN "|\n"
	     "dotnet 1.2.3 (/d)|partly|1 process, recognised by .dynsym; this version is not known|" HIDDEN "\n");
}

static void test_none(void **state)
{
	static const char none[] = "interpreters|yes|none is running|the functions of the|\n";

	(void)state;
	begin();
	says(none);
	add_process();
	map(NULL);
	map(&files[0]);
	says(none);
	is_root = false;
	says("interpreters|unknown|permission denied|the functions of the|ask as root, who can\n");
	is_root = true;
	scan_error = -EIO;
	says("interpreters|unknown|Input/output error|the functions of the|see the lines above:\n");
	scan_error = 0;
	new_error = -ENOMEM;
	says("interpreters|unknown|Cannot allocate memory|the functions of the|see the lines above:\n");
}

/* As many as there is room for; the others are counted. */
static void test_many(void **state)
{
	static char paths[MAX][16];
	const char *last;
	uint32_t lines = 0;

	(void)state;
	begin();
	for (uint32_t i = 0; i < 67; i++) {
		struct checker c = { .fn = on_check, .arg = &said };

		snprintf(paths[i], sizeof(paths[i]), "/p%u", i);
		add_process();
		map(chain(i, RUNTIME_PYTHON, 3 << 16 | 9 << 8, RUNTIME_WAY_DYNSYM, 0, paths[i]));
		if (i != 63 && i != 64 && i != 66)
			continue;
		buf_reset(&said);
		check_runtimes(&c);
		lines = 0;
		last = buf_text(&said);
		for (const char *p = last; *p; p++)
			if (*p == '\n') {
				lines++;
				last = p[1] ? p + 1 : last;
			}
		assert_int_equal(lines, i == 63 ? 64 : 65);
		if (i == 63)
			assert_string_equal(last, "python 3.9 (/p63)|yes|1 process, recognised by .dynsym|" SHOWN "|\n");
		else if (i == 64)
			assert_string_equal(last, "further interpreters|yes|1 more processes|not listed here, as |\n");
		else
			assert_string_equal(last, "further interpreters|yes|3 more processes|not listed here, as |\n");
	}
}

static int fini(void **state)
{
	(void)state;
	buf_fini(&said);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_alike),
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_none),
		cmocka_unit_test(test_many),
	};

	if (syscall(SYS_geteuid)) {
		puts("left out: the runtimes of all processes, as this is not root");
		return 0;
	}
	return run_group_of_descriptors(tests, NULL, fini);
}
