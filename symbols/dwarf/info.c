/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Units and the walk over their entries. The table of units is made when .debug_info is opened, out of their headers alone;
 * a unit's own entry is read when something is asked of it.
 */
#include <dwarf.h>
#include <errno.h>
#include <stdlib.h>

#include "base/search.h"
#include "base/vec.h"
#include "symbols/dwarf/info.h"

enum {
	MAX_UNITS = 1 << 19, /* of one .debug_info: 72 MB of our memory. A browser of 2 GB of DWARF has some ten thousand */
	MAX_DEPTH = 1 << 20,
};

/* --- entries --- */

/* Takes a value: its number, or where in .debug_info its text stands. */
static bool take_value(const struct dwarf_info *info, const struct dwarf_unit *unit, struct dwarf_cursor *c,
		       const struct dwarf_op *op, struct dwarf_value *value)
{
	uint64_t bytes, form;
	struct dwarf_op actual;

	value->form = op->form;
	value->raw = 0;
	switch ((enum dwarf_op_kind)op->kind) {
	case DWARF_OP_FIXED:
		return op->bytes <= 8 ? dwarf_take(c, op->bytes, &value->raw) : dwarf_skip(c, op->bytes);
	case DWARF_OP_LEB:
		return op->form == DW_FORM_sdata ? dwarf_take_sleb(c, &value->raw) : dwarf_take_uleb(c, &value->raw);
	case DWARF_OP_STRING:
		value->raw = (uint64_t)(c->at - info->sections[DWARF_INFO].data);
		return dwarf_skip_string(c);
	case DWARF_OP_BLOCK1:
		return dwarf_take(c, 1, &bytes) && dwarf_skip(c, bytes);
	case DWARF_OP_BLOCK2:
		return dwarf_take(c, 2, &bytes) && dwarf_skip(c, bytes);
	case DWARF_OP_BLOCK4:
		return dwarf_take(c, 4, &bytes) && dwarf_skip(c, bytes);
	case DWARF_OP_BLOCK:
		return dwarf_take_uleb(c, &bytes) && dwarf_skip(c, bytes);
	case DWARF_OP_CONST:
		value->raw = op->number;
		return true;
	case DWARF_OP_INDIRECT:
		return dwarf_take_uleb(c, &form) && dwarf_form_op(unit, form, &actual) && actual.kind != DWARF_OP_INDIRECT &&
		       actual.kind != DWARF_OP_CONST && take_value(info, unit, c, &actual, value);
	}
	return false;
}

static bool skip_value(const struct dwarf_info *info, const struct dwarf_unit *unit, struct dwarf_cursor *c,
		       const struct dwarf_op *op)
{
	struct dwarf_value ignored;

	if (op->kind == DWARF_OP_FIXED)
		return dwarf_skip(c, op->bytes);
	if (op->kind == DWARF_OP_LEB)
		return dwarf_skip_leb(c);
	return take_value(info, unit, c, op, &ignored);
}

static bool take_attributes(const struct dwarf_info *info, const struct dwarf_unit *unit, const struct dwarf_abbrevs *t,
			    const struct dwarf_abbrev *abbrev, struct dwarf_cursor *c, struct dwarf_die *die)
{
	die->tag = abbrev->tag;
	die->has_children = abbrev->has_children;
	die->present = 0;
	for (uint32_t i = 0; i < abbrev->count; i++) {
		const struct dwarf_op *op = &t->ops[abbrev->first + i];

		if (op->attribute == DWARF_NOT_WANTED) {
			if (!skip_value(info, unit, c, op))
				return false;
			continue;
		}
		if (!take_value(info, unit, c, op, &die->values[op->attribute]))
			return false;
		die->present |= 1u << op->attribute;
	}
	return true;
}

static bool skip_attributes(const struct dwarf_info *info, const struct dwarf_unit *unit, const struct dwarf_abbrevs *t,
			    const struct dwarf_abbrev *abbrev, struct dwarf_cursor *c)
{
	if (abbrev->is_fixed)
		return dwarf_skip(c, abbrev->bytes);
	for (uint32_t i = 0; i < abbrev->count; i++)
		if (!skip_value(info, unit, c, &t->ops[abbrev->first + i]))
			return false;
	return true;
}

static const struct dwarf_abbrev *find_code(const struct dwarf_abbrevs *t, uint64_t code)
{
	uint32_t i;

	if (t->is_dense)
		return code <= t->count ? &t->abbrevs[code - 1] : NULL;
	i = search_first(at, t->count, t->abbrevs[at].code >= code);
	return i < t->count && t->abbrevs[i].code == code ? &t->abbrevs[i] : NULL;
}

