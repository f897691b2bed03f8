/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads names out of DWARF 2 to 5: functions, calls inlined into them, and lines. Units go by one after the other; one that
 * has ranges of its own and none that anybody asks for is passed over, and so are functions nobody asks for. Code that the
 * linker dropped still has its entries, at address 0 or at the very top: only entries where the file has code count.
 */
#include <dwarf.h>
#include <errno.h>

#include "symbols/dwarf/line.h"
#include "symbols/dwarf/references.h"
#include "symbols/dwarf/split.h"
#include "symbols/code/source.h"

enum { MAX_NESTING = 512 /* calls inlined deeper are left to the caller */ };

enum { BUDGET_BYTES = 4 << 20 /* for the smallest files */ };

/* A function or inlined call around the entry that is just looked at. */
struct frame {
	uint64_t off;
	uint32_t depth;
	uint32_t node; /* CODE_NONE: not added, nothing of it was asked for so far */
	bool is_added;
	bool is_root; /* no call: what is around it does not count */
};

struct reader {
	const struct symbol_files *files; /* borrowed, as the three below */
	struct code_names *names;
	uint64_t code_start, code_end;
	struct dwarf_info *program, *common;
	struct dwarf_split split;
	struct dwarf_names program_functions, *functions; /* the latter of @info */
	struct dwarf_lines lines;
	struct map lines_run; /* offsets of line programs that have been run */
	bool is_broken;
	/* the unit whose entries are walked: of the program, or split off */
	struct dwarf_info *info;
	struct dwarf_unit *unit;
	bool is_wanted; /* something in it was */
	struct frame stack[MAX_NESTING];
	size_t height;
	/* the entry */
	const struct dwarf_die *die;
	bool has_ranges;
};

static bool is_code(const struct reader *r, uint64_t start, uint64_t end)
{
	return start >= r->code_start && end <= r->code_end;
}

/* --- functions --- */

static uint64_t number(const struct dwarf_die *die, enum dwarf_attribute attribute)
{
	return dwarf_has(die, attribute) ? die->values[attribute].raw : 0;
}

static uint32_t small_number(const struct dwarf_die *die, enum dwarf_attribute attribute)
{
	uint64_t value = number(die, attribute);

	return value <= UINT32_MAX ? (uint32_t)value : 0;
}

static uint32_t add_node(struct reader *r, uint32_t parent, const struct dwarf_die *die)
{
	uint32_t function = dwarf_names_function(r->functions, r->unit, die), file = CODE_NONE;

	if (function == CODE_NONE || die->tag == DW_TAG_subprogram)
		return code_names_node(r->names, parent, function, CODE_NONE, 0, 0);
	if (dwarf_has(die, DWARF_AT_CALL_FILE))
		file = dwarf_lines_file(&r->lines, number(die, DWARF_AT_CALL_FILE));
	return code_names_node(r->names, parent, function, file, small_number(die, DWARF_AT_CALL_LINE),
			       small_number(die, DWARF_AT_CALL_COLUMN));
}

/* The node of the entry that is looked at, the top of the stack. The nodes around it are added before it. */
static uint32_t top_node(struct reader *r)
{
	uint32_t parent = CODE_NONE;
	size_t root = r->height - 1;

	while (root && !r->stack[root].is_root)
		root--;
	for (size_t i = root; i < r->height; i++) {
		struct frame *f = &r->stack[i];
		struct dwarf_die around;
		const struct dwarf_die *die = r->die;

		if (!f->is_added) {
			if (i + 1 < r->height)
				die = dwarf_die_read(r->info, r->unit, f->off, &around) ? NULL : &around;
			f->is_added = true;
			f->node = die ? add_node(r, parent, die) : parent;
		}
		parent = f->node;
	}
	return parent;
}

static bool on_range(void *arg, uint64_t start, uint64_t end)
{
	struct reader *r = arg;

	r->has_ranges = true;
	if (!is_code(r, start, end) || !code_names_wants(r->names, start, end))
		return false;
	code_names_range(r->names, start, end, top_node(r));
	return false;
}

static int on_function(void *arg, const struct dwarf_die *die)
{
	struct reader *r = arg;
	struct frame *f;

	while (r->height && r->stack[r->height - 1].depth >= die->ended_depth)
		r->height--;
	if (r->height == MAX_NESTING)
		return 0;
	f = &r->stack[r->height++];
	*f = (struct frame){ .off = die->off, .depth = die->depth, .node = CODE_NONE };
	f->is_root = die->tag == DW_TAG_subprogram;
	r->die = die;
	r->has_ranges = false;
	if (dwarf_ranges(r->info, r->unit, die, on_range, r))
		r->is_broken = true;
	r->is_wanted |= f->is_added;
	if (!die->has_children)
		r->height--;
	if (f->is_added)
		return f->node == CODE_NONE;
	/* Nobody asks for it, or it is no code but a declaration or the pattern of inlined calls. Calls inlined into a call
	 * can lie outside of its ranges: none is passed over for those around it. */
	return die->tag == DW_TAG_subprogram;
}

/* --- units --- */

static bool on_unit_range(void *arg, uint64_t start, uint64_t end)
{
	struct reader *r = arg;

	r->has_ranges = true;
	r->is_wanted |= code_names_wants(r->names, start, end);
	return r->is_wanted;
}

