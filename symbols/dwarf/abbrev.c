/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An abbreviation becomes a few operations: skip so many bytes, take a value, skip something whose length stands in it. The
 * tables used last are kept: units often share theirs, and references lead back and forth.
 */
#include <dwarf.h>
#include <errno.h>
#include <stdlib.h>

#include "base/vec.h"
#include "symbols/dwarf/info.h"

/* Limits of one table. A table of gcc's or LLVM's has some hundred abbreviations of some ten attributes. */
enum { MAX_ABBREVS = 1 << 18, MAX_OPS = 1 << 20, MAX_RUN_BYTES = 1 << 24 };

/* Bytes of a value of @form, -1 when they vary. */
static int form_bytes(const struct dwarf_unit *unit, uint64_t form)
{
	switch (form) {
	case DW_FORM_flag_present:
		return 0;
	case DW_FORM_data1:
	case DW_FORM_ref1:
	case DW_FORM_flag:
	case DW_FORM_strx1:
	case DW_FORM_addrx1:
		return 1;
	case DW_FORM_data2:
	case DW_FORM_ref2:
	case DW_FORM_strx2:
	case DW_FORM_addrx2:
		return 2;
	case DW_FORM_strx3:
	case DW_FORM_addrx3:
		return 3;
	case DW_FORM_data4:
	case DW_FORM_ref4:
	case DW_FORM_strx4:
	case DW_FORM_addrx4:
	case DW_FORM_ref_sup4:
		return 4;
	case DW_FORM_data8:
	case DW_FORM_ref8:
	case DW_FORM_ref_sig8:
	case DW_FORM_ref_sup8:
		return 8;
	case DW_FORM_data16:
		return 16;
	case DW_FORM_addr:
		return unit->address_bytes;
	case DW_FORM_ref_addr:
		return unit->version < 3 ? unit->address_bytes : unit->offset_bytes;
	case DW_FORM_strp:
	case DW_FORM_sec_offset:
	case DW_FORM_line_strp:
	case DW_FORM_strp_sup:
	case DW_FORM_GNU_ref_alt:
	case DW_FORM_GNU_strp_alt:
		return unit->offset_bytes;
	default:
		return -1;
	}
}

bool dwarf_form_op(const struct dwarf_unit *unit, uint64_t form, struct dwarf_op *op)
{
	int bytes = form_bytes(unit, form);

	*op = (struct dwarf_op){ .kind = DWARF_OP_FIXED, .attribute = DWARF_NOT_WANTED, .form = (uint16_t)form };
	if (bytes >= 0) {
		op->bytes = (uint32_t)bytes;
		return true;
	}
	switch (form) {
	case DW_FORM_udata:
	case DW_FORM_sdata:
	case DW_FORM_ref_udata:
	case DW_FORM_strx:
	case DW_FORM_addrx:
	case DW_FORM_loclistx:
	case DW_FORM_rnglistx:
	case DW_FORM_GNU_addr_index:
	case DW_FORM_GNU_str_index:
		op->kind = DWARF_OP_LEB;
		return true;
	case DW_FORM_string:
		op->kind = DWARF_OP_STRING;
		return true;
	case DW_FORM_block1:
		op->kind = DWARF_OP_BLOCK1;
		return true;
	case DW_FORM_block2:
		op->kind = DWARF_OP_BLOCK2;
		return true;
	case DW_FORM_block4:
		op->kind = DWARF_OP_BLOCK4;
		return true;
	case DW_FORM_block:
	case DW_FORM_exprloc:
		op->kind = DWARF_OP_BLOCK;
		return true;
	case DW_FORM_indirect:
		op->kind = DWARF_OP_INDIRECT;
		return true;
	case DW_FORM_implicit_const:
		op->kind = DWARF_OP_CONST;
		return true;
	default:
		return false;
	}
}

bool dwarf_is_scope(uint64_t tag)
{
	switch (tag) {
	case DW_TAG_namespace:
	case DW_TAG_module:
	case DW_TAG_class_type:
	case DW_TAG_structure_type:
	case DW_TAG_union_type:
	case DW_TAG_interface_type:
	case DW_TAG_enumeration_type: /* Rust's have functions */
		return true;
	default:
		return false;
	}
}

/* Whether anything is read of entries with @tag. */
static bool is_tag_wanted(uint64_t tag)
{
	switch (tag) {
	case DW_TAG_compile_unit:
	case DW_TAG_partial_unit:
	case DW_TAG_skeleton_unit:
	case DW_TAG_subprogram:
	case DW_TAG_inlined_subroutine:
		return true;
	default:
		return dwarf_is_scope(tag);
	}
}

static uint8_t wanted_attribute(uint64_t tag, uint64_t name)
{
	if (!is_tag_wanted(tag))
		return DWARF_NOT_WANTED;
	switch (name) {
#define X(ours, dwarf_name) \
	case dwarf_name:    \
		return DWARF_AT_##ours;
		DWARF_ATTRIBUTES(X)
#undef X
	case DW_AT_MIPS_linkage_name:
		return DWARF_AT_LINKAGE_NAME;
	case DW_AT_GNU_dwo_name:
		return DWARF_AT_DWO_NAME;
	case DW_AT_GNU_addr_base:
		return DWARF_AT_ADDR_BASE;
	default:
		return DWARF_NOT_WANTED;
	}
}

