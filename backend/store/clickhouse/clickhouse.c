/* SPDX-License-Identifier: Apache-2.0 */
/* The store in ClickHouse: opening, status, closing. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "backend/store/clickhouse/click.h"
#include "backend/store/clickhouse/clickhouse.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/thread.h"

struct opened { /* the address stays as long as the connections that use it */
	struct store_clickhouse s;
	struct click_address address;
};

static int click_status(struct store *store, struct store_status *ret)
{
	static const char sql[] =
		"SELECT ifNull((SELECT sum(bytes_on_disk) FROM system.parts WHERE active AND database = currentDatabase()"
		" AND startsWith(table, 'hearth_')), 0), count(), toUnixTimestamp64Nano(min(time)), "
		"toUnixTimestamp64Nano(max(time)),"
		" ifNull((SELECT count() FROM hearth_series), 0), ifNull((SELECT count() FROM hearth_stacks), 0),"
		" ifNull((SELECT count() FROM hearth_frames), 0) FROM hearth_samples";
	struct store_clickhouse *s = store_clickhouse_of(store);
	AUTO(click_sql_fini) struct click_sql q = { 0 };
	AUTO(buf_fini) struct buf answer = BUF_EMPTY;
	struct row_reader r;
	int err;

	*ret = (struct store_status){ .kind = "clickhouse", .place = s->place, .folder = s->folder };
	buf_puts(&q.text, sql);
	pthread_mutex_lock(&s->read_lock);
	err = click_ask(s, &q, NULL, &answer);
	pthread_mutex_unlock(&s->read_lock);
	if (err)
		return err;
	r = rows_of(&answer);
	ret->bytes = get_number(&r, 8);
	ret->events = get_number(&r, 8);
	ret->first_ns = get_number(&r, 8);
	ret->last_ns = get_number(&r, 8);
	ret->series = get_number(&r, 8);
	ret->nodes = get_number(&r, 8);
	ret->frames = get_number(&r, 8);
	if (!ret->events)
		ret->first_ns = ret->last_ns = 0;
	return r.is_bad ? -EBADMSG : 0;
}

static const char *click_why(struct store *store)
{
	struct store_clickhouse *s = store_clickhouse_of(store);

	snprintf(s->why.message, sizeof(s->why.message), "%s: %s", s->place, click_error(s->reader));
	return s->why.message;
}

/* ClickHouse merges and removes data by itself. */
static int click_task(struct store *store, enum store_task task)
{
	static const char *const tables[] = { "samples", "series", "labels", "stacks", "frames" };
	struct store_clickhouse *s = store_clickhouse_of(store);
	int err = s->config.read_only ? -EROFS : task == STORE_CLEAR ? 0 : -ENOTSUP;

	err = err ? err : click_writer_pause(s);
	if (err)
		return err;
	pthread_mutex_lock(&s->read_lock);
	for (size_t i = 0; i < ARRAY_LEN(tables) && !err; i++) {
		char sql[64];

		snprintf(sql, sizeof(sql), "TRUNCATE TABLE hearth_%s", tables[i]);
		err = click_request(s->reader, &(struct click_request){ .sql = sql }, NULL);
	}
	pthread_mutex_unlock(&s->read_lock);
	click_writer_resume(s);
	return err;
}

static void click_close(struct store *store)
{
	struct store_clickhouse *s = store_clickhouse_of(store);
	struct opened *o = (struct opened *)s;

	click_writer_stop(s);
	click_records_free(s->records);
	click_disconnect(s->reader);
	click_names_free(s->names);
	click_address_fini(&o->address);
	free(s->folder);
	pthread_mutex_destroy(&s->read_lock);
	free(o);
}

static const struct store_read_ops read_ops = {
	.sum_stacks = click_sum_stacks,
	.sum_times = click_sum_times,
	.labels = click_labels,
	.label_values = click_label_values,
	.series = click_series,
	.kinds = click_kinds,
	.executables = click_executables,
	.export = click_export,
	.load_stacks = click_load_stacks,
	.rest = click_rest,
	.node_count = click_node_count,
	.nodes = click_nodes,
	.frame = click_frame,
	.why = click_why,
	.status = click_status,
	.bare_frames = click_bare_frames,
};

static const struct store_write_ops write_ops = { .writer = click_writer_sink, .name_frames = click_name_frames };

static const struct store_maintain_ops maintain_ops = { .task = click_task };

