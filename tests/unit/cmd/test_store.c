/* SPDX-License-Identifier: Apache-2.0 */
/* `hearth store` over a small store: what is in it, what changes it, what is exported, and what is damaged. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>
#include <sqlite3.h>

#include "backend/store/sqlite/sqlite.h"
#include "base/io.h"
#include "tests/unit/backend/store_put.h"
#include "tests/unit/cmd/parsed.h"
#include "tests/unit/descriptors.h"
#include "tests/unit/proto/text_profiles.h"

#define STORE(said, ...) run_words(&cmd_store, (const char *const[]){ __VA_ARGS__, NULL }, said)

static char folder[64], file[128];

static int setup(void **state)
{
	const struct store_config config = { .place = folder, .keep_age_ns = UINT64_MAX, .keep_bytes = UINT64_MAX };
	AUTO(put_profiles) struct profiles *p = text_profiles("app;main@app;work@app 3\napp;main@app 2\n", 0);
	struct store_error why;
	struct store *s;

	(void)state;
	strcpy(folder, "/tmp/test_store.XXXXXX");
	if (!mkdtemp(folder) || store_sqlite_open(&config, NULL, &s, &why))
		return -1;
	snprintf(file, sizeof(file), "%s/profiles.db", folder);
	store_put(s, p);
	s->close(s);
	setenv("TZ", "UTC", 1);
	return 0;
}

static int teardown(void **state)
{
	char command[96];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf '%s'", folder);
	return system(command);
}

static void change(const char *sql)
{
	sqlite3 *db;

	assert_int_equal(sqlite3_open(file, &db), SQLITE_OK);
	if (sqlite3_exec(db, sql, NULL, NULL, NULL))
		fail_msg("%s: %s", sql, sqlite3_errmsg(db));
	sqlite3_close(db);
}

static bool is_said(const char *text)
{
	struct log_message said[8];
	bool is = false;

	for (size_t i = log_recent(said, ARRAY_LEN(said)); i > 0; i--)
		is |= strstr(said[i - 1].text, text) != NULL;
	return is;
}

static void test_info(void **state)
{
	const char *said;

	(void)state;
	assert_int_equal(STORE(&said, "info", "--store", folder), STATUS_DONE);
	assert_non_null(strstr(said, "\nsamples 5\n"));
	assert_non_null(strstr(said, "\nfirst   1970-01-01 00:16:40 +0000\nlast    1970-01-01 00:16:40 +0000\n"));
	assert_non_null(strstr(said, "\nseries  1\n"));
	assert_int_equal(strncmp(said, "place   ", 8), 0);
	assert_non_null(strstr(said, folder));
	assert_non_null(strstr(said, "\nsize    "));
	assert_non_null(strstr(said, " a sample\n"));
	assert_int_equal(STORE(NULL, "nonsense", "--store", folder), STATUS_USAGE);
	assert_true(is_said_last("'hearth store' does not know 'nonsense'"));
	assert_int_equal(STORE(NULL, "info", "--store", "/nowhere"), STATUS_FAILED);
}

static void test_changes(void **state)
{
	const char *said;

	(void)state;
	assert_int_equal(STORE(NULL, "compact", "--store", folder, "--keep-age", "5000000h"), STATUS_DONE);
	assert_true(is_said_last("compacted: 5 samples in "));
	assert_true(is_said_last(" MB, before: 5 in "));
	assert_int_equal(STORE(NULL, "prune", "--store", folder, "--keep-age", "5000000h"), STATUS_DONE);
	assert_true(is_said_last("pruned: 5 samples in "));
	assert_int_equal(STORE(NULL, "clear", "--store", folder, "--keep-age", "5000000h"), STATUS_DONE);
	assert_true(is_said_last("cleared: 0 samples in "));
	assert_true(is_said_last(", before: 5 in "));
	assert_int_equal(STORE(&said, "info", "--store", folder), STATUS_DONE);
	assert_non_null(strstr(said, "\nsamples 0\nfirst   -\nlast    -\n"));
	assert_null(strstr(said, "a sample"));
}

/* Samples that are older than they may be go. */
static void test_prune(void **state)
{
	const char *said;

	(void)state;
	assert_int_equal(STORE(NULL, "prune", "--store", folder, "--keep-age", "1h"), STATUS_DONE);
	assert_int_equal(STORE(&said, "info", "--store", folder), STATUS_DONE);
	assert_non_null(strstr(said, "\nsamples 0\n"));
}

static void test_export(void **state)
{
	AUTO(buf_fini) struct buf text = BUF_EMPTY;
	const char *said;
	char path[128];

	(void)state;
	snprintf(path, sizeof(path), "%s/x.folded", folder);
	assert_int_equal(STORE(&said, "export", path, "--store", folder), STATUS_DONE);
	assert_string_equal(said, "");
	assert_int_equal(io_read_file(path, SIZE_MAX, &text), 0);
	assert_string_equal(buf_text(&text), "app;main 2\napp;main;work 3\n");
	assert_true(is_said_last("folded has no place for: "));
	assert_int_equal(STORE(&said, "export", "--store", folder), STATUS_DONE);
	assert_int_equal(said[0], 1 << 3 | 2); /* OTLP: the first field of ProfilesData */
	assert_int_equal(STORE(NULL, "export", "x.xyz", "--store", folder), STATUS_USAGE);
	assert_true(is_said_last("'x.xyz' does not say which format to write"));
	assert_int_equal(STORE(NULL, "clear", "--store", folder), STATUS_DONE);
	assert_int_equal(STORE(NULL, "export", path, "--store", folder), STATUS_FAILED);
	assert_true(is_said_last("there is nothing to export"));
}

/* Each part that is missing or broken is named. */
static void test_verify(void **state)
{
	static const struct {
		const char *sql, *says;
	} cases[] = {
		{ "DELETE FROM series", ": series 1 is missing" },
		{ "DELETE FROM sets", " is missing or broken" },
		{ "DELETE FROM nodes", " is missing or broken" },
		{ "DELETE FROM frames", " is missing or broken" },
		{ "UPDATE blocks SET events = events + 1", " is damaged" },
		{ "UPDATE blocks SET head = zeroblob(length(head))", " is damaged" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		assert_int_equal(STORE(NULL, "verify", "--store", folder), STATUS_DONE);
		assert_true(is_said_last("all of the store is as it was written"));
		change(cases[i].sql);
		assert_int_equal(STORE(NULL, "verify", "--store", folder), STATUS_FAILED);
		if (!is_said(cases[i].says) || !is_said_last(" problems; hearth moves a damaged store aside"))
			fail_msg("%s does not say '%s'", cases[i].sql, cases[i].says);
		teardown(state);
		assert_int_equal(setup(state), 0);
	}
	assert_int_equal(STORE(NULL, "verify", "--store", "clickhouse+http://127.0.0.1:9/d"), STATUS_FAILED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_info, setup, teardown),
		cmocka_unit_test_setup_teardown(test_changes, setup, teardown),
		cmocka_unit_test_setup_teardown(test_prune, setup, teardown),
		cmocka_unit_test_setup_teardown(test_export, setup, teardown),
		cmocka_unit_test_setup_teardown(test_verify, setup, teardown),
	};

	return run_group_of_descriptors(tests, NULL, NULL);
}
