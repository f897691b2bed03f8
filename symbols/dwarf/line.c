/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The header is read into two arrays, directories and files; a file's path is put together when the first row asks for it.
 * Then the program runs, a byte or a few an instruction, so that it ends with its bytes. Only what two rows enclose and
 * somebody wants leaves this file.
 */
#include <dwarf.h>
#include <errno.h>
#include <stdlib.h>

#include "base/vec.h"
#include "symbols/dwarf/line.h"

enum {
	MAX_FILES = 1 << 20, /* files or directories of one program */
	MAX_FORMATS = 32,    /* parts of an entry; DWARF 5 knows five */
	NOT_YET = CODE_NONE - 1,
};

struct dwarf_line_text {
	const char *data;
	size_t len;
};

struct dwarf_line_file {
	struct dwarf_line_text name;
	uint64_t dir;
	uint32_t id; /* in the struct code_names, NOT_YET or CODE_NONE */
};

void dwarf_lines_init(struct dwarf_lines *l, struct code_names *names)
{
	*l = (struct dwarf_lines){ .names = names, .off = UINT64_MAX };
}

void dwarf_lines_fini(struct dwarf_lines *l)
{
	free(l->dirs);
	free(l->files);
	buf_fini(&l->path);
	*l = (struct dwarf_lines){ 0 };
}

/* --- the header --- */

static int add_dir(struct dwarf_lines *l, struct dwarf_line_text text)
{
	if (l->dir_cnt == MAX_FILES)
		return -EBADMSG;
	if (vec_reach(&l->dirs, &l->dir_cap, l->dir_cnt))
		return -ENOMEM;
	l->dirs[l->dir_cnt++] = text;
	return 0;
}

static int add_file(struct dwarf_lines *l, struct dwarf_line_text name, uint64_t dir)
{
	if (l->file_cnt == MAX_FILES)
		return -EBADMSG;
	if (vec_reach(&l->files, &l->file_cap, l->file_cnt))
		return -ENOMEM;
	l->files[l->file_cnt++] = (struct dwarf_line_file){ name, dir, NOT_YET };
	return 0;
}

static bool take_text(struct dwarf_cursor *c, struct dwarf_line_text *ret)
{
	const uint8_t *start = c->at;

	if (!dwarf_skip_string(c))
		return false;
	*ret = (struct dwarf_line_text){ (const char *)start, (size_t)(c->at - start) - 1 };
	return true;
}

/* Until version 4: texts until an empty one, then files until an empty name. */
static int take_old_tables(struct dwarf_lines *l, struct dwarf_cursor *c)
{
	struct dwarf_line_text text;
	uint64_t dir;
	int error;

	for (;;) {
		if (!take_text(c, &text))
			return -EBADMSG;
		if (!text.len)
			break;
		error = add_dir(l, text);
		if (error)
			return error;
	}
	for (;;) {
		if (!take_text(c, &text))
			return -EBADMSG;
		if (!text.len)
			return 0;
		if (!dwarf_take_uleb(c, &dir) || !dwarf_skip_leb(c) || !dwarf_skip_leb(c))
			return -EBADMSG;
		error = add_file(l, text, dir);
		if (error)
			return error;
	}
}

struct format {
	uint64_t content, form;
};

/* One part of an entry of version 5. */
static bool take_part(struct dwarf_lines *l, struct dwarf_cursor *c, const struct format *format,
		      struct dwarf_line_text *name, uint64_t *dir)
{
	struct dwarf_unit sizes = { .version = 5, .address_bytes = 8, .offset_bytes = l->offset_bytes };
	struct dwarf_value value = { .form = (uint16_t)format->form };
	struct dwarf_line_text text = { NULL, 0 };
	struct dwarf_op op;
	uint64_t bytes = 0;

