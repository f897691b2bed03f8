/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whose index is made, and when: opened from the folder at the next start, made anew where it is broken or a debug file
 * came, in the order of the samples; and files that break who reads them, which get the names of their tables or none, and
 * are counted.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/names/indexes.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/loop.h"
#include "base/metrics.h"
#include "tests/unit/descriptors.h"

enum { FILES = 4, LOOP_MS = 50, GIVE_UP_MS = 60000 };

static char folder[] = "/tmp/hearth-test-XXXXXX";
static struct loop *loop;
static struct metrics *metrics;
static struct files *files;
static struct indexes *indexes;
static struct file file[FILES];

/* --- a maker that does harm as it is told, by the depth it is asked for --- */

enum harm { NONE, CRASH_ON_FULL, CRASH_ALWAYS, GARBAGE, MUCH };
static enum harm harm; /* forked with the template */

static struct elf_service *real;

static int harmful_call(struct elf_service *s, const struct elf_request *request, int fd, const void *payload, size_t bytes,
			struct buf *reply)
{
	struct index_made made = { .best = CODE_SOURCE_DWARF };

	(void)s;
	if (request->op == INDEX_OP_OPEN && harm == MUCH) { /* as if it had */
		struct index_opened opened = { 1 << 30 };
		int status = elf_service_call(real, request, fd, payload, bytes, reply);

		if (!status)
			memcpy(reply->data, &opened, sizeof(opened));
		return status;
	}
	if (request->op == INDEX_OP_MAKE && harm == GARBAGE) {
		buf_reset(reply);
		buf_append(reply, &made, sizeof(made));
		return write(fd, "garbage", 7) == 7 ? 0 : -EIO;
	}
	if (request->op == INDEX_OP_MAKE && (harm == CRASH_ALWAYS || (harm == CRASH_ON_FULL && request->addr == INDEX_FULL)))
		abort();
	return elf_service_call(real, request, fd, payload, bytes, reply);
}

static int harmful_new(struct elf_service **ret)
{
	static const struct elf_service_ops ops = { .call = harmful_call };
	static struct elf_service service = { .ops = &ops };

	*ret = &service;
	return index_service_new(&real);
}

/* --- the table of files --- */

static int no_call(struct elf_service *s, const struct elf_request *request, int fd, const void *payload, size_t bytes,
		   struct buf *reply)
{
	(void)s, (void)request, (void)fd, (void)payload, (void)bytes, (void)reply;
	return -EINVAL;
}

static void no_free(struct elf_service *s)
{
	(void)s;
}

static const struct elf_service_ops no_ops = { .call = no_call, .free = no_free };
static struct elf_service nobody = { .ops = &no_ops };

static void run(const char *command)
{
	char line[1024];

	snprintf(line, sizeof(line), "cd %s && %s", folder, command);
	assert_int_equal(system(line), 0);
}

/* What a start of the agent does. */
static void begin(enum harm h)
{
	struct index_helper *helpers[LANES];
	static struct elf_worker_kind kind;
	struct symbol_cache *cache;
	struct file_opener *opener;
	char path[64];

	harm = h;
	kind = index_first_kind;
	kind.make = harmful_new;
	snprintf(path, sizeof(path), "%s/cache", folder);
	metrics = metrics_new();
	assert_non_null(metrics);
	for (int i = 0; i < LANES; i++)
		assert_int_equal(index_helper_new(&kind, false, &helpers[i]), 0);
	assert_int_equal(file_opener_new(metrics, &opener), 0);
	assert_int_equal(files_new(&nobody, opener, metrics, &files), 0);
	assert_int_equal(symbol_cache_open(path, 1 << 20, &cache), 0);
	assert_int_equal(indexes_new(SYMBOLS_FULL, helpers, cache, NULL, files, loop, metrics, &indexes), 0);
	for (uint32_t i = 0; i < FILES; i++) {
		struct stat st;

		file[i] = (struct file){ .id = i + 1, .state = FILE_READABLE, .debug_fd = -1, .pid = (uint32_t)getpid() };
		assert_true(asprintf(&file[i].path, "%s/program%u", folder, i) > 0);
		file[i].fd = open(file[i].path, O_RDONLY | O_CLOEXEC);
		assert_true(file[i].fd >= 0);
		assert_int_equal(fstat(file[i].fd, &st), 0);
		file[i].size_bytes = (uint64_t)st.st_size;
		file[i].mtime_ns = (uint64_t)st.st_mtim.tv_sec * NSEC_PER_SEC + (uint64_t)st.st_mtim.tv_nsec;
		assert_int_equal(build_ids_read(file[i].fd, &file[i].info.build_ids), 0);
	}
}

