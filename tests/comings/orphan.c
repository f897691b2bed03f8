/* SPDX-License-Identifier: Apache-2.0 */
/* orphan SECONDS: a thread that outlives its leader, and opens a library when it is alone. */
#include <pthread.h>
#include <sys/syscall.h>

#include "comings.h"

static chain_fn *enter;
static unsigned long ms;

CHAIN(orphan)

FRAME unsigned long orphan_call(unsigned long x);
FRAME unsigned long orphan_call(unsigned long x)
{
	truth_sink += enter(x) ^ x;
	return truth_sink;
}

FRAME void *orphan_start(void *arg);
FRAME void *orphan_start(void *arg)
{
	void *library;

	usleep(100000);
	name_me("orphan_alone");
	truth_sink += orphan_outer(ms);
	library = dlopen("./libo.so", RTLD_NOW);
	must(library != NULL, "dlopen");
	*(void **)&enter = dlsym(library, "enter");
	name_me("orphan_opens");
	truth_sink += orphan_call(ms);
	_exit(0);
	return arg;
}

int main(int argc, char **argv)
{
	pthread_t thread;

	ms = (unsigned long)(seconds_argument(argc, argv) * 500);
	tell("orphan_alone", "orphan", "orphan_start", "orphan");
	tell("orphan_opens", "orphan", "orphan_start orphan_call enter", "libo");
	truth_told();
	must(pthread_create(&thread, NULL, orphan_start, NULL) == 0, "pthread_create");
	syscall(SYS_exit, 0);
	return 0;
}