static void register_metrics(struct click_metrics *m, struct metrics *registry)
{
	static const char *const reasons[CLICK_FAILURES] = {
		[CLICK_UNREACHABLE] = "reason=\"unreachable\"",
		[CLICK_TLS] = "reason=\"tls\"",
		[CLICK_LOGIN] = "reason=\"login\"",
		[CLICK_CUT] = "reason=\"cut off\"",
		[CLICK_TIMEOUT] = "reason=\"timeout\"",
		[CLICK_REFUSED] = "reason=\"refused\"",
	};

	m->registry = registry;
	if (!registry)
		return;
	m->events = metrics_counter(registry, "hearth_store_events_total", NULL, "Sample events kept in the store.");
	m->commits = metrics_counter(registry, "hearth_store_commits_total", NULL, "Batches that ClickHouse took.");
	m->commit_errors = metrics_counter(registry, "hearth_store_commit_errors_total", NULL,
					   "Batches that ClickHouse did not take at once.");
	m->lost_events = metrics_counter(registry, "hearth_store_lost_events_total", NULL,
					 "Sample events that could not be written to the store.");
	m->sent_bytes = metrics_counter(registry, "hearth_store_sent_bytes_total", NULL,
					"Bytes of rows that ClickHouse took, as sent (compressed).");
	for (size_t i = 0; i < CLICK_FAILURES; i++)
		m->failures[i] = metrics_counter(registry, "hearth_clickhouse_errors_total", reasons[i],
						 "Requests to ClickHouse that failed.");
	m->spooled_events = metrics_counter(registry, "hearth_store_spooled_events_total", NULL,
					    "Sample events written into the spool because ClickHouse did not take them.");
}

/* A server that is not there yet is waited for, unless there is nothing to do but ask it. */
static int find_tables(struct store_clickhouse *s, struct store_error *err)
{
	int code = click_make_schema(s, s->reader, err);

	if (s->config.read_only || (code != -EHOSTUNREACH && code != -EBUSY && code != -ETIMEDOUT))
		return code;
	log_warn("%s; tried again when there are samples", err->message);
	err->message[0] = 0;
	return 0;
}

int store_clickhouse_open(const struct store_config *config, struct metrics *metrics, struct store **ret,
			  struct store_error *err)
{
	struct opened *o = calloc(1, sizeof(*o));
	struct store_clickhouse *s = &o->s;
	int code;

	err->message[0] = 0;
	if (!o || thread_lock_init_recursive(&s->read_lock)) {
		free(o);
		snprintf(err->message, sizeof(err->message), "cannot open the store: %s", strerror(ENOMEM));
		return -ENOMEM;
	}
	s->store.read = &read_ops;
	s->store.write = &write_ops;
	s->store.maintain = &maintain_ops;
	s->store.records = &click_record_ops;
	s->address = &o->address;
	s->store.close = click_close;
	s->config = *config;
	s->folder = config->folder ? strdup(config->folder) : NULL;
	register_metrics(&s->metrics, metrics);
	code = click_address_init(&o->address, config->place, config->password_file);
	if (code == -EINVAL)
		snprintf(err->message, sizeof(err->message),
			 "that is no address of ClickHouse: write http://[USER@]HOST[:8123][/DATABASE], or https://");
	else if (code && config->password_file)
		snprintf(err->message, sizeof(err->message), "--store-password-file: %s: %s", config->password_file,
			 strerror(-code));
	if (!code && config->ca_file && access(config->ca_file, R_OK)) {
		code = -errno;
		snprintf(err->message, sizeof(err->message), "--store-ca: %s: %s", config->ca_file, strerror(errno));
	}
	o->address.ca_file = config->ca_file;
	o->address.password_file = config->password_file;
	s->place = o->address.display;
	s->database = o->address.database;
	s->names = code ? NULL : click_names_new();
	if (!code)
		code = s->names ? click_connect(&o->address, NULL, s->metrics.failures, &s->reader) : -ENOMEM;
	code = code ? code : find_tables(s, err);
	if (!code && !config->read_only) {
		code = click_writer_start(s, &o->address);
		if (code == -EBUSY)
			snprintf(err->message, sizeof(err->message), "--spool: another process uses %s for %s",
				 config->spool_dir, s->place);
	}
	if (!code) {
		*ret = &s->store;
		return 0;
	}
	if (!err->message[0])
		snprintf(err->message, sizeof(err->message), "cannot open the store %s: %s",
			 s->place ? s->place : "in ClickHouse", strerror(-code));
	click_close(&s->store);
	return code;
}
