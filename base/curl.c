/* SPDX-License-Identifier: Apache-2.0 */
/* Loads libcurl at its first call and finds its functions by name. The library stays loaded until the end. */
#include "base/curl.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/log.h"

#define LIBRARY "libcurl.so.4" /* the ABI of curl 7.16 and everything after it */

static pthread_once_t once = PTHREAD_ONCE_INIT;
static void *library;

static void load(void)
{
	library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
}

void *curl_function(const char *name)
{
	void *function;

	pthread_once(&once, load);
	function = library ? dlsym(library, name) : NULL;
	if (!function) {
		log_error("cannot use libcurl, which sends over HTTP: %s (Debian's package is libcurl4)", dlerror());
		exit(1);
	}
	return function;
}
