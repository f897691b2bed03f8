/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who the owner is, which folders are taken, and what in them is given away. A mistake here could give the machine away: all
 * folders lie four deep below one of the test's own, and fchown() is the test's, which refuses what is not below that.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <linux/capability.h>
#include <pwd.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/capabilities.h"
#include "cmd/halves/owner.h"
#include "tests/unit/descriptors.h"

enum { USER = 1234, GROUP = 5678, OTHER = 4321 };

static const struct owner user = { .is_decided = true, .changes = true, .uid = USER, .gid = GROUP };
static const uint64_t all_needed = 1ull << CAP_SETUID | 1ull << CAP_SETGID | 1ull << CAP_CHOWN;

static char top[] = "/tmp/test_owner-XXXXXX";
static char place[sizeof(top) + 8]; /* four below it */
static unsigned escapes;	    /* attempts to give away what is not below */

/* --- stand-ins --- */

static uid_t euid;
static uint64_t effective;
static struct passwd *hearth;
static const char *uid_map; /* NULL: there is none */
static const char *renamed, *renamed_to, *failing;
static struct buf calls;

static int called(const char *name, long argument)
{
	buf_printf(&calls, "%s(%ld) ", name, argument);
	if (!failing || strcmp(failing, name) != 0)
		return 0;
	errno = ENODATA;
	return -1;
}

uid_t geteuid(void)
{
	return euid;
}

gid_t getegid(void)
{
	return euid + 1;
}

uint64_t capabilities_effective(void)
{
	return effective;
}

int capabilities_keep(uint64_t kept)
{
	return called("keep", (long)kept) ? -EPROTO : 0;
}

struct passwd *getpwnam(const char *name)
{
	return strcmp(name, "hearth") == 0 ? hearth : NULL;
}

FILE *fopen(const char *path, const char *mode)
{
	assert_string_equal(path, "/proc/self/uid_map");
	return uid_map ? fmemopen((char *)(uintptr_t)uid_map, strlen(uid_map), *mode == 'r' ? "r" : "w") : NULL;
}

int fchown(int fd, uid_t uid, gid_t gid)
{
	char link[64], path[PATH_MAX] = "";

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	if (readlink(link, path, sizeof(path) - 1) <= 0 || strncmp(path, place, strlen(place)) != 0) {
		escapes++;
		errno = EPERM;
		return -1;
	}
	return (int)syscall(SYS_fchown, fd, uid, gid);
}

/* A file system that lies: the entry @renamed is called @renamed_to. */
struct dirent *readdir(DIR *dir)
{
	static struct dirent *(*real)(DIR *);
	struct dirent *e;

	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "readdir");
	e = real(dir);
	if (e && renamed && !strcmp(e->d_name, renamed))
		strcpy(e->d_name, renamed_to);
	return e;
}

int setgroups(size_t count, const gid_t *groups)
{
	assert_null(groups);
	return called("setgroups", (long)count);
}

int setresgid(gid_t real, gid_t group, gid_t saved)
{
	assert_true(real == group && group == saved);
	return called("setresgid", (long)group);
}

int setresuid(uid_t real, uid_t id, uid_t saved)
{
	assert_true(real == id && id == saved);
	return called("setresuid", (long)id);
}

int prctl(int option, ...)
{
	va_list args;
	long value;

	assert_int_equal(option, PR_SET_DUMPABLE);
	va_start(args, option);
	value = va_arg(args, int);
	va_end(args);
	return called("dumpable", value);
}

/* --- folders --- */

/* @name below the folder; the text lives until the eighth call after. */
static const char *in_place(const char *name)
{
	static char paths[8][sizeof(place) + 64];
	static unsigned turn;
	char *path = paths[turn++ % 8];

	snprintf(path, sizeof(paths[0]), "%s/%s", place, name);
	return path;
}

static void make_folder(const char *name)
{
	assert_return_code(mkdir(in_place(name), 0755), errno);
}

