/* SPDX-License-Identifier: Apache-2.0 */
/* Files in formats: which one a name means, what is told of it, and that a file is whole, as it was before, or not there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "cmd/files/exports.h"
#include "cmd/files/formats.h"
#include "proto/otlp/otlp.h"
#include "proto/profiles.h"
#include "proto/profiles_builder.h"

struct fixture {
	char folder[64], path[96];
	unsigned open_files;
};

static unsigned count_entries(const char *folder)
{
	DIR *d = opendir(folder);
	unsigned count = 0;

	assert_non_null(d);
	while (readdir(d))
		count++;
	closedir(d);
	return count - 2;
}

static int setup(void **state)
{
	static struct fixture f;

	f.open_files = count_entries("/proc/self/fd");
	snprintf(f.folder, sizeof(f.folder), "/tmp/hearth-formats-XXXXXX");
	assert_non_null(mkdtemp(f.folder));
	snprintf(f.path, sizeof(f.path), "%s/file", f.folder);
	*state = &f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	char command[128];

	snprintf(command, sizeof(command), "rm -rf %s", f->folder);
	assert_int_equal(system(command), 0);
	assert_int_equal(count_entries("/proc/self/fd"), f->open_files);
	return 0;
}

static void test_names(void **state)
{
	static const struct {
		const char *path, *format;
	} cases[] = {
		{ "x.otlp", "otlp" },
		{ "x.otlp.gz", "otlp.gz" },
		{ "x.otlp.zst", "otlp.zst" },
		{ "x.otlp.xz", "otlp.xz" },
		{ "x.otlp.json", "otlp.json" },
		{ "x.otlp.jsonl", "otlp.jsonl" },
		{ "x.pb.gz", "pprof" },
		{ "x.pprof", "pprof" },
		{ "a/b.folded", "folded" },
		{ "x.svg", "svg" },
		{ "x.html", "html" },
		{ "x.speedscope.json", "speedscope" },
		{ "x.firefox.json.gz", "firefox" },
		{ "x.perf.txt", "perf-script" },
		{ "x.json", NULL },
		{ "x.gz", NULL },
		{ ".svg", NULL },
		{ "svg", NULL },
		{ "x.svgx", NULL },
		{ "", NULL },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const struct format *format = format_by_path(cases[i].path);

		if (!format != !cases[i].format || (format && strcmp(format->name, cases[i].format)))
			fail_msg("%s is %s", cases[i].path, format ? format->name : "nothing");
		if (format)
			assert_ptr_equal(format_by_name(format->name), format);
	}
	assert_null(format_by_name("svgx"));
}

static void put(struct buf *data, const char *text)
{
	buf_reset(data);
	buf_puts(data, text);
}

static void check_file(const char *path, const char *text)
{
	char found[64] = "";
	AUTO_FCLOSE FILE *f = fopen(path, "r");

	assert_non_null(f);
	found[fread(found, 1, sizeof(found) - 1, f)] = '\0';
	assert_string_equal(found, text);
}

/* A new file, one in place of another, through a link; each alone in its folder. */
static void test_replace(void **state)
{
	AUTO(buf_fini) struct buf data = BUF_EMPTY;
	struct fixture *f = *state;
	char link[96];
	struct stat st;

	snprintf(link, sizeof(link), "%s/link", f->folder);
	put(&data, "first");
	assert_int_equal(format_replace_file(f->path, &data), 0);
	check_file(f->path, "first");
	assert_int_equal(stat(f->path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0644);
	put(&data, "2nd");
	assert_int_equal(format_replace_file(f->path, &data), 0);
	check_file(f->path, "2nd");
	assert_int_equal(symlink("file", link), 0);
	put(&data, "third");
	assert_int_equal(format_replace_file(link, &data), 0);
	check_file(f->path, "third");
	assert_int_equal(lstat(link, &st), 0);
	assert_true(S_ISLNK(st.st_mode));
	assert_int_equal(count_entries(f->folder), 2);
}

/* What fails says why, and leaves what was there, and nothing else. */
static void test_failures(void **state)
{
	const struct rlimit little = { 2, RLIM_INFINITY }, all = { RLIM_INFINITY, RLIM_INFINITY };
	AUTO(buf_fini) struct buf data = BUF_EMPTY;
	struct fixture *f = *state;
	char path[160];

	put(&data, "first");
	assert_int_equal(format_replace_file(f->folder, &data), -EISDIR);
	snprintf(path, sizeof(path), "%s/none/file", f->folder);
	assert_int_equal(format_replace_file(path, &data), -ENOENT);
	assert_int_equal(format_replace_file("/dev/full", &data), -ENOSPC);
	assert_int_equal(format_replace_file("/dev/null", &data), 0);
	assert_int_equal(format_replace_file(f->path, &data), 0);
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &little), 0);
	put(&data, "another");
	snprintf(path, sizeof(path), "%s/new", f->folder);
	assert_int_equal(format_replace_file(f->path, &data), -EFBIG);
	assert_int_equal(format_replace_file(path, &data), -EFBIG);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &all), 0);
	check_file(f->path, "first");
	assert_int_equal(count_entries(f->folder), 1);
}

