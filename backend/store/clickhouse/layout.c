/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables, as docs/fleet.md explains them, their version, and how long what is in them stays. A day is a partition, which
 * goes as a whole; what samples refer to is written again at least once a day while it is met, and goes some days after it
 * was met last.
 *
 * Tables that are there already are left as they are, so that the owner of a cluster may make them in another engine before.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "backend/store/clickhouse/click.h"
#include "base/cleanup.h"
#include "base/clock.h"

enum { DEFAULT_KEEP_S = 7 * 24 * 3600, MARGIN_S = 2 * 24 * 3600 };

static const char schema_sql[] = "CREATE TABLE IF NOT EXISTS hearth_schema (version UInt32, keep_s UInt64, at DateTime64(3))"
				 " ENGINE = MergeTree ORDER BY at";

/* Attributes: 4 columns; kind as in OTLP's AnyValue: 1 text, 2 boolean, 3 integer, 4 floating point, 5 array, 6 list of keys
 * and values, 7 bytes. */
#define ATTRIBUTES(prefix)                                                                                \
	prefix "key Array(LowCardinality(String)), " prefix "value Array(String) CODEC(ZSTD(1)), " prefix \
	       "kind Array(UInt8), " prefix "unit Array(LowCardinality(String))"

static const struct {
	const char *name, *columns, *order;
	const char *time; /* of retention; NULL: it stays */
	bool is_samples;
} tables[] = {
	{ "hearth_samples",
	  "time DateTime64(9, 'UTC') CODEC(Delta, ZSTD(1)), sample_type LowCardinality(String), service "
	  "LowCardinality(String),"
	  " series UInt64 CODEC(ZSTD(1)), stack UInt64 CODEC(ZSTD(1)), labels UInt64 CODEC(ZSTD(1)), cpu UInt16 "
	  "CODEC(ZSTD(1)),"
	  " weight Int64 CODEC(T64, ZSTD(1)), trace String CODEC(ZSTD(1)), span String CODEC(ZSTD(1)),"
	  " INDEX by_trace trace TYPE bloom_filter GRANULARITY 1, INDEX by_span span TYPE bloom_filter GRANULARITY 1",
	  "PARTITION BY toYYYYMMDD(time) PRIMARY KEY (sample_type, service, toStartOfHour(time), series)"
	  " ORDER BY (sample_type, service, toStartOfHour(time), series, stack, labels, time)",
	  "toDateTime(time)", true },
	{ "hearth_series",
	  "id UInt64, seen DateTime('UTC'), service LowCardinality(String), sample_type LowCardinality(String),"
	  " sample_unit LowCardinality(String), period_type LowCardinality(String), period_unit LowCardinality(String),"
	  " period Int64, shape UInt8, scope_name LowCardinality(String), scope_version LowCardinality(String),"
	  " resource_keys UInt16, " ATTRIBUTES(""),
	  "ORDER BY id", "seen", false },
	{ "hearth_labels", "id UInt64, seen DateTime('UTC'), " ATTRIBUTES(""), "ORDER BY id", "seen", false },
	{ "hearth_stacks",
	  "id UInt64, seen DateTime('UTC'), service LowCardinality(String), frames Array(UInt64) CODEC(ZSTD(1))",
	  "ORDER BY (service, id)", "seen", false },
	{ "hearth_frames",
	  "id UInt64, seen DateTime('UTC'), function String CODEC(ZSTD(1)), system_name String CODEC(ZSTD(1)),"
	  " file String CODEC(ZSTD(1)), start_line Int64, line Int64, column Int64, address UInt64, inlined UInt8,"
	  " type LowCardinality(String), path String CODEC(ZSTD(1)), build_id String CODEC(ZSTD(1)),"
	  " id_kind LowCardinality(String), memory_start UInt64, memory_limit UInt64, file_offset UInt64, " ATTRIBUTES(
		  "") ", " ATTRIBUTES("mapping_"),
	  "ORDER BY id", "seen", false },
	{ "hearth_names",
	  "build_id String, address UInt64, seen DateTime64(9, 'UTC'), function String, system_name String, file String,"
	  " line Int64, start_line Int64",
	  "ORDER BY (build_id, address)", NULL, false },
};

static int run(struct click_connection *c, const char *sql)
{
	return click_request(c, &(struct click_request){ .sql = sql }, NULL);
}

static void append_ttl(struct buf *sql, size_t table, uint64_t keep_s)
{
	buf_printf(sql, " TTL %s + toIntervalSecond(%" PRIu64 ")", tables[table].time,
		   keep_s + (tables[table].is_samples ? 0 : MARGIN_S));
}

