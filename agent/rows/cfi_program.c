/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DWARF 5, section 6.4.2, and the "Exception Frames" of the Linux Standard Base. The common kind: version 1, augmentation
 * "zR" with what only exception handling reads (P, L), addresses relative to their place in 4 bytes, a CFA at an offset from
 * a register or that of x86's stubs of .plt, and registers at offsets from the CFA.
 */
#include <dwarf.h>
#include <errno.h>
#include <string.h>

#include "agent/rows/cfi_program.h"
#include "symbols/dwarf/bytes.h"

enum {
	MAX_REMEMBERED = 8,
	RELATIVE_4 = DW_EH_PE_pcrel | DW_EH_PE_sdata4,
	MAX_OFFSET = 1 << 28, /* beyond it libdw says what becomes of it */
};

struct rules {
	bool is_plt; /* the CFA is that of a stub of .plt, cfa_off its number */
	uint64_t cfa_reg;
	int64_t cfa_off;
	int32_t saved[SAVED_MAX];
};

struct machine {
	struct rules now, first, remembered[MAX_REMEMBERED];
	uint32_t depth;
	uint64_t code_align;
	int64_t data_align;
	uint64_t at; /* the address that the rules hold from */
	uint64_t start, end;
	struct row *rows;
	size_t max, count;
};

/* From address @addr to the end of what is loaded. */
static struct dwarf_cursor cursor_at(const struct cfi_bytes *bytes, uint64_t addr)
{
	uint64_t off = addr - bytes->addr;

	return off < bytes->len ? (struct dwarf_cursor){ bytes->data + off, bytes->data + bytes->len }
				: (struct dwarf_cursor){ bytes->data, bytes->data };
}

/* An entry's length field; cuts @c to what it says. */
static bool take_entry(struct dwarf_cursor *c)
{
	uint64_t len;

	if (!dwarf_take(c, 4, &len) || !len || len == UINT32_MAX || len > dwarf_left(c))
		return false;
	c->end = c->at + len;
	return true;
}

/* 0; -ENOENT: not the common kind; -ENOSPC. */
static int emit(struct machine *m, uint64_t to)
{
	uint64_t from = m->at > m->start ? m->at : m->start;
	struct row *row = &m->rows[m->count];

	m->at = to;
	to = to < m->end ? to : m->end;
	if (from >= to)
		return 0;
	if (m->now.cfa_reg >= USER_REGS || m->now.cfa_reg == REG_PC || m->now.cfa_off > MAX_OFFSET ||
	    m->now.cfa_off < -MAX_OFFSET || m->now.saved[SAVED_RA] == ROW_SAME)
		return -ENOENT;
	if (m->count == m->max)
		return -ENOSPC;
	*row = (struct row){ .start = from,
			     .end = to,
			     .cfa = m->now.is_plt ? ROW_CFA_PLT : ROW_CFA_REG,
			     .cfa_reg = (uint8_t)m->now.cfa_reg,
			     .cfa_off = (int32_t)m->now.cfa_off };
	memcpy(row->saved, m->now.saved, sizeof(row->saved));
	m->count++;
	return 0;
}

static int advance(struct machine *m, uint64_t delta)
{
	uint64_t bytes = delta * m->code_align;

	return bytes > UINT32_MAX ? -ENOENT : emit(m, m->at + bytes);
}

/* From now on register @reg is where @place says. Registers that nobody follows do not matter, except the stack pointer. */
static int set_saved(struct machine *m, uint64_t reg, int32_t place)
{
	for (int i = 0; i < SAVED_MAX; i++)
		if (row_saved_regs[i] == reg)
			m->now.saved[i] = place;
	return reg == REG_SP ? -ENOENT : 0;
}

static int set_offset(struct machine *m, uint64_t reg, int64_t factor)
{
	if (factor > MAX_OFFSET / 8 || factor < -MAX_OFFSET / 8)
		return -ENOENT;
	return set_saved(m, reg, (int32_t)(factor * m->data_align));
}

