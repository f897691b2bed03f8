/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `hearth bench`: what hearth costs on this machine, each figure beside that of a program which does the same, where there
 * is one. Every figure is measured now: hearth's commands and the others run as a user runs them, and the kernel says what
 * they took.
 */
#include <errno.h>
#include <ftw.h>
#include <inttypes.h>
#include <limits.h>
#include <link.h>
#include <math.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/kernel/fpwalk.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/ourselves.h"
#include "cmd/bench/bench.h"
#include "cmd/files/capture.h"
#include "cmd/options/command.h"
#include "cmd/options/config.h"
#include "cmd/files/output.h"
#include "proto/profiles.h"

enum {
	FAST_HZ = 999, /* where a sample's price is measured */
	FAST_SECONDS = 2,
	START_TRIES = 100,
	STARTS = 3, /* of which the median counts */
	ADDRESSES = 1000,
	MAX_FIGURES = 24,
};

#define SECONDS(s) ((uint64_t)((s)*1e9))

struct bench {
	char folder[PATH_MAX - 128]; /* for names of files within */
	struct bench_figure figures[MAX_FIGURES];
	size_t count;
	pid_t loads[CPU_SETSIZE];
	size_t load_count;
	bool is_loaded;
	bool is_root;
	uint64_t capture_bytes; /* of the recording that is sent; 0: there is none */
	double others;		/* programs that ran besides, on average, in the minute before; < 0: not known */
};

/* --- figures --- */

__attribute__((format(printf, 3, 4))) static struct bench_figure *add(struct bench *b, const char *unit, const char *fmt,
								      ...)
{
	struct bench_figure *f = &b->figures[b->count < MAX_FIGURES - 1 ? b->count++ : b->count];
	va_list args;

	*f = (struct bench_figure){ .unit = unit, .ours = NAN, .other = NAN };
	va_start(args, fmt);
	vsnprintf(f->name, sizeof(f->name), fmt, args);
	va_end(args);
	return f;
}

/* A figure that cannot be had, and why. */
static void add_missing(struct bench *b, const char *name, const char *why)
{
	add(b, "", "%s", name)->why = why;
}

static const char *path_of(const struct bench *b, const char *name, char path[static PATH_MAX])
{
	snprintf(path, PATH_MAX, "%s/%.64s", b->folder, name);
	return path;
}

static uint64_t file_bytes(const char *path)
{
	struct stat st;

	return stat(path, &st) ? 0 : (uint64_t)st.st_size;
}