static void make_file(const char *name)
{
	int fd = open(in_place(name), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	assert_return_code(fd, errno);
	close(fd);
}

static void assert_owned(const char *name, uid_t uid, gid_t gid)
{
	struct stat st;

	assert_return_code(lstat(in_place(name), &st), errno);
	if (st.st_uid != uid || st.st_gid != gid)
		fail_msg("%s is %u:%u's and not %u:%u's", name, st.st_uid, st.st_gid, uid, gid);
}

/* The folder is taken: it opens @path itself. */
static void assert_taken(const struct owner *owner, const char *path)
{
	struct stat is, wanted;
	int fd = owner_take_folder(owner, path);

	assert_return_code(fd, -fd);
	assert_return_code(fstat(fd, &is), errno);
	assert_return_code(stat(path, &wanted), errno);
	assert_int_equal(is.st_ino, wanted.st_ino);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	close(fd);
}

static int begin(void **state)
{
	(void)state;
	strcpy(top, "/tmp/test_owner-XXXXXX");
	if (!mkdtemp(top))
		return -1;
	strcpy(place, top);
	for (const char *below = "1234"; *below; below++) {
		snprintf(place + strlen(place), 3, "/%c", *below);
		if (mkdir(place, 0700))
			return -1;
	}
	euid = 0;
	effective = all_needed;
	hearth = NULL;
	uid_map = "0 0 4294967295\n";
	renamed = failing = NULL;
	escapes = 0;
	buf_reset(&calls);
	return 0;
}

static int end(void **state)
{
	char command[sizeof(top) + 16];

	(void)state;
	buf_fini(&calls);
	calls = BUF_EMPTY;
	snprintf(command, sizeof(command), "rm -r %s", top);
	return escapes || system(command) ? -1 : 0;
}

/* --- who --- */

static void assert_owner(const char *folder, bool changes, uid_t uid, gid_t gid)
{
	const struct owner owner = owner_for(folder);

	assert_true(owner.is_decided);
	assert_int_equal(owner.changes, changes);
	assert_int_equal(owner.uid, uid);
	assert_int_equal(owner.gid, gid);
}

static void test_who_may(void **state)
{
	(void)state;
	assert_true(owner_may_change());
	for (uint64_t rest = all_needed; rest; rest &= rest - 1) {
		effective = ~(rest & -rest);
		assert_false(owner_may_change());
		assert_owner(place, false, 0, 1);
	}
	effective = ~0ull;
	assert_true(owner_may_change());
	euid = 7;
	assert_false(owner_may_change());
	assert_owner(place, false, 7, 8);
	assert_owner(NULL, false, 7, 8);
}

/* FNV-1a of the path, by its definition. */
static uid_t made_up(const char *path)
{
	uint64_t hash = 0x811c9dc5;

	for (; *path; path++)
		hash = ((hash ^ (unsigned char)*path) * 0x01000193) % (1ull << 32);
	return (uid_t)(0x70000000 + hash % (1ull << 28));
}

static void test_who(void **state)
{
	static struct passwd entry = { .pw_uid = 77, .pw_gid = 78 };
	char relative[sizeof(place) + 8], folder[sizeof(place) + 8];

	(void)state;
	assert_int_equal(made_up("a"), 0x70000000 + 0x40c292c); /* FNV-1a of "a" is e40c292c */
	assert_owner(NULL, true, made_up("/var/lib/hearth"), made_up("/var/lib/hearth"));
	assert_owner(place, true, made_up(place), made_up(place));
	snprintf(relative, sizeof(relative), "%s/../4/", place);
	assert_owner(relative, true, made_up(place), made_up(place));
	snprintf(folder, sizeof(folder), "%s/none", place);
	assert_owner(folder, true, made_up(folder), made_up(folder));
	entry.pw_uid = 77;
	hearth = &entry;
	assert_owner(NULL, true, 77, 78);
	assert_owner(place, true, 77, 78);
	assert_owner(folder, true, 77, 78);
	entry.pw_uid = 0;
	assert_owner(place, true, made_up(place), made_up(place));
	if (syscall(SYS_geteuid))
		return;
	assert_return_code(chown(place, USER, GROUP), errno);
	entry.pw_uid = 77;
	assert_owner(place, true, USER, GROUP);
}

/* A number that the user namespace has not cannot be become. */
static void test_namespaces(void **state)
{
	static const struct {
		const char *map;
		bool has_it;
	} rows[] = {
		{ NULL, true },
		{ "0 0 77\n", false },
		{ "0 0 78\n", true },
		{ "77 500 1\n", true },
		{ "78 500 10\n", false },
		{ "0 1000 1\n1 2000 76\n", false },
		{ "76 5 1\n", false },
		{ "0 1000 1\n1 2000 77\n", true },
		{ "0 0 1\n\n70 3 8\n", true },
		{ "70 3 7\n", false },
	};
	static struct passwd entry = { .pw_uid = 77, .pw_gid = 78 };

	(void)state;
	hearth = &entry;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		uid_map = rows[i].map;
		assert_owner(NULL, rows[i].has_it, 77, 78);
	}
}

