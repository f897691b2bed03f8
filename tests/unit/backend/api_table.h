/* SPDX-License-Identifier: Apache-2.0 */
/* For tests of the query API: a store made of a table of samples, and questions to the API over it. */
#ifndef HEARTH_TESTS_API_TABLE_H
#define HEARTH_TESTS_API_TABLE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/api/api.h"
#include "backend/store/store_maintain.h"
#include "backend/store/store_read.h"
#include "backend/store/store_write.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "base/text/pattern.h"
#include "proto/profiles.h"

/* --- a store of a few samples --- */

struct table_sample {
	const char *service, *thread;
	uint64_t time_s;
	int64_t weight;
	const char *stack; /* "main;work;~fast": root first, ~ before an inlined call, a bare number the address of code
			      without a name */
};

static const struct table_sample table[] = {
	{ "shop", "t1", 1000, 4, "main;work;~fast" }, /* */
	{ "shop", "t1", 1001, 2, "main;work" },		  { "shop", "t2", 1002, 1, "main;idle" },
	{ "shop", "t2", 1003, 3, "main;work;main;work" },				 /* a recursion */
	{ "mail", "t3", 1004, 5, "main;send;4096" },	  { "mail", "t3", 1005, 7, "" }, /* no stack at all */
};

enum { MAX_NODES = 64 };

struct table_store {
	struct store store;
	struct {
		uint32_t parent;
		char name[32];
	} nodes[MAX_NODES];
	uint32_t count;
	uint32_t stacks[ARRAY_LEN(table)];
};

static uint32_t add_node(struct table_store *s, uint32_t parent, const char *name)
{
	for (uint32_t i = 1; i < s->count; i++)
		if (s->nodes[i].parent == parent && !strcmp(s->nodes[i].name, name))
			return i;
	assert_true(s->count < MAX_NODES);
	s->nodes[s->count].parent = parent;
	snprintf(s->nodes[s->count].name, sizeof(s->nodes[0].name), "%s", name);
	return s->count++;
}

static const char *label_of(const struct table_sample *t, const char *label)
{
	if (!strcmp(label, "service.name"))
		return t->service;
	return !strcmp(label, "thread.name") || !strcmp(label, STORE_COMM_LABEL) ? t->thread : "";
}

static bool is_selected(const struct table_store *s, const struct store_selection *sel, size_t i)
{
	uint64_t time_ns = table[i].time_s * NSEC_PER_SEC;
	uint32_t stack = s->stacks[i];

	if (time_ns < sel->from_ns || time_ns >= sel->to_ns || (sel->kind && strcmp(sel->kind, "samples") != 0))
		return false;
	if (sel->stacks && (stack >= sel->stack_count || !(sel->stacks[stack / 64] >> (stack % 64) & 1)))
		return false;
	for (size_t m = 0; m < sel->matcher_count; m++) {
		const struct store_matcher *matcher = &sel->matchers[m];
		const char *value = label_of(&table[i], matcher->label);
		bool equal = matcher->pattern ? pattern_matches(matcher->pattern, value, strlen(value))
					      : !strcmp(value, matcher->value);

		if (equal != (matcher->match == MATCH_EQUAL || matcher->match == MATCH_REGEX))
			return false;
	}
	return true;
}

static int late(const struct store_selection *sel)
{
	return sel->deadline_ns && clock_mono_ns() > sel->deadline_ns ? -ETIMEDOUT : 0;
}

static int sum_stacks(struct store *store, const struct store_selection *sel, const char *by,
		      int (*fn)(void *arg, const char *group, uint32_t node, int64_t weight, uint64_t events), void *arg)
{
	struct table_store *s = (struct table_store *)store;
	int err = late(sel);

	for (size_t i = 0; i < ARRAY_LEN(table) && !err; i++)
		if (is_selected(s, sel, i))
			err = fn(arg, by ? label_of(&table[i], by) : "", s->stacks[i], table[i].weight, 1);
	return err;
}

static int sum_times(struct store *store, const struct store_selection *sel, uint64_t step_ns, const char *by,
		     int (*fn)(void *arg, const char *group, uint32_t bucket, int64_t weight, uint64_t events), void *arg)
{
	struct table_store *s = (struct table_store *)store;
	int err = 0;

	for (size_t i = 0; i < ARRAY_LEN(table) && !err; i++)
		if (is_selected(s, sel, i))
			err = fn(arg, by ? label_of(&table[i], by) : "",
				 (uint32_t)((table[i].time_s * NSEC_PER_SEC - sel->from_ns) / step_ns), table[i].weight, 1);
	return err;
}

