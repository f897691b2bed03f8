/* SPDX-License-Identifier: Apache-2.0 */
/* A chain that goes into a file loaded while running, back out of it and in again: main, host_call, plugin_enter,
 * plugin_middle, host_back, plugin_work, plugin_leaf. The plug-in, libplugin.so, lies beside the program. */
#include <dlfcn.h>

#include "plugin.h"
#include "truth.h"

static unsigned long (*enter)(plugin_fn *back, unsigned long x);
static plugin_fn *work;

FRAME unsigned long host_back(unsigned long x);
FRAME unsigned long host_back(unsigned long x)
{
	truth_sink += work(x + 1) ^ x;
	return truth_sink;
}

FRAME unsigned long host_call(unsigned long x);
FRAME unsigned long host_call(unsigned long x)
{
	truth_sink += enter(host_back, x + 1) ^ x;
	return truth_sink;
}

int main(int argc, char **argv)
{
	char path[4096];
	ssize_t len = readlink("/proc/self/exe", path, sizeof(path) - sizeof("libplugin.so"));
	void *plugin;

	if (len < 0)
		return 1;
	path[len] = 0;
	strcpy(strrchr(path, '/') + 1, "libplugin.so");
	plugin = dlopen(path, RTLD_NOW);
	if (!plugin) {
		fprintf(stderr, "plugin_host: %s\n", dlerror());
		return 1;
	}
	*(void **)&enter = dlsym(plugin, "plugin_enter");
	*(void **)&work = dlsym(plugin, "plugin_work");
	*(volatile int **)dlsym(plugin, "plugin_turns") = &truth_turns;
	puts("chain main host_call plugin_enter plugin_middle host_back plugin_work plugin_leaf\n"
	     "calls main dl* readlink");
	RUN_CHAIN(host_call, seconds_argument(argc, argv));
	return 0;
}
