/* SPDX-License-Identifier: Apache-2.0 */
/* What the store's memory is spent on: the writer's parts, which belong to its thread, and the readers', under their lock.
 */
#include "backend/store_sqlite_names.h"
#include "backend/store_sqlite_write.h"
#include "base/memory.h"

static size_t parts_bytes(const struct store_writer *w)
{
	size_t bytes = 0;

	for (size_t i = 0; i < BLOCK_PARTS; i++)
		bytes += w->parts[i].cap;
	return bytes;
}

void store_tell_memory(struct store_writer *w)
{
	struct store_sqlite *s = w->s;
	struct metrics *m = s->metrics.registry;
	size_t numbers, buffers;

	keep_memory(&w->keep, &numbers, &buffers);
	memory_tell(m, "store numbers", numbers);
	memory_tell(m, "store writer",
		    buffers + column_codec_memory_bytes(w->codec) + block_memory_bytes(&w->block) + parts_bytes(w));
	memory_tell(m, "SQLite", (size_t)sqlite3_memory_used());
	metric_set(s->metrics.queue_bytes, store_queue_bytes(w->queue));
	if (pthread_mutex_trylock(&s->read_lock))
		return;
	memory_tell(m, "store names", store_names_memory_bytes(s->names));
	memory_tell(m, "store readers", column_codec_memory_bytes(s->codec) + block_memory_bytes(&s->block));
	pthread_mutex_unlock(&s->read_lock);
}
