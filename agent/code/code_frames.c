/* SPDX-License-Identifier: Apache-2.0 */
/* Frames in generated code: looks at tokens, and gives frames their names. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/code/code_state.h"
#include "agent/process/processes.h"
#include "agent/samples/merge.h"
#include "agent/samples/reorder.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "base/vec.h"

enum {
	IN_USE_MS = 30000,     /* what no sample had a frame in for so long is not looked at with the others */
	REST_MS = 5000,	       /* at least, between two times that such things leave: the process takes another asid then */
	OF_LATE_MS = 2000,     /* what had one within this time is looked at each CODE_LOOK_MS, as the process may end */
	CHECK_SHARE = 100,     /* looking at all takes one part in so many of the agent's time */
	MAX_FUNCTIONS = 65536, /* of a process; the others have no names */
	MAX_LOOKED = (CODE_MAX_WORDS - 1) / CODE_TOKENS, /* things looked at by one request */
};

/* --- tokens --- */

static void watch(struct code_process *cp, struct code_thing *t)
{
	if (t->is_watched || vec_reach(&cp->watched, &cp->watched_cap, cp->watched_cnt))
		return;
	cp->watched[cp->watched_cnt++] = t;
	t->is_watched = true;
	t->is_idle = false;
}

/* How many tokens @t has: the first ones of its array. */
static uint32_t token_cnt(const struct code_thing *t)
{
	uint32_t n = 0;

	while (n < CODE_TOKENS && t->tokens[n].mask)
		n++;
	return n;
}

/*
 * Leaves those in the list that are in use at @now_ns, as many as one request has room for. Nobody looks whether the others
 * are still there, so the kernel must not walk by their rows any more: where other code took such a piece's place, the
 * first sample in it would be walked by the rows of what is gone.
 */
static void drop_idle(struct code_process *cp, uint64_t now_ns)
{
	const bool may_rest = cp->rested_ns + REST_MS * NSEC_PER_MSEC <= now_ns;
	uint32_t n = 0, words = 1; /* the one that is there as long as the process is */

	if (may_rest)
		cp->rested_ns = now_ns;
	for (uint32_t i = 0; i < cp->watched_cnt; i++) {
		struct code_thing *t = cp->watched[i];

		t->is_idle = may_rest && t->used_ns + IN_USE_MS * NSEC_PER_MSEC <= now_ns;
		t->is_watched = words + token_cnt(t) <= CODE_MAX_WORDS && !t->is_idle;
		cp->has_idle |= t->is_idle;
		if (!t->is_watched)
			continue;
		words += token_cnt(t);
		cp->watched[n++] = t;
	}
	cp->watched_cnt = n;
}

/* Has the memory of @token been given back? It cannot be read, or reads as zeroes. */
static bool was_given_back(const struct code_token *token, const struct code_word *word)
{
	return !word->is_read || (token->value && !word->value);
}

enum look { SAME, CHANGED, GIVEN_BACK };

static enum look look_at(const struct code_thing *t, const struct code_word *words)
{
	enum look look = SAME;

	for (uint32_t k = 0; k < token_cnt(t); k++) {
		if (was_given_back(&t->tokens[k], &words[k]))
			look = GIVEN_BACK;
		else if ((words[k].value & t->tokens[k].mask) != t->tokens[k].value)
			return CHANGED;
	}
	return look;
}

/* Memory that was given back cannot be looked at. Code that was the same when it was last looked at is taken for
 * what the last samples had, if that was a moment ago. */
static bool was_there_of_late(const struct code_thing *t, uint64_t time_ns)
{
	enum { MOMENT_MS = 2 * CODE_LOOK_MS };

	return time_ns - t->checked_ns < MOMENT_MS * NSEC_PER_MSEC;
}

/* Looks at the tokens of @things, and at a word that is there for as long as the process is. Returns whether that was
 * possible. */
