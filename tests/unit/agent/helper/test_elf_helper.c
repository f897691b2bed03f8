/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The helper form against the in-process form on real files, and against a service that does, inside the worker, whatever a
 * hostile file could make a parser do.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/helper/elf_helper.h"
#include "agent/helper/elf_wire.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd_pass.h"
#include "base/metrics.h"
#include "tests/unit/agent/harmful_service.h"

enum { STACK_BYTES = 256 << 10, MANY_BYTES = 65536, PACKET_BYTES = 64 << 10 };

static unsigned trains; /* replies of several packets */

static struct metrics *metrics;
static struct buf reply, expected;

/* --- what the test sees of processes --- */

static uint64_t restarts(const char *reason)
{
	char labels[64];

	snprintf(labels, sizeof(labels), "reason=\"%s\"", reason);
	return metric_get(metrics_counter(metrics, "hearth_elf_helper_restarts_total", labels, ""));
}

static int count_fds(const char *path)
{
	DIR *dir = opendir(path);
	int count = 0;

	assert_non_null(dir);
	for (struct dirent *entry; (entry = readdir(dir));)
		count += entry->d_name[0] != '.';
	closedir(dir);
	return count;
}

/* The first @max children of @pid; their number. */
static int children_of(pid_t pid, pid_t *ret, int max)
{
	char path[64];
	int count = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", pid, pid);
	f = fopen(path, "re");
	while (f && count < max && fscanf(f, "%d", &ret[count]) == 1)
		count++;
	if (f)
		fclose(f);
	return count;
}

/* The first child of @pid, 0 when it has none. */
static pid_t child_of(pid_t pid)
{
	pid_t child = 0;

	(void)children_of(pid, &child, 1);
	return child;
}

/* Has /proc/PID/status the line @line? */
static bool has_status(pid_t pid, const char *line)
{
	char path[32], text[256];
	bool has = false;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	f = fopen(path, "re");
	while (f && !has && fgets(text, sizeof(text), f))
		has = !strncmp(text, line, strlen(line));
	if (f)
		fclose(f);
	return has;
}

/* A zombie has gone, too: it waits for init. */
static void assert_gone(pid_t pid)
{
	assert_true(pid > 0);
	for (int i = 0; i < 500 && has_status(pid, "State:") && !has_status(pid, "State:\tZ"); i++)
		usleep(10000);
	assert_true(!has_status(pid, "State:") || has_status(pid, "State:\tZ"));
}

/* --- the same answers --- */

static struct elf_service *helper, *in_process;

static void compare(const struct elf_request *request, int fd, const void *payload, size_t bytes)
{
	int status = elf_service_call(in_process, request, fd, payload, bytes, &expected);

	assert_int_equal(elf_service_call(helper, request, fd, payload, bytes, &reply), status);
	if (status)
		return;
	assert_int_equal(reply.len, expected.len);
	if (reply.len)
		assert_memory_equal(reply.data, expected.data, reply.len);
}

static void compare_eval(uint32_t file, int fd, uint64_t addr)
{
	static struct {
		struct elf_eval eval;
		uint64_t words[STACK_BYTES / 8];
	} payload;

	payload.eval.stack_addr = 0x7fff00000000;
	payload.eval.regs.known = (1ull << USER_REGS) - 1;
	for (uint64_t i = 0; i < ARRAY_LEN(payload.words); i++)
		payload.words[i] = 0x7fff00000000 + i * 8;
	for (uint64_t i = 0; i < USER_REGS; i++)
		payload.eval.regs.value[i] = 0x7fff00000000 + i * 1024;
	compare(&(struct elf_request){ .op = ELF_OP_EVAL, .file = file, .addr = addr }, fd, &payload, sizeof(payload));
}

