/* SPDX-License-Identifier: Apache-2.0 */
/* Names that people write as they remember them: the word of a selector, and what an empty answer offers instead. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/query/selected.h"
#include "backend/store/store_read.h"
#include "base/cleanup.h"
#include "base/text/nearest.h"
#include "base/text/pattern.h"

enum { NEAREST_VALUES = 3, MOST_VALUES = 10000, NEAREST_MAX_LEN = 48 };

/* The labels in which a word is looked for, in this order. */
static const struct {
	const char *label;
	bool begins; /* its values begin with the word: of random digits the middle means nothing */
} places[] = {
	{ STORE_EXE_LABEL, false }, { STORE_COMM_LABEL, false },     { "service.name", false }, { "container.name", false },
	{ "k8s.pod.name", false },  { "k8s.container.name", false }, { "container.id", true },
};

/* --- values of a label --- */

struct found_value {
	char *text; /* owned; NULL: taken */
	int64_t weight;
};

struct found_values {
	const char *word; /* NULL: any */
	bool begins;
	struct found_value *items; /* room for MOST_VALUES */
	size_t count;
};

static void found_values_fini(struct found_values *v)
{
	for (size_t i = 0; i < v->count; i++)
		free(v->items[i].text);
	free(v->items);
}

static bool has_word(const char *value, const char *word, bool begins)
{
	return begins ? !strncasecmp(value, word, strlen(word)) : strcasestr(value, word) != NULL;
}

static int take_value(void *arg, const char *value, int64_t weight, uint64_t events)
{
	struct found_values *v = arg;

	(void)events;
	if (!*value || v->count == MOST_VALUES || (v->word && !has_word(value, v->word, v->begins)))
		return 0;
	v->items[v->count] = (struct found_value){ strdup(value), weight };
	return v->items[v->count++].text ? 0 : -ENOMEM;
}

static int heaviest(const void *a, const void *b)
{
	const struct found_value *x = a, *y = b;

	if (x->weight != y->weight)
		return x->weight > y->weight ? -1 : 1;
	return strcmp(x->text, y->text);
}

/* The values of @label in @sel, heaviest first. */
static int find_values(const struct query_context *ctx, const struct store_selection *sel, const char *label,
		       struct found_values *v)
{
	int err;

	v->items = calloc(MOST_VALUES, sizeof(*v->items));
	if (!v->items)
		return -ENOMEM;
	err = ctx->store->read->label_values(ctx->store, sel, label, take_value, v);
	if (!err && v->count)
		qsort(v->items, v->count, sizeof(*v->items), heaviest);
	return err;
}

/* --- the word --- */

/* Appends a regular expression, for PCRE2 and RE2 alike, that values with @word match. */
static void write_expression(struct buf *out, const char *word, bool begins)
{
	buf_puts(out, begins ? "(?is)" : "(?is).*");
	for (; *word; word++) {
		if (isascii((unsigned char)*word) && ispunct((unsigned char)*word))
			buf_putc(out, '\\');
		buf_putc(out, *word);
	}
	buf_puts(out, ".*");
}

/* Adds a matcher to @q: values of @label with the word. */
static int add_matcher(struct query *q, const char *label, bool begins, struct buf *error)
{
	struct store_matcher *m = &q->selector.items[q->selector.count];
	AUTO(buf_fini) struct buf expression = BUF_EMPTY;
	struct pattern_error why;
	int err;

	if (q->selector.count == STORE_MAX_MATCHERS) {
		buf_puts(error, "query: too many labels beside the word");
		return -EINVAL;
	}
	write_expression(&expression, q->selector.word, begins);
	err = expression.failed ? -ENOMEM : pattern_new(buf_text(&expression), PATTERN_WHOLE, &m->pattern, &why);
	if (err == -EINVAL)
		buf_printf(error, "query: the word cannot be looked for: %s", why.message);
	if (err)
		return err;
	m->match = MATCH_REGEX;
	m->label = strdup(label);
	m->value = strdup(buf_text(&expression));
	q->selector.count++; /* owns what there is of it */
	q->sel.matcher_count = q->selector.count;
	return m->label && m->value ? 0 : -ENOMEM;
}

