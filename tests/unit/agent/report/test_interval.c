/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From traces to profiles and to the counts of truth: what a location says, what is said once though many frames share it,
 * where a truncated stack is marked, and whose metrics it is counted in.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/agent.h"
#include "agent/names/indexes.h"
#include "agent/report/interval.h"
#include "agent/kernel/kernel_names.h"
#include "base/cleanup.h"
#include "base/metrics.h"
#include "proto/sums/modules.h"
#include "proto/sums/stack_walk.h"
#include "proto/sums/truth.h"
#include "proto/unnamed.h"
#include "tests/unit/agent/report/known_index.h"
#include "tests/unit/descriptors.h"

/* Nobody is asked about a file here. */
static int answer(struct elf_service *s, const struct elf_request *request, int fd, const void *payload, size_t bytes,
		  struct buf *reply)
{
	(void)s, (void)request, (void)fd, (void)payload, (void)bytes, (void)reply;
	fail();
	return -EINVAL;
}

static void no_free(struct elf_service *s)
{
	(void)s;
}

static const struct elf_service_ops ops = { .call = answer, .free = no_free };
static struct elf_service service = { .ops = &ops };

static struct metrics *metrics;
static struct files *files;
static struct kernel_names *kernel;
static struct names *names;
static struct runtimes *runtimes;
static struct truth_counts *truths;
static struct module_status *modules;
static struct traces *traces;
static struct interval *intervals[2]; /* without and with error frames */
static struct file app = { .id = 1, .path = "/opt/app", .info = { .build_ids = { .gnu = "a1", .htlhash = "a2" } } };
static struct file lib = { .id = 2, .path = "/lib/libx.so", .info = { .build_ids = { .go = "g", .htlhash = "b2" } } };

enum { APP = 0x100000, LIB = 0x200000, JIT = 0x300000, AREA = 0x10000 };

static int make(void **state)
{
	static struct session_kinds kinds;
	const struct agent_config config = { .freq_hz = 100 }, marked = { .freq_hz = 100, .error_frames = true };
	struct file_opener *opener;
	struct agent_error err;

	(void)state;
	app.info.segment_count = 2;
	app.info.segments[0] = (struct elf_segment){ .size_bytes = 0x100 };
	app.info.segments[1] = (struct elf_segment){ .vaddr = 0x1000, .offset = 0x1000, .size_bytes = AREA - 0x1000 };
	lib.info.segment_count = 1;
	lib.info.segments[0] = (struct elf_segment){ .size_bytes = AREA };
	metrics = metrics_new();
	app.index = lib.index = &file_index;
	return known_index_make() || !metrics || file_opener_new(metrics, &opener) ||
	       files_new(&service, opener, metrics, &files) || kernel_names_new(-1, metrics, &kernel) ||
	       names_new(kernel, metrics, &names) || runtimes_new(0, files, metrics, &runtimes) ||
	       truth_counts_new(metrics, &truths) || module_status_new(metrics, &modules) || traces_new(NULL, &traces) ||
	       kinds_choose(&config, &kinds, &err) ||
	       interval_new(names, runtimes, truths, modules, &config, &kinds, &intervals[0]) ||
	       interval_new(names, runtimes, truths, modules, &marked, &kinds, &intervals[1]);
}

static int destroy(void **state)
{
	(void)state;
	interval_free(intervals[0]);
	interval_free(intervals[1]);
	traces_free(traces);
	truth_counts_free(truths);
	module_status_free(modules);
	names_free(names);
	runtimes_free(runtimes);
	kernel_names_free(kernel);
	files_free(files);
	metrics_free(metrics);
	symbol_index_close(file_index.entry.index);
	buf_fini(&index_bytes);
	return app.refs || lib.refs;
}

static struct process *new_process(uint32_t pid, const char *exe)
{
	struct process *p = calloc(1, sizeof(*p));

	if (!p)
		abort();
	p->refs = 1;
	p->pid = pid;
	p->exe_path = exe ? strdup(exe) : NULL;
	memcpy(p->comm, "worker", 7);
	p->as = address_space_new();
	assert_non_null(p->as);
	assert_int_equal(address_space_map(&p->as, APP, APP + AREA, 0, &app), 0);
	assert_int_equal(address_space_map(&p->as, LIB, LIB + AREA, 0, &lib), 0);
	assert_int_equal(address_space_map(&p->as, JIT, JIT + AREA, 0, NULL), 0);
	return p;
}