static bool check(struct code_process *cp, struct code_thing *const *things, uint32_t count)
{
	const struct code_request request = code_request_of(cp, CODE_OP_WORDS);
	AUTO_FREE uint64_t *addrs = calloc(count * CODE_TOKENS + 1, sizeof(*addrs));
	uint64_t now_ns = clock_mono_ns();
	const struct code_word *words;
	uint32_t word_cnt = 0;

	for (uint32_t i = 0; addrs && i < count; i++)
		for (uint32_t k = 0; k < token_cnt(things[i]); k++)
			addrs[word_cnt++] = things[i]->tokens[k].addr;
	if (addrs)
		addrs[word_cnt++] = cp->runtime_at;
	if (!addrs || code_ask(cp, &request, addrs, word_cnt * sizeof(*addrs)) ||
	    cp->all->reply.len != word_cnt * sizeof(*words))
		return false;
	metric_add(cp->all->checks, 1);
	words = (const void *)cp->all->reply.data;
	cp->has_ended = !words[word_cnt - 1].is_read;
	for (uint32_t i = 0; i < count && !cp->has_ended; i++) {
		struct code_thing *t = things[i];
		enum look look = look_at(t, words);

		words += token_cnt(t);
		if (look == SAME)
			t->checked_ns = now_ns;
		else if (look == CHANGED || !was_there_of_late(t, now_ns))
			t->has_gone = cp->has_gone = true;
	}
	return !cp->has_ended;
}

static int compare_places(const void *a, const void *b)
{
	const struct code_thing *const *x = a, *const *y = b;

	return (x[0]->tokens[0].addr > y[0]->tokens[0].addr) - (x[0]->tokens[0].addr < y[0]->tokens[0].addr);
}

/* Looks at all in the list, if that is due, in the order of their places: words that are near to each other are read at
 * once. Returns whether it was. */
static bool check_all_if_due(struct code_process *cp)
{
	uint64_t now_ns = clock_mono_ns();

	if (now_ns - cp->all_checked_ns < CHECK_SHARE * cp->check_all_ns)
		return false;
	drop_idle(cp, now_ns);
	if (!cp->watched_cnt)
		return false;
	qsort(cp->watched, cp->watched_cnt, sizeof(struct code_thing *), compare_places);
	(void)check(cp, cp->watched, cp->watched_cnt);
	cp->all_checked_ns = clock_mono_ns();
	cp->check_all_ns = cp->all_checked_ns - now_ns;
	return true;
}

/* Did a sample have a frame in @t of late, and did nobody look at it in the last half of the time between two looks? */
static bool is_of_late(const struct code_thing *t, uint64_t now_ns)
{
	enum { FRESH_MS = CODE_LOOK_MS / 2 };

	return t->used_ns + OF_LATE_MS * NSEC_PER_MSEC > now_ns && t->checked_ns + FRESH_MS * NSEC_PER_MSEC < now_ns;
}

void code_check_used(struct code_process *cp)
{
	AUTO_FREE struct code_thing **things = NULL;
	uint64_t now_ns = clock_mono_ns();
	uint32_t count = 0;

	if (cp->has_ended || check_all_if_due(cp))
		return;
	things = malloc((cp->watched_cnt + 1) * sizeof(struct code_thing *));
	for (uint32_t i = 0; things && i < cp->watched_cnt && count < MAX_LOOKED; i++)
		if (is_of_late(cp->watched[i], now_ns))
			things[count++] = cp->watched[i];
	if (count)
		(void)check(cp, things, count);
}

static void use(struct code_process *cp, struct code_thing *t, uint64_t time_ns)
{
	t->used_ns = time_ns > t->used_ns ? time_ns : t->used_ns;
	watch(cp, t);
}

/* Looks at those of @things at which nobody looked since @time_ns, by one request. */
static void look_at_those(struct code_process *cp, struct code_thing **things, uint32_t count, uint64_t time_ns)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < count && n < MAX_LOOKED; i++) {
		struct code_thing *t = things[i];

		if (t->is_asked || t->has_gone || t->checked_ns >= time_ns)
			continue;
		t->is_asked = true;
		things[n++] = t;
	}
	for (uint32_t i = 0; i < n; i++)
		things[i]->is_asked = false;
	if (n && !cp->has_ended && !check_all_if_due(cp))
		(void)check(cp, things, n);
}

bool code_thing_is_there(struct code_process *cp, struct code_thing *t, uint64_t time_ns)
{
	bool was_of_late = was_there_of_late(t, time_ns);

	use(cp, t, time_ns);
	if (t->has_gone || t->checked_ns >= time_ns) /* it may have gone since */
		return t->checked_ns >= time_ns;
	if (cp->has_ended || !check(cp, &t, 1))
		return was_of_late;
	return !t->has_gone && (t->checked_ns >= time_ns || was_of_late);
}

