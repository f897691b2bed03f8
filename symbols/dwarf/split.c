/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A split unit is read like any other, over sections that are put together for it: its own from the .dwo file or its part of
 * the package, the addresses (and until version 4 the ranges) from the program. The skeleton says what the unit lacks, where
 * its tables start and what its ranges count from.
 */
#include "symbols/dwarf/split.h"

#include <dwarf.h>
#include <errno.h>

/* The sections in the columns of a package's index, by the columns' numbers there (DWARF 5, table 7.1; GNU's version 2: gcc
 * wiki, "DebugFissionDWP"). Sections that are not read: DWARF_SECTION_MAX. */
enum { MAX_COLUMNS = 9, KINDS = 9 };
static const uint8_t kinds_2[KINDS] = { [0] = DWARF_SECTION_MAX, [1] = DWARF_INFO,	  [2] = DWARF_SECTION_MAX,
					[3] = DWARF_ABBREV,	 [4] = DWARF_SECTION_MAX, [5] = DWARF_SECTION_MAX,
					[6] = DWARF_STR_OFFSETS, [7] = DWARF_SECTION_MAX, [8] = DWARF_SECTION_MAX };
static const uint8_t kinds_5[KINDS] = { [0] = DWARF_SECTION_MAX, [1] = DWARF_INFO,	  [2] = DWARF_SECTION_MAX,
					[3] = DWARF_ABBREV,	 [4] = DWARF_SECTION_MAX, [5] = DWARF_SECTION_MAX,
					[6] = DWARF_STR_OFFSETS, [7] = DWARF_SECTION_MAX, [8] = DWARF_RNGLISTS };

void dwarf_split_init(struct dwarf_split *s, const struct symbol_files *files)
{
	*s = (struct dwarf_split){ .files = files };
}

void dwarf_split_fini(struct dwarf_split *s)
{
	dwarf_file_close(&s->package);
	*s = (struct dwarf_split){ 0 };
}

bool dwarf_is_skeleton(const struct dwarf_unit *unit)
{
	return unit->dwo_name.form && (unit->type == DW_UT_skeleton || (unit->version < 5 && unit->type == DW_UT_compile));
}

/* --- a package --- */

struct index {
	uint64_t version, column_cnt, unit_cnt, slot_cnt;
	struct dwarf_bytes bytes;
	uint64_t rows, columns, offsets, sizes; /* where its tables start */
};

static bool number_at(const struct dwarf_bytes *bytes, uint64_t off, unsigned size, uint64_t *ret)
{
	struct dwarf_cursor c = dwarf_cursor_at(bytes, off);

	return dwarf_take(&c, size, ret);
}

static bool open_index(struct index *x, const struct dwarf_bytes *bytes)
{
	struct dwarf_cursor c = dwarf_cursor_at(bytes, 0);

	x->bytes = *bytes;
	/* Version 5 is a number of two bytes with two of padding behind it. */
	if (!dwarf_take(&c, 4, &x->version) || (x->version != 2 && x->version != 5) || !dwarf_take(&c, 4, &x->column_cnt) ||
	    !dwarf_take(&c, 4, &x->unit_cnt) || !dwarf_take(&c, 4, &x->slot_cnt))
		return false;
	if (x->column_cnt > MAX_COLUMNS || !x->slot_cnt || (x->slot_cnt & (x->slot_cnt - 1)))
		return false;
	x->rows = 16 + 8 * x->slot_cnt;
	x->columns = x->rows + 4 * x->slot_cnt;
	x->offsets = x->columns + 4 * x->column_cnt;
	x->sizes = x->offsets + 4 * x->column_cnt * x->unit_cnt;
	return x->sizes <= bytes->len;
}

/* The row of the unit @id, from 0 on. */
static bool find_row(const struct index *x, uint64_t id, uint64_t *ret)
{
	uint64_t mask = x->slot_cnt - 1, slot = id & mask, step = ((id >> 32) & mask) | 1, found, row;

	for (uint64_t i = 0; i < x->slot_cnt && i < 4096; i++, slot = (slot + step) & mask) {
		if (!number_at(&x->bytes, 16 + 8 * slot, 8, &found) || !number_at(&x->bytes, x->rows + 4 * slot, 4, &row) ||
		    !row)
			return false;
		if (found == id) {
			*ret = row - 1;
			return row <= x->unit_cnt;
		}
	}
	return false;
}