static void compare_file(uint32_t file, const char *path)
{
	AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
	const struct elf_segment *code;
	struct elf_info info;
	size_t rows = 0;

	assert_true(fd >= 0);
	compare(&(struct elf_request){ .op = ELF_OP_INFO, .file = file }, fd, NULL, 0);
	assert_int_equal(reply.len, sizeof(info));
	memcpy(&info, reply.data, sizeof(info));
	assert_true(info.segment_count > 0);
	code = &info.segments[0];
	for (uint64_t i = 0; i < 300; i++) {
		uint64_t addr = (code->vaddr + code->size_bytes / 300 * i) / BLOCK * BLOCK;

		compare(&(struct elf_request){ .op = ELF_OP_ROWS, .file = file, .addr = addr, .addr_end = addr + BLOCK }, fd,
			NULL, 0);
		rows += reply.len / sizeof(struct row);
		if (i % 10 == 0)
			compare_eval(file, fd, addr + 17);
	}
	assert_true(rows > 300);
	compare(
		&(struct elf_request){
			.op = ELF_OP_ROWS, .file = file, .addr = code->vaddr, .addr_end = code->vaddr + MANY_BYTES },
		fd, NULL, 0);
	trains += reply.len > PACKET_BYTES;
	compare(&(struct elf_request){ .op = ELF_OP_FORGET, .file = file }, -1, NULL, 0);
	assert_int_equal(lseek(fd, 0, SEEK_CUR), 0);
}

static void test_same_answers(void **state)
{
	static const char *const files[] = { "/proc/self/exe", "/usr/lib*/*/libc.so.6", "/usr/lib*/*/libstdc++.so.6" };
	int fds;

	(void)state;
	assert_int_equal(elf_service_new(&in_process), 0);
	assert_int_equal(elf_helper_new(elf_service_new, metrics, &helper), 0);
	fds = count_fds("/proc/self/fd");
	for (uint32_t i = 0; i < ARRAY_LEN(files); i++) {
		glob_t found;

		assert_int_equal(glob(files[i], 0, NULL, &found), 0);
		compare_file(i + 1, found.gl_pathv[0]);
		globfree(&found);
	}
	assert_true(trains > 0);
	compare(&(struct elf_request){ .op = ELF_OP_ROWS, .file = 9, .addr = 0, .addr_end = BLOCK }, -1, NULL,
		0); /* no file */
	compare(&(struct elf_request){ .op = UINT32_MAX, .file = 1 }, STDIN_FILENO, NULL, 0);
	assert_int_equal(count_fds("/proc/self/fd"), fds);
	elf_service_free(helper);
	elf_service_free(in_process);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* no child is left */
}

/* --- harm --- */

static void test_harm(void **state)
{
	static const struct {
		enum harm harm;
		int status;
		const char *reason;
	} cases[] = {
		{ CRASH, -EPROTO, "crash" },
		{ ABORT, -EPROTO, "crash" },
		{ EXIT, -EPROTO, "crash" },
		{ CALL_FORBIDDEN, -ENOSYS, "forbidden call" },
		{ CALL_EXECUTABLE, -ENOSYS, "forbidden call" },
		{ TAKE_MEMORY, -ENOBUFS, "memory" },
		{ REPLY_HUGE, -EILSEQ, "nonsense" },
		{ REPLY_BAD_STATUS, -EILSEQ, "nonsense" },
		{ REPLY_ROW_OUTSIDE, -EILSEQ, "nonsense" },
		{ REPLY_ROW_REVERSED, -EILSEQ, "nonsense" },
		{ REPLY_PART, -EILSEQ, "nonsense" },
		{ REPLY_UNTERMINATED, -EILSEQ, "nonsense" },
		{ REPLY_NEED_PATH, -EILSEQ, "nonsense" },
		{ REPLY_NEED_MORE, -EILSEQ, "nonsense" },
		{ REPLY_NEED_PART, -EILSEQ, "nonsense" },
		{ REPLY_NEED_UNASKED, -EILSEQ, "nonsense" },
	};
	struct elf_service *s;
	int fds;

	(void)state;
	assert_int_equal(elf_helper_new(harmful_new, metrics, &s), 0);
	fds = count_fds("/proc/self/fd");
	for (uint32_t i = 0; i < ARRAY_LEN(cases); i++) {
		uint64_t before = restarts(cases[i].reason);
		int status;

		if (HAS_SANITIZER && !strcmp(cases[i].reason, "forbidden call"))
			continue; /* its reports need calls of their own */
		status = do_harm(s, i + 1, cases[i].harm, &reply);

		assert_int_equal(status, cases[i].status);
		assert_true(elf_service_is_hostile(status));
		assert_int_equal(reply.len, 0);
		assert_true(restarts(cases[i].reason) > before);
		assert_int_equal(do_harm(s, 100 + i, NO_HARM, &reply), 0);
		assert_int_equal(reply.len, sizeof(struct row));
	}
	assert_int_equal(do_harm(s, 99, REPLY_NEED, &reply), ELF_STATUS_NEED);
	assert_int_equal(reply.len, sizeof(struct debug_need));
	if (!HAS_SANITIZER)
		assert_int_equal(do_harm(s, 200, OPEN_FILE, &reply), -EACCES);
	assert_int_equal(count_fds("/proc/self/fd"), fds);
	elf_service_free(s);
}

