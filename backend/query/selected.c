/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns parameters into a selection. Filters over frames become a set of stacks: one pass over the tree of stacks, callers
 * first, in which a stack inherits what its caller has. So every kind of question obeys them in the same way.
 */
#include "backend/query/selected.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "backend/query/functions.h"
#include "backend/query/kinds.h"
#include "backend/store/store_read.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text/parse.h"
#include "base/text/pattern.h"
#include "proto/sums/idle_waits.h"

enum {
	DEFAULT_RANGE_S = 3600,
	RECENT_S = 15 * 60,
	LEAST_RECENT_S = 10,
	HAS_FOCUS = 1,
	HAS_IGNORE = 2,
	HAS_WORD = 4,
	LOOK_EACH = 4096
};

const char *query_param(const struct query_params *params, const char *key)
{
	for (size_t i = 0; i < params->count; i++)
		if (!strcmp(params->items[i].key, key))
			return params->items[i].value ? params->items[i].value : "";
	return NULL;
}

int query_number(const struct query_params *params, const char *key, uint64_t preset, uint64_t least, uint64_t most,
		 uint64_t *ret, struct buf *error)
{
	const char *text = query_param(params, key);

	*ret = preset;
	if (!text || !*text || (!parse_u64(text, ret) && *ret >= least && *ret <= most))
		return 0;
	buf_printf(error, "%s: '%s' is no whole number between %" PRIu64 " and %" PRIu64, key, text, least, most);
	return -EINVAL;
}

/* The parameter @name with @suffix, or without where there is none with it. */
static const char *suffixed(const struct query_params *params, const char *name, const char *suffix)
{
	char key[32];
	const char *value;

	snprintf(key, sizeof(key), "%s%s", name, suffix);
	value = query_param(params, key);
	return value ? value : query_param(params, name);
}

/* A time that the store's data tells. */
static bool is_place(const char *time)
{
	return time && (!strcmp(time, "first") || !strcmp(time, "last"));
}

/* Whether @from is "recent": as long as data has been coming in, between LEAST_RECENT_S and RECENT_S before the end. */
static bool is_recent(const char *from)
{
	return from && !strcmp(from, "recent");
}

static uint64_t before(uint64_t ns, uint64_t seconds)
{
	return ns - (ns < seconds * NSEC_PER_SEC ? ns : seconds * NSEC_PER_SEC);
}

static int read_range(struct query *q, const struct query_context *ctx, const struct query_params *params,
		      const char *suffix, struct buf *error)
{
	const char *from = suffixed(params, "from", suffix), *to = suffixed(params, "to", suffix);
	struct store_status status = { 0 };
	int err = 0;

	/* status() counts all that is kept, so only questions that need it call it. */
	if (is_place(from) || is_place(to))
		err = ctx->store->read->status(ctx->store, &status);
	if (err)
		return err;
	if (query_time(to && *to ? to : "now", ctx->now_ns, &status, &q->sel.to_ns)) {
		buf_printf(error, "to: '%s' is no time: write now-15m, Unix seconds or 2026-11-22T05:00:00Z", to);
		return -EINVAL;
	}
	if (!from || !*from || is_recent(from)) {
		q->sel.from_ns = before(q->sel.to_ns, is_recent(from) ? RECENT_S : DEFAULT_RANGE_S);
	} else if (query_time(from, ctx->now_ns, &status, &q->sel.from_ns)) {
		buf_printf(error, "from: '%s' is no time: write now-15m, Unix seconds or 2026-11-22T05:00:00Z", from);
		return -EINVAL;
	}
	if (q->sel.from_ns <= q->sel.to_ns)
		return 0;
	buf_puts(error, "from is after to");
	return -EINVAL;
}

struct kind_search {
	struct query *q;
	const char *wanted; /* NULL: the first */
	bool found;
};

static int copy(const char **to, const char *text)
{
	*to = strdup(text ? text : "");
	return *to ? 0 : -ENOMEM;
}

static int see_kind(void *arg, const struct store_kind *kind)
{
	struct kind_search *search = arg;
	struct store_kind *about = &search->q->about;

	if (search->found || (search->wanted && strcmp(search->wanted, kind->type) != 0))
		return 0;
	search->found = true;
	about->period = kind->period;
	return copy(&about->type, kind->type) || copy(&about->unit, kind->unit) ||
			       copy(&about->period_type, kind->period_type) || copy(&about->period_unit, kind->period_unit)
		       ? -ENOMEM
		       : 0;
}