/* @times samples of a stack, leaf first, ended by 0. */
static void add(struct process *p, unsigned times, enum walk_end end, const uint64_t *user)
{
	struct sample_record record = { .pid = p->pid, .tid = p->pid };
	const struct pending_sample sample = { .record = &record, .value = 1 };
	uint32_t count = 0;

	while (user[count])
		count++;
	while (times--) {
		record.hdr.time_ns++;
		assert_int_equal(traces_add(traces, p, &sample, user, count, end), 0);
	}
}

/* Builds the interval and starts the next. */
static struct profiles *build(bool error_frames)
{
	struct profiles *p;

	assert_int_equal(interval_build(intervals[error_frames], traces, 0, 1000000, NULL, &p), 0);
	traces_reset(traces);
	return p;
}

static uint64_t value_of(const char *series)
{
	AUTO(buf_fini) struct buf text = BUF_EMPTY;
	size_t len = strlen(series);

	metrics_write(metrics, &text);
	for (const char *line = buf_text(&text); line; line = strchr(line, '\n'), line = line ? line + 1 : NULL) {
		if (!strncmp(line, series, len) && line[len] == ' ')
			return strtoull(line + len, NULL, 10);
	}
	return UINT64_MAX;
}

/* --- locations --- */

static const char *const known_stacks[] = {
	"fn_20 app native|fn_1f libx.so go|fn_2f libx.so go",
	"fn_20 app native|fn_1f libx.so go|[stack truncated: no rule]  abort-marker",
	"fn_20 app native|0x2fffff anon native|fn_1fff app native",
};

static int check_stack(void *arg, const struct stack_sample *s)
{
	AUTO(buf_fini) struct buf text = BUF_EMPTY;
	unsigned *seen = arg;

	for (uint32_t i = 0; i < s->frame_count; i++) {
		const struct frame *f = stack_frame(s, i);

		buf_printf(&text, "%s", i ? "|" : "");
		if (f->function.len)
			buf_append(&text, f->function.data, f->function.len);
		else
			buf_printf(&text, "0x%llx", (unsigned long long)f->address);
		buf_printf(&text, " %.*s %.*s", (int)f->module.len, f->module.data, (int)f->type.len, f->type.data);
	}
	for (unsigned i = 0; i < ARRAY_LEN(known_stacks); i++) {
		if (!strcmp(buf_text(&text), known_stacks[i])) {
			*seen |= 1u << i;
			return 0;
		}
	}
	fail_msg("stack: %s", buf_text(&text));
	return 0;
}

static void test_locations(void **state)
{
	struct process *p = new_process(7, "/opt/app");
	struct profiles *profiles;
	unsigned seen = 0;

	(void)state;
	add(p, 1, END_NO_RULE, (uint64_t[]){ (APP + 0x40) | FRAME_EXACT, 0 }); /* of the interval before: nothing stays */
	profiles_put(build(true));
	add(p, 2, END_ROOT, (uint64_t[]){ (APP + 0x20) | FRAME_EXACT, LIB + 0x20, LIB + 0x30, 0 });
	add(p, 3, END_NO_RULE, (uint64_t[]){ (APP + 0x20) | FRAME_EXACT, LIB + 0x20, 0 });
	add(p, 1, END_ROOT, (uint64_t[]){ (APP + 0x20) | FRAME_EXACT, JIT, APP + 0x2000, 0 });
	profiles = build(true);
	/* one mapping a segment, whatever its frames; besides these JIT code's and none */
	assert_int_equal(profiles->dict.mapping_count, 1 + 4);
	for (uint32_t i = 1; i < profiles->dict.mapping_count; i++) {
		const struct profile_mapping *m = &profiles->dict.mappings[i];
		struct str path = profiles_string(profiles, m->filename_strindex), value = { 0 };
		const struct any_value *id = profiles_find_attribute(
			profiles, &m->attributes,
			str_is(path, "/opt/app") ? "process.executable.build_id.gnu" : "process.executable.build_id.go");

		if (str_is(path, "//anon")) {
			assert_int_equal(m->attributes.count, 1);
			assert_non_null(profiles_find_attribute(profiles, &m->attributes, CODE_PROCESS_KEY));
			continue;
		}
		assert_int_equal(m->attributes.count, 3);
		assert_true(id && profiles_value_string(profiles, id, &value));
		assert_true(str_is(value, str_is(path, "/opt/app") ? "a1" : "g"));
		id = profiles_find_attribute(profiles, &m->attributes, MODULES_SOURCE_KEY);
		assert_true(id && profiles_value_string(profiles, id, &value) && str_is(value, "dwarf"));
		assert_int_equal(m->memory_limit, str_is(path, "/opt/app") && !m->memory_start ? 0x100 : AREA);
	}
	assert_int_equal(stack_walk_each(profiles, check_stack, &seen), 0);
	assert_int_equal(seen, (1u << ARRAY_LEN(known_stacks)) - 1);
	profiles_put(profiles);
	process_put(p);
}

