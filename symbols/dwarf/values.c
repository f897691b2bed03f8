/* SPDX-License-Identifier: Apache-2.0 */
/* Decodes values of entries: texts, addresses, references, and lists of ranges (DWARF 5, sections 7.5 and 2.17.3). */
#include <dwarf.h>
#include <errno.h>

#include "symbols/dwarf/info.h"

enum { MAX_TEXT_BYTES = 64 << 10 };

static const char *text_at(const struct dwarf_info *info, const uint8_t *at, const uint8_t *end, size_t *len_ret)
{
	size_t left = (size_t)(end - at);
	const uint8_t *nul = memchr(at, 0, left < MAX_TEXT_BYTES ? left : MAX_TEXT_BYTES);

	/* The text is read here and by whoever asked for it. */
	if (!dwarf_spend(info->budget, nul ? (uint64_t)(nul - at) : MAX_TEXT_BYTES) || !nul)
		return NULL;
	*len_ret = (size_t)(nul - at);
	return (const char *)at;
}

static const char *string_at(const struct dwarf_info *info, enum dwarf_section which, uint64_t off, size_t *len_ret)
{
	const struct dwarf_bytes *section = &info->sections[which];

	return off < section->len ? text_at(info, section->data + off, section->data + section->len, len_ret) : NULL;
}

/* Entry @index, of @bytes each, of the table at @base. False: it has no such entry. */
static bool take_indexed(const struct dwarf_bytes *section, uint64_t base, uint64_t index, uint8_t bytes, uint64_t *ret)
{
	struct dwarf_cursor c;

	if (base > section->len || index > section->len / bytes)
		return false;
	c = dwarf_cursor_at(section, base + index * bytes);
	return dwarf_take(&c, bytes, ret);
}

const char *dwarf_string(const struct dwarf_info *info, const struct dwarf_unit *unit, struct dwarf_value value,
			 size_t *len_ret)
{
	const struct dwarf_bytes *inside = &info->sections[DWARF_INFO];
	uint64_t off;

	*len_ret = 0;
	switch (value.form) {
	case DW_FORM_string: /* the value is where it stands */
		return text_at(info, inside->data + value.raw, inside->data + unit->end, len_ret);
	case DW_FORM_strp:
		return string_at(info, DWARF_STR, value.raw, len_ret);
	case DW_FORM_line_strp:
		return string_at(info, DWARF_LINE_STR, value.raw, len_ret);
	case DW_FORM_strp_sup:
	case DW_FORM_GNU_strp_alt:
		return info->common ? string_at(info->common, DWARF_STR, value.raw, len_ret) : NULL;
	case DW_FORM_strx:
	case DW_FORM_strx1:
	case DW_FORM_strx2:
	case DW_FORM_strx3:
	case DW_FORM_strx4:
	case DW_FORM_GNU_str_index:
		return take_indexed(&info->sections[DWARF_STR_OFFSETS], unit->str_offsets_base, value.raw,
				    unit->offset_bytes, &off)
			       ? string_at(info, DWARF_STR, off, len_ret)
			       : NULL;
	default:
		return NULL;
	}
}

static bool indexed_address(const struct dwarf_info *info, const struct dwarf_unit *unit, uint64_t index, uint64_t *ret)
{
	return take_indexed(&info->sections[DWARF_ADDR], unit->addr_base, index, unit->address_bytes, ret);
}

int dwarf_address(const struct dwarf_info *info, const struct dwarf_unit *unit, struct dwarf_value value, uint64_t *ret)
{
	switch (value.form) {
	case DW_FORM_addr:
		*ret = value.raw;
		return 0;
	case DW_FORM_addrx:
	case DW_FORM_addrx1:
	case DW_FORM_addrx2:
	case DW_FORM_addrx3:
	case DW_FORM_addrx4:
	case DW_FORM_GNU_addr_index:
		return indexed_address(info, unit, value.raw, ret) ? 0 : -EBADMSG;
	default:
		return -EBADMSG;
	}
}

bool dwarf_reference(const struct dwarf_unit *unit, struct dwarf_value value, uint64_t *off_ret, bool *in_common_ret)
{
	*in_common_ret = false;
	*off_ret = value.raw;
	switch (value.form) {
	case DW_FORM_ref1:
	case DW_FORM_ref2:
	case DW_FORM_ref4:
	case DW_FORM_ref8:
	case DW_FORM_ref_udata:
		*off_ret = unit->off + value.raw;
		return value.raw < unit->end - unit->off;
	case DW_FORM_ref_addr:
		return true;
	case DW_FORM_GNU_ref_alt:
	case DW_FORM_ref_sup4:
	case DW_FORM_ref_sup8:
		*in_common_ret = true;
		return true;
	default:
		return false;
	}
}

/* --- ranges --- */

struct range_list {
	const struct dwarf_info *info;
	const struct dwarf_unit *unit;
	bool (*fn)(void *arg, uint64_t start, uint64_t end);
	void *arg;
	uint64_t base;
};

/* 0, or 1 when no more are asked for. */
static int emit(const struct range_list *l, uint64_t start, uint64_t end)
{
	return start < end && l->fn(l->arg, start, end);
}

