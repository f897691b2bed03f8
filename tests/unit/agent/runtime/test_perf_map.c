/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which files are believed to name a process's code, and what is made of them: this process writes maps and dumps for
 * itself, good ones and what others may put in their place.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/runtime/perf_map_files.h"
#include "agent/runtime/runtime.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "tests/unit/descriptors.h"
#include "tests/unit/symbols/jitdump_bytes.h"

enum { JIT = 0x300000, AREA = 0x10000, SOMEBODY = 4242, SLOT = 3 };

static char folder_path[] = "/tmp/hearth-jit-XXXXXX", map_path[64], other_path[64], own_map[64];
static int folder = -1;
static struct metrics *metrics;
static struct files *files;
static const struct runtime *const runtime = &runtime_perf_map;
static void *names; /* what the runtime made */
static struct traces *traces;

static int no_answer(struct elf_service *s, const struct elf_request *request, int fd, const void *payload,
		     size_t payload_bytes, struct buf *reply)
{
	(void)s, (void)request, (void)fd, (void)payload, (void)payload_bytes, (void)reply;
	return -ENOEXEC;
}

static void no_free(struct elf_service *s)
{
	(void)s;
}

static const struct elf_service_ops ops = { .call = no_answer, .free = no_free };
static struct elf_service service = { .ops = &ops };