static int compare_numbers(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static double median(double *values, size_t count)
{
	qsort(values, count, sizeof(*values), compare_numbers);
	return values[count / 2];
}

/* --- a sample's price in the kernel --- */

/* The load's pids as -p wants them. */
static void put_pids(const struct bench *b, struct buf *out)
{
	for (size_t i = 0; i < b->load_count; i++)
		buf_printf(out, "%s%d", i ? "," : "", (int)b->loads[i]);
}

static uint64_t samples_in(const char *path)
{
	struct capture capture;
	uint64_t samples;

	if (capture_load(path, &capture))
		return 0;
	samples = capture.profiles->sample_events;
	profiles_put(capture.profiles);
	return samples;
}

/* The time a sampler's program took: some of its runs were for samples, the others found nothing to sample. */
struct priced {
	struct fpwalk_time time;
	uint64_t samples;
	unsigned frames;
};

/* hearth's, of the processes @pids alone, from its first sample on. 0 or -errno. */
static int run_sampler(const struct bench *b, const char *pids, struct priced *ret)
{
	char out[PATH_MAX];
	const char *const argv[] = {
		"hearth", "record", "-q", "-F", "999", "-d", "60", "-p", pids, "-o", path_of(b, "fast.otlp", out), NULL
	};
	struct bench_run run;
	int err = bench_start(&run, argv, NULL, NULL, NULL);

	*ret = (struct priced){ 0 };
	for (int i = 0; !err && i < START_TRIES && !ret->time.runs; i++) {
		bench_sleep(SECONDS(0.1));
		fpwalk_time_of(run.pid, &ret->time);
	}
	bench_sleep(SECONDS(FAST_SECONDS));
	if (!err) {
		fpwalk_time_of(run.pid, &ret->time);
		err = bench_end(&run);
		ret->samples = err ? 0 : samples_in(out);
	}
	return err;
}

/* The kernel's walk, of threads called @comm alone. 0 or -errno. */
static int run_fpwalk(const char *comm, struct priced *ret)
{
	struct fpwalk *walk = NULL;
	int err = fpwalk_new(&(struct fpwalk_config){ .hz = FAST_HZ, .comm = comm }, &walk);

	*ret = (struct priced){ 0 };
	for (int i = 0; !err && i < FAST_SECONDS * 20; i++) {
		bench_sleep(SECONDS(0.05));
		ret->samples = fpwalk_drain(walk, &ret->frames);
	}
	if (!err)
		fpwalk_time_of(getpid(), &ret->time);
	fpwalk_free(walk);
	return err;
}

/* The time of a sample, in us: that of @with, less the time of its runs without a sample, which other processes add to. */
static double price_us(const struct priced *with, const struct priced *without)
{
	const double empty = without->time.runs ? (double)without->time.ns / (double)without->time.runs : NAN;
	const double others = with->time.runs > with->samples ? (double)(with->time.runs - with->samples) : 0;

	return with->samples ? ((double)with->time.ns - others * empty) / (double)with->samples / 1e3 : NAN;
}

static void bench_kernel(struct bench *b)
{
	AUTO_CLOSE int counting = b->is_root ? fpwalk_count_time() : -EPERM;
	AUTO(buf_fini) struct buf load = BUF_EMPTY, nobody = BUF_EMPTY;
	struct priced ours, ours_empty, other, other_empty;
	struct bench_figure *f;
	bool is_measured;

	if (counting < 0) {
		add_missing(b, "BPF time of a sample", b->is_root ? "the kernel does not count it" : "needs root");
		return;
	}
	put_pids(b, &load);
	buf_printf(&nobody, "%d", (int)getpid()); /* who only waits */
	is_measured = !run_fpwalk(BENCH_LOAD, &other) && !run_fpwalk("no such thread", &other_empty);
	f = add(b, "us", "BPF time of a sample, %u user frames", other.frames);
	f->why = "it fails here";
	f->beside = "bpf_get_stack, by frame pointers";
	if (is_measured)
		f->other = price_us(&other, &other_empty);
	if (!run_sampler(b, buf_text(&load), &ours) && !run_sampler(b, buf_text(&nobody), &ours_empty))
		f->ours = price_us(&ours, &ours_empty);
}

/* --- recording --- */

/* A recording of the machine, and what it took. */
struct recorded {
	struct bench_run run;
	uint64_t steady_ns, window_ns; /* CPU of it, in this time after its start */
	struct fpwalk_time bpf;	       /* in that time */
	uint64_t file_bytes;
};

/* Runs @argv, which records for RECORD_SECONDS into @out. 0 or -errno. */
static int record(struct recorded *r, const char *const *argv, const char *out)
{
	AUTO_CLOSE int counting = fpwalk_count_time();
	struct fpwalk_time before = { 0 }, after = { 0 };
	int err = bench_start(&r->run, argv, NULL, NULL, NULL);

	(void)counting; /* it is counted for as long as that is open */
	if (err)
		return err;
	bench_sleep(SECONDS(1.5));
	fpwalk_time_of(r->run.pid, &before);
	r->window_ns = clock_mono_ns();
	r->steady_ns = bench_cpu_ns(&r->run);
	for (int i = 0; i < 8; i++) {
		bench_sleep(SECONDS(0.5));
		bench_look(&r->run);
	}
	fpwalk_time_of(r->run.pid, &after);
	r->steady_ns = bench_cpu_ns(&r->run) - r->steady_ns;
	r->window_ns = clock_mono_ns() - r->window_ns;
	r->bpf = (struct fpwalk_time){ after.ns - before.ns, after.runs - before.runs };
	err = bench_wait(&r->run);
	r->file_bytes = file_bytes(out);
	return err;
}

/* Both sample at 99 Hz; perf copies stacks to be unwound later, as that too needs no frame pointers. */
static int record_ours(const struct bench *b, struct recorded *r)
{
	char out[PATH_MAX];
	const char *const argv[] = { "hearth", "record", "-q", "-F", "99", "-d", "6", "-o", path_of(b, "record.otlp", out),
				     NULL };

	return record(r, argv, out);
}

static int record_others(const struct bench *b, struct recorded *r)
{
	char out[PATH_MAX];
	const char *const argv[] = { "perf",	     "record", "-q", "-e",
				     "cpu-clock",    "-F",     "99", "-a",
				     "--call-graph", "dwarf",  "-o", path_of(b, "perf.data", out),
				     "--",	     "sleep",  "6",  NULL };

	return record(r, argv, out);
}

static double percent(uint64_t part, uint64_t whole)
{
	return whole ? (double)part / (double)whole * 100 : NAN;
}

static void bench_recording(struct bench *b)
{
	static const char peer[] = "perf record --call-graph dwarf";
	const bool has_perf = bench_has("perf");
	struct recorded ours = { 0 }, other = { 0 };
	struct bench_figure *steady, *all, *whole, *memory, *file;
	bool is_measured;

	if (!b->is_root || record_ours(b, &ours)) {
		add_missing(b, "recording: CPU, memory",
			    b->is_root ? "'hearth record' fails here; 'hearth check' says why" : "needs root");
		return;
	}
	b->capture_bytes = ours.file_bytes;
	is_measured = has_perf && !record_others(b, &other);
	steady = add(b, "% of a CPU", "its CPU, 99 Hz on all %zu CPUs, once it runs", b->load_count);
	steady->ours = percent(ours.steady_ns, ours.window_ns);
	steady->other = is_measured ? percent(other.steady_ns, other.window_ns) : NAN;
	all = add(b, "% of a CPU", "the same, with what BPF takes");
	all->ours = percent(ours.steady_ns + ours.bpf.ns, ours.window_ns);
	whole = add(b, "ms", "CPU of 6 s, start and end included");
	whole->ours = (double)ours.run.cpu_ns / 1e6;
	whole->other = is_measured ? (double)other.run.cpu_ns / 1e6 : NAN;
	memory = add(b, "MB", "memory, helpers and buffers included");
	memory->ours = (double)ours.run.memory_bytes / 1e6;
	memory->other = is_measured ? (double)other.run.memory_bytes / 1e6 : NAN;
	file = add(b, "kB", "the file of these 6 s");
	file->ours = (double)ours.file_bytes / 1e3;
	file->other = is_measured ? (double)other.file_bytes / 1e3 : NAN;
	steady->beside = whole->beside = memory->beside = file->beside = peer;
	steady->why = whole->why = memory->why = file->why = has_perf ? "it fails here" : "not here";
}

/* Milliseconds from start to end of @argv, the median of some. */
static double whole_ms(const char *const *argv)
{
	double ms[STARTS];

	for (size_t i = 0; i < STARTS; i++) {
		struct bench_run run;

		if (bench_start(&run, argv, NULL, NULL, NULL) || bench_wait(&run))
			return NAN;
		ms[i] = (double)run.wall_ns / 1e6;
	}
	return median(ms, STARTS);
}

static void bench_start_of_recording(struct bench *b)
{
	char ours[PATH_MAX], other[PATH_MAX];
	const char *const argv[] = { "hearth", "record", "-q", "-F", "99", "-o", path_of(b, "true.otlp", ours),
				     "--",     "true",	 NULL };
	const char *const perf[] = { "perf",
				     "record",
				     "-q",
				     "-e",
				     "cpu-clock",
				     "-F",
				     "99",
				     "--call-graph",
				     "dwarf",
				     "-o",
				     path_of(b, "true.data", other),
				     "--",
				     "true",
				     NULL };
	struct bench_figure *f;

	if (!b->is_root) {
		add_missing(b, "recording of 'true', from start to end", "needs root");
		return;
	}
	f = add(b, "ms", "recording of 'true', from start to end");
	f->ours = whole_ms(argv);
	f->beside = "perf record --call-graph dwarf";
	f->other = bench_has("perf") ? whole_ms(perf) : NAN;
	f->why = bench_has("perf") ? "perf fails here" : "no perf here";
}

/* --- receiving --- */

static void bench_ingest(struct bench *b)
{
	char store[PATH_MAX], messages[PATH_MAX], capture[PATH_MAX];
	struct bench_ingested in;

	if (!b->capture_bytes)
		return add_missing(b, "receiving",
				   b->is_root ? "there is no recording to send" : "needs root, for a recording");
	if (bench_ingest_run(path_of(b, "store", store), path_of(b, "serve.err", messages),
			     path_of(b, "record.otlp", capture), &in))
		return add_missing(b, "receiving", "'hearth serve' fails here");
	add(b, "k samples", "a CPU second of a receiver takes and stores")->ours = (double)in.samples /
										   ((double)in.cpu_ns / 1e9) / 1e3;
	add(b, "bytes", "a sample stored, names included")->ours = in.bytes_a_sample;
	add(b, "ms", "the flame graph of all that was stored")->ours = median(in.graph_ms, BENCH_QUESTIONS);
}

/* --- look-ups --- */

struct text_segment {
	uint64_t from, bytes; /* in the file's own address space */
};

static int find_text(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct text_segment *text = arg;

	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];

		if (p->p_type == PT_LOAD && (p->p_flags & PF_X))
			*text = (struct text_segment){ p->p_vaddr, p->p_memsz };
	}
	return 1; /* the first is the program */
}

