/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reopen SECONDS: two libraries by turns at the same address: dlopen, call, dlclose, dlopen the other. The thread's name
 * says which of the two is being called. A third one has the second's path, and another content each second time.
 */
#include "comings.h"

static chain_fn *enter;

FRAME unsigned long reopen_call(unsigned long ms);
FRAME unsigned long reopen_call(unsigned long ms)
{
	truth_sink += enter(ms) ^ ms;
	return truth_sink;
}

FRAME void *visit(const char *path, const char *comm, unsigned long ms);
FRAME void *visit(const char *path, const char *comm, unsigned long ms)
{
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL), *at;

	must(library != NULL, dlerror());
	at = dlsym(library, "enter");
	*(void **)&enter = at;
	if (comm)
		name_me(comm);
	truth_sink += reopen_call(ms);
	name_me("reopen");
	must(dlclose(library) == 0, "dlclose");
	return at;
}

int main(int argc, char **argv)
{
	double end = now_seconds(CLOCK_MONOTONIC) + seconds_argument(argc, argv);
	int same = 0, round = 0;
	void *last = NULL;

	tell("reopen_a", "reopen", "main visit reopen_call enter", "liba");
	tell("reopen_b", "reopen", "main visit reopen_call enter", "libb");
	tell("reopen_c", "reopen", "main visit reopen_call enter", "libc");
	tell("reopen_d", "reopen", "main visit reopen_call enter", "libd");
	truth_told();
	visit("./liba.so", NULL, 1); /* of the first time that one replaces another, samples may be cut (stale mapping) */
	visit("./libb.so", NULL, 50);
	for (; now_seconds(CLOCK_MONOTONIC) < end; round++) {
		const char *other = round & 1 ? "./libc.so" : "./libd.so";
		void *at = visit("./liba.so", "reopen_a", 9);

		same += at == visit("./libb.so", "reopen_b", 9);
		same += at == last;
		unlink("./new.so");
		must(link(other, "./new.so") == 0 && rename("./new.so", "./turn.so") == 0, "link and rename");
		last = visit("./turn.so", round & 1 ? "reopen_c" : "reopen_d", round < 2 ? 700 : 9); /* time to open it */
	}
	errno = 0;
	must(same > round, "opening the libraries at one address");
	return 0;
}