static void end(void)
{
	indexes_free(indexes);
	for (uint32_t i = 0; i < FILES; i++) {
		assert_int_equal(file[i].refs, 0);
		file_index_free(file[i].index);
		close(file[i].fd);
		free(file[i].path);
	}
	files_free(files);
	metrics_free(metrics);
}

static void settle(void)
{
	uint64_t start_ns = clock_mono_ns();

	while (indexes_coming(indexes) && clock_mono_ns() - start_ns < GIVE_UP_MS * NSEC_PER_MSEC)
		assert_int_equal(loop_step(loop, LOOP_MS), 0);
	assert_int_equal(indexes_coming(indexes), 0);
}

static uint64_t value_of(const char *series)
{
	AUTO(buf_fini) struct buf text = BUF_EMPTY;
	size_t len = strlen(series);

	metrics_write(metrics, &text);
	for (const char *line = buf_text(&text); line; line = strchr(line, '\n'), line += !!line)
		if (!strncmp(line, series, len) && line[len] == ' ')
			return strtoull(line + len, NULL, 10);
	return UINT64_MAX;
}

static void assert_counts(uint64_t opened, uint64_t built, uint64_t failed)
{
	assert_int_equal(value_of("hearth_symbol_indexes_opened_total"), opened);
	assert_int_equal(value_of("hearth_symbol_indexes_built_total"), built);
	assert_int_equal(value_of("hearth_symbol_indexes_failed_total"), failed);
}

static enum code_source source_of(uint32_t i)
{
	return file[i].index->entry.index ? symbol_index_head(file[i].index->entry.index)->best : CODE_SOURCE_NONE;
}

static int make(void **state)
{
	(void)state;
	assert_non_null(mkdtemp(folder));
	run("echo 'int main(void) { return 0; }' >a.c; for i in 0 1 2 3; do "
	    "gcc -g -Wl,--build-id=0xfeedc0de0000000$i -o program$i a.c; done");
	return loop_new(&loop);
}

static int destroy(void **state)
{
	(void)state;
	loop_free(loop);
	run("rm -r $PWD");
	return 0;
}

/* --- tests --- */

static void test_kept(void **state)
{
	(void)state;
	begin(NONE);
	for (uint32_t i = 0; i < FILES; i++)
		indexes_meet(indexes, &file[i]);
	assert_true(file_names_are_coming(&file[FILES - 1]));
	settle();
	assert_counts(0, FILES, 0);
	assert_true(value_of("hearth_symbol_dwarf_bytes_total") > 0);
	for (uint32_t i = 0; i < FILES; i++)
		assert_int_equal(source_of(i), CODE_SOURCE_DWARF);
	end();

	begin(NONE); /* the next start: there at once */
	for (uint32_t i = 0; i < FILES; i++) {
		indexes_meet(indexes, &file[i]);
		assert_false(file_names_are_coming(&file[i]));
		assert_int_equal(source_of(i), CODE_SOURCE_DWARF);
	}
	assert_counts(FILES, 0, 0);
	assert_int_equal(value_of("hearth_symbol_dwarf_bytes_total"), 0);
	end();
}

/* Who finds the index broken has it made anew, once; what is left in the folder is the new one. */
static void test_broken(void **state)
{
	(void)state;
	begin(NONE);
	indexes_meet(indexes, &file[0]);
	settle();
	for (int i = 0; i < 2; i++) {
		file[0].index->is_broken = true;
		indexes_meet(indexes, &file[0]);
		assert_int_equal(file_names_are_coming(&file[0]), i == 0);
		settle();
	}
	assert_int_equal(value_of("hearth_symbol_indexes_built_total"), 1);
	end();
	run("for f in cache/*; do printf 'nonsense' >$f; done");
	begin(NONE);
	indexes_meet(indexes, &file[0]);
	settle();
	assert_counts(0, 1, 0);
	assert_int_equal(source_of(0), CODE_SOURCE_DWARF);
	end();
}

/* One that was cut short since it was opened has names of its own, and leaves none to a whole one with the same build id. */
static void test_cut(void **state)
{
	(void)state;
	run("rm -f cache/* && cp program0 whole");
	begin(NONE);
	run("truncate -s 8192 program0");
	indexes_meet(indexes, &file[0]);
	settle();
	assert_int_equal(source_of(0), CODE_SOURCE_NONE);
	end();
	run("[ $(ls cache | wc -l) = 0 ] && cp whole program0");
	begin(NONE);
	indexes_meet(indexes, &file[0]);
	settle();
	assert_counts(0, 1, 0);
	assert_int_equal(source_of(0), CODE_SOURCE_DWARF);
	end();
}