/* A location's lines: innermost first, each where it stands in its file; the outer ones where they call the inner ones. */
static int check_lines(void *arg, const struct stack_sample *s)
{
	const struct profile_location *l =
		&s->profiles->dict.locations[s->profiles->dict.stacks[s->sample->stack_index].items[0]];
	static const struct {
		const char *name, *system_name, *file;
		int64_t line, column, start_line;
	} expected[] = {
		{ "inner", "", "/src/b.h", 21, 3, 20 },
		{ "middle", "_Z6middlei", "/src/b.h", 52, 9, 50 },
		{ "outer", "", "/src/a.cc", 103, 7, 100 },
	};

	if (l->line_count == 1) {
		++*(unsigned *)arg;
		return 0;
	}
	assert_int_equal(l->line_count, ARRAY_LEN(expected));
	for (uint32_t i = 0; i < l->line_count; i++) {
		const struct profile_function *f = &s->profiles->dict.functions[l->lines[i].function_index];

		assert_true(str_is(profiles_string(s->profiles, f->name_strindex), expected[i].name));
		assert_true(str_is(profiles_string(s->profiles, f->system_name_strindex), expected[i].system_name));
		assert_true(str_is(profiles_string(s->profiles, f->filename_strindex), expected[i].file));
		assert_int_equal(l->lines[i].line, expected[i].line);
		assert_int_equal(l->lines[i].column, expected[i].column);
		assert_int_equal(f->start_line, expected[i].start_line);
	}
	return 0;
}

static void test_lines(void **state)
{
	struct process *p = new_process(7, "/opt/app");
	struct profiles *profiles;

	(void)state;
	for (unsigned round = 0; round < 2; round++) { /* the second time another function comes first */
		unsigned others = 0;

		if (round)
			add(p, 1, END_ROOT, (uint64_t[]){ (APP + INLINED + 8) | FRAME_EXACT, 0 });
		add(p, 1, END_ROOT, (uint64_t[]){ (APP + INLINED) | FRAME_EXACT, 0 });
		profiles = build(false);
		assert_int_equal(stack_walk_each(profiles, check_lines, &others), 0);
		assert_int_equal(others, round);
		profiles_put(profiles);
	}
	assert_int_equal(value_of("hearth_names_found_total{source=\"dwarf\"}"), 2);
	process_put(p);
}

static int check_range(void *arg, const struct stack_sample *s)
{
	const struct profile_location *l =
		&s->profiles->dict.locations[s->profiles->dict.stacks[s->sample->stack_index].items[0]];
	const struct any_value *start = profiles_find_attribute(s->profiles, &l->attributes, CODE_START_KEY);
	const struct any_value *size = profiles_find_attribute(s->profiles, &l->attributes, CODE_SIZE_KEY);

	assert_int_equal(l->line_count, 0);
	++*(unsigned *)arg;
	if (l->address != UNNAMED + 0x20)
		return start || size;
	assert_true(start && size && start->integer == UNNAMED && size->integer == 0x48);
	return 0;
}

/* A function without a name is told by its range, and what is behind it is not. */
static void test_range(void **state)
{
	struct process *p = new_process(7, "/opt/app");
	struct profiles *profiles;
	unsigned seen = 0;

	(void)state;
	add(p, 1, END_ROOT, (uint64_t[]){ (APP + UNNAMED + 0x20) | FRAME_EXACT, 0 });
	add(p, 1, END_ROOT, (uint64_t[]){ (APP + UNNAMED + 0x48) | FRAME_EXACT, 0 });
	profiles = build(false);
	assert_int_equal(stack_walk_each(profiles, check_range, &seen), 0);
	assert_int_equal(seen, 2);
	profiles_put(profiles);
	process_put(p);
}

/* --- waiting --- */

static void count_call(void *arg)
{
	++*(unsigned *)arg;
}

