/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of the ClickHouse store among themselves; others see clickhouse.h alone. The tables stand in
 * layout.c and docs/fleet.md.
 *
 * Everything has a 64-bit id made of its content, so that any number of hearths may write the same things to one database:
 * an event refers to its stack, series and labels by id, a stack to its frames. ClickHouse adds up the answers to questions;
 * the stacks of the answer that are not known yet are fetched, and numbered here.
 *
 * Two connections: the writer thread's, and the one for questions, used under @read_lock.
 */
#ifndef HEARTH_BACKEND_STORE_CLICKHOUSE_CLICK_H
#define HEARTH_BACKEND_STORE_CLICKHOUSE_CLICK_H

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "backend/store/store_maintain.h"
#include "backend/store/store_read.h"
#include "backend/store/store_records.h"
#include "backend/store/store_write.h"
#include "base/buf.h"
#include "base/metrics.h"
#include "base/varint.h"

enum { CLICK_SCHEMA_VERSION = 1 };

/* Why a request failed. */
enum click_failure {
	CLICK_UNREACHABLE,
	CLICK_TLS,     /* no TLS with the server: its certificate is not good, or it speaks something else */
	CLICK_LOGIN,   /* the user or the password, or what the user may do */
	CLICK_CUT,     /* the connection ended within an answer, or before one */
	CLICK_TIMEOUT, /* no answer in time, or ClickHouse gave up in time */
	CLICK_REFUSED, /* any other exception of ClickHouse */
	CLICK_FAILURES
};

struct click_connection;
struct click_names;
struct click_records;
struct click_writer;

struct store_clickhouse {
	struct store store;
	char *place;	/* URL without the password */
	char *database; /* as it is in the URL */
	char *folder;	/* for what belongs to it; or NULL */
	struct store_config config;
	pthread_mutex_t read_lock; /* recursive: there are questions within questions */
	struct click_connection *reader;
	struct click_names *names;
	struct click_writer *writer; /* NULL when read only */
	const struct click_address *address;
	struct click_records *records; /* NULL: none came yet; of the thread that adds records */
	struct store_error why;	       /* click_why()'s */
	_Atomic bool is_ready;	       /* the tables are there, and of this version */
	struct click_metrics {
		struct metrics *registry;
		struct metric *events, *commits, *commit_errors, *lost_events, *sent_bytes, *spooled_events;
		struct metric *failures[CLICK_FAILURES];
	} metrics;
};

static inline struct store_clickhouse *store_clickhouse_of(struct store *s)
{
	return (struct store_clickhouse *)s;
}

/* --- client.c: one connection; belongs to one thread at a time --- */

/* The parts of a place, "clickhouse+http(s)://[USER[:PASSWORD]@]HOST[:PORT][/DATABASE]". The texts are the caller's. 0,
 * -EINVAL, -ENOMEM. */
struct click_address {
	char *url;		   /* for libcurl: no credentials, no path */
	char *user, *password;	   /* or NULL */
	char *database;		   /* "hearth" where none is said */
	const char *ca_file;	   /* PEM, borrowed; NULL: the system's certificates */
	const char *password_file; /* borrowed, read again when the password is refused; NULL */
	char *display;		   /* for people: no password */
};

int click_address_init(struct click_address *a, const char *place, const char *password_file);
void click_address_fini(struct click_address *a);

/* @a, @abandon (may be NULL) and @failures are borrowed: once *@abandon is set, requests end with -ECANCELED; others that
 * fail are counted. */
int click_connect(const struct click_address *a, const _Atomic bool *abandon, struct metric *const failures[CLICK_FAILURES],
		  struct click_connection **ret);
void click_disconnect(struct click_connection *c);

struct click_request {
	const char *sql;	/* in the body; or in the URL, where there are rows */
	const struct buf *rows; /* of an INSERT, packed by zstd; NULL: none */
	const char *params;	/* "&name=value&..." as click_param() makes them; NULL: none */
	uint64_t timeout_ns;	/* 0: a minute */
	bool no_database;	/* not within the address's database: it may not be there yet */
};

