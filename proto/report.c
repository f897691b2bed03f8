/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The line of sums, the table of functions, folded stacks and JSON. (The call tree is in report_tree.c.) Plain functions of
 * their input that append to a buffer; the buffer remembers when memory ran out. One thread, as the aggregates they read.
 */
#include "proto/report.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "proto/report_text.h"

enum { FUNCTION_MIN_COLUMNS = 12 };

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

static unsigned digits(uint64_t n)
{
	unsigned count = 1;

	for (; n >= 10; n /= 10)
		count++;
	return count;
}

static void top_row_print(const struct top_row *row, uint64_t weight, unsigned number_columns, unsigned module_columns,
			  unsigned function_columns, struct buf *out)
{
	buf_printf(out, "%6.2f%% %6.2f%%  %*" PRIu64 "  %*" PRIu64 "  ", text_percent(row->all.self, weight),
		   text_percent(row->all.total, weight), (int)number_columns, row->all.self, (int)number_columns,
		   row->all.total);
	text_padded(out, row->module, module_columns);
	buf_puts(out, "  ");
	text_name(out, row->name, function_columns);
	buf_putc(out, '\n');
}

int report_top(struct top *t, uint32_t max_rows, unsigned columns, struct buf *out)
{
	uint64_t weight = top_sum(t)->weight, rest = 0;
	unsigned number_columns = digits(weight) > 5 ? digits(weight) : 5, module_columns = 6, function_columns = 0;
	uint32_t count, shown;
	const struct top_row *rows = top_rows(t, &count);

	report_sum(top_sum(t), out);
	buf_putc(out, '\n');
	shown = max_rows && max_rows < count ? max_rows : count;
	for (uint32_t i = 0; i < shown; i++) {
		unsigned wanted = text_columns(rows[i].module);

		module_columns = wanted > module_columns ? wanted : module_columns;
	}
	if (columns) {
		unsigned before;

		module_columns = module_columns < columns / 5 ? module_columns : columns / 5;
		before = 19 + 2 * (number_columns + 1) + module_columns + 2;
		function_columns = columns > before + FUNCTION_MIN_COLUMNS ? columns - before : FUNCTION_MIN_COLUMNS;
	}
	if (count)
		buf_printf(out, "\n  SELF%%  TOTAL%%  %*s  %*s  %-*s  FUNCTION\n", (int)number_columns, "SELF",
			   (int)number_columns, "TOTAL", (int)module_columns, "MODULE");
	for (uint32_t i = 0; i < shown; i++)
		top_row_print(&rows[i], weight, number_columns, module_columns, function_columns, out);
	for (uint32_t i = shown; i < count; i++)
		rest += rows[i].all.self;
	if (shown < count)
		buf_printf(out, "%6.2f%%          %*" PRIu64 "  (%" PRIu32 " more)\n", text_percent(rest, weight),
			   (int)number_columns, rest, count - shown);
	return out->failed ? -ENOMEM : 0;
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

	for (const struct tree_node *n = tree_root_by_name(t); n; n = tree_next(n, &depth)) {
		if (!depth)
			continue;
		ends.len = (depth - 1) * sizeof(size_t);
		path.len = 0;
		if (depth > 1) {
			memcpy(&path.len, ends.data + ends.len - sizeof(size_t), sizeof(size_t));
			buf_putc(&path, ';');
		}
		folded_name(&path, n->name);
		buf_append(&ends, &path.len, sizeof(size_t));
		if (path.failed || ends.failed)
			return -ENOMEM;
		if (n->self) {
			buf_append(out, path.data, path.len);
			buf_printf(out, " %" PRIu64 "\n", n->self);
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
	for (const struct tree_node *n = tree_root(tree); n; n = tree_next(n, &depth), number++) {
		path.len = depth * sizeof(number);
		json_object_begin(j);
		json_text(j, "name", n->name);
		json_key(j, "parent");
		if (depth) {
			memcpy(&parent, path.data + path.len - sizeof(parent), sizeof(parent));
			json_i64(j, parent);
		} else {
			json_i64(j, -1);
		}
		json_number(j, "self", n->self);
		json_number(j, "total", n->total);
		json_object_end(j);
		buf_append(&path, &number, sizeof(number));
		if (path.failed)
			return -ENOMEM;
	}
	json_array_end(j);
	return 0;
}

int report_json(struct top *t, struct tree *tree, struct buf *out)
{
	const struct weight_sum *sum = top_sum(t);
	struct json j;
	uint32_t count;
	const struct top_row *rows = top_rows(t, &count);

	json_init(&j, out, 0);
	json_object_begin(&j);
	json_number(&j, "samples", sum->events);
	json_number(&j, "weight", sum->weight);
	json_text(&j, "type", sum->type);
	json_text(&j, "unit", sum->unit);
	json_key(&j, "functions");
	json_array_begin(&j);
	for (uint32_t i = 0; i < count; i++) {
		json_object_begin(&j);
		json_text(&j, "name", rows[i].name);
		json_text(&j, "module", rows[i].module);
		json_text(&j, "type", rows[i].type);
		json_number(&j, "self", rows[i].all.self);
		json_number(&j, "total", rows[i].all.total);
		json_object_end(&j);
	}
	json_array_end(&j);
	json_key(&j, "tree");
	if (json_tree(&j, tree) < 0)
		return -ENOMEM;
	json_object_end(&j);
	buf_putc(out, '\n');
	return out->failed ? -ENOMEM : 0;
}