static int write_addresses(const char *path)
{
	struct text_segment text = { 0 };
	AUTO_FCLOSE FILE *file = fopen(path, "we");

	dl_iterate_phdr(find_text, &text);
	for (uint64_t i = 0; file && i < ADDRESSES; i++)
		fprintf(file, "0x%" PRIx64 "\n", text.from + text.bytes * i / ADDRESSES);
	return file && !ferror(file) ? 0 : -EIO;
}

/* Milliseconds of CPU that @argv takes for the addresses in @in. */
static double cpu_ms(const char *const *argv, const char *in)
{
	struct bench_run run;

	if (bench_start(&run, argv, in, NULL, NULL) || bench_wait(&run))
		return NAN;
	return (double)run.cpu_ns / 1e6;
}

static void bench_lookups(struct bench *b)
{
	char in[PATH_MAX], cache[PATH_MAX], self[PATH_MAX];
	const char *const resolve[] = { "hearth", "symbols", "resolve", "--symbol-cache", path_of(b, "cache", cache),
					self,	  NULL };
	const char *const build[] = { "hearth", "symbols", "build", "--symbol-cache", cache, self, NULL };
	const char *const *const others[] = {
		(const char *const[]){ "llvm-symbolizer", "--obj", self, NULL },
		(const char *const[]){ "addr2line", "-f", "-i", "-C", "-e", self, NULL },
	};
	double ours;
	struct bench_figure *f;

	if (!realpath(ourselves_file(), self) || write_addresses(path_of(b, "addresses", in)))
		return add_missing(b, "look-ups", "there are no addresses to look up");
	ours = cpu_ms(resolve, in);
	for (size_t i = 0; i < ARRAY_LEN(others); i++) {
		f = add(b, "ms of CPU", "%d addresses named, with inlined calls", ADDRESSES);
		f->ours = ours;
		f->beside = others[i][0];
		f->other = bench_has(f->beside) ? cpu_ms(others[i], in) : NAN;
		f->why = bench_has(f->beside) ? "it fails here" : "not here";
	}
	f = add(b, "ms of CPU", "the index of that file made, once");
	f->ours = cpu_ms(build, NULL);
	f = add(b, "ms of CPU", "the same addresses out of the index");
	f->ours = cpu_ms(resolve, in);
	f->beside = others[0][0];
	f->other = b->figures[b->count - 4].other;
	f->why = "not here";
}