/* Narrows the sections of the package down to the parts of the unit @id. 0, -ENOENT or -EBADMSG. */
static int take_parts(struct dwarf_split *s, uint64_t id)
{
	const struct dwarf_file *p = &s->package;
	struct index x;
	uint64_t row, kind, off, bytes;

	if (!open_index(&x, &p->sections[DWARF_CU_INDEX]))
		return -EBADMSG;
	if (!find_row(&x, id, &row))
		return -ENOENT;
	memcpy(s->sections, p->sections, sizeof(s->sections));
	s->sections[DWARF_INFO] = DWARF_NO_BYTES;
	for (uint64_t i = 0; i < x.column_cnt; i++) {
		uint64_t cell = 4 * (row * x.column_cnt + i);
		uint8_t which;

		if (!number_at(&x.bytes, x.columns + 4 * i, 4, &kind) || !number_at(&x.bytes, x.offsets + cell, 4, &off) ||
		    !number_at(&x.bytes, x.sizes + cell, 4, &bytes))
			return -EBADMSG;
		which = kind >= KINDS ? DWARF_SECTION_MAX : x.version == 2 ? kinds_2[kind] : kinds_5[kind];
		if (which == DWARF_SECTION_MAX)
			continue;
		if (off > p->sections[which].len || bytes > p->sections[which].len - off)
			return -EBADMSG;
		s->sections[which] = (struct dwarf_bytes){ p->sections[which].data + off, bytes };
	}
	return 0;
}

static int open_package(struct dwarf_split *s, uint64_t id)
{
	if (!s->is_package_tried) {
		int error = dwarf_file_open(&s->package, &s->files->package, true);

		s->is_package_tried = true;
		if (error == -ENOMEM)
			return error;
	}
	return s->package.sections[DWARF_CU_INDEX].len ? take_parts(s, id) : -ENOENT;
}

/* --- a file --- */

static int open_file(struct dwarf_split *s, const struct dwarf_info *info, const struct dwarf_unit *unit)
{
	const struct symbol_opener *opener = s->files->split;
	size_t len;
	const char *dir = dwarf_string(info, unit, unit->comp_dir, &len);
	const char *name = dwarf_string(info, unit, unit->dwo_name, &len);
	int error;

	if (!opener || !name)
		return -ENOENT;
	error = opener->open(opener->arg, dir ? dir : "", name, &s->image);
	if (error)
		return error == -ENOMEM ? error : -ENOENT;
	error = dwarf_file_open(&s->file, &s->image, true);
	if (error)
		return error == -ENOMEM ? error : -EBADMSG;
	memcpy(s->sections, s->file.sections, sizeof(s->sections));
	return 0;
}

/* --- a unit --- */

/* The unit that belongs to the skeleton: by its id, not by its place. 0, -ENOENT, -ENOMEM. */
static int find_unit(struct dwarf_split *s, uint64_t id, struct dwarf_unit **ret)
{
	for (size_t i = 0; i < s->info.unit_cnt; i++) {
		struct dwarf_unit *unit = &s->info.units[i];
		struct dwarf_die die;

		if (unit->type != DW_UT_split_compile && unit->type != DW_UT_compile)
			continue;
		if (dwarf_unit_read(&s->info, unit, &die) == -ENOMEM)
			return -ENOMEM;
		if (unit->is_read && unit->dwo_id == id) {
			*ret = unit;
			return 0;
		}
	}
	return -ENOENT;
}

/* The budget counted the program's own sections alone. */
static int add_budget(struct dwarf_split *s, struct dwarf_budget *budget)
{
	uint64_t bytes = 0;

	for (int i = 0; i < DWARF_SECTION_MAX; i++)
		bytes += s->file.sections[i].len;
	if (s->read_bytes + bytes > DWARF_SPLIT_MAX_BYTES)
		return -EBADMSG;
	s->read_bytes += bytes;
	budget->left += DWARF_BUDGET_TIMES * (s->sections[DWARF_INFO].len + s->sections[DWARF_ABBREV].len);
	return 0;
}

int dwarf_split_open_unit(struct dwarf_split *s, const struct dwarf_info *info, const struct dwarf_unit *unit,
			  const struct dwarf_die *die, struct dwarf_unit **ret)
{
	int error = s->files->package.data ? open_package(s, unit->dwo_id) : -ENOENT;

	if (error == -ENOENT)
		error = open_file(s, info, unit);
	if (error)
		return error;
	s->sections[DWARF_ADDR] = info->sections[DWARF_ADDR];
	s->sections[DWARF_RANGES] = info->sections[DWARF_RANGES];
	error = add_budget(s, info->budget);
	if (!error)
		error = dwarf_info_open(&s->info, s->sections, info->budget);
	if (!error)
		error = find_unit(s, unit->dwo_id, ret);
	if (error)
		return error;
	(*ret)->addr_base = unit->addr_base;
	(*ret)->low_pc = unit->low_pc;
	if (dwarf_has(die, DWARF_AT_GNU_RANGES_BASE))
		(*ret)->gnu_ranges_base = die->values[DWARF_AT_GNU_RANGES_BASE].raw;
	return 0;
}

void dwarf_split_close_unit(struct dwarf_split *s)
{
	dwarf_info_close(&s->info);
	dwarf_file_close(&s->file);
	if (s->image.data)
		s->files->split->close(s->files->split->arg, &s->image);
	s->image = (struct symbol_image){ 0 };
}