/* Has the process of the folder @path so many descriptors, within 10 s? The template may still close its end of a socket. */
static bool comes_to(const char *path, int fds)
{
	for (int i = 0; i < 1000 && count_fds(path) != fds; i++)
		usleep(10000);
	return count_fds(path) == fds;
}

/* What the kernel says of both processes. */
static void test_privileges(void **state)
{
	static const char *const lines[] = { "Name:\thearth-elf\n", "CapPrm:\t0000000000000000\n", "NoNewPrivs:\t1\n" };
	struct elf_service *s;
	pid_t pids[2];

	(void)state;
	assert_int_equal(elf_helper_new(harmful_new, metrics, &s), 0);
	pids[0] = child_of(getpid());
	pids[1] = child_of(pids[0]);
	for (size_t i = 0; i < ARRAY_LEN(pids); i++) {
		char path[32];

		for (size_t k = 0; k < ARRAY_LEN(lines); k++)
			assert_true(has_status(pids[i], lines[k]));
		if (geteuid())
			continue;
		assert_true(has_status(pids[i], "Uid:\t65534\t65534\t65534\t65534\n"));
		assert_true(has_status(pids[i], "Gid:\t65534\t65534\t65534\t65534\n"));
		assert_true(has_status(pids[i], "Groups:\t \n"));
		snprintf(path, sizeof(path), "/proc/%d/fd", pids[i]);
		assert_true(comes_to(path, 5 - (int)i)); /* the streams, its socket, and for the template the worker */
		for (int fd = 0; fd < 3 - HAS_SANITIZER; fd++) { /* sanitizers report to the third */
			char stream[64], target[64] = "";

			snprintf(stream, sizeof(stream), "%s/%d", path, fd);
			assert_true(readlink(stream, target, sizeof(target) - 1) > 0);
			assert_string_equal(target, "/dev/null");
		}
	}
	assert_true(has_status(pids[1], "Seccomp:\t2\n"));
	elf_service_free(s);
}

/* Without descriptors no worker can be started: that is said, held against no file, and passes. */
static void test_no_descriptors(void **state)
{
	struct elf_service *s;
	struct rlimit usual;
	int status;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &usual), 0);
	assert_int_equal(elf_helper_new(harmful_new, metrics, &s), 0);
	assert_true(elf_service_is_hostile(do_harm(s, 1, CRASH, &reply)));
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &(struct rlimit){ 0, usual.rlim_max }), 0);
	status = do_harm(s, 2, NO_HARM, &reply);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &usual), 0);
	assert_int_equal(status, -EMFILE);
	assert_false(elf_service_is_hostile(status));
	assert_int_equal(do_harm(s, 2, NO_HARM, &reply), 0);
	assert_int_equal(reply.len, sizeof(struct row));
	elf_service_free(s);
}