/*
 * Sends @r; @answer (may be NULL) gets the answer. 0; -EHOSTUNREACH: nobody answered; -ETIMEDOUT; -ENOMEM: out of the
 * server's memory, or of ours; -EACCES; -ENOENT: no such database or table; -EINVAL: the request makes no sense to the
 * server; -EBUSY: the server is not able to now; -ECANCELED. click_error() says more.
 */
int click_request(struct click_connection *c, const struct click_request *r, struct buf *answer);
const char *click_error(const struct click_connection *c);
enum click_failure click_failure(const struct click_connection *c); /* of the last one that failed */

/* Appends "&name=value"; escaped, so that any text may be a value. With "param_" before its name it stands in SQL as
 * {name:String}. */
void click_param(struct buf *params, const char *name, const char *value);

/* --- error.c: answers that are none --- */

/* Turns libcurl's @code (not CURLE_OK), @reason and @certificate (CURLINFO_SSL_VERIFYRESULT) into -errno, and fills @text
 * with the reason and what to do. */
int click_read_curl(unsigned code, const char *reason, long certificate, enum click_failure *failure_ret, char *text,
		    size_t text_bytes);

/* Turns an answer of HTTP @status with the header X-ClickHouse-Exception-Code @exception (NULL: without) and @body into 0 or
 * -errno, as click_request() says, and fills @text (@text_bytes at most, NUL included) with its first line, printable ASCII
 * alone. */
int click_read_error(long status, const char *exception, const struct buf *body, enum click_failure *failure_ret, char *text,
		     size_t text_bytes);

/* --- rows in ClickHouse's RowBinary --- */

static inline void put_number(struct buf *b, uint64_t value, size_t bytes) /* little endian, as this machine */
{
	buf_append(b, &value, bytes);
}

static inline void put_text(struct buf *b, const char *text, size_t len)
{
	varint_append(b, len);
	buf_append(b, text, len);
}

struct row_reader {
	const uint8_t *at, *end;
	bool is_bad; /* an answer that ends early */
};

static inline uint64_t get_number(struct row_reader *r, size_t bytes)
{
	uint64_t value = 0;

	if ((size_t)(r->end - r->at) < bytes) {
		r->is_bad = true;
		r->at = r->end;
		return 0;
	}
	memcpy(&value, r->at, bytes);
	r->at += bytes;
	return value;
}

static inline uint64_t get_count(struct row_reader *r)
{
	uint64_t value = 0;
	const uint8_t *end = varint_read(r->at, r->end, &value);

	r->is_bad |= !end;
	r->at = end ? end : r->end;
	return value;
}

/* A text within the answer, not terminated. */
static inline struct str get_text(struct row_reader *r)
{
	uint64_t len = get_count(r);
	struct str s = { (const char *)r->at, (uint32_t)len };

	if (len > (uint64_t)(r->end - r->at) || len > UINT32_MAX) {
		r->is_bad = true;
		r->at = r->end;
		return STR("");
	}
	r->at += len;
	return s;
}

static inline bool has_row(const struct row_reader *r)
{
	return r->at < r->end;
}

static inline struct row_reader rows_of(const struct buf *answer)
{
	return (struct row_reader){ answer->data, answer->len ? answer->data + answer->len : answer->data, false };
}

/* --- layout.c --- */

/* Makes database and tables where they are not there, and has ClickHouse remove rows older than config says. 0; -EPROTO: a
 * newer hearth's, @err says so; or as click_request(). */
int click_make_schema(struct store_clickhouse *s, struct click_connection *c, struct store_error *err);

/* --- batch.c: profiles as rows --- */

enum click_table { CLICK_FRAMES, CLICK_STACKS, CLICK_LABELS, CLICK_SERIES, CLICK_SAMPLES, CLICK_TABLES };

extern const char *const click_inserts[CLICK_TABLES]; /* the statement for the rows of a batch */