/* --- all together --- */

static void start_load(struct bench *b)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	(void)sched_getaffinity(0, sizeof(set), &set);
	for (unsigned cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		pid_t pid = CPU_ISSET(cpu, &set) ? bench_load_start(cpu) : -1;

		if (pid > 0)
			b->loads[b->load_count++] = pid;
	}
	b->is_loaded = true;
}

static void end_load(struct bench *b)
{
	for (size_t i = 0; b->is_loaded && i < b->load_count; i++) {
		kill(b->loads[i], SIGKILL);
		waitpid(b->loads[i], NULL, 0);
	}
	b->is_loaded = false;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st, (void)type, (void)at;
	return remove(path);
}

static const struct {
	const char *says;
	void (*measure)(struct bench *b);
	bool wants_load;
} parts[] = {
	{ "what a sample takes in the kernel, 9 s", bench_kernel, true },
	{ "what recording takes, 12 s", bench_recording, true },
	{ "how soon recording starts", bench_start_of_recording, false },
	{ "how much a receiver takes in, 4 s", bench_ingest, false },
	{ "how fast addresses get names", bench_lookups, false },
};

static int run_bench(const struct config *config)
{
	AUTO(buf_fini) struct buf out = BUF_EMPTY;
	const char *parent = getenv("TMPDIR");
	struct bench b = { .is_root = geteuid() == 0 };
	int status;

	snprintf(b.folder, sizeof(b.folder), "%s/hearth-bench-XXXXXX", parent && *parent ? parent : "/tmp");
	if (!mkdtemp(b.folder)) {
		log_error("cannot make a folder to measure in, %s: %s; set TMPDIR to a place that can be written to",
			  b.folder, strerror(errno));
		return STATUS_FAILED;
	}
	if (getloadavg(&b.others, 1) != 1)
		b.others = -1;
	if (b.others > (double)sysconf(_SC_NPROCESSORS_ONLN) / 2)
		log_warn("other programs keep this machine busy (load average %.1f): what is measured is slower, and varies "
			 "more",
			 b.others);
	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		log_info("measuring %s", parts[i].says);
		if (parts[i].wants_load && !b.load_count)
			start_load(&b);
		parts[i].measure(&b);
		if (i + 1 == ARRAY_LEN(parts) || !parts[i + 1].wants_load)
			end_load(&b);
	}
	if (config->json)
		bench_print_json(b.figures, b.count, &out);
	else
		bench_print_table(b.figures, b.count, b.load_count, b.others, &out);
	status = output_write(&out);
	nftw(b.folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	return status;
}

const struct cmd cmd_bench = {
	.name = "bench",
	.bit = ON_BENCH,
	.summary = "what hearth costs on this machine, beside perf and others",
	.operands = "",
	.description =
		"Measures, in half a minute, what hearth takes on this machine: a sample in the kernel, the agent's CPU and "
		"memory, its start, a receiver, look-ups of names. Beside each stands what another program takes for "
		"the same, measured at the same time, where it is installed: bpf_get_stack, perf, llvm-symbolizer, "
		"addr2line. Every CPU is kept busy meanwhile. Most of it needs root; nothing is kept.",
	.example = "sudo hearth bench",
	.run = run_bench,
};