/*
 * Who builds lets others read the rings meanwhile, after each thing that may take long: the name of a frame, its location, a
 * stack, a sample. Of none of these may there be many without.
 */
static void test_waiting(void **state)
{
	enum { FRAMES = 100, SAMPLES = 70 };
	struct process *p = new_process(7, "/opt/app");
	unsigned calls[4] = { 0 };

	(void)state;
	for (unsigned round = 0; round < ARRAY_LEN(calls); round++) {
		uint64_t deep[FRAMES + 1] = { (APP + 0x20) | FRAME_EXACT };
		struct profiles *profiles;

		if (round == 1) /* one stack of many frames */
			for (unsigned i = 1; i < FRAMES; i++)
				deep[i] = APP + 0x20 + i * 16;
		add(p, round == 3 ? SAMPLES : 1, END_ROOT, deep);
		if (round == 2) /* many stacks of two frames that are known */
			for (unsigned i = 0; i < SAMPLES; i++) {
				for (unsigned k = 1; k < 8; k++)
					deep[k] = LIB + 0x20 + (i >> (k - 1) & 1);
				add(p, 1, END_ROOT, deep);
			}
		assert_int_equal(interval_build(intervals[0], traces, 0, 1000000,
						&(struct wait_hook){ count_call, &calls[round] }, &profiles),
				 0);
		traces_reset(traces);
		profiles_put(profiles);
	}
	assert_true(calls[1] - calls[0] >= 2 * (FRAMES - 1));
	assert_true(calls[2] - calls[0] >= 2 * SAMPLES);
	assert_true(calls[3] - calls[0] >= SAMPLES - 1);
	process_put(p);
}

/* A file that gets a better index is asked again; one without any has no names. */
static void test_better_index(void **state)
{
	struct process *p = new_process(7, "/opt/app");
	struct symbol_index *open = file_index.entry.index;

	(void)state;
	file_index.entry.index = NULL;
	add(p, 1, END_ROOT, (uint64_t[]){ (APP + 0x20) | FRAME_EXACT, 0 });
	profiles_put(build(false));
	assert_int_equal(value_of("hearth_names_not_found_total"), 1);
	file_index.entry.index = open;
	file_index.version++;
	for (int i = 0; i < 2; i++) {
		add(p, 1, END_ROOT, (uint64_t[]){ (APP + 0x20) | FRAME_EXACT, 0 });
		profiles_put(build(false));
	}
	assert_int_equal(value_of("hearth_names_not_found_total"), 1);
	assert_int_equal(value_of("hearth_names_looked_up_total"), 2);
	process_put(p);
}

static int count_markers(void *arg, const struct stack_sample *s)
{
	uint32_t *counts = arg, markers = 0;
	const struct any_value *reason = profiles_find_attribute(s->profiles, &s->sample->attributes, TRUTH_TRUNCATED_KEY);

	for (uint32_t i = 0; i < s->frame_count; i++)
		markers += str_is(stack_frame(s, i)->type, TRUTH_MARKER_TYPE);
	if (markers) /* the outermost frame, and only of truncated stacks */
		assert_true(markers == 1 && reason && str_is(stack_frame(s, s->frame_count - 1)->type, TRUTH_MARKER_TYPE));
	counts[0] += markers ? (uint32_t)s->events : 0;
	counts[1] += reason ? (uint32_t)s->events : 0;
	return 0;
}

/* Every end a walk may have, with and without --error-frames: who is marked, who carries the attribute. */
static void test_markers(void **state)
{
	struct process *p = new_process(7, "/opt/app");

	(void)state;
	for (int wanted = 0; wanted < 2; wanted++) {
		uint32_t counts[2] = { 0 }, truncated = 0;
		struct profiles *profiles;

		for (int end = 0; end < END_MAX; end++) {
			bool has_stack = end != END_NONE && end != END_EXEC && end != END_EXITING;

			add(p, 1, end, (uint64_t[]){ has_stack ? (APP + 0x20) | FRAME_EXACT : 0, 0 });
			truncated += has_stack && end != END_ROOT;
		}
		add(p, 1, END_COMPAT, (uint64_t[]){ 0 }); /* 32-bit: truncated, and no user frame at all */
		profiles = build(wanted);
		assert_int_equal(stack_walk_each(profiles, count_markers, counts), 0);
		assert_int_equal(counts[0], wanted ? truncated + 1 : 1 /* END_OUTSIDE, which has nothing else */);
		assert_int_equal(counts[1], truncated + 1);
		profiles_put(profiles);
	}
	process_put(p);
}