struct click_sent; /* ids of things that ClickHouse has already; bounded */

struct click_batch {
	struct buf rows[CLICK_TABLES];
	uint64_t events;
};

struct click_sent *click_sent_new(void);
void click_sent_free(struct click_sent *t);

/* Forgets all, so that everything is sent again when it is met: called when a batch did not arrive. */
void click_sent_forget(struct click_sent *t);

/* Adds @p's samples, and all that they refer to that was not sent yet. 0 or -errno. */
int click_batch_add(struct click_batch *b, struct click_sent *sent, const struct profiles *p, uint64_t now_ns);
void click_batch_reset(struct click_batch *b);
void click_batch_fini(struct click_batch *b);

/* --- send.c: a batch on its way, to ClickHouse or to the disk --- */

struct spool;

struct click_parcel {
	struct buf rows[CLICK_TABLES]; /* packed by zstd; empty: none */
	char token[32];		       /* of its samples: ClickHouse takes none twice */
	uint64_t events;
};

/* Packs @b. 0 or -ENOMEM. */
int click_parcel_make(struct click_parcel *p, const struct click_batch *b);
void click_parcel_fini(struct click_parcel *p);

/* Sends all of @p, samples last: once they are there, all is. Returns as click_request(). */
int click_parcel_send(struct click_connection *c, const struct click_parcel *p, uint64_t timeout_ns);

/* Opens the folder for @s within config.spool_dir. Returns as spool_open(). */
int click_spool_open(struct store_clickhouse *s, struct spool **ret);

/* Writes @p to the disk, synced. 0 or -errno. */
int click_parcel_spool(struct spool *spool, const struct click_parcel *p);

/* Reads the oldest parcel in the spool: 1; 0: there is none; -errno. Parcels that make no sense are removed. */
int click_parcel_unspool(struct spool *spool, struct click_parcel *ret);

/* --- writer.c: the writer thread and its sink --- */

int click_writer_start(struct store_clickhouse *s, const struct click_address *address);
void click_writer_stop(struct store_clickhouse *s); /* the rest is spooled, or counted as lost */
int click_writer_sink(struct store *s, struct sink **ret);

/* Between pause and resume the writer sends nothing; afterwards it sends again all that samples refer to. 0, or -EBUSY: the
 * writer has been busy for longer than 10 s. Without a writer there is nothing to do. */
int click_writer_pause(struct store_clickhouse *s);
void click_writer_resume(struct store_clickhouse *s);

/* --- selection.c: a selection in SQL --- */

struct click_sql {
	struct buf text, params;
	unsigned count; /* of params */
};

void click_sql_fini(struct click_sql *q);

/* Appends the condition that samples are those of @sel; with @any_kind of all kinds. */
void click_where(struct click_sql *q, const struct store_selection *sel, bool any_kind);

/* Appends {p:String} for @value. */
void click_bind(struct click_sql *q, const char *value);

/* Append the condition that @m makes on the text that SQL writes @text; on "value[indexOf(key, LABEL)]", which is '' where
 * there is no such label. */
void click_compare(struct click_sql *q, const struct store_matcher *m, const char *text);
void click_compare_label(struct click_sql *q, const struct store_matcher *m);

/* Nanoseconds as ClickHouse has them. */
int64_t click_clamp_time(uint64_t ns);

/*
 * Begins "SELECT [group,] KEYS, weight, events ..." over the selected samples, which are summed up by @keys (columns of the
 * table, or expressions with a name: "stack, intDiv(...) AS bucket"; names in @names) and, where @by is not NULL, by its
 * value, in the order of the groups. Each row: the group as text (where there is one), the keys, Int64 weight, UInt64
 * events.
 */
void click_sum(struct click_sql *q, const struct store_selection *sel, bool any_kind, const char *keys, const char *names,
	       const char *by);

/* Sends @q within the selection's deadline. */
int click_ask(struct store_clickhouse *s, struct click_sql *q, const struct store_selection *sel, struct buf *answer);

