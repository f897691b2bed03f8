/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The figures of `hearth bench` out of programs that do not run: their numbers are known, so are those of the table. Also
 * which programs are run, with which options, and what is said where one fails or is not here.
 */
#include <errno.h>
#include <link.h>
#include <math.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/kernel/fpwalk.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/ourselves.h"
#include "cmd/bench/bench.h"
#include "cmd/files/capture.h"
#include "cmd/setup/made_up.h"
#include "proto/profiles.h"
#include "tests/unit/cmd/parsed.h"
#include "tests/unit/descriptors.h"

enum { FIRST_PID = 100000, SAMPLES = 40, FIGURES = 24 };

static struct buf calls;
static char folder[64];
static bool is_root, has_programs;
static const char *failing; /* a part of the command line that fails */
static double load_average;
static unsigned runs, loads;
static uint64_t now_ns;

/* What is running. */
static struct program {
	char line[512];
	uint64_t began_ns;
} programs[64];

/* --- the machine --- */

uid_t geteuid(void)
{
	return is_root ? 0 : 1000;
}

int getloadavg(double *averages, int count)
{
	averages[0] = load_average;
	return load_average < 0 ? -1 : count;
}

int sched_getaffinity(pid_t pid, size_t size, cpu_set_t *set)
{
	(void)pid;
	(void)size;
	CPU_SET(1, set);
	CPU_SET(3, set);
	return 0;
}

uint64_t clock_mono_ns(void)
{
	return now_ns;
}

uint64_t clock_unix_ns(void)
{
	return 1700000000 * NSEC_PER_SEC + now_ns;
}

uint64_t clock_mono_to_unix_ns(uint64_t mono_ns)
{
	return 1700000000 * NSEC_PER_SEC + mono_ns;
}

void clock_refresh(void)
{
}

/* --- what is measured --- */

void bench_sleep(uint64_t ns)
{
	now_ns += ns;
}

pid_t bench_load_start(unsigned cpu)
{
	pid_t pid;

	buf_printf(&calls, "load on %u\n", cpu);
	loads++;
	fflush(NULL);
	pid = fork();
	if (!pid)
		for (;;)
			pause();
	return pid;
}

bool bench_has(const char *name)
{
	(void)name;
	return has_programs;
}

static const struct program *program_of(pid_t pid)
{
	assert_in_range(pid, FIRST_PID, FIRST_PID + (int)runs - 1);
	return &programs[pid - FIRST_PID];
}

static struct {
	uint64_t from, bytes;
} text;

static int find_own_text(struct dl_phdr_info *info, size_t size, void *arg)
{
	(void)size;
	(void)arg;
	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_LOAD && info->dlpi_phdr[i].p_flags & PF_X) {
			text.from = info->dlpi_phdr[i].p_vaddr;
			text.bytes = info->dlpi_phdr[i].p_memsz;
		}
	return 1;
}

/* A thousand addresses, from the first byte of our code on, evenly. */
static void look_at_addresses(const char *path)
{
	AUTO_FCLOSE FILE *f = fopen(path, "re");
	unsigned long long at;
	uint64_t count = 0;

	assert_non_null(f);
	dl_iterate_phdr(find_own_text, NULL);
	for (; fscanf(f, "0x%llx\n", &at) == 1; count++)
		assert_int_equal(at, text.from + text.bytes * count / 1000);
	assert_int_equal(count, 1000);
}

static void make_file(const char *path, size_t bytes)
{
	AUTO_FCLOSE FILE *f = fopen(path, "we");

	assert_non_null(f);
	for (size_t i = 0; i < bytes; i++)
		fputc('x', f);
}

int bench_start(struct bench_run *r, const char *const *argv, const char *in, const char *out, const char *messages)
{
	struct program *p = &programs[runs];
	size_t len = 0;

	assert_true(runs < ARRAY_LEN(programs) && !out && !messages);
	p->line[0] = '\0';
	for (size_t i = 0; argv[i]; i++) {
		const char *word = argv[i];

		if (!strncmp(word, folder, strlen(folder))) { /* behind the folder's name */
			if (strstr(word, "record.otlp"))
				make_file(word, 5000);
			if (strstr(word, "perf.data"))
				make_file(word, 7000);
			word = strrchr(word, '/');
		} else if (!strcmp(word, ourselves_file()) || strstr(word, "test_bench")) {
			word = "SELF";
		}
		len += (size_t)snprintf(p->line + len, sizeof(p->line) - len, "%s%s", i ? " " : "", word);
	}
	if (in)
		look_at_addresses(in);
	buf_printf(&calls, "%s%s\n", p->line, in ? " <addresses" : "");
	p->began_ns = now_ns;
	*r = (struct bench_run){ .pid = FIRST_PID + (int)runs++, .began_ns = now_ns };
	return failing && strstr(p->line, failing) ? -ENOENT : 0;
}