/* The abbreviation of the entry at @c; NULL in *@ret for one that ends a list of children. */
static inline bool take_abbrev(const struct dwarf_abbrevs *t, struct dwarf_cursor *c, const struct dwarf_abbrev **ret)
{
	uint64_t code;

	*ret = NULL;
	if (c->at < c->end && *c->at < 0x80)
		code = *c->at++;
	else if (!dwarf_take_uleb(c, &code))
		return false;
	if (!code)
		return true;
	*ret = find_code(t, code);
	return *ret != NULL;
}

int dwarf_die_read(struct dwarf_info *info, const struct dwarf_unit *unit, uint64_t off, struct dwarf_die *die)
{
	const uint8_t *data = info->sections[DWARF_INFO].data;
	struct dwarf_cursor c = { data + off, data + unit->end };
	const struct dwarf_abbrev *abbrev;
	struct dwarf_abbrevs *t;
	int error;

	if (off < unit->first || off >= unit->end)
		return -EBADMSG;
	error = dwarf_abbrevs_get(info, unit, &t);
	if (error)
		return error;
	die->off = off;
	die->depth = 0;
	if (!take_abbrev(t, &c, &abbrev) || !abbrev || !take_attributes(info, unit, t, abbrev, &c, die))
		return -EBADMSG;
	return dwarf_spend(info->budget, (uint64_t)(c.at - data) - off) ? 0 : -EBADMSG;
}

static bool is_shown(enum dwarf_walk what, uint16_t tag, bool has_children)
{
	switch (tag) {
	case DW_TAG_subprogram:
		return true;
	case DW_TAG_inlined_subroutine:
		return what == DWARF_WALK_FUNCTIONS;
	default:
		return what == DWARF_WALK_SCOPES && has_children && dwarf_is_scope(tag);
	}
}

static int walk(struct dwarf_info *info, const struct dwarf_unit *unit, const struct dwarf_abbrevs *t, enum dwarf_walk what,
		int (*fn)(void *arg, const struct dwarf_die *die), void *arg)
{
	const uint8_t *data = info->sections[DWARF_INFO].data;
	struct dwarf_cursor c = { data + unit->first, data + unit->end };
	uint32_t depth = 0, quiet_depth = UINT32_MAX; /* below it nobody asks for inlined calls */
	uint32_t ended_depth = UINT32_MAX; /* the least depth of an entry whose children ended since the last call of @fn */
	struct dwarf_die die;
	int r;

	while (c.at < c.end) {
		const struct dwarf_abbrev *abbrev;

		die.off = (uint64_t)(c.at - data);
		if (!take_abbrev(t, &c, &abbrev))
			return -EBADMSG;
		if (!abbrev) {
			if (depth <= 1) /* the children of the unit end here; padding may follow */
				return 0;
			if (--depth < ended_depth)
				ended_depth = depth;
			continue;
		}
		if (depth <= quiet_depth)
			quiet_depth = UINT32_MAX;
		if (!depth || !is_shown(what, abbrev->tag, abbrev->has_children) ||
		    (quiet_depth != UINT32_MAX && abbrev->tag == DW_TAG_inlined_subroutine)) {
			if (!skip_attributes(info, unit, t, abbrev, &c))
				return -EBADMSG;
		} else {
			die.depth = depth;
			die.ended_depth = ended_depth;
			ended_depth = UINT32_MAX;
			if (!take_attributes(info, unit, t, abbrev, &c, &die))
				return -EBADMSG;
			r = fn(arg, &die);
			if (r < 0)
				return r;
			if (r > 0 && quiet_depth == UINT32_MAX)
				quiet_depth = depth;
			else if (!r && abbrev->tag == DW_TAG_subprogram)
				quiet_depth = UINT32_MAX;
		}
		depth += abbrev->has_children;
		if (!depth || depth > MAX_DEPTH)
			return depth ? -EBADMSG : 0;
	}
	return 0;
}

int dwarf_unit_walk(struct dwarf_info *info, const struct dwarf_unit *unit, enum dwarf_walk what,
		    int (*fn)(void *arg, const struct dwarf_die *die), void *arg)
{
	struct dwarf_abbrevs *t;
	int error = dwarf_abbrevs_get(info, unit, &t);

	if (error)
		return error;
	if (!dwarf_spend(info->budget, unit->end - unit->first))
		return -EBADMSG;
	t->pin_cnt++;
	error = walk(info, unit, t, what, fn, arg);
	t->pin_cnt--;
	return error;
}

/* --- units --- */

