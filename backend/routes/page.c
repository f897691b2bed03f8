/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The page: the files of backend/page/, embedded, each answered with an ETag and packed once, when it is first asked for.
 * The page is one origin and says so: it may run its own scripts and styles and talk to this server, nothing else. Browsers
 * ask for the page's files again each time, and answered 304 while they are the same, so a new hearth is never seen through
 * an old page. Loop's thread only.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "backend/routes/handlers.h"
#include "base/cleanup.h"
#include "base/embed.h"
#include "base/metrics.h"
#include "base/pack/gzip.h"

#define PAGE_FILES(X)                                          \
	X(index, "index.html", "text/html; charset=utf-8")     \
	X(style, "style.css", "text/css; charset=utf-8")       \
	X(api, "api.js", JAVASCRIPT)                           \
	X(app, "app.js", JAVASCRIPT)                           \
	X(colors, "colors.js", JAVASCRIPT)                     \
	X(details, "details.js", JAVASCRIPT)                   \
	X(dom, "dom.js", JAVASCRIPT)                           \
	X(empty, "empty.js", JAVASCRIPT)                       \
	X(flame, "flame.js", JAVASCRIPT)                       \
	X(flamepane, "flamepane.js", JAVASCRIPT)               \
	X(format, "format.js", JAVASCRIPT)                     \
	X(header, "header.js", JAVASCRIPT)                     \
	X(help, "help.js", JAVASCRIPT)                         \
	X(joined, "joined.js", JAVASCRIPT)                     \
	X(login, "login.html", "text/html; charset=utf-8")     \
	X(login_style, "login.css", "text/css; charset=utf-8") \
	X(login_script, "login.js", JAVASCRIPT)                \
	X(menu, "menu.js", JAVASCRIPT)                         \
	X(part_exemplars, "part_exemplars.js", JAVASCRIPT)     \
	X(part_logs, "part_logs.js", JAVASCRIPT)               \
	X(part_traces, "part_traces.js", JAVASCRIPT)           \
	X(querybox, "querybox.js", JAVASCRIPT)                 \
	X(rows, "rows.js", JAVASCRIPT)                         \
	X(sides, "sides.js", JAVASCRIPT)                       \
	X(state, "state.js", JAVASCRIPT)                       \
	X(timeline, "timeline.js", JAVASCRIPT)                 \
	X(transform, "transform.js", JAVASCRIPT)               \
	X(tree, "tree.js", JAVASCRIPT)                         \
	X(view_diff, "view_diff.js", JAVASCRIPT)               \
	X(view_executables, "view_executables.js", JAVASCRIPT) \
	X(view_flame, "view_flame.js", JAVASCRIPT)             \
	X(view_health, "view_health.js", JAVASCRIPT)           \
	X(view_hearth, "view_hearth.js", JAVASCRIPT)           \
	X(view_heat, "view_heat.js", JAVASCRIPT)               \
	X(view_sandwich, "view_sandwich.js", JAVASCRIPT)       \
	X(view_top, "view_top.js", JAVASCRIPT)                 \
	X(view_truth, "view_truth.js", JAVASCRIPT)             \
	X(view_trace, "view_trace.js", JAVASCRIPT)             \
	X(view_who, "view_who.js", JAVASCRIPT)

#define JAVASCRIPT "text/javascript; charset=utf-8"

#define EMBED_FILE(symbol, name, type) EMBED(page_file_##symbol, "backend/page/" name);
PAGE_FILES(EMBED_FILE)

enum { GZIP_LEVEL = 9, HEADERS = 10 };

struct page_form { /* plain or packed */
	char etag[32];
	struct buf packed;
	struct reply_header headers[HEADERS];
};

struct page {
	const char *name, *content_type;
	const char *data, *end;
	struct page_form forms[2]; /* [gzip]; without an ETag: not made yet */
};

#define FILE_ENTRY(symbol, file, type) \
	{ .name = (file), .content_type = (type), .data = page_file_##symbol, .end = page_file_##symbol##_end },
static struct page pages[] = { PAGE_FILES(FILE_ENTRY) };

static const struct reply_header common_headers[] = {
	{ "Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
				     "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'" },
	{ "X-Content-Type-Options", "nosniff" },
	{ "Referrer-Policy", "no-referrer" },
	{ "Cross-Origin-Opener-Policy", "same-origin" },
	{ "Cross-Origin-Resource-Policy", "same-origin" },
	{ "Cache-Control", "no-cache" },
	{ "Vary", "Accept-Encoding" },
};
_Static_assert(ARRAY_LEN(common_headers) + 3 <= HEADERS, "and ETag, Content-Encoding, the end");

static struct page *page_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(pages); i++)
		if (strcmp(pages[i].name, name) == 0)
			return &pages[i];
	return NULL;
}

/* Makes the form of a page: 0 or -ENOMEM, after which the next request tries again. */
static int form_make(const struct page *page, struct page_form *form, bool gzip)
{
	size_t len = (size_t)(page->end - page->data), n = ARRAY_LEN(common_headers);
	if (gzip && gzip_pack(page->data, len, GZIP_LEVEL, &form->packed)) {
		buf_fini(&form->packed);
		return -ENOMEM;
	}

	memcpy(form->headers, common_headers, sizeof(common_headers));
	form->headers[n++] = (struct reply_header){ MHD_HTTP_HEADER_ETAG, form->etag };
	if (gzip)
		form->headers[n++] = (struct reply_header){ MHD_HTTP_HEADER_CONTENT_ENCODING, "gzip" };
	snprintf(form->etag, sizeof(form->etag), "\"%016llx%s\"", (unsigned long long)XXH3_64bits(page->data, len),
		 gzip ? "-gz" : "");
	return 0;
}

/* Replies with @page and @status; when the client has the page already, without it. */
static void reply_page(struct request *r, struct page *page, unsigned status)
{
	bool gzip = request_takes_gzip(r);
	struct page_form *form = &page->forms[gzip];

	if (!form->etag[0] && form_make(page, form, gzip)) {
		reply_text(r, MHD_HTTP_INTERNAL_SERVER_ERROR, "out of memory\n");
		return;
	}
	r->reply.headers = form->headers;
	if (status == MHD_HTTP_OK && request_has_copy(r, form->etag)) {
		reply_body(r, MHD_HTTP_NOT_MODIFIED, page->content_type);
		return;
	}
	if (gzip)
		buf_append(&r->reply.body, form->packed.data, form->packed.len);
	else
		buf_append(&r->reply.body, page->data, (size_t)(page->end - page->data));
	reply_body(r, r->reply.body.failed ? MHD_HTTP_INTERNAL_SERVER_ERROR : status, page->content_type);
}

void page_file(struct request *r)
{
	struct page *page = page_find(strcmp(r->path, "/") == 0 ? "index.html" : r->path + strlen("/page/"));

	if (page) {
		reply_page(r, page, MHD_HTTP_OK);
		return;
	}
	metric_add(r->server->stats.rejected[REJECTED_PATH], 1);
	reply_text(r, MHD_HTTP_NOT_FOUND, "404 not found");
}

void page_login_form(struct request *r)
{
	metric_add(r->server->stats.rejected[REJECTED_TOKEN], 1);
	reply_page(r, page_find("login.html"), MHD_HTTP_UNAUTHORIZED);
}
