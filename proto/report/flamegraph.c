/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tree is walked twice: once for what will be drawn (how deep, how much is too narrow), once to write it. The place of a
 * frame follows from its parent and the siblings before it, which are kept in a stack of one place a level.
 */
#include "proto/report/flamegraph.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/embed.h"
#include "proto/report/report.h"

EMBED(flamegraph_css, "proto/report/flamegraph.css");
EMBED(flamegraph_js, "proto/report/flamegraph.js");

enum {
	WIDTH = 1200, /* of the coordinates; the picture takes the window's */
	MARGIN = 10,
	HEAD = 86, /* title, search, the frame below the pointer */
	ROW = 17,
	MAX_NAME_BYTES = 2048,
};

static const double LETTER = 7.23; /* width of the font's letters at 12 px */
static const double NARROWEST = 0.1;

struct picture {
	struct buf *out;
	const struct flamegraph_look *look;
	const struct tree *tree;
	const struct call_node *root;
	uint64_t total;
	double *next; /* by level: where the next sibling begins; owned */
	uint32_t depth;
	uint64_t drawn, narrow;
};

static double pixels(const struct picture *p, uint64_t weight)
{
	return (double)weight / (double)p->total * (WIDTH - 2 * MARGIN);
}

void flamegraph_text(struct buf *out, const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		uint8_t c = (uint8_t)text[i];

		if (c == '&')
			buf_puts(out, "&amp;");
		else if (c == '<')
			buf_puts(out, "&lt;");
		else if (c == '>')
			buf_puts(out, "&gt;");
		else if (c == '"')
			buf_puts(out, "&quot;");
		else
			buf_putc(out, c < ' ' || c == 0x7f ? '?' : (char)c);
	}
}

/* How many of the first @max bytes of a name are whole characters. */
static size_t whole(const char *name, size_t max)
{
	size_t len = strnlen(name, max + 1);

	if (len <= max)
		return len;
	for (len = max; len && ((uint8_t)name[len] & 0xc0) == 0x80; len--)
		;
	return len;
}

static void put_label(struct buf *out, const char *name, double width)
{
	size_t room = width > 6 ? (size_t)((width - 6) / LETTER) : 0, len;

	if (room < 3)
		return;
	len = whole(name, strlen(name) <= room ? room : room - 1);
	flamegraph_text(out, name, len);
	if (name[len])
		buf_puts(out, "\u2026");
}

static const struct {
	char class;
	int hue, saturation, lightness;
} colours[] = {
	[TREE_PROCESS] = { 'p', 220, 8, 80 }, [TREE_KERNEL] = { 'k', 28, 82, 66 },  [TREE_NATIVE] = { 'n', 46, 80, 66 },
	[TREE_GO] = { 'g', 196, 62, 70 },     [TREE_SCRIPT] = { 's', 104, 45, 66 }, [TREE_MARKER] = { 'm', 0, 70, 65 },
};

void flamegraph_colour(enum tree_kind kind, unsigned shade, struct buf *out)
{
	buf_printf(out, "hsl(%d %d%% %d%%)", colours[kind].hue - (int)shade * 2, colours[kind].saturation,
		   colours[kind].lightness + (int)shade * 3);
}

static void put_colours(void *arg, struct buf *out)
{
	(void)arg;
	for (size_t i = 0; i < ARRAY_LEN(colours); i++) {
		for (unsigned shade = 0; shade < FLAMEGRAPH_SHADES; shade++) {
			buf_printf(out, ".%c%u{fill:", colours[i].class, shade);
			flamegraph_colour((enum tree_kind)i, shade, out);
			buf_putc(out, '}');
		}
	}
	buf_putc(out, '\n');
}

/* FNV-1a. */
unsigned flamegraph_shade(const char *name, size_t len)
{
	uint32_t hash = 2166136261u;

	for (size_t i = 0; i < len; i++)
		hash = (hash ^ (uint8_t)name[i]) * 16777619u;
	return (hash >> 16) % FLAMEGRAPH_SHADES;
}

static void put_class(void *arg, const struct call_node *n, struct buf *out)
{
	const char *name = tree_name(arg, n);

	name = *name ? name : "all";
	buf_printf(out, "%c%u%s", colours[n->kind].class, flamegraph_shade(name, strlen(name)), n->is_inlined ? " i" : "");
}

static void put_figures(void *arg, const struct call_node *n, struct buf *out)
{
	double total = (double)tree_sum(arg)->weight;

	buf_printf(out, "%s%" PRIu64 " samples, %.2f %%", n->is_inlined ? "inlined, " : "", tree_total(n),
		   100.0 * (double)tree_total(n) / total);
	if (tree_self(n))
		buf_printf(out, " (itself %.2f %%)", 100.0 * (double)tree_self(n) / total);
}