/* Finds the kind that is asked for and its units, which stand in every answer. */
static int read_kind(struct query *q, const struct query_context *ctx, const char *wanted)
{
	struct kind_search search = { .q = q, .wanted = wanted && *wanted ? wanted : NULL };
	int err = kinds_each(ctx->store, &q->sel, see_kind, &search);

	if (err)
		return err;
	if (!search.found &&
	    (copy(&q->about.type, search.wanted ? search.wanted : "samples") || copy(&q->about.unit, "count") ||
	     copy(&q->about.period_type, "") || copy(&q->about.period_unit, "")))
		return -ENOMEM;
	q->sel.kind = q->about.type;
	return 0;
}

struct frame_filter {
	struct pattern *focus, *ignore, *idle; /* NULL: none */
	const char *word;		       /* borrowed; NULL: none */
};

static void frame_filter_fini(struct frame_filter *f)
{
	pattern_free(f->focus);
	pattern_free(f->ignore);
	pattern_free(f->idle);
}

static int compile(const char *name, const char *text, struct pattern **ret, struct buf *error)
{
	struct pattern_error why;
	int err = text && *text ? pattern_new(text, 0, ret, &why) : 0;

	if (err == -EINVAL)
		buf_printf(error, "%s: '%.200s' is no regular expression: %s", name, text, why.message);
	return err;
}

static bool is_match(struct pattern *pattern, const char *text)
{
	return pattern && pattern_matches(pattern, text, strlen(text));
}

/* Has the function's name the word in it? The address in the name of code without one is no letters of anybody's: "db" does
 * not mean prog+0x1db0..0x1df4. Who writes 0x means addresses. */
static bool has_word(const struct function *f, const char *word)
{
	const char *found = strcasestr(f->name, word);
	const char *address = f->is_named ? NULL : strstr(f->name, "+0x");

	return found && (!address || found < address || strcasestr(word, "0x"));
}

/* The state of marking stacks. */
struct marking {
	const struct frame_filter *filter;
	const struct store_selection *sel;
	struct functions *functions;
	struct buf *known; /* of each function */
	struct buf *error;
};

static bool gave_up(const struct pattern *pattern)
{
	return pattern && pattern_gave_up(pattern);
}

/* The bits of function @number are kept in @known (0: not looked at, else 1 + the bits). A name may take a while: the
 * question's budget is looked at before each. 0; -EINVAL with @error filled when it cannot be told; -errno. */
static int function_bits(const struct marking *m, uint32_t number, uint8_t *ret)
{
	const struct frame_filter *filter = m->filter;
	struct buf *known = m->known;
	uint8_t *at;
	int err;

	if (known->len <= number && !buf_reserve(known, number + 1 - known->len + 1024)) {
		memset(known->data + known->len, 0, buf_room(known));
		known->len += buf_room(known);
	}
	if (known->failed)
		return -ENOMEM;
	at = known->data + number;
	if (!*at) {
		const struct function f = functions_get(m->functions, number);

		err = store_selection_check(m->sel);
		if (err)
			return err;
		*at = (uint8_t)(1 + (is_match(filter->focus, f.name) ? HAS_FOCUS : 0) +
				(is_match(filter->ignore, f.name) || is_match(filter->idle, f.name) ? HAS_IGNORE : 0) +
				(filter->word && has_word(&f, filter->word) ? HAS_WORD : 0));
		if (gave_up(filter->focus) || gave_up(filter->ignore)) {
			buf_printf(
				m->error,
				"%s: it takes too many steps to tell whether '%.200s' matches: write a simpler expression",
				gave_up(filter->focus) ? "focus" : "ignore", f.name);
			return -EINVAL;
		}
	}
	*ret = *at - 1;
	return 0;
}

/* Has @functions know the frames of all @nodes. */
static int meet_frames(struct functions *functions, const struct store_node *nodes, uint32_t count)
{
	AUTO_FREE uint64_t *frames = NULL;
	uint32_t last = 0;

	for (uint32_t node = 1; node < count; node++)
		last = nodes[node].frame > last ? nodes[node].frame : last;
	frames = calloc(last / 64 + 1, sizeof(*frames));
	if (!frames)
		return -ENOMEM;
	for (uint32_t node = 1; node < count; node++)
		frames[nodes[node].frame / 64] |= 1ull << nodes[node].frame % 64;
	return functions_meet(functions, frames, last / 64 + 1);
}

