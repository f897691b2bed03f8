/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Perl in an executable or libperl, built with threads or without. The file tells the size of struct interpreter, and of its
 * part that 5.18 had: together they stand for the layout (5.36 and 5.40 differ, yet are of one size), but for versions that
 * differ in the numbers of operators alone: these are told by a function that came with one. The table below was
 * measured by offsetof on the headers of Debian's packages (cc $(perl -MExtUtils::Embed -e ccopts), <perl.h>;
 * offsetof(struct interpreter, Icurcop), offsetof(JMPENV, je_mustcatch), OP_REQUIRE and the like). The structures that
 * bpf/runtime/perl_state.h has as constants were measured with them. Each thread has its interpreter as the value of the key
 * PL_thr_key.
 */
#include <string.h>

#include "agent/runtime/file/runtime_file.h"
#include "base/cleanup.h"
#include "bpf/runtime/perl_state.h"
#include "symbols/elf_image.h"

/* The layout of one version on one architecture. */
struct layout {
	uint16_t interpreter_bytes, old_bytes; /* PL_interp_size, PL_interp_size_5_18_0 */
	uint8_t minor;
	const char *news;	       /* a function that it has and the next row does not; NULL: its sizes are its own */
	uint16_t offset[PERL_OFFSETS]; /* in the order of enum perl_offset */
};

static const struct layout layouts[] = {
#ifdef __x86_64__
	{ 3776, 2624, 44, NULL, { 208, 224, 776, 784, 2216, 1240, 212, 202, 349, 350, 352, 191, 212, 8 } },
	{ 3768, 2624, 42, "Perl_newSVpvz", { 208, 224, 776, 784, 2216, 1240, 212, 202, 349, 350, 352, 191, 212, 8 } },
	{ 3768, 2624, 40, NULL, { 208, 224, 776, 784, 2216, 1240, 212, 198, 345, 346, 348, 187, 208, 8 } },
	{ 3768, 2880, 36, NULL, { 208, 224, 760, 768, 2512, 1472, 212, 195, 342, 343, 345, 184, 205, 8 } },
	{ 3792, 2912, 32, NULL, { 224, 240, 776, 784, 2532, 1488, 212, 195, 342, 343, 345, 184, 205, 8 } },
#elif defined(__aarch64__)
	{ 3872, 2720, 44, NULL, { 208, 224, 760, 768, 2312, 1336, 324, 202, 349, 350, 352, 191, 212, 8 } },
	{ 3864, 2720, 42, "Perl_newSVpvz", { 208, 224, 760, 768, 2312, 1336, 324, 202, 349, 350, 352, 191, 212, 8 } },
	{ 3864, 2720, 40, NULL, { 208, 224, 760, 768, 2312, 1336, 324, 198, 345, 346, 348, 187, 208, 8 } },
	{ 3864, 2976, 36, NULL, { 208, 224, 744, 752, 2608, 1568, 324, 195, 342, 343, 345, 184, 205, 8 } },
	{ 3888, 3008, 32, NULL, { 224, 240, 760, 768, 2628, 1584, 324, 195, 342, 343, 345, 184, 205, 8 } },
#endif
	{ 0 },
};

/* The number that the file has in the variable @name; 0: none. */
static uint16_t find_size(const struct elf_image *im, const char *name)
{
	struct runtime_symbol symbol;
	const uint8_t *bytes;
	uint16_t size;

	if (runtime_file_symbol(im, name, &symbol))
		return 0;
	bytes = runtime_file_bytes(im, symbol.addr, sizeof(size));
	if (!bytes)
		return 0;
	memcpy(&size, bytes, sizeof(size));
	return size;
}

static const struct layout *find_layout(const struct elf_image *im)
{
	uint16_t bytes = find_size(im, "PL_interp_size"), old_bytes = find_size(im, "PL_interp_size_5_18_0");
	struct runtime_symbol news;

	for (size_t i = 0; bytes && i < ARRAY_LEN(layouts); i++) {
		const struct layout *l = &layouts[i];

		if (l->interpreter_bytes == bytes && l->old_bytes == old_bytes &&
		    (!l->news || !runtime_file_symbol(im, l->news, &news)))
			return l;
	}
	return NULL;
}