	if (!dwarf_form_op(&sizes, format->form, &op))
		return false;
	switch (op.kind) {
	case DWARF_OP_STRING:
		if (!take_text(c, &text))
			return false;
		break;
	case DWARF_OP_FIXED:
		bytes = op.bytes;
		if (!bytes || (bytes <= 8 && !dwarf_take(c, op.bytes, &value.raw)) || (bytes > 8 && !dwarf_skip(c, bytes)))
			return false;
		break;
	case DWARF_OP_LEB:
		if (!dwarf_take_uleb(c, &value.raw))
			return false;
		break;
	case DWARF_OP_BLOCK:
		return dwarf_take_uleb(c, &bytes) && dwarf_skip(c, bytes);
	default:
		return false;
	}
	if (format->content == DW_LNCT_directory_index)
		*dir = value.raw;
	if (format->content != DW_LNCT_path)
		return true;
	if (!text.data)
		text.data = dwarf_string(l->info, l->unit, value, &text.len);
	*name = text.data ? text : (struct dwarf_line_text){ "", 0 };
	return true;
}

/* Version 5: what an entry consists of, and how many there are; once for directories, once for files. */
static int take_new_table(struct dwarf_lines *l, struct dwarf_cursor *c, bool are_files)
{
	struct format formats[MAX_FORMATS];
	uint64_t format_cnt, count;

	if (!dwarf_take(c, 1, &format_cnt) || format_cnt > MAX_FORMATS)
		return -EBADMSG;
	for (uint64_t i = 0; i < format_cnt; i++)
		if (!dwarf_take_uleb(c, &formats[i].content) || !dwarf_take_uleb(c, &formats[i].form))
			return -EBADMSG;
	/* Every part takes a byte at least, so that the bytes bound the count. */
	if (!dwarf_take_uleb(c, &count) || (count && !format_cnt))
		return -EBADMSG;
	for (uint64_t i = 0; i < count; i++) {
		struct dwarf_line_text name = { "", 0 };
		uint64_t dir = 0;
		int error;

		for (uint64_t k = 0; k < format_cnt; k++)
			if (!take_part(l, c, &formats[k], &name, &dir))
				return -EBADMSG;
		error = are_files ? add_file(l, name, dir) : add_dir(l, name);
		if (error)
			return error;
	}
	return 0;
}

/* The header's fixed part; afterwards @c stands at the tables and ends with the program. */
static bool take_head(struct dwarf_lines *l, struct dwarf_cursor *c)
{
	uint64_t len, version, header, min, ignored, base, range, opcode_base;

	l->offset_bytes = 4;
	if (!dwarf_take(c, 4, &len))
		return false;
	if (len == 0xffffffff) {
		l->offset_bytes = 8;
		if (!dwarf_take(c, 8, &len))
			return false;
	}
	if (len > dwarf_left(c))
		return false;
	c->end = c->at + len;
	if (!dwarf_take(c, 2, &version) || version < 2 || version > 5 || (version == 5 && !dwarf_skip(c, 2)) ||
	    !dwarf_take(c, l->offset_bytes, &header) || header > dwarf_left(c))
		return false;
	l->program = (struct dwarf_cursor){ c->at + header, c->end };
	c->end = l->program.at;
	if (!dwarf_take(c, 1, &min) || (version >= 4 && !dwarf_skip(c, 1)) || !dwarf_take(c, 1, &ignored) ||
	    !dwarf_take(c, 1, &base) || !dwarf_take(c, 1, &range) || !dwarf_take(c, 1, &opcode_base) || !range ||
	    !opcode_base)
		return false;
	l->version = (uint16_t)version;
	l->min_instruction = (uint8_t)min;
	l->line_base = (int8_t)base;
	l->line_range = (uint8_t)range;
	l->opcode_base = (uint8_t)opcode_base;
	l->operand_cnts = c->at;
	return dwarf_skip(c, opcode_base - 1);
}

static int read_header(struct dwarf_lines *l)
{
	struct dwarf_cursor c = dwarf_cursor_at(&l->info->sections[DWARF_LINE], l->unit->stmt_list);
	const uint8_t *start = c.at;
	int error;

	if (!take_head(l, &c))
		return -EBADMSG;
	if (l->version >= 5) {
		error = take_new_table(l, &c, false);
		if (!error)
			error = take_new_table(l, &c, true);
	} else {
		error = take_old_tables(l, &c);
	}
	if (!dwarf_spend(l->info->budget, (uint64_t)(c.at - start)))
		return -EBADMSG;
	return error;
}

