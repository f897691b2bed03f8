/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that passes itself off as Ruby 3.1: it has that one's symbols, and structures with the fields that are read,
 * whole or broken in one way after the other. In each it runs for 0.2 s, at first until a profiler knows it, in the loop of
 * its interpreter; the innermost method is called like the way. Nobody may see a frame outside of a broken one.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum {
	TEXT = 5,
	INTERNAL = 0x1a,
	ISEQ = 7,
	LOCAL = 2,
	FINISH = 0x20,
	METHOD = 0x11110001,
	MAIN = 0x77770001,
	DUMMY = 0x79990001
};
enum { WORDS = 64, LINES = 3, STACK = 512 };

const char ruby_version[] = "3.1.7";
const int ruby_api_version[3] = { 3, 1, 0 };

struct text {
	uint64_t flags, class;
	char text[24];
};

struct line {
	uint32_t line, node, events;
};

struct body {
	uint32_t type, size;
	uint64_t *code;
	char params[48];
	struct text *path, *base, *label;
	uint64_t first;
	char a[24];
	struct line *lines;
	void *positions;
	uint32_t line_cnt, b;
	void *index;
};

struct iseq {
	uint64_t flags, wrapper;
	struct body *body;
};

struct control_frame {
	uint64_t *pc, *sp;
	struct iseq *iseq;
	uint64_t self;
	uint64_t *ep;
	uint64_t rest[3];
};

struct tag {
	uint64_t tag, value;
	void *jump[5];
	struct tag *previous;
	uint64_t state;
};

struct context {
	uint64_t *stack, words;
	struct control_frame *frame;
	struct tag *tag;
	uint64_t rest[16];
};

static __thread struct context *context;
static struct context whole;
static uint64_t stack[STACK];
static struct text path, labels[4], bases[4];
static struct body bodies[4];
static struct iseq iseqs[4];
static uint64_t codes[4][WORDS];
static struct line lines[4];
static char *hole; /* cannot be read */

uint64_t rb_errinfo(void)
{
	return context->rest[10];
}

static void set_text(struct text *t, const char *text)
{
	memset(t, 0, sizeof(*t));
	strncpy(t->text, text, sizeof(t->text) - 1);
	t->flags = TEXT | strlen(text) << 14;
}

/* Method number @i has one line, 5 + @i. */
static void make_method(int i, const char *name)
{
	set_text(&labels[i], name);
	set_text(&bases[i], name);
	lines[i] = (struct line){ .line = (uint32_t)(5 + i) };
	bodies[i] = (struct body){ .type = 1,
				   .size = WORDS,
				   .code = codes[i],
				   .path = &path,
				   .base = &bases[i],
				   .label = &labels[i],
				   .first = 9,
				   .lines = &lines[i],
				   .line_cnt = 1 };
	iseqs[i] = (struct iseq){ INTERNAL | ISEQ << 12, 0, &bodies[i] };
}

/* Frames from the outermost: one that stands for nothing, <main>, outer, caller, way; the values of each below. */
static void make(const char *way)
{
	static const char *const names[] = { "<main>", "outer", "caller" };
	struct control_frame *frame = (struct control_frame *)(stack + STACK) - 1;

	set_text(&path, "torn.rb");
	memset(stack, 0, sizeof(stack));
	stack[2] = DUMMY | FINISH | LOCAL;
	*frame = (struct control_frame){ .ep = &stack[2] };
	for (int i = 0; i < 4; i++) {
		make_method(i, i < 3 ? names[i] : way);
		stack[5 + 3 * i] = (i ? METHOD : MAIN) | LOCAL | (i == 0 ? FINISH : 0);
		*--frame = (struct control_frame){ .pc = codes[i] + 10, .iseq = &iseqs[i], .ep = &stack[5 + 3 * i] };
	}
	whole = (struct context){ stack, STACK, frame, NULL, { 0 } };
	context = &whole;
}

__attribute__((noinline)) static void run(int64_t milliseconds)
{
	struct timespec now, end;

	clock_gettime(CLOCK_MONOTONIC, &end);
	do
		clock_gettime(CLOCK_MONOTONIC, &now);
	while ((now.tv_sec - end.tv_sec) * 1000000000ll + now.tv_nsec - end.tv_nsec < milliseconds * 1000000);
}

static void *volatile kept;

__attribute__((noinline)) long rb_vm_exec(long n)
{
	struct tag tag = { 0 };

	tag.previous = context->tag;
	if (__builtin_setjmp(tag.jump) == 0) {
		kept = context->tag = &tag;
		if (n == 1) /* a ring */
			tag.previous = &tag;
		run(n > 11 ? 2000 : 200);
	} else {
		puts("jumped");
	}
	context->tag = NULL;
	return n + 1;
}

long rb_iseq_eval(long n)
{
	return rb_vm_exec(n + 1) - 1;
}

static void breaks(const char *way, struct control_frame *inner)
{
	struct control_frame *caller = inner + 1;

	if (!strcmp(way, "kind"))
		iseqs[3].flags = INTERNAL | 6 << 12;
	else if (!strcmp(way, "hole"))
		caller->iseq = (struct iseq *)hole;
	else if (!strcmp(way, "body"))
		iseqs[2].body = (struct body *)hole;
	else if (!strcmp(way, "label"))
		labels[2].flags = 7;
	else if (!strcmp(way, "odd"))
		caller->ep = (uint64_t *)((char *)caller->ep + 1);
	else if (!strcmp(way, "values"))
		caller->ep = (uint64_t *)hole + 64;
	else if (!strcmp(way, "far"))
		inner->pc = codes[3] + WORDS + 100;
	else if (!strcmp(way, "before"))
		inner->pc = codes[3] - 100;
	else if (!strcmp(way, "method")) /* not a method's entry: of no class */
		inner->ep[-2] = (uint64_t)&labels[0];
	else if (!strcmp(way, "index"))
		bodies[3].line_cnt = 1000;
	else if (!strcmp(way, "huge"))
		whole.words = 1ull << 40;
	else if (!strcmp(way, "below"))
		whole.frame = (struct control_frame *)(stack - 64);
}

int main(void)
{
	static const char *const ways[] = { "first",  "kind",	"hole",	 "body", "label", "odd",  "values", "far",
					    "before", "method", "index", "huge", "below", "ring", "whole" };

	hole = mmap(NULL, 1 << 16, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++) {
		make(ways[i]);
		breaks(ways[i], whole.frame);
		rb_iseq_eval(i == 0 ? 20 : !strcmp(ways[i], "ring") ? 0 : 10);
	}
	return 0;
}
