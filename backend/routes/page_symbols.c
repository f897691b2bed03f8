/* SPDX-License-Identifier: Apache-2.0 */
/*
 * POST /api/v1/symbols: a file with symbols goes, as it comes in, into an unnamed file in the store's folder, and from there
 * to the query thread. Few at a time, for each may take a GB of disk. Loop's thread only.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend/api/api.h"
#include "backend/routes/handlers.h"
#include "backend/api/query_thread.h"
#include "base/cleanup.h"
#include "base/io.h"

enum { MAX_UPLOADS = 2, BUSY_RETRY_S = 2 };

struct upload {
	int fd; /* -1: handed on */
	enum ingest_encoding encoding;
	uint64_t bytes;
};

static int open_upload(struct request *r, enum ingest_encoding encoding)
{
	struct upload *u;
	int fd = r->server->queries ? query_thread_symbols_file(r->server->queries) : -ENOENT;

	if (fd < 0)
		return fd;
	u = calloc(1, sizeof(*u));
	if (!u) {
		close(fd);
		return -ENOMEM;
	}
	*u = (struct upload){ .fd = fd, .encoding = encoding };
	r->upload = u;
	r->server->uploads++;
	return 0;
}

void page_symbols_begin(struct request *r)
{
	enum ingest_encoding encoding;
	int err;

	if (!request_encoding(r, &encoding))
		return;
	if (r->server->uploads >= MAX_UPLOADS) {
		r->reply.retry_after_s = BUSY_RETRY_S;
		reply_refuse(r, MHD_HTTP_SERVICE_UNAVAILABLE, REJECTED_BUSY,
			     "other files with symbols are on their way: try again");
		return;
	}
	err = open_upload(r, encoding);
	if (err == -ENOENT)
		reply_text(r, MHD_HTTP_NOT_FOUND,
			   "there is no store here that takes symbols: start hearth with --store DIR\n");
	else if (err)
		reply_refuse(r, MHD_HTTP_INTERNAL_SERVER_ERROR, REJECTED_SINK, "no file for the symbols can be made: %s",
			     strerror(-err));
}

void page_symbols_write(struct request *r, const char *data, size_t len)
{
	struct upload *u = r->upload;
	int err;

	u->bytes += len;
	if (u->bytes > API_SYMBOLS_MAX_BYTES) {
		reply_refuse(r, MHD_HTTP_CONTENT_TOO_LARGE, REJECTED_TOO_LARGE, "a file with symbols may have %llu bytes",
			     API_SYMBOLS_MAX_BYTES);
		return;
	}
	err = io_write_all(u->fd, data, len);
	if (err)
		reply_refuse(r, err == -ENOSPC ? MHD_HTTP_INSUFFICIENT_STORAGE : MHD_HTTP_INTERNAL_SERVER_ERROR,
			     REJECTED_SINK, "the symbols cannot be kept: %s", strerror(-err));
}

void page_symbols(struct request *r)
{
	page_api_symbols(r, &r->upload->fd, r->upload->encoding);
}

void page_symbols_end(struct request *r)
{
	if (!r->upload)
		return;
	if (r->upload->fd >= 0)
		close(r->upload->fd);
	free(MOVE(r->upload));
	r->server->uploads--;
}