static int mark_stacks(struct query *q, const struct query_context *ctx, const struct frame_filter *filter,
		       struct buf *error)
{
	struct store *store = ctx->store;
	const uint32_t count = store->read->node_count(store);
	AUTO_FREE struct store_node *nodes = calloc(count + 1, sizeof(*nodes));
	AUTO_FREE uint8_t *bits = calloc(count + 1, 1);
	AUTO(buf_fini) struct buf known = BUF_EMPTY;
	const struct marking marking = { filter, &q->sel, ctx->functions, &known, error };
	uint8_t wanted = (filter->focus ? HAS_FOCUS : 0) + (filter->word ? HAS_WORD : 0), own = 0;
	int err;

	q->stacks = calloc(count / 64 + 1, sizeof(*q->stacks));
	if (!nodes || !bits || !q->stacks)
		return -ENOMEM;
	q->sel.stacks = q->stacks;
	q->sel.stack_count = count;
	if (!wanted)
		q->stacks[0] = 1; /* the empty stack has nothing to ignore */
	err = store->read->nodes(store, 0, count, nodes);
	err = err ? err : meet_frames(ctx->functions, nodes, count);
	for (uint32_t node = 1; node < count && !err; node++) {
		struct function_call call;

		err = nodes[node].parent < node ? functions_of_frame(ctx->functions, nodes[node].frame, &call) : -EBADMSG;
		err = err ? err : function_bits(&marking, call.function, &own);
		if (!err && node % LOOK_EACH == 0)
			err = store_selection_check(&q->sel);
		if (err)
			break;
		bits[node] = bits[nodes[node].parent] | own;
		if (bits[node] == wanted)
			q->stacks[node / 64] |= 1ull << (node % 64);
	}
	return err;
}

static bool hides_idle(const struct query *q, const char *idle)
{
	return idle && !strcmp(idle, "0") &&
	       idle_waits_are_in((struct str){ q->about.type, (uint32_t)strlen(q->about.type) });
}

static int read_filters(struct query *q, const struct query_context *ctx, const struct query_params *params,
			const char *suffix, struct buf *error)
{
	const bool has_word = q->word.as && !strcmp(q->word.as, "function");
	AUTO(frame_filter_fini) struct frame_filter filter = { .word = has_word ? q->selector.word : NULL };
	int err = compile("focus", suffixed(params, "focus", suffix), &filter.focus, error);

	if (!err)
		err = compile("ignore", suffixed(params, "ignore", suffix), &filter.ignore, error);
	if (!err && hides_idle(q, suffixed(params, "idle", suffix)))
		err = compile("idle", idle_waits_pattern(), &filter.idle, error);
	if (err || (!filter.focus && !filter.ignore && !filter.idle && !filter.word))
		return err;
	if (ctx->store->read->load_stacks)
		err = ctx->store->read->load_stacks(ctx->store, &q->sel);
	if (err)
		return err;
	return mark_stacks(q, ctx, &filter, error);
}

int query_cover(struct query *q, const struct query_context *ctx)
{
	int err = q->is_covered ? 0 : coverage_of(ctx->store, &q->sel, &q->covered);

	q->is_covered = !err;
	return err;
}

/* Has a range from "recent" on begin with its last samples. */
static int fit_recent(struct query *q, const struct query_context *ctx)
{
	const uint64_t latest_ns = before(q->sel.to_ns, LEAST_RECENT_S);
	int err = query_cover(q, ctx);

	if (err || !q->covered.covered_ns)
		return err;
	q->sel.from_ns = q->covered.last_from_ns < latest_ns ? q->covered.last_from_ns : latest_ns;
	q->is_covered = false;
	return 0;
}

