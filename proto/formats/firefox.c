/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes a timeline as Firefox Profiler keeps it ("processed profile", docs-developer/processed-profile-format.md there), in
 * version 60, the first with tables for all threads; newer ones upgrade it when they load it. Tables are made of columns, so
 * each is gathered in buffers first. A stack is a path in one tree of (parent, frame).
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/intern.h"
#include "base/pack/gzip.h"
#include "base/text/json.h"
#include "proto/formats/formats.h"
#include "proto/sums/timeline.h"

enum { VERSION = 60, GECKO_VERSION = 32, RESOURCE_LIBRARY = 1, NONE = -1 };

#define MAX_EXACT (1ull << 53) /* of JavaScript's numbers */

static const struct {
	const char *name, *colour;
} categories[] = {
	{ "Other", "grey" }, { "Kernel", "orange" }, { "Native", "yellow" }, { "Go", "lightblue" }, { "Script", "green" }
};

struct node {
	int32_t prefix, frame;
};

struct func {
	uint32_t name;
	int32_t resource, source;
};

struct firefox {
	const struct timeline *t;
	struct json j;
	struct intern *strings, *libs, *files, *funcs, *nodes; /* libs and files: uint32_t string */
	int32_t *frame_of;				       /* by the timeline's frame id: frame + 1 */
	int32_t *node_of;				       /* by the timeline's stack: node, or NONE */
	struct buf frames;				       /* uint32_t: id of the timeline's frame */
	struct buf frame_funcs;				       /* uint32_t */
	struct buf depths;				       /* int32_t: how deep inlined */
	struct buf text;
	int error;
};

static uint32_t add(struct firefox *f, struct intern *table, const void *key, size_t len)
{
	uint32_t index = 0;

	if (intern_add(table, key, len, &index) < 0)
		f->error = -ENOMEM;
	return index;
}

static uint32_t add_string(struct firefox *f, struct str s)
{
	return add(f, f->strings, s.data, s.len);
}

static uint32_t add_func(struct firefox *f, const struct frame *frame)
{
	struct func func = { .resource = NONE, .source = NONE };
	uint32_t text;

	buf_reset(&f->text);
	stack_frame_print(frame, 0, &f->text);
	if (f->text.failed)
		f->error = -ENOMEM;
	func.name = add(f, f->strings, f->text.data, f->text.len);
	if (frame->module.len) {
		text = add_string(f, frame->module);
		func.resource = (int32_t)add(f, f->libs, &text, sizeof(text));
	}
	if (frame->file.len) {
		text = add_string(f, frame->file);
		func.source = (int32_t)add(f, f->files, &text, sizeof(text));
	}
	return add(f, f->funcs, &func, sizeof(func));
}

static int32_t add_frame(struct firefox *f, uint32_t id, int32_t depth)
{
	int32_t *known = &f->frame_of[id];
	uint32_t func;

	if (!*known) {
		func = add_func(f, &f->t->frames[id]);
		buf_append(&f->frames, &id, sizeof(id));
		buf_append(&f->frame_funcs, &func, sizeof(func));
		buf_append(&f->depths, &depth, sizeof(depth));
		*known = (int32_t)(f->frames.len / sizeof(id));
	}
	return *known - 1;
}

static void add_stack(struct firefox *f, size_t index)
{
	const struct timeline_stack *s = &f->t->stacks[index];
	struct node node = { .prefix = NONE };
	int32_t depth = 0;

	for (uint32_t i = s->count; i > 0; i--) {
		uint32_t id = f->t->frame_ids[s->first + i - 1];

		depth = f->t->frames[id].inlined ? depth + 1 : 0;
		node.frame = add_frame(f, id, depth);
		node.prefix = (int32_t)add(f, f->nodes, &node, sizeof(node));
	}
	f->node_of[index] = node.prefix;
}

/* --- columns --- */

static void number_or_null(struct json *j, int64_t n)
{
	if (n < 0)
		json_null(j);
	else
		json_i64(j, n);
}

/* A column of @count values, each written by @put. */
static void column(struct firefox *f, const char *name, size_t count, void (*put)(struct firefox *f, size_t i))
{
	json_key(&f->j, name);
	json_array_begin(&f->j);
	for (size_t i = 0; i < count; i++)
		put(f, i);
	json_array_end(&f->j);
}

static void put_null(struct firefox *f, size_t i)
{
	(void)i;
	json_null(&f->j);
}

static void put_zero(struct firefox *f, size_t i)
{
	(void)i;
	json_u64(&f->j, 0);
}

static void put_false(struct firefox *f, size_t i)
{
	(void)i;
	json_bool(&f->j, false);
}

static void end_table(struct firefox *f, size_t count)
{
	json_key(&f->j, "length");
	json_u64(&f->j, count);
	json_object_end(&f->j);
}