static int make_tables(struct click_connection *c, uint64_t keep_s)
{
	int err = 0;

	for (size_t i = 0; i < ARRAY_LEN(tables) && !err; i++) {
		AUTO(buf_fini) struct buf sql = BUF_EMPTY;

		buf_printf(&sql, "CREATE TABLE IF NOT EXISTS %s (%s) ENGINE = %s %s", tables[i].name, tables[i].columns,
			   tables[i].is_samples ? "MergeTree" : "ReplacingMergeTree(seen)", tables[i].order);
		if (tables[i].time)
			append_ttl(&sql, i, keep_s);
		buf_puts(&sql, tables[i].is_samples
				       ? " SETTINGS ttl_only_drop_parts = 1, non_replicated_deduplication_window = 10000,"
					 " replicated_deduplication_window = 10000"
				       : " SETTINGS index_granularity = 1024");
		err = sql.failed ? -ENOMEM : run(c, buf_text(&sql));
	}
	return err;
}

static int change_keep(struct click_connection *c, uint64_t keep_s)
{
	int err = 0;

	for (size_t i = 0; i < ARRAY_LEN(tables) && !err; i++) {
		AUTO(buf_fini) struct buf sql = BUF_EMPTY;

		if (!tables[i].time)
			continue;
		buf_printf(&sql, "ALTER TABLE %s MODIFY", tables[i].name);
		append_ttl(&sql, i, keep_s);
		err = sql.failed ? -ENOMEM : run(c, buf_text(&sql));
	}
	return err;
}

/* Reads the note on version and age: *@version_ret is 0 when there is none. */
static int read_note(struct click_connection *c, uint64_t *version_ret, uint64_t *keep_s_ret)
{
	AUTO(buf_fini) struct buf answer = BUF_EMPTY;
	struct row_reader r;
	int err = click_request(
		c, &(struct click_request){ .sql = "SELECT max(version), argMax(keep_s, at) FROM hearth_schema" }, &answer);

	if (err)
		return err;
	r = rows_of(&answer);
	*version_ret = get_number(&r, 4);
	*keep_s_ret = get_number(&r, 8);
	return r.is_bad ? -EBADMSG : 0;
}

static int write_note(struct click_connection *c, uint64_t keep_s)
{
	char sql[160];

	snprintf(sql, sizeof(sql), "INSERT INTO hearth_schema SELECT %d, %" PRIu64 ", now64(3)", CLICK_SCHEMA_VERSION,
		 keep_s);
	return run(c, sql);
}

static int make_database(struct store_clickhouse *s, struct click_connection *c)
{
	AUTO(buf_fini) struct buf sql = BUF_EMPTY;
	int err;

	buf_printf(&sql, "CREATE DATABASE IF NOT EXISTS `%s`", s->database);
	err = sql.failed ? -ENOMEM
			 : click_request(c, &(struct click_request){ .sql = buf_text(&sql), .no_database = true }, NULL);
	return err == -EACCES ? 0 : err; /* the database may be there, made by somebody who may */
}

int click_make_schema(struct store_clickhouse *s, struct click_connection *c, struct store_error *err)
{
	const uint64_t keep_s = s->config.keep_age_ns ? s->config.keep_age_ns / NSEC_PER_SEC : DEFAULT_KEEP_S;
	uint64_t version = 0, kept_s = 0;
	int code = s->config.read_only ? 0 : make_database(s, c);

	if (!code && !s->config.read_only)
		code = run(c, schema_sql);
	code = code ? code : read_note(c, &version, &kept_s);
	if (!code && version > CLICK_SCHEMA_VERSION) {
		snprintf(err->message, sizeof(err->message),
			 "%s was written by a newer hearth (its tables are of version %" PRIu64
			 ", this one knows %d): update hearth, or name another database",
			 s->place, version, CLICK_SCHEMA_VERSION);
		return -EPROTO;
	}
	if (!code && !s->config.read_only) {
		code = make_tables(c, keep_s);
		if (!code && version && kept_s != keep_s)
			code = change_keep(c, keep_s);
		if (!code && kept_s != keep_s)
			code = write_note(c, keep_s);
	}
	if (!code && s->config.read_only && !version)
		code = -ENOENT;
	if (!code) {
		atomic_store(&s->is_ready, true);
		return 0;
	}
	if (code == -ENOENT)
		snprintf(err->message, sizeof(err->message), "%s: hearth has kept nothing there yet", s->place);
	else
		snprintf(err->message, sizeof(err->message), "%s: %s", s->place, click_error(c));
	return code;
}
