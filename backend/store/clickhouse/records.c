/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records of other signals: rows with all that is known of them, in tables of their own that are made when the first ones
 * come. They stay for as long as was asked for since they came, not since they say they were: a sender's wrong clock makes
 * neither partitions nor old age.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "backend/store/clickhouse/click.h"
#include "backend/store/ids.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/pack/zstd.h"

enum { PACK_LEVEL = 1, TRIES = 30, REQUEST_S = 30 };

#define MOST_ID ((1ull << 53) - 1) /* JSON's numbers hold it */

enum record_table { SPANS, LOGS, EXEMPLARS, RECORD_TABLES };

/* What rows of all tables begin with, and end with. */
#define IDS "trace String CODEC(ZSTD(1)), span String CODEC(ZSTD(1))"
#define RESOURCE                                                                                                     \
	"service LowCardinality(String), key Array(LowCardinality(String)), value Array(String) CODEC(ZSTD(1)),"     \
	" INDEX by_trace trace TYPE bloom_filter GRANULARITY 1, INDEX by_span span TYPE bloom_filter GRANULARITY 1," \
	" seen DateTime('UTC') DEFAULT now()"
#define TIME "DateTime64(9, 'UTC') CODEC(Delta, ZSTD(1))"

static const struct {
	const char *name, *columns, *order, *insert;
} tables[RECORD_TABLES] = {
	[SPANS] = { "hearth_spans",
		    "start_time " TIME ", end_time " TIME ", " IDS
		    ", parent String CODEC(ZSTD(1)), kind UInt8, status UInt8,"
		    " name LowCardinality(String), thread_id Int64, thread_name LowCardinality(String), " RESOURCE,
		    "end_time",
		    "start_time, end_time, trace, span, parent, kind, status, name, thread_id, thread_name, service, key,"
		    " value" },
	[LOGS] = { "hearth_logs",
		   "id UInt64, time " TIME ", " IDS ", severity UInt8, body String CODEC(ZSTD(1)), " RESOURCE
		   ", INDEX by_id id TYPE bloom_filter GRANULARITY 1",
		   "time", "id, time, trace, span, severity, body, service, key, value" },
	[EXEMPLARS] = { "hearth_exemplars",
			"time " TIME ", " IDS ", number Float64, metric LowCardinality(String),"
			" unit LowCardinality(String), " RESOURCE,
			"time", "time, trace, span, number, metric, unit, service, key, value" },
};

struct click_records {
	struct click_connection *connection;
	struct buf rows[RECORD_TABLES];
	bool has_tables;
};

void click_records_free(struct click_records *r)
{
	if (!r)
		return;
	click_disconnect(r->connection);
	for (size_t i = 0; i < RECORD_TABLES; i++)
		buf_fini(&r->rows[i]);
	free(r);
}

/* --- rows --- */

/* The rows of @table, which the caller appends to; NULL when out of memory. */
static struct buf *rows_for(struct store *store, enum record_table table)
{
	struct store_clickhouse *s = store_clickhouse_of(store);

	if (!s->records)
		s->records = calloc(1, sizeof(*s->records));
	return s->records ? &s->records->rows[table] : NULL;
}

static void put_time(struct buf *b, uint64_t ns)
{
	put_number(b, ns > INT64_MAX ? INT64_MAX : ns, 8);
}

/* '' for one that is none. */
static void put_id(struct buf *b, const uint8_t *id, size_t len)
{
	static const uint8_t none[16];

	put_text(b, (const char *)id, memcmp(id, none, len) != 0 ? len : 0);
}

static void put_string(struct buf *b, const char *text)
{
	put_text(b, text, strlen(text));
}

static const char *next_text(const char *at)
{
	return at + strlen(at) + 1;
}

static void put_resource(struct buf *b, const struct kept_resource *r)
{
	const char *const end = r->labels + r->len;
	uint64_t count = 0;

	for (const char *at = r->labels; at < end; at = next_text(next_text(at)))
		count++;
	put_string(b, r->service);
	varint_append(b, count);
	for (const char *at = r->labels; at < end; at = next_text(next_text(at)))
		put_string(b, at);
	varint_append(b, count);
	for (const char *at = r->labels; at < end; at = next_text(next_text(at)))
		put_string(b, next_text(at));
}

static int end_row(const struct buf *b)
{
	return b->failed ? -ENOMEM : 0;
}

static int add_span(struct store *s, const struct kept_span *span)
{
	struct buf *b = rows_for(s, SPANS);

	if (!b)
		return -ENOMEM;
	put_time(b, span->start_ns);
	put_time(b, span->end_ns);
	put_id(b, span->trace, sizeof(span->trace));
	put_id(b, span->span, sizeof(span->span));
	put_id(b, span->parent, sizeof(span->parent));
	put_number(b, span->kind, 1);
	put_number(b, span->status, 1);
	put_string(b, span->name);
	put_number(b, (uint64_t)span->thread_id, 8);
	put_string(b, span->thread_name);
	put_resource(b, &span->resource);
	return end_row(b);
}

static void put_log(struct buf *b, const struct kept_log *log)
{
	put_time(b, log->time_ns);
	put_id(b, log->trace, sizeof(log->trace));
	put_id(b, log->span, sizeof(log->span));
	put_number(b, log->severity, 1);
	put_string(b, log->body);
	put_resource(b, &log->resource);
}

