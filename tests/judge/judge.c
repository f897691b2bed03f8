/* SPDX-License-Identifier: Apache-2.0 */
/*
 * judge -N NAME -T TABLE [-s SEED] [-t SECONDS] [-l STEPS] [-v] COMMAND...
 *
 * Runs COMMAND again and again for SECONDS and judges hearth's walk of its stacks. On stdout a line "class NAME COUNT" for
 * each kind of accepted difference, and then
 *   judged NAME STOPS FRAMES EQUAL EXPLAINED WRONG PROVED CUT
 * STOPS walks were compared; EQUAL: the same frames from both; EXPLAINED: by the table; WRONG: by nothing; PROVED: frames
 * that the program's own returns named too; CUT: stops whose walk ended at no root, whoever walked. On stderr the
 * differences that nothing explains (-v: all). Exit status 1 when there was one, 2 when nothing could be judged.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text/parse.h"
#include "tests/judge/differences.h"
#include "tests/judge/judge.h"
#include "tests/judge/tracee.h"
#include "tests/judge/truth.h"

enum {
	MAX_RUN_US = 6000,   /* between two stretches */
	FIRST_STEPS = 150,   /* of the first stretch, from a program's first instruction */
	RETURN_MS = 20,	     /* how long the thread may take to return to a frame */
	MAX_RETURNS = 6,     /* frames that a stretch is followed further out */
	NEIGHBOURS = 12,     /* frames shown before one that differs */
	MAX_AREAS = 20000,   /* memory areas of a program */
	LAUNCH_STEPS = 2000, /* a stretch so long at a new start now and then */
};

/* A stop of the stretch under way; its chains stand in session.words. */
struct stop {
	size_t hearth_at, judge_at;
	uint32_t hearth_cnt, judge_cnt;
	const char *hearth_end, *judge_end;
	struct truth_mark mark;
	uint64_t sp;
};

struct area {
	uint64_t start, end;
};

struct totals {
	uint64_t stops, frames, equal, explained, wrong, proved, cut, mismatches;
};

struct session {
	const char *name;
	char **argv;
	uint64_t seed, seconds, steps;
	bool is_verbose;
	struct differences *differences;
	struct totals totals;
	/* of this run of the program */
	struct tracee *tracee;
	struct memory *memory;
	struct hearth *hearth;
	struct libdwfl *libdwfl;
	struct truth *truth;
	struct kernel_thread thread; /* the one looked at */
	struct area *areas;
	uint32_t area_cnt;
	uint64_t code_hash; /* of the lines of its executable mappings */
	struct stop *stops;
	uint32_t stop_cnt, stop_room;
	uint64_t *words;
	size_t word_cnt, word_room;
	struct chain hearth_chain, judge_chain;
};

/* --- the program's memory areas --- */

static uint64_t hash_line(uint64_t hash, const char *text)
{
	for (; *text; text++)
		hash = (hash ^ (uint8_t)*text) * 0x100000001b3ull;
	return hash;
}

static void reread_areas(struct session *s)
{
	AUTO_FCLOSE FILE *f = NULL;
	AUTO_FREE char *line = NULL;
	uint64_t hash = 0xcbf29ce484222325ull;
	size_t room = 0;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/maps", tracee_pid(s->tracee));
	f = fopen(path, "re");
	s->area_cnt = 0;
	while (f && getline(&line, &room, f) > 0 && s->area_cnt < MAX_AREAS) {
		struct area *a = &s->areas[s->area_cnt];
		char flags[8];

		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s", &a->start, &a->end, flags) != 3)
			continue;
		s->area_cnt++;
		if (flags[2] == 'x')
			hash = hash_line(hash, line);
	}
	if (hash == s->code_hash)
		return;
	s->code_hash = hash;
	hearth_reread(s->hearth);
	libdwfl_reread(s->libdwfl);
}

static uint64_t area_end(const struct session *s, uint64_t addr)
{
	for (uint32_t i = 0; i < s->area_cnt; i++)
		if (addr < s->areas[i].end) /* a stack may have grown downwards since */
			return s->areas[i].end;
	return UINT64_MAX;
}

/* --- one stop --- */