/* May @unit, whose own entry is @die, have what somebody asks for? */
static bool may_be_wanted(struct reader *r, const struct dwarf_die *die)
{
	r->has_ranges = r->is_wanted = false;
	if (dwarf_ranges(r->info, r->unit, die, on_unit_range, r))
		r->has_ranges = false;
	if (!r->has_ranges && code_names_wants(r->names, 0, UINT64_MAX)) {
		r->is_wanted = false;
		return true;
	}
	return r->is_wanted;
}

static void run_lines(struct reader *r, const struct dwarf_unit *unit)
{
	if (map_get(&r->lines_run, unit->stmt_list))
		return;
	map_put(&r->lines_run, unit->stmt_list, r);
	if (dwarf_lines_run(&r->lines, r->code_start, r->code_end))
		r->is_broken = true;
}

/* The entries of @unit, which has been read. */
static int walk_unit(struct reader *r, struct dwarf_info *info, struct dwarf_names *functions, struct dwarf_unit *unit)
{
	r->info = info;
	r->functions = functions;
	r->unit = unit;
	r->height = 0;
	return dwarf_unit_walk(info, unit, DWARF_WALK_FUNCTIONS, on_function, r);
}

/* The entries that the skeleton @unit, whose own is @die, stands for. */
static int walk_split_unit(struct reader *r, const struct dwarf_unit *skeleton, const struct dwarf_die *die)
{
	struct dwarf_unit *unit;
	int error = dwarf_split_open_unit(&r->split, r->program, skeleton, die, &unit);

	if (!error) {
		struct dwarf_names functions;

		dwarf_names_init(&functions, r->names, &r->split.info, NULL);
		error = walk_unit(r, &r->split.info, &functions, unit);
		dwarf_names_fini(&functions);
	}
	dwarf_split_close_unit(&r->split);
	return error;
}

/* 0 or -ENOMEM. */
static int read_unit(struct reader *r, struct dwarf_unit *unit)
{
	struct dwarf_die die;
	int error, lines_error;

	if (unit->type == DW_UT_type || unit->type == DW_UT_split_type)
		return 0;
	error = dwarf_unit_read(r->program, unit, &die);
	r->is_broken |= error != 0;
	if (error)
		return error == -ENOMEM ? error : 0;
	r->info = r->program;
	r->unit = unit;
	if (!may_be_wanted(r, &die))
		return 0;
	lines_error = dwarf_lines_open(&r->lines, r->program, unit);
	if (lines_error == -ENOMEM)
		return lines_error;
	if (dwarf_is_skeleton(unit))
		error = walk_split_unit(r, unit, &die);
	else
		error = walk_unit(r, r->program, &r->program_functions, unit);
	if (!lines_error && r->is_wanted)
		run_lines(r, unit);
	r->is_broken |= error != 0 || lines_error == -EBADMSG;
	return error == -ENOMEM ? error : 0;
}

static int read_units(struct reader *r)
{
	int error = 0;

	dwarf_split_init(&r->split, r->files);
	dwarf_names_init(&r->program_functions, r->names, r->program, r->common);
	dwarf_lines_init(&r->lines, r->names);
	for (size_t i = 0; !error && i < r->program->unit_cnt; i++)
		error = read_unit(r, &r->program->units[i]);
	map_fini(&r->lines_run);
	dwarf_lines_fini(&r->lines);
	dwarf_names_fini(&r->program_functions);
	dwarf_split_fini(&r->split);
	return error ? error : r->is_broken ? -EBADMSG : 0;
}

static uint64_t section_bytes(const struct dwarf_file *file)
{
	uint64_t sum = 0;

	for (int i = 0; i < DWARF_SECTION_MAX; i++)
		sum += file->sections[i].len;
	return sum;
}

static int read_files(const struct symbol_files *files, const struct dwarf_file *file, const struct dwarf_file *common_file,
		      struct code_names *names)
{
	struct dwarf_budget budget = { BUDGET_BYTES +
				       DWARF_BUDGET_TIMES * (section_bytes(file) + section_bytes(common_file)) };
	bool has_common = common_file->sections[DWARF_INFO].len != 0;
	struct dwarf_info program, common = { 0 };
	struct reader r = { .files = files, .names = names, .program = &program, .common = has_common ? &common : NULL };
	int error = dwarf_info_open(&program, file->sections, &budget);

	if (!error && has_common)
		error = dwarf_info_open(&common, common_file->sections, &budget);
	program.common = r.common;
	r.code_start = file->code_start;
	r.code_end = file->code_end;
	r.is_broken = program.is_broken || file->is_broken;
	if (!error)
		error = read_units(&r);
	dwarf_info_close(&common);
	dwarf_info_close(&program);
	return error;
}

int source_dwarf(const struct symbol_files *files, struct code_names *names)
{
	struct dwarf_file file, common = { 0 };
	int error = dwarf_file_open(&file, &files->program, false);

	if (error == -ENODATA)
		error = dwarf_file_open(&file, &files->debug, false);
	if (error)
		return error;
	code_names_begin(names, CODE_SOURCE_DWARF);
	/* Without the common file some names are missing. */
	error = dwarf_file_open(&common, &files->common, false);
	if (error != -ENOMEM)
		error = read_files(files, &file, &common, names);
	dwarf_file_close(&common);
	dwarf_file_close(&file);
	return error;
}
