/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "agent/kernel/sampler.h"
#include "agent/process/chain_states.h"

/* The first mapping of a file of @kind behind number *@at - 1; NULL: none. */
static const struct mapping *find_file(const struct address_space *as, enum runtime_file_kind kind, uint32_t *at)
{
	for (; *at < as->count; ++*at)
		if (as->maps[*at].file && as->maps[*at].file->info.runtime.kind == kind)
			return &as->maps[(*at)++];
	return NULL;
}

/* Completes @state by the C library's facts. False: its threads cannot be found. */
static bool add_libc(const struct address_space *as, struct chain_state *state)
{
	bool needs_it = state->thread.place == THREAD_TLS_INDEX || state->thread.place == THREAD_TLS_DESC ||
			(state->thread.place == THREAD_KEY && !state->thread.offset);
	const struct mapping *libc;
	uint32_t at = 0;

	libc = find_file(as, RUNTIME_FILE_LIBC, &at);
	if (!libc || (state->thread.place == THREAD_KEY && !needs_it)) /* the file has a C library of its own */
		return !needs_it;
	state->thread.libc = libc->file->info.runtime.state.thread.libc;
	if (state->thread.place == THREAD_KEY)
		state->thread.offset = libc->file->info.runtime.state.thread.offset;
	return true;
}

enum chain_trouble chain_state_of(const struct address_space *as, const struct mapping *m, struct chain_state *ret)
{
	*ret = m->file->info.runtime.state;
	if (!runtime_file_has_threads(&m->file->info.runtime))
		return CHAIN_TROUBLE_LAYOUT;
	return add_libc(as, ret) ? CHAIN_TROUBLE_NONE : CHAIN_TROUBLE_LIBC;
}

/* The file of the program that @as runs; NULL: not known. */
static const struct file *find_program(const struct address_space *as, const char *exe_path)
{
	for (uint32_t i = 0; exe_path && i < as->count; i++)
		if (as->maps[i].file && as->maps[i].file->path && !strcmp(exe_path, as->maps[i].file->path))
			return as->maps[i].file;
	return NULL;
}

/* Tells the @state, at bias 0, of a runtime in @file for processes that run @program and are not known yet. 0 or -errno. */
static int tell_program_state(const struct file *program, const struct file *file, struct chain_state state,
			      struct sampler *sampler)
{
	if (file != program) {
		state.debug = program->info.runtime.linked.debug;
		state.dynamic = file->info.runtime.linked.dynamic;
		if (!state.debug || !state.dynamic)
			return -ENOENT;
	}
	state.asid = CHAIN_OF_PROGRAM(program->id);
	return sampler_set_chain(sampler, &state);
}

/* Tells that processes that run @file have @runtimes. */
static void tell_program(const struct file *file, uint32_t runtimes, struct sampler *sampler)
{
	struct program_key key = { .inode = file->key.inode, .dev = file->key.dev_major << 20 | file->key.dev_minor };
	struct program_value value = { .text_vaddr = UINT64_MAX, .file = file->id, .runtimes = runtimes };

	for (uint32_t i = 0; i < file->info.segment_count; i++)
		if (file->info.segments[i].vaddr < value.text_vaddr)
			value.text_vaddr = file->info.segments[i].vaddr;
	(void)sampler_set_program(sampler, &key, &value);
}

/* Tells where threads of a runtime that makes code keep what a walk needs. */
static void tell_code(const struct address_space *as, struct sampler *sampler)
{
	const struct mapping *m;
	uint32_t at = 0;

	_Static_assert((int)CHAIN_OF_BEAM == (int)CHAIN_OF_CODE(CODE_BEAM), "the kernel's half knows the number");
	while ((m = find_file(as, RUNTIME_FILE_CODE, &at))) {
		struct chain_state state = m->file->info.runtime.state;

		if (!state.thread.addr || !add_libc(as, &state))
			continue;
		state.asid = as->asid;
		state.runtime = CHAIN_OF_CODE(m->file->info.runtime.code.id);
		state.thread.addr += m->bias;
		(void)sampler_set_chain(sampler, &state);
	}
}

/* Tells how threads say what they work on. Returns the bits of processes that run @program and are not known yet; *@ret gets
 * those of @as. */
static uint32_t tell_context(const struct address_space *as, const struct file *program, struct sampler *sampler,
			     uint32_t *ret)
{
	for (uint32_t i = 0; i < as->count; i++) {
		const struct file *file = as->maps[i].file;
		struct chain_state state;
		uint32_t of_program = 0;

		if (!file || !file->info.runtime.context.runtime)
			continue;
		state = file->info.runtime.context;
		if (!add_libc(as, &state))
			continue;
		if (program && !tell_program_state(program, file, state, sampler))
			of_program = 1u << CONTEXT_ID;
		state.asid = as->asid;
		state.thread.addr += state.thread.addr ? as->maps[i].bias : 0;
		if (!sampler_set_chain(sampler, &state))
			*ret |= 1u << CONTEXT_ID;
		return of_program;
	}
	return 0;
}

uint32_t chain_states_tell(struct address_space *as, const char *exe_path, struct sampler *sampler)
{
	const struct file *program;
	const struct mapping *m;
	uint32_t at = 0, of_program = 0;

	if (as->chains_told)
		return as->runtimes;
	as->chains_told = true;
	as->runtimes = 0;
	program = find_program(as, exe_path);
	while ((m = find_file(as, RUNTIME_FILE_CHAIN, &at))) {
		struct chain_state state;

		/* another mapping of the file, or another file: of two Pythons the first is told */
		if (as->runtimes & 1u << m->file->info.runtime.id || chain_state_of(as, m, &state))
			continue;
		if (program && !tell_program_state(program, m->file, state, sampler))
			of_program |= 1u << state.runtime;
		state.asid = as->asid;
		state.type += state.type ? m->bias : 0;
		state.global += state.global ? m->bias : 0;
		state.thread.addr += state.thread.addr ? m->bias : 0;
		for (int i = 0; i < CHAIN_DATA; i++)
			state.data[i] += state.data[i] ? m->bias : 0;
		if (!sampler_set_chain(sampler, &state))
			as->runtimes |= 1u << state.runtime;
	}
	tell_code(as, sampler);
	of_program |= tell_context(as, program, sampler, &as->runtimes);
	if (of_program)
		tell_program(program, of_program, sampler);
	return as->runtimes;
}

const struct chain_state *chain_layout(const struct address_space *as, uint32_t id)
{
	for (uint32_t i = 0; i < as->count; i++) {
		const struct file *file = as->maps[i].file;

		if (file && file->info.runtime.id == id && runtime_file_has_threads(&file->info.runtime))
			return &file->info.runtime.state;
	}
	return NULL;
}