static void dwarf_order(const struct user_regs_struct *r, uint64_t *regs)
{
	const uint64_t values[USER_REGS] = { r->rax, r->rdx, r->rcx, r->rbx, r->rsi, r->rdi, r->rbp, r->rsp, r->r8,
					     r->r9,  r->r10, r->r11, r->r12, r->r13, r->r14, r->r15, r->rip };

	memcpy(regs, values, sizeof(values));
}

static size_t keep_chain(struct session *s, const struct chain *chain)
{
	size_t at = s->word_cnt;

	while (s->word_cnt + chain->count > s->word_room) {
		s->word_room = s->word_room ? s->word_room * 2 : 65536;
		s->words = reallocarray(s->words, s->word_room, sizeof(*s->words));
		if (!s->words)
			abort();
	}
	memcpy(&s->words[at], chain->pcs, chain->count * sizeof(*chain->pcs));
	s->word_cnt += chain->count;
	return at;
}

static bool is_root(const char *end)
{
	return strcmp(end, "root") == 0;
}

/* A walk that ended because it went astray: its last frame, which is in no code, is none. */
static void drop_stray(struct session *s, struct chain *c)
{
	uint64_t last = c->count > 1 ? c->pcs[c->count - 1] & ~FRAME_EXACT : 0;

	if (last && !is_root(c->end) && strcmp(hearth_module(s->hearth, last - 1), "?") == 0)
		c->count--;
}

static void take_stop(struct session *s, const struct user_regs_struct *user_regs)
{
	struct stop *stop;

	dwarf_order(user_regs, s->thread.regs);
	s->thread.fs_base = user_regs->fs_base;
	s->thread.area_end = area_end(s, user_regs->rsp);
	hearth_walk(s->hearth, &s->thread, &s->hearth_chain);
	drop_stray(s, &s->hearth_chain);
	libdwfl_walk(s->libdwfl, s->thread.regs, &s->judge_chain);
	drop_stray(s, &s->judge_chain);
	if (s->stop_cnt == s->stop_room) {
		s->stop_room = s->stop_room ? s->stop_room * 2 : 1024;
		s->stops = reallocarray(s->stops, s->stop_room, sizeof(*s->stops));
		if (!s->stops)
			abort();
	}
	stop = &s->stops[s->stop_cnt++];
	*stop = (struct stop){ .hearth_cnt = s->hearth_chain.count,
			       .judge_cnt = s->judge_chain.count,
			       .hearth_end = s->hearth_chain.end,
			       .judge_end = s->judge_chain.end,
			       .mark = truth_here(s->truth),
			       .sp = user_regs->rsp };
	stop->hearth_at = keep_chain(s, &s->hearth_chain);
	stop->judge_at = keep_chain(s, &s->judge_chain);
}

/* --- judging a stretch --- */

static void show_chain(struct session *s, const char *who, const uint64_t *pcs, uint32_t count, uint32_t from,
		       const char *end)
{
	fprintf(stderr, "  %s: %u frames, end: %s\n", who, count, end);
	for (uint32_t i = from; i < count && i < from + 2 * NEIGHBOURS; i++) {
		uint64_t pc = pcs[i] & ~FRAME_EXACT, off, addr = pc - !(pcs[i] & FRAME_EXACT);
		const char *name = libdwfl_name(s->libdwfl, addr, &off);

		fprintf(stderr, "    #%-3u %016" PRIx64 "%c %s %s+0x%" PRIx64 "\n", i, pc, pcs[i] & FRAME_EXACT ? '*' : ' ',
			hearth_module(s->hearth, addr), name, off);
	}
}

/* The first place where two chains differ; the shorter one's end if one is the beginning of the other. */
static uint32_t first_difference(const uint64_t *a, uint32_t a_cnt, const uint64_t *b, uint32_t b_cnt)
{
	uint32_t i = 0;

	while (i < a_cnt && i < b_cnt && a[i] == b[i])
		i++;
	return i;
}

/* What is known for sure of a stop: a chain's first frames. */
struct known {
	uint64_t pcs[MAX_USER_FRAMES];
	uint32_t count;
	bool is_all;
};

