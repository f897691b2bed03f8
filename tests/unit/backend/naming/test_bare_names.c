/* SPDX-License-Identifier: Apache-2.0 */
/* Names for bare addresses out of a file, this program's own, given to a store that is made of this test's tables. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend/naming/bare_names.h"
#include "backend/store/store_read.h"
#include "backend/store/store_write.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "symbols/symbols.h"
#include "tests/unit/descriptors.h"

extern const char __executable_start[];

int bare_names_subject(int n);

__attribute__((noinline)) int bare_names_subject(int n)
{
	return n * 3;
}

enum { FRAMES = 6, GIVEN = 8 };

/* Frames as they came, and the names that were given. */
struct fake {
	struct store store;
	struct {
		char build_id[80];
		uint64_t address;
		const char *function;
	} frames[FRAMES];
	uint32_t count;
	int error; /* that naming ends with */
	char given[GIVEN][160];
	size_t given_count, calls;
};

static int fake_bare_frames(struct store *s, uint32_t from, uint32_t *next_ret,
			    int (*fn)(void *arg, const struct store_frame *frame), void *arg)
{
	struct fake *f = (struct fake *)s;
	int err = 0;

	for (*next_ret = from; *next_ret < f->count && !err; *next_ret += !err) {
		struct store_frame frame = { .build_id = f->frames[*next_ret].build_id,
					     .function = f->frames[*next_ret].function,
					     .address = f->frames[*next_ret].address };

		err = fn(arg, &frame);
	}
	return err;
}

static int fake_name_frames(struct store *s, const char *build_id, const struct store_name *names, size_t count)
{
	struct fake *f = (struct fake *)s;

	f->calls++;
	if (f->error)
		return f->error;
	for (size_t i = 0; i < count; i++) {
		assert_true(f->given_count < GIVEN);
		snprintf(f->given[f->given_count++], sizeof(f->given[0]), "%.70s %s", build_id, names[i].function);
	}
	return 0;
}

static const struct store_read_ops fake_read = { .bare_frames = fake_bare_frames };
static const struct store_write_ops fake_write = { .name_frames = fake_name_frames };

struct fixture {
	struct fake fake;
	struct bare_names *names;
	char folder[64];
	struct build_ids ids;
	int fd;
	uint64_t address;
	int open_files;
};

static int setup(void **state)
{
	static struct fixture f;

	memset(&f, 0, sizeof(f));
	f.open_files = open_descriptors();
	f.fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	assert_true(f.fd >= 0);
	assert_int_equal(build_ids_read(f.fd, &f.ids), 0);
	assert_true(*f.ids.htlhash);
	f.address = (uint64_t)((uintptr_t)bare_names_subject - (uintptr_t)__executable_start);
	f.fake.store.read = &fake_read;
	f.fake.store.write = &fake_write;
	strcpy(f.folder, "/tmp/hearth-names-XXXXXX");
	assert_non_null(mkdtemp(f.folder));
	assert_int_equal(bare_names_new(&f.fake.store, f.folder, &f.names), 0);
	*state = &f;
	return 0;
}

/* All that was opened is closed again, on the way of an error, too. */
static int teardown(void **state)
{
	struct fixture *f = *state;
	char command[128];

	bare_names_free(f->names);
	close(f->fd);
	snprintf(command, sizeof(command), "rm -rf %s", f->folder);
	assert_int_equal(system(command), 0);
	assert_int_equal(open_descriptors(), f->open_files);
	return 0;
}

static void add_frame(struct fixture *f, const char *build_id, uint64_t address, const char *function)
{
	assert_true(f->fake.count < FRAMES);
	snprintf(f->fake.frames[f->fake.count].build_id, sizeof(f->fake.frames[0].build_id), "%s", build_id);
	f->fake.frames[f->fake.count].address = address;
	f->fake.frames[f->fake.count++].function = function;
}

static void check_given(struct fixture *f, size_t index, const char *build_id)
{
	char want[160];

	assert_true(index < f->fake.given_count);
	snprintf(want, sizeof(want), "%.70s bare_names_subject", build_id);
	assert_string_equal(f->fake.given[index], want);
}

/* Each address of each of the file's ids once, those named before, too; other files' and unknown addresses are left alone.
 */
