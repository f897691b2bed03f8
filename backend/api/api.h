/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The query API of docs/api.md, without HTTP: a path and its parameters in, a status and a body out. Belongs to the thread
 * that asks the store (backend/api/query_thread.h).
 */
#ifndef HEARTH_BACKEND_API_API_H
#define HEARTH_BACKEND_API_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backend/query/selected.h"
#include "backend/store/store.h"
#include "backend/ingest/unpack.h"
#include "base/buf.h"

struct api;
struct metrics;
struct signals;

/* A file in the making; the commands' table of formats stands behind it. */
struct api_file;

/* Writes profiles as files of any format. */
struct api_export {
	/* The content type and the end of the name of files of @format, NULL when there is no such format. */
	const char *(*suffix)(const char *format, const char **content_type_ret);
	/* Begins a file of @format, the caller's to free. What grows large may be put into @disk, an empty file that can be
	 * written to and stays the caller's; -1: there is none. 0 or -errno. */
	int (*begin)(const char *format, int disk, struct api_file **ret);
	/* Adds @profiles; all that are added are one file together. 0 or -errno. */
	int (*add)(struct api_file *file, struct profiles *profiles);
	/* Bytes that the file has in memory and on disk. */
	size_t (*held_bytes)(const struct api_file *file);
	/* Writes the file to @out, which is empty; nothing may be added afterwards. *@is_on_disk_ret: all of it is in @disk
	 * instead, with which @file has at most @most_bytes. 0, -ENOMEM (that is too little, too) or another -errno. */
	int (*write)(struct api_file *file, size_t most_bytes, struct buf *out, bool *is_on_disk_ret);
	void (*free)(struct api_file *file); /* accepts NULL */
};

struct api_config {
	struct store *store;		  /* borrowed, as are metrics and exports */
	struct metrics *metrics;	  /* of this process; may be NULL */
	const struct api_export *exports; /* NULL: no files */
	struct signals *signals;	  /* spans, logs, exemplars that came in; borrowed; NULL: they are not kept */
	bool is_live;			  /* an agent in this process is profiling */
	bool is_second;			  /* api_second() made it */
	const char *trace_url;		  /* --trace-url, borrowed; NULL */
	bool is_page_alone;		  /* OTLP is received on another address than the page's, or nowhere */
	uint64_t timeout_ns;		  /* of one question; 30 s when 0 */
	size_t memory_bytes;		  /* of a question's tree, and of what it exports; 1 GiB when 0 */
};

struct api_answer {
	unsigned status; /* of HTTP */
	const char *content_type;
	char file_name[128]; /* "" or what the browser is to save it as */
	struct buf body;
	bool is_on_disk; /* the body is all of the file @disk instead; owned */
	int disk;
};

/* Takes the body away. Accepts an answer without one. */
void api_answer_fini(struct api_answer *answer);

/* How long one question may take. */
struct api_budget {
	uint64_t timeout_ns;		 /* 0: the configuration's */
	const _Atomic bool *is_unwanted; /* set from any thread when nobody waits for the answer any more; or NULL */
	bool hides_addresses;		 /* the asker may not read where code lies in memory */
	bool is_trial;			 /* a question that takes longer is asked again, and so not answered */
};

int api_new(const struct api_config *config, struct api **ret);
void api_free(struct api *api);

/* Makes another API of the same store, for another thread; it takes no symbols. It must be freed before @first. 0, -ENOTSUP
 * when the store can be asked on one thread only, or -errno. */
int api_second(const struct api *first, struct api **ret);

/* Whether there is a point in api_second(). */
bool api_may_have_second(const struct api *api);

/* Whether the names or the file of @first's store have changed since @second was made: another one is wanted then. */
bool api_is_stale(const struct api *second, const struct api *first);

/* The names of the parameters that @path takes in a URL, a blank between two; NULL: it is no path of the API for GET. Any
 * thread. */
const char *api_params(const char *path);

/* An empty file without a name for symbols that are sent, the caller's to close; -ENOENT: this store takes none; -errno. Any
 * thread. */
int api_symbols_file(const struct api *api);

/* Takes the symbols in @fd, which is from api_symbols_file(): an ELF file, or one packed by @encoding. Answers as
 * api_answer(). */
void api_take_symbols(struct api *api, int fd, enum ingest_encoding encoding, struct api_answer *answer);

/* Takes all samples out of the store. Answers as api_answer(). */
void api_clear(struct api *api, struct api_answer *answer);

/* Gives back the memory that is kept from question to question; called when nobody has asked for a while. */
void api_rest(struct api *api);

/* The API's own work, done while no question waits: the time when it is due (CLOCK_MONOTONIC; UINT64_MAX: there is none),
 * and a piece of it. */
uint64_t api_work_ns(const struct api *api);
void api_work(struct api *api);

/* From any thread: a file of symbols that is being read is given up: the process is about to end, or a question waits. */
void api_abandon(struct api *api);

/* Files are read again. Not while one is. */
void api_resume(struct api *api);

/* process=hearth of pprof's paths: hearth itself, not programs of that name. */
#define API_OURSELVES "hearth"

/* The folder of the methods of Pyroscope's query service (backend/compat/pyroscope.c); page_connect.c makes their
 * parameters. */
#define CONNECT_PATH "/querier.v1.QuerierService/"

/* Appends Connect's form of an error with HTTP's @status. */
void api_write_connect_error(struct buf *out, unsigned status, const char *text);

/* The largest file with symbols, packed or not. */
#define API_SYMBOLS_MAX_BYTES (1ull << 30)

/* Answers a question; a failure is an answer too. 0 or -errno, of which only -ETIMEDOUT of a trial means that there is no
 * answer. @answer is all zeros before; its body is the caller's to free. @budget NULL: the configuration's. */
int api_answer(struct api *api, const char *path, const struct query_params *params, const struct api_budget *budget,
	       struct api_answer *answer);

#endif
