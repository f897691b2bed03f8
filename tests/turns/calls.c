/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Between a call and its function: stubs of the procedure linkage table (bound at once, bound lazily, with endbr64), the
 * dynamic linker's resolver, the vDSO, the vsyscall page; and functions written by hand in libc and libcrypto. Built three
 * times; the case's name tells which stubs a program has.
 */
#include "step.h"

#include <dlfcn.h>
#include <link.h>
#include <sys/time.h>

#include "caller.h"

/* Stubs have no names of their own. */
#define STUB_RE "calls\\w*\\+"

static void plt(const char *name)
{
	printf("stack @main;%s(;caller(;" STUB_RE "|;stub\\d+)?|;@libs)?\n", name);
	printf("seen 4 %s;caller;" STUB_RE "\n", name);
	told();
}

#define PLT(name)                                              \
	static void name(void)                                 \
	{                                                      \
		plt(#name);                                    \
		while (running())                              \
			for (int i = 0; i < 20000; i++)        \
				turn_sink = caller(turn_sink); \
	}
PLT(plt_lazy)
PLT(plt_now)
PLT(plt_ibt)

/* Each instruction of stubs and, for a few, of their binding: the dynamic linker takes thousands for each. */
static void step_told(const char *name)
{
	printf("stack @main;%s(;caller(;" STUB_RE "|;stub\\d+)?|;@libs)?@trap\n", name);
	printf("stack @main;%s;caller(;" STUB_RE ")?(;@libs)+@trap\n", name);
	printf("seen 4 %s;caller;" STUB_RE ";@signal;on_trap\n", name);
	told();
	step_begin(0);
	step_us = 2000;
}

static uint64_t last_address(void)
{
	extern char etext[];

	return (uint64_t)etext;
}

static int base_of(struct dl_phdr_info *info, size_t size, void *arg)
{
	(void)size;
	*(uint64_t *)arg = info->dlpi_addr + info->dlpi_phdr[0].p_vaddr;
	return 1; /* the first is the program */
}

/* All but the last four. */
static void bind_most(void)
{
	unsigned long x = turn_sink;

	CALLS(0)
	CALLS(1)
	CALLS(2)
	CALL(30)
	CALL(31)
	CALL(32)
	CALL(33)
	turn_sink = x;
}

#define STEP_PLT(name)                                 \
	static void name(void)                         \
	{                                              \
		step_told(#name);                      \
		dl_iterate_phdr(base_of, &step_from);  \
		step_to = last_address();              \
		bind_most();                           \
		while (running()) {                    \
			step_on();                     \
			turn_sink = caller(turn_sink); \
			step_off();                    \
		}                                      \
	}
STEP_PLT(step_lazy)
STEP_PLT(step_now)
STEP_PLT(step_ibt)

/* The resolver, which saves all registers on a stack it aligns itself, and what it calls. */
static void binding(void)
{
	char file[4096];
	ssize_t len = readlink("/proc/self/exe", file, sizeof(file) - 32);

	if (len <= 0)
		leave_out("no /proc");
	file[len] = 0;
	strcpy(strrchr(file, '/'), "/libbinder.so");
	right("@main;binding(;caller(;libbinder\\.so\\+)?)?(;@libs|;calls\\w*\\+|;stub\\d+|;_init|;_fini|;\\w+_tm_clones|;"
	      "frame_dummy|;__do_global\\w+|;libbinder\\.so\\+|;libstubs\\.so\\+)*");
	seen(4, "@main;binding;caller(;libbinder\\.so\\+)?;ld:");
	told();
	while (running()) {
		void *library = dlopen(file, RTLD_LAZY | RTLD_LOCAL);
		unsigned long (*call)(unsigned long) = library ? (unsigned long (*)(unsigned long))dlsym(library, "caller")
							       : NULL;

		if (!call)
			abort();
		turn_sink = call(turn_sink);
		dlclose(library);
	}
}

/* --- the kernel's pages --- */

FRAME void ask(void);
FRAME void ask(void)
{
	struct timespec ts;

	for (int i = 0; i < 1000; i++)
		clock_gettime(CLOCK_MONOTONIC, &ts);
	turn_sink += (unsigned long)ts.tv_nsec;
}

static void vdso(void)
{
	right("@main;vdso(;ask)?(;" STUB_RE "|;libc:clock_gettime(;vdso:\\w*)*)?");
	seen(10, "vdso;ask;libc:clock_gettime;vdso:");
	told();
	while (running())
		ask();
}

static void step_vdso(void)
{
	struct timespec ts;

	right("@main;step_vdso(;libc:clock_gettime(;vdso:\\w*)*|;" STUB_RE "|(;@libs)*)?@trap");
	seen(4, "step_vdso;libc:clock_gettime(;vdso:\\w*)+;@signal;on_trap");
	told();
	clock_gettime(CLOCK_MONOTONIC, &ts);
	step_begin(0);
	step_us = 30; /* it begins again whenever the kernel updated the time meanwhile */
	while (running()) {
		step_on();
		clock_gettime(CLOCK_MONOTONIC, &ts);
		step_off();
	}
}

/* Executing the page faults, and the kernel does what its code says. */
FRAME void ask_old(void);
FRAME void ask_old(void)
{
	time_t (*old_time)(time_t *) = (time_t(*)(time_t *))0xffffffffff600400ul;

	for (int i = 0; i < 1000; i++)
		turn_sink += (unsigned long)old_time(NULL);
}

static void vsyscall(void)
{
	char line[256];
	FILE *maps = fopen("/proc/self/maps", "r");
	int there = 0;

	while (maps && fgets(line, sizeof(line), maps))
		there |= strstr(line, "[vsyscall]") != NULL;
	if (!there)
		leave_out("this kernel has no vsyscall page");
	fclose(maps);
	right("@main;vsyscall(;ask_old(;anon\\+)?|;@libs)?");
	seen(4, "vsyscall;ask_old;[^|]*\\|.*exc_page_fault");
	printf("odd 10 anon\\+\\|.*emulate_vsyscall\n"); /* it has taken the return address and not yet gone there */
	told();
	while (running())
		ask_old();
}

/* --- written by hand --- */

static unsigned char from[1 << 16], to[1 << 16];

FRAME void copy(size_t n);
FRAME void copy(size_t n)
{
	memcpy(to, from, n);
	turn_sink += to[n / 2];
	memset(to, (int)n, n);
	turn_sink += (unsigned long)memcmp(to, from, n);
	turn_sink += strlen((char *)from);
}

static void strings(void)
{
	right("@main;strings(;copy(;" STUB_RE "|;libc:\\w*)?|(;@libs)*)?");
	seen(10, "strings;copy;libc:");
	told();
	memset(from, 'x', sizeof(from) - 1);
	while (running())
		for (size_t n = 1; n < sizeof(from); n += n / 2 + 1)
			copy(n);
}

static void step_strings(void)
{
	right("@main;step_strings(;copy(;" STUB_RE "|;libc:\\w*)?|(;@libs)*)?@trap");
	seen(4, "step_strings;copy;libc:\\w*;@signal;on_trap");
	told();
	memset(from, 'x', 200);
	copy(8); /* bind */
	step_begin(0);
	step_us = 600;
	while (running())
		for (size_t n = 1; n < 300; n = n * 2 + 1) {
			from[n] = 0;
			step_on();
			copy(n);
			step_off();
			from[n] = 'x';
		}
}

typedef int digest_fn(const void *data, size_t count, unsigned char *md, unsigned *size, const void *type, void *impl);

FRAME void hash(digest_fn *digest, const void *type);
FRAME void hash(digest_fn *digest, const void *type)
{
	unsigned char out[64];
	unsigned size = 0;

	digest(from, sizeof(from), out, &size, type, NULL);
	turn_sink += out[0];
}

static void crypto(void)
{
	static const char *const names[] = { "EVP_sha1", "EVP_sha256",	 "EVP_sha512",
					     "EVP_md5",	 "EVP_sha3_256", "EVP_blake2b512" };
	void *library = dlopen("libcrypto.so.3", RTLD_NOW);
	digest_fn *digest = library ? (digest_fn *)dlsym(library, "EVP_Digest") : NULL;

	if (!digest)
		leave_out("no libcrypto.so.3");
	right("@main;crypto(;hash(;EVP_Digest(;[^;]+)*)?|(;@libs)*)?");
	right("_start;libc:__libc_start_main;libc:;libc:exit;libc:;OPENSSL_cleanup(;[^;]+)*");
	right("@main;crypto;(EVP_\\w+|libcrypto\\.so\\.3\\+)(;@libs)*");
	seen(10, "crypto;hash;EVP_Digest;.*;[^;|]+\\|");
	told();
	for (size_t i = 0; running(); i++)
		hash(digest, ((const void *(*)(void))dlsym(library, names[i % 6]))());
}

TURNS({ "plt_lazy", plt_lazy }, { "plt_now", plt_now }, { "plt_ibt", plt_ibt }, { "step_lazy", step_lazy },
      { "step_now", step_now }, { "step_ibt", step_ibt }, { "binding", binding }, { "vdso", vdso },
      { "step_vdso", step_vdso }, { "vsyscall", vsyscall }, { "strings", strings }, { "step_strings", step_strings },
      { "crypto", crypto })