/* What has no pid here is given none, nor a path. */
static void test_outside(void **state)
{
	struct process *p = new_process(0, NULL);
	const struct any_value *name;
	struct profiles *profiles;

	(void)state;
	p->is_outside = true;
	strcpy(p->comm, "[not in /proc]");
	add(p, 3, END_OUTSIDE, (uint64_t[]){ 0 });
	profiles = build(false);
	assert_null(profiles_find_key(profiles, &profiles->resources[0].resource.attributes, "process.pid"));
	assert_null(profiles_find_key(profiles, &profiles->resources[0].resource.attributes, "process.executable.path"));
	name = profiles_find_key(profiles, &profiles->resources[0].resource.attributes, "process.executable.name");
	assert_true(name && str_is(name->string, "[not in /proc]"));
	profiles_put(profiles);
	process_put(p);
}

/* --- the counts of truth --- */

static void test_counts(void **state)
{
	struct process *one = new_process(1, "/opt/app"), *two = new_process(2, "/usr/bin/two"),
		       *bare = new_process(3, NULL);

	(void)state;
	for (int interval = 1; interval <= 2; interval++) {
		add(one, 4, END_ROOT, (uint64_t[]){ (LIB + 0x20) | FRAME_EXACT, APP + 0x9001, APP + 0x31, 0 });
		add(one, 2, END_NO_RULE, (uint64_t[]){ (LIB + 0x20) | FRAME_EXACT, JIT + 1, 0 });
		add(two, 3, END_NO_RULE, (uint64_t[]){ (LIB + 0x9000) | FRAME_EXACT, 0 });
		add(two, 1, END_COPY_LIMIT, (uint64_t[]){ (LIB + 0x20) | FRAME_EXACT, LIB + 0x31, 0 });
		add(two, 5, END_EXITING, (uint64_t[]){ 0 });
		add(bare, 1, END_ROOT, (uint64_t[]){ (APP + 0x20) | FRAME_EXACT, 0 });
		profiles_put(build(false));
#define IS(series, n) assert_int_equal(value_of(series), (n) * (uint64_t)interval)
		IS("hearth_executable_stacks_total{executable=\"app\",end=\"root\"}", 4);
		IS("hearth_executable_stacks_total{executable=\"app\",end=\"no rule\"}", 2);
		IS("hearth_executable_stacks_total{executable=\"two\",end=\"no rule\"}", 3);
		IS("hearth_executable_stacks_total{executable=\"two\",end=\"copy limit\"}", 1);
		IS("hearth_executable_stacks_total{executable=\"worker\",end=\"root\"}", 1);
		assert_int_equal(value_of("hearth_executable_stacks_total{executable=\"two\",end=\"exiting\"}"), UINT64_MAX);
		IS("hearth_executable_frames_total{executable=\"app\"}", 4 * 3 + 2 * 2);
		IS("hearth_executable_frames_unnamed_total{executable=\"app\"}", 4 + 2);
		IS("hearth_executable_frames_unnamed_total{executable=\"two\"}", 3);
		IS("hearth_module_stacks_total{module=\"app\",end=\"root\"}", 5);
		IS("hearth_module_stacks_total{module=\"anon\",end=\"no rule\"}", 2);
		IS("hearth_module_stacks_total{module=\"libx.so\",end=\"no rule\"}", 3);
		IS("hearth_module_stacks_total{module=\"libx.so\",end=\"copy limit\"}", 1);
		IS("hearth_module_frames_total{module=\"libx.so\"}", 4 + 2 + 3 + 2);
		IS("hearth_module_frames_unnamed_total{module=\"libx.so\"}", 3);
		IS("hearth_module_frames_unnamed_total{module=\"app\"}", 4);
		IS("hearth_module_frames_unnamed_total{module=\"anon\"}", 2);
		/* a sample once, however many of its frames are there */
		IS("hearth_module_symbols_samples{module=\"app\",build_id=\"a1\",source=\"dwarf\",quality=\"full\"}", 4 + 1);
		IS("hearth_module_symbols_samples{module=\"libx.so\",build_id=\"\",source=\"dwarf\",quality=\"full\"}",
		   4 + 2 + 3 + 1);
#undef IS
	}
	process_put(one);
	process_put(two);
	process_put(bare);
}