static int restore(struct machine *m, uint64_t reg)
{
	for (int i = 0; i < SAVED_MAX; i++)
		if (row_saved_regs[i] == reg)
			m->now.saved[i] = m->first.saved[i];
	return reg == REG_SP ? -ENOENT : 0;
}

/* The CFA is told by an expression. The one that is known, rsp + 8 + ((rip & 15) >= N) << 3, is how binutils and gold
 * describe x86's stubs of .plt: N is the offset of the instruction that comes after the push. */
static int set_expression(struct machine *m, struct dwarf_cursor *c)
{
	enum { LITERAL = 6 };
	uint8_t plt[] = { DW_OP_breg7, 8,	 DW_OP_breg16, 0,	  DW_OP_lit15, DW_OP_and,
			  0,	       DW_OP_ge, DW_OP_lit3,   DW_OP_shl, DW_OP_plus };
	const uint8_t *bytes;
	uint64_t len;

	if (!dwarf_take_uleb(c, &len) || len != sizeof(plt) || len > dwarf_left(c))
		return -ENOENT;
	bytes = c->at;
	c->at += len;
	if (bytes[LITERAL] < DW_OP_lit0 || bytes[LITERAL] > DW_OP_lit15)
		return -ENOENT;
	plt[LITERAL] = bytes[LITERAL];
	if (memcmp(bytes, plt, sizeof(plt)) != 0)
		return -ENOENT;
	m->now.is_plt = true;
	m->now.cfa_reg = 0; /* as libdw's rows have it */
	m->now.cfa_off = bytes[LITERAL] - DW_OP_lit0;
	return 0;
}

/* Runs an instruction with operands of its own. */
static int run_long(struct machine *m, struct dwarf_cursor *c, uint8_t op)
{
	uint64_t a, b;

	switch (op) {
	case DW_CFA_nop:
		return 0;
	case DW_CFA_advance_loc1:
		return dwarf_take(c, 1, &a) ? advance(m, a) : -ENOENT;
	case DW_CFA_advance_loc2:
		return dwarf_take(c, 2, &a) ? advance(m, a) : -ENOENT;
	case DW_CFA_advance_loc4:
		return dwarf_take(c, 4, &a) ? advance(m, a) : -ENOENT;
	case DW_CFA_offset_extended:
		return dwarf_take_uleb(c, &a) && dwarf_take_uleb(c, &b) ? set_offset(m, a, (int64_t)b) : -ENOENT;
	case DW_CFA_offset_extended_sf:
		return dwarf_take_uleb(c, &a) && dwarf_take_sleb(c, &b) ? set_offset(m, a, (int64_t)b) : -ENOENT;
	case DW_CFA_restore_extended:
		return dwarf_take_uleb(c, &a) ? restore(m, a) : -ENOENT;
	case DW_CFA_def_cfa:
		if (!dwarf_take_uleb(c, &m->now.cfa_reg) || !dwarf_take_uleb(c, &b))
			return -ENOENT;
		m->now.cfa_off = (int64_t)b;
		m->now.is_plt = false;
		return 0;
	case DW_CFA_def_cfa_register:
		return !m->now.is_plt && dwarf_take_uleb(c, &m->now.cfa_reg) ? 0 : -ENOENT;
	case DW_CFA_def_cfa_expression:
		return set_expression(m, c);
	case DW_CFA_def_cfa_offset:
		if (m->now.is_plt || !dwarf_take_uleb(c, &b))
			return -ENOENT;
		m->now.cfa_off = (int64_t)b;
		return 0;
	case DW_CFA_GNU_args_size:
		return dwarf_skip_leb(c) ? 0 : -ENOENT;
	case DW_CFA_remember_state:
		if (m->depth == MAX_REMEMBERED)
			return -ENOENT;
		m->remembered[m->depth++] = m->now;
		return 0;
	case DW_CFA_restore_state:
		if (!m->depth)
			return -ENOENT;
		m->now = m->remembered[--m->depth];
		return 0;
	default:
		return -ENOENT;
	}
}

