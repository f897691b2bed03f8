/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rows of a file, from all that is known about its code. The builders below are asked in their order: rows of an earlier
 * builder stand, and only the gaps that it leaves are offered to the next. Merging and padding come after all of them, so
 * that no padding swallows code that a later builder knows. The source owns the mapping of the file, libelf's handle over it
 * and the builders' states. One thread.
 */
#include <errno.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "agent/rows/row_builder.h"
#include "agent/rows/rows.h"
#include "base/cleanup.h"

static const struct row_builder *const builders[] = {
	CPU_ROW_BUILDERS & rows_sigreturn, &rows_go, &rows_eh_frame, &rows_debug_frame, &rows_code, &rows_entry
};

enum {
	PADDING_BYTES = 16, /* a gap below this is joined to the row before it */
	PIECE_BYTES = 256,  /* bytes that a builder is asked for at once */
};

struct opened {
	const struct row_builder *builder;
	void *state;
};

struct row_source {
	void *map; /* owned; NULL for a borrowed image */
	size_t map_len;
	struct row_image image; /* its elf is owned */
	bool is_quick;		/* builders are asked for what does not take long */
	size_t opened_count;
	struct opened opened[ARRAY_LEN(builders)];
};

const uint8_t row_saved_regs[SAVED_MAX] = ROW_SAVED_REGS;

/* --- a range --- */

/* The caller's array, being filled. */
struct output {
	struct row *rows;
	size_t max, count;
};

static int emit(struct output *out, const struct row *row)
{
	struct row *last = out->count ? &out->rows[out->count - 1] : NULL;

	if (last && row->start - last->end < PADDING_BYTES) {
		last->end = row->start;
		if (row_is_alike(last, row)) {
			last->end = row->end;
			return 0;
		}
	}
	if (out->count == out->max)
		return -ENOSPC;
	out->rows[out->count++] = *row;
	return 0;
}

static int ask(const struct row_source *src, const struct opened *o, uint64_t start, uint64_t end, struct row *rows,
	       size_t max, size_t *count)
{
	bool is_quick = src->is_quick && o->builder->build_quickly;

	return (is_quick ? o->builder->build_quickly : o->builder->build)(o->state, start, end, rows, max, count);
}

/* At most PIECE_BYTES, by the builders from number @first on. */
static int build_piece(const struct row_source *src, size_t first, uint64_t start, uint64_t end, struct output *out)
{
	const struct opened *o = &src->opened[first];
	struct row rows[PIECE_BYTES];
	size_t count;
	int r;

	if (first == src->opened_count || start == end)
		return 0;
	r = ask(src, o, start, end, rows, PIECE_BYTES, &count);
	if (r)
		return r;
	for (size_t i = 0; i < count && !r; i++) {
		r = build_piece(src, first + 1, start, rows[i].start, out);
		if (!r)
			r = emit(out, &rows[i]);
		start = rows[i].end;
	}
	return r ? r : build_piece(src, first + 1, start, end, out);
}

/* The first address from @addr on that some builder covers; @end: there is none below. */
static uint64_t skip_gap(const struct row_source *src, uint64_t addr, uint64_t end)
{
	for (; addr < end; addr++) {
		for (size_t i = 0; i < src->opened_count; i++) {
			const struct opened *o = &src->opened[i];
			struct row row;
			size_t count;

			if (ask(src, o, addr, addr + 1, &row, 1, &count) == 0 && count)
				return addr;
		}
	}
	return end;
}

int rows_build(struct row_source *src, uint64_t start, uint64_t end, struct row *rows, size_t max, size_t *count_ret)
{
	struct output out = { rows, max, 0 };
	struct row *last;
	int r = 0;

	if (end > UINT64_MAX - PADDING_BYTES)
		end = UINT64_MAX - PADDING_BYTES;
	for (uint64_t at = start, next; at < end && !r; at = next) {
		next = end - at > PIECE_BYTES ? at + PIECE_BYTES : end;
		r = build_piece(src, 0, at, next, &out);
	}
	*count_ret = out.count;
	if (r || !out.count)
		return r;
	last = &rows[out.count - 1];
	if (last->end < end && end - last->end < PADDING_BYTES &&
	    skip_gap(src, end, last->end + PADDING_BYTES) < last->end + PADDING_BYTES)
		last->end = end;
	return 0;
}

