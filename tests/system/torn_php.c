/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that passes itself off as PHP 8.2 (agent/runtime/file/php_file.c) and whose list of frames is broken in one way
 * after the other: each for 300 ms, with a function on top that is called by the way. Behind what is broken stands a
 * function called WRONG, which must not be in any stack.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { CURRENT = 488, TOP = 1 << 17, GENERATOR = 1 << 24, INTERNAL = 1, USER = 2, OBJECT = 8 };

struct string {
	uint32_t references, type;
	uint64_t hash, len;
	char text[6000];
};

struct op {
	uint64_t words[3];
	uint32_t line, code;
};

/* As 8.2 has it. */
struct function {
	uint8_t type, pad[3];
	uint32_t flags;
	struct string *name;
	void *class;
	uint64_t words[7];
	uint32_t last, pad2;
	struct op *ops;
	uint64_t more[7];
	struct string *file;
	uint32_t first_line, last_line;
	uint64_t rest[10];
};

struct frame {
	struct op *op;
	void *call;
	void *result;
	struct function *function;
	void *self;
	uint32_t type, pad;
	struct frame *previous;
	uint64_t rest[3];
};

_Static_assert(__builtin_offsetof(struct function, ops) == 88 && __builtin_offsetof(struct function, file) == 152,
	       "layout of 8.2");
_Static_assert(__builtin_offsetof(struct frame, previous) == 48 && __builtin_offsetof(struct op, line) == 24,
	       "layout of 8.2");

char executor_globals[1800];
const char header[] = "X-Powered-By: PHP/8.2.0";

static struct string texts[8];
static struct op ops[4];
static struct function top, caller, script, wrong;
static struct frame frames[4];
static uint64_t generators[2][64];

__attribute__((noinline)) void execute_ex(double seconds)
{
	struct timespec from, now;

	clock_gettime(CLOCK_MONOTONIC, &from);
	do {
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while ((double)(now.tv_sec - from.tv_sec) + (double)(now.tv_nsec - from.tv_nsec) / 1e9 < seconds);
}

static struct string *text(int i, const char *content)
{
	texts[i].type = 6;
	texts[i].len = strlen(content);
	strcpy(texts[i].text, content);
	return &texts[i];
}

/* top() on line 7, called by caller() of C, called by the script on line 5; behind it wrong(). */
static void make_whole(const char *way)
{
	struct string *file = text(0, "/scripts/torn.php");

	memset(frames, 0, sizeof(frames));
	for (int i = 0; i < 4; i++)
		ops[i].line = 5 + (uint32_t)i;
	top = (struct function){ .type = USER, .name = text(1, way), .ops = ops, .last = 4, .file = file, .first_line = 6 };
	caller = (struct function){ .type = INTERNAL, .name = text(2, "caller") };
	script = (struct function){ .type = USER, .ops = ops, .last = 4, .file = file, .first_line = 1 };
	wrong = (struct function){
		.type = USER, .name = text(3, "WRONG"), .ops = ops, .last = 4, .file = file, .first_line = 6
	};
	frames[0] = (struct frame){ .op = &ops[2], .function = &top, .previous = &frames[1] };
	frames[1] = (struct frame){ .function = &caller, .previous = &frames[2] };
	frames[2] = (struct frame){ .op = &ops[0], .function = &script, .type = TOP };
	frames[3] = (struct frame){ .op = &ops[0], .function = &wrong, .type = TOP };
}

static void run(const char *way)
{
	struct frame *first = frames;

	memcpy(executor_globals + CURRENT, &first, sizeof(first));
	execute_ex(0.3);
	memset(executor_globals + CURRENT, 0, sizeof(first));
	printf("%s\n", way);
	fflush(stdout);
}

/* A page behind which there is nothing. */
static char *last_page(void)
{
	char *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	munmap(pages + 4096, 4096);
	return pages + 4096;
}

static void break_frames(char *hole)
{
	make_whole("hole");
	frames[0].previous = (struct frame *)hole;
	run("hole");
	make_whole("odd");
	frames[0].previous = (struct frame *)((char *)&frames[3] + 4);
	run("odd");
	make_whole("ring");
	frames[0].previous = &frames[0];
	run("ring");
	make_whole("far");
	frames[0].op = ops + 100;
	run("far");
	make_whole("between");
	frames[0].op = (struct op *)((char *)ops + 8);
	run("between");
}

static void break_functions(char *hole)
{
	make_whole("kind");
	wrong.type = 7;
	frames[1].function = &wrong;
	run("kind");
	make_whole("nothing");
	frames[1].function = (struct function *)hole;
	run("nothing");
	make_whole("oblique");
	frames[1].function = (struct function *)((char *)&wrong + 4);
	run("oblique");
	make_whole("untyped");
	frames[1].function = &wrong;
	texts[3].type = 7;
	run("untyped");
	make_whole("unnamed");
	frames[1].function = &wrong;
	wrong.name = (struct string *)hole;
	run("unnamed");
	make_whole("edge");
	memcpy(hole - 136, &caller, 136); /* a function of C is so short that it ends before what is read of others */
	frames[1].function = (struct function *)(hole - 136);
	run("edge");
	make_whole("long");
	memset(texts[2].text, 'x', 5000);
	texts[2].len = 5000;
	run("long");
}

/* Generators that delegate to one another for ever. */
static void break_generators(void)
{
	struct frame *placeholder = (struct frame *)((char *)generators[1] + 184);

	make_whole("delegates");
	frames[0].type = TOP | GENERATOR;
	frames[0].result = generators[0];
	frames[0].previous = placeholder;
	*placeholder = (struct frame){ .self = generators[1], .type = OBJECT, .previous = &frames[1] };
	generators[0][160 / 8] = 1;
	generators[0][168 / 8] = (uint64_t)generators[0];
	generators[0][56 / 8] = (uint64_t)&frames[0];
	run("delegates");
}

int main(void)
{
	char *hole = last_page();

	make_whole("whole");
	run("whole");
	for (int i = 0; i < 2; i++) {
		make_whole("whole");
		run("whole");
		break_frames(hole);
		break_functions(hole);
		break_generators();
	}
	return header[0] != 'X';
}