/* The sum of all series that begin with @prefix, and how many there are. */
static uint64_t sum_of(const char *prefix, unsigned *count_ret)
{
	AUTO(buf_fini) struct buf text = BUF_EMPTY;
	uint64_t sum = 0;

	*count_ret = 0;
	metrics_write(metrics, &text);
	for (char *rest = (char *)(uintptr_t)buf_text(&text), *line; (line = strsep(&rest, "\n"));) {
		if (strncmp(line, prefix, strlen(prefix)))
			continue;
		sum += strtoull(strrchr(line, ' '), NULL, 10);
		++*count_ret;
	}
	return sum;
}

/* Thousands of files: those in most samples are shown, the sum is kept, and one whose names got better has one series. */
static void test_bounded_modules(void **state)
{
	enum { MODULES = 5000 };
	uint64_t expected = 0, sum;
	unsigned count;
	char name[32];

	(void)state;
	for (int round = 1; round <= 2; round++) {
		for (unsigned i = 0; i < MODULES; i++) {
			int len = snprintf(name, sizeof(name), "m%u", i);
			struct str text = { name, (uint32_t)len };

			module_status_add(modules, module_status_find(modules, text, "", round == 1 ? "symtab" : "dwarf"),
					  i + 1);
			expected += i + 1;
		}
		module_status_publish(modules);
		sum = sum_of("hearth_module_symbols_samples{", &count);
		assert_int_equal(sum, expected);
		assert_int_equal(count, MODULES_SHOWN + 1);
		assert_int_equal(value_of("hearth_module_symbols_samples{module=\"m4999\",build_id=\"\",source=\"symtab\","
					  "quality=\"symbols\"}"),
				 round == 1 ? 5000 : UINT64_MAX);
	}
	assert_int_equal(
		value_of("hearth_module_symbols_samples{module=\"m4999\",build_id=\"\",source=\"dwarf\",quality=\"full\"}"),
		10000);
}

/* Thousands of executables: few series, an exact sum, nothing that falls but what ends, and the worst have their names. */
static void test_bounded(void **state)
{
	enum { EXECUTABLES = 3000, ROUNDS = 3 };
	uint64_t expected = 0, other = 0;
	unsigned count;

	(void)state;
	for (int round = 1; round <= ROUNDS; round++) {
		uint64_t sum, now;

		for (unsigned i = 0; i < EXECUTABLES; i++) {
			char exe[32];
			struct process *p;

			snprintf(exe, sizeof(exe), "/bin/exe%u", i);
			p = new_process(i + 1, exe);
			add(p, 1, END_ROOT, (uint64_t[]){ (APP + 0x20) | FRAME_EXACT, 0 });
			/* the worst are met last, and are others each round */
			if (i >= EXECUTABLES - 10 * (unsigned)round)
				add(p, i / 100 * (unsigned)round, END_DEPTH, (uint64_t[]){ (APP + 0x20) | FRAME_EXACT, 0 });
			process_put(p);
		}
		expected += traces_event_count(traces);
		profiles_put(build(false));
		sum = sum_of("hearth_executable_stacks_total{", &count);
		assert_int_equal(sum, expected);
		assert_true(count <= 2 * (TRUTH_SHOWN + 1)); /* two ends each */
		sum_of("hearth_executable_frames_total{", &count);
		assert_int_equal(count, TRUTH_SHOWN + 1);
		now = value_of("hearth_executable_stacks_total{executable=\"" TRUTH_OTHER "\",end=\"root\"}");
		assert_true(now != UINT64_MAX && now >= other);
		other = now;
		assert_int_equal(value_of("hearth_executable_stacks_total{executable=\"exe2999\",end=\"depth\"}"),
				 29u * (unsigned)(round * (round + 1) / 2));
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_locations, make, destroy),
		cmocka_unit_test_setup_teardown(test_lines, make, destroy),
		cmocka_unit_test_setup_teardown(test_range, make, destroy),
		cmocka_unit_test_setup_teardown(test_waiting, make, destroy),
		cmocka_unit_test_setup_teardown(test_better_index, make, destroy),
		cmocka_unit_test_setup_teardown(test_markers, make, destroy),
		cmocka_unit_test_setup_teardown(test_outside, make, destroy),
		cmocka_unit_test_setup_teardown(test_counts, make, destroy),
		cmocka_unit_test_setup_teardown(test_bounded, make, destroy),
		cmocka_unit_test_setup_teardown(test_bounded_modules, make, destroy),
	};

	return run_group_of_descriptors(tests, NULL, NULL);
}