/* --- folders --- */

static void test_made(void **state)
{
	const struct owner same = { .is_decided = true, .uid = USER, .gid = GROUP }; /* who need not change gives nothing */
	struct stat st;

	(void)state;
	assert_taken(&same, in_place("a/b/c"));
	make_file("a/b/c/profiles.db");
	for (const char *const *path = (const char *const[]){ "a", "a/b", "a/b/c", NULL }; *path; path++) {
		assert_return_code(stat(in_place(*path), &st), errno);
		assert_int_equal(st.st_mode & 07777, 0700);
	}
	assert_taken(&same, in_place("a/b/c")); /* is there */
	assert_return_code(stat(in_place("a/b/c/profiles.db"), &st), errno);
	assert_int_equal(st.st_uid, syscall(SYS_geteuid));
	make_file("file");
	assert_int_equal(owner_take_folder(&same, in_place("file")), -ENOTDIR);
	assert_int_equal(owner_take_folder(&same, in_place("file/below")), -ENOTDIR);
	assert_int_equal(owner_take_folder(&same, in_place("file/below/more")), -ENOTDIR);
}

#define NEED_ROOT() (syscall(SYS_geteuid) ? skip() : (void)0)

static void test_given(void **state)
{
	static const char *const given[] = { "s",	    "s/profiles.db", "s/profiles.db-wal", "s/symbols",
					     "s/symbols/b", "s/symbols/b/c", "s/symbols/b/c/f",	  "s/symbols/b/c/d" };
	static const char *const kept[] = {
		"s/symbols/twice", "s/symbols/pipe", "s/symbols/link", "outside", "folder", "folder/file", "."
	};

	(void)state;
	NEED_ROOT();
	assert_taken(&user, in_place("new/store"));
	assert_owned("new", 0, 0);
	assert_owned("new/store", USER, GROUP);
	make_folder("s");
	make_file("s/profiles.db");
	make_file("s/profiles.db-wal");
	make_folder("s/symbols");
	make_folder("s/symbols/b");
	make_folder("s/symbols/b/c");
	make_folder("s/symbols/b/c/d");
	make_file("s/symbols/b/c/f");
	make_file("s/symbols/b/c/d/f");
	make_file("s/symbols/others");
	assert_return_code(chown(in_place("s/symbols/others"), OTHER, OTHER), errno);
	make_file("s/symbols/twice");
	assert_return_code(link(in_place("s/symbols/twice"), in_place("twice")), errno);
	assert_return_code(mkfifo(in_place("s/symbols/pipe"), 0600), errno);
	make_file("outside");
	assert_return_code(symlink("../../outside", in_place("s/symbols/link")), errno);
	make_folder("folder");
	make_file("folder/file");
	assert_return_code(symlink("../../folder", in_place("s/symbols/way")), errno);
	assert_taken(&user, in_place("s"));
	for (size_t i = 0; i < sizeof(given) / sizeof(*given); i++)
		assert_owned(given[i], USER, GROUP);
	assert_owned("s/symbols/b/c/d/f", 0, 0); /* deeper than anything of hearth's */
	assert_owned("s/symbols/others", OTHER, OTHER);
	for (size_t i = 0; i < sizeof(kept) / sizeof(*kept); i++)
		assert_owned(kept[i], 0, 0);
}

