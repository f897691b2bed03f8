/* SPDX-License-Identifier: Apache-2.0 */
/* Weights by stack, by time and by value of a label: ClickHouse adds them up, and its answers are passed on. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "backend/store/clickhouse/click.h"
#include "base/cleanup.h"

/* One row of sums. */
struct sum {
	struct str group;
	uint64_t stack;
	uint64_t number; /* of a bucket */
	int64_t weight;
	uint64_t events;
};

/* The columns that rows of an answer have besides weight and events. */
struct row_form {
	bool has_group, has_stack, has_number;
};

static struct sum get_sum(struct row_reader *r, const struct row_form *form)
{
	struct sum sum = { .group = STR("") };

	if (form->has_group)
		sum.group = get_text(r);
	if (form->has_stack)
		sum.stack = get_number(r, 8);
	if (form->has_number)
		sum.number = get_number(r, 8);
	sum.weight = (int64_t)get_number(r, 8);
	sum.events = get_number(r, 8);
	return sum;
}

/* Loads the stacks that the answer names. */
static int load_stacks(struct store_clickhouse *s, const struct store_selection *sel, const struct buf *answer,
		       const struct row_form *form)
{
	struct row_reader r = rows_of(answer);
	/* A row is longer than an id; the last one may be cut. */
	AUTO_FREE uint64_t *ids = malloc((answer->len / sizeof(*ids) + 1) * sizeof(*ids));
	size_t count = 0;

	if (!ids)
		return -ENOMEM;
	while (has_row(&r)) {
		const uint64_t id = get_sum(&r, form).stack;

		if (!count || ids[count - 1] != id)
			ids[count++] = id;
	}
	return r.is_bad ? -EBADMSG : click_names_load(s, sel, ids, count);
}

static bool is_stack_in(const struct store_clickhouse *s, const struct store_selection *sel, uint64_t id)
{
	uint32_t node;

	if (!sel->stacks)
		return true;
	node = click_names_stack(s->names, id);
	return node < sel->stack_count && (sel->stacks[node / 64] >> (node % 64) & 1);
}

/* Groups are not terminated in an answer: each is copied once, for its rows come together. */
static const char *text_of(struct buf *group, struct str s)
{
	if (group->len != s.len || memcmp(buf_text(group), s.data, s.len) != 0) {
		buf_reset(group);
		buf_append(group, s.data, s.len);
	}
	return buf_text(group);
}

typedef int (*tell_fn)(void *arg, const char *group, uint32_t number, int64_t weight, uint64_t events);

/* Asks for sums by group, stack and number, as far as @form wants them. The number told is a stack's node or a bucket. */
static int ask_sums(struct store_clickhouse *s, const struct store_selection *sel, const char *keys, const char *names,
		    const char *by, const struct row_form *form, tell_fn fn, void *arg)
{
	AUTO(click_sql_fini) struct click_sql q = { 0 };
	AUTO(buf_fini) struct buf answer = BUF_EMPTY, group = BUF_EMPTY;
	struct row_reader r;
	int err;

	click_sum(&q, sel, false, keys, names, by);
	err = click_ask(s, &q, sel, &answer);
	if (!err && form->has_stack)
		err = load_stacks(s, sel, &answer, form);
	for (r = rows_of(&answer); !err && has_row(&r);) {
		const struct sum sum = get_sum(&r, form);

		if (r.is_bad)
			return -EBADMSG;
		if (!is_stack_in(s, sel, sum.stack))
			continue;
		err = sum.number > UINT32_MAX
			      ? -ERANGE
			      : fn(arg, text_of(&group, sum.group),
				   form->has_number ? (uint32_t)sum.number : click_names_stack(s->names, sum.stack),
				   sum.weight, sum.events);
	}
	return err;
}

/* The kind with the most events, where the selection names none. */
struct first_kind {
	char type[128];
};

static int take_first(void *arg, const struct store_kind *kind)
{
	struct first_kind *first = arg;

	if (!first->type[0])
		snprintf(first->type, sizeof(first->type), "%s", kind->type);
	return 0;
}