/* --- interpreted functions --- */

static void function_free(struct code_process *cp, struct code_known_function *f)
{
	code_thing_fini(cp, &f->thing);
	free(f);
}

void code_functions_bury(struct code_process *cp)
{
	while (cp->gone_functions) {
		struct code_known_function *f = cp->gone_functions;

		cp->gone_functions = f->next;
		function_free(cp, f);
		metric_add(cp->all->gone, 1);
	}
}

void code_functions_free(struct code_process *cp)
{
	size_t pos = 0;
	void *value;

	code_functions_bury(cp);
	while (map_next(&cp->functions, &pos, NULL, &value))
		function_free(cp, value);
	map_fini(&cp->functions);
}

/* Puts the function with @key among those that have gone: frames of the present sample may have its name. */
static void give_up(struct code_process *cp, uint64_t key)
{
	struct code_known_function *f = map_del(&cp->functions, key);

	if (!f)
		return;
	f->next = cp->gone_functions;
	cp->gone_functions = f;
	cp->has_gone = true;
}

/* The key of the function that @words tell, of which there is one for each capture. */
static uint64_t function_key(uint32_t capture, const uint64_t *words)
{
	return words[0] ^ (uint64_t)capture << 56;
}

static struct code_known_function *read_function(struct code_process *cp, uint32_t capture, const uint64_t *words)
{
	struct code_request request = code_request_of(cp, CODE_OP_FUNCTION);
	struct code_known_function *f = NULL;
	uint64_t now_ns = clock_mono_ns();
	const struct code_named *named;

	request.capture = capture;
	memcpy(request.words, words, sizeof(request.words));
	if (code_ask(cp, &request, NULL, 0)) {
		metric_add(cp->all->refused, 1);
		return NULL;
	}
	named = (const void *)cp->all->reply.data;
	f = cp->functions.count < MAX_FUNCTIONS ? calloc(1, sizeof(*f)) : NULL;
	if (!f)
		return NULL;
	f->base = named->function.base;
	f->bytes = named->function.bytes;
	f->word = named->function.word;
	f->shift = named->function.shift;
	memcpy(f->thing.tokens, named->function.tokens, sizeof(f->thing.tokens));
	f->thing.born_ns = f->thing.checked_ns = now_ns;
	if (named->name_bytes)
		(void)objects_add(cp->all->objects, OBJECT_OF_CODE + cp->runtime->info.runtime.code.id, named + 1,
				  named->name_bytes, &f->thing.names);
	if (map_put(&cp->functions, function_key(capture, words), f)) {
		object_put(f->thing.names);
		free(f);
		return NULL;
	}
	metric_add(cp->all->functions, 1);
	return f;
}

/* The function of the captured @words; NULL: it is not known. */
static struct code_known_function *find_function(struct code_process *cp, uint32_t capture, const uint64_t *words,
						 uint64_t time_ns)
{
	const uint64_t key = function_key(capture, words);
	struct code_known_function *f = words[0] ? map_get(&cp->functions, key) : NULL;

	if (f && !code_thing_is_there(cp, &f->thing, time_ns)) {
		give_up(cp, key);
		f = NULL;
	}
	return f || !words[0] ? f : read_function(cp, capture, words);
}

static uint64_t function_frame(const struct code_known_function *f, const uint64_t *words)
{
	uint32_t place = (uint32_t)((words[f->word] >> f->shift) - f->base);

	return f->thing.names
		       ? FRAME_OF_SCRIPT(f->thing.names->id, place < f->bytes && place < CODE_PLACE_RETURN ? place : 0)
		       : 0;
}

/* --- frames --- */

struct framing {
	struct code_spaces *cs;
	struct process *process;
	uint64_t time_ns;
	bool is_kernels; /* the kernel walked */
	const uint64_t *captures;
	uint32_t capture_cnt, at; /* the next head */
};

/* The captured words of user frame number @i, if there are any, and behind these its address @addr; *@class is their class.
 */
