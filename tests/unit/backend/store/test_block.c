/* SPDX-License-Identifier: Apache-2.0 */
/* Packed columns, blocks of events and the table of known things: what goes in comes out; what was changed is noticed. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backend/store/block.h"
#include "backend/store/block_times.h"
#include "backend/store/ids.h"
#include "backend/store/sqlite/keep.h"

enum { EVENTS = 5000 };

static uint64_t state = 88172645463325252ull;

static uint64_t rnd(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

static void test_columns(void **arg)
{
	static const uint64_t masks[] = { 0, 1, 0xff, 0x100, 0xffffff, UINT64_MAX };
	struct column_codec *c = column_codec_new(3);

	(void)arg;
	for (size_t m = 0; m < sizeof(masks) / sizeof(*masks); m++) {
		for (size_t n = 1; n < 3000; n = n * 3 + 1) {
			uint64_t in[3000], out[3000];
			struct buf buf = BUF_EMPTY;
			struct column_bytes bytes;

			for (size_t i = 0; i < n; i++)
				in[i] = rnd() & masks[m];
			column_put(c, &buf, in, n);
			column_seal(&buf, 0);
			assert_int_equal(column_open(buf.data, buf.len, &bytes), 0);
			column_get(c, &bytes, out, n);
			assert_int_equal(bytes.failed, 0);
			assert_ptr_equal(bytes.data, bytes.end);
			assert_memory_equal(in, out, n * sizeof(*in));
			buf.data[rnd() % buf.len] ^= 4;
			assert_int_equal(column_open(buf.data, buf.len, &bytes), -EBADMSG);
			buf_fini(&buf);
		}
	}
	column_codec_free(c);
}

/* What has no room for a checksum is nothing, and nothing with one is a column of nothing. */
static void test_short_columns(void **arg)
{
	struct column_bytes bytes;
	struct buf empty = BUF_EMPTY;

	(void)arg;
	assert_int_equal(column_open(NULL, 0, &bytes), -EBADMSG);
	for (size_t len = 0; len < 4; len++) {
		void *data = calloc(1, len + 1);

		assert_int_equal(column_open(data, len, &bytes), -EBADMSG);
		assert_int_equal(bytes.failed, -EBADMSG);
		free(data);
	}
	column_seal(&empty, 0);
	assert_int_equal(empty.len, 4);
	assert_int_equal(column_open(empty.data, empty.len, &bytes), 0);
	assert_int_equal(bytes.failed, 0);
	assert_int_equal(column_get_varint(&bytes), 0);
	assert_int_equal(bytes.failed, -EBADMSG); /* there is none */
	buf_fini(&empty);
}

/* Rests of times go there and back, whatever was usual before; of what no writer wrote they stay below the period. */
static void test_rests(void **arg)
{
	static const uint64_t periods[] = { 1, 2, 7, 1001001, BLOCK_MAX_PERIOD };
	struct usual_rest there = { 0 }, back = { 0 };

	(void)arg;
	for (size_t i = 0; i < 200000; i++) {
		const uint64_t period = periods[rnd() % 5], rest = rnd() % 3 ? rnd() % period : period * 3 / 4;
		const uint32_t cpu = (uint32_t)rnd() % 5 * 700; /* some share a place */

		assert_int_equal(usual_rest_apply(&back, cpu, period, usual_rest_difference(&there, cpu, period, rest)),
				 rest);
		assert_memory_equal(&there, &back, sizeof(there));
	}
	for (size_t i = 0; i < 200000; i++) {
		const uint64_t period = periods[rnd() % 5], wild = rnd() >> rnd() % 64;
		struct usual_rest same = back;

		assert_true(usual_rest_apply(&back, (uint32_t)i, period, wild) < period);
		assert_true(usual_rest_apply(&same, (uint32_t)i, period, wild % (2 * period)) < period);
		assert_memory_equal(&same, &back, sizeof(same));
	}
}

static int compare_all(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct event));
}

/* Ticks on four cpus with jitter, a series without period, weights of both signs, times over three minutes. */
static void make_events(struct event *events, bool has_weights)
{
	memset(events, 0, EVENTS * sizeof(*events));
	for (size_t i = 0; i < EVENTS; i++) {
		struct event *e = &events[i];

		e->series = (uint32_t)(rnd() % 5) * 1000 + 7;
		e->stack = (uint32_t)(rnd() % 300) * (uint32_t)(rnd() % 300);
		e->cpu = (uint32_t)(rnd() % 5);
		e->labels = (uint32_t)(rnd() % 9);
		e->link = has_weights ? (uint32_t)(rnd() % 3) : 0;
		e->weight = has_weights ? (int64_t)(rnd() % 2000) - 1000 : 1;
		e->period = e->series == 7 ? 0 : 1001001;
		e->time_ns = 1700000000000000000ull + (e->period
							       ? rnd() % 180000 * e->period + e->cpu * 250000 + rnd() % 6000
							       : rnd() % 180000000000ull);
	}
}