/* A debug file that was installed since. */
static void test_debug_file_came(void **state)
{
	(void)state;
	run("strip -g program1 && rm -f cache/*");
	for (int i = 0; i < 2; i++) { /* without one, that is not tried at each start */
		begin(NONE);
		indexes_meet(indexes, &file[1]);
		settle();
		assert_counts(i, !i, 0);
		assert_int_equal(source_of(1), CODE_SOURCE_SYMTAB);
		end();
	}
	if (geteuid() != 0)
		skip();
	run("gcc -g -Wl,--build-id=0xfeedc0de00000001 -o again a.c && mkdir -p /usr/lib/debug/.build-id/fe && "
	    "objcopy --only-keep-debug again /usr/lib/debug/.build-id/fe/edc0de00000001.debug");
	for (int i = 0; i < 2; i++) {
		begin(NONE);
		indexes_meet(indexes, &file[1]);
		assert_int_equal(source_of(1), i ? CODE_SOURCE_DWARF : CODE_SOURCE_SYMTAB); /* serves until then */
		settle();
		assert_counts(1, !i, 0);
		assert_int_equal(source_of(1), CODE_SOURCE_DWARF);
		end();
	}
	run("rm /usr/lib/debug/.build-id/fe/edc0de00000001.debug && rmdir -p --ignore-fail-on-non-empty "
	    "/usr/lib/debug/.build-id/fe");
}

static void test_harm(void **state)
{
	static const enum harm harms[] = { CRASH_ON_FULL, CRASH_ALWAYS, GARBAGE };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(harms); i++) {
		run("rm -f cache/*");
		begin(harms[i]);
		indexes_meet(indexes, &file[2]);
		indexes_meet(indexes, &file[3]);
		settle();
		assert_int_equal(value_of("hearth_files_hostile_total"), 2);
		assert_int_equal(source_of(3), harms[i] == CRASH_ON_FULL ? CODE_SOURCE_SYMTAB : CODE_SOURCE_NONE);
		assert_counts(0, harms[i] == CRASH_ON_FULL ? 2 : 0, harms[i] == CRASH_ON_FULL ? 2 : 4);
		end();
	}
	begin(CRASH_ON_FULL); /* nothing of that was kept; what its tables give is, ... */
	indexes_meet(indexes, &file[2]);
	settle();
	end();
	begin(CRASH_ON_FULL); /* ... so that the next start is not hurt again */
	indexes_meet(indexes, &file[2]);
	assert_int_equal(source_of(2), CODE_SOURCE_SYMTAB);
	settle();
	assert_counts(1, 0, 0);
	end();
}

/* What has much to read is named out of its tables first; others do not wait for the rest of it. */
static void test_much(void **state)
{
	uint32_t quick = 0;

	(void)state;
	run("rm -f cache/*");
	begin(MUCH);
	for (uint32_t i = 0; i < FILES; i++)
		indexes_meet(indexes, &file[i]);
	while (indexes_coming(indexes)) {
		assert_int_equal(loop_step(loop, LOOP_MS), 0);
		for (uint32_t i = 0; i < FILES; i++)
			quick |= (uint32_t)(source_of(i) == CODE_SOURCE_SYMTAB && file_names_are_coming(&file[i])) << i;
	}
	assert_int_equal(quick, (1u << FILES) - 1);
	assert_counts(0, FILES, 0);
	for (uint32_t i = 0; i < FILES; i++)
		assert_int_equal(source_of(i), i == 1 ? CODE_SOURCE_SYMTAB : CODE_SOURCE_DWARF); /* stripped above */
	end();
	run("[ $(ls cache | wc -l) = 4 ]");
}

/* One at a time, and the next is the one with most samples. */
static void test_order(void **state)
{
	(void)state;
	run("rm -f cache/*");
	begin(NONE);
	for (uint32_t i = 0; i < FILES; i++) {
		indexes_meet(indexes, &file[i]);
		file[i].index->samples = i; /* the first is being made already */
	}
	for (uint32_t next = FILES - 1; next > 0;) {
		assert_int_equal(loop_step(loop, LOOP_MS), 0);
		if (file_names_are_coming(&file[next]))
			continue;
		for (uint32_t i = 1; i < next; i++)
			assert_true(file_names_are_coming(&file[i]));
		next--;
	}
	end();
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kept),  cmocka_unit_test(test_broken),
		cmocka_unit_test(test_cut),   cmocka_unit_test(test_debug_file_came),
		cmocka_unit_test(test_harm),  cmocka_unit_test(test_much),
		cmocka_unit_test(test_order),
	};

	return run_group_of_descriptors(tests, make, destroy);
}