static bool find_captures(struct framing *f, uint32_t i, uint64_t addr, uint32_t *class,
			  uint64_t words[CODE_CAPTURE_WORDS + 1])
{
	memset(words, 0, CODE_CAPTURE_WORDS * sizeof(*words));
	words[CODE_CAPTURE_WORDS] = addr;
	while (f->at < f->capture_cnt) {
		uint64_t head = f->captures[f->at];
		uint32_t count = CAPTURE_COUNT_OF(head);

		if (CAPTURE_FRAME_OF(head) > i)
			return false;
		f->at += 1 + (count < CODE_CAPTURE_WORDS ? count : CODE_CAPTURE_WORDS);
		if (CAPTURE_FRAME_OF(head) < i || f->at > f->capture_cnt)
			continue;
		*class = CAPTURE_CLASS_OF(head);
		memcpy(words, &f->captures[f->at - (count < CODE_CAPTURE_WORDS ? count : CODE_CAPTURE_WORDS)],
		       (count < CODE_CAPTURE_WORDS ? count : CODE_CAPTURE_WORDS) * sizeof(*words));
		return true;
	}
	return false;
}

/* The number of the capture that the kernel knows as @class; 0: it is none of @cp's. */
static uint32_t capture_of(const struct code_process *cp, uint32_t class)
{
	for (uint32_t i = 0; class && i < CODE_CAPTURES; i++)
		if (cp->classes[i] == class)
			return i + 1;
	return 0;
}

static const struct code_known_function *captured(struct framing *f, struct code_process *cp, uint32_t class,
						  const uint64_t *words)
{
	uint32_t capture = capture_of(cp, class);

	return capture ? find_function(cp, capture, words, f->time_ns) : NULL;
}

/* Code of one function, which does not tell its name, as V8's baseline code: from the first frame whose words do, its
 * prologue, where no frame stands yet, has the name as well. */
static void adopt_names(struct code_piece *piece, uint64_t start, const struct code_known_function *function)
{
	if (piece->told || piece->thing.names || !function->thing.names || function->word != CODE_CAPTURE_WORDS ||
	    function->shift || function->base != start)
		return;
	piece->told = object_get(function->thing.names);
}

/* The address that the frame at @user is looked up by. */
static uint64_t lookup_addr(uint64_t user)
{
	return (user & ~FRAME_EXACT) - !(user & FRAME_EXACT);
}

/* Puts the piece at @addr, if one is known, into @things, where @n are. Returns how many there are then. */
static uint32_t add_piece(const struct code_process *cp, uint64_t addr, struct code_thing **things, uint32_t n)
{
	const struct code_range_state *range = code_range_at(cp, addr);
	struct code_piece *piece = range ? code_piece_find(range, addr - range->start) : NULL;

	if (piece)
		things[n++] = &piece->thing;
	return n;
}

/*
 * The frame number @i at @user, which is in the code of @file. *@is_stale: the kernel's walk went through code that has
 * gone, or that was not there yet.
 */
static uint64_t frame_of(struct framing *f, const struct mapping *m, uint32_t i, uint64_t user, bool *is_stale)
{
	struct code_range_state *range = code_range_of(m->file);
	struct code_process *cp = range->process;
	bool is_return = !(user & FRAME_EXACT);
	uint64_t va = lookup_addr(user) - m->bias, words[CODE_CAPTURE_WORDS + 1], frame = 0;
	struct code_piece *piece = code_piece_known(range, va, f->time_ns);
	const struct code_known_function *function = NULL;
	const struct object *names;
	enum code_then then;
	uint32_t class;

	if (!piece && f->is_kernels && !code_piece_find(range, va)) /* what has gone was just buried: is it there again? */
		piece = code_piece_read(range, va);
	then = piece ? code_piece_then(range, piece, va, f->time_ns) : CODE_UNSEEN;
	*is_stale |= then == CODE_ANOTHER || (f->is_kernels && then == CODE_UNSEEN);
	if (then == CODE_ANOTHER)
		piece = NULL;
	if (find_captures(f, i, va + m->bias, &class, words))
		function = captured(f, cp, class, words);
	if (function && piece)
		adopt_names(piece, piece->start + m->bias, function);
	if (function)
		frame = function_frame(function, words);
	names = !piece ? NULL : piece->thing.names ? piece->thing.names : piece->told;
	if (!frame && names)
		frame = FRAME_OF_SCRIPT(names->id, (va - piece->start) | (is_return ? CODE_PLACE_RETURN : 0));
	metric_add(f->cs->unknown, !frame);
	return frame ? frame : user;
}

