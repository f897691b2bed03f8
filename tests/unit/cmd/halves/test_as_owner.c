/* SPDX-License-Identifier: Apache-2.0 */
/* Commands that become the owner of their store: which of them do, what is given up in which order, and what is refused. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/capabilities.h"
#include "cmd/halves/as_owner.h"
#include "cmd/halves/confine.h"
#include "cmd/halves/hand_over.h"
#include "cmd/halves/owner.h"
#include "tests/unit/cmd/parsed.h"

static char folder[] = "/tmp/test_as_owner-XXXXXX";
static struct buf calls;

/* --- stand-ins --- */

static uid_t euid, folders_uid;
static bool may_change;
static const char *failing;

static int called(const char *name)
{
	buf_printf(&calls, "%s ", name);
	return failing && !strcmp(failing, name) ? -EPROTO : 0;
}

uid_t geteuid(void)
{
	return euid;
}

int stat(const char *path, struct stat *st)
{
	const int err = fstatat(AT_FDCWD, path, st, 0);

	st->st_uid = folders_uid;
	return err;
}

bool owner_may_change(void)
{
	return may_change;
}

struct owner owner_for(const char *path)
{
	(void)path;
	abort();
}

int owner_take_folder(const struct owner *owner, const char *path)
{
	(void)owner;
	(void)path;
	abort();
}

int owner_become(const struct owner *owner)
{
	assert_int_equal(owner->uid, 77);
	return called("become");
}

void hand_over(struct share *share, bool keeps, struct handed_over *ret)
{
	*ret = (struct handed_over){ .owner = { .is_decided = true, .uid = 77 } };
	share->backend.spool = "given";
	called(keeps ? "hand_over_kept" : "hand_over");
}

void hand_over_again(struct handed_over *h)
{
	(void)h;
}

void hand_over_ports(const struct config *config)
{
	assert_string_equal(config->spool, "given");
	called("ports");
}

uint64_t capabilities_of(unsigned kept, uint64_t have)
{
	assert_int_equal(have, 5);
	return kept;
}

uint64_t capabilities_effective(void)
{
	return 5;
}

int capabilities_keep(uint64_t set)
{
	assert_int_equal(set, CAPABILITY_FILES | CAPABILITY_KEEPER);
	return called("keep");
}

int confine_calls(void)
{
	return called("confine");
}

/* --- --- */

static int begin(void **state)
{
	(void)state;
	euid = 0;
	folders_uid = 77;
	may_change = true;
	failing = NULL;
	buf_reset(&calls);
	return 0;
}

/* Who serves becomes the owner, unless it writes files of its own, and calls nothing that it does not need. */
static void test_serve(void **state)
{
	static const struct {
		const char *words[3];
		uid_t euid;
		const char *failing, *calls;
	} rows[] = {
		{ { "--store", "s" }, 0, NULL, "hand_over ports become confine " },
		{ { "--store", "s" }, 1000, NULL, "" },
		{ { "--sink", "otlp=http://h" }, 0, NULL, "hand_over ports become confine " },
		{ { "--sink", "store=s" }, 0, NULL, "hand_over ports become confine " },
		{ { "--sink", "file=a" }, 0, NULL, "keep confine " },
		{ { "--store", "s" }, 0, "become", "hand_over ports become " },
		{ { "--store", "s" }, 0, "confine", "hand_over ports become confine " },
		{ { "--sink", "file=a" }, 0, "keep", "keep " },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const char *words[4] = { rows[i].words[0], rows[i].words[1], NULL };
		struct config config = parse_words(&cmd_serve, words);

		begin(state);
		euid = rows[i].euid;
		failing = rows[i].failing;
		assert_int_equal(as_owner_serve(&config), failing ? -EPROTO : 0);
		if (strcmp(buf_text(&calls), rows[i].calls))
			fail_msg("row %zu: %s", i, buf_text(&calls));
		if (failing)
			assert_true(is_said_last("cannot become the store's owner: Protocol error"));
		assert_int_equal(config.spool && !strcmp(config.spool, "given"), !strncmp(rows[i].calls, "hand_over", 9));
		config_fini(&config);
	}
}

/* Work on a store is done as its owner, where it is another's and is there. */
static void test_store(void **state)
{
	char empty[sizeof(folder) + 8];
	const struct {
		const char *place;
		bool may_change;
		uid_t uid;
		const char *failing, *calls;
	} rows[] = {
		{ folder, true, 77, NULL, "hand_over_kept become " },
		{ NULL, true, 77, NULL, "hand_over_kept become " }, /* the default one */
		{ folder, false, 77, NULL, "" },
		{ folder, true, 0, NULL, "" },
		{ empty, true, 77, NULL, "" },
		{ "clickhouse+http://h", true, 77, NULL, "" },
		{ folder, true, 77, "become", "hand_over_kept become " },
	};

	snprintf(empty, sizeof(empty), "%s/none", folder);
	setenv("STATE_DIRECTORY", folder, 1);
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct config config = { .store = rows[i].place };

		begin(state);
		may_change = rows[i].may_change;
		folders_uid = rows[i].uid;
		failing = rows[i].failing;
		assert_int_equal(as_owner_store(&config), failing ? -EPROTO : 0);
		if (strcmp(buf_text(&calls), rows[i].calls))
			fail_msg("row %zu: %s", i, buf_text(&calls));
	}
}

static int set_up(void **state)
{
	char path[sizeof(folder) + 16];
	FILE *f;

	(void)state;
	if (!mkdtemp(folder))
		return -1;
	snprintf(path, sizeof(path), "%s/profiles.db", folder);
	f = fopen(path, "we");
	return f ? fclose(f) : -1;
}

static int tear_down(void **state)
{
	char command[64];

	(void)state;
	buf_fini(&calls);
	snprintf(command, sizeof(command), "rm -r %s", folder);
	return system(command);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_serve), cmocka_unit_test(test_store) };

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
