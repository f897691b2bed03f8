/* SPDX-License-Identifier: Apache-2.0 */
/* The formats that a call tree is written in: folded stacks, and flame graphs as a picture and as a page. */
#include "base/buf.h"
#include "proto/formats/formats.h"
#include "proto/report/flamegraph.h"
#include "proto/report/report.h"

static void *make_sum(void)
{
	return tree_new();
}

static void free_sum(void *sum)
{
	tree_free(sum);
}

static int add_to_sum(void *sum, const struct profiles *p)
{
	return tree_add(sum, p);
}

static size_t sum_bytes(const void *sum)
{
	return tree_memory_bytes(sum);
}

static int write_sum(void *sum, const struct format *format, struct buf *out, struct buf *left_out)
{
	int err = format->from_tree(sum, out);

	buf_puts(left_out, "everything but names and counts");
	format_tell(left_out, tree_sum(sum)->other_events, "samples of further kinds");
	return err;
}

const struct format_sum format_sum_tree = {
	.make = make_sum,
	.free = free_sum,
	.add = add_to_sum,
	.memory_bytes = sum_bytes,
	.write = write_sum,
};

const struct format format_folded = {
	.name = "folded",
	.suffixes = { ".folded" },
	.title = "folded stacks",
	.sign = SIGN_COUNT,
	.fits = folded_fits,
	.read = folded_read,
	.sum = &format_sum_tree,
	.from_tree = report_folded,
};
const struct format format_svg = {
	.name = "svg",
	.suffixes = { ".svg" },
	.sum = &format_sum_tree,
	.from_tree = flamegraph_write_svg,
};
const struct format format_html = {
	.name = "html",
	.suffixes = { ".html" },
	.sum = &format_sum_tree,
	.from_tree = flamegraph_write_html,
};
