/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store's one writer: a bounded queue, and a thread that makes one batch of all that came within a second, for
 * ClickHouse wants few large inserts. If an attempt to send a batch fails, the batch waits for the next: in memory, and then
 * the queue fills and senders are refused; or, with a spool, on disk. Batches in the spool are sent by turns with fresh
 * ones.
 *
 * Invariant: a batch is acknowledged as kept only after ClickHouse answered for all of it, or the spool was synced.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "backend/store/clickhouse/click.h"
#include "backend/store/queue.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/thread.h"
#include "sinks/otlp/spool.h"

enum {
	QUEUE_ITEMS = 8192,
	GROUP_ITEMS = 4096,
	BATCH_EVENTS = 1 << 18,
	LOG_EVERY_S = 30,
};

#define QUEUE_BYTES	(256ull << 20) /* of profiles that wait */
#define GROUP_NS	NSEC_PER_SEC
#define IDLE_NS		(NSEC_PER_SEC / 2)
#define FIRST_WAIT_NS	(NSEC_PER_SEC / 2)
#define LONGEST_WAIT_NS (30 * NSEC_PER_SEC)
#define PAUSE_NS	(10 * NSEC_PER_SEC) /* waited for it to come to rest */
#define SEND_NS		(30 * NSEC_PER_SEC)
#define LAST_SEND_NS	(3 * NSEC_PER_SEC) /* at the end */

struct click_writer {
	struct store_clickhouse *s;
	const struct click_address *address;
	struct click_connection *connection;
	pthread_t thread;
	struct store_queue *queue;
	bool pause_asked, is_paused;	/* under @lock */
	_Atomic bool is_ending, is_cut; /* cut: what is being sent is given up */
	pthread_mutex_t lock;		/* what waits for the end */
	pthread_cond_t moved;
	/* the thread's */
	struct click_sent *sent;
	struct click_batch batch;
	struct click_parcel parcel, spooled;
	struct spool *spool; /* or NULL */
	struct store_item *items[GROUP_ITEMS];
	size_t count;
	uint64_t wait_ns, next_ns; /* after a failure: how long, and until when nothing is tried; 0: all is well */
	struct log_limit limit, away_limits[CLICK_FAILURES]; /* another reason is said at once */
};

/* --- sending --- */

static int send_parcel(struct click_writer *w, const struct click_parcel *p)
{
	const uint64_t timeout_ns = atomic_load(&w->is_ending) ? LAST_SEND_NS : SEND_NS;
	struct click_metrics *metrics = &w->s->metrics;
	struct store_error why = { "" };
	int err = atomic_load(&w->s->is_ready) ? 0 : click_make_schema(w->s, w->connection, &why);

	if (!err)
		err = click_parcel_send(w->connection, p, timeout_ns);
	metric_add(err ? metrics->commit_errors : metrics->commits, 1);
	if (!err) {
		if (w->wait_ns)
			log_info("%s takes samples again", w->s->place);
		w->wait_ns = w->next_ns = 0;
		metric_add(metrics->events, p->events);
		for (size_t i = 0; i < CLICK_TABLES; i++)
			metric_add(metrics->sent_bytes, p->rows[i].len);
		return 0;
	}
	click_sent_forget(w->sent);
	if (err == -ENOENT)
		atomic_store(&w->s->is_ready, false); /* somebody took the tables away */
	if (err == -EINVAL)
		return err;
	w->wait_ns = w->wait_ns ? w->wait_ns * 2 : FIRST_WAIT_NS;
	w->wait_ns = w->wait_ns < LONGEST_WAIT_NS ? w->wait_ns : LONGEST_WAIT_NS;
	w->next_ns = clock_mono_ns() + w->wait_ns;
	log_limited(&w->away_limits[click_failure(w->connection)], LOG_EVERY_S * NSEC_PER_SEC, LOG_WARN,
		    "%s does not take samples: %s; they wait in %s", w->s->place,
		    why.message[0] ? why.message : click_error(w->connection), w->spool ? spool_dir(w->spool) : "memory");
	return err;
}

