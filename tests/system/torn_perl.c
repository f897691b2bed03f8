/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that passes itself off as Perl 5.36: it has that one's symbols, and structures with the fields that are read,
 * whole or broken in one way after the other. In each it runs for 0.3 s, in the loop of its interpreter, and prints the way;
 * the name of the innermost sub is the way, too. A frame WRONG is behind what is broken: nobody may see it.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { COP = 208, STACK = 224, TOP_ENV = 760, START_ENV = 768, FILE_NAME = 1472, PHASE = 2512, RUNS = 4 };
enum { SUB = 9, CODE = 13, GLOB = 9, NEXTSTATE = 195, BEHIND = 3 };

struct value {
	void *body;
	uint32_t refs, flags;
	void *content;
};

struct key {
	uint32_t hash, len;
	char text[64];
};

struct cop {
	char op[32];
	uint32_t type, line;
	uint64_t stash;
	const char *file;
};

struct context {
	uint8_t type;
	char a[15];
	struct cop *cop;
	char b[24];
	void *returns;
	int32_t outside;
	char c[12];
	struct value *code;
	char d[24];
};

struct stack {
	uint64_t a;
	struct context *contexts;
	struct stack *previous;
	uint64_t b;
	int32_t index, max, sub_index, type;
};

struct code {
	char a[40];
	struct cop *start;
	uint64_t root;
	struct value *glob;
	const char *file;
	char b[16];
	uint32_t number, flags;
	uint64_t depth;
};

struct stash_body {
	char a[32];
	struct key *name;
	uint64_t b[6];
};

struct glob_body {
	char a[32];
	struct key *name;
	struct value *stash;
};

pthread_key_t PL_thr_key;
void *PL_curinterp;
const uint16_t PL_interp_size = 3768, PL_interp_size_5_18_0 = 2880;

static uint64_t interpreter[3768 / 8], outer_env[28];
static struct cop cops[4];
static struct context contexts[4];
static struct stack stack;
static struct key names[4], package;
static struct value subs[4], globs[4], stash;
static struct code codes[4];
static struct glob_body glob_bodies[4];
static struct stash_body stash_body;
static uint64_t glob_contents[4][9];

__attribute__((noinline)) void Perl_runops_standard(double seconds)
{
	struct timespec from, now;

	clock_gettime(CLOCK_MONOTONIC, &from);
	do {
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while ((double)(now.tv_sec - from.tv_sec) + (double)(now.tv_nsec - from.tv_nsec) / 1e9 < seconds);
}

static void name(struct key *key, const char *text)
{
	memset(key, 0, sizeof(*key));
	key->len = (uint32_t)strlen(text);
	strcpy(key->text, text);
}

static void set(unsigned offset, const void *value)
{
	memcpy((char *)interpreter + offset, &value, sizeof(value));
}

/* main::WAY on line 9, called by main::caller on line 8, called by main::outer on line 7, called by torn.pl on line 6. */
static void make_whole(const char *way)
{
	static const char *const called[4] = { "outer", "caller", "", "WRONG" };

	memset(contexts, 0, sizeof(contexts));
	name(&package, "main");
	stash_body.name = &package;
	stash = (struct value){ &stash_body, 1, 12, NULL };
	for (int i = 0; i < 4; i++) {
		name(&names[i], i == 2 ? way : called[i]);
		glob_bodies[i].name = &names[i];
		glob_bodies[i].stash = &stash;
		globs[i] = (struct value){ &glob_bodies[i], 1, GLOB, glob_contents[i] };
		cops[i] = (struct cop){ .type = NEXTSTATE, .line = 6 + (uint32_t)i, .file = "torn.pl" };
		codes[i] = (struct code){
			.start = &cops[i], .glob = &globs[i], .file = "torn.pl", .number = 50 + (uint32_t)i
		};
		subs[i] = (struct value){ &codes[i], 1, CODE, NULL };
		contexts[i] = (struct context){
			.type = SUB, .cop = &cops[i], .returns = &cops[i], .outside = i - 1, .code = &subs[i]
		};
	}
	codes[2].number += way[0] + way[1] * 256u; /* each way is a sub of its own */
	stack = (struct stack){ .contexts = contexts, .index = 2, .max = 3, .sub_index = 2, .type = 1 };
	set(COP, &cops[3]);
	set(STACK, &stack);
	set(TOP_ENV, outer_env);
	set(FILE_NAME, "torn.pl");
	interpreter[PHASE / 8] = RUNS;
}

static void run(const char *way)
{
	pthread_setspecific(PL_thr_key, interpreter);
	Perl_runops_standard(0.3);
	pthread_setspecific(PL_thr_key, NULL);
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

static void break_stacks(char *hole)
{
	make_whole("array"); /* its contexts are not there */
	stack.contexts = (struct context *)hole;
	run("array");
	make_whole("many"); /* more contexts than there is room for */
	stack.index = 4;
	run("many");
	make_whole("behind"); /* the context behind the last is being made: it is of no sub yet */
	stack.index = BEHIND;
	run("behind");
	make_whole("ahead"); /* a sub that is not in the list of subs */
	stack.sub_index = 1;
	contexts[1].outside = 1;
	run("ahead");
	make_whole("lost");
	stack.previous = (struct stack *)hole;
	run("lost");
	make_whole("ring");
	stack.previous = &stack;
	run("ring");
}

static void break_subs(char *hole)
{
	make_whole("kind");
	subs[1].flags = GLOB;
	run("kind");
	make_whole("nothing");
	contexts[1].code = (struct value *)hole;
	run("nothing");
	make_whole("bodyless");
	subs[1].body = hole;
	run("bodyless");
	make_whole("unnamed");
	codes[1].glob = (struct value *)hole;
	codes[1].number = 99;
	run("unnamed");
	make_whole("line");
	contexts[1].cop = (struct cop *)hole;
	run("line");
	make_whole("ended"); /* a sub that is about to end has no frame */
	contexts[2].code = NULL;
	run("ended");
	make_whole("fresh"); /* the statement is still the caller's: the line is that of the sub's first one */
	contexts[2].cop = &cops[3];
	codes[2].start = &cops[0];
	run("fresh");
}

int main(void)
{
	char *hole = last_page();

	pthread_key_create(&PL_thr_key, NULL);
	PL_curinterp = interpreter;
	outer_env[0] = (uint64_t)((char *)interpreter + START_ENV);
	for (int i = 0; i < 3; i++) {
		make_whole("whole");
		run("whole");
	}
	for (int i = 0; i < 2; i++) {
		break_stacks(hole);
		break_subs(hole);
	}
	for (int i = 0; i < 3; i++) { /* again, when it is surely known what this program is */
		make_whole("whole");
		run("whole");
	}
	return 0;
}