/* A part that ends early is none, also where its checksum is right. */
static void check_cut_parts(struct block *b, const struct buf parts[BLOCK_PARTS])
{
	enum { SEAL_BYTES = 4 };

	for (int p = 1; p < BLOCK_PARTS; p++) {
		struct buf cut = { 0 };

		if (parts[p].len <= SEAL_BYTES + 2)
			continue; /* there is none */
		buf_append(&cut, parts[p].data, (parts[p].len - SEAL_BYTES) / 2);
		column_seal(&cut, 0);
		assert_int_equal(block_read_head(b, parts[BLOCK_HEAD].data, parts[BLOCK_HEAD].len), 0);
		for (int q = 1; q < p; q++)
			assert_int_equal(block_read(b, (enum block_part)q, parts[q].data, parts[q].len), 0);
		assert_int_equal(block_read(b, (enum block_part)p, cut.data, cut.len), -EBADMSG);
		buf_fini(&cut);
	}
}

static void test_blocks(void **arg)
{
	static struct event events[EVENTS], back[EVENTS];
	struct column_codec *c = column_codec_new(3);
	struct block b;

	(void)arg;
	block_init(&b, c);
	for (int has_weights = 0; has_weights < 2; has_weights++) {
		struct buf parts[BLOCK_PARTS] = { 0 };
		uint32_t at = 0;

		make_events(events, has_weights);
		events_sort(events, EVENTS);
		assert_int_equal(block_pack(c, events, EVENTS, parts), 0);
		assert_int_equal(block_read_head(&b, parts[BLOCK_HEAD].data, parts[BLOCK_HEAD].len), 0);
		for (int p = 1; p < BLOCK_PARTS; p++)
			assert_int_equal(block_read(&b, (enum block_part)p, parts[p].data, parts[p].len), 0);
		assert_int_equal(b.series_count, 5);
		assert_int_equal(b.event_count, EVENTS);
		memset(back, 0, sizeof(back));
		for (uint32_t s = 0; s < b.series_count; s++) {
			for (uint32_t r = b.run_start[s]; r < b.run_start[s + 1]; r++) {
				int64_t weight = 0;

				for (uint32_t i = 0; i < b.run_events[r]; i++, at++) {
					back[at].time_ns = b.time_ns[at];
					back[at].weight = b.weight ? b.weight[at] : 1;
					back[at].series = b.series[s];
					back[at].stack = b.run_stack[r];
					back[at].labels = b.cell_set[b.label[at]];
					back[at].cpu = b.cpu[at];
					back[at].link = b.link ? b.link[at] : 0;
					back[at].period = b.period[s];
					weight += back[at].weight;
				}
				assert_int_equal(weight, has_weights ? b.run_weight[r] : (int64_t)b.run_events[r]);
			}
		}
		qsort(events, EVENTS, sizeof(*events), compare_all);
		qsort(back, EVENTS, sizeof(*back), compare_all);
		assert_memory_equal(events, back, sizeof(events));
		check_cut_parts(&b, parts);
		parts[BLOCK_TIMES].data[parts[BLOCK_TIMES].len / 2] ^= 1;
		assert_int_equal(block_read_head(&b, parts[BLOCK_HEAD].data, parts[BLOCK_HEAD].len), 0);
		for (int p = 1; p < BLOCK_PARTS; p++)
			assert_int_equal(block_read(&b, (enum block_part)p, parts[p].data, parts[p].len),
					 p == BLOCK_TIMES ? -EBADMSG : 0);
		for (int p = 0; p < BLOCK_PARTS; p++)
			buf_fini(&parts[p]);
	}
	block_fini(&b);
	column_codec_free(c);
}

static void test_rows(void **arg)
{
	struct column_codec *c = column_codec_new(3);
	struct frame_row frames[500], frames_back[500];
	struct store_node nodes[500], nodes_back[500];
	struct buf buf = BUF_EMPTY;

	(void)arg;
	memset(frames, 0, sizeof(frames));
	for (uint32_t i = 0; i < 500; i++) {
		frames[i] = (struct frame_row){
			rnd(), (int64_t)rnd(), (int64_t)(rnd() % 9) - 4, (uint32_t)rnd(), (uint32_t)rnd(), 5, i & 1
		};
		nodes[i] = (struct store_node){ (uint32_t)(rnd() % (1000 + i)), (uint32_t)rnd() };
	}
	frames_pack(c, frames, 500, &buf);
	assert_int_equal(frames_unpack(c, buf.data, buf.len, frames_back, 500), 0);
	assert_memory_equal(frames, frames_back, sizeof(frames));
	buf_reset(&buf);
	nodes_pack(c, nodes, 500, 1000, &buf);
	assert_int_equal(nodes_unpack(c, buf.data, buf.len, nodes_back, 500, 1000), 0);
	assert_memory_equal(nodes, nodes_back, sizeof(nodes));
	/* The same bytes for smaller numbers: a parent would come after its child. */
	assert_int_equal(nodes_unpack(c, buf.data, buf.len, nodes_back, 500, 1), -EBADMSG);
	buf_fini(&buf);
	column_codec_free(c);
}