static void begin_table(struct firefox *f, const char *name)
{
	json_key(&f->j, name);
	json_object_begin(&f->j);
}

static void put_string(struct firefox *f, size_t i)
{
	size_t len;
	const char *s = intern_get(f->strings, (uint32_t)i, &len);

	json_string_n(&f->j, s, len);
}

/* --- tables --- */

static void put_node_frame(struct firefox *f, size_t i)
{
	json_i64(&f->j, ((const struct node *)intern_get(f->nodes, (uint32_t)i, NULL))->frame);
}

static void put_node_prefix(struct firefox *f, size_t i)
{
	number_or_null(&f->j, ((const struct node *)intern_get(f->nodes, (uint32_t)i, NULL))->prefix);
}

static const struct frame *frame_at(const struct firefox *f, size_t i)
{
	return &f->t->frames[((const uint32_t *)(const void *)f->frames.data)[i]];
}

static void put_frame_address(struct firefox *f, size_t i)
{
	const struct frame *frame = frame_at(f, i);

	json_i64(&f->j, frame->module.len && frame->address < MAX_EXACT ? (int64_t)frame->address : NONE);
}

static void put_frame_depth(struct firefox *f, size_t i)
{
	json_i64(&f->j, ((const int32_t *)(const void *)f->depths.data)[i]);
}

static void put_frame_category(struct firefox *f, size_t i)
{
	struct str type = frame_at(f, i)->type;
	unsigned category = str_is(type, "kernel")				      ? 1
			    : str_is(type, "native")				      ? 2
			    : str_is(type, "go")				      ? 3
			    : str_is(type, "unknown") || str_is(type, "abort-marker") ? 0
										      : 4;

	json_u64(&f->j, category);
}

static void put_frame_func(struct firefox *f, size_t i)
{
	json_u64(&f->j, ((const uint32_t *)(const void *)f->frame_funcs.data)[i]);
}

static void put_frame_line(struct firefox *f, size_t i)
{
	int64_t line = frame_at(f, i)->line;

	number_or_null(&f->j, line > 0 ? line : NONE);
}

static const struct func *func_at(const struct firefox *f, size_t i)
{
	return intern_get(f->funcs, (uint32_t)i, NULL);
}

static void put_func_name(struct firefox *f, size_t i)
{
	json_u64(&f->j, func_at(f, i)->name);
}

static void put_func_resource(struct firefox *f, size_t i)
{
	json_i64(&f->j, func_at(f, i)->resource);
}

static void put_func_source(struct firefox *f, size_t i)
{
	number_or_null(&f->j, func_at(f, i)->source);
}

static uint32_t lib_name(const struct firefox *f, size_t i)
{
	return *(const uint32_t *)intern_get(f->libs, (uint32_t)i, NULL);
}

static void put_lib_name(struct firefox *f, size_t i)
{
	json_u64(&f->j, lib_name(f, i));
}

static void put_lib_type(struct firefox *f, size_t i)
{
	(void)i;
	json_u64(&f->j, RESOURCE_LIBRARY);
}

static void put_index(struct firefox *f, size_t i)
{
	json_u64(&f->j, i);
}

static void put_file_name(struct firefox *f, size_t i)
{
	json_u64(&f->j, *(const uint32_t *)intern_get(f->files, (uint32_t)i, NULL));
}

static void put_tables(struct firefox *f)
{
	size_t nodes = intern_count(f->nodes), frames = f->frames.len / sizeof(uint32_t), funcs = intern_count(f->funcs);
	size_t libs = intern_count(f->libs), files = intern_count(f->files);
	static const char *const symbol_columns[] = { "libIndex", "address", "name", "functionSize" };

	begin_table(f, "shared");
	begin_table(f, "stackTable");
	column(f, "frame", nodes, put_node_frame);
	column(f, "prefix", nodes, put_node_prefix);
	end_table(f, nodes);
	begin_table(f, "frameTable");
	column(f, "address", frames, put_frame_address);
	column(f, "inlineDepth", frames, put_frame_depth);
	column(f, "category", frames, put_frame_category);
	column(f, "subcategory", frames, put_zero);
	column(f, "func", frames, put_frame_func);
	column(f, "nativeSymbol", frames, put_null);
	column(f, "innerWindowID", frames, put_null);
	column(f, "line", frames, put_frame_line);
	column(f, "column", frames, put_null);
	end_table(f, frames);
	begin_table(f, "funcTable");
	column(f, "name", funcs, put_func_name);
	column(f, "isJS", funcs, put_false);
	column(f, "relevantForJS", funcs, put_false);
	column(f, "resource", funcs, put_func_resource);
	column(f, "source", funcs, put_func_source);
	column(f, "lineNumber", funcs, put_null);
	column(f, "columnNumber", funcs, put_null);
	end_table(f, funcs);
	begin_table(f, "resourceTable");
	column(f, "lib", libs, put_index);
	column(f, "name", libs, put_lib_name);
	column(f, "host", libs, put_null);
	column(f, "type", libs, put_lib_type);
	end_table(f, libs);
	begin_table(f, "nativeSymbols");
	for (size_t i = 0; i < ARRAY_LEN(symbol_columns); i++)
		column(f, symbol_columns[i], 0, put_null);
	end_table(f, 0);
	begin_table(f, "sources");
	column(f, "id", files, put_null);
	column(f, "filename", files, put_file_name);
	end_table(f, files);
	column(f, "stringArray", intern_count(f->strings), put_string);
	json_object_end(&f->j);
}