/* Keeps the heaviest of @v. */
static int keep_values(struct query_word *word, struct found_values *v)
{
	const size_t count = v->count < WORD_MAX_VALUES ? v->count : WORD_MAX_VALUES;

	word->values = calloc(count, sizeof(*word->values));
	if (!word->values)
		return -ENOMEM;
	for (; word->count < count; word->count++) {
		word->values[word->count] = v->items[word->count].text;
		v->items[word->count].text = NULL;
	}
	return 0;
}

int query_find_word(struct query *q, const struct query_context *ctx, uint64_t from_ns, uint64_t to_ns, struct buf *error)
{
	struct store_selection sel = q->sel;

	sel.from_ns = from_ns;
	sel.to_ns = to_ns;
	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		AUTO(found_values_fini)
		struct found_values v = { .word = q->selector.word, .begins = places[i].begins };
		int err = find_values(ctx, &sel, places[i].label, &v);

		if (err)
			return err;
		if (!v.count)
			continue;
		q->word.as = selector_short_label(places[i].label);
		err = keep_values(&q->word, &v);
		return err ? err : add_matcher(q, places[i].label, places[i].begins, error);
	}
	q->word.as = "function";
	return 0;
}

/* --- what is near --- */

struct near_search {
	const struct query_context *ctx;
	struct store_selection sel; /* without a selector */
	int (*fn)(void *arg, const char *label, const char *value, const char *instead_of);
	void *arg;
};

/* Offers @value, and the beginning of it that is as long as what was typed: "pyhton" is near to "python3.11". */
static void offer_value(struct nearest *n, const char *value)
{
	char begin[NEAREST_MAX_LEN];

	nearest_offer(n, value);
	if (strlen(n->word) < sizeof(begin)) {
		snprintf(begin, strlen(n->word) + 1, "%s", value);
		nearest_offer(n, begin);
	}
}

/* The next value to offer instead of @text, NULL: none. In a short text only one letter may differ. */
static struct found_value *next_near(const struct found_values *v, const char *text)
{
	const size_t third = strlen(text) / 3;
	struct nearest nearest = nearest_to(text);
	struct found_value *ret = NULL;

	for (size_t i = 0; i < v->count; i++)
		if (v->items[i].text && strcasestr(v->items[i].text, text))
			return &v->items[i];
	nearest.distance = (third > 1 ? third : 1) + 1;
	for (size_t i = 0; i < v->count; i++) {
		const size_t distance = nearest.distance;

		if (v->items[i].text)
			offer_value(&nearest, v->items[i].text);
		if (nearest.distance < distance)
			ret = &v->items[i];
	}
	return ret;
}

/* Tells of values of @label near to @text; of none if @text is there itself and only other labels exclude it. */
static int tell_near(struct near_search *search, const char *label, const char *text)
{
	AUTO(found_values_fini) struct found_values v = { 0 };
	int err = find_values(search->ctx, &search->sel, label, &v);

	for (size_t i = 0; i < v.count; i++)
		if (!strcmp(v.items[i].text, text))
			return err;
	for (size_t told = 0; told < NEAREST_VALUES && !err; told++) {
		struct found_value *near = next_near(&v, text);

		if (!near)
			break;
		err = search->fn(search->arg, selector_short_label(label), near->text, text);
		free(near->text);
		near->text = NULL;
		err = err ? err : store_selection_check(&search->sel);
	}
	return err;
}

int query_nearest(const struct query *q, const struct query_context *ctx,
		  int (*fn)(void *arg, const char *label, const char *value, const char *instead_of), void *arg)
{
	struct near_search search = { .ctx = ctx, .sel = q->sel, .fn = fn, .arg = arg };
	int err = 0;

	search.sel.matchers = NULL;
	search.sel.matcher_count = 0;
	search.sel.stacks = NULL;
	for (size_t i = 0; i < q->selector.count && !err; i++) {
		const struct store_matcher *m = &q->selector.items[i];

		if (m->match == MATCH_EQUAL && *m->value)
			err = tell_near(&search, m->label, m->value);
	}
	for (size_t i = 0; i < ARRAY_LEN(places) && q->selector.word && !err; i++)
		if (strcmp(places[i].label, STORE_COMM_LABEL) != 0) /* comm has the executables' names again */
			err = tell_near(&search, places[i].label, q->selector.word);
	return err;
}