void bench_look(struct bench_run *r)
{
	const uint64_t bytes = strstr(program_of(r->pid)->line, "perf") ? 30000000 : 20000000;

	r->memory_bytes = bytes > r->memory_bytes ? bytes : r->memory_bytes;
}

static unsigned waits; /* each of several takes longer */

int bench_wait(struct bench_run *r)
{
	const struct program *p = program_of(r->pid);
	const bool is_perf = strstr(p->line, "perf");
	static const uint64_t order[] = { 3, 1, 2 };

	r->wall_ns = (is_perf ? 20 : 10) * NSEC_PER_MSEC * order[waits++ % 3];
	r->cpu_ns = strstr(p->line, "resolve")	? runs * NSEC_PER_MSEC
		    : strstr(p->line, "build")	? 70 * NSEC_PER_MSEC
		    : strstr(p->line, "llvm")	? 80 * NSEC_PER_MSEC
		    : strstr(p->line, "addr2l") ? 90 * NSEC_PER_MSEC
		    : is_perf			? 600 * NSEC_PER_MSEC
						: 300 * NSEC_PER_MSEC;
	return 0;
}

int bench_end(struct bench_run *r)
{
	buf_printf(&calls, "end after %llu ms\n", (unsigned long long)((now_ns - r->began_ns) / NSEC_PER_MSEC));
	return bench_wait(r);
}

/* hearth takes 1 % of a CPU, and perf 4 %. */
uint64_t bench_cpu_ns(const struct bench_run *r)
{
	return (now_ns - r->began_ns) / (strstr(program_of(r->pid)->line, "perf") ? 25 : 100);
}

int bench_ingest_run(const char *store, const char *messages, const char *capture, struct bench_ingested *ret)
{
	static const double ms[BENCH_QUESTIONS] = { 9, 1, 8, 2, 7, 3, 6, 4, 5.5 };

	buf_printf(&calls, "receive %s, %s, %s\n", strrchr(store, '/'), strrchr(messages, '/'), strrchr(capture, '/'));
	*ret = (struct bench_ingested){ .samples = 30000, .cpu_ns = 2 * NSEC_PER_SEC, .bytes_a_sample = 12.5 };
	memcpy(ret->graph_ms, ms, sizeof(ms));
	return failing && !strcmp(failing, "serve") ? -EPROTO : 0;
}

/* --- in the kernel --- */

static int count_time_error;
static const char *walked; /* the threads' name */
static unsigned drains;

int fpwalk_count_time(void)
{
	return count_time_error ? count_time_error : dup(STDERR_FILENO);
}

int fpwalk_new(const struct fpwalk_config *config, struct fpwalk **ret)
{
	assert_int_equal(config->hz, 999);
	assert_false(config->is_empty || config->no_stack || config->pid_count);
	buf_printf(&calls, "walk %s\n", config->comm);
	walked = config->comm;
	drains = 0;
	*ret = (struct fpwalk *)&walked;
	return failing && !strcmp(failing, "walk") ? -EPERM : 0;
}

uint64_t fpwalk_drain(struct fpwalk *f, unsigned *frames_ret)
{
	assert_ptr_equal(f, &walked);
	*frames_ret = 33;
	return strcmp(walked, BENCH_LOAD) == 0 ? ++drains * 2 : 0;
}

void fpwalk_free(struct fpwalk *f)
{
	assert_true(!f || f == (struct fpwalk *)&walked);
	if (f)
		buf_printf(&calls, "walked %u times\n", drains);
}

