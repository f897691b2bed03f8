/* SPDX-License-Identifier: Apache-2.0 */
/* A selection as a file: what it is called and holds, what is refused, and hearth's own profile among all others. */
#include "tests/unit/backend/api_table.h"

#include <fcntl.h>

#include "base/ourselves.h"
#include "proto/profiles_builder.h"
#include "tests/unit/descriptors.h"

/* What the store was asked for, and how many pieces it tells. */
static struct {
	struct store_selection sel;
	char matchers[512]; /* "label=value;" each, as they were asked */
	unsigned pieces;
	int err; /* behind the pieces */
} exported;

/* What the writer was given. */
static struct {
	char format[32];
	size_t added, count; /* of pieces: all, those of a file that was written */
	size_t most_bytes;   /* that the last file might have */
	int files;	     /* begun and not freed */
	int disk;	     /* of the last file */
	bool is_on_disk;     /* as files are from now on */
	uint64_t address;    /* of a piece's first frame */
	int err;
} written;

enum { PIECE_BYTES = 1000 }; /* that a piece takes in the file */

static struct profiles *piece; /* with one frame of the kernel, at 0xffffffff81000000 */

#define KERNEL_ADDRESS 0xffffffff81000000ull

static struct profiles *make_piece(void)
{
	static const struct builder_profile_spec spec = { "s", "1", "samples", "count", "cpu", "nanoseconds", 1, NULL, 0 };
	struct builder *b = builder_new();
	int32_t type = builder_attribute_string(b, "profile.frame.type", STR("kernel"));
	int32_t mapping = builder_mapping(b, KERNEL_ADDRESS, KERNEL_ADDRESS + 0x1000000, 0, builder_string_z(b, "[kernel]"),
					  NULL, 0);
	int32_t frame = builder_location(b, mapping, KERNEL_ADDRESS, NULL, 0, &type, 1);
	struct profiles *p = NULL;

	builder_event(b, builder_profile(b, builder_resource(b, NULL, 0), &spec), builder_stack(b, &frame, 1), NULL, 0, 0, 5,
		      false, 0);
	assert_int_equal(builder_freeze(b, 1, 10, &p), 0);
	builder_free(b);
	return p;
}

static int export_pieces(struct store *store, const struct store_selection *sel, int (*fn)(void *arg, struct profiles *p),
			 void *arg)
{
	size_t len = 0;
	int err = 0;

	(void)store;
	exported.sel = *sel;
	for (size_t i = 0; i < sel->matcher_count; i++)
		len += (size_t)snprintf(exported.matchers + len, sizeof(exported.matchers) - len, "%s%s%s;",
					sel->matchers[i].label, sel->matchers[i].match == MATCH_REGEX ? "~" : "=",
					sel->matchers[i].value);
	for (unsigned i = 0; i < exported.pieces && !err; i++)
		err = fn(arg, piece);
	return err ? err : exported.err;
}

static const char *suffix_of(const char *format, const char **content_type_ret)
{
	*content_type_ret = "x/y";
	return !strcmp(format, "x") ? ".x" : !strcmp(format, "pprof") ? ".pb.gz" : NULL;
}

static int begin_file(const char *format, int disk, struct api_file **ret)
{
	written.disk = disk;
	snprintf(written.format, sizeof(written.format), "%s", format);
	written.files++;
	return export_begin(format, disk, ret);
}

static int add_piece(struct api_file *file, struct profiles *p)
{
	written.added++;
	written.address = p->dict.locations[p->dict.location_count - 1].address;
	return export_add(file, p);
}

static size_t file_bytes(const struct api_file *file)
{
	return file->pieces * PIECE_BYTES;
}

static int write_file(struct api_file *file, size_t most_bytes, struct buf *out, bool *is_on_disk_ret)
{
	written.most_bytes = most_bytes;
	written.count = file->pieces;
	*is_on_disk_ret = written.is_on_disk;
	if (written.is_on_disk)
		assert_int_equal(write(written.disk, "on disk", 7), 7);
	else
		buf_printf(out, "%zu pieces", file->pieces);
	return written.err;
}

static void free_file(struct api_file *file)
{
	written.files--;
	export_free(file);
}

static const struct api_export exports = { suffix_of, begin_file, add_piece, file_bytes, write_file, free_file };
static struct store_read_ops ops;

static void begin(const struct api_export *with, size_t memory_bytes)
{
	const struct api_config config = { .store = &table_store.store, .exports = with, .memory_bytes = memory_bytes };

	memset(&exported, 0, sizeof(exported));
	memset(&written, 0, sizeof(written));
	exported.pieces = 1;
	api_free(api);
	api = NULL;
	ops = table_ops;
	ops.export = export_pieces;
	table_store.store.read = &ops;
	assert_int_equal(api_new(&config, &api), 0);
}

