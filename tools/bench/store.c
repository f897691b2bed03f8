/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store and many samples:
 *   store fill DIR SAMPLES HOURS SERVICES STACKS [TRACES]
 * makes samples, as requests of 5 s, and stores them; each is of one of five spans of a trace;
 *   store replay DIR SAMPLES FILE...
 * stores what an agent sent, over and over, each time later than the last;
 *   store ask DIR [NAME]
 * asks questions, or that called NAME: the fastest time, the first, and the least CPU time.
 *
 * A FILE is a request of one interval, as --collector sends them; a capture is cut into requests by size, process after
 * process.
 *
 * A line "NAME VALUE UNIT" for each figure, with the bar it is held to. Times of ingest are CPU times of the whole process:
 * they run from the first request's bytes to the last commit, the writer's thread and what it merged meanwhile included,
 * without the making of the requests.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "backend/store/sqlite/sqlite.h"
#include "backend/store/store_maintain.h"
#include "backend/store/store_read.h"
#include "backend/store/store_write.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/text/hex.h"
#include "proto/otlp/otlp.h"
#include "proto/profiles_builder.h"
#include "proto/sink.h"

enum {
	INTERVAL_S = 5,
	DEPTH = 24,
	FUNCTIONS = 4000,
	THREADS = 8,
	CPUS = 16,
	ASKS = 5,
	REQUEST_BYTES = 4 << 20,
	MAX_REQUESTS = 1024,
	SPANS = 5,	  /* of a trace */
	ASKED_TRACE = 50, /* the first is 0 */
};

#define HEAT_STEP_NS 5760000000ull /* 300 columns of 50 rows in 24 hours */

static uint64_t state = 88172645463325252ull;

static uint32_t rnd(uint32_t below)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (uint32_t)(state >> 32) % below;
}

__attribute__((noreturn)) static void die(const char *what, int err)
{
	fprintf(stderr, "store: %s: %s\n", what, strerror(-err));
	exit(1);
}