int fpwalk_time_of(pid_t pid, struct fpwalk_time *ret)
{
	const struct program *p;
	uint64_t age_ns;

	*ret = (struct fpwalk_time){ 0 };
	if (pid == getpid()) {
		*ret = strcmp(walked, BENCH_LOAD) == 0 ? (struct fpwalk_time){ 600000, 300 }
						       : (struct fpwalk_time){ 50000, 100 };
		return 0;
	}
	p = program_of(pid);
	age_ns = now_ns - p->began_ns;
	if (strstr(p->line, "-F 99 "))
		*ret = (struct fpwalk_time){ age_ns / 200, age_ns / NSEC_PER_MSEC }; /* half a percent */
	else if (age_ns < 350 * NSEC_PER_MSEC)
		return 0; /* it has not begun */
	else if (strchr(p->line, ','))
		*ret = (struct fpwalk_time){ 1000000, 500 };
	else
		*ret = (struct fpwalk_time){ 100000, 100 };
	return 0;
}

/* --- files --- */

int capture_load(const char *path, struct capture *ret)
{
	assert_string_equal(strrchr(path, '/'), "/fast.otlp");
	*ret = (struct capture){ 0 };
	return made_up_profiles(SAMPLES, clock_unix_ns(), NSEC_PER_SEC, &ret->profiles);
}

int capture_read(const char *path, struct capture *ret, struct buf *error)
{
	(void)error;
	return capture_load(path, ret);
}

int capture_each(const char *path, int (*fn)(void *arg, struct profiles *p), void *arg)
{
	(void)path;
	(void)fn;
	(void)arg;
	return -ENOTSUP;
}

const char *capture_name(const char *path)
{
	return path;
}

/* --- the table --- */

static struct bench_figure figures[FIGURES];
static size_t figure_count, cpu_count;
static double others_told;
static bool is_json;

void bench_print_table(const struct bench_figure *f, size_t count, size_t cpus, double others, struct buf *out)
{
	memcpy(figures, f, count * sizeof(*f));
	figure_count = count;
	cpu_count = cpus;
	others_told = others;
	is_json = false;
	buf_puts(out, "the table\n");
}

void bench_print_json(const struct bench_figure *f, size_t count, struct buf *out)
{
	bench_print_table(f, count, 0, 0, out);
	is_json = true;
}

/* --- --- */

static const char *said;

static int bench(bool json)
{
	int status;

	buf_reset(&calls);
	runs = waits = loads = 0;
	now_ns = NSEC_PER_SEC;
	figure_count = 0;
	status = run_words(&cmd_bench, json ? (const char *const[]){ "--json", NULL } : (const char *const[]){ NULL },
			   &said);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* no load is left */
	assert_int_equal(rmdir(folder), 0);		  /* nor any file */
	assert_int_equal(mkdir(folder, 0700), 0);
	return status;
}

static bool is(double got, double wanted)
{
	return isnan(wanted) ? isnan(got) : fabs(got - wanted) < 1e-6;
}

static void figures_are(const struct bench_figure *wanted, size_t count)
{
	assert_int_equal(figure_count, count);
	for (size_t i = 0; i < count; i++) {
		const struct bench_figure *f = &figures[i], *w = &wanted[i];

		assert_string_equal(f->name, w->name);
		assert_string_equal(f->unit, w->unit);
		if (!is(f->ours, w->ours) || !is(f->other, w->other))
			fail_msg("%s: %f beside %f, not %f beside %f", f->name, f->ours, f->other, w->ours, w->other);
		assert_string_equal(f->beside ? f->beside : "", w->beside ? w->beside : "");
		assert_string_equal(f->why ? f->why : "", w->why ? w->why : "");
	}
}

#define PERF "perf record --call-graph dwarf"

static void begin(void)
{
	is_root = has_programs = true;
	failing = NULL;
	count_time_error = 0;
	load_average = 0.125;
}