int rows_build_at(struct row_source *src, uint64_t addr, uint64_t start, uint64_t end, struct row *rows, size_t max,
		  size_t *count_ret)
{
	int r;

	src->is_quick = true;
	r = rows_build(src, start, end, rows, max, count_ret);
	src->is_quick = false;
	for (size_t i = 0; !r && i < *count_ret; i++)
		if (rows[i].cfa == ROW_CFA_UNASKED && addr >= rows[i].start && addr < rows[i].end)
			return rows_build(src, start, end, rows, max, count_ret);
	return r;
}

/* --- one frame, exactly --- */

/* The kernel's signal frame holds all registers. */
static const uint8_t signal_places[USER_REGS] = CPU_SIGNAL_PLACES;

static int eval_signal(const struct row_regs *in, row_read_fn read, void *arg, struct row_regs *out)
{
	uint64_t regs = in->value[REG_SP] + SIGNAL_REGS;

	if (!(in->known >> REG_SP & 1))
		return -ENODATA;
	for (int reg = 0; reg < USER_REGS; reg++) {
		if (read(arg, regs + 8ull * signal_places[reg], &out->value[reg], sizeof(out->value[reg])))
			return -EFAULT;
		out->known |= REG_BIT(reg);
	}
	return 0;
}

/* The CFA that @row means. */
static int eval_cfa(const struct row *row, const struct row_regs *in, row_read_fn read, void *arg, uint64_t *ret)
{
	int reg = row->cfa == ROW_CFA_PLT ? REG_SP : row->cfa_reg;

	if (!(in->known >> reg & 1))
		return -ENODATA;
	if (row->cfa == ROW_CFA_PLT) {
		*ret = in->value[reg] + 8 + ((in->value[REG_PC] & 15) >= (uint64_t)row->cfa_off ? 8 : 0);
		return 0;
	}
	*ret = in->value[reg] + (uint64_t)(int64_t)row->cfa_off;
	if (row->cfa == ROW_CFA_REG)
		return 0;
	if (read(arg, *ret, ret, sizeof(*ret)))
		return -EFAULT;
	*ret += (uint64_t)(int64_t)row->cfa_off2;
	return 0;
}

void row_return(struct row_regs *out)
{
	if (!CPU_HAS_LR)
		return;
	out->value[REG_PC] = out->value[REG_RA] & cpu_code_mask();
	out->known &= ~REG_BIT(REG_PC);
	if (out->known & REG_BIT(REG_RA))
		out->known ^= REG_BIT(REG_RA) | REG_BIT(REG_PC);
}

/* The caller's register @reg, which the row says is at @saved. */
static void restore(int32_t saved, int reg, uint64_t cfa, const struct row_regs *in, row_read_fn read, void *arg,
		    struct row_regs *out)
{
	int from = row_is_in_reg(saved) ? saved - ROW_IN_REG : saved == ROW_SAME ? reg : -1, base = -1;
	uint64_t at = cfa + (uint64_t)(int64_t)saved;

	if (from >= 0) {
		out->value[reg] = in->value[from];
		out->known |= (in->known >> from & 1) << reg;
		return;
	}
	if (row_is_at_fp(saved)) {
		base = REG_FP;
		saved -= ROW_AT_FP;
	} else if (row_is_at_sp(saved)) {
		base = REG_SP;
		saved -= ROW_AT_SP;
	}
	if (base >= 0)
		at = in->value[base] + (uint64_t)(int64_t)saved;
	if ((base < 0 || in->known >> base & 1) && read(arg, at, &out->value[reg], sizeof(at)) == 0)
		out->known |= REG_BIT(reg);
}

int row_apply(const struct row *row, const struct row_regs *in, row_read_fn read, void *arg, struct row_regs *out)
{
	uint64_t cfa;
	int r;

	*out = (struct row_regs){ .is_exact = row->is_signal_frame };
	if (row->cfa == ROW_CFA_NONE || row->cfa == ROW_CFA_EXPR || row->cfa == ROW_CFA_SCHED || row->cfa == ROW_CFA_UNASKED)
		return -ENOENT;
	if (row->cfa == ROW_CFA_ROOT)
		return 1;
	if (row->cfa == ROW_CFA_SIGNAL)
		return eval_signal(in, read, arg, out);
	r = eval_cfa(row, in, read, arg, &cfa);
	if (r)
		return r;
	out->value[REG_SP] = cfa;
	out->known = REG_BIT(REG_SP);
	for (int i = 0; i < SAVED_MAX; i++)
		restore(row->saved[i], row_saved_regs[i], cfa, in, read, arg, out);
	row_return(out);
	return out->known >> REG_PC & 1 ? 0 : -EFAULT;
}