/* A worker spoilt by one file is no reason to distrust the next; nor is one that had nothing to do for long. Whom the caller
 * distrusts answers nothing more. */
static void test_blame(void **state)
{
	uint64_t crashes = restarts("crash"), idle = restarts("idle"), nonsense = restarts("nonsense");
	struct elf_service *s;

	(void)state;
	assert_int_equal(elf_helper_new(harmful_new, metrics, &s), 0);
	assert_int_equal(do_harm(s, 1, NO_HARM, &reply), 0);
	assert_int_equal(do_harm(s, 2, CRASH_IF_SPOILT, &reply), 0);
	assert_int_equal(reply.len, sizeof(struct row));
	assert_int_equal(restarts("crash"), crashes + 1);
	assert_int_equal(do_harm(s, 2, EXIT_IF_USED, &reply), 0);
	assert_int_equal(restarts("idle"), idle + 1);
	for (int times = 0; times < 2; times++) /* the second time there is nobody */
		elf_service_distrust(s);
	assert_int_equal(restarts("nonsense"), nonsense + 1);
	assert_int_equal(do_harm(s, 2, NO_HARM, &reply), 0);
	elf_service_free(s);
}

/* Nor is it the first file's fault when nobody asked anything since the helper began. */
static void test_first_after_long(void **state)
{
	uint64_t crashes = restarts("crash"), idle = restarts("idle");
	struct elf_service *s;

	(void)state;
	assert_int_equal(elf_helper_new(harmful_new, metrics, &s), 0);
	assert_int_equal(do_harm(s, 1, EXIT_IF_FIRST, &reply), 0);
	assert_int_equal(reply.len, sizeof(struct row));
	assert_int_equal(restarts("idle"), idle + 1);
	assert_int_equal(restarts("crash"), crashes);
	elf_service_free(s);
}

/* A file cut short under the parser that has it mapped. */
static void test_truncated(void **state)
{
	AUTO_CLOSE int self = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), copy = memfd_create("copy", MFD_CLOEXEC);
	struct elf_request request = { .op = ELF_OP_INFO, .file = 1 };
	struct elf_info info;
	struct elf_service *s;
	struct stat st;

	(void)state;
	assert_int_equal(fstat(self, &st), 0);
	for (off_t off = 0; off < st.st_size;)
		assert_true(sendfile(copy, self, &off, (size_t)(st.st_size - off)) > 0);
	assert_int_equal(elf_helper_new(elf_service_new, metrics, &s), 0);
	assert_int_equal(elf_service_call(s, &request, copy, NULL, 0, &reply), 0);
	memcpy(&info, reply.data, sizeof(info));
	request = (struct elf_request){
		.op = ELF_OP_ROWS, .file = 1, .addr = info.segments[0].vaddr, .addr_end = info.segments[0].vaddr + BLOCK
	};
	assert_int_equal(elf_service_call(s, &request, copy, NULL, 0, &reply), 0);
	assert_int_equal(ftruncate(copy, 4096), 0);
	request.addr += info.segments[0].size_bytes / 2;
	request.addr_end = request.addr + BLOCK;
	assert_int_equal(elf_service_call(s, &request, copy, NULL, 0, &reply), -EPROTO);
	request.file = 2; /* met anew: no whole ELF file now */
	assert_true(elf_service_call(s, &request, copy, NULL, 0, &reply) < 0);
	request = (struct elf_request){ .op = ELF_OP_INFO, .file = 3 };
	assert_int_equal(elf_service_call(s, &request, self, NULL, 0, &reply), 0);
	elf_service_free(s);
}

/* --- time --- */

struct hang {
	struct elf_service *service;
	enum harm harm;
	int status;
	uint64_t took_ns;
	struct buf reply;
};

