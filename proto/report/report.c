/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The line of sums, folded stacks and JSON. (Tables are in top_table.c, the call tree in tree_text.c.) Plain functions of
 * their input that append to a buffer; the buffer remembers when memory ran out. One thread, as the aggregates they read.
 */
#include "proto/report/report.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text/json.h"
#include "proto/text.h"

static bool is_nanoseconds(const struct weight_sum *sum)
{
	return !strcmp(sum->unit, "nanoseconds");
}

void report_sum(const struct weight_sum *sum, struct buf *out)
{
	text_count(out, sum->events);
	buf_puts(out, sum->events == 1 ? " sample" : " samples");
	if (sum->cpu_ns) {
		buf_puts(out, ", ");
		text_duration(out, sum->cpu_ns);
		buf_puts(out, " of CPU time");
	} else if (sum->events && (sum->weight != sum->events || strcmp(sum->unit, "count") != 0)) {
		buf_puts(out, ", ");
		if (is_nanoseconds(sum)) {
			text_duration(out, sum->weight);
		} else {
			text_count(out, sum->weight);
			buf_putc(out, ' ');
			text_name(out, sum->unit, 0);
		}
		buf_puts(out, " of ");
		text_name(out, sum->type, 0);
	}
	if (sum->other_events) {
		buf_puts(out, " (");
		text_count(out, sum->other_events);
		buf_puts(out, " of other types left out)");
	}
}

void report_weight(const struct weight_sum *sum, uint64_t weight, struct buf *out)
{
	double seconds = sum->weight ? (double)stack_sum_ns(sum) / 1e9 : 0;

	if (seconds > 0)
		buf_printf(out, "%.*f", seconds < 10 ? 3 : 2, seconds * (double)weight / (double)sum->weight);
	else
		buf_printf(out, "%" PRIu64, weight);
}

void report_place(const struct top_row *row, struct buf *out)
{
	const char *slash = strrchr(row->file, '/');

	if (row->file[0])
		buf_printf(out, " %s", slash ? slash + 1 : row->file);
	if (row->file[0] && row->line)
		buf_printf(out, ":%" PRId64, row->line);
}

static void folded_name(struct buf *out, const char *name)
{
	for (; *name; name++) {
		unsigned char c = (unsigned char)*name;

		buf_putc(out, c == ';' ? ':' : c < 0x20 || c == 0x7f ? ' ' : *name);
	}
}

int report_folded(struct tree *t, struct buf *out)
{
	AUTO(buf_fini) struct buf path = BUF_EMPTY, ends = BUF_EMPTY; /* ends: of each level's part of the path, size_t */
	uint32_t depth = 0;

	for (const struct call_node *root = tree_root_by_name(t), *n = root; n; n = call_next(root, n, &depth)) {
		if (!depth)
			continue;
		ends.len = (depth - 1) * sizeof(size_t);
		path.len = 0;
		if (depth > 1) {
			memcpy(&path.len, ends.data + ends.len - sizeof(size_t), sizeof(size_t));
			buf_putc(&path, ';');
		}
		folded_name(&path, tree_name(t, n));
		buf_append(&ends, &path.len, sizeof(size_t));
		if (path.failed || ends.failed)
			return -ENOMEM;
		if (tree_self(n)) {
			buf_append(out, path.data, path.len);
			buf_printf(out, " %" PRIu64 "\n", tree_self(n));
		}
	}
	return out->failed ? -ENOMEM : 0;
}

static void json_text(struct json *j, const char *key, const char *value)
{
	json_key(j, key);
	json_string(j, value);
}

static void json_number(struct json *j, const char *key, uint64_t value)
{
	json_key(j, key);
	json_u64(j, value);
}

static int json_tree(struct json *j, struct tree *tree)
{
	AUTO(buf_fini) struct buf path = BUF_EMPTY; /* the number of the node at each level, uint32_t */
	uint32_t depth = 0, number = 0, parent;

	json_array_begin(j);
	for (const struct call_node *root = tree_root(tree), *n = root; n; n = call_next(root, n, &depth), number++) {
		path.len = depth * sizeof(number);
		json_object_begin(j);
		json_text(j, "name", tree_name(tree, n));
		json_key(j, "parent");
		if (depth) {
			memcpy(&parent, path.data + path.len - sizeof(parent), sizeof(parent));
			json_i64(j, parent);
		} else {
			json_i64(j, -1);
		}
		json_number(j, "self", tree_self(n));
		json_number(j, "total", tree_total(n));
		json_object_end(j);
		buf_append(&path, &number, sizeof(number));
		if (path.failed)
			return -ENOMEM;
	}
	json_array_end(j);
	return 0;
}

static int json_processes(struct json *j, struct activity *processes)
{
	uint32_t count;
	const struct activity_row *const *rows = activity_rows(processes, &count);

	if (!rows)
		return -ENOMEM;
	json_key(j, "processes");
	json_array_begin(j);
	for (uint32_t i = 0; i < count; i++) {
		json_object_begin(j);
		json_text(j, "name", rows[i]->name);
		json_key(j, "pid");
		json_i64(j, rows[i]->pid);
		json_number(j, "threads", rows[i]->threads);
		json_number(j, "samples", rows[i]->events);
		json_number(j, "weight", rows[i]->weight);
		json_object_end(j);
	}
	json_array_end(j);
	return 0;
}

int report_json(struct top *t, struct activity *processes, struct tree *tree, struct buf *out)
{
	const struct weight_sum *sum = top_sum(t);
	struct json j;
	uint32_t count;
	const struct top_row *rows = top_rows(t, &count);

	if (!rows)
		return -ENOMEM;
	json_init(&j, out, 0);
	json_object_begin(&j);
	json_number(&j, "samples", sum->events);
	json_number(&j, "weight", sum->weight);
	json_text(&j, "type", sum->type);
	json_text(&j, "unit", sum->unit);
	json_number(&j, "cpu_ns", sum->cpu_ns);
	json_key(&j, "functions");
	json_array_begin(&j);
	for (uint32_t i = 0; i < count; i++) {
		json_object_begin(&j);
		json_text(&j, "name", rows[i].name);
		json_text(&j, "module", rows[i].module);
		if (rows[i].group[0])
			json_text(&j, "group", rows[i].group);
		if (rows[i].file[0]) {
			json_text(&j, "file", rows[i].file);
			json_key(&j, "line");
			json_i64(&j, rows[i].line);
		}
		json_text(&j, "type", rows[i].type);
		json_text(&j, "source", rows[i].source);
		json_number(&j, "self", rows[i].all.self);
		json_number(&j, "total", rows[i].all.total);
		json_object_end(&j);
	}
	json_array_end(&j);
	if (json_processes(&j, processes) < 0)
		return -ENOMEM;
	json_key(&j, "tree");
	if (json_tree(&j, tree) < 0)
		return -ENOMEM;
	json_object_end(&j);
	buf_putc(out, '\n');
	return out->failed ? -ENOMEM : 0;
}