/* The highest address: stands for "a base follows" in old lists, and for code that the linker dropped in new ones. */
static uint64_t highest(const struct dwarf_unit *unit)
{
	return unit->address_bytes == 8 ? UINT64_MAX : UINT32_MAX;
}

/* An entry of .debug_ranges, until version 4: a pair relative to a base, which the pair (all ones, base) changes. */
static int take_old_range(struct range_list *l, struct dwarf_cursor *c)
{
	uint8_t bytes = l->unit->address_bytes;
	uint64_t start, end;

	if (!dwarf_take(c, bytes, &start) || !dwarf_take(c, bytes, &end))
		return -EBADMSG;
	if (!start && !end)
		return 1;
	if (start != highest(l->unit))
		return emit(l, l->base + start, l->base + end);
	l->base = end;
	return 0;
}

/* A pair relative to the base, unless that is of code that is gone. */
static int emit_pair(const struct range_list *l, uint64_t start, uint64_t end)
{
	return l->base == highest(l->unit) ? 0 : emit(l, l->base + start, l->base + end);
}

/* One entry of .debug_rnglists. 0, 1 at the end of the list, -EBADMSG. */
static int take_new_range(struct range_list *l, struct dwarf_cursor *c)
{
	uint8_t bytes = l->unit->address_bytes;
	uint64_t kind, a, b;
	bool is_sound;

	if (!dwarf_take(c, 1, &kind))
		return -EBADMSG;
	switch (kind) {
	case DW_RLE_end_of_list:
		return 1;
	case DW_RLE_base_addressx:
		return dwarf_take_uleb(c, &a) && indexed_address(l->info, l->unit, a, &l->base) ? 0 : -EBADMSG;
	case DW_RLE_base_address:
		return dwarf_take(c, bytes, &l->base) ? 0 : -EBADMSG;
	case DW_RLE_offset_pair:
		return dwarf_take_uleb(c, &a) && dwarf_take_uleb(c, &b) ? emit_pair(l, a, b) : -EBADMSG;
	case DW_RLE_startx_endx:
		is_sound = dwarf_take_uleb(c, &a) && dwarf_take_uleb(c, &b) && indexed_address(l->info, l->unit, a, &a) &&
			   indexed_address(l->info, l->unit, b, &b);
		return is_sound ? emit(l, a, b) : -EBADMSG;
	case DW_RLE_startx_length:
		is_sound = dwarf_take_uleb(c, &a) && dwarf_take_uleb(c, &b) && indexed_address(l->info, l->unit, a, &a);
		return is_sound ? emit(l, a, a + b) : -EBADMSG;
	case DW_RLE_start_end:
		return dwarf_take(c, bytes, &a) && dwarf_take(c, bytes, &b) ? emit(l, a, b) : -EBADMSG;
	case DW_RLE_start_length:
		return dwarf_take(c, bytes, &a) && dwarf_take_uleb(c, &b) ? emit(l, a, a + b) : -EBADMSG;
	default:
		return -EBADMSG;
	}
}

static int listed_ranges(struct range_list *l, struct dwarf_value value)
{
	bool is_new = l->unit->version >= 5;
	const struct dwarf_bytes *section = &l->info->sections[is_new ? DWARF_RNGLISTS : DWARF_RANGES];
	uint64_t off = value.raw;
	struct dwarf_cursor c;
	int r;

	if (value.form == DW_FORM_rnglistx) { /* an index into the offsets that stand at the base */
		if (!take_indexed(section, l->unit->rnglists_base, off, l->unit->offset_bytes, &off))
			return -EBADMSG;
		off += l->unit->rnglists_base;
	} else if (!is_new) {
		off += l->unit->gnu_ranges_base;
	}
	c = dwarf_cursor_at(section, off);
	do {
		const uint8_t *start = c.at;

		r = is_new ? take_new_range(l, &c) : take_old_range(l, &c);
		if (!dwarf_spend(l->info->budget, (uint64_t)(c.at - start)))
			r = -EBADMSG;
	} while (!r);
	return r < 0 ? r : 0;
}

int dwarf_ranges(const struct dwarf_info *info, const struct dwarf_unit *unit, const struct dwarf_die *die,
		 bool (*fn)(void *arg, uint64_t start, uint64_t end), void *arg)
{
	struct range_list l = { info, unit, fn, arg, unit->low_pc };
	const struct dwarf_value *v = die->values;
	uint64_t start, end;

	if (dwarf_has(die, DWARF_AT_RANGE_LIST))
		return listed_ranges(&l, v[DWARF_AT_RANGE_LIST]);
	if (!dwarf_has(die, DWARF_AT_LOW_PC) || !dwarf_has(die, DWARF_AT_HIGH_PC))
		return 0;
	if (dwarf_address(info, unit, v[DWARF_AT_LOW_PC], &start))
		return -EBADMSG;
	if (dwarf_address(info, unit, v[DWARF_AT_HIGH_PC], &end)) /* not an address: a length */
		end = start + v[DWARF_AT_HIGH_PC].raw;
	emit(&l, start, end);
	return 0;
}