static void *hang(void *arg)
{
	uint64_t start = clock_mono_ns();
	struct hang *h = arg;

	h->status = do_harm(h->service, 1, h->harm, &h->reply);
	h->took_ns = clock_mono_ns() - start;
	return NULL;
}

/* One spins, one sleeps, at the same time. */
static void test_hang(void **state)
{
	struct hang hangs[] = { { .harm = SPIN }, { .harm = SLEEP } };
	uint64_t before = restarts("time");
	pthread_t threads[ARRAY_LEN(hangs)];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(hangs); i++) {
		assert_int_equal(elf_helper_new(harmful_new, metrics, &hangs[i].service), 0);
		assert_int_equal(do_harm(hangs[i].service, 1, NO_HARM, &hangs[i].reply), 0);
	}
	for (size_t i = 0; i < ARRAY_LEN(hangs); i++)
		assert_int_equal(pthread_create(&threads[i], NULL, hang, &hangs[i]), 0);
	for (size_t i = 0; i < ARRAY_LEN(hangs); i++) {
		pthread_join(threads[i], NULL);
		assert_int_equal(hangs[i].status, -ETIMEDOUT);
		assert_true(hangs[i].took_ns > 400 * NSEC_PER_MSEC && hangs[i].took_ns < 4000 * NSEC_PER_MSEC);
		assert_int_equal(do_harm(hangs[i].service, 2, NO_HARM, &hangs[i].reply), 0);
		elf_service_free(hangs[i].service);
		buf_fini(&hangs[i].reply);
	}
	assert_int_equal(restarts("time"), before + ARRAY_LEN(hangs));
}

/* --- death --- */