static int set_up(void **state)
{
	struct runtime_context context = { .slot = SLOT };
	struct file_opener *opener;

	(void)state;
	if (!mkdtemp(folder_path))
		return -1;
	folder = open(folder_path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	snprintf(map_path, sizeof(map_path), "%s/perf-7.map", folder_path);
	snprintf(other_path, sizeof(other_path), "%s/other", folder_path);
	snprintf(own_map, sizeof(own_map), "/tmp/perf-%d.map", getpid());
	metrics = metrics_new();
	if (folder < 0 || !metrics || file_opener_new(metrics, &opener) || files_new(&service, opener, metrics, &files))
		return -1;
	context.files = files;
	context.metrics = metrics;
	return runtime->create(&context, &names) || traces_new(NULL, &traces);
}

static int tear_down(void **state)
{
	(void)state;
	traces_free(traces);
	runtime->destroy(names);
	files_free(files);
	metrics_free(metrics);
	unlink(own_map);
	unlink(map_path);
	unlink(other_path);
	close(folder);
	return rmdir(folder_path);
}

static void write_file(const char *path, const char *text)
{
	AUTO_FCLOSE FILE *f = fopen(path, "w");

	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
}

static void test_identity(void **state)
{
	struct jit_identity who, again;
	struct stat st;

	(void)state;
	assert_int_equal(perf_map_identity_read((uint32_t)getpid(), 0, &who), 0);
	assert_int_equal(who.pid, getpid());
	assert_int_equal(who.uid, geteuid());
	assert_int_equal(stat("/proc/self", &st), 0);
	/* started before now, and not long ago: this is a short test */
	assert_true(who.start_unix_ns < clock_unix_ns() && clock_unix_ns() - who.start_unix_ns < 600 * NSEC_PER_SEC);
	assert_int_equal(perf_map_identity_read((uint32_t)getpid(), 1, &again), -ESRCH); /* another had the pid */
	assert_int_equal(perf_map_identity_read(0x7fffffff, 0, &again), -ESRCH);
}

static int open_as(uint32_t uid, uint64_t start_unix_ns)
{
	const struct jit_identity who = { .pid = 7, .uid = uid, .start_unix_ns = start_unix_ns };
	int fd = perf_map_file_open(folder, 7, &who);

	if (fd >= 0)
		close(fd);
	return fd < 0 ? fd : 0;
}

static void test_whose(void **state)
{
	const uint64_t now = clock_unix_ns();

	(void)state;
	assert_int_equal(open_as(geteuid(), now), -ENOENT);
	write_file(map_path, "1000 10 f\n");
	assert_int_equal(open_as(geteuid(), now), 0);
	assert_int_equal(open_as(geteuid(), now + 3600 * NSEC_PER_SEC), -ESTALE);
	assert_int_equal(open_as(SOMEBODY, now), geteuid() ? -EACCES : 0); /* root may write it for others */
	if (!geteuid()) {
		assert_int_equal(chown(map_path, SOMEBODY, SOMEBODY), 0);
		assert_int_equal(open_as(SOMEBODY, now), 0);
		assert_int_equal(open_as(SOMEBODY + 1, now), -EACCES);
		assert_int_equal(open_as(0, now), -EACCES); /* also where the process is root's */
	}
	assert_int_equal(link(map_path, other_path), 0);
	assert_int_equal(open_as(SOMEBODY, now), -EMLINK);
	assert_int_equal(unlink(other_path), 0);
	assert_int_equal(unlink(map_path), 0);
}

/* This process's map by the times of it: pids are used again. */
static void test_old(void **state)
{
	const uint64_t slack_ns = 100 * NSEC_PER_MSEC;
	struct jit_identity who = { .pid = 7, .uid = geteuid(), .task_pid = (uint32_t)getpid() };
	struct timespec times[2] = { { .tv_nsec = UTIME_OMIT } };
	uint64_t written_ns;
	struct stat st;
	int fd, held;

	(void)state;
	write_file(map_path, "1000 10 f\n");
	assert_int_equal(stat(map_path, &st), 0);
	written_ns = (uint64_t)st.st_mtim.tv_sec * NSEC_PER_SEC + (uint64_t)st.st_mtim.tv_nsec;
	/* of one that ended a moment before this one started */
	who.start_unix_ns = written_ns + slack_ns;
	assert_int_equal(perf_map_file_open(folder, 7, &who), -ESTALE);
	who.start_unix_ns = written_ns + 10 * NSEC_PER_MSEC; /* as good as file times are */
	fd = perf_map_file_open(folder, 7, &who);
	assert_true(fd >= 0);
	close(fd);
	/* written all the while, the clock was set since */
	who.start_unix_ns = written_ns + slack_ns;
	held = open(map_path, O_WRONLY | O_CLOEXEC);
	fd = perf_map_file_open(folder, 7, &who);
	assert_true(held >= 0 && fd >= 0);
	close(fd);
	close(held);
	/* there before the process, and made anew by it: all of it is its own, as far as can be seen */
	times[1] = (struct timespec){ .tv_sec = st.st_mtim.tv_sec + 10 };
	assert_int_equal(utimensat(AT_FDCWD, map_path, times, 0), 0);
	who.start_unix_ns = written_ns + 5 * NSEC_PER_SEC;
	fd = perf_map_file_open(folder, 7, &who);
	assert_true(fd >= 0);
	close(fd);
	/* but where it appends, it begins with another's names */
	held = open(map_path, O_WRONLY | O_APPEND | O_CLOEXEC);
	assert_int_equal(perf_map_file_open(folder, 7, &who), -EEXIST);
	who.start_unix_ns = written_ns - 10 * NSEC_PER_SEC; /* unless it came to be after the process */
	fd = perf_map_file_open(folder, 7, &who);
	assert_true(held >= 0 && fd >= 0);
	close(fd);
	close(held);
	assert_int_equal(unlink(map_path), 0);
}

static void test_no_file(void **state)
{
	const uint64_t now = clock_unix_ns();

	(void)state;
	write_file(other_path, "1000 10 f\n");
	assert_int_equal(symlink(other_path, map_path), 0);
	assert_int_equal(open_as(geteuid(), now), -EINVAL);
	assert_int_equal(unlink(map_path), 0);
	assert_int_equal(symlink("other", map_path), 0);
	assert_int_equal(open_as(geteuid(), now), -EINVAL);
	assert_int_equal(unlink(map_path), 0);
	assert_int_equal(mkfifo(map_path, 0600), 0);
	assert_int_equal(open_as(geteuid(), now), -EINVAL); /* and at once */
	assert_int_equal(unlink(map_path), 0);
	assert_int_equal(mkdir(map_path, 0700), 0);
	assert_int_equal(open_as(geteuid(), now), -EINVAL);
	assert_int_equal(rmdir(map_path), 0);
}

static void test_dump_names(void **state)
{
	(void)state;
	assert_true(perf_map_dump_is_named("/home/me/.debug/jit/x/jit-123.dump"));
	assert_true(perf_map_dump_is_named("jit-1.dump"));
	assert_true(perf_map_dump_is_named("/tmp/jit-1.dump (deleted)"));
	assert_false(perf_map_dump_is_named("/tmp/jit-.dump"));
	assert_false(perf_map_dump_is_named("/tmp/jit-1.dump.so"));
	assert_false(perf_map_dump_is_named("/tmp/jit-1"));
	assert_false(perf_map_dump_is_named("/tmp/xjit-1.dump"));
	assert_false(perf_map_dump_is_named("/jit-1.dump/libc.so"));
	assert_false(perf_map_dump_is_named(""));
}

static struct process *new_process(uint32_t pid)
{
	struct process *p = calloc(1, sizeof(*p));

	assert_non_null(p);
	p->refs = 1;
	p->pid = pid;
	p->as = address_space_new();
	assert_non_null(p->as);
	assert_int_equal(address_space_map(&p->as, JIT, JIT + AREA, 0, NULL), 0);
	return p;
}

/* A sample at @addr. Is the code anonymous? */
static bool add(struct process *p, uint64_t addr, uint64_t time_ns)
{
	const struct sample_record record = { .hdr = { .time_ns = time_ns }, .pid = p->pid, .tid = p->pid };
	const struct pending_sample sample = { .record = &record, .value = 1 };
	const uint64_t user[] = { addr | FRAME_EXACT };

	assert_int_equal(traces_add(traces, p, &sample, user, 1, END_ROOT), 0);
	return traces_last_asks_runtimes(traces);
}

static void assert_text(const struct str *got, const char *want)
{
	assert_int_equal(got->len, strlen(want));
	assert_memory_equal(got->data, want, got->len);
}

static void expect(const struct process *p, uint64_t addr, uint64_t time_ns, const char *name)
{
	struct runtime_name found;
	bool has_name = runtime->find(names, p, addr, time_ns, &found);

	assert_int_equal(has_name, name != NULL);
	if (!name)
		return;
	if (found.line.name.len != strlen(name) || memcmp(found.line.name.data, name, found.line.name.len))
		fail_msg("%.*s, not %s", (int)found.line.name.len, found.line.name.data, name);
}

/* The map is looked for now and then: updates until the name of @addr is @name, for some seconds at most. */
static void await(const struct process *p, uint64_t addr, const char *name)
{
	uint64_t start_ns = clock_mono_ns();
	struct runtime_name found;
	bool is_it;

	do {
		usleep(2000);
		runtime->update(names, traces, NULL);
		is_it = runtime->find(names, p, addr, UINT64_MAX, &found) && found.line.name.len == strlen(name) &&
			!memcmp(found.line.name.data, name, found.line.name.len);
	} while (!is_it && clock_mono_ns() - start_ns < 10 * NSEC_PER_SEC);
	expect(p, addr, UINT64_MAX, name);
}

static void settle(void)
{
	runtime->settle(names, traces, clock_mono_ns());
	traces_reset(traces);
}

static void test_map_of_a_process(void **state)
{
	struct process *p = new_process((uint32_t)getpid());
	AUTO_FCLOSE FILE *map = NULL;
	struct runtime_name found;

	(void)state;
	assert_true(add(p, JIT + 0x10, 1));
	assert_true(add(p, JIT + 0x10, 2)); /* the same stack */
	runtime->see(names, p);
	runtime->update(names, traces, NULL);
	expect(p, JIT + 0x10, UINT64_MAX, NULL);
	map = fopen(own_map, "w");
	assert_non_null(map);
	fprintf(map, "%x 100 _ZN3foo3barEv\n%x 100 JS:*fib /tmp/fib.js:3:1\n", JIT, JIT + 0x100);
	fflush(map);
	await(p, JIT + 0x10, "foo::bar");
	assert_true(runtime->find(names, p, JIT + 0x10, UINT64_MAX, &found));
	assert_text(&found.line.name, "foo::bar");
	assert_text(&found.line.system_name, "_ZN3foo3barEv");
	assert_null(found.type);
	assert_true(runtime->find(names, p, JIT + 0x1ff, UINT64_MAX, &found));
	assert_text(&found.line.name, "fib");
	assert_text(&found.line.file, "/tmp/fib.js");
	assert_string_equal(found.type, "v8js");
	assert_true(found.line.start_line == 3 && found.line.line == 0);
	settle();
	/* it grows, and it is gone by its name: names come all the same */
	assert_int_equal(unlink(own_map), 0);
	fprintf(map, "%x 100 late\n", JIT + 0x300);
	fflush(map);
	assert_true(add(p, JIT + 0x310, 3));
	runtime->update(names, traces, NULL);
	expect(p, JIT + 0x310, UINT64_MAX, "late");
	expect(p, JIT + 0x110, UINT64_MAX, "fib");
	expect(p, JIT + 0x400, UINT64_MAX, NULL);
	settle();
	/* written anew under the name */
	write_file(own_map, "300000 100 anew\n");
	assert_true(add(p, JIT + 0x20, 4));
	await(p, JIT + 0x20, "anew");
	settle();
	process_put(p);
}

/* Two processes with the same mappings make code of their own: a sample of one is not the other's. */
static void test_shared_mappings(void **state)
{
	struct process *p = new_process((uint32_t)getpid()), *other = calloc(1, sizeof(*other));

	(void)state;
	write_file(own_map, "300000 100 mine\n");
	assert_non_null(other);
	other->refs = 1;
	other->pid = 0x7fffffff;
	other->as = address_space_get(p->as);
	assert_true(add(p, JIT + 0x10, 1));
	assert_true(add(other, JIT + 0x10, 1));
	assert_int_equal(traces_count(traces), 2);
	runtime->see(names, p);
	runtime->see(names, other);
	runtime->update(names, traces, NULL);
	expect(p, JIT + 0x10, UINT64_MAX, "mine");
	expect(other, JIT + 0x10, UINT64_MAX, NULL);
	settle();
	process_put(p);
	process_put(other);
	unlink(own_map);
}

/* A dump that was mapped; code that is used again within an interval has the name of each moment. */
static void test_dump_of_a_process(void **state)
{
	struct process *p = new_process((uint32_t)getpid());
	AUTO_FCLOSE FILE *out = fopen(other_path, "w");
	struct file dump = { .fd = open(other_path, O_RDONLY | O_CLOEXEC) };
	const struct jitdump_line line = { JIT, 12, "/src/made.c" };
	struct runtime_name found;
	struct stat st;

	(void)state;
	assert_int_equal(fstat(dump.fd, &st), 0);
	dump.key = (struct file_key){ .dev_major = major(st.st_dev), .dev_minor = minor(st.st_dev), .inode = st.st_ino };
	runtime->map(names, p, &dump, "/tmp/other", p->pid);
	assert_int_equal(dump.refs, 0);
	runtime->map(names, p, &dump, "/tmp/jit-1.dump", p->pid);
	runtime->map(names, p, &dump, "/tmp/jit-1.dump", p->pid); /* it only grew */
	assert_int_equal(dump.refs, 1);
	assert_false(runtime->varies(names, p) || runtime->find(names, p, JIT + 4, 150, &found)); /* no code was met yet */
	jitdump_header(out, 62, p->pid + 1, 1, 0); /* its parent's: older than the process */
	jitdump_lines(out, 100, JIT, &line, 1);
	jitdump_load(out, p->pid, 100, JIT, "12345678", 8, 1, "first");
	jitdump_load(out, p->pid, 200, JIT, "12345678", 8, 2, "second");
	fflush(out);
	assert_true(add(p, JIT + 4, 150));
	runtime->see(names, p);
	runtime->update(names, traces, NULL);
	assert_true(runtime->varies(names, p));
	expect(p, JIT + 4, 150, "first");
	expect(p, JIT + 4, 250, "second");
	assert_true(runtime->find(names, p, JIT + 4, 150, &found));
	assert_int_equal(found.line.line, 12);
	assert_text(&found.line.file, "/src/made.c");
	settle();
	assert_false(runtime->varies(names, p)); /* that was long ago */
	process_put(p);
	assert_int_equal(dump.refs, 0);
	close(dump.fd);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_identity),
		cmocka_unit_test(test_whose),
		cmocka_unit_test(test_old),
		cmocka_unit_test(test_no_file),
		cmocka_unit_test(test_dump_names),
		cmocka_unit_test(test_map_of_a_process),
		cmocka_unit_test(test_shared_mappings),
		cmocka_unit_test(test_dump_of_a_process),
	};

	return run_group_of_descriptors(tests, set_up, tear_down);
}