static void read_known(const struct session *s, const struct stop *stop, struct known *known)
{
	known->pcs[0] = s->words[stop->hearth_at];
	known->count = 1 + truth_callers(s->truth, &stop->mark, known->pcs + 1, MAX_USER_FRAMES - 1, &known->is_all);
}

/* Do @known's frames contradict the @count frames at @pcs? */
static bool contradicts(const struct known *known, const uint64_t *pcs, uint32_t count)
{
	uint32_t same = first_difference(pcs, count, known->pcs, known->count);

	return same < known->count || (known->is_all && count > known->count);
}

/* Is hearth's chain too short, as the judge or the program's returns say, but right as far as it goes? */
static bool is_too_short(const uint64_t *hearth, const struct stop *stop, uint32_t same, const struct known *known)
{
	uint32_t count = stop->hearth_cnt < known->count ? stop->hearth_cnt : known->count;

	if (first_difference(hearth, stop->hearth_cnt, known->pcs, known->count) < count)
		return false;
	return known->count > stop->hearth_cnt ||
	       (!is_root(stop->hearth_end) && same == stop->hearth_cnt && same < stop->judge_cnt);
}

/* The kind of difference at a stop, *@at_ret being its place. False: there is none. */
static bool compare(struct session *s, const struct stop *stop, const struct known *known, enum difference_kind *kind_ret,
		    uint32_t *at_ret)
{
	const uint64_t *hearth = &s->words[stop->hearth_at], *judge = &s->words[stop->judge_at];
	uint32_t same = first_difference(hearth, stop->hearth_cnt, judge, stop->judge_cnt);

	*at_ret = same;
	if (is_too_short(hearth, stop, same, known)) {
		*at_ret = stop->hearth_cnt;
		*kind_ret = HEARTH_ENDS;
	} else if (contradicts(known, hearth, stop->hearth_cnt)) {
		*at_ret = first_difference(hearth, stop->hearth_cnt, known->pcs, known->count);
		*kind_ret = same > *at_ret || (same == stop->judge_cnt && same == stop->hearth_cnt) ? BOTH_WRONG
												    : HEARTH_WRONG;
	} else if (same == stop->hearth_cnt && same == stop->judge_cnt) {
		*kind_ret = HEARTH_CUT;
		return is_root(stop->judge_end) && !is_root(stop->hearth_end);
	} else if (same < known->count || known->is_all) {
		*kind_ret = JUDGE_WRONG;
	} else if (same == stop->judge_cnt) {
		*kind_ret = JUDGE_ENDS;
	} else {
		*kind_ret = same == stop->hearth_cnt ? HEARTH_ENDS : BOTH_DIFFER;
	}
	return true;
}

static void show_difference(struct session *s, const struct stop *stop, const struct known *known,
			    const struct difference *d, const char *explained, uint32_t at)
{
	uint32_t from = at > NEIGHBOURS ? at - NEIGHBOURS : 0;

	fprintf(stderr, "%s: %s (%s) behind %s %s, frame %u\n", s->name, difference_kinds[d->kind],
		explained ? explained : "not explained", d->module, d->function, at);
	show_chain(s, "hearth", &s->words[stop->hearth_at], stop->hearth_cnt, from, stop->hearth_end);
	show_chain(s, "judge", &s->words[stop->judge_at], stop->judge_cnt, from, stop->judge_end);
	show_chain(s, "known", known->pcs, known->count, from, known->is_all ? "all" : "not known");
}

static void judge_stop(struct session *s, const struct stop *stop)
{
	struct totals *t = &s->totals;
	struct known known;
	struct difference d = { .program = s->name };
	const char *explained;
	uint64_t addr, off;
	uint32_t at;

	read_known(s, stop, &known);
	t->stops++;
	t->frames += stop->hearth_cnt;
	t->proved += known.count - 1;
	t->cut += !is_root(stop->hearth_end);
	if (!compare(s, stop, &known, &d.kind, &at)) {
		t->equal++;
		return;
	}
	addr = at ? s->words[stop->hearth_at + at - 1] : known.pcs[0];
	addr = (addr & ~FRAME_EXACT) - !(addr & FRAME_EXACT);
	d.module = hearth_module(s->hearth, addr);
	d.function = libdwfl_name(s->libdwfl, addr, &off);
	d.end = d.kind == HEARTH_CUT || stop->hearth_cnt <= at ? stop->hearth_end : stop->judge_end;
	explained = differences_explain(s->differences, &d);
	if (s->is_verbose || (!explained && differences_note(s->differences, &d)))
		show_difference(s, stop, &known, &d, explained, at);
	t->explained += explained != NULL;
	t->wrong += !explained;
}