/* Looks the word up in the time of both sides of a comparison, so that it means the same in both. */
static int read_word(struct query *q, const struct query_context *ctx, const struct query_params *params, struct buf *error)
{
	struct query sides[2] = { 0 };
	int err = q->selector.word ? read_range(&sides[0], ctx, params, "", error) : 0;

	if (err || !q->selector.word)
		return err;
	err = read_range(&sides[1], ctx, params, "2", error);
	if (err)
		return err;
	for (size_t i = 0; i < ARRAY_LEN(sides); i++) {
		if (sides[i].sel.from_ns < sides[0].sel.from_ns)
			sides[0].sel.from_ns = sides[i].sel.from_ns;
		if (sides[i].sel.to_ns > sides[0].sel.to_ns)
			sides[0].sel.to_ns = sides[i].sel.to_ns;
	}
	return query_find_word(q, ctx, sides[0].sel.from_ns, sides[0].sel.to_ns, error);
}

/* A matcher on names of spans becomes one on their ids. */
static int find_spans(struct query *q, const struct query_context *ctx, struct store_matcher *m, struct buf *error)
{
	const bool is_positive = m->match == MATCH_EQUAL || m->match == MATCH_REGEX;
	const struct store_matcher wanted = { m->label, m->pattern ? MATCH_REGEX : MATCH_EQUAL, m->value, m->pattern };
	AUTO(buf_fini) struct buf ids = BUF_EMPTY;
	struct pattern *pattern = NULL;
	struct pattern_error why;
	char *label = NULL, *value = NULL;
	int err = ctx->name_spans(ctx->name_arg, &wanted, q->sel.from_ns, q->sel.to_ns, &ids, error);

	if (!err && !ids.len)
		buf_puts(&ids, "none"); /* which no id is */
	err = err ? err : pattern_new(buf_text(&ids), PATTERN_WHOLE, &pattern, &why);
	if (!err) {
		label = strdup(STORE_SPAN_LABEL);
		value = strdup(buf_text(&ids));
	}
	if (err || !label || !value) {
		pattern_free(pattern);
		free(label);
		free(value);
		return err ? err : -ENOMEM;
	}
	free((char *)m->label);
	free((char *)m->value);
	pattern_free(m->pattern);
	*m = (struct store_matcher){ label, is_positive ? MATCH_REGEX : MATCH_NOT_REGEX, value, pattern };
	return 0;
}

static int name_spans(struct query *q, const struct query_context *ctx, struct buf *error)
{
	int err = 0;

	for (size_t i = 0; i < q->selector.count && ctx->name_spans && !err; i++)
		if (!strcmp(q->selector.items[i].label, QUERY_SPAN_NAME))
			err = find_spans(q, ctx, &q->selector.items[i], error);
	return err;
}

int query_read(struct query *q, const struct query_context *ctx, const struct query_params *params, const char *suffix,
	       struct buf *error)
{
	const char *selector = suffixed(params, "query", suffix), *is_inline = suffixed(params, "inline", suffix);
	int err = read_range(q, ctx, params, suffix, error);

	q->sel.deadline_ns = ctx->deadline_ns;
	q->sel.is_unwanted = ctx->is_unwanted;
	q->no_inline = is_inline && !strcmp(is_inline, "0");
	if (!err)
		err = selector_parse(selector ? selector : "", &q->selector, error);
	err = err ? err : name_spans(q, ctx, error);
	q->sel.matchers = q->selector.items;
	q->sel.matcher_count = q->selector.count;
	if (!err)
		err = read_kind(q, ctx, suffixed(params, "kind", suffix));
	if (!err && is_recent(suffixed(params, "from", suffix)))
		err = fit_recent(q, ctx);
	err = err ? err : read_word(q, ctx, params, error);
	return err ? err : read_filters(q, ctx, params, suffix, error);
}

void query_fini(struct query *q)
{
	selector_fini(&q->selector);
	free((char *)q->about.type);
	free((char *)q->about.unit);
	free((char *)q->about.period_type);
	free((char *)q->about.period_unit);
	free(q->stacks);
	for (size_t i = 0; i < q->word.count; i++)
		free(q->word.values[i]);
	free(q->word.values);
	*q = (struct query){ .no_inline = false };
}

uint64_t query_weight_ns(const struct query *q)
{
	const struct store_kind *about = &q->about;

	if (!strcmp(about->unit, "nanoseconds"))
		return 1;
	return !strcmp(about->unit, "count") && !strcmp(about->period_unit, "nanoseconds") && about->period > 0
		       ? (uint64_t)about->period
		       : 0;
}
