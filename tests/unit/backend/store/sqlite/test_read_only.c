/* SPDX-License-Identifier: Apache-2.0 */
/* A store that is opened to be read alone: it answers, and refuses everything that would change it. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backend/store/sqlite/sqlite.h"
#include "backend/store/store_maintain.h"
#include "backend/store/store_read.h"
#include "backend/store/store_write.h"
#include "base/cleanup.h"
#include "tests/unit/backend/store_put.h"
#include "tests/unit/proto/text_profiles.h"

static struct store *open_store(const char *folder, bool read_only)
{
	struct store_config config = {
		.place = folder, .keep_age_ns = UINT64_MAX, .keep_bytes = UINT64_MAX, .read_only = read_only
	};
	struct store_error err;
	struct store *s = NULL;

	if (store_sqlite_open(&config, NULL, &s, &err))
		fail_msg("%s", err.message);
	return s;
}

static int add_events(void *arg, const struct store_kind *kind)
{
	*(uint64_t *)arg += kind->events;
	return 0;
}

static uint64_t count_events(struct store *s)
{
	const struct store_selection all = { .to_ns = UINT64_MAX };
	uint64_t events = 0;

	assert_int_equal(s->read->kinds(s, &all, add_events, &events), 0);
	return events;
}

static void test_refuses(void **state)
{
	const struct store_name name = { 0x1000, "named", "", "", 0, 0 };
	AUTO(put_profiles) struct profiles *p = text_profiles("app;main@app;work@app 3\n", 0);
	struct counted_ack ack = { .ack.done = counted_done };
	char folder[] = "/tmp/hearth-store-XXXXXX", command[64];
	struct store *s;
	struct sink *sink;

	(void)state;
	assert_non_null(mkdtemp(folder));
	s = open_store(folder, false);
	store_put(s, p);
	s->close(s);

	s = open_store(folder, true);
	assert_int_equal(count_events(s), 3);
	for (enum store_task task = STORE_PRUNE; task <= STORE_CLEAR; task++)
		assert_int_equal(s->maintain->task(s, task), -EROFS);
	assert_int_equal(s->write->name_frames(s, "cafe", &name, 1), -EROFS);
	assert_int_equal(s->write->name_frames(s, "", &name, 1), -EINVAL);
	assert_int_equal(s->write->name_frames(s, "cafe", &name, 0), -EINVAL);
	assert_int_equal(s->write->writer(s, &sink), 0);
	assert_int_equal(sink_consume(sink, p, &ack.ack), -EROFS);
	assert_int_equal(ack.done, 0);
	sink_free(sink);
	assert_int_equal(count_events(s), 3);
	s->close(s);

	s = open_store(folder, false);
	assert_int_equal(count_events(s), 3);
	s->close(s);
	snprintf(command, sizeof(command), "rm -r %s", folder);
	assert_int_equal(system(command), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_refuses) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