static void test_take(void **state)
{
	struct fixture *f = *state;
	struct bare_names_taken taken = { 0 };
	char upper[80];

	snprintf(upper, sizeof(upper), "%s", f->ids.htlhash);
	for (char *p = upper; *p; p++)
		*p = (char)toupper((unsigned char)*p);
	add_frame(f, f->ids.htlhash, f->address, "");
	add_frame(f, "0123456789abcdef", f->address, "");
	add_frame(f, f->ids.htlhash, UINT64_MAX / 2, "");
	add_frame(f, f->ids.htlhash, f->address, "");
	add_frame(f, upper, f->address, "earlier");
	assert_int_equal(bare_names_take(f->names, f->fd, &taken), 0);
	assert_int_equal(taken.named, 2);
	assert_true(taken.functions > 10);
	assert_string_equal(taken.build_id, *f->ids.gnu ? f->ids.gnu : f->ids.htlhash);
	assert_int_equal(f->fake.given_count, 2);
	check_given(f, 0, f->ids.htlhash);
	check_given(f, 1, upper);
}

/* A child of this process that is called hearth-names; 0: there is none. */
static pid_t find_reader(void)
{
	char path[64], name[32];
	AUTO_FCLOSE FILE *children = NULL;
	int pid;

	snprintf(path, sizeof(path), "/proc/self/task/%d/children", getpid());
	children = fopen(path, "re");
	while (children && fscanf(children, "%d", &pid) == 1) {
		AUTO_FCLOSE FILE *comm = NULL;

		snprintf(path, sizeof(path), "/proc/%d/comm", pid);
		comm = fopen(path, "re");
		if (comm && fgets(name, sizeof(name), comm) && !strcmp(name, "hearth-names\n"))
			return pid;
	}
	return 0;
}

struct watcher {
	_Atomic bool is_over;
	char status[4096]; /* of the reader, as it was seen first */
};

static void *watch_reader(void *arg)
{
	struct watcher *w = arg;
	char path[64];
	pid_t pid = 0;

	while (!w->status[0] && !atomic_load(&w->is_over)) {
		AUTO_FCLOSE FILE *status = NULL;
		size_t len;

		pid = find_reader();
		snprintf(path, sizeof(path), "/proc/%d/status", pid);
		status = pid ? fopen(path, "re") : NULL;
		len = status ? fread(w->status, 1, sizeof(w->status) - 1, status) : 0;
		w->status[len] = '\0';
	}
	return NULL;
}

/* The process that reads a stranger's file has given up what this one may. */
static void test_confined(void **state)
{
	struct fixture *f = *state;
	struct watcher w = { 0 };
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, watch_reader, &w), 0);
	for (int i = 0; i < 100 && !w.status[0]; i++) { /* it is there for some milliseconds */
		struct bare_names_taken taken = { 0 };

		assert_int_equal(bare_names_take(f->names, f->fd, &taken), 0);
	}
	atomic_store(&w.is_over, true);
	pthread_join(thread, NULL);
	assert_non_null(strstr(w.status, "\nNoNewPrivs:\t1\n"));
	if (geteuid() == 0) {
		assert_non_null(strstr(w.status, "\nUid:\t65534\t65534\t65534\t65534\n"));
		assert_non_null(strstr(w.status, "\nCapEff:\t0000000000000000\n"));
	}
}

/* What comes later is named by the index that was kept, if it has no name yet; looked for once a second. */
static void test_update(void **state)
{
	struct fixture *f = *state;
	struct bare_names_taken taken = { 0 };
	uint64_t before_ns;

	assert_int_equal(bare_names_take(f->names, f->fd, &taken), 0);
	assert_int_equal(taken.named, 0);
	assert_int_equal(f->fake.calls, 0);
	add_frame(f, f->ids.htlhash, f->address, "earlier");
	add_frame(f, "0123456789abcdef", f->address, "");
	add_frame(f, "0123456789abcdef", f->address + 1, "");
	assert_int_equal(bare_names_search_ns(f->names), UINT64_MAX);
	before_ns = clock_mono_ns();
	assert_int_equal(bare_names_update(f->names), 0);
	assert_int_equal(f->fake.calls, 0);
	assert_int_not_equal(bare_names_search_ns(f->names), UINT64_MAX);
	assert_int_equal(bare_names_search(f->names, &taken), -ENOENT); /* this machine has no such file */
	assert_int_equal(bare_names_search_ns(f->names), UINT64_MAX);	/* and it is not looked for twice */
	add_frame(f, f->ids.htlhash, f->address, "");
	assert_int_equal(bare_names_update(f->names), 0);
	assert_true(f->fake.calls == 0 || clock_mono_ns() - before_ns >= NSEC_PER_SEC);
	bare_names_free(f->names); /* another process finds what this one kept, and what is there already */
	assert_int_equal(bare_names_new(&f->fake.store, f->folder, &f->names), 0);
	f->fake.calls = f->fake.given_count = 0;
	assert_int_equal(bare_names_update(f->names), 0);
	assert_int_equal(f->fake.calls, 1);
	assert_int_equal(f->fake.given_count, 1);
	check_given(f, 0, f->ids.htlhash);
}