static void member(struct json *j, const char *key, const char *value)
{
	json_key(j, key);
	json_string(j, value);
}

static void number(struct json *j, const char *key, uint64_t value)
{
	json_key(j, key);
	json_u64(j, value);
}

static void put_libs(struct firefox *f)
{
	static const char *const names[] = { "name", "path", "debugName", "debugPath" };

	json_key(&f->j, "libs");
	json_array_begin(&f->j);
	for (size_t i = 0; i < intern_count(f->libs); i++) {
		json_object_begin(&f->j);
		member(&f->j, "arch", "");
		for (size_t k = 0; k < ARRAY_LEN(names); k++) {
			json_key(&f->j, names[k]);
			put_string(f, lib_name(f, i));
		}
		member(&f->j, "breakpadId", "");
		json_key(&f->j, "codeId");
		json_null(&f->j);
		json_object_end(&f->j);
	}
	json_array_end(&f->j);
}

/* --- threads --- */

static double milliseconds(uint64_t ns)
{
	return (double)ns / 1e6;
}

/* The name Firefox has for the unit of the samples' weights. */
static const char *weight_type(const struct timeline *t)
{
	return !strcmp(t->sum.unit, "nanoseconds") ? "tracing-ms" : !strcmp(t->sum.unit, "bytes") ? "bytes" : "samples";
}

static void put_weight(struct firefox *f, size_t i)
{
	const struct timeline_event *e = &f->t->events[i];

	if (!strcmp(weight_type(f->t), "tracing-ms"))
		json_double(&f->j, milliseconds(e->weight));
	else
		json_u64(&f->j, !strcmp(f->t->sum.unit, "bytes") ? e->weight : e->samples);
}

static void put_samples(struct firefox *f, size_t first, size_t end, uint64_t start_ns)
{
	struct json *j = &f->j;

	begin_table(f, "samples");
	json_key(j, "stack");
	json_array_begin(j);
	for (size_t i = first; i < end; i++)
		number_or_null(j, f->node_of[f->t->events[i].stack]);
	json_array_end(j);
	json_key(j, "time");
	json_array_begin(j);
	for (size_t i = first; i < end; i++)
		json_double(j, milliseconds(f->t->events[i].time_unix_ns - start_ns));
	json_array_end(j);
	json_key(j, "weight");
	json_array_begin(j);
	for (size_t i = first; i < end; i++)
		put_weight(f, i);
	json_array_end(j);
	member(j, "weightType", weight_type(f->t));
	if (f->t->is_time) {
		json_key(j, "threadCPUDelta");
		json_array_begin(j);
		for (size_t i = first; i < end; i++)
			json_u64(j, f->t->events[i].weight);
		json_array_end(j);
	}
	end_table(f, end - first);
}

static void put_thread(struct firefox *f, size_t first, size_t end, uint64_t start_ns)
{
	static const char *const marker_columns[] = { "data", "name", "startTime", "endTime", "phase", "category" };
	const struct timeline_thread *t = &f->t->threads[f->t->events[first].thread];
	struct json *j = &f->j;
	char pid[24];

	snprintf(pid, sizeof(pid), "%" PRId64, t->pid >= 0 ? t->pid : 0);
	json_object_begin(j);
	member(j, "processType", "default");
	json_key(j, "processName");
	json_string_n(j, t->process.len ? t->process.data : t->comm.data, t->process.len ? t->process.len : t->comm.len);
	number(j, "processStartupTime", 0);
	json_key(j, "processShutdownTime");
	json_null(j);
	number(j, "registerTime", 0);
	json_key(j, "unregisterTime");
	json_null(j);
	column(f, "pausedRanges", 0, put_null);
	json_key(j, "name");
	json_string_n(j, t->comm.data, t->comm.len);
	json_key(j, "isMainThread");
	json_bool(j, t->pid == t->tid);
	member(j, "pid", pid);
	number(j, "tid", t->tid >= 0 ? (uint64_t)t->tid : f->t->events[first].thread);
	put_samples(f, first, end, start_ns);
	begin_table(f, "markers");
	for (size_t i = 0; i < ARRAY_LEN(marker_columns); i++)
		column(f, marker_columns[i], 0, put_null);
	end_table(f, 0);
	json_object_end(j);
}

