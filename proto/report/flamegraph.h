/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A call tree as a picture: an SVG file that is complete in itself, with a script in it that zooms, searches and shows the
 * frame below the pointer; without scripts it is still a flame graph with tool tips. The root is at the top, children stand
 * by name, so that two pictures can be compared. Appearance and script: proto/report/flamegraph.css,
 * proto/report/flamegraph.js.
 */
#ifndef HEARTH_PROTO_REPORT_FLAMEGRAPH_H
#define HEARTH_PROTO_REPORT_FLAMEGRAPH_H

#include "proto/sums/tree.h"

struct intern;
struct json;

/* Appends the picture of @t to @out. Frames narrower than a tenth of a pixel are not drawn, and that is said. 0 or -ENOMEM.
 */
int flamegraph_write_svg(struct tree *t, struct buf *out);

/* The look of a frame in a picture, without its place: each function appends XML to @out. */
struct flamegraph_look {
	void (*style)(void *arg, struct buf *out);				/* CSS of the classes */
	void (*heading)(void *arg, struct buf *out);				/* one line */
	void (*class)(void *arg, const struct call_node *n, struct buf *out);	/* of the frame's box */
	void (*figures)(void *arg, const struct call_node *n, struct buf *out); /* what is said below its name */
	void *arg;
};
int flamegraph_write_svg_as(struct tree *t, const struct flamegraph_look *look, struct buf *out);

/*
 * Appends @t as a page that is complete in itself and asks for nothing from elsewhere: flame graph, callers, table of
 * functions, search. The page holds every frame, however narrow. Needs a browser that runs its script
 * (proto/report/flamegraph_page.js). 0 or -ENOMEM.
 */
int flamegraph_write_html(struct tree *t, struct buf *out);

/* The look of a frame on such a page, in the legend and in the table: a script that makes it, and what the script needs. */
struct flamegraph_page {
	void (*title)(void *arg, struct buf *out); /* one line, as XML */
	/* Adds members to the object that the script gets as data.look; functions are called by their numbers in @names, to
	 * which those that are not in the tree may be added. 0 or -ENOMEM. NULL: nothing. */
	int (*data)(void *arg, struct intern *names, struct json *j);
	const char *table_head; /* the cells of its first row, HTML */
	const char *script;	/* as proto/report/flamegraph_plain.js; ends at @script_len */
	size_t script_len;
	bool has_sides; /* the tree has weights of two */
	void *arg;
};
int flamegraph_write_html_as(struct tree *t, const struct flamegraph_page *page, struct buf *out);

/* --- what both share --- */

enum { FLAMEGRAPH_SHADES = 5 };

/* Appends a kind's colour as CSS writes it: one a kind, in shades, so that neighbours differ. */
void flamegraph_colour(enum tree_kind kind, unsigned shade, struct buf *out);

/* The shade of a name, the same in every picture. */
unsigned flamegraph_shade(const char *name, size_t len);

/* Appends @text for XML and HTML; control characters, which they have no place for, become '?'. */
void flamegraph_text(struct buf *out, const char *text, size_t len);

#endif
