/* SPDX-License-Identifier: Apache-2.0 */
/* The files of this room share this: the connections and how records stand in tables. */
#ifndef HEARTH_BACKEND_SIGNALS_SIGNALS_INTERNAL_H
#define HEARTH_BACKEND_SIGNALS_SIGNALS_INTERNAL_H

#include <pthread.h>
#include <sqlite3.h>

#include "backend/signals/signals.h"
#include "base/log.h"
#include "proto/otlp/signals.h"

enum { SIGNAL_LABELS_BYTES = 4096, SIGNAL_TABLES = 3 };

struct signals {
	struct signals_config config;
	char *path; /* NULL: in memory */
	struct queue *queue;
	pthread_t thread;
	bool is_running;
	_Atomic bool is_ending;
	/* The thread's, but while it is not running. */
	sqlite3 *write_db; /* NULL until the first record */
	sqlite3_stmt *put_text, *get_text, *put_resource, *get_resource, *put_span, *put_log, *put_exemplar;
	int64_t resource;	  /* number of the one that the next rows are of */
	_Atomic uint64_t look_ns; /* CLOCK_MONOTONIC: when retention is due; signals_look() sets it, too */
	struct log_limit limit;
	/* Under the lock. In memory it guards write_db, too, which is read_db. */
	pthread_mutex_t lock;
	pthread_cond_t settled;
	uint64_t pushed, done; /* requests */
	size_t queued_bytes;
	pthread_mutex_t read_lock;
	sqlite3 *read_db; /* NULL: there is no file yet */
	struct {
		struct metric *kept[OTLP_OTHERS], *incomplete, *lost_full, *lost_write, *removed, *bytes;
	} metrics;
};

/* signals_put.c: puts all records of @other, in the caller's transaction; their number is added to *@kept_ret. 0 or -errno.
 */
int signals_put(struct signals *s, const struct otlp_other *other, uint64_t *kept_ret);

/* signals_rows.c: the statements of write_db, and a row for each record, of the resource that was put last. 0 or -errno. */
int signals_prepare(struct signals *s);
void signals_unprepare(struct signals *s);
int signals_row_resource(struct signals *s, const struct kept_resource *r);
int signals_row_span(struct signals *s, const struct kept_span *span);
int signals_row_log(struct signals *s, const struct kept_log *log);
int signals_row_exemplar(struct signals *s, const struct kept_exemplar *exemplar);

/* The connection for questions, locked; NULL: there is nothing yet, and nothing is locked. */
sqlite3 *signals_reader(struct signals *s);
void signals_reader_end(struct signals *s);

#endif
