/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Spins within one span, which its thread's context says (tests/context/context.c).
 *
 *   in_span SECONDS linked|LIBRARY|without      whose context.c; "without": the same work, and no context
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef void enter_fn(int thread, int kind, uint64_t number);
typedef void publish_fn(const char *version, int keys, int by_name);

#ifdef LINKED
enter_fn context_enter;
publish_fn context_publish;
#else
static enter_fn *const context_enter;
static publish_fn *const context_publish;
#endif

static void *find(void *library, const char *name)
{
	void *symbol = library ? dlsym(library, name) : NULL;

	if (!symbol) {
		fprintf(stderr, "in_span: %s: %s\n", name, dlerror());
		exit(2);
	}
	return symbol;
}

static void say_span(const char *from)
{
	enter_fn *enter = context_enter;
	publish_fn *publish = context_publish;

	if (!strcmp(from, "without"))
		return;
	if (strcmp(from, "linked") != 0) {
		void *library = dlopen(from, RTLD_NOW);

		*(void **)&publish = find(library, "context_publish");
		*(void **)&enter = find(library, "context_enter");
	}
	publish("1", 3, 0);
	enter(0, 1, 1);
}

int main(int argc, char **argv)
{
	volatile uint64_t sum = 0;

	if (argc != 3)
		return 2;
	say_span(argv[2]);
	for (time_t end = time(NULL) + atoi(argv[1]); time(NULL) < end;)
		for (uint64_t i = 0; i < 10000000; i++)
			sum += i * i;
	return 0;
}