/* What root wrote into the owner's folder later is given, whatever it is called; the folder's own group stays. */
static void test_given_later(void **state)
{
	(void)state;
	NEED_ROOT();
	make_folder("s");
	make_file("s/word");
	assert_return_code(chown(in_place("s"), USER, OTHER), errno);
	assert_return_code(chmod(in_place("s"), 0777), errno);
	assert_taken(&user, in_place("s"));
	assert_owned("s", USER, OTHER);
	assert_owned("s/word", USER, GROUP);
}

/* A folder is hearth's when there is nothing in it but what hearth may have made. */
static void test_ours(void **state)
{
	static const struct {
		const char *folders[2], *files[2];
		bool is_ours;
	} rows[] = {
		{ { NULL }, { NULL }, true },
		{ { NULL }, { "profiles.db", "signals.db-wal" }, true },
		{ { NULL }, { "profiles.db-shm", "reserve" }, true },
		{ { NULL }, { "lock" }, true },
		{ { "symbols" }, { "profiles.db" }, true },
		{ { "debuginfod", "lost+found" }, { NULL }, true },
		{ { "https_a_4317" }, { "https_a_4317/lock" }, true },
		{ { "00c0ffee" }, { "cache_clean_interval_s" }, true },
		{ { NULL }, { "cache_miss_s", "max_unused_age_s" }, true },
		{ { NULL }, { "word" }, false },
		{ { NULL }, { "profiles.db", "word" }, false },
		{ { NULL }, { "profiles.d" }, false },
		{ { NULL }, { "00c0ffee" }, false },
		{ { NULL }, { "symbols" }, false },
		{ { "word" }, { "lock" }, false },
		{ { "lock" }, { NULL }, false },	       /* as in /var */
		{ { "run", "run/lock" }, { NULL }, false },    /* as in / */
		{ { "dpkg", "apt" }, { "dpkg/lock" }, false }, /* as in /var/lib */
		{ { "profiles.db" }, { NULL }, false },
		{ { ".hidden" }, { "lock" }, false },
	};

	(void)state;
	NEED_ROOT();
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		char name[8], path[64];
		int fd;

		snprintf(name, sizeof(name), "s%zu", i);
		make_folder(name);
		for (size_t j = 0; j < 2 && rows[i].folders[j]; j++) {
			snprintf(path, sizeof(path), "%s/%s", name, rows[i].folders[j]);
			make_folder(path);
		}
		for (size_t j = 0; j < 2 && rows[i].files[j]; j++) {
			snprintf(path, sizeof(path), "%s/%s", name, rows[i].files[j]);
			make_file(path);
		}
		fd = owner_take_folder(&user, in_place(name));
		if ((fd >= 0) != rows[i].is_ours)
			fail_msg("row %zu is wrong: %d", i, fd);
		assert_owned(name, rows[i].is_ours ? USER : 0, rows[i].is_ours ? GROUP : 0);
		for (size_t j = 0; j < 2 && rows[i].files[j]; j++) {
			snprintf(path, sizeof(path), "%s/%s", name, rows[i].files[j]);
			assert_owned(path, rows[i].is_ours ? USER : 0, rows[i].is_ours ? GROUP : 0);
		}
		if (fd >= 0)
			close(fd);
		else
			assert_int_equal(fd, -EPERM);
	}
}

static void test_not_ours(void **state)
{
	static const struct {
		mode_t mode;
		uid_t uid;
		bool is_taken;
	} rows[] = { { 0755, 0, true }, { 0700, 0, true }, { 0720, 0, false }, { 0702, 0, false }, { 0700, OTHER, false } };

	(void)state;
	NEED_ROOT();
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		char name[8], file[24];
		int fd;

		snprintf(name, sizeof(name), "s%zu", i);
		snprintf(file, sizeof(file), "%s/profiles.db", name);
		make_folder(name);
		make_file(file);
		assert_return_code(chmod(in_place(name), rows[i].mode), errno);
		assert_return_code(chown(in_place(name), rows[i].uid, 0), errno);
		fd = owner_take_folder(&user, in_place(name));
		if (rows[i].is_taken) {
			assert_return_code(fd, -fd);
			close(fd);
			assert_owned(file, USER, GROUP);
		} else {
			assert_int_equal(fd, -EPERM);
			assert_owned(name, rows[i].uid, 0);
			assert_owned(file, 0, 0);
		}
	}
}