int row_eval(struct row_source *src, uint64_t addr, const struct row_regs *in, row_read_fn read, void *arg,
	     struct row_regs *out)
{
	for (size_t i = 0; i < src->opened_count; i++) {
		const struct opened *o = &src->opened[i];
		struct row row;
		size_t count;
		int r;

		if (o->builder->eval) {
			r = o->builder->eval(o->state, addr, in, read, arg, out);
			if (r != -ENOENT)
				return r;
			continue;
		}
		r = o->builder->build(o->state, addr, addr + 1, &row, 1, &count);
		if (r)
			return r;
		if (count)
			return row_apply(&row, in, read, arg, out);
	}
	return -ENOENT;
}

bool row_is_return_address(const struct row_source *src, uint64_t addr)
{
	return rows_code_has_call_before(&src->image, addr) || rows_sigreturn_is_at(&src->image, addr);
}

/* --- the file --- */

static int open_builders(struct row_source *src)
{
	struct row_image *image = &src->image;

	for (size_t i = 0; i < ARRAY_LEN(builders); i++) {
		struct opened *o = &src->opened[src->opened_count];
		int r;

		if (image->entry && image->entry < UINT64_MAX - PIECE_BYTES && src->opened_count)
			image->entry_gap = skip_gap(src, image->entry, image->entry + PIECE_BYTES) - image->entry;
		r = builders[i]->open(image, &o->state);
		if (r && r != -ENODATA)
			return r;
		if (r == 0) {
			o->builder = builders[i];
			src->opened_count++;
			if (builders[i]->functions)
				image->functions = builders[i]->functions;
		}
	}
	return src->opened_count ? 0 : -ENODATA;
}

/* Opens @image, with the help of @debug. */
static int new_source(const void *image, size_t len_bytes, const void *debug, size_t debug_bytes, struct row_source **ret)
{
	struct row_source *src;
	GElf_Ehdr ehdr;
	int r;

	if (elf_version(EV_CURRENT) == EV_NONE)
		return -ENOTSUP;
	src = calloc(1, sizeof(*src));
	if (!src)
		return -ENOMEM;
	src->image.data = image;
	src->image.len = len_bytes;
	src->image.elf = elf_memory((char *)image, len_bytes); /* only read, whatever the type says */
	if (!src->image.elf || !gelf_getehdr(src->image.elf, &ehdr) || ehdr.e_machine != CPU_ELF_MACHINE ||
	    ehdr.e_ident[EI_CLASS] != ELFCLASS64) {
		r = -ENOEXEC;
		goto fail;
	}
	src->image.entry = ehdr.e_entry;
	if (debug) {
		src->image.debug = debug;
		src->image.debug_len = debug_bytes;
		src->image.debug_elf = elf_memory((char *)debug, debug_bytes);
	}
	r = open_builders(src);
	elf_end(src->image.debug_elf);
	src->image.debug_elf = NULL;
	src->image.debug = NULL;
	if (r)
		goto fail;
	*ret = src;
	return 0;
fail:
	row_source_free(src);
	return r;
}

int row_source_new_memory(const void *image, size_t len_bytes, struct row_source **ret)
{
	return new_source(image, len_bytes, NULL, 0, ret);
}

int row_source_new(int fd, struct row_source **ret)
{
	return row_source_new_debug(fd, NULL, 0, ret);
}

int row_source_new_debug(int fd, const void *debug, size_t len_bytes, struct row_source **ret)
{
	struct stat st;
	void *map;
	int r;

	if (fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_size == 0)
		return -ENOEXEC;
	map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (map == MAP_FAILED)
		return -errno;
	r = new_source(map, (size_t)st.st_size, debug, len_bytes, ret);
	if (r) {
		munmap(map, (size_t)st.st_size);
		return r;
	}
	(*ret)->map = map;
	(*ret)->map_len = (size_t)st.st_size;
	return 0;
}

void row_source_free(struct row_source *src)
{
	if (!src)
		return;
	for (size_t i = 0; i < src->opened_count; i++)
		src->opened[i].builder->close(src->opened[i].state);
	if (src->image.elf)
		elf_end(src->image.elf);
	if (src->map)
		munmap(src->map, src->map_len);
	free(src);
}

void row_source_rest(const struct row_source *src)
{
	if (src->map)
		(void)madvise(src->map, src->map_len, MADV_DONTNEED);
}

void row_source_forget(struct row_source *src)
{
	for (size_t i = 0; i < src->opened_count; i++)
		if (src->opened[i].builder->rest)
			src->opened[i].builder->rest(src->opened[i].state);
}
