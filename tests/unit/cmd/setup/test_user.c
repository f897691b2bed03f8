/* SPDX-License-Identifier: Apache-2.0 */
/* Files that root gives to the user behind sudo, and root as the owner of a folder. Needs root. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "cmd/setup/user.h"
#include "tests/unit/descriptors.h"

enum { UID = 65534, GID = 65533 };

static const struct user nobody = { .uid = UID, .gid = GID };
static char folder[64], file[128];

static void make_file(mode_t mode, uid_t uid)
{
	FILE *f = fopen(file, "w");

	assert_non_null(f);
	fclose(f);
	assert_int_equal(chmod(file, mode), 0);
	assert_int_equal(chown(file, uid, 0), 0);
}

static int setup(void **state)
{
	(void)state;
	strcpy(folder, "/tmp/test_user.XXXXXX");
	if (!mkdtemp(folder))
		return -1;
	snprintf(file, sizeof(file), "%s/x", folder);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	unlink(file);
	return rmdir(folder);
}

static uid_t owner_of(const char *path)
{
	struct stat st;

	assert_int_equal(lstat(path, &st), 0);
	return st.st_uid;
}

/* A file is given where its new owner could have made it: by the folder's bits for owner, group or others. */
static void test_give(void **state)
{
	static const struct {
		uid_t uid;
		gid_t gid;
		mode_t mode;
		bool is_given;
	} cases[] = {
		{ UID, 0, 0700, true },	 { UID, 0, 0500, false }, { UID, 0, 0577, false }, { 0, GID, 0770, true },
		{ 0, GID, 0757, false }, { 0, 0, 0757, true },	  { 0, 0, 0775, false },
	};

	(void)state;
	if (geteuid())
		skip();
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct stat st;

		make_file(0644, 0);
		assert_int_equal(chown(folder, cases[i].uid, cases[i].gid), 0);
		assert_int_equal(chmod(folder, cases[i].mode), 0);
		user_give_file(&nobody, file);
		assert_int_equal(lstat(file, &st), 0);
		if (st.st_uid != (cases[i].is_given ? UID : 0) || st.st_gid != (cases[i].is_given ? GID : 0))
			fail_msg("%zu: of %u:%u", i, st.st_uid, st.st_gid);
		unlink(file);
	}
}

/* A file of another user, a link, and a file with a second name stay as they are. */
static void test_not_given(void **state)
{
	char other[160];

	(void)state;
	if (geteuid())
		skip();
	assert_int_equal(chmod(folder, 0777), 0);
	snprintf(other, sizeof(other), "%s/other", folder);
	make_file(0644, 12);
	user_give_file(&nobody, file);
	assert_int_equal(owner_of(file), 12);
	unlink(file);

	make_file(0644, 0);
	assert_int_equal(link(file, other), 0);
	user_give_file(&nobody, file);
	assert_int_equal(owner_of(file), 0);
	unlink(other);

	assert_int_equal(symlink(file, other), 0);
	user_give_file(&nobody, other);
	assert_int_equal(owner_of(file), 0);
	unlink(other);

	assert_int_equal(mkdir(other, 0755), 0);
	user_give_file(&nobody, other);
	assert_int_equal(owner_of(other), 0);
	rmdir(other);
	user_give_file(&nobody, "/nowhere/x");
}

/* Root is the owner of the folder for a while, where that may read the file; both ids, and back again. */
static void test_as_owner(void **state)
{
	struct user was;

	(void)state;
	if (geteuid())
		skip();
	assert_int_equal(chmod(folder, 0755), 0);
	assert_int_equal(chown(folder, UID, GID), 0);
	make_file(0600, UID);
	user_as_owner(folder, "x", &was);
	assert_int_equal(was.uid, 0);
	assert_int_equal(geteuid(), UID);
	assert_int_equal(getegid(), GID);
	user_end_as_owner(&was);
	assert_int_equal(geteuid(), 0);
	assert_int_equal(getegid(), 0);
	unlink(file);

	make_file(0600, 0); /* its owner cannot read it: root does */
	user_as_owner(folder, "x", &was);
	assert_int_equal(geteuid(), 0);
	assert_int_equal(getegid(), 0);
	user_end_as_owner(&was);
	unlink(file);

	make_file(0600, 0);
	assert_int_equal(chown(folder, 0, GID), 0); /* root's own */
	user_as_owner(folder, "x", &was);
	assert_int_equal(geteuid(), 0);
	assert_int_equal(getegid(), 0);
	user_end_as_owner(&was);
	user_as_owner("/nowhere", "x", &was);
	assert_int_equal(geteuid(), 0);
}

/* For good: ids and the environment of who has a name; a number without a name gets ids alone. */
static void test_become(void **state)
{
	static const struct {
		struct user user;
		const char *name; /* NULL: HOME stays */
	} cases[] = { { { UID, GID }, "nobody" }, { { 123456, 7 }, NULL } };

	(void)state;
	if (geteuid())
		skip();
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const struct user *user = &cases[i].user;
		pid_t pid = fork();
		int status;

		if (!pid) {
			gid_t groups[64];
			int count;
			uid_t r, e, s;

			setenv("HOME", "/before", 1);
			setenv("USER", "before", 1);
			setenv("LOGNAME", "before", 1);
			if (user_become(user) || getresuid(&r, &e, &s) || r != user->uid || e != r || s != r ||
			    getgid() != user->gid)
				_exit(1);
			count = getgroups(64, groups);
			if (count < 1 || (!cases[i].name && (count != 1 || groups[0] != user->gid)))
				_exit(2);
			for (int k = 0; k < count; k++)
				if (!groups[k])
					_exit(3); /* root's */
			if (strcmp(getenv("USER"), cases[i].name ? cases[i].name : "before") != 0 ||
			    strcmp(getenv("LOGNAME"), getenv("USER")) != 0 ||
			    !strcmp(getenv("HOME"), "/before") != !cases[i].name)
				_exit(4);
			_exit(setuid(0) ? 0 : 5);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		if (status)
			fail_msg("%zu: %d", i, WEXITSTATUS(status));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_give, setup, teardown),
		cmocka_unit_test_setup_teardown(test_not_given, setup, teardown),
		cmocka_unit_test_setup_teardown(test_as_owner, setup, teardown),
		cmocka_unit_test(test_become),
	};

	return run_group_of_descriptors(tests, NULL, NULL);
}