static int run(struct machine *m, struct dwarf_cursor c)
{
	uint64_t factor;
	int r = 0;

	while (!r && c.at < c.end && m->at < m->end) {
		uint8_t op = *c.at++, low = op & 0x3f;

		switch (op & 0xc0) {
		case DW_CFA_advance_loc:
			r = advance(m, low);
			break;
		case DW_CFA_offset:
			r = dwarf_take_uleb(&c, &factor) ? set_offset(m, low, (int64_t)factor) : -ENOENT;
			break;
		case DW_CFA_restore:
			r = restore(m, low);
			break;
		default:
			r = run_long(m, &c, op);
		}
	}
	return r;
}

/* The augmentation of a CIE, behind its text "zPLR" (some letters may be missing). False: not the common kind. */
static bool take_augmentation(struct dwarf_cursor *c, const char *letters)
{
	uint64_t len, encoding = 0;
	struct dwarf_cursor a;

	if (!dwarf_take_uleb(c, &len) || len > dwarf_left(c))
		return false;
	a = (struct dwarf_cursor){ c->at, c->at + len };
	c->at += len;
	for (letters++; *letters; letters++) {
		uint64_t personality;

		if (*letters == 'R' && !dwarf_take(&a, 1, &encoding))
			return false;
		if (*letters == 'L' && !dwarf_skip(&a, 1))
			return false;
		if (*letters == 'P' &&
		    (!dwarf_take(&a, 1, &personality) || (personality & 15) != DW_EH_PE_sdata4 || !dwarf_skip(&a, 4)))
			return false;
	}
	return encoding == RELATIVE_4;
}

/* Runs the CIE at @addr, which every function that refers to it begins with. */
static int run_common(struct machine *m, const struct cfi_bytes *bytes, uint64_t addr)
{
	struct dwarf_cursor c = cursor_at(bytes, addr);
	uint64_t id, version, align, ra;
	const char *letters;
	int r;

	if (!take_entry(&c) || !dwarf_take(&c, 4, &id) || id || !dwarf_take(&c, 1, &version) || version != 1)
		return -ENOENT;
	letters = (const char *)c.at;
	if (!dwarf_skip_string(&c) || letters[0] != 'z' || strspn(letters + 1, "PLR") != strlen(letters + 1))
		return -ENOENT;
	if (!dwarf_take_uleb(&c, &m->code_align) || !dwarf_take_sleb(&c, &align) || !dwarf_take(&c, 1, &ra) ||
	    ra != REG_RA || (int64_t)align != -8 || !take_augmentation(&c, letters))
		return -ENOENT;
	m->data_align = -8;
	for (int i = 0; i < SAVED_MAX; i++)
		m->now.saved[i] = ROW_SAME;
	m->now.cfa_reg = USER_REGS;
	m->at = 0;
	m->end = UINT64_MAX;
	r = run(m, c);
	m->first = m->now;
	return r ? r : m->at || m->depth ? -ENOENT : 0;
}

int cfi_program_rows(const struct cfi_bytes *bytes, uint64_t entry, uint64_t function, uint64_t start, uint64_t end,
		     struct row *rows, size_t max, size_t *count_ret, uint64_t *stop_ret)
{
	struct machine m = { .rows = rows, .max = max };
	struct dwarf_cursor c = cursor_at(bytes, entry);
	uint64_t common, begin, len, augmentation;
	int r;

	*count_ret = 0;
	if (CPU_HAS_LR || !take_entry(&c) || !dwarf_take(&c, 4, &common) || !common || common > entry - bytes->addr + 4 ||
	    run_common(&m, bytes, entry + 4 - common) || !dwarf_take(&c, 4, &begin) || !dwarf_take(&c, 4, &len) ||
	    !dwarf_take_uleb(&c, &augmentation) || !dwarf_skip(&c, augmentation))
		return -ENOENT;
	if (entry + 8 + (uint64_t)(int64_t)(int32_t)begin != function || start < function)
		return -ENOENT;
	if (start - function >= len)
		return -ENODATA;
	*stop_ret = function + len;
	m.at = function;
	m.start = start;
	m.end = end < *stop_ret ? end : *stop_ret;
	r = run(&m, c);
	if (!r && m.at < m.end)
		r = emit(&m, m.end);
	*count_ret = m.count;
	return r;
}
