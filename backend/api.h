/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The query API of docs/api.md, without HTTP: a path and its parameters in, a status and a body out. Belongs to the thread
 * that asks the store (backend/query_thread.h).
 */
#ifndef HEARTH_BACKEND_API_H
#define HEARTH_BACKEND_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backend/query.h"
#include "backend/store.h"
#include "backend/unpack.h"
#include "base/buf.h"

struct api;
struct metrics;

/* What a format of files makes of profiles; the commands' table of formats stands behind it. */
struct api_export {
	/* The content type and the end of the name of files of @format, NULL when there is no such format. */
	const char *(*suffix)(const char *format, const char **content_type_ret);
	/* Appends @profiles, together one file, to @out. 0 or -errno. */
	int (*write)(const char *format, struct profiles *const *profiles, size_t count, struct buf *out);
};

struct api_config {
	struct store *store;		  /* borrowed, as are metrics and exports */
	struct metrics *metrics;	  /* of this process; may be NULL */
	const struct api_export *exports; /* NULL: no files */
	bool is_live;			  /* an agent in this process is profiling */
	bool is_page_alone;		  /* OTLP is received on another address than the page's, or nowhere */
	uint64_t timeout_ns;		  /* of one question; 30 s when 0 */
	size_t memory_bytes;		  /* of a question's tree, and of what it exports; 1 GiB when 0 */
};

struct api_answer {
	unsigned status; /* of HTTP */
	const char *content_type;
	char file_name[128]; /* "" or what the browser is to save it as */
	struct buf body;
};

int api_new(const struct api_config *config, struct api **ret);
void api_free(struct api *api);

/* Whether @path is one of the API's. Any thread. */
bool api_has_path(const char *path);

/* An empty file without a name for symbols that are sent, the caller's to close; -ENOENT: this store takes none; -errno. Any
 * thread. */
int api_symbols_file(const struct api *api);

/* Takes the symbols in @fd, which is from api_symbols_file(): an ELF file, or one packed by @encoding. Answers as
 * api_answer(). */
void api_take_symbols(struct api *api, int fd, enum ingest_encoding encoding, struct api_answer *answer);

/* Nobody has asked for a while: gives back what is kept from question to question. */
void api_rest(struct api *api);

/* Work of the API's own, for when no question waits: when it is due (CLOCK_MONOTONIC; UINT64_MAX: there is none), and a
 * piece of it. */
uint64_t api_work_ns(const struct api *api);
void api_work(struct api *api);

/* From any thread: the end is near, what takes long is given up. */
void api_abandon(struct api *api);

/* Where Pyroscope's query service has its methods (backend/api_pyroscope.c); their parameters are from page_connect.c. */
#define CONNECT_PATH "/querier.v1.QuerierService/"

/* Appends Connect's form of an error with HTTP's @status. */
void api_write_connect_error(struct buf *out, unsigned status, const char *text);

/* Of a file with symbols, packed or not. */
#define API_SYMBOLS_MAX_BYTES (1ull << 30)

/* Answers; what goes wrong is an answer too. @answer is all zeros before; its body is the caller's to free. */
void api_answer(struct api *api, const char *path, const struct query_params *params, struct api_answer *answer);

#endif