int dwarf_lines_open(struct dwarf_lines *l, const struct dwarf_info *info, const struct dwarf_unit *unit)
{
	int error;

	l->off = UINT64_MAX;
	l->dir_cnt = l->file_cnt = 0;
	if (unit->stmt_list == UINT64_MAX)
		return -ENODATA;
	l->info = info;
	l->unit = unit;
	error = read_header(l);
	if (error) {
		l->dir_cnt = l->file_cnt = 0;
		return error;
	}
	l->comp_dir = dwarf_string(info, unit, unit->comp_dir, &l->comp_dir_len);
	l->off = unit->stmt_list;
	return 0;
}

/* --- files --- */

/* Appends a part of a path, one slash between it and what is there. */
static void append_path(struct buf *path, const char *part, size_t len)
{
	if (!len)
		return;
	if (path->len && path->data[path->len - 1] != '/' && part[0] != '/')
		buf_putc(path, '/');
	buf_append(path, part, len);
}

static bool is_absolute(struct dwarf_line_text t)
{
	return t.len && t.data[0] == '/';
}

/* Joins the path as LLVM's tools do: nothing is shortened. */
static void put_path(struct dwarf_lines *l, const struct dwarf_line_file *file)
{
	bool is_new = l->version >= 5;
	/* Directory 0 is the one of the compilation: before version 5 it has no entry. */
	uint64_t index = is_new ? file->dir : file->dir - 1;
	struct dwarf_line_text dir = { "", 0 };

	buf_reset(&l->path);
	if (!is_absolute(file->name)) {
		if (index < l->dir_cnt)
			dir = l->dirs[index];
		if (!is_absolute(dir) && !(is_new && !file->dir) && l->comp_dir)
			append_path(&l->path, l->comp_dir, l->comp_dir_len);
		append_path(&l->path, dir.data, dir.len);
	}
	append_path(&l->path, file->name.data, file->name.len);
}

uint32_t dwarf_lines_file(struct dwarf_lines *l, uint64_t index)
{
	struct dwarf_line_file *file;

	if (l->version < 5)
		index--;
	if (index >= l->file_cnt)
		return CODE_NONE;
	file = &l->files[index];
	if (file->id != NOT_YET)
		return file->id;
	file->id = CODE_NONE;
	put_path(l, file);
	if (l->path.failed)
		code_names_lack_memory(l->names);
	else if (file->name.len && dwarf_spend(l->info->budget, l->path.len))
		file->id = code_names_file(l->names, (const char *)l->path.data, l->path.len);
	return file->id;
}

/* --- the program --- */

struct row {
	uint64_t addr, file;
	uint32_t line, column;
};

struct machine {
	struct dwarf_lines *l;
	uint64_t code_start, code_end;
	struct row now;
	struct row last; /* the row whose end is not known yet */
	bool has_last;
	bool is_dropped; /* the sequence is of code that is not there */
	bool is_open;	 /* a row of the sequence was added, its end was not */
};

static void reset(struct machine *m)
{
	m->now = (struct row){ .file = 1, .line = 1 };
	m->has_last = m->is_dropped = false;
}

static void end_rows(struct machine *m, uint64_t addr)
{
	if (m->is_open)
		code_names_line(m->l->names, addr, CODE_NONE, 0, 0);
	m->is_open = false;
}

/* The last row reaches to @end. */
static void put_last(struct machine *m, uint64_t end)
{
	const struct row *row = &m->last;
	uint32_t file;

	if (!code_names_wants(m->l->names, row->addr, end)) {
		end_rows(m, row->addr);
		return;
	}
	file = dwarf_lines_file(m->l, row->file);
	if (file == CODE_NONE) {
		end_rows(m, row->addr);
		return;
	}
	code_names_line(m->l->names, row->addr, file, row->line, row->column);
	m->is_open = true;
}