/* --- for the API --- */

static struct profiles *make(const char *function, unsigned events)
{
	static const struct builder_profile_spec spec = { "hearth",	 "1",	   "samples", "count", "cpu",
							  "nanoseconds", 50000000, NULL,      0 };
	struct builder *b = builder_new();
	struct profile_line line = { builder_function(b, builder_string_z(b, function), 0, 0, 10), 12, 0 };
	int32_t at = builder_location(b, 0, 0x1100, &line, 1, NULL, 0), stack = builder_stack(b, &at, 1);
	uint32_t profile = builder_profile(b, builder_resource(b, NULL, 0), &spec);
	struct profiles *p;

	for (unsigned i = 0; i < events; i++)
		builder_event(b, profile, stack, NULL, 0, 0, 1000 + i, false, 0);
	assert_int_equal(builder_freeze(b, 1, 2, &p), 0);
	builder_free(b);
	return p;
}

/* With @disk >= 0 a file there that may be used; returns whether it was, and @out has what was written in any case. */
static bool write_file_on(int disk, const char *format, struct profiles *const *pieces, size_t count, struct buf *out)
{
	struct api_file *file;
	bool is_on_disk;
	size_t least = 0;

	assert_int_equal(exports.begin(format, disk, &file), 0);
	for (size_t i = 0; i < count; i++) {
		assert_int_equal(exports.add(file, pieces[i]), 0);
		assert_true(exports.held_bytes(file) > least);
		least = i ? exports.held_bytes(file) - 1 : 0; /* the model of one is larger than the stream of two */
	}
	assert_int_equal(exports.write(file, SIZE_MAX, out, &is_on_disk), 0);
	if (is_on_disk) {
		off_t end = lseek(disk, 0, SEEK_END);

		assert_int_equal(out->len, 0);
		assert_true(exports.held_bytes(file) >= (size_t)end);
		assert_int_equal(buf_reserve(out, (size_t)end), 0);
		assert_int_equal(pread(disk, out->data, (size_t)end, 0), end);
		out->len = (size_t)end;
		assert_int_equal(ftruncate(disk, 0), 0);
		assert_int_equal(lseek(disk, 0, SEEK_SET), 0);
	}
	exports.free(file);
	return is_on_disk;
}

static void write_file(const char *format, struct profiles *const *pieces, size_t count, struct buf *out)
{
	assert_false(write_file_on(-1, format, pieces, count, out));
}

/* None, one and several pieces become one file; OTLP, which is not read again for it, too. */
static void test_export(void **state)
{
	struct profiles *pieces[] = { make("one", 2), make("two", 3), make("one", 5) };
	static const char *const lines[] = { "", "[unknown];one 2\n", "[unknown];one 2\n[unknown];two 3\n",
					     "[unknown];one 7\n[unknown];two 3\n" };
	struct api_file *file;

	(void)state;
	for (size_t count = 0; count <= ARRAY_LEN(pieces); count++) {
		AUTO(buf_fini) struct buf folded = BUF_EMPTY;
		AUTO(buf_fini) struct buf otlp = BUF_EMPTY;
		struct otlp_error why;
		struct profiles *whole;

		write_file("folded", pieces, count, &folded);
		assert_string_equal(folded.len ? buf_text(&folded) : "", lines[count]);
		write_file("otlp", pieces, count, &otlp);
		assert_int_equal(otlp_decode(otlp.data, otlp.len, false, &whole, &why), 0);
		buf_reset(&folded);
		write_file("folded", &whole, 1, &folded);
		assert_string_equal(folded.len ? buf_text(&folded) : "", lines[count]);
		profiles_put(whole);
	}
	assert_int_equal(exports.begin("no such format", -1, &file), -EINVAL);
	for (size_t i = 0; i < ARRAY_LEN(pieces); i++)
		profiles_put(pieces[i]);
}

/* Where there is a file for it, OTLP of several pieces is on disk, the same as without; a small sum is not. A full disk is
 * told. */
static void test_export_on_disk(void **state)
{
	struct profiles *pieces[] = { make("one", 2), make("two", 3), make("one", 5) };
	int disk = memfd_create("test", MFD_CLOEXEC), full = open("/dev/full", O_WRONLY | O_CLOEXEC);
	struct api_file *file;

	(void)state;
	for (size_t count = 0; count <= ARRAY_LEN(pieces); count++) {
		AUTO(buf_fini) struct buf plain = BUF_EMPTY;
		AUTO(buf_fini) struct buf from_disk = BUF_EMPTY;
		AUTO(buf_fini) struct buf folded = BUF_EMPTY;

		write_file("otlp", pieces, count, &plain);
		assert_int_equal(write_file_on(disk, "otlp", pieces, count, &from_disk), count > 1);
		assert_int_equal(plain.len, from_disk.len);
		assert_memory_equal(plain.data, from_disk.data, plain.len);
		assert_false(write_file_on(disk, "folded", pieces, count, &folded));
		assert_int_equal(lseek(disk, 0, SEEK_END), 0);
	}
	assert_int_equal(exports.begin("otlp", full, &file), 0);
	assert_int_equal(exports.add(file, pieces[0]), 0);
	assert_int_equal(exports.add(file, pieces[1]), -ENOSPC);
	exports.free(file);
	for (size_t i = 0; i < ARRAY_LEN(pieces); i++)
		profiles_put(pieces[i]);
	close(disk);
	close(full);
}

