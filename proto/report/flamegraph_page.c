/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The page holds the whole tree, in pre-order and by columns, as JSON in a script element that is not run; its own scripts
 * draw from that. Only its names are held in memory beside the output. Names stand there once. JSON's strings are the only
 * place where '<' can come from, and it is escaped there, so that nothing in a name can end the element.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/embed.h"
#include "base/intern.h"
#include "base/text/digits.h"
#include "base/text/json.h"
#include "proto/report/flamegraph.h"
#include "proto/report/report.h"

EMBED(flamegraph_page_css, "proto/report/flamegraph_page.css");
EMBED(flamegraph_page_js, "proto/report/flamegraph_page.js");
EMBED(flamegraph_plain_js, "proto/report/flamegraph_plain.js");

enum { INLINED = 8 }; /* beside the kind; as in flamegraph_plain.js */

/* The arrays of numbers that tell the tree, one for each node in pre-order. */
enum column { COLUMN_NAME, COLUMN_DEPTH, COLUMN_SELF, COLUMN_SECOND, COLUMN_KIND, COLUMNS };
static const char *const column_names[COLUMNS] = { "name", "depth", "self", "second", "kind" };

static void put_number(struct buf *out, uint64_t n)
{
	char text[DIGITS_MAX];

	buf_append(out, text, (size_t)(digits_u64(text, n) - text));
}

static int number_names(struct tree *t, const struct call_node *root, struct intern *names)
{
	uint32_t depth = 0, name;

	for (const struct call_node *n = root; n; n = call_next(root, n, &depth)) {
		const char *text = tree_name(t, n);

		/* "" is the root and nothing else: a frame has a name or an address */
		if (intern_add(names, text, strlen(text), &name) < 0)
			return -ENOMEM;
	}
	return 0;
}

static uint64_t number_of(struct tree *t, const struct intern *names, const struct call_node *n, uint32_t depth,
			  enum column column)
{
	const char *text = tree_name(t, n);
	uint32_t name = 0;

	switch (column) {
	case COLUMN_NAME:
		intern_find(names, text, strlen(text), &name);
		return name;
	case COLUMN_DEPTH:
		return depth;
	case COLUMN_SELF:
		return tree_self(n);
	case COLUMN_SECOND:
		return (uint64_t)n->self[1];
	default:
		return n->kind | (n->is_inlined ? INLINED : 0);
	}
}

static void put_column(struct buf *out, struct tree *t, const struct call_node *root, const struct intern *names,
		       enum column column)
{
	uint32_t depth = 0;

	buf_printf(out, "%s\"%s\":[", column ? "," : "", column_names[column]);
	for (const struct call_node *n = root; n; n = call_next(root, n, &depth)) {
		if (n != root)
			buf_putc(out, ',');
		put_number(out, number_of(t, names, n, depth, column));
	}
	buf_putc(out, ']');
}

static void put_names(struct buf *out, const struct intern *names)
{
	struct json j;

	buf_puts(out, "\"names\":");
	json_init(&j, out, 0);
	j.html_safe = true;
	json_array_begin(&j);
	for (uint32_t i = 0; i < intern_count(names); i++) {
		size_t len;
		const char *name = intern_get(names, i, &len);

		json_string_n(&j, i ? name : "all", i ? len : strlen("all"));
	}
	json_array_end(&j);
	buf_puts(out, ",\"shades\":");
	for (uint32_t i = 0; i < intern_count(names); i++) {
		size_t len;
		const char *name = intern_get(names, i, &len);

		buf_putc(out, i ? ',' : '[');
		put_number(out, flamegraph_shade(name, len));
	}
	buf_putc(out, ']');
}

/* Writes the data of the page's own script, before the names, to which it may add. */
static int put_look(struct buf *out, const struct flamegraph_page *page, struct intern *names)
{
	struct json j;
	int err = 0;

	buf_puts(out, "\"look\":");
	json_init(&j, out, 0);
	j.html_safe = true;
	json_object_begin(&j);
	if (page->data)
		err = page->data(page->arg, names, &j);
	json_object_end(&j);
	return err;
}

static int put_data(struct buf *out, const struct flamegraph_page *page, struct tree *t, struct intern *names)
{
	const struct call_node *root = tree_root_by_name(t);
	int err = number_names(t, root, names);

	buf_puts(out, "{");
	err = err ? err : put_look(out, page, names);
	if (err)
		return err;
	buf_puts(out, ",");
	put_names(out, names);
	buf_puts(out, ",\"tree\":{");
	for (enum column i = 0; i < COLUMNS; i++)
		if (i != COLUMN_SECOND || page->has_sides)
			put_column(out, t, root, names, i);
	buf_puts(out, "}}");
	return 0;
}