static void test_template_dies(void **state)
{
	enum { TEMPLATES = 3 };
	uint64_t before = restarts("template");
	pid_t templates[TEMPLATES], workers[TEMPLATES];
	struct elf_service *s;

	(void)state;
	assert_int_equal(elf_helper_new(harmful_new, metrics, &s), 0);
	assert_int_equal(children_of(getpid(), templates, TEMPLATES), TEMPLATES);
	for (int i = 0; i < TEMPLATES; i++) {
		assert_int_equal(restarts("template") - before, i);
		workers[i] = child_of(templates[i]);
		assert_int_equal(do_harm(s, 1, NO_HARM, &reply), 0);
		kill(templates[i], SIGKILL);
		assert_gone(workers[i]); /* dies with it */
		if (i + 1 < TEMPLATES)
			assert_int_equal(do_harm(s, 1, NO_HARM, &reply), 0);
	}
	assert_int_equal(do_harm(s, 1, NO_HARM, &reply), -ECHILD);
	assert_int_equal(do_harm(s, 1, NO_HARM, &reply), -ECHILD);
	assert_int_equal(restarts("template") - before, TEMPLATES);
	elf_service_free(s);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

/* A caller that can come back is not held, others are told apart from the one that is slow, and who is slow but honest is
 * answered in the end. */
static void test_come_back(void **state)
{
	uint64_t before = restarts("time");
	struct elf_service *s;
	int status;

	(void)state;
	assert_int_equal(elf_helper_new(harmful_new, metrics, &s), 0);
	can_come_back = true;
	assert_int_equal(do_harm(s, 1, SLOW, &reply), -EAGAIN);
	while ((status = do_harm(s, 1, SLOW, &reply)) == -EAGAIN)
		usleep(10000);
	assert_int_equal(status, 0);
	assert_int_equal(reply.len, sizeof(struct row));
	assert_int_equal(restarts("time"), before);

	assert_int_equal(do_harm(s, 2, SPIN, &reply), -EAGAIN);
	assert_int_equal(do_harm(s, 3, NO_HARM, &reply), -EAGAIN);
	while ((status = do_harm(s, 3, NO_HARM, &reply)) == -EAGAIN)
		usleep(10000);
	assert_int_equal(status, 0);
	assert_int_equal(restarts("time"), before + 1);
	assert_int_equal(do_harm(s, 2, NO_HARM, &reply), -ETIMEDOUT); /* once */
	assert_int_equal(do_harm(s, 2, NO_HARM, &reply), 0);

	assert_int_equal(do_harm(s, 4, SPIN, &reply), -EAGAIN);
	can_come_back = false; /* waits for it to end */
	assert_int_equal(do_harm(s, 5, NO_HARM, &reply), 0);
	status = do_harm(s, 4, NO_HARM, &reply);
	assert_true(status == -ETIMEDOUT || status == 0); /* 0: on a busy machine it did not get its time */
	assert_int_equal(do_harm(s, 5, CRASH, &reply), -EPROTO);
	elf_service_free(s);
}

/* Descriptors that nobody asked for, several at once or with an empty packet, do not pile up in the agent. */
static void test_unasked_descriptors(void **state)
{
	struct elf_wire head = { .kind = ELF_WIRE_REPLY };
	const int two[2] = { 0 };
	int pair[2], fd, fds = count_fds("/proc/self/fd");

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	for (size_t i = 0; i < 4; i++) {
		const size_t count = 1 + i % 2, len = i < 2 ? 0 : sizeof(head);
		const struct iovec part = { &head, len };
		int error = count == 2 ? -EPROTO : len ? 0 : -EPIPE;

		assert_int_equal(fd_pass_send(pair[0], &part, 1, two, count, 0), len);
		assert_int_equal(elf_wire_receive(pair[1], &head, &reply, &fd, NULL, NULL), error);
		assert_int_equal(fd >= 0, !error);
		if (fd >= 0)
			close(fd);
	}
	close(pair[0]);
	close(pair[1]);
	assert_int_equal(count_fds("/proc/self/fd"), fds);
}

/* Its end, however sudden, is the end of all three; a signal to the whole group is not. */
static void test_agent_dies(void **state)
{
	struct elf_service *s;
	pid_t agent, template, worker;
	int ready[2];
	char c;

	(void)state;
	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	agent = fork();
	if (!agent) {
		setpgid(0, 0);
		signal(SIGINT, SIG_IGN);
		signal(SIGTERM, SIG_IGN);
		c = elf_helper_new(harmful_new, metrics, &s) ? 'n' : 'y';
		(void)!write(ready[1], &c, 1);
		for (;;)
			pause();
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &c, 1), 1);
	close(ready[0]);
	assert_int_equal(c, 'y');
	template = child_of(agent);
	worker = child_of(template);
	assert_true(template && worker);
	kill(-agent, SIGINT);
	kill(-agent, SIGTERM);
	usleep(100000);
	assert_int_equal(kill(worker, 0), 0);
	assert_int_equal(child_of(template), worker);
	kill(agent, SIGKILL);
	assert_int_equal(waitpid(agent, NULL, 0), agent);
	assert_gone(worker);
	assert_gone(template);
}

static int make_metrics(void **state)
{
	(void)state;
	metrics = metrics_new();
	return !metrics;
}

static int free_metrics(void **state)
{
	(void)state;
	metrics_free(metrics);
	buf_fini(&reply);
	buf_fini(&expected);
	return 0;
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_same_answers),
		cmocka_unit_test(test_harm),
		cmocka_unit_test(test_blame),
		cmocka_unit_test(test_first_after_long),
		cmocka_unit_test(test_truncated),
		cmocka_unit_test(test_hang),
		cmocka_unit_test(test_template_dies),
		cmocka_unit_test(test_come_back),
		cmocka_unit_test(test_unasked_descriptors),
		cmocka_unit_test(test_agent_dies),
		cmocka_unit_test(test_privileges),
		cmocka_unit_test(test_no_descriptors),
	};

	return cmocka_run_group_tests(tests, make_metrics, free_metrics);
}