static int begin_each(void **state)
{
	piece = make_piece();
	if (setup(state))
		return -1;
	begin(&exports, 0);
	return 0;
}

static int end_each(void **state)
{
	assert_int_equal(written.files, 0);
	profiles_put(piece);
	return teardown(state);
}

static struct api_answer answer_to(const char *path, const struct query_param *items, size_t count, bool hides)
{
	const struct query_params params = { items, count };
	const struct api_budget budget = { .hides_addresses = hides };
	struct api_answer answer = { 0 };

	api_answer(api, path, &params, &budget, &answer);
	return answer;
}

static void check_text(struct api_answer *answer, unsigned status, const char *text)
{
	if (answer->status != status || !strstr(buf_text(&answer->body), text))
		fail_msg("%u: %s", answer->status, buf_text(&answer->body));
	buf_fini(&answer->body);
}

static const struct query_param some_time[] = { { "from", "1763788000" }, { "to", "1763788060" }, { "format", "x" } };

/* The name of the file tells when it begins, in UTC. */
static void test_name(void **state)
{
	struct api_answer answer = answer_to("/api/v1/export", some_time, 3, false);

	(void)state;
	assert_string_equal(answer.file_name, "hearth-20251122-050640.x");
	assert_string_equal(answer.content_type, "x/y");
	check_text(&answer, 200, "1 pieces");
	assert_string_equal(written.format, "x");
	assert_true(exported.sel.from_ns == 1763788000 * NSEC_PER_SEC);
	assert_true(exported.sel.to_ns == 1763788060 * NSEC_PER_SEC);
}

static void test_pprof_by_its_paths(void **state)
{
	static const char *const paths[] = { "/debug/pprof/profile", "/pprof/profile" };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
		struct api_answer answer = answer_to(paths[i], some_time, 2, false);

		assert_string_equal(answer.file_name, "hearth-20251122-050640.pb.gz");
		check_text(&answer, 200, "1 pieces");
		assert_string_equal(written.format, "pprof");
		assert_string_equal(exported.matchers, "");
	}
}

static void test_no_format(void **state)
{
	static const struct query_param empty[] = { { "format", "" } };
	struct api_answer answer = answer_to("/api/v1/export", NULL, 0, false);

	(void)state;
	check_text(&answer, 400, "format: say which: otlp, pprof");
	answer = answer_to("/api/v1/export", empty, 1, false);
	check_text(&answer, 400, "format: say which: otlp, pprof");
	assert_string_equal(answer.file_name, "");
}

/* A server without writers of files has no format at all. */
static void test_no_writers(void **state)
{
	struct api_answer answer;

	(void)state;
	begin(NULL, 0);
	answer = answer_to("/api/v1/export", some_time, 3, false);
	check_text(&answer, 400, "format: there is no format 'x'");
	answer = answer_to("/debug/pprof/profile", some_time, 2, false);
	check_text(&answer, 400, "format: there is no format 'pprof'");
}

/* All pieces come into one file. */
static void test_pieces(void **state)
{
	struct api_answer answer;

	(void)state;
	exported.pieces = 3;
	answer = answer_to("/api/v1/export", some_time, 3, false);
	check_text(&answer, 200, "3 pieces");
	assert_int_equal(written.added, 3);
	exported.pieces = 0;
	answer = answer_to("/api/v1/export", some_time, 3, false);
	check_text(&answer, 200, "0 pieces");
}

/* For who may not read where the kernel's code lies that is hidden, in all ways to a file. */
static void test_hidden_addresses(void **state)
{
	struct api_answer answer = answer_to("/api/v1/export", some_time, 3, false);

	(void)state;
	check_text(&answer, 200, "");
	assert_true(written.address == KERNEL_ADDRESS);
	answer = answer_to("/api/v1/export", some_time, 3, true);
	check_text(&answer, 200, "1 pieces");
	assert_true(written.address != KERNEL_ADDRESS);
	written.address = 0;
	answer = answer_to("/debug/pprof/profile", some_time, 2, true);
	check_text(&answer, 200, "1 pieces");
	assert_true(written.address != KERNEL_ADDRESS);
}

/* The file may take so much memory: no more is asked for than shows that it takes more. */
static void test_too_much(void **state)
{
	struct api_answer answer;

	(void)state;
	begin(&exports, 2 * PIECE_BYTES);
	exported.pieces = 2;
	answer = answer_to("/api/v1/export", some_time, 3, false);
	check_text(&answer, 200, "2 pieces");
	assert_int_equal(written.most_bytes, 2 * PIECE_BYTES);
	exported.pieces = 5;
	written.added = 0;
	answer = answer_to("/api/v1/export", some_time, 3, false);
	check_text(&answer, 503, "no memory for this now");
	assert_int_equal(written.added, 3);
	assert_int_equal(written.count, 2); /* of the one before */
	assert_string_equal(answer.file_name, "");
}

