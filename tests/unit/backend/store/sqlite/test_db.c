/* SPDX-License-Identifier: Apache-2.0 */
/* Errors of SQLite as errno values: writers, readers and `hearth store` decide by them. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "backend/store/sqlite/db.h"
#include "base/cleanup.h"

static void test_errors(void **state)
{
	static const struct {
		int code, err;
	} cases[] = {
		{ SQLITE_OK, 0 },
		{ SQLITE_ROW, 0 },
		{ SQLITE_DONE, 0 },
		{ SQLITE_NOMEM, -ENOMEM },
		{ SQLITE_FULL, -ENOSPC }, /* the disk: the reserve is freed */
		{ SQLITE_READONLY, -EROFS },
		{ SQLITE_CORRUPT, -EBADMSG }, /* the store is moved aside */
		{ SQLITE_NOTADB, -EBADMSG },
		{ SQLITE_BUSY, -EBUSY }, /* tried again */
		{ SQLITE_LOCKED, -EBUSY },
		{ SQLITE_PERM, -EACCES },
		{ SQLITE_AUTH, -EACCES },
		{ SQLITE_CANTOPEN, -ENOENT },
		{ SQLITE_INTERRUPT, -ETIMEDOUT },
		{ SQLITE_IOERR, -EIO },
		{ SQLITE_ERROR, -EIO },
		/* the reason that stands beside an error does not change what it is */
		{ SQLITE_BUSY_SNAPSHOT, -EBUSY },
		{ SQLITE_CORRUPT_INDEX, -EBADMSG },
		{ SQLITE_IOERR_WRITE, -EIO },
		{ SQLITE_READONLY_DBMOVED, -EROFS },
		{ SQLITE_CANTOPEN_ISDIR, -ENOENT },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		if (store_sqlite_errno(cases[i].code) != cases[i].err)
			fail_msg("%d is %d, not %d", cases[i].code, store_sqlite_errno(cases[i].code), cases[i].err);
}

static void test_numbers(void **state)
{
	sqlite3 *db;
	int64_t value = 7;

	(void)state;
	assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
	assert_int_equal(store_exec(db, "CREATE TABLE t(a INTEGER)"), 0);
	assert_int_equal(store_exec(db, "nonsense"), -EIO);
	assert_int_equal(store_get_int(db, "SELECT a FROM t", -3, &value), 0);
	assert_int_equal(value, -3); /* there is none */
	value = 7;
	assert_int_equal(store_get_int(db, "SELECT max(a) FROM t", -3, &value), 0); /* NULL */
	assert_int_equal(value, -3);
	assert_int_equal(store_exec(db, "INSERT INTO t VALUES (9000000000)"), 0);
	assert_int_equal(store_get_int(db, "SELECT a FROM t", -3, &value), 0);
	assert_true(value == 9000000000);
	assert_int_equal(store_get_int(db, "SELECT nonsense FROM t", -3, &value), -EIO);
	sqlite3_close(db);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_errors), cmocka_unit_test(test_numbers) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