/* Lists of all lengths and numbers, empty ones too; what was cut short or claims more than there is is refused. */
static void test_lists(void **arg)
{
	static const uint32_t lengths[] = { 3, 0, 2, 3, 70, 1, 63, 64, 2, 70, 0, 200 };
	enum { LISTS = sizeof(lengths) / sizeof(*lengths), NUMBERS = 478 };
	struct column_codec *c = column_codec_new(3);
	int64_t numbers[NUMBERS];
	struct buf buf = BUF_EMPTY;
	struct lists back = { 0 };

	(void)arg;
	for (int shift = 0; shift < 64; shift += 21) {
		size_t at = 0;

		for (size_t i = 0; i < NUMBERS; i++)
			numbers[i] = (int64_t)(rnd() << shift);
		numbers[4] = INT64_MIN;
		buf_reset(&buf);
		lists_pack(c, numbers, lengths, LISTS, &buf);
		assert_int_equal(lists_unpack(c, buf.data, buf.len, LISTS, &back), 0);
		for (size_t i = 0; i < LISTS; at += lengths[i++])
			assert_int_equal(back.starts[i], at);
		assert_int_equal(back.starts[LISTS], NUMBERS);
		assert_memory_equal(back.numbers, numbers, sizeof(numbers));
		lists_fini(&back);
		assert_int_equal(lists_unpack(c, buf.data, buf.len, LISTS + 1, &back), -EBADMSG);
		assert_int_equal(lists_unpack(c, buf.data, buf.len - 1, LISTS, &back), -EBADMSG);
	}
	buf_reset(&buf);
	lists_pack(c, (const int64_t[LIST_MOST_NUMBERS + 1]){ 1 }, (const uint32_t[]){ LIST_MOST_NUMBERS + 1 }, 1, &buf);
	assert_int_equal(lists_unpack(c, buf.data, buf.len, 1, &back), -EBADMSG);
	buf_fini(&buf);
	column_codec_free(c);
}

/* Nothing is forgotten before the table is full; then what was not met for long. */
static void test_ids(void **arg)
{
	enum { MOST = 4096, FEW = MOST / 2 };
	struct ids t;
	uint32_t known = 0;

	(void)arg;
	ids_init(&t, MOST);
	for (uint32_t i = 1; i <= FEW; i++)
		assert_int_equal(ids_put(&t, id_key_of(&i, sizeof(i)), i), 0);
	for (uint32_t i = 1; i <= FEW; i++)
		assert_int_equal(ids_get(&t, id_key_of(&i, sizeof(i))), i);
	for (uint32_t i = FEW + 1; i <= 50 * MOST; i++)
		assert_int_equal(ids_put(&t, id_key_of(&i, sizeof(i)), i), 0);
	for (uint32_t i = 1; i <= 50 * MOST; i++) {
		uint32_t id = ids_get(&t, id_key_of(&i, sizeof(i)));

		assert_true(id == 0 || id == i);
		known += id != 0;
	}
	assert_in_range(known, MOST / 2, MOST);
	ids_fini(&t);
}

static struct id_key key_of(uint32_t i)
{
	return id_key_of(&i, sizeof(i));
}

/* What is put last pushes out nothing but its like, until it is met again. */
static void test_ids_last(void **arg)
{
	enum { MOST = 4096, FEW = MOST / 4, ONCE = 50 * MOST };
	struct ids t;
	uint32_t known = 0;

	(void)arg;
	ids_init(&t, MOST);
	for (uint32_t i = 1; i <= FEW; i++)
		assert_int_equal(ids_put(&t, key_of(i), i), 0);
	for (uint32_t i = FEW + 1; i <= ONCE; i++)
		assert_int_equal(ids_put_last(&t, key_of(i), i), 0);
	assert_int_equal(ids_get(&t, key_of(ONCE)), ONCE);
	for (uint32_t i = 1; i <= FEW; i++)
		known += ids_get(&t, key_of(i)) == i;
	assert_in_range(known, FEW * 9 / 10, FEW);
	assert_int_equal(ids_put_last(&t, key_of(ONCE + 1), ONCE + 1), 0);
	assert_int_equal(ids_get(&t, key_of(ONCE)), ONCE);
	ids_fini(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_columns), cmocka_unit_test(test_short_columns), cmocka_unit_test(test_rests),
		cmocka_unit_test(test_blocks),	cmocka_unit_test(test_rows),	      cmocka_unit_test(test_lists),
		cmocka_unit_test(test_ids),	cmocka_unit_test(test_ids_last),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
