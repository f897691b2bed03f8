/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names for frames that came as bare addresses. They are looked up once, as many as are worth it; later ones are noted when
 * questions meet them.
 */
#include <errno.h>
#include <inttypes.h>

#include "backend/store/clickhouse/click.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/pack/zstd.h"

enum { PACK_LEVEL = 1 };

static const char insert_sql[] =
	"INSERT INTO hearth_names (build_id, address, seen, function, system_name, file, line, start_line)"
	" FORMAT RowBinary";
static const char bare_sql[] = "SELECT id FROM hearth_frames WHERE function = '' AND build_id != '' LIMIT 200000";

static void put_z(struct buf *b, const char *text)
{
	put_text(b, text, strlen(text));
}

int click_name_frames(struct store *store, const char *build_id, const struct store_name *names, size_t count)
{
	struct store_clickhouse *s = store_clickhouse_of(store);
	AUTO(buf_fini) struct buf rows = BUF_EMPTY, packed = BUF_EMPTY;
	const uint64_t now_ns = clock_unix_ns();
	int err;

	if (!count || !*build_id)
		return -EINVAL;
	for (size_t i = 0; i < count; i++) {
		put_z(&rows, build_id);
		put_number(&rows, names[i].address, 8);
		put_number(&rows, now_ns, 8);
		put_z(&rows, names[i].function);
		put_z(&rows, names[i].system_name);
		put_z(&rows, names[i].file);
		put_number(&rows, (uint64_t)names[i].line, 8);
		put_number(&rows, (uint64_t)names[i].start_line, 8);
	}
	err = rows.failed ? -ENOMEM : zstd_pack(rows.data, rows.len, PACK_LEVEL, &packed);
	if (err)
		return err;
	pthread_mutex_lock(&s->read_lock);
	err = click_request(s->reader, &(struct click_request){ .sql = insert_sql, .rows = &packed }, NULL);
	pthread_mutex_unlock(&s->read_lock);
	if (!err)
		atomic_fetch_add(&store->names_version, 1);
	return err;
}

static int load_bare(struct store_clickhouse *s)
{
	AUTO(click_sql_fini) struct click_sql q = { 0 };
	AUTO(buf_fini) struct buf answer = BUF_EMPTY;
	int err;

	buf_puts(&q.text, bare_sql);
	err = click_ask(s, &q, NULL, &answer);
	return err ? err
		   : click_names_load_frames(s, (const uint64_t *)(const void *)answer.data, answer.len / sizeof(uint64_t));
}

/* After click_rest() numbers begin anew: then those that were met since are looked at. */
int click_bare_frames(struct store *store, uint32_t from, uint32_t *next_ret,
		      int (*fn)(void *arg, const struct store_frame *frame), void *arg)
{
	struct store_clickhouse *s = store_clickhouse_of(store);
	uint32_t i = from;
	int err = 0;

	pthread_mutex_lock(&s->read_lock);
	if (!from)
		err = load_bare(s);
	if (i > click_frame_count(s->names))
		i = 0;
	for (; !err && i < click_frame_count(s->names); i++) {
		struct store_frame frame;

		err = click_frame(store, i, &frame);
		if (!err && *frame.build_id && click_frame_more(s->names, i)->is_bare)
			err = fn(arg, &frame);
		if (err)
			break;
	}
	*next_ret = i;
	pthread_mutex_unlock(&s->read_lock);
	return err;
}