/* The header of the unit at @off; unit->end is set as soon as the next one's place is known. */
static bool take_header(struct dwarf_cursor *c, struct dwarf_unit *u, uint64_t off)
{
	uint64_t len, value, type = DW_UT_compile, bytes;

	u->offset_bytes = 4;
	if (!dwarf_take(c, 4, &len))
		return false;
	if (len == 0xffffffff) {
		u->offset_bytes = 8;
		if (!dwarf_take(c, 8, &len))
			return false;
	}
	if (len > dwarf_left(c))
		return false;
	c->end = c->at + len;
	u->end = off + (u->offset_bytes == 8 ? 12 : 4) + len;
	if (!dwarf_take(c, 2, &value) || value < 2 || value > 5)
		return false;
	u->version = (uint16_t)value;
	if (u->version == 5 &&
	    (!dwarf_take(c, 1, &type) || !dwarf_take(c, 1, &bytes) || !dwarf_take(c, u->offset_bytes, &u->abbrev)))
		return false;
	if (u->version < 5 && (!dwarf_take(c, u->offset_bytes, &u->abbrev) || !dwarf_take(c, 1, &bytes)))
		return false;
	u->type = (uint8_t)type;
	u->address_bytes = (uint8_t)bytes;
	if ((type == DW_UT_skeleton || type == DW_UT_split_compile) && !dwarf_take(c, 8, &u->dwo_id))
		return false;
	if ((type == DW_UT_type || type == DW_UT_split_type) && !dwarf_skip(c, 8u + u->offset_bytes))
		return false;
	return bytes == 4 || bytes == 8;
}

static int add_unit(struct dwarf_info *info, size_t *cap, const struct dwarf_unit *unit)
{
	if (vec_reach(&info->units, cap, info->unit_cnt))
		return -ENOMEM;
	info->units[info->unit_cnt++] = *unit;
	return 0;
}

int dwarf_info_open(struct dwarf_info *info, const struct dwarf_bytes sections[DWARF_SECTION_MAX],
		    struct dwarf_budget *budget)
{
	const struct dwarf_bytes *bytes = &sections[DWARF_INFO];
	size_t cap = 0;

	*info = (struct dwarf_info){ .sections = sections, .budget = budget };
	for (uint64_t off = 0; off < bytes->len && info->unit_cnt < MAX_UNITS;) {
		struct dwarf_cursor c = dwarf_cursor_at(bytes, off);
		struct dwarf_unit unit = { .off = off, .end = off, .stmt_list = UINT64_MAX };

		if (take_header(&c, &unit, off)) {
			unit.first = (uint64_t)(c.at - bytes->data);
			if (add_unit(info, &cap, &unit))
				return -ENOMEM;
		} else {
			info->is_broken = true;
		}
		if (unit.end <= off)
			return 0;
		off = unit.end;
	}
	info->is_broken |= info->unit_cnt == MAX_UNITS;
	return 0;
}

void dwarf_info_close(struct dwarf_info *info)
{
	for (size_t i = 0; i < DWARF_ABBREV_SLOTS; i++)
		dwarf_abbrevs_free(info->abbrevs[i]);
	free(info->units);
	*info = (struct dwarf_info){ 0 };
}

struct dwarf_unit *dwarf_unit_at(struct dwarf_info *info, uint64_t off)
{
	size_t behind = search_first(at, info->unit_cnt, info->units[at].off > off);

	return behind && off >= info->units[behind - 1].first && off < info->units[behind - 1].end ? &info->units[behind - 1]
												   : NULL;
}

/* The number @die has under @attribute, or @otherwise. */
static uint64_t number(const struct dwarf_die *die, enum dwarf_attribute attribute, uint64_t otherwise)
{
	return dwarf_has(die, attribute) ? die->values[attribute].raw : otherwise;
}

static struct dwarf_value value_of(const struct dwarf_die *die, enum dwarf_attribute attribute)
{
	return dwarf_has(die, attribute) ? die->values[attribute] : (struct dwarf_value){ 0 };
}

int dwarf_unit_read(struct dwarf_info *info, struct dwarf_unit *unit, struct dwarf_die *die)
{
	bool is_new = unit->version >= 5;
	int error = dwarf_die_read(info, unit, unit->first, die);

	unit->is_broken = error != 0;
	if (error)
		return error;
	unit->is_read = true;
	/* A table without a base of its own is the section's first: it starts behind that one's header (DWARF 5,
	 * section 7.26). */
	unit->str_offsets_base = number(die, DWARF_AT_STR_OFFSETS_BASE, !is_new ? 0 : unit->offset_bytes == 8 ? 16 : 8);
	unit->addr_base = number(die, DWARF_AT_ADDR_BASE, is_new ? 8 : 0);
	unit->rnglists_base = number(die, DWARF_AT_RNGLISTS_BASE, unit->offset_bytes == 8 ? 20 : 12);
	unit->stmt_list = number(die, DWARF_AT_STMT_LIST, UINT64_MAX);
	unit->dwo_id = number(die, DWARF_AT_DWO_ID, unit->dwo_id);
	if (!dwarf_has(die, DWARF_AT_LOW_PC) || dwarf_address(info, unit, die->values[DWARF_AT_LOW_PC], &unit->low_pc))
		unit->low_pc = 0;
	unit->comp_dir = value_of(die, DWARF_AT_COMP_DIR);
	unit->dwo_name = value_of(die, DWARF_AT_DWO_NAME);
	return 0;
}