/* --- numbers.c: stacks and frames as they are numbered here; under read_lock --- */

struct click_names *click_names_new(void);
void click_names_free(struct click_names *n);

/* Forgets all when there is much, or when frames have other names than before. Called between answers. */
void click_rest(struct store *s, bool is_idle);

/* "(1,2,3)". */
void click_put_ids(struct buf *sql, const uint64_t *ids, size_t count);

/* Fetches those of the stacks with these ids that are not known yet. 0 or -errno. */
int click_names_load(struct store_clickhouse *s, const struct store_selection *sel, const uint64_t *ids, size_t count);

/* The node of a stack that was loaded; 0 where ClickHouse did not know it. */
uint32_t click_names_stack(const struct click_names *n, uint64_t id);

uint32_t click_node_count(struct store *s);
int click_nodes(struct store *s, uint32_t first, uint32_t count, struct store_node *ret);
int click_frame(struct store *s, uint32_t frame, struct store_frame *ret);

/* Facts about a frame that store_frame does not have. */
struct click_frame_more {
	const char *id_kind;
	bool is_bare; /* the frame came without a function, even if it got a name since */
	int64_t column;
	uint64_t memory_start, memory_limit, file_offset;
	struct str attributes[2]; /* location's, mapping's: four columns of a row */
};

const struct click_frame_more *click_frame_more(const struct click_names *n, uint32_t frame);

/* --- weights.c, choices.c, export_hours.c: the questions of store.h --- */

int click_load_stacks(struct store *s, const struct store_selection *sel);
int click_sum_stacks(struct store *s, const struct store_selection *sel, const char *by,
		     int (*fn)(void *arg, const char *group, uint32_t node, int64_t weight, uint64_t events), void *arg);
int click_sum_times(struct store *s, const struct store_selection *sel, uint64_t step_ns, const char *by,
		    int (*fn)(void *arg, const char *group, uint32_t bucket, int64_t weight, uint64_t events), void *arg);
int click_labels(struct store *s, const struct store_selection *sel, int (*fn)(void *arg, const char *label), void *arg);
int click_series(struct store *s, const struct store_selection *sel,
		 int (*fn)(void *arg, const struct key_values *labels, int64_t weight, uint64_t events), void *arg);
int click_label_values(struct store *s, const struct store_selection *sel, const char *label,
		       int (*fn)(void *arg, const char *value, int64_t weight, uint64_t events), void *arg);
int click_kinds(struct store *s, const struct store_selection *sel, int (*fn)(void *arg, const struct store_kind *kind),
		void *arg);
int click_executables(struct store *s, const struct store_selection *sel,
		      int (*fn)(void *arg, const struct store_executable *e), void *arg);
int click_export(struct store *s, const struct store_selection *sel, int (*fn)(void *arg, struct profiles *p), void *arg);

/* --- records.c, records_ask.c: store_records.h --- */

extern const struct store_record_ops click_record_ops;

void click_records_free(struct click_records *r); /* accepts NULL */
int click_spans(struct store *s, const struct signals_question *q, int (*fn)(void *arg, const struct kept_span *span),
		void *arg);
int click_logs(struct store *s, const struct signals_question *q, int (*fn)(void *arg, const struct kept_log *log),
	       void *arg);
int click_exemplars(struct store *s, const struct signals_question *q,
		    int (*fn)(void *arg, const struct kept_exemplar *exemplar), void *arg);

/* --- bare_frames.c: names for bare addresses --- */

int click_name_frames(struct store *s, const char *build_id, const struct store_name *names, size_t count);
int click_bare_frames(struct store *s, uint32_t from, uint32_t *next_ret,
		      int (*fn)(void *arg, const struct store_frame *frame), void *arg);

/* Fetches frames with these ids, as if questions had met them. */
int click_names_load_frames(struct store_clickhouse *s, const uint64_t *ids, size_t count);
uint32_t click_frame_count(const struct click_names *n);

#endif