/* CLOCK_PROCESS_CPUTIME_ID, CLOCK_THREAD_CPUTIME_ID or CLOCK_MONOTONIC. */
static double seconds_of(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Of the process. */
static double resident_mb(void)
{
	long pages = 0;
	FILE *file = fopen("/proc/self/statm", "r");

	if (!file || fscanf(file, "%*d %ld", &pages) != 1)
		pages = 0;
	if (file)
		fclose(file);
	return (double)(pages * sysconf(_SC_PAGESIZE)) / 1e6;
}

/* --- storing --- */

struct feed {
	struct store *store;
	struct sink *sink;
	uint64_t stored, bytes;
	double start;	/* CPU seconds of the process when it began */
	double feeding; /* CPU seconds of this thread within feed_bytes(): the rest of what it took made requests */
	double start_thread;
};

static void on_done(struct ack *ack, int error)
{
	if (error)
		die("commit", error);
	free(ack);
}

static int feed_bytes(void *arg, const uint8_t *data, size_t len, uint64_t events)
{
	struct feed *f = arg;
	struct otlp_error why;
	struct profiles *p;
	struct ack *ack = malloc(sizeof(*ack));
	double before = seconds_of(CLOCK_THREAD_CPUTIME_ID);
	int err = otlp_decode((uint8_t *)(uintptr_t)data, len, false, &p, &why);

	if (err)
		die(why.message, err);
	ack->done = on_done;
	while ((err = sink_consume(f->sink, p, ack)) == -EAGAIN)
		usleep(1000);
	if (err)
		die("consume", err);
	profiles_put(p);
	f->feeding += seconds_of(CLOCK_THREAD_CPUTIME_ID) - before;
	f->stored += events;
	f->bytes += len;
	return 0;
}

static void open_feed(struct feed *f, const char *place)
{
	struct store_config config = { .place = place, .keep_age_ns = UINT64_MAX, .keep_bytes = UINT64_MAX };
	struct store_error why;
	int err = store_sqlite_open(&config, NULL, &f->store, &why);

	if (err)
		die(why.message, err);
	err = f->store->write->writer(f->store, &f->sink);
	if (err)
		die("writer", err);
	f->start = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
	f->start_thread = seconds_of(CLOCK_THREAD_CPUTIME_ID);
}

static void close_feed(struct feed *f)
{
	struct store_status st;
	double cpu, making = seconds_of(CLOCK_THREAD_CPUTIME_ID) - f->start_thread - f->feeding;

	sink_flush(f->sink, UINT64_MAX);
	cpu = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
	printf("ingest %.0f samples/s of CPU (bar: at least 300000)\n", (double)f->stored / (cpu - f->start - making));
	f->store->maintain->task(f->store, STORE_MERGE);
	printf("merge %.0f ns a sample, of what was not merged yet\n",
	       (seconds_of(CLOCK_PROCESS_CPUTIME_ID) - cpu) * 1e9 / (double)f->stored);
	printf("resident %.1f MB\n", resident_mb());
	f->store->maintain->task(f->store, STORE_COMPACT);
	f->store->read->status(f->store, &st);
	printf("size %.2f bytes a sample (bar: 8 of steady services, 20 of a host that compiles; %" PRIu64
	       " samples, %" PRIu64 " bytes; OTLP, not packed: %.2f)\n",
	       (double)st.bytes / (double)st.events, st.events, st.bytes, (double)f->bytes / (double)f->stored);
	sink_free(f->sink);
	f->store->close(f->store);
}

/* --- made samples --- */

struct made {
	uint32_t services, stacks;
	uint64_t traces, intervals; /* traces begin one after the other */
	uint32_t (*chains)[DEPTH];  /* of each stack, functions, outermost first */
};

/* Stacks that share their outer frames, as a program's do. */
static void make_chains(struct made *m)
{
	m->chains = calloc(m->stacks, sizeof(*m->chains));
	for (uint32_t s = 0; s < m->stacks; s++) {
		uint32_t keep = s ? rnd(DEPTH) : 0;

		if (s)
			memcpy(m->chains[s], m->chains[s - 1], keep * sizeof(m->chains[s][0]));
		for (uint32_t d = keep; d < DEPTH; d++)
			m->chains[s][d] = rnd(FUNCTIONS);
	}
}

static int32_t make_stack(struct builder *b, const struct made *m, uint32_t stack, int32_t mapping, int32_t type)
{
	int32_t locations[DEPTH];

	for (uint32_t d = 0; d < DEPTH; d++) {
		uint32_t function = m->chains[stack][d];
		char name[32];
		struct profile_line line;

		snprintf(name, sizeof(name), "function_%u", function);
		line = (struct profile_line){ builder_function(b, builder_string_z(b, name), 0,
							       builder_string_z(b, "file.c"), 1),
					      (int64_t)function % 1000 + 1, 0 };
		locations[DEPTH - 1 - d] = builder_location(b, mapping, 0x1000 + function * 16, &line, 1, &type, 1);
	}
	return builder_stack(b, locations, DEPTH);
}

/* Ids that are known by their number, and without an order, as those of SDKs. */
static uint64_t id_of(uint64_t number)
{
	uint64_t x = (number + 1) * 0x9e3779b97f4a7c15ull;

	x = (x ^ x >> 31) * 0xbf58476d1ce4e5b9ull;
	return x ^ x >> 29;
}

static void trace_of(uint64_t number, uint8_t ret[static 16])
{
	const uint64_t id[2] = { id_of(2 * number), id_of(2 * number + 1) };

	memcpy(ret, id, sizeof(id));
}

/* A link to one of the traces of @interval; 0 where there are none. */
static int32_t make_link(struct builder *b, const struct made *m, uint64_t interval)
{
	const uint64_t first = interval * m->traces / m->intervals, end = (interval + 1) * m->traces / m->intervals;
	uint64_t trace, span;
	uint8_t id[16];

	if (!m->traces)
		return 0;
	trace = first + (end > first ? rnd((uint32_t)(end - first)) : 0);
	span = id_of(~(trace * SPANS + rnd(SPANS)));
	trace_of(trace, id);
	return builder_link(b, id, (const uint8_t *)&span);
}

/* Stack @s is service s % services'; few of them have most samples. */
static void make_interval(struct feed *f, struct made *m, uint64_t start_ns, uint64_t interval, uint32_t samples)
{
	static const struct builder_profile_spec spec = { .scope_name = "bench",
							  .scope_version = "1",
							  .sample_type = "samples",
							  .sample_unit = "count",
							  .period_type = "cpu",
							  .period_unit = "nanoseconds",
							  .period = 50000000 };
	struct builder *b = builder_new();
	int32_t *made = calloc(m->stacks, sizeof(*made)); /* of this request */
	int32_t type = builder_attribute_string(b, "profile.frame.type", STR("native"));
	int32_t mapping = builder_mapping(b, 0x1000, 0x100000, 0, builder_string_z(b, "/usr/bin/service"), NULL, 0);
	struct buf out = BUF_EMPTY;
	struct profiles *p;

	for (uint32_t i = 0; i < samples; i++) {
		uint32_t stack = (uint32_t)((uint64_t)rnd(m->stacks) * rnd(m->stacks) / m->stacks);
		uint32_t service = stack % m->services, cpu = rnd(CPUS);
		char name[32];
		struct key_value kv[2] = { { .key = STR("service.name") }, { .key = STR("process.pid") } };
		int32_t attributes[2];

		if (!made[stack])
			made[stack] = make_stack(b, m, stack, mapping, type);
		snprintf(name, sizeof(name), "service-%u", service);
		kv[0].value = (struct any_value){ .kind = VALUE_STRING, .string = { name, (uint32_t)strlen(name) } };
		kv[1].value = (struct any_value){ .kind = VALUE_INT, .integer = 1000 + service };
		attributes[0] = builder_attribute_int(b, "thread.id", 1000 + service * 100 + rnd(THREADS));
		attributes[1] = builder_attribute_int(b, "cpu.logical_number", cpu);
		builder_event(b, builder_profile(b, builder_resource(b, kv, 2), &spec), made[stack], attributes, 2,
			      make_link(b, m, interval),
			      start_ns + (uint64_t)rnd(INTERVAL_S * 20) * 50000000 + cpu * 3000000 + rnd(8000) + rnd(8000),
			      false, 0);
	}
	if (builder_freeze(b, start_ns, start_ns + INTERVAL_S * NSEC_PER_SEC, &p) || otlp_encode(p, NULL, &out))
		die("make", -ENOMEM);
	feed_bytes(f, out.data, out.len, samples);
	profiles_put(p);
	buf_fini(&out);
	builder_free(b);
	free(made);
}

static int run_fill(char **args)
{
	uint64_t samples = strtoull(args[1], NULL, 10), hours = strtoull(args[2], NULL, 10);
	uint64_t intervals = hours * 3600 / INTERVAL_S;
	struct made m = { .services = (uint32_t)atoi(args[3]),
			  .stacks = (uint32_t)atoi(args[4]),
			  .traces = args[5] ? strtoull(args[5], NULL, 10) : 0,
			  .intervals = intervals };
	uint64_t start = clock_unix_ns() - hours * 3600 * NSEC_PER_SEC;
	struct feed f = { 0 };

	open_feed(&f, args[0]);
	make_chains(&m);
	start -= start % (3600 * NSEC_PER_SEC);
	for (uint64_t i = 0; i < intervals; i++)
		make_interval(&f, &m, start + i * INTERVAL_S * NSEC_PER_SEC, i, (uint32_t)(samples / intervals));
	close_feed(&f);
	free(m.chains);
	return 0;
}

/* --- a capture's samples --- */

/* *@first and *@last get wider by what is in it. */
static struct profiles *load(const char *path, uint64_t *first, uint64_t *last)
{
	FILE *file = fopen(path, "rb");
	struct otlp_error why;
	struct profiles *p;
	struct stat st;
	uint8_t *data;

	if (!file || fstat(fileno(file), &st))
		die(path, -errno);
	data = malloc((size_t)st.st_size);
	if (!data || fread(data, 1, (size_t)st.st_size, file) != (size_t)st.st_size)
		die(path, -EIO);
	fclose(file);
	if (otlp_decode(data, (size_t)st.st_size, true, &p, &why))
		die(why.message, -EBADMSG);
	for (uint32_t r = 0; r < p->resource_count; r++) {
		for (uint32_t s = 0; s < p->resources[r].scope_count; s++) {
			for (uint32_t i = 0; i < p->resources[r].scopes[s].profile_count; i++) {
				const struct profile *profile = &p->resources[r].scopes[s].profiles[i];
				uint64_t end = profile->time_unix_ns + profile->duration_ns;

				*first = profile->time_unix_ns < *first ? profile->time_unix_ns : *first;
				*last = end > *last ? end : *last;
			}
		}
	}
	return p;
}

static void shift(struct profiles *p, uint64_t ns)
{
	for (uint32_t r = 0; r < p->resource_count; r++) {
		for (uint32_t s = 0; s < p->resources[r].scope_count; s++) {
			for (uint32_t i = 0; i < p->resources[r].scopes[s].profile_count; i++) {
				struct profile *profile = &p->resources[r].scopes[s].profiles[i];

				profile->time_unix_ns += ns;
				for (uint32_t k = 0; k < profile->sample_count; k++) {
					for (uint32_t t = 0; t < profile->samples[k].timestamp_count; t++)
						profile->samples[k].timestamps_unix_ns[t] += ns;
				}
			}
		}
	}
}

static int run_replay(char **args)
{
	uint64_t samples = strtoull(args[1], NULL, 10), first = UINT64_MAX, last = 0;
	struct profiles *requests[MAX_REQUESTS];
	struct feed f = { 0 };
	size_t count = 0;

	for (args += 2; args[count] && count < MAX_REQUESTS; count++)
		requests[count] = load(args[count], &first, &last);
	open_feed(&f, args[-2]);
	for (size_t i = 0; f.stored < samples; i = (i + 1) % count) {
		if (otlp_encode_split(requests[i], REQUEST_BYTES, feed_bytes, &f))
			die("cut", -ENOMEM);
		shift(requests[i], last - first);
	}
	for (size_t i = 0; i < count; i++)
		profiles_put(requests[i]);
	close_feed(&f);
	return 0;
}

/* --- questions --- */

static int count_stack(void *arg, const char *group, uint32_t node, int64_t weight, uint64_t events)
{
	(void)group;
	(void)node;
	(void)weight;
	*(uint64_t *)arg += events;
	return 0;
}

static int count_value(void *arg, const char *value, int64_t weight, uint64_t events)
{
	(void)value;
	(void)weight;
	*(uint64_t *)arg += events;
	return 0;
}

struct question {
	const char *name;
	const char *service, *by;
	enum { STACKS, TIMES, VALUES, LABELS, TRACE_STACKS, TRACE_SPANS } what;
	uint64_t step_ns;
	int bar_ms; /* over 10 million samples of 24 hours */
};

static int count_label(void *arg, const char *label)
{
	(void)label;
	++*(uint64_t *)arg;
	return 0;
}

static uint64_t ask(struct store *s, const struct question *q, const struct store_status *st)
{
	struct store_matcher service = { "service.name", MATCH_EQUAL, q->service, NULL };
	uint8_t trace[16];
	char text[33];
	struct store_selection sel = { .from_ns = st->first_ns / 60000000000 * 60000000000,
				       .to_ns = st->last_ns + 1,
				       .matchers = &service,
				       .matcher_count = q->service != NULL };
	uint64_t count = 0;
	int err;

	trace_of(ASKED_TRACE, trace);
	hex_encode(text, trace, sizeof(trace));
	if (q->what >= TRACE_STACKS) {
		service = (struct store_matcher){ STORE_TRACE_LABEL, MATCH_EQUAL, text, NULL };
		sel.matcher_count = 1;
	}
	err = q->what == STACKS || q->what == TRACE_STACKS ? s->read->sum_stacks(s, &sel, q->by, count_stack, &count)
	      : q->what == TIMES ? s->read->sum_times(s, &sel, q->step_ns, q->by, count_stack, &count)
	      : q->what == VALUES || q->what == TRACE_SPANS ? s->read->label_values(s, &sel, q->by, count_value, &count)
							    : s->read->labels(s, &sel, count_label, &count);

	if (err)
		die(q->name, err);
	return count;
}

static int run_ask(char **args, const char *name)
{
	static const struct question questions[] = {
		{ "stacks", NULL, NULL, STACKS, 0, 100 },
		{ "stacks of a service", "service-7", NULL, STACKS, 0, 100 },
		{ "stacks by service", NULL, "service.name", STACKS, 0, 100 },
		{ "stacks by thread", NULL, "thread.id", STACKS, 0, 300 },
		{ "stacks by cpu", NULL, "cpu.logical_number", STACKS, 0, 300 },
		{ "timeline", NULL, NULL, TIMES, 60000000000, 50 },
		{ "timeline by service", NULL, "service.name", TIMES, 60000000000, 50 },
		{ "heat map", NULL, NULL, TIMES, HEAT_STEP_NS, 100 },
		{ "values of service.name", NULL, "service.name", VALUES, 0, 50 },
		{ "values of thread.id", NULL, "thread.id", VALUES, 0, 50 },
		{ "labels", NULL, NULL, LABELS, 0, 50 },
		{ "stacks of a trace", NULL, NULL, TRACE_STACKS, 0, 100 },
		{ "spans of a trace", NULL, STORE_SPAN_LABEL, TRACE_SPANS, 0, 100 },
	};
	struct store_config config = { .place = args[0], .read_only = true };
	struct store_error why;
	struct store_status st;
	struct store *s;
	int err = store_sqlite_open(&config, NULL, &s, &why);

	if (err)
		die(why.message, err);
	s->read->status(s, &st);
	for (size_t i = 0; i < sizeof(questions) / sizeof(*questions); i++) {
		double first = 0, best = 1e9, best_cpu = 1e9;
		uint64_t count = 0;

		if (name && strcmp(name, questions[i].name) != 0)
			continue;
		for (int n = 0; n < ASKS; n++) {
			double start = seconds_of(CLOCK_MONOTONIC), start_cpu = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
			double ms, cpu_ms;

			count = ask(s, &questions[i], &st);
			ms = (seconds_of(CLOCK_MONOTONIC) - start) * 1e3;
			cpu_ms = (seconds_of(CLOCK_PROCESS_CPUTIME_ID) - start_cpu) * 1e3;
			first = n ? first : ms;
			best = ms < best ? ms : best;
			best_cpu = cpu_ms < best_cpu ? cpu_ms : best_cpu;
		}
		printf("%s %.1f ms (bar: %d; first %.1f ms; of CPU %.1f ms; %" PRIu64 ")\n", questions[i].name, best,
		       questions[i].bar_ms, first, best_cpu, count);
	}
	printf("resident %.1f MB\n", resident_mb());
	s->close(s);
	return 0;
}

int main(int argc, char **argv)
{
	if ((argc == 7 || argc == 8) && !strcmp(argv[1], "fill"))
		return run_fill(argv + 2);
	if (argc >= 5 && !strcmp(argv[1], "replay"))
		return run_replay(argv + 2);
	if (argc >= 3 && argc <= 4 && !strcmp(argv[1], "ask"))
		return run_ask(argv + 2, argv[3]);
	fprintf(stderr, "usage: store fill DIR SAMPLES HOURS SERVICES STACKS [TRACES] | replay DIR SAMPLES FILE... | ask "
			"DIR [NAME]\n");
	return 2;
}