/* The frame number @i at @user, which is in a file: in code of a runtime's that runs functions it makes code of elsewhere.
 */
static uint64_t frame_in_file(struct framing *f, uint32_t i, uint64_t user)
{
	const struct code_known_function *function;
	uint64_t words[CODE_CAPTURE_WORDS + 1], frame = 0;
	uint32_t class;

	if (!f->capture_cnt || !find_captures(f, i, lookup_addr(user), &class, words))
		return user;
	function = captured(f, (struct code_process *)f->process->as->code, class, words);
	if (function)
		frame = function_frame(function, words);
	metric_add(f->cs->unknown, !frame);
	return frame ? frame : user;
}

/* Looks at all that the sample's frames are in, as far as it is known. */
static void look_at_frames(struct framing f, struct code_process *cp, const uint64_t *user, uint32_t count)
{
	AUTO_FREE struct code_thing **things = malloc(2 * (size_t)count * sizeof(struct code_thing *));
	uint32_t n = 0;

	for (uint32_t i = 0; things && i < count; i++) {
		uint64_t addr = lookup_addr(user[i]), words[CODE_CAPTURE_WORDS + 1];
		struct code_known_function *function = NULL;
		uint32_t class;

		n = add_piece(cp, addr, things, n);
		if (find_captures(&f, i, addr, &class, words) && capture_of(cp, class))
			function = map_get(&cp->functions, function_key(capture_of(cp, class), words));
		if (function)
			things[n++] = &function->thing;
	}
	for (uint32_t i = 0; i < n; i++)
		use(cp, things[i], f.time_ns);
	if (things)
		look_at_those(cp, things, n, f.time_ns);
}

void code_expect(struct process *p, const struct pending_sample *s)
{
	struct code_process *cp = (struct code_process *)p->as->code;
	AUTO_FREE struct code_thing **things = cp ? malloc(MAX_LOOKED * sizeof(struct code_thing *)) : NULL;
	uint32_t n = 0;

	for (uint32_t i = 0; things && i < s->area_cnt; i++) {
		const struct stack_area *area = &s->areas[i];
		uint64_t word;

		for (uint64_t at = -area->addr % sizeof(word); at + sizeof(word) <= area->bytes && n < MAX_LOOKED;
		     at += sizeof(word)) {
			memcpy(&word, area->data + at, sizeof(word));
			n = add_piece(cp, word - 1, things, n);
		}
	}
	for (uint32_t i = 0; things && i < s->user_cnt && n < MAX_LOOKED; i++)
		n = add_piece(cp, lookup_addr(s->user[i]), things, n);
	if (things)
		look_at_those(cp, things, n, s->record->hdr.time_ns);
}

uint32_t code_frames(struct code_spaces *cs, struct process *p, const struct pending_sample *s, const uint64_t *user,
		     uint32_t count, const uint64_t *captures, uint32_t capture_cnt, uint64_t *frames, enum walk_end *end)
{
	struct framing f = { .cs = cs,
			     .process = p,
			     .time_ns = s->record->hdr.time_ns,
			     .is_kernels = !s->regs,
			     .captures = captures,
			     .capture_cnt = capture_cnt };
	bool is_elsewhere = false;

	look_at_frames(f, (struct code_process *)p->as->code, user, count);
	code_settle(p); /* no frame has a name yet */
	for (uint32_t i = 0; i < count; i++) {
		const struct mapping *m = address_space_find(p->as, lookup_addr(user[i]));
		bool is_stale = false;

		frames[i] = m && m->file && m->file->code ? frame_of(&f, m, i, user[i], &is_stale)
							  : frame_in_file(&f, i, user[i]);
		is_elsewhere |= m && (!m->file || m->is_foreign);
		if (!is_stale)
			continue;
		*end = END_STALE;
		count = i + 1;
	}
	if (is_elsewhere)
		(void)code_spaces_meet(cs, p);
	return count;
}
