/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A batch is packed once, then sent as often as it takes, or kept on disk for later. A batch may arrive twice (an answer was
 * lost) without harm: rows of what samples refer to replace their equals, and samples come with a token by which ClickHouse
 * knows what it has already.
 *
 * In the spool: a byte with the version of the tables, the token, and of each table the length (4 bytes) and its rows.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "backend/store/clickhouse/click.h"
#include "backend/store/ids.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/pack/zstd.h"
#include "sinks/otlp/spool.h"

enum { PACK_LEVEL = 1, MAX_FOLDER_CHARS = 100, DEFAULT_SPOOL_BYTES = 512 << 20 };

int click_parcel_make(struct click_parcel *p, const struct click_batch *b)
{
	const struct buf *samples = &b->rows[CLICK_SAMPLES];
	const struct id_key key = id_key_of(samples->data, samples->len);
	int err = 0;

	snprintf(p->token, sizeof(p->token), "%016" PRIx64 "%08" PRIx32, key.low, key.high);
	p->events = b->events;
	for (size_t i = 0; i < CLICK_TABLES && !err; i++) {
		buf_reset(&p->rows[i]);
		if (b->rows[i].len)
			err = zstd_pack(b->rows[i].data, b->rows[i].len, PACK_LEVEL, &p->rows[i]);
	}
	return err;
}

void click_parcel_fini(struct click_parcel *p)
{
	for (size_t i = 0; i < CLICK_TABLES; i++)
		buf_fini(&p->rows[i]);
}

int click_parcel_send(struct click_connection *c, const struct click_parcel *p, uint64_t timeout_ns)
{
	AUTO(buf_fini) struct buf params = BUF_EMPTY;
	int err = 0;

	/* A sender's wrong clock is no reason to refuse what others sent. */
	click_param(&params, "throw_on_max_partitions_per_insert_block", "0");
	for (size_t i = 0; i < CLICK_TABLES && !err; i++) {
		struct click_request r = { .sql = click_inserts[i], .rows = &p->rows[i], .timeout_ns = timeout_ns };

		if (!p->rows[i].len)
			continue;
		if (i == CLICK_SAMPLES)
			click_param(&params, "insert_deduplication_token", p->token);
		r.params = buf_text(&params);
		err = params.failed ? -ENOMEM : click_request(c, &r, NULL);
	}
	return err;
}

/* --- the spool --- */

int click_spool_open(struct store_clickhouse *s, struct spool **ret)
{
	struct metrics *registry = s->metrics.registry;
	const char *const name = "hearth_store_lost_events_total",
			  *const help = "Sample events that could not be written to the store.";
	AUTO(buf_fini) struct buf path = BUF_EMPTY;
	struct spool_config config = {
		.max_bytes = s->config.spool_bytes ? s->config.spool_bytes : DEFAULT_SPOOL_BYTES,
		.max_age_ns = s->config.spool_age_ns,
		.bytes = metrics_gauge(registry, "hearth_spool_bytes", "store=\"clickhouse\"",
				       "Size of the files in the spool."),
		.samples = metrics_gauge(registry, "hearth_spool_samples", "store=\"clickhouse\"",
					 "Samples in the spool, not sent yet."),
		.dropped_full = metrics_counter(registry, name, "reason=\"spool full\"", help),
		.dropped_age = metrics_counter(registry, name, "reason=\"spool age\"", help),
		.dropped_corrupt = metrics_counter(registry, name, "reason=\"spool corrupt\"", help),
		.corrupt_bytes = metrics_counter(registry, "hearth_spool_corrupt_bytes_total", "store=\"clickhouse\"",
						 "Bytes of the spool's files that made no sense and were skipped."),
	};
	const struct id_key hash = id_key_of(s->place, strlen(s->place));
	size_t chars = 0;
	int err;

	buf_printf(&path, "%s/clickhouse_", s->config.spool_dir);
	for (const char *c = s->place; *c && chars < MAX_FOLDER_CHARS; c++, chars++)
		buf_putc(&path, strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-", *c) ? *c : '_');
	buf_printf(&path, "_%08" PRIx32, hash.high);
	if (path.failed)
		return -ENOMEM;
	config.dir = buf_text(&path);
	err = spool_open(&config, ret);
	if (!err && spool_samples(*ret))
		log_info("%" PRIu64 " samples from before wait in %s and will be sent to %s", spool_samples(*ret),
			 spool_dir(*ret), s->place);
	return err;
}

int click_parcel_spool(struct spool *spool, const struct click_parcel *p)
{
	AUTO(buf_fini) struct buf data = BUF_EMPTY;
	struct spool_record record = { .samples = p->events, .packing = 1 };
	int err;

	buf_putc(&data, CLICK_SCHEMA_VERSION);
	buf_append(&data, p->token, sizeof(p->token));
	for (size_t i = 0; i < CLICK_TABLES; i++) {
		put_number(&data, p->rows[i].len, 4);
		buf_append(&data, p->rows[i].data, p->rows[i].len);
	}
	if (data.failed)
		return -ENOMEM;
	record.data = data.data;
	record.len = record.message_bytes = data.len;
	err = spool_append(spool, &record);
	return err ? err : spool_sync(spool);
}

static bool read_record(const struct spool_record *record, struct click_parcel *ret)
{
	struct row_reader r = { record->data, record->data + record->len, false };

	if (get_number(&r, 1) != CLICK_SCHEMA_VERSION || (size_t)(r.end - r.at) < sizeof(ret->token))
		return false;
	memcpy(ret->token, r.at, sizeof(ret->token));
	ret->token[sizeof(ret->token) - 1] = 0;
	r.at += sizeof(ret->token);
	ret->events = record->samples;
	for (size_t i = 0; i < CLICK_TABLES; i++) {
		uint64_t len = get_number(&r, 4);

		if (len > (uint64_t)(r.end - r.at))
			return false;
		buf_reset(&ret->rows[i]);
		buf_append(&ret->rows[i], r.at, len);
		r.at += len;
	}
	return !r.is_bad;
}

int click_parcel_unspool(struct spool *spool, struct click_parcel *ret)
{
	struct spool_record record;
	int more;

	while ((more = spool_peek(spool, &record)) > 0) {
		if (read_record(&record, ret))
			return 1;
		log_error("a batch of %" PRIu64 " samples in %s makes no sense and is dropped", record.samples,
			  spool_dir(spool));
		spool_remove(spool);
	}
	return more;
}