static void test_all(void **state)
{
	static const struct bench_figure wanted[] = {
		{ "BPF time of a sample, 33 user frames", "us", 13.5, "bpf_get_stack, by frame pointers", 6.125,
		  "it fails here" },
		{ "its CPU, 99 Hz on all 2 CPUs, once it runs", "% of a CPU", 1, PERF, 4, "it fails here" },
		{ "the same, with what BPF takes", "% of a CPU", 1.5, NULL, NAN, NULL },
		{ "CPU of 6 s, start and end included", "ms", 300, PERF, 600, "it fails here" },
		{ "memory, helpers and buffers included", "MB", 20, PERF, 30, "it fails here" },
		{ "the file of these 6 s", "kB", 5, PERF, 7, "it fails here" },
		{ "recording of 'true', from start to end", "ms", 20, PERF, 40, "perf fails here" },
		{ "a CPU second of a receiver takes and stores", "k samples", 15, NULL, NAN, NULL },
		{ "a sample stored, names included", "bytes", 12.5, NULL, NAN, NULL },
		{ "the flame graph of all that was stored", "ms", 5.5, NULL, NAN, NULL },
		{ "1000 addresses named, with inlined calls", "ms of CPU", 11, "llvm-symbolizer", 80, "it fails here" },
		{ "1000 addresses named, with inlined calls", "ms of CPU", 11, "addr2line", 90, "it fails here" },
		{ "the index of that file made, once", "ms of CPU", 70, NULL, NAN, NULL },
		{ "the same addresses out of the index", "ms of CPU", 15, "llvm-symbolizer", 80, "not here" },
	};

	(void)state;
	begin();
	assert_int_equal(bench(false), STATUS_DONE);
	assert_string_equal(said, "the table\n");
	assert_false(is_json);
	assert_int_equal(cpu_count, 2);
	assert_true(is(others_told, 0.125));
	figures_are(wanted, ARRAY_LEN(wanted));
	assert_int_equal(bench(true), STATUS_DONE);
	assert_true(is_json);
	figures_are(wanted, ARRAY_LEN(wanted));
}

/* The programs and their options, in order. */
static void test_programs(void **state)
{
	AUTO(buf_fini) struct buf wanted = BUF_EMPTY;
	const char *pids;
	int a, b;

	(void)state;
	begin();
	assert_int_equal(bench(false), STATUS_DONE);
	pids = strstr(buf_text(&calls), "-p ");
	assert_int_equal(sscanf(pids, "-p %d,%d -o", &a, &b), 2);
	buf_printf(&wanted,
		   "load on 1\nload on 3\nwalk hearth-load\nwalked 40 times\nwalk no such thread\nwalked 0 times\n"
		   "hearth record -q -F 999 -d 60 -p %d,%d -o /fast.otlp\nend after 2400 ms\n"
		   "hearth record -q -F 999 -d 60 -p %d -o /fast.otlp\nend after 2400 ms\n"
		   "hearth record -q -F 99 -d 6 -o /record.otlp\n"
		   "perf record -q -e cpu-clock -F 99 -a --call-graph dwarf -o /perf.data -- sleep 6\n",
		   a, b, (int)getpid());
	for (int i = 0; i < 3; i++)
		buf_puts(&wanted, "hearth record -q -F 99 -o /true.otlp -- true\n");
	for (int i = 0; i < 3; i++)
		buf_puts(&wanted, "perf record -q -e cpu-clock -F 99 --call-graph dwarf -o /true.data -- true\n");
	buf_puts(&wanted, "receive /store, /serve.err, /record.otlp\n"
			  "hearth symbols resolve --symbol-cache /cache SELF <addresses\n"
			  "llvm-symbolizer --obj SELF <addresses\naddr2line -f -i -C -e SELF <addresses\n"
			  "hearth symbols build --symbol-cache /cache SELF\n"
			  "hearth symbols resolve --symbol-cache /cache SELF <addresses\n");
	assert_string_equal(buf_text(&calls), buf_text(&wanted));
}

/* Without root, and without the others' programs. */
static void test_user(void **state)
{
	static const struct bench_figure wanted[] = {
		{ "BPF time of a sample", "", NAN, NULL, NAN, "needs root" },
		{ "recording: CPU, memory", "", NAN, NULL, NAN, "needs root" },
		{ "recording of 'true', from start to end", "", NAN, NULL, NAN, "needs root" },
		{ "receiving", "", NAN, NULL, NAN, "needs root, for a recording" },
		{ "1000 addresses named, with inlined calls", "ms of CPU", 1, "llvm-symbolizer", NAN, "not here" },
		{ "1000 addresses named, with inlined calls", "ms of CPU", 1, "addr2line", NAN, "not here" },
		{ "the index of that file made, once", "ms of CPU", 70, NULL, NAN, NULL },
		{ "the same addresses out of the index", "ms of CPU", 3, "llvm-symbolizer", NAN, "not here" },
	};

	(void)state;
	begin();
	is_root = has_programs = false;
	assert_int_equal(bench(false), STATUS_DONE);
	figures_are(wanted, ARRAY_LEN(wanted));
	assert_int_equal(loads, 2);
}