static int labels(struct store *store, const struct store_selection *sel, int (*fn)(void *arg, const char *label), void *arg)
{
	(void)store;
	(void)sel;
	return fn(arg, "service.name") || fn(arg, "thread.name");
}

static int label_values(struct store *store, const struct store_selection *sel, const char *label,
			int (*fn)(void *arg, const char *value, int64_t weight, uint64_t events), void *arg)
{
	struct table_store *s = (struct table_store *)store;

	if (late(sel))
		return -ETIMEDOUT;
	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		const char *value = label_of(&table[i], label);
		int64_t weight = 0;
		uint64_t events = 0;
		bool is_first = true;

		for (size_t k = 0; k < ARRAY_LEN(table); k++) {
			if (!is_selected(s, sel, k) || strcmp(label_of(&table[k], label), value) != 0)
				continue;
			is_first &= k >= i;
			weight += table[k].weight;
			events++;
		}
		if (events && is_first && is_selected(s, sel, i) && fn(arg, value, weight, events))
			return -ENOMEM;
	}
	return 0;
}

static int kinds(struct store *store, const struct store_selection *sel, int (*fn)(void *arg, const struct store_kind *kind),
		 void *arg)
{
	const struct store_kind samples = { "samples", "count", "cpu", "nanoseconds", 50000000, ARRAY_LEN(table) };

	(void)store;
	(void)sel;
	return fn(arg, &samples);
}

static int executables(struct store *store, const struct store_selection *sel,
		       int (*fn)(void *arg, const struct store_executable *e), void *arg)
{
	const struct store_executable shop = { "/bin/shop", "ab12", "gnu", "", 4, 10, 10, 9, 9 },
				      mail = { "/bin/mail", "", "", "", 2, 10, 5, 8, 2 },
				      java = { "//anon", "", "", "java", 1, 10, 0, 1, 0 };
	int err = fn(arg, &shop);

	(void)store;
	(void)sel;
	err = err ? err : fn(arg, &mail);
	return err ? err : fn(arg, &java);
}

/* One a service, with a number among its labels. */
static int series(struct store *store, const struct store_selection *sel,
		  int (*fn)(void *arg, const struct key_values *labels, int64_t weight, uint64_t events), void *arg)
{
	static const char *const services[] = { "shop", "mail" };
	struct table_store *s = (struct table_store *)store;
	int err = 0;

	for (size_t k = 0; k < ARRAY_LEN(services) && !err; k++) {
		struct key_value items[] = {
			{ .key = STR("service.name"), .value = { .kind = VALUE_STRING, .string = str_z(services[k]) } },
			{ .key = STR("process.pid"), .value = { .kind = VALUE_INT, .integer = 7 + (int64_t)k } },
			{ .key = STR("host.name"), .value = { .kind = VALUE_STRING, .string = STR("") } },
		};
		const struct key_values labels_of = { items, ARRAY_LEN(items) };
		int64_t weight = 0;
		uint64_t events = 0;

		for (size_t i = 0; i < ARRAY_LEN(table); i++) {
			if (!is_selected(s, sel, i) || strcmp(table[i].service, services[k]) != 0)
				continue;
			weight += table[i].weight;
			events++;
		}
		err = events ? fn(arg, &labels_of, weight, events) : 0;
	}
	return err;
}

static uint32_t node_count(struct store *store)
{
	return ((struct table_store *)store)->count;
}

/* Frame n is that of node n. */
static int nodes(struct store *store, uint32_t first, uint32_t count, struct store_node *ret)
{
	struct table_store *s = (struct table_store *)store;

	assert_true(first + count <= s->count);
	for (uint32_t i = 0; i < count; i++)
		ret[i] = (struct store_node){ s->nodes[first + i].parent, first + i };
	return 0;
}

static int frame(struct store *store, uint32_t number, struct store_frame *ret)
{
	struct table_store *s = (struct table_store *)store;
	const char *name = s->nodes[number].name;

	*ret = (struct store_frame){ .function = name,
				     .system_name = "",
				     .file = "a.c",
				     .module = "app",
				     .path = "/bin/app",
				     .build_id = "ab12",
				     .type = "native",
				     .line = 7,
				     .start_line = 1,
				     .process = "" };
	if (name[0] == '~') {
		ret->function = name + 1;
		ret->inlined = true;
	} else if (atoi(name)) {
		ret->function = "";
		ret->address = ret->code_start = (uint64_t)atoi(name);
		ret->code_size = 0xdb0;
	}
	return 0;
}