static void put_head(struct buf *out, const char *title, const char *table_head)
{
	buf_puts(out, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
		      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; img-src data:; "
		      "style-src 'unsafe-inline'; script-src 'unsafe-inline'\">\n"
		      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
		      "<link rel=\"icon\" href=\"data:,\">\n<title>hearth: ");
	buf_puts(out, title);
	buf_puts(out, "</title>\n<style>\n");
	buf_append(out, flamegraph_page_css, EMBEDDED_LEN(flamegraph_page_css));
	buf_puts(out, "</style>\n</head>\n<body>\n<header>\n<h1>");
	buf_puts(out, title);
	buf_puts(out, "</h1>\n<div id=\"views\" role=\"group\" aria-label=\"view\">\n"
		      "<button type=\"button\" data-view=\"flame\" aria-pressed=\"true\">Flame graph</button>\n"
		      "<button type=\"button\" data-view=\"callers\" aria-pressed=\"false\">Callers</button>\n"
		      "<button type=\"button\" data-view=\"table\" aria-pressed=\"false\">Table</button>\n</div>\n"
		      "<input id=\"search\" type=\"search\" placeholder=\"search, a regular expression (/)\" "
		      "aria-label=\"search\">\n"
		      "<output id=\"found\" for=\"search\"></output>\n<div id=\"tools\">\n"
		      "<button type=\"button\" id=\"reset\" hidden>Reset zoom</button>\n"
		      "<button type=\"button\" id=\"copy\">Copy name</button>\n"
		      "<button type=\"button\" id=\"theme\">Light/dark</button>\n</div>\n</header>\n"
		      "<div id=\"info\" aria-live=\"polite\"></div>\n<div id=\"legend\"></div>\n");
	buf_puts(out, "<noscript><p>This page draws the profile with a script, which is part of it.</p></noscript>\n"
		      "<main id=\"main\">\n<div id=\"graph\"><canvas id=\"canvas\" role=\"img\" "
		      "aria-label=\"flame graph; the table has the same figures\"></canvas></div>\n"
		      "<div id=\"table\" hidden>\n<table>\n<thead><tr>");
	buf_puts(out, table_head);
	buf_puts(out, "</tr></thead>\n"
		      "<tbody id=\"rows\"></tbody>\n</table>\n<p id=\"more\"></p>\n</div>\n</main>\n"
		      "<footer>hearth " HEARTH_VERSION "</footer>\n");
}

int flamegraph_write_html_as(struct tree *t, const struct flamegraph_page *page, struct buf *out)
{
	AUTO(buf_fini) struct buf title = BUF_EMPTY;
	struct intern *names = intern_new();
	int err = names ? 0 : -ENOMEM;

	page->title(page->arg, &title);
	if (!err) {
		put_head(out, buf_text(&title), page->table_head);
		buf_puts(out, "<script id=\"data\" type=\"application/json\">");
		err = put_data(out, page, t, names);
		buf_puts(out, "</script>\n<script>\n");
		buf_append(out, page->script, page->script_len);
		buf_append(out, flamegraph_page_js, EMBEDDED_LEN(flamegraph_page_js));
		buf_puts(out, "</script>\n</body>\n</html>\n");
	}
	intern_free(names);
	return err ? err : out->failed || title.failed ? -ENOMEM : 0;
}

/* --- the plain page --- */

static void put_sum(void *arg, struct buf *out)
{
	AUTO(buf_fini) struct buf text = BUF_EMPTY;

	report_sum(tree_sum(arg), &text);
	flamegraph_text(out, (const char *)text.data, text.len);
	out->failed |= text.failed;
}

static int put_plain(void *arg, struct intern *names, struct json *j)
{
	AUTO(buf_fini) struct buf colour = BUF_EMPTY;

	(void)names;
	json_key(j, "unit");
	json_string(j, tree_sum(arg)->unit);
	json_key(j, "colours");
	json_array_begin(j);
	for (int kind = TREE_PROCESS; kind <= TREE_MARKER; kind++) {
		json_array_begin(j);
		for (unsigned shade = 0; shade < FLAMEGRAPH_SHADES; shade++) {
			buf_reset(&colour);
			flamegraph_colour((enum tree_kind)kind, shade, &colour);
			json_string(j, buf_text(&colour));
			j->out->failed |= colour.failed;
		}
		json_array_end(j);
	}
	json_array_end(j);
	return 0;
}

int flamegraph_write_html(struct tree *t, struct buf *out)
{
	const struct flamegraph_page page = {
		.title = put_sum,
		.data = put_plain,
		.table_head =
			"<th><button type=\"button\" data-by=\"self\">Self</button></th><th class=\"detail\">Self</th>"
			"<th><button type=\"button\" data-by=\"total\">Total</button></th><th class=\"detail\">Total</th>"
			"<th>Function</th>",
		.script = flamegraph_plain_js,
		.script_len = EMBEDDED_LEN(flamegraph_plain_js),
		.arg = t,
	};

	return flamegraph_write_html_as(t, &page, out);
}