/* Where the thread might return to next, as hearth and the judge see it, and where behind that. */
struct returns {
	uint64_t next[2], later[2];
	uint32_t next_cnt, later_cnt;
};

static void add_return(const struct session *s, size_t at, uint32_t count, uint32_t i, struct returns *r)
{
	if (i < count && !(s->words[at + i] & FRAME_EXACT))
		r->next[r->next_cnt++] = s->words[at + i];
	if (i + 1 < count && !(s->words[at + i + 1] & FRAME_EXACT))
		r->later[r->later_cnt++] = s->words[at + i + 1];
}

/* What is next for one and later for the other proves nothing: a goroutine may return from the frame between on a thread
 * that is not looked at. */
static bool is_next(const struct returns *r, uint64_t pc)
{
	bool is_agreed = r->next_cnt == 1 || r->next[0] == r->next[1];
	bool is_next = false, is_later = false;

	for (uint32_t i = 0; i < r->next_cnt; i++)
		is_next |= r->next[i] == pc;
	for (uint32_t i = 0; i < r->later_cnt; i++)
		is_later |= r->later[i] == pc;
	return is_next && (is_agreed || !is_later);
}

/* Runs on until frames have returned that were not known yet. Where one is passed over (exceptions do that), it ends. */
static void follow_returns(struct session *s)
{
	const struct stop *last = &s->stops[s->stop_cnt - 1];
	struct user_regs_struct regs;

	for (int i = 0; i < MAX_RETURNS; i++) {
		struct returns r = { .next_cnt = 0 };
		uint64_t end_ns = clock_mono_ns() + RETURN_MS * NSEC_PER_MSEC, addrs[MAX_BREAKS];
		struct known known;
		bool is_found = false;

		read_known(s, last, &known);
		add_return(s, last->hearth_at, last->hearth_cnt, known.count, &r);
		add_return(s, last->judge_at, last->judge_cnt, known.count, &r);
		memcpy(addrs, r.next, sizeof(r.next));
		memcpy(addrs + r.next_cnt, r.later, sizeof(r.later));
		while (r.next_cnt && !is_found) {
			if (clock_mono_ns() > end_ns ||
			    tracee_run_to(s->tracee, addrs, r.next_cnt + r.later_cnt, RETURN_MS) != STOP_AT_BREAK ||
			    !tracee_regs(s->tracee, &regs))
				return;
			memory_forget(s->memory);
			if (regs.rsp - 8 >= last->sp && !is_next(&r, regs.rip))
				return;
			is_found = truth_returned(s->truth, regs.rip, regs.rsp, last->sp);
		}
		if (!is_found)
			return;
	}
}

/* Has the thread just been made? */
static bool is_behind_clone(const struct user_regs_struct *regs)
{
	return (regs->orig_rax == SYS_clone || regs->orig_rax == SYS_clone3) && regs->rax == 0;
}

/* Steps @steps instructions from where the thread is, each a stop, then judges them all. @is_first: its first ones. */
static void stretch(struct session *s, uint64_t steps, bool is_first)
{
	struct user_regs_struct regs;
	uint64_t number = UINT64_MAX; /* rax before the instruction: of the system call, if it was one */
	int signal = 0;

	s->stop_cnt = 0;
	s->word_cnt = 0;
	if (tracee_regs(s->tracee, &regs) && is_behind_clone(&regs))
		is_first = true;
	truth_begin(s->truth, is_first);
	tracee_alternate_stack(s->tracee, s->memory, &s->thread.alternate_sp, &s->thread.alternate_bytes);
	memory_forget(s->memory);
	reread_areas(s);
	while (tracee_regs(s->tracee, &regs)) {
		memory_forget(s->memory);
		if (s->stop_cnt && truth_after(s->truth, &regs, signal))
			reread_areas(s);
		if (number == SYS_sigaltstack || signal)
			tracee_alternate_stack(s->tracee, s->memory, &s->thread.alternate_sp, &s->thread.alternate_bytes);
		number = regs.rax;
		take_stop(s, &regs);
		if (!steps--)
			break;
		truth_before(s->truth, &regs);
		if (tracee_step(s->tracee, &signal) != STOP_STEPPED)
			break;
	}
	if (!s->stop_cnt)
		return;
	follow_returns(s);
	for (uint32_t i = 0; i < s->stop_cnt; i++)
		judge_stop(s, &s->stops[i]);
}

