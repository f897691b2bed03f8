/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The parts that all programs share which a sample's program calls before the walk, those of chains
 * (bpf/runtime/chain.bpf.h) and that of contexts (bpf/context/): how a variable of a thread's own is found, and how one
 * program calls the next. BPF programs only; included after the helpers.
 */
#ifndef HEARTH_BPF_RUNTIME_THREAD_H
#define HEARTH_BPF_RUNTIME_THREAD_H

#include "bpf/maps.bpf.h"

#define barrier() asm volatile("" ::: "memory")

static __always_inline int read_word(__u64 addr, __u64 *ret)
{
	return bpf_probe_read_user(ret, sizeof(*ret), (void *)addr) != 0;
}

/* A thread's array of blocks of TLS (the DTV), a module's each: its address stands so far from the thread pointer. glibc,
 * sysdeps/x86_64/nptl/tls.h, sysdeps/aarch64/nptl/tls.h; musl, src/internal/pthread_impl.h. */
#ifdef __TARGET_ARCH_arm64
enum { DTV_OFFSET_GLIBC = 0, DTV_OFFSET_MUSL = -8 };
#else
enum { DTV_OFFSET_GLIBC = 8, DTV_OFFSET_MUSL = 8 };
#endif
enum { MAX_TLS_MODULES = 1 << 16 };

/* The address of the variable of the thread that is at @offset in its block of @module. 0, or 1: it has no such block. */
static __always_inline int find_in_block(__u64 tp, __u32 libc, __u64 module, __u64 offset, __u64 *ret)
{
	__u64 blocks, block;

	if (read_word(tp + (libc == THREAD_MUSL ? DTV_OFFSET_MUSL : DTV_OFFSET_GLIBC), &blocks))
		return 1;
	/* glibc's elements are {block, what to free} */
	if (read_word(blocks + module * (libc == THREAD_MUSL ? 8 : 16), &block) || !block || block == ~0ull)
		return 1;
	*ret = block + offset;
	return 0;
}

/* The address of the variable at @index, {module, offset}, which is what __tls_get_addr is given. 0, or 1: the thread has no
 * block of that module. */
static __always_inline int find_tls(__u64 tp, __u32 libc, __u64 index, __u64 *ret)
{
	__u64 pair[2];

	if (bpf_probe_read_user(pair, sizeof(pair), (void *)index) || !pair[0] || pair[0] > MAX_TLS_MODULES)
		return 1;
	return find_in_block(tp, libc, pair[0], pair[1], ret);
}

enum { LINKED_FILES = 24 }; /* of a process, that are looked at: libraries that a program needs come before those it opens */

/* Where the library is whose dynamic section is at ELF address @dynamic, by the list that the linker keeps for debuggers
 * (link.h): the program has its address at @debug. 0; 1: it is not there, or not yet. */
static __always_inline int find_library(__u64 debug, __u64 dynamic, __u64 *bias)
{
	struct {
		__u64 bias, name, dynamic, next;
	} file; /* struct link_map */
	__u64 at;

	if (read_word(debug, &at) || !at || read_word(at + 8, &at)) /* r_debug.r_map */
		return 1;
	for (int i = 0; i < LINKED_FILES && at; i++) {
		if (bpf_probe_read_user(&file, sizeof(file), (void *)at))
			return 1;
		if (file.dynamic - file.bias == dynamic) {
			*bias = file.bias;
			return 0;
		}
		at = file.next;
	}
	return 1;
}

/*
 * Takes the state of the runtime @id in the sample's address space, with addresses as they are there, into @state: that of
 * the sample before on this CPU, whose asid is @asid (0: nobody's), if it was of the same one, as an asid is never
 * another's. 0, or 1: there is none.
 */
static __always_inline int take_state_of(const struct walk *walk, __u32 id, struct chain_state *state, __u32 *asid)
{
	struct chain_key key = { .asid = walk->chain_asid, .runtime = id };
	volatile struct chain_state *s;
	__u64 bias = walk->chain_bias;
	__u32 seq;

	if (*asid == key.asid)
		return 0;
	*asid = 0;
	s = bpf_map_lookup_elem(&chain_states, &key);
	if (!s)
		return 1;
	seq = s->seq_tail;
	barrier();
	__builtin_memcpy(state, (const void *)s, sizeof(*state));
	barrier();
	if (s->asid != key.asid || s->runtime != id || s->seq_head != seq || bpf_map_lookup_elem(&chain_states, &key) != s)
		return 1;
	if (state->debug && find_library(state->debug + bias, state->dynamic, &bias))
		return 1;
	state->thread.addr += bias;
	if (state->type)
		state->type += bias;
	if (state->global)
		state->global += bias;
	for (int i = 0; i < CHAIN_DATA; i++)
		if (state->data[i])
			state->data[i] += bias;
	if (!(key.asid >> 31)) /* else bias is another one in each process */
		*asid = key.asid;
	return 0;
}

/* Goes on with the next runtime that the sample's process has, then with the walk in the tail-call form. */
static __always_inline void collect_next(void *ctx, const struct scratch *scratch)
{
	for (__u32 i = 0; i < RUNTIME_ID_MAX && scratch->walk.runtimes >> i; i++)
		if (scratch->walk.runtimes >> i & 1)
			bpf_tail_call(ctx, &programs, i);
	bpf_tail_call(ctx, &programs, PROGRAM_WALK);
}

#endif