/* Of a build without threads: the members of struct interpreter are variables, and the version is told by the number of
 * operators that there are names for. The numbers of operators are those of builds with threads. True: @ret has its state.
 */
static bool find_globals(const struct elf_image *im, struct runtime_file *ret)
{
	static const struct {
		uint16_t operators; /* MAXO, of opnames.h */
		uint8_t minor;
	} versions[] = { { 426, 42 }, { 422, 40 }, { 414, 36 }, { 400, 32 } };
	static const struct {
		const char *name;
		enum perl_offset which;
	} variables[] = {
		{ "PL_curcop", PERL_COP },	{ "PL_curstackinfo", PERL_STACK },
		{ "PL_top_env", PERL_TOP_ENV }, { "PL_start_env", PERL_START_ENV },
		{ "PL_phase", PERL_PHASE },	{ "PL_origfilename", PERL_FILE },
		{ "PL_op", PERL_OP },
	};
	const struct layout *l = NULL;
	struct runtime_symbol symbol, at[ARRAY_LEN(variables)];
	uint64_t lowest = UINT64_MAX;
	uint8_t minor = 0;

	if (runtime_file_symbol(im, "PL_op_name", &symbol))
		return false;
	for (size_t i = 0; i < ARRAY_LEN(versions); i++) /* behind them is "freed" */
		if (symbol.size_bytes / sizeof(uint64_t) == versions[i].operators + 1u)
			minor = versions[i].minor;
	for (size_t i = 0; minor && i < ARRAY_LEN(layouts); i++)
		if (layouts[i].minor == minor)
			l = &layouts[i];
	if (!l)
		return false;
	for (size_t i = 0; i < ARRAY_LEN(variables); i++) {
		if (runtime_file_symbol(im, variables[i].name, &at[i]))
			return false;
		lowest = at[i].addr < lowest ? at[i].addr : lowest;
	}
	for (size_t i = 0; i < ARRAY_LEN(variables); i++)
		if (at[i].addr - lowest > UINT16_MAX)
			return false;
	memcpy(ret->state.offset, l->offset, sizeof(l->offset));
	for (size_t i = 0; i < ARRAY_LEN(variables); i++)
		ret->state.offset[variables[i].which] = (uint16_t)(at[i].addr - lowest);
	ret->state.offset[PERL_GLOBALS] = 1;
	ret->version = 5 << 16 | (uint32_t)minor << 8;
	ret->state.runtime = RUNTIME_PERL;
	ret->state.thread = (struct thread_locator){ .place = THREAD_GLOBAL, .addr = lowest };
	return true;
}

bool perl_file_read(const struct elf_image *im, struct runtime_file *ret)
{
	struct runtime_symbol loop, first, key;
	const struct layout *l;

	if (runtime_file_symbol(im, "Perl_runops_standard", &loop) || runtime_file_symbol(im, "PL_curinterp", &first))
		return false;
	ret->kind = RUNTIME_FILE_CHAIN;
	ret->id = RUNTIME_PERL;
	ret->loop.start = loop.addr;
	ret->loop.end = loop.addr + loop.size_bytes;
	if (find_globals(im, ret))
		return true;
	l = find_layout(im);
	if (!l || runtime_file_symbol(im, "PL_thr_key", &key))
		return true; /* of a version that is not known: without a way to its state */
	ret->version = 5 << 16 | (uint32_t)l->minor << 8;
	memcpy(ret->state.offset, l->offset, sizeof(l->offset));
	ret->state.runtime = RUNTIME_PERL;
	ret->state.type = first.addr;
	ret->state.thread = (struct thread_locator){ .place = THREAD_KEY, .addr = key.addr };
	return true;
}