static int spool_parcel(struct click_writer *w, const struct click_parcel *p)
{
	int err = w->spool ? click_parcel_spool(w->spool, p) : -ENOENT;

	if (!err)
		metric_add(w->s->metrics.spooled_events, p->events);
	else if (w->spool)
		log_limited(&w->limit, LOG_EVERY_S * NSEC_PER_SEC, LOG_ERROR, "cannot keep samples in %s: %s",
			    spool_dir(w->spool), strerror(-err));
	return err;
}

static void lose(struct click_writer *w, const struct click_parcel *p, const char *why)
{
	metric_add(w->s->metrics.lost_events, p->events);
	log_limited(&w->limit, LOG_EVERY_S * NSEC_PER_SEC, LOG_ERROR, "%" PRIu64 " samples are lost: %s: %s", p->events,
		    w->s->place, why);
}

/* Waits until the next attempt, or the end. */
static void wait(struct click_writer *w)
{
	pthread_mutex_lock(&w->lock);
	while (!atomic_load(&w->is_ending) && clock_mono_ns() < w->next_ns)
		thread_cond_wait(&w->moved, &w->lock, w->next_ns);
	pthread_mutex_unlock(&w->lock);
}

/* Sends w->parcel, or puts it into the spool: 0; -errno: it is lost. */
static int deliver(struct click_writer *w)
{
	for (;;) {
		const bool is_away = clock_mono_ns() < w->next_ns;
		const bool was_ending = atomic_load(&w->is_ending);
		int err = is_away && (w->spool || was_ending) ? -EHOSTUNREACH : send_parcel(w, &w->parcel);

		if (!err)
			return 0;
		click_sent_forget(w->sent);
		if (err == -EINVAL) {
			lose(w, &w->parcel, click_error(w->connection));
			return err;
		}
		if (!spool_parcel(w, &w->parcel))
			return 0;
		if (was_ending) {
			lose(w, &w->parcel, "it did not take them before the end");
			return err;
		}
		wait(w);
	}
}

/* Sends one parcel of the spool; true: there may be more to send at once. */
static bool send_spooled(struct click_writer *w)
{
	int err;

	if (!w->spool || spool_is_empty(w->spool) || clock_mono_ns() < w->next_ns || atomic_load(&w->is_ending))
		return false;
	if (click_parcel_unspool(w->spool, &w->spooled) <= 0)
		return false;
	err = send_parcel(w, &w->spooled);
	if (err == -EINVAL)
		lose(w, &w->spooled, click_error(w->connection));
	if (!err || err == -EINVAL)
		spool_remove(w->spool);
	return !err;
}

/* --- batches --- */

/* Collects the items that come within a second, or fewer when they are many. */
static void collect(struct click_writer *w, uint64_t idle_ns)
{
	uint64_t end;
	struct store_item *item = store_queue_pop(w->queue, clock_mono_ns() + idle_ns);

	w->count = 0;
	click_batch_reset(&w->batch);
	for (end = clock_mono_ns() + GROUP_NS; item;
	     item = store_queue_pop(w->queue, atomic_load(&w->is_ending) ? 0 : end)) {
		int err = click_batch_add(&w->batch, w->sent, item->p, clock_unix_ns());

		if (err) { /* out of memory: parts of it may be in */
			metric_add(w->s->metrics.lost_events, item->p->sample_events);
			click_sent_forget(w->sent);
		}
		w->items[w->count++] = item;
		if (w->count == GROUP_ITEMS || w->batch.events >= BATCH_EVENTS)
			return;
	}
}

/* Waits while another thread has paused the writer. */
static void wait_paused(struct click_writer *w)
{
	pthread_mutex_lock(&w->lock);
	if (w->pause_asked) {
		w->is_paused = true;
		pthread_cond_broadcast(&w->moved);
		while (w->pause_asked)
			pthread_cond_wait(&w->moved, &w->lock);
		w->is_paused = false;
		click_sent_forget(w->sent);
	}
	pthread_mutex_unlock(&w->lock);
}