static void put_meta(struct firefox *f, uint64_t start_ns)
{
	uint64_t interval = f->t->is_time && f->t->event_count && f->t->events[0].samples
				    ? f->t->events[0].weight / f->t->events[0].samples
				    : 1000000;
	struct json *j = &f->j;

	begin_table(f, "meta");
	json_key(j, "interval");
	json_double(j, milliseconds(interval));
	json_key(j, "startTime");
	json_double(j, milliseconds(start_ns));
	number(j, "processType", 0);
	member(j, "product", "hearth");
	number(j, "stackwalk", 1);
	number(j, "version", GECKO_VERSION);
	number(j, "preprocessedProfileVersion", VERSION);
	json_key(j, "symbolicated");
	json_bool(j, true);
	member(j, "importedFrom", "hearth " HEARTH_VERSION);
	begin_table(f, "sampleUnits");
	member(j, "time", "ms");
	member(j, "eventDelay", "ms");
	member(j, "threadCPUDelta", "ns");
	json_object_end(j);
	column(f, "markerSchema", 0, put_null);
	json_key(j, "categories");
	json_array_begin(j);
	for (size_t i = 0; i < ARRAY_LEN(categories); i++) {
		json_object_begin(j);
		member(j, "name", categories[i].name);
		member(j, "color", categories[i].colour);
		json_key(j, "subcategories");
		json_array_begin(j);
		json_string(j, "Other");
		json_array_end(j);
		json_object_end(j);
	}
	json_array_end(j);
	json_object_end(j);
}

static void put_threads(struct firefox *f, uint64_t start_ns)
{
	const struct timeline_event *e = f->t->events;
	size_t end;

	json_key(&f->j, "threads");
	json_array_begin(&f->j);
	for (size_t first = 0; first < f->t->event_count; first = end) {
		for (end = first + 1; end < f->t->event_count && e[end].thread == e[first].thread;)
			end++;
		put_thread(f, first, end, start_ns);
	}
	json_array_end(&f->j);
}

static int write_profile(struct firefox *f, struct buf *out)
{
	uint64_t start_ns = UINT64_MAX;

	for (size_t i = 0; i < f->t->event_count; i++)
		start_ns = f->t->events[i].time_unix_ns < start_ns ? f->t->events[i].time_unix_ns : start_ns;
	for (size_t i = 0; i < f->t->stack_count && !f->error; i++)
		add_stack(f, i);
	if (f->error || f->frames.failed || f->frame_funcs.failed || f->depths.failed || f->text.failed)
		return -ENOMEM;
	json_init(&f->j, out, 0);
	json_object_begin(&f->j);
	put_meta(f, f->t->event_count ? start_ns : 0);
	put_libs(f);
	put_tables(f);
	put_threads(f, start_ns);
	json_object_end(&f->j);
	return out->failed ? -ENOMEM : 0;
}

int timeline_write_firefox(const struct timeline *t, struct buf *out)
{
	struct firefox f = { .t = t };
	struct intern **const tables[] = { &f.strings, &f.libs, &f.files, &f.funcs, &f.nodes };
	int err = 0;

	f.frame_of = calloc(t->frame_count + 1, sizeof(*f.frame_of));
	f.node_of = calloc(t->stack_count + 1, sizeof(*f.node_of));
	for (size_t i = 0; i < ARRAY_LEN(tables); i++) {
		*tables[i] = intern_new();
		err = *tables[i] ? err : -ENOMEM;
	}
	if (!err && f.frame_of && f.node_of)
		err = write_profile(&f, out);
	else
		err = -ENOMEM;
	for (size_t i = 0; i < ARRAY_LEN(tables); i++)
		intern_free(*tables[i]);
	free(f.frame_of);
	free(f.node_of);
	buf_fini(&f.frames);
	buf_fini(&f.frame_funcs);
	buf_fini(&f.depths);
	buf_fini(&f.text);
	return err;
}

static int write_packed(struct timeline *t, struct buf *out)
{
	AUTO(buf_fini) struct buf plain = BUF_EMPTY;
	int err = timeline_write_firefox(t, &plain);

	return err ? err : gzip_pack(plain.data, plain.len, FORMAT_GZIP_LEVEL, out);
}

static int write_profiles(const struct profiles *p, struct buf *out, struct buf *left_out)
{
	return format_write_timeline(p, write_packed, "attributes other than of threads", out, left_out);
}

const struct format format_firefox = {
	.name = "firefox",
	.suffixes = { ".firefox.json.gz" },
	.is_binary = true,
	.write = write_profiles,
};