static int status(struct store *store, struct store_status *ret)
{
	*ret = (struct store_status){ .kind = "table",
				      .place = "here",
				      .bytes = 100,
				      .events = 6,
				      .first_ns = 1000 * NSEC_PER_SEC,
				      .last_ns = 1005 * NSEC_PER_SEC,
				      .series = 2,
				      .nodes = node_count(store),
				      .frames = 9 };
	return 0;
}

static int export(struct store *store, const struct store_selection *sel, int (*fn)(void *arg, struct profiles *p),
		  void *arg)
{
	struct profiles *p = profiles_new();
	int err = store && sel && p ? fn(arg, p) : -ENOMEM;

	profiles_put(p);
	return err;
}

static const char *export_suffix(const char *format, const char **content_type_ret)
{
	*content_type_ret = "x/y";
	return !strcmp(format, "x") ? ".x" : NULL;
}

struct api_file {
	char format[32];
	size_t pieces, bytes;
};

static int export_begin(const char *format, int disk, struct api_file **ret)
{
	(void)disk;
	*ret = calloc(1, sizeof(**ret));
	snprintf((*ret)->format, sizeof((*ret)->format), "%s", format);
	return 0;
}

static int export_add(struct api_file *file, struct profiles *profiles)
{
	file->pieces++;
	file->bytes += profiles_memory_bytes(profiles);
	return 0;
}

static size_t export_bytes(const struct api_file *file)
{
	return file->bytes;
}

static int export_write(struct api_file *file, size_t most_bytes, struct buf *out, bool *is_on_disk_ret)
{
	(void)most_bytes;
	*is_on_disk_ret = false;
	buf_printf(out, "%zu in %s", file->pieces, file->format);
	return 0;
}

static void export_free(struct api_file *file)
{
	free(file);
}

static const struct api_export table_exports = { export_suffix, export_begin, export_add,
						 export_bytes,	export_write, export_free };

static const struct store_read_ops table_ops = {
	.export = export,
	.sum_stacks = sum_stacks,
	.sum_times = sum_times,
	.labels = labels,
	.label_values = label_values,
	.kinds = kinds,
	.series = series,
	.executables = executables,
	.node_count = node_count,
	.nodes = nodes,
	.frame = frame,
	.status = status,
};

static const struct store_write_ops no_write;
static const struct store_maintain_ops no_tasks;

static struct table_store table_store;
static struct api *api;

static int setup(void **state)
{
	struct api_config config = { .store = &table_store.store };

	(void)state;
	table_store = (struct table_store){ .store = { &table_ops, &no_write, &no_tasks, NULL, 0 }, .count = 1 };
	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		char *copy = strdup(table[i].stack), *rest = copy;

		for (char *name; *copy && (name = strsep(&rest, ";"));)
			table_store.stacks[i] = add_node(&table_store, table_store.stacks[i], name);
		free(copy);
	}
	return api_new(&config, &api);
}

static inline int teardown(void **state)
{
	(void)state;
	api_free(api);
	return 0;
}

/* --- questions --- */

/* Asks "path?key=value&..." (no escapes but those for '&' in none). The answer's text is the caller's. */
static inline char *ask(const char *url, unsigned status_wanted)
{
	AUTO_FREE char *copy = strdup(url);
	struct query_param items[16];
	struct query_params params = { .items = items };
	struct api_answer answer = { 0 };
	char *rest = copy, *path = strsep(&rest, "?"), *text;

	while (rest && *rest) {
		char *value = strsep(&rest, "&"), *key = strsep(&value, "=");

		items[params.count++] = (struct query_param){ key, value };
	}
	api_answer(api, path, &params, NULL, &answer);
	text = strdup(buf_text(&answer.body));
	if (answer.status != status_wanted)
		print_message("%s\n%s\n", url, text);
	assert_int_equal(answer.status, status_wanted);
	buf_fini(&answer.body);
	return text;
}

#define ALL "from=first&to=last"

/* The answer to @url contains each of the texts. */
static inline void expect(const char *url, const char *const *texts)
{
	AUTO_FREE char *answer = ask(url, 200);

	for (; *texts; texts++) {
		if (!strstr(answer, *texts))
			print_message("%s\nlacks %s\n%s\n", url, *texts, answer);
		assert_non_null(strstr(answer, *texts));
	}
}

#define EXPECT(url, ...) expect(url, (const char *const[]){ __VA_ARGS__, NULL })

#endif