static void add_row(struct machine *m)
{
	const struct row *now = &m->now;

	if (!m->has_last) {
		m->is_dropped = now->addr < m->code_start || now->addr >= m->code_end;
	} else if (now->addr != m->last.addr) {
		if (now->file == m->last.file && now->line == m->last.line && now->column == m->last.column &&
		    now->addr > m->last.addr)
			return;
		if (!m->is_dropped)
			put_last(m, now->addr);
	}
	m->last = *now;
	m->has_last = true;
}

static void end_sequence(struct machine *m)
{
	if (m->has_last && !m->is_dropped) {
		put_last(m, m->now.addr);
		end_rows(m, m->now.addr);
	}
	reset(m);
}

static bool run_extended(struct machine *m, struct dwarf_cursor *c)
{
	uint64_t len, opcode;
	struct dwarf_cursor inside;

	if (!dwarf_take_uleb(c, &len) || len > dwarf_left(c))
		return false;
	inside = (struct dwarf_cursor){ c->at, c->at + len };
	c->at += len;
	if (!dwarf_take(&inside, 1, &opcode))
		return true; /* nothing but its length */
	switch (opcode) {
	case DW_LNE_end_sequence:
		end_sequence(m);
		return true;
	case DW_LNE_set_address:
		return len - 1 <= 8 && dwarf_take(&inside, (unsigned)(len - 1), &m->now.addr);
	default:
		return true;
	}
}

/* Moves the address by the @operation advance of a special opcode. */
static void advance(struct machine *m, uint64_t operations)
{
	m->now.addr += operations * m->l->min_instruction;
}

static bool run_standard(struct machine *m, struct dwarf_cursor *c, uint8_t opcode)
{
	const struct dwarf_lines *l = m->l;
	uint64_t value = 0;

	switch (opcode) {
	case DW_LNS_copy:
		add_row(m);
		return true;
	case DW_LNS_advance_pc:
		if (!dwarf_take_uleb(c, &value))
			return false;
		advance(m, value);
		return true;
	case DW_LNS_advance_line:
		if (!dwarf_take_sleb(c, &value))
			return false;
		m->now.line += (uint32_t)value;
		return true;
	case DW_LNS_set_file:
		return dwarf_take_uleb(c, &m->now.file);
	case DW_LNS_set_column:
		if (!dwarf_take_uleb(c, &value))
			return false;
		m->now.column = (uint32_t)value;
		return true;
	case DW_LNS_const_add_pc:
		advance(m, (255u - l->opcode_base) / l->line_range);
		return true;
	case DW_LNS_fixed_advance_pc:
		if (!dwarf_take(c, 2, &value))
			return false;
		m->now.addr += value;
		return true;
	case DW_LNS_negate_stmt:
	case DW_LNS_set_basic_block:
	case DW_LNS_set_prologue_end:
	case DW_LNS_set_epilogue_begin:
		return true;
	default: /* DW_LNS_set_isa, and what a later version knows */
		for (uint8_t i = 0; i < l->operand_cnts[opcode - 1]; i++)
			if (!dwarf_skip_leb(c))
				return false;
		return true;
	}
}

int dwarf_lines_run(struct dwarf_lines *l, uint64_t code_start, uint64_t code_end)
{
	struct machine m = { .l = l, .code_start = code_start, .code_end = code_end };
	struct dwarf_cursor c = l->program;
	bool is_sound = dwarf_spend(l->info->budget, 4 * dwarf_left(&c));

	reset(&m);
	while (is_sound && c.at < c.end) {
		uint8_t opcode = *c.at++;

		if (opcode >= l->opcode_base) {
			uint8_t adjusted = opcode - l->opcode_base;

			advance(&m, adjusted / l->line_range);
			m.now.line += (uint32_t)(l->line_base + adjusted % l->line_range);
			add_row(&m);
		} else if (opcode) {
			is_sound = run_standard(&m, &c, opcode);
		} else {
			is_sound = run_extended(&m, &c);
		}
	}
	/* The range of a sequence without an end is not known. */
	if (m.has_last && !m.is_dropped)
		end_rows(&m, m.last.addr);
	return is_sound ? 0 : -EBADMSG;
}