static int add_op(struct dwarf_abbrevs *t, struct dwarf_abbrev *abbrev, const struct dwarf_op *op)
{
	struct dwarf_op *last = abbrev->count ? &t->ops[t->op_cnt - 1] : NULL;

	if (op->kind == DWARF_OP_CONST && op->attribute == DWARF_NOT_WANTED)
		return 0;
	if (op->kind == DWARF_OP_FIXED && op->attribute == DWARF_NOT_WANTED && last && last->kind == DWARF_OP_FIXED &&
	    last->attribute == DWARF_NOT_WANTED && last->bytes < MAX_RUN_BYTES) {
		last->bytes += op->bytes;
		return 0;
	}
	if (t->op_cnt == MAX_OPS)
		return -EBADMSG;
	if (vec_reach(&t->ops, &t->op_cap, t->op_cnt))
		return -ENOMEM;
	t->ops[t->op_cnt++] = *op;
	abbrev->count++;
	return 0;
}

/* The attributes of one abbreviation. */
static int compile_abbrev(struct dwarf_abbrevs *t, const struct dwarf_unit *unit, struct dwarf_cursor *c,
			  struct dwarf_abbrev *abbrev)
{
	const struct dwarf_op *only;
	uint64_t name, form;

	abbrev->first = t->op_cnt;
	for (;;) {
		struct dwarf_op op;
		int error;

		if (!dwarf_take_uleb(c, &name) || !dwarf_take_uleb(c, &form))
			return -EBADMSG;
		if (!name && !form)
			break;
		if (!dwarf_form_op(unit, form, &op))
			return -EBADMSG;
		if (op.kind == DWARF_OP_CONST && !dwarf_take_sleb(c, &op.number))
			return -EBADMSG;
		op.attribute = wanted_attribute(abbrev->tag, name);
		error = add_op(t, abbrev, &op);
		if (error)
			return error;
	}
	only = abbrev->count == 1 ? &t->ops[abbrev->first] : NULL;
	abbrev->is_fixed = !abbrev->count || (only && only->kind == DWARF_OP_FIXED);
	abbrev->bytes = only && abbrev->is_fixed ? only->bytes : 0;
	return 0;
}

static struct dwarf_abbrev *add_abbrev(struct dwarf_abbrevs *t)
{
	if (t->count == MAX_ABBREVS || vec_reach(&t->abbrevs, &t->cap, t->count))
		return NULL;
	return &t->abbrevs[t->count++];
}

static int compare_codes(const void *a, const void *b)
{
	const struct dwarf_abbrev *x = a, *y = b;

	return x->code < y->code ? -1 : x->code > y->code;
}

static int load(struct dwarf_abbrevs *t, const struct dwarf_info *info, const struct dwarf_unit *unit)
{
	struct dwarf_cursor c = dwarf_cursor_at(&info->sections[DWARF_ABBREV], unit->abbrev);
	const uint8_t *start = c.at;

	t->is_dense = true;
	for (;;) {
		uint64_t code, tag, children;
		struct dwarf_abbrev *abbrev;
		int error;

		if (!dwarf_take_uleb(&c, &code))
			return -EBADMSG;
		if (!code)
			break;
		if (!dwarf_take_uleb(&c, &tag) || !dwarf_take(&c, 1, &children))
			return -EBADMSG;
		abbrev = add_abbrev(t);
		if (!abbrev)
			return t->count == MAX_ABBREVS ? -EBADMSG : -ENOMEM;
		*abbrev = (struct dwarf_abbrev){ .code = code,
						 .tag = tag < UINT16_MAX ? (uint16_t)tag : UINT16_MAX,
						 .has_children = children };
		t->is_dense &= code == t->count;
		error = compile_abbrev(t, unit, &c, abbrev);
		if (error)
			return error;
	}
	if (!t->is_dense)
		qsort(t->abbrevs, t->count, sizeof(*t->abbrevs), compare_codes);
	/* Sorting and allocating cost more than reading. */
	return dwarf_spend(info->budget, 64 + 4 * (uint64_t)(c.at - start)) ? 0 : -EBADMSG;
}

void dwarf_abbrevs_free(struct dwarf_abbrevs *t)
{
	if (!t)
		return;
	free(t->abbrevs);
	free(t->ops);
	free(t);
}

static bool is_table_of(const struct dwarf_abbrevs *t, const struct dwarf_unit *unit)
{
	return t && t->off == unit->abbrev && t->version == unit->version && t->address_bytes == unit->address_bytes &&
	       t->offset_bytes == unit->offset_bytes;
}

int dwarf_abbrevs_get(struct dwarf_info *info, const struct dwarf_unit *unit, struct dwarf_abbrevs **ret)
{
	size_t slot = (unit->abbrev * 0x9e3779b97f4a7c15ull) >> 56;
	struct dwarf_abbrevs *t;
	int error;

	/* At most two are pinned: two walks may be under way, one within the other. */
	while (info->abbrevs[slot] && !is_table_of(info->abbrevs[slot], unit) && info->abbrevs[slot]->pin_cnt)
		slot = (slot + 1) % DWARF_ABBREV_SLOTS;
	if (is_table_of(info->abbrevs[slot], unit)) {
		*ret = info->abbrevs[slot];
		return 0;
	}
	t = calloc(1, sizeof(*t));
	if (!t)
		return -ENOMEM;
	t->off = unit->abbrev;
	t->version = unit->version;
	t->address_bytes = unit->address_bytes;
	t->offset_bytes = unit->offset_bytes;
	error = load(t, info, unit);
	if (error) {
		dwarf_abbrevs_free(t);
		return error;
	}
	dwarf_abbrevs_free(info->abbrevs[slot]);
	info->abbrevs[slot] = *ret = t;
	return 0;
}
