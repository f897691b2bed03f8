/* SPDX-License-Identifier: Apache-2.0 */
/* The store that options name: its place where none is said, what is no place, and all that is in it. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "backend/store/store_read.h"
#include "cmd/setup/store_of.h"
#include "tests/unit/backend/store_put.h"
#include "tests/unit/cmd/parsed.h"
#include "tests/unit/descriptors.h"
#include "tests/unit/proto/text_profiles.h"

static char folder[64];

static int setup(void **state)
{
	(void)state;
	strcpy(folder, "/tmp/test_store_of.XXXXXX");
	return mkdtemp(folder) ? 0 : -1;
}

static int teardown(void **state)
{
	char command[96];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf '%s'", folder);
	return system(command);
}

static void set(const char *name, const char *value)
{
	(void)(value ? setenv(name, value, 1) : unsetenv(name));
}

/* systemd's folder first, then root's, then those of a user. */
static void test_default_folder(void **state)
{
	static const struct {
		const char *service, *xdg, *home, *as_root, *as_user; /* NULL: there is none */
	} cases[] = {
		{ NULL, "/x", "/h", "/var/lib/hearth", "/x/hearth" },
		{ NULL, "x", "/h", "/var/lib/hearth", "/h/.local/state/hearth" },
		{ NULL, NULL, "/h", "/var/lib/hearth", "/h/.local/state/hearth" },
		{ NULL, NULL, NULL, "/var/lib/hearth", NULL },
		{ NULL, NULL, "h", "/var/lib/hearth", NULL },
		{ "/s/hearth:/t", "/x", "/h", "/s/hearth", "/s/hearth" },
		{ "s", "/x", "/h", "/var/lib/hearth", "/x/hearth" },
	};

	(void)state;
	for (size_t i = 0; i < 2 * ARRAY_LEN(cases); i++) {
		const char *want = i % 2 ? cases[i / 2].as_user : cases[i / 2].as_root;
		pid_t pid = fork();
		int status;

		if (!pid) {
			AUTO(buf_fini) struct buf out = BUF_EMPTY;
			int err;

			set("STATE_DIRECTORY", cases[i / 2].service);
			set("XDG_STATE_HOME", cases[i / 2].xdg);
			set("HOME", cases[i / 2].home);
			if (i % 2 ? setuid(65534) && geteuid() == 0 : geteuid() != 0)
				_exit(0);
			err = store_default_folder(&out);
			_exit(err ? want || err != -ENOENT : !want || strcmp(buf_text(&out), want) != 0);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		if (status)
			fail_msg("%zu as %s: not %s", i / 2, i % 2 ? "user" : "root", want);
	}
}

static void test_place(void **state)
{
	struct config config = PARSED(&cmd_store, "info");
	AUTO(buf_fini) struct buf error = BUF_EMPTY;
	struct store *store = NULL;

	(void)state;
	assert_true(store_is_clickhouse("clickhouse+http://x"));
	assert_false(store_is_clickhouse("clickhouse") || store_is_clickhouse("/clickhouse+") ||
		     store_is_clickhouse("http://x"));
	assert_int_equal(store_of(&config, "file=x", true, NULL, &store, &error), -EINVAL);
	assert_string_equal(buf_text(&error),
			    "--store: 'file=x' is a value of --sink; give the folder alone, or --sink file=x");
	buf_reset(&error);
	assert_int_equal(store_of(&config, "/dev/null/x", false, NULL, &store, &error), -ENOTDIR);
	assert_non_null(strstr(buf_text(&error), "/dev/null/x"));
	buf_reset(&error);
	config_fini(&config);
}

/* A folder is one once a store was there, and is read again as it was written; nothing in it is told apart from an error. */
static void test_load(void **state)
{
	AUTO(put_profiles) struct profiles *p = text_profiles("app;main@app;work@app 3\napp;main@app 2\n", 0);
	AUTO(put_profiles) struct profiles *got = NULL;
	struct config config = PARSED(&cmd_serve, "--keep-age", "5000000h");
	AUTO(buf_fini) struct buf error = BUF_EMPTY;
	struct store *store = NULL;
	char file[160];
	size_t bytes = 7;

	(void)state;
	assert_false(store_is_folder(folder));
	snprintf(file, sizeof(file), "%s/profiles.db", folder);
	assert_int_equal(mkdir(file, 0755), 0);
	assert_false(store_is_folder(folder)); /* a folder of that name */
	assert_int_equal(rmdir(file), 0);
	assert_true(store_of_folder(folder, NULL, &store, &error) < 0);
	assert_true(error.len > 0);
	buf_reset(&error);

	assert_int_equal(store_of(&config, folder, false, NULL, &store, &error), 0);
	assert_true(store_is_folder(folder));
	assert_int_equal(store_load(store, &got, &bytes), -ENODATA);
	assert_int_equal(bytes, 0);
	store_put(store, p);
	store->close(store);

	assert_int_equal(store_of_folder(folder, NULL, &store, &error), 0);
	assert_int_equal(store_load(store, &got, &bytes), 0);
	assert_int_equal(got->sample_events, 5);
	assert_true(bytes > 0);
	profiles_put(got);
	got = NULL;
	assert_int_equal(store_load(store, &got, NULL), 0);
	assert_int_equal(got->sample_events, 5);
	store->close(store);
	config_fini(&config);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_default_folder),
		cmocka_unit_test_setup_teardown(test_place, setup, teardown),
		cmocka_unit_test_setup_teardown(test_load, setup, teardown),
	};

	return run_group_of_descriptors(tests, NULL, NULL);
}