static void test_errors(void **state)
{
	struct api_answer answer;

	(void)state;
	exported.err = -EIO;
	answer = answer_to("/api/v1/export", some_time, 3, false);
	assert_true(answer.status >= 500);
	assert_int_equal(written.count, 0); /* nothing is written of a part */
	buf_fini(&answer.body);
	exported.err = 0;
	written.err = -ENOMEM;
	answer = answer_to("/api/v1/export", some_time, 3, false);
	assert_true(answer.status >= 500);
	assert_string_equal(answer.file_name, "");
	buf_fini(&answer.body);
}

/* Does the descriptor lead to a file? */
static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

/* A file on disk is the answer's, and nobody's who failed. */
static void test_on_disk(void **state)
{
	struct api_answer answer;
	char text[16] = "";

	(void)state;
	written.is_on_disk = true;
	answer = answer_to("/api/v1/export", some_time, 3, false);
	assert_int_equal(answer.status, 200);
	assert_true(answer.is_on_disk && !answer.body.len);
	assert_int_equal(pread(answer.disk, text, sizeof(text), 0), 7);
	assert_string_equal(text, "on disk");
	api_answer_fini(&answer);
	assert_false(is_open(written.disk) || answer.is_on_disk);
	written.err = -ENOSPC;
	answer = answer_to("/api/v1/export", some_time, 3, false);
	assert_false(is_open(written.disk));
	check_text(&answer, 507, "no room on the store's disk for this");
	written.err = 0;
	written.is_on_disk = false;
	answer = answer_to("/api/v1/export", some_time, 3, false);
	assert_false(is_open(written.disk)); /* nobody needs it */
	check_text(&answer, 200, "1 pieces");
}

static void test_mistakes_in_the_selection(void **state)
{
	static const struct query_param none[] = { { "from", "yesterday" }, { "format", "x" } };
	struct api_answer answer = answer_to("/api/v1/export", none, 2, false);

	(void)state;
	check_text(&answer, 400, "from: 'yesterday' is no time");
}

/* process=hearth is all processes that are known to be hearth: this one, and those that were seen. */
static void test_ourselves(void **state)
{
	static const struct query_param own[] = { { "from", "1763788000" },
						  { "to", "1763788060" },
						  { "process", "hearth" } };
	const struct ourselves seen = { .count = 2, .pids = { 4000001, 4000002 } };
	struct api_answer answer;
	char wanted[512], pid[32];

	(void)state;
	ourselves_saw(&seen);
	answer = answer_to("/debug/pprof/profile", own, 3, false);
	check_text(&answer, 200, "1 pieces");
	snprintf(wanted, sizeof(wanted), "process.executable.name=%s;process.pid~", ourselves_name());
	assert_memory_equal(exported.matchers, wanted, strlen(wanted));
	snprintf(pid, sizeof(pid), "%d", getpid());
	assert_non_null(strstr(exported.matchers + strlen(wanted), pid));
	assert_non_null(strstr(exported.matchers, "4000001|4000002"));
	assert_true(exported.sel.from_ns == 1763788000 * NSEC_PER_SEC);
	assert_true(exported.sel.to_ns == 1763788060 * NSEC_PER_SEC);
}

/* Another process's name is no word for hearth. */
static void test_not_ourselves(void **state)
{
	static const char *const others[] = { "", "hearth2", "heart", "Hearth" };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(others); i++) {
		const struct query_param items[] = { { "from", "1763788000" },
						     { "to", "1763788060" },
						     { "process", others[i] } };
		struct api_answer answer = answer_to("/debug/pprof/profile", items, 3, false);

		buf_fini(&answer.body);
		assert_string_equal(exported.matchers, "");
	}
}

#define DOWNLOAD_TEST(name) cmocka_unit_test_setup_teardown(name, begin_each, end_each)

int main(void)
{
	const struct CMUnitTest tests[] = {
		DOWNLOAD_TEST(test_name),      DOWNLOAD_TEST(test_pprof_by_its_paths),
		DOWNLOAD_TEST(test_no_format), DOWNLOAD_TEST(test_no_writers),
		DOWNLOAD_TEST(test_pieces),    DOWNLOAD_TEST(test_hidden_addresses),
		DOWNLOAD_TEST(test_too_much),  DOWNLOAD_TEST(test_on_disk),
		DOWNLOAD_TEST(test_errors),    DOWNLOAD_TEST(test_mistakes_in_the_selection),
		DOWNLOAD_TEST(test_ourselves), DOWNLOAD_TEST(test_not_ourselves),
	};

	return run_group_of_descriptors(tests, NULL, NULL);
}