int click_writer_pause(struct store_clickhouse *s)
{
	struct click_writer *w = s->writer;
	const uint64_t end_ns = clock_mono_ns() + PAUSE_NS;
	int err;

	if (!w)
		return 0;
	pthread_mutex_lock(&w->lock);
	w->pause_asked = true;
	while (!w->is_paused && clock_mono_ns() < end_ns)
		thread_cond_wait(&w->moved, &w->lock, end_ns);
	err = w->is_paused ? 0 : -EBUSY;
	w->pause_asked = !err;
	pthread_mutex_unlock(&w->lock);
	return err;
}

void click_writer_resume(struct store_clickhouse *s)
{
	struct click_writer *w = s->writer;

	if (!w)
		return;
	pthread_mutex_lock(&w->lock);
	w->pause_asked = false;
	pthread_cond_broadcast(&w->moved);
	pthread_mutex_unlock(&w->lock);
}

static void *run_writer(void *arg)
{
	struct click_writer *w = arg;
	bool has_more = false;

	for (;;) {
		int err;

		wait_paused(w);
		collect(w, has_more ? 0 : IDLE_NS);
		if (!w->count && atomic_load(&w->is_ending))
			return NULL;
		if (w->count) {
			err = click_parcel_make(&w->parcel, &w->batch);
			if (err)
				metric_add(w->s->metrics.lost_events, w->batch.events);
			store_queue_settle(w->queue, w->items, w->count, err ? err : deliver(w));
		}
		has_more = send_spooled(w);
	}
}

int click_writer_sink(struct store *store, struct sink **ret)
{
	struct click_writer *w = store_clickhouse_of(store)->writer;

	return w ? store_queue_sink(w->queue, "clickhouse", ret) : -EROFS;
}

/* --- start and stop --- */

static void writer_free(struct click_writer *w)
{
	click_disconnect(w->connection);
	click_sent_free(w->sent);
	click_batch_fini(&w->batch);
	click_parcel_fini(&w->parcel);
	click_parcel_fini(&w->spooled);
	if (w->spool && spool_samples(w->spool))
		log_info("%" PRIu64 " samples for %s wait in %s for the next start", spool_samples(w->spool), w->s->place,
			 spool_dir(w->spool));
	spool_close(w->spool);
	store_queue_free(w->queue);
	pthread_mutex_destroy(&w->lock);
	pthread_cond_destroy(&w->moved);
	free(w);
}

int click_writer_start(struct store_clickhouse *s, const struct click_address *address)
{
	struct click_writer *w = calloc(1, sizeof(*w));
	int err;

	if (!w)
		return -ENOMEM;
	w->s = s;
	pthread_mutex_init(&w->lock, NULL);
	thread_cond_init(&w->moved);
	w->sent = click_sent_new();
	err = w->sent ? store_queue_new(QUEUE_ITEMS, QUEUE_BYTES, s->metrics.registry, &w->queue) : -ENOMEM;
	if (!err)
		err = click_connect(address, &w->is_cut, s->metrics.failures, &w->connection);
	if (!err && s->config.spool_dir)
		err = click_spool_open(s, &w->spool);
	if (!err)
		err = thread_start(&w->thread, "clickhouse", run_writer, w);
	if (err)
		writer_free(w);
	else
		s->writer = w;
	return err;
}

void click_writer_stop(struct store_clickhouse *s)
{
	struct click_writer *w = s->writer;
	const uint64_t cut_ns = clock_mono_ns() + LAST_SEND_NS;

	if (!w)
		return;
	store_queue_close(w->queue);
	pthread_mutex_lock(&w->lock);
	atomic_store(&w->is_ending, true);
	pthread_cond_broadcast(&w->moved);
	pthread_mutex_unlock(&w->lock);
	(void)store_queue_flush(w->queue, cut_ns);
	atomic_store(&w->is_cut, true);
	pthread_join(w->thread, NULL);
	writer_free(w);
	s->writer = NULL;
}