/* Names that lead up, or elsewhere, are not followed. */
static void test_no_way_up(void **state)
{
	static const char *const ways[] = { "../.", "../beside", "./.", "../..", "a/b" };

	(void)state;
	NEED_ROOT();
	for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++) {
		char name[8], path[32];

		snprintf(name, sizeof(name), "o%zu", i);
		make_folder(name);
		for (const char *const *below = (const char *const[]){ "beside", "s", "s/symbols", "s/a", "s/a/b", NULL };
		     *below; below++) {
			snprintf(path, sizeof(path), "%s/%s", name, *below);
			make_folder(path);
		}
		snprintf(path, sizeof(path), "%s/s", name);
		assert_return_code(chown(in_place(path), USER, GROUP), errno);
		snprintf(path, sizeof(path), "%s/beside/file", name);
		make_file(path);
		renamed = "symbols";
		renamed_to = ways[i];
		snprintf(path, sizeof(path), "%s/s", name);
		assert_taken(&user, in_place(path));
		renamed = NULL;
		assert_owned(name, 0, 0);
		snprintf(path, sizeof(path), "%s/beside", name);
		assert_owned(path, 0, 0);
		snprintf(path, sizeof(path), "%s/beside/file", name);
		assert_owned(path, 0, 0);
		assert_int_equal(escapes, 0);
	}
}

/* A mounted file system stays whose it is. */
static void test_mounted(void **state)
{
	(void)state;
	NEED_ROOT();
	make_folder("s");
	make_folder("s/symbols");
	make_file("s/profiles.db");
	if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("none", in_place("s/symbols"), "tmpfs", 0, NULL))
		skip();
	make_file("s/symbols/file");
	assert_taken(&user, in_place("s"));
	assert_owned("s/profiles.db", USER, GROUP);
	assert_owned("s/symbols", 0, 0);
	assert_owned("s/symbols/file", 0, 0);
	assert_return_code(umount(in_place("s/symbols")), errno);
}

/* --- becoming --- */

static void test_becoming(void **state)
{
	const struct owner same = { .is_decided = true, .uid = USER, .gid = GROUP };
	static const struct {
		const char *failing, *calls;
		int err;
	} rows[] = {
		{ NULL, "setgroups(0) setresgid(5678) setresuid(1234) keep(0) dumpable(0) ", 0 },
		{ "setgroups", "setgroups(0) ", -ENODATA },
		{ "setresgid", "setgroups(0) setresgid(5678) ", -ENODATA },
		{ "setresuid", "setgroups(0) setresgid(5678) setresuid(1234) ", -ENODATA },
		{ "keep", "setgroups(0) setresgid(5678) setresuid(1234) keep(0) ", -EPROTO },
		{ "dumpable", "setgroups(0) setresgid(5678) setresuid(1234) keep(0) dumpable(0) ", -ENODATA },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		buf_reset(&calls);
		failing = rows[i].failing;
		assert_int_equal(owner_become(&user), rows[i].err);
		assert_string_equal(buf_text(&calls), rows[i].calls);
	}
	buf_reset(&calls);
	failing = NULL;
	assert_int_equal(owner_become(&same), 0);
	assert_string_equal(buf_text(&calls), "keep(0) dumpable(0) ");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_who_may, begin, end),
		cmocka_unit_test_setup_teardown(test_who, begin, end),
		cmocka_unit_test_setup_teardown(test_namespaces, begin, end),
		cmocka_unit_test_setup_teardown(test_made, begin, end),
		cmocka_unit_test_setup_teardown(test_given, begin, end),
		cmocka_unit_test_setup_teardown(test_given_later, begin, end),
		cmocka_unit_test_setup_teardown(test_ours, begin, end),
		cmocka_unit_test_setup_teardown(test_not_ours, begin, end),
		cmocka_unit_test_setup_teardown(test_no_way_up, begin, end),
		cmocka_unit_test_setup_teardown(test_becoming, begin, end),
		cmocka_unit_test_setup_teardown(test_mounted, begin, end),
	};

	return run_group_of_descriptors(tests, NULL, NULL);
}