static void put_frame(struct picture *p, const struct call_node *n, uint32_t depth, double x)
{
	const char *name = depth ? tree_name(p->tree, n) : "all";
	double width = pixels(p, tree_total(n));
	size_t len = whole(name, MAX_NAME_BYTES);
	struct buf *out = p->out;

	buf_puts(out, "<g tabindex=\"-1\" data-name=\"");
	flamegraph_text(out, name, len);
	buf_printf(out, "\" data-x=\"%.10g\" data-w=\"%.10g\" data-y=\"%u\"><title>", (x - MARGIN) / (WIDTH - 2 * MARGIN),
		   (double)tree_total(n) / (double)p->total, depth);
	flamegraph_text(out, name, len);
	buf_putc(out, '\n');
	p->look->figures(p->look->arg, n, out);
	buf_puts(out, "</title><rect class=\"");
	p->look->class(p->look->arg, n, out);
	buf_printf(out, "\" x=\"%.2f\" y=\"%u\" width=\"%.2f\" height=\"%d\"/>", x, HEAD + depth * ROW, width, ROW - 1);
	buf_printf(out, "<text x=\"%.2f\" y=\"%u\">", x + 3, HEAD + depth * ROW + 12);
	put_label(out, name, width);
	buf_puts(out, "</text></g>\n");
}

/* Calls put_frame, when @is_drawing, for what is wide enough; else finds out about it. */
static void walk(struct picture *p, bool is_drawing)
{
	const struct call_node *root = p->root, *n = root;

	for (uint32_t depth = 0; n;) {
		double width = pixels(p, tree_total(n)), x = is_drawing ? p->next[depth] : 0;
		bool is_wide = width >= NARROWEST;

		if (is_drawing) {
			p->next[depth] += width;
			p->next[depth + 1] = x;
			if (is_wide)
				put_frame(p, n, depth, x);
		} else if (is_wide) {
			p->drawn++;
			if (depth > p->depth)
				p->depth = depth;
		} else {
			p->narrow++;
		}
		/* Below a narrow frame all are narrow. */
		if (is_wide && n->child) {
			n = call_child(root, n);
			depth++;
			continue;
		}
		while (n != root && !n->sibling) {
			n = call_parent(root, n);
			depth--;
		}
		n = call_sibling(root, n);
	}
}

static void put_head(struct picture *p)
{
	uint32_t height = HEAD + (p->depth + 1) * ROW + 2 * MARGIN;
	struct buf *out = p->out;

	buf_printf(out,
		   "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
		   "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%u\" viewBox=\"0 0 %d %u\" "
		   "data-margin=\"%d\" data-letter=\"%.2f\">\n<title>hearth</title>\n<style>",
		   WIDTH, height, WIDTH, height, MARGIN, LETTER);
	buf_append(out, flamegraph_css, EMBEDDED_LEN(flamegraph_css));
	p->look->style(p->look->arg, out);
	buf_printf(out, "</style>\n<text class=\"title\" x=\"%d\" y=\"22\">", MARGIN);
	p->look->heading(p->look->arg, out);
	buf_puts(out, "</text>\n");
	if (p->narrow)
		buf_printf(out,
			   "<text class=\"quiet\" x=\"%d\" y=\"22\" text-anchor=\"end\">%" PRIu64
			   " frames are too narrow to be drawn</text>\n",
			   WIDTH - MARGIN, p->narrow);
	buf_printf(
		out,
		"<foreignObject x=\"%d\" y=\"32\" width=\"240\" height=\"24\"><input xmlns=\"http://www.w3.org/1999/xhtml\" "
		"id=\"search\" type=\"search\" placeholder=\"search (/)\" aria-label=\"search\"/></foreignObject>\n"
		"<text id=\"found\" class=\"quiet\" x=\"%d\" y=\"48\"></text>\n"
		"<text id=\"info\" x=\"%d\" y=\"48\">a click zooms, Esc goes back, c copies the name</text>\n"
		"<text id=\"reset\" class=\"button\" x=\"%d\" y=\"48\" text-anchor=\"end\" style=\"display: none\">reset "
		"zoom</text>\n",
		MARGIN, MARGIN + 250, MARGIN, WIDTH - MARGIN);
}

int flamegraph_write_svg_as(struct tree *t, const struct flamegraph_look *look, struct buf *out)
{
	const struct call_node *root = tree_root_by_name(t);
	const uint64_t total = tree_total(root);
	struct picture p = { .out = out, .look = look, .tree = t, .root = root, .total = total ? total : 1 };

	walk(&p, false);
	p.next = calloc(p.depth + 3, sizeof(*p.next));
	if (!p.next)
		return -ENOMEM;
	p.next[0] = MARGIN;
	put_head(&p);
	buf_puts(out, "<g id=\"frames\">\n");
	walk(&p, true);
	buf_puts(out, "</g>\n<script><![CDATA[\n");
	buf_append(out, flamegraph_js, EMBEDDED_LEN(flamegraph_js));
	buf_puts(out, "]]></script>\n</svg>\n");
	free(p.next);
	return out->failed ? -ENOMEM : 0;
}

/* --- the plain picture --- */

static void put_sum(void *arg, struct buf *out)
{
	AUTO(buf_fini) struct buf text = BUF_EMPTY;

	report_sum(tree_sum(arg), &text);
	flamegraph_text(out, (const char *)text.data, text.len);
	out->failed |= text.failed;
}

int flamegraph_write_svg(struct tree *t, struct buf *out)
{
	const struct flamegraph_look look = { put_colours, put_sum, put_class, put_figures, t };

	return flamegraph_write_svg_as(t, &look, out);
}