/* Locks, and has @sel in @ret with a kind that stands in @kind. */
static int begin(struct store *store, const struct store_selection *sel, struct first_kind *kind,
		 struct store_selection *ret)
{
	int err = 0;

	pthread_mutex_lock(&store_clickhouse_of(store)->read_lock);
	kind->type[0] = 0;
	*ret = *sel;
	if (!sel->kind) {
		err = click_kinds(store, sel, take_first, kind);
		ret->kind = kind->type;
	}
	return err;
}

static int end(struct store *store, int err)
{
	pthread_mutex_unlock(&store_clickhouse_of(store)->read_lock);
	return err;
}

int click_sum_stacks(struct store *store, const struct store_selection *sel, const char *by, tell_fn fn, void *arg)
{
	const struct row_form form = { .has_group = by, .has_stack = true };
	struct store_selection of_kind;
	struct first_kind kind;
	int err = begin(store, sel, &kind, &of_kind);

	if (!err)
		err = ask_sums(store_clickhouse_of(store), &of_kind, "stack", "stack", by, &form, fn, arg);
	return end(store, err);
}

static int tell_nobody(void *arg, const char *group, uint32_t node, int64_t weight, uint64_t events)
{
	(void)arg;
	(void)group;
	(void)node;
	(void)weight;
	(void)events;
	return 0;
}

int click_load_stacks(struct store *store, const struct store_selection *sel)
{
	return click_sum_stacks(store, sel, NULL, tell_nobody, NULL);
}

int click_sum_times(struct store *store, const struct store_selection *sel, uint64_t step_ns, const char *by, tell_fn fn,
		    void *arg)
{
	const struct row_form form = { .has_group = by, .has_stack = sel->stacks, .has_number = true };
	struct store_selection of_kind;
	struct first_kind kind;
	char keys[160];
	int err = begin(store, sel, &kind, &of_kind);

	snprintf(keys, sizeof(keys), "%stoUInt64(intDiv(toUnixTimestamp64Nano(time) - %" PRIu64 ", %" PRIu64 ")) AS bucket",
		 sel->stacks ? "stack, " : "", sel->from_ns, step_ns);
	if (!step_ns || sel->from_ns > INT64_MAX || step_ns > INT64_MAX)
		err = -EINVAL;
	if (!err)
		err = ask_sums(store_clickhouse_of(store), &of_kind, keys, sel->stacks ? "stack, bucket" : "bucket", by,
			       &form, fn, arg);
	return end(store, err);
}

/* With stacks chosen one by one a value comes as often as it has stacks: they are put together here. */
struct value_sum {
	int (*fn)(void *arg, const char *value, int64_t weight, uint64_t events);
	void *arg;
	struct buf value;
	int64_t weight;
	uint64_t events;
};

static int tell_value(struct value_sum *sum)
{
	return sum->events ? sum->fn(sum->arg, buf_text(&sum->value), sum->weight, sum->events) : 0;
}

static int add_value(void *arg, const char *group, uint32_t node, int64_t weight, uint64_t events)
{
	struct value_sum *sum = arg;
	int err = 0;

	(void)node;
	if (!sum->events || strcmp(buf_text(&sum->value), group) != 0) {
		err = tell_value(sum);
		buf_reset(&sum->value);
		buf_puts(&sum->value, group);
		sum->weight = 0;
		sum->events = 0;
	}
	sum->weight = weights_add(sum->weight, weight);
	sum->events += events;
	return err;
}

int click_label_values(struct store *store, const struct store_selection *sel, const char *label,
		       int (*fn)(void *arg, const char *value, int64_t weight, uint64_t events), void *arg)
{
	const struct row_form form = { .has_group = true, .has_stack = sel->stacks };
	struct value_sum sum = { .fn = fn, .arg = arg };
	struct store_selection of_kind;
	struct first_kind kind;
	int err = begin(store, sel, &kind, &of_kind);

	if (!err)
		err = ask_sums(store_clickhouse_of(store), &of_kind, sel->stacks ? "stack" : "", sel->stacks ? "stack" : "",
			       label, &form, add_value, &sum);
	err = err ? err : tell_value(&sum);
	buf_fini(&sum.value);
	return end(store, err);
}