/* A store that fails is asked for nothing more, and that it failed is told. */
static void test_store_fails(void **state)
{
	struct fixture *f = *state;
	struct bare_names_taken taken = { 0 };
	char upper[80];

	snprintf(upper, sizeof(upper), "%s", f->ids.htlhash);
	for (char *p = upper; *p; p++)
		*p = (char)toupper((unsigned char)*p);
	assert_string_not_equal(upper, f->ids.htlhash);
	add_frame(f, f->ids.htlhash, f->address, "");
	add_frame(f, upper, f->address, "");
	f->fake.error = -EIO;
	assert_int_equal(bare_names_take(f->names, f->fd, &taken), -EIO);
	assert_int_equal(f->fake.calls, 1);
	assert_int_equal(bare_names_update(f->names), -EIO);
	assert_int_equal(f->fake.calls, 2);
}

/* How many files lie below @folder, each of which is first changed by @change, a shell's commands on $1. */
static int count_kept(const char *folder, const char *change)
{
	char command[512];
	FILE *said;
	int count = -1;

	snprintf(command, sizeof(command), "find %s -type f -exec sh -c '%s' - {} \\; -print | wc -l", folder, change);
	said = popen(command, "re");
	assert_non_null(said);
	assert_int_equal(fscanf(said, "%d", &count), 1);
	assert_int_equal(pclose(said), 0);
	return count;
}

/* An index that was damaged on disk gives no names: it goes, as if it had not been there, and the others are asked. */
static void test_damaged(void **state)
{
	struct fixture *f = *state;
	struct bare_names_taken taken = { 0 };
	int kept;

	add_frame(f, f->ids.htlhash, f->address, "");
	assert_int_equal(bare_names_take(f->names, f->fd, &taken), 0);
	assert_int_equal(f->fake.given_count, 1);
	f->fake.given_count = f->fake.calls = 0;
	kept = count_kept(f->folder,
			  "size=$(stat -c %s \"$1\") && dd if=/dev/zero of=\"$1\" bs=1024 "
			  "seek=$((size / 4096)) count=$((size / 2048)) conv=notrunc status=none"); /* not its head */
	assert_true(kept > 0);
	bare_names_free(f->names);
	assert_int_equal(bare_names_new(&f->fake.store, f->folder, &f->names), 0);
	assert_int_equal(bare_names_update(f->names), 0);
	assert_int_equal(f->fake.calls, 0);
	assert_int_equal(count_kept(f->folder, ":"), kept - 1);
}

/* A file that has no names. */
static void test_refused(void **state)
{
	struct fixture *f = *state;
	struct bare_names_taken taken = { .functions = 5, .named = 6, .build_id = "ab" }; /* of another file */
	AUTO_CLOSE int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);

	add_frame(f, f->ids.htlhash, f->address, "");
	assert_true(bare_names_take(f->names, fd, &taken) < 0);
	assert_int_equal(taken.named, 0);
	assert_int_equal(taken.functions, 0);
	assert_string_equal(taken.build_id, "");
	assert_int_equal(f->fake.calls, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_take, setup, teardown),
		cmocka_unit_test_setup_teardown(test_update, setup, teardown),
		cmocka_unit_test_setup_teardown(test_confined, setup, teardown),
		cmocka_unit_test_setup_teardown(test_store_fails, setup, teardown),
		cmocka_unit_test_setup_teardown(test_damaged, setup, teardown),
		cmocka_unit_test_setup_teardown(test_refused, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