/* --- a run of the program, and all of them --- */

static bool begin_run(struct session *s)
{
	s->tracee = tracee_start(s->argv);
	if (!s->tracee)
		return false;
	s->memory = memory_new(tracee_pid(s->tracee));
	s->hearth = hearth_new(tracee_pid(s->tracee), s->memory);
	s->libdwfl = libdwfl_new(tracee_pid(s->tracee), s->memory);
	s->truth = truth_new(s->memory);
	s->code_hash = 0;
	return s->memory && s->hearth && s->libdwfl && s->truth;
}

static void end_run(struct session *s)
{
	if (s->hearth)
		s->totals.mismatches += hearth_mismatches(s->hearth);
	truth_free(s->truth);
	libdwfl_free(s->libdwfl);
	hearth_free(s->hearth);
	memory_free(s->memory);
	tracee_free(s->tracee);
	s->truth = NULL;
	s->libdwfl = NULL;
	s->hearth = NULL;
	s->memory = NULL;
	s->tracee = NULL;
}

static int run_all(struct session *s)
{
	uint64_t end_ns = clock_mono_ns() + s->seconds * NSEC_PER_SEC;
	bool is_first;

	do {
		if (!begin_run(s)) {
			end_run(s);
			return 2;
		}
		stretch(s, random_below(8) ? FIRST_STEPS : LAUNCH_STEPS, true);
		while (clock_mono_ns() < end_ns && tracee_run(s->tracee, random_below(MAX_RUN_US), &is_first))
			stretch(s, 1 + random_below(s->steps), is_first);
		end_run(s);
	} while (clock_mono_ns() < end_ns);
	return 0;
}

static int print_totals(const struct session *s)
{
	const struct totals *t = &s->totals;

	differences_print(s->differences);
	differences_print_noted(s->differences);
	printf("judged %s %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", s->name,
	       t->stops, t->frames, t->equal, t->explained, t->wrong, t->proved, t->cut);
	if (t->mismatches)
		fprintf(stderr, "%s: %" PRIu64 " walks in user space did not meet the kernel's frames\n", s->name,
			t->mismatches);
	if (t->wrong)
		fprintf(stderr, "%s: seed %" PRIu64 "\n", s->name, s->seed);
	return t->wrong || t->mismatches || differences_too_many(s->differences, t->stops) ? 1 : t->stops ? 0 : 2;
}

int main(int argc, char **argv)
{
	struct session s = { .name = "?", .seed = 1, .seconds = 2, .steps = 300 };
	const char *table = NULL;
	int option, status;

	while ((option = getopt(argc, argv, "+N:T:s:t:l:v")) != -1) {
		if (option == 'N')
			s.name = optarg;
		else if (option == 'T')
			table = optarg;
		else if (option == 'v')
			s.is_verbose = true;
		else if (option == '?' || parse_u64(optarg, option == 's' ? &s.seed : option == 't' ? &s.seconds : &s.steps))
			return 2;
	}
	s.differences = table ? differences_read(table) : NULL;
	s.argv = &argv[optind];
	s.areas = calloc(MAX_AREAS, sizeof(*s.areas));
	if (!s.differences || !*s.argv || !s.areas || !s.steps) {
		fprintf(stderr, "usage: judge -N NAME -T TABLE [-s SEED] [-t SECONDS] [-l STEPS] [-v] COMMAND...\n");
		return 2;
	}
	random_seed(s.seed);
	status = run_all(&s);
	if (status == 0)
		status = print_totals(&s);
	differences_free(s.differences);
	free(s.areas);
	free(s.stops);
	free(s.words);
	return status;
}