/* What fails, and what is said of it then: the names and reasons of the figures from the @first on. */
static void test_failing(void **state)
{
	static const struct {
		const char *failing;
		size_t index;
		const char *name;
		bool has_ours, has_other;
		const char *why;
	} rows[] = {
		{ "-F 999", 0, "BPF time of a sample, 33 user frames", false, true, "it fails here" },
		{ "walk", 0, "BPF time of a sample, ", true, false, "it fails here" },
		{ "-F 99 -d", 1, "recording: CPU, memory", false, false,
		  "'hearth record' fails here; 'hearth check' says why" },
		{ "-F 99 -d", 3, "receiving", false, false, "there is no recording to send" },
		{ "-F 99 -a", 1, "its CPU, 99 Hz", true, false, "it fails here" },
		{ "-F 99 -a", 5, "the file of these 6 s", true, false, "it fails here" },
		{ "true.otlp", 6, "recording of 'true'", false, true, "perf fails here" },
		{ "true.data", 6, "recording of 'true'", true, false, "perf fails here" },
		{ "serve", 7, "receiving", false, false, "'hearth serve' fails here" },
		{ "resolve", 10, "1000 addresses named", false, true, "it fails here" },
		{ "llvm", 10, "1000 addresses named", true, false, "it fails here" },
		{ "llvm", 11, "1000 addresses named", true, true, "it fails here" },
		{ "build", 12, "the index of that file", false, false, NULL },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct bench_figure *f = &figures[rows[i].index];

		begin();
		failing = rows[i].failing;
		assert_int_equal(bench(false), STATUS_DONE);
		if (strncmp(f->name, rows[i].name, strlen(rows[i].name)))
			fail_msg("row %zu: '%s' is not '%s'", i, f->name, rows[i].name);
		if (isnan(f->ours) == rows[i].has_ours || isnan(f->other) == rows[i].has_other)
			fail_msg("row %zu: %f beside %f", i, f->ours, f->other);
		assert_string_equal(f->why ? f->why : "", rows[i].why ? rows[i].why : "");
	}
	begin();
	count_time_error = -ENOSYS;
	assert_int_equal(bench(false), STATUS_DONE);
	assert_string_equal(figures[0].name, "BPF time of a sample");
	assert_string_equal(figures[0].why, "the kernel does not count it");
}

static void test_busy_machine(void **state)
{
	const double half = (double)sysconf(_SC_NPROCESSORS_ONLN) / 2;

	(void)state;
	begin();
	log_warn("nothing else");
	log_set_level(LOG_WARN);
	load_average = half;
	assert_int_equal(bench(false), STATUS_DONE);
	assert_true(is_said_last("nothing else"));
	load_average = half + 1;
	assert_int_equal(bench(false), STATUS_DONE);
	assert_true(is_said_last("other programs keep this machine busy (load average "));
	load_average = -1; /* not known */
	assert_int_equal(bench(false), STATUS_DONE);
	assert_true(is(others_told, -1));
	log_set_level(LOG_INFO);
}

static void test_folder(void **state)
{
	struct config config = PARSED(&cmd_bench, NULL);

	(void)state;
	begin();
	setenv("TMPDIR", "/nowhere", 1);
	assert_int_equal(cmd_bench.run(&config), STATUS_FAILED);
	assert_true(is_said_last("cannot make a folder to measure in, /nowhere/hearth-bench-"));
	assert_true(is_said_last("No such file or directory; set TMPDIR"));
	config_fini(&config);
	setenv("TMPDIR", folder, 1);
}

static int setup(void **state)
{
	(void)state;
	strcpy(folder, "/tmp/test_folder.XXXXXX");
	if (!mkdtemp(folder))
		return -1;
	return setenv("TMPDIR", folder, 1);
}

static int teardown(void **state)
{
	(void)state;
	buf_fini(&calls);
	return rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all),	cmocka_unit_test(test_programs),     cmocka_unit_test(test_user),
		cmocka_unit_test(test_failing), cmocka_unit_test(test_busy_machine), cmocka_unit_test(test_folder),
	};

	setenv("HEARTH_CONFIG", "/dev/null", 1);
	return run_group_of_descriptors(tests, setup, teardown);
}