/* The number of a log line is made of what it says, and of its process: it is the same on each receiver. */
static int add_log(struct store *s, const struct kept_log *log)
{
	AUTO(buf_fini) struct buf row = BUF_EMPTY;
	struct buf *b = rows_for(s, LOGS);
	uint64_t id;

	put_log(&row, log);
	if (!b || row.failed)
		return -ENOMEM;
	id = id_key_of(row.data, row.len).low & MOST_ID;
	put_number(b, id ? id : 1, 8);
	buf_append(b, row.data, row.len);
	return end_row(b);
}

static int add_exemplar(struct store *s, const struct kept_exemplar *e)
{
	struct buf *b = rows_for(s, EXEMPLARS);
	uint64_t bits;

	if (!b)
		return -ENOMEM;
	memcpy(&bits, &e->value, sizeof(bits));
	put_time(b, e->time_ns);
	put_id(b, e->trace, sizeof(e->trace));
	put_id(b, e->span, sizeof(e->span));
	put_number(b, bits, 8);
	put_string(b, e->metric);
	put_string(b, e->unit);
	put_resource(b, &e->resource);
	return end_row(b);
}

/* --- sending --- */

static int run(struct click_connection *c, struct buf *sql)
{
	int err = sql->failed ? -ENOMEM : click_request(c, &(struct click_request){ .sql = buf_text(sql) }, NULL);

	buf_reset(sql);
	return err;
}

/* Tables that are there stay as they are, but for how long their rows stay. */
static int make_tables(struct click_connection *c, uint64_t age_ns)
{
	AUTO(buf_fini) struct buf sql = BUF_EMPTY;
	char ttl[64] = "";
	int err = 0;

	if (age_ns)
		snprintf(ttl, sizeof(ttl), "TTL seen + toIntervalSecond(%" PRIu64 ")", (uint64_t)(age_ns / NSEC_PER_SEC));
	for (size_t i = 0; i < RECORD_TABLES && !err; i++) {
		buf_printf(&sql,
			   "CREATE TABLE IF NOT EXISTS %s (%s) ENGINE = MergeTree PARTITION BY toYYYYMMDD(seen) ORDER BY %s"
			   " %s SETTINGS ttl_only_drop_parts = 1",
			   tables[i].name, tables[i].columns, tables[i].order, ttl);
		err = run(c, &sql);
		if (err || !age_ns)
			continue;
		buf_printf(&sql, "ALTER TABLE %s MODIFY %s", tables[i].name, ttl);
		err = run(c, &sql);
	}
	return err;
}

static int send_rows(struct click_records *r, enum record_table table)
{
	AUTO(buf_fini) struct buf packed = BUF_EMPTY;
	AUTO(buf_fini) struct buf sql = BUF_EMPTY;
	struct click_request request = { .rows = &packed, .timeout_ns = REQUEST_S * NSEC_PER_SEC };
	int err = zstd_pack(r->rows[table].data, r->rows[table].len, PACK_LEVEL, &packed);

	buf_printf(&sql, "INSERT INTO %s (%s) FORMAT RowBinary", tables[table].name, tables[table].insert);
	request.sql = buf_text(&sql);
	err = err ? err : sql.failed ? -ENOMEM : click_request(r->connection, &request, NULL);
	if (!err)
		buf_reset(&r->rows[table]);
	return err;
}

/* One try; what arrived is not sent again. */
static int try_commit(struct store_clickhouse *s, uint64_t age_ns)
{
	struct click_records *r = s->records;
	struct store_error why;
	int err = r->connection ? 0 : click_connect(s->address, NULL, s->metrics.failures, &r->connection);

	if (!err && !s->is_ready)
		err = click_make_schema(s, r->connection, &why);
	if (!err && !r->has_tables) {
		err = make_tables(r->connection, age_ns);
		r->has_tables = !err;
	}
	for (size_t i = 0; i < RECORD_TABLES && !err; i++)
		err = r->rows[i].len ? send_rows(r, (enum record_table)i) : 0;
	r->has_tables &= err != -ENOENT; /* somebody removed them */
	return err;
}

static bool may_pass(int err)
{
	return err == -EHOSTUNREACH || err == -ETIMEDOUT || err == -EBUSY || err == -ENOENT;
}

static int commit(struct store *store, uint64_t age_ns, const _Atomic bool *is_ending)
{
	struct store_clickhouse *s = store_clickhouse_of(store);
	struct click_records *r = s->records;
	int err = 0;

	for (unsigned i = 0; r && i < TRIES; i++) {
		err = try_commit(s, age_ns);
		if (!may_pass(err) || *is_ending)
			break;
		sleep(1);
	}
	for (size_t i = 0; r && i < RECORD_TABLES; i++)
		buf_reset(&r->rows[i]);
	return err;
}

static int clear(struct store *store)
{
	struct store_clickhouse *s = store_clickhouse_of(store);
	AUTO(buf_fini) struct buf sql = BUF_EMPTY;
	int err = s->config.read_only ? -EROFS : 0;

	pthread_mutex_lock(&s->read_lock);
	for (size_t i = 0; i < RECORD_TABLES && !err; i++) {
		buf_printf(&sql, "TRUNCATE TABLE IF EXISTS %s", tables[i].name);
		err = run(s->reader, &sql);
	}
	pthread_mutex_unlock(&s->read_lock);
	return err;
}

const struct store_record_ops click_record_ops = {
	.add_span = add_span,
	.add_log = add_log,
	.add_exemplar = add_exemplar,
	.commit = commit,
	.spans = click_spans,
	.logs = click_logs,
	.exemplars = click_exemplars,
	.clear = clear,
};
