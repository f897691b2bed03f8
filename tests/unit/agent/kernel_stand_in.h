/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel's side of late unwinding: it keeps what the sampler is told, and walks by that and by nothing else. */
#ifndef HEARTH_TESTS_KERNEL_STAND_IN_H
#define HEARTH_TESTS_KERNEL_STAND_IN_H

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "agent/samples/reorder.h"
#include "agent/kernel/sampler.h"
#include "tests/unit/agent/stack_memory.h"

enum { MAX_TOLD = 1024 };

static struct {
	struct mapping_value mappings[MAX_TOLD];
	struct unwind_block blocks[MAX_TOLD];
	uint32_t mapping_cnt, block_cnt;
} told;

int sampler_set_program(struct sampler *s, const struct program_key *key, const struct program_value *value)
{
	(void)s, (void)key, (void)value;
	return 0;
}

int sampler_set_chain(struct sampler *s, struct chain_state *state)
{
	(void)s, (void)state;
	return 0;
}

int sampler_set_mapping(struct sampler *s, struct mapping_value *value)
{
	(void)s;
	assert_true(told.mapping_cnt < MAX_TOLD);
	told.mappings[told.mapping_cnt++] = *value;
	return 0;
}

void sampler_forget_block(struct sampler *s, uint32_t file, uint32_t block)
{
	(void)s, (void)file, (void)block;
}

int sampler_set_capture(struct sampler *s, uint32_t number, const struct capture_class *what)
{
	(void)s, (void)number, (void)what;
	return 0;
}

int sampler_set_block(struct sampler *s, struct unwind_block *block)
{
	(void)s;
	assert_true(told.block_cnt < MAX_TOLD);
	told.blocks[told.block_cnt++] = *block;
	return 0;
}

int sampler_forget_proc(struct sampler *s, uint32_t pid)
{
	(void)s;
	(void)pid;
	return 0;
}

int sampler_set_proc(struct sampler *s, struct proc_value *value)
{
	(void)s, (void)value;
	fail_msg("no process changed");
	return 0;
}

static const struct mapping_value *find_mapping(uint32_t asid, uint64_t addr)
{
	for (uint32_t i = 0; i < told.mapping_cnt; i++) {
		const struct mapping_value *m = &told.mappings[i];

		if (m->asid == asid && addr >> m->shift == m->piece && addr >= m->start && addr < m->end)
			return m;
	}
	return NULL;
}

static uint64_t find_rule(const struct mapping_value *m, uint64_t va)
{
	for (uint32_t i = told.block_cnt; i-- > 0;) { /* what was told last counts */
		const struct unwind_block *b = &told.blocks[i];
		uint32_t off = va % CODE_BLOCK_BYTES;

		if (b->file == m->file && b->block == va / CODE_BLOCK_BYTES && ROW_START(b->rows[0]) <= off && off < b->end)
			return unwind_search(b->rows, b->row_cnt, off);
	}
	return ROW(0, RULE_NONE, 0, 0, 0);
}

struct chain {
	uint64_t pcs[MAX_USER_FRAMES];
	uint64_t sps[MAX_USER_FRAMES], fps[MAX_USER_FRAMES];
	uint32_t count;
	uint32_t end;
};

static void walk_as_kernel(uint32_t asid, const struct pending_sample *s, struct chain *chain)
{
	struct unwind_memory memory = { s->areas[0].data, s->areas[0].addr, s->areas[0].bytes, { 0 } };
	struct unwind_state state = {
		.pc = s->regs->regs[REG_PC], .sp = s->regs->regs[REG_SP], .fp = s->regs->regs[REG_FP], .exact = 1
	};

	for (chain->count = 0; chain->count < MAX_USER_FRAMES;) {
		uint64_t addr = state.pc - !state.exact;
		const struct mapping_value *m = find_mapping(asid, addr);
		uint64_t row;

		chain->sps[chain->count] = state.sp;
		chain->fps[chain->count] = state.fp;
		chain->pcs[chain->count++] = state.pc | (state.exact ? FRAME_EXACT : 0);
		chain->end = END_MISS_MAPPING;
		if (!m || m->kind != MAPPING_ROWS)
			break;
		row = find_rule(m, addr - m->bias);
		if (ROW_RULE(row) == RULE_SIGNAL)
			chain->pcs[chain->count - 1] |= FRAME_EXACT;
		if (unwind_step(&state, row, &memory))
			break;
	}
	if (state.end)
		chain->end = state.end;
}

#endif