enum { MANY_FUNCTIONS = 4000, NAME_BYTES = 400 };

/* One piece, of which each sum's file is more than stays in memory. */
static struct profiles *make_large(void)
{
	static const struct builder_profile_spec spec = { "hearth",	 "1",	   "samples", "count", "cpu",
							  "nanoseconds", 50000000, NULL,      0 };
	struct builder *b = builder_new();
	uint32_t profile = builder_profile(b, builder_resource(b, NULL, 0), &spec), dice = 1;
	struct profiles *p;

	for (unsigned i = 0; i < MANY_FUNCTIONS; i++) {
		char name[NAME_BYTES + 1] = "";
		struct profile_line line;
		int32_t at;

		for (unsigned k = 0; k < NAME_BYTES; k++) {
			dice = dice * 1664525 + 1013904223;
			name[k] = (char)('a' + (dice >> 24) % 26);
		}
		line = (struct profile_line){ builder_function(b, builder_string_z(b, name), 0, 0, 10), 12, 0 };
		at = builder_location(b, 0, 0x1100, &line, 1, NULL, 0);
		builder_event(b, profile, builder_stack(b, &at, 1), NULL, 0, 0, 1000, false, 0);
	}
	assert_int_equal(builder_freeze(b, 1, 2, &p), 0);
	builder_free(b);
	return p;
}

/* A sum's file is put on disk while it is written, the same as in memory. Not more than it may have, and a full disk is
 * told. */
static void test_sums_on_disk(void **state)
{
	static const char *const formats[] = { "folded", "svg", "html", "pprof" };
	struct profiles *p = make_large();
	int disk = memfd_create("test", MFD_CLOEXEC), full = open("/dev/full", O_WRONLY | O_CLOEXEC);

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(formats); i++) {
		AUTO(buf_fini) struct buf plain = BUF_EMPTY;
		AUTO(buf_fini) struct buf from_disk = BUF_EMPTY;
		bool is_on_disk;
		struct api_file *file;

		write_file(formats[i], &p, 1, &plain);
		assert_true(write_file_on(disk, formats[i], &p, 1, &from_disk));
		assert_int_equal(plain.len, from_disk.len);
		assert_memory_equal(plain.data, from_disk.data, plain.len);
		buf_fini(&from_disk);
		for (unsigned is_small = 0; is_small < 2; is_small++) {
			assert_int_equal(exports.begin(formats[i], is_small ? disk : full, &file), 0);
			assert_int_equal(exports.add(file, p), 0);
			assert_int_equal(exports.write(file, is_small ? exports.held_bytes(file) + plain.len - 1 : SIZE_MAX,
						       &from_disk, &is_on_disk),
					 is_small ? -ENOMEM : -ENOSPC);
			assert_null(from_disk.file);
			buf_fini(&from_disk);
			exports.free(file);
		}
		assert_int_equal(ftruncate(disk, 0), 0);
		assert_int_equal(lseek(disk, 0, SEEK_SET), 0);
	}
	profiles_put(p);
	close(disk);
	close(full);
}

static void test_content_types(void **state)
{
	static const struct {
		const char *format, *suffix, *type;
	} cases[] = {
		{ "otlp", ".otlp", "application/octet-stream" },
		{ "otlp.gz", ".otlp.gz", "application/octet-stream" },
		{ "otlp.json", ".otlp.json", "application/json" },
		{ "otlp.jsonl", ".otlp.jsonl", "application/x-ndjson" },
		{ "pprof", ".pb.gz", "application/octet-stream" },
		{ "folded", ".folded", "text/plain; charset=utf-8" },
		{ "svg", ".svg", "image/svg+xml" },
		{ "html", ".html", "text/html; charset=utf-8" },
		{ "speedscope", ".speedscope.json", "application/json" },
		{ "firefox", ".firefox.json.gz", "application/octet-stream" },
		{ "perf-script", ".perf.txt", "text/plain; charset=utf-8" },
	};
	const char *type;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		assert_string_equal(exports.suffix(cases[i].format, &type), cases[i].suffix);
		assert_string_equal(type, cases[i].type);
	}
	assert_null(exports.suffix("no such format", &type));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test_setup_teardown(test_replace, setup, teardown),
		cmocka_unit_test_setup_teardown(test_failures, setup, teardown),
		cmocka_unit_test(test_export),
		cmocka_unit_test(test_export_on_disk),
		cmocka_unit_test(test_sums_on_disk),
		cmocka_unit_test(test_content_types),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
