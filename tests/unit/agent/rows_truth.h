/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures for the tests of rows: readelf's interpreted tables, and memory that answers every address. Included once
 * by each of those tests, behind cmocka.
 */
#ifndef HEARTH_TESTS_ROWS_TRUTH_H
#define HEARTH_TESTS_ROWS_TRUTH_H

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

#include "agent/rows/row_builder.h"
#include "agent/rows/rows.h"
#include "base/cleanup.h"

/* --- memory that answers every address, to try rules on --- */

static uint64_t made_up(uint64_t addr)
{
	return (addr ^ addr >> 29) * 0x9e3779b97f4a7c15ull;
}

static int read_made_up(void *arg, uint64_t addr, void *dst, size_t len)
{
	uint64_t word = made_up(addr);

	(void)arg;
	memcpy(dst, &word, len);
	return 0;
}

static struct row_regs made_up_regs(uint64_t seed)
{
	struct row_regs regs = { .known = (1ull << USER_REGS) - 1 };

	for (int i = 0; i < USER_REGS; i++)
		regs.value[i] = made_up(seed + (uint64_t)i);
	return regs;
}

static const int saved_numbers[SAVED_MAX] = { 3, 6, 12, 13, 14, 15, 16 };

/* @out is what the exact evaluation ended with, by @r: a row that says everything leads to the same. */
static void check_apply(const struct row *row, const struct row_regs *in, const struct row_regs *out, int r)
{
	struct row_regs by_row;

	for (int i = 0; i < SAVED_MAX; i++)
		if (row->saved[i] == ROW_OTHER)
			return;
	if (row->cfa == ROW_CFA_EXPR)
		return;
	assert_int_equal(row_apply(row, in, read_made_up, NULL, &by_row), r);
	for (int reg = 0; reg < USER_REGS && r == 0; reg++)
		if (out->known & by_row.known & 1ull << reg)
			assert_int_equal(by_row.value[reg], out->value[reg]);
	if (r == 0)
		assert_true((by_row.known & out->known & 1ull << REG_PC) && by_row.is_exact == out->is_exact);
}

/* What @row says must be what the exact evaluation of the same address says. */
static void check_row_against_eval(struct row_source *src, const struct row *row)
{
	struct row_regs in = made_up_regs(row->start), out;
	uint64_t sp = in.value[REG_SP], cfa;
	int r = row_eval(src, row->start, &in, read_made_up, NULL, &out);

	check_apply(row, &in, &out, r);
	if (row->cfa == ROW_CFA_NONE) {
		assert_int_equal(r, -ENOENT);
		return;
	}
	if (row->cfa == ROW_CFA_ROOT) {
		assert_int_equal(r, 1);
		return;
	}
	assert_int_equal(r, 0);
	assert_int_equal(out.is_exact, row->is_signal_frame);
	switch (row->cfa) {
	case ROW_CFA_REG:
		cfa = in.value[row->cfa_reg] + (uint64_t)(int64_t)row->cfa_off;
		break;
	case ROW_CFA_DEREF:
		cfa = made_up(in.value[row->cfa_reg] + (uint64_t)(int64_t)row->cfa_off) + (uint64_t)(int64_t)row->cfa_off2;
		break;
	case ROW_CFA_PLT:
		cfa = sp + 8 + ((in.value[REG_PC] & 15) >= (uint64_t)row->cfa_off ? 8 : 0);
		break;
	case ROW_CFA_SIGNAL:
		assert_int_equal(out.value[REG_PC], made_up(sp + 40 + 8 * REG_RIP));
		assert_int_equal(out.value[REG_SP], made_up(sp + 40 + 8 * REG_RSP));
		assert_int_equal(out.value[REG_FP], made_up(sp + 40 + 8 * REG_RBP));
		return;
	default:
		return;
	}
	assert_int_equal(out.value[REG_SP], cfa);
	for (int i = 0; i < SAVED_MAX; i++) {
		int reg = saved_numbers[i];

		if (row->saved[i] == ROW_SAME)
			assert_true(!(out.known >> reg & 1) || out.value[reg] == in.value[reg]);
		else if (row_is_at_fp(row->saved[i]))
			assert_int_equal(out.value[reg],
					 made_up(in.value[REG_FP] + (uint64_t)(int64_t)(row->saved[i] - ROW_AT_FP)));
		else if (row->saved[i] != ROW_OTHER)
			assert_int_equal(out.value[reg], made_up(cfa + (uint64_t)(int64_t)row->saved[i]));
	}
}

/* --- readelf --- */

static const char *const reg_names[USER_REGS] = { "rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp", "r8",
						  "r9",	 "r10", "r11", "r12", "r13", "r14", "r15", "ra" };

static int reg_by_name(const char *name)
{
	for (int i = 0; i < USER_REGS; i++)
		if (strcmp(name, reg_names[i]) == 0)
			return i;
	return -1;
}

/* One column of readelf's, as "c-16", "u", "s", "exp", "r10", against @saved. */
static bool is_same_rule(const char *text, int32_t saved)
{
	if (text[0] == 'c')
		return saved == (text[1] ? strtol(text + 1, NULL, 10) : 0);
	if (strcmp(text, "u") == 0 || strcmp(text, "s") == 0)
		return saved == ROW_SAME;
	return saved == ROW_OTHER || (row_is_at_fp(saved) && strcmp(text, "exp") == 0);
}

/* gcc's tables keep their expressions where a realigned frame is given back: at its lea and at its return. */
static bool is_given_back(const struct row *row, uint64_t to_end)
{
	return row->cfa == ROW_CFA_REG &&
	       ((row->cfa_reg == REG_SP && row->cfa_off == 8) ||
		(row->cfa_reg != REG_SP && row->cfa_reg != REG_FP && row->cfa_off == 0 && to_end <= 4));
}

struct truth {
	uint64_t start;
	int columns[USER_REGS + 2]; /* register of each column after the CFA, -1 unknown */
	int column_count;
	char text[USER_REGS + 2][16]; /* the CFA, then the columns */
};

static void split_header(char *line, struct truth *t)
{
	char *save = NULL;

	strtok_r(line, " \n", &save); /* LOC */
	strtok_r(NULL, " \n", &save); /* CFA */
	t->column_count = 0;
	for (char *word; (word = strtok_r(NULL, " \n", &save)) && t->column_count < USER_REGS;)
		t->columns[t->column_count++] = reg_by_name(word);
}

static void split_row(char *line, struct truth *t)
{
	char *save = NULL, *word = strtok_r(line, " \n", &save);

	t->start = strtoull(word, NULL, 16);
	for (int i = 0; i <= t->column_count; i++) {
		do {
			word = strtok_r(NULL, " \n", &save);
		} while (word && word[0] == '('); /* the second half of "r10 (r10)" */
		snprintf(t->text[i], sizeof(t->text[i]), "%s", word ? word : "?");
	}
}

/* The caller's rsp is not the CFA but stands in some other register, as in longjmp. */
static bool moves_rsp(const struct truth *t)
{
	for (int c = 0; c < t->column_count; c++)
		if (t->columns[c] == REG_SP && t->text[c + 1][0] != 'u')
			return true;
	return false;
}

/* Compares readelf's row with ours at its first and last byte. */
static void check_truth(struct row_source *src, const struct truth *t, uint64_t end)
{
	uint64_t at[] = { t->start, end - 1 };

	for (size_t i = 0; i < ARRAY_LEN(at); i++) {
		struct row row;
		size_t count;
		char cfa[32];
		bool is_root = false;

		assert_int_equal(rows_build(src, at[i], at[i] + 1, &row, 1, &count), 0);
		assert_int_equal(count, 1);
		assert_true(row.start == at[i] && row.end == at[i] + 1);
		check_row_against_eval(src, &row);
		if (row.cfa == ROW_CFA_NONE) /* a builder before knows better */
			continue;
		for (int c = 0; c < t->column_count; c++)
			is_root |= t->columns[c] == REG_PC && strcmp(t->text[c + 1], "u") == 0;
		assert_int_equal(is_root, row.cfa == ROW_CFA_ROOT);
		if (is_root)
			continue;
		snprintf(cfa, sizeof(cfa), "%s%+d", reg_names[row.cfa_reg], row.cfa_off);
		if (row.cfa == ROW_CFA_SIGNAL || row.cfa == ROW_CFA_EXPR) {
			assert_true(strcmp(t->text[0], "exp") == 0 || moves_rsp(t));
			continue;
		}
		assert_false(moves_rsp(t));
		assert_string_equal(row.cfa == ROW_CFA_REG ? cfa : "exp", t->text[0]);
		for (int c = 0; c < t->column_count; c++)
			for (int s = 0; s < SAVED_MAX; s++)
				if (t->columns[c] == saved_numbers[s])
					assert_true(is_same_rule(t->text[c + 1], row.saved[s]) ||
						    (strcmp(t->text[c + 1], "exp") == 0 && row.saved[s] == ROW_SAME &&
						     is_given_back(&row, end - at[i])));
	}
}

/* Every row of every function of @path. Returns how many. */
static size_t check_file(const char *path)
{
	AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
	AUTO_FREE char *line = NULL;
	struct row_source *src;
	struct truth last = { 0 };
	bool has_last = false;
	uint64_t fde_end = 0;
	size_t checked = 0, cap = 0;
	char command[512];
	FILE *f;

	assert_int_equal(row_source_new(fd, &src), 0);
	snprintf(command, sizeof(command), "LC_ALL=C readelf --debug-dump=frames-interp --wide '%s' 2>/dev/null", path);
	f = popen(command, "r");
	assert_non_null(f);
	while (getline(&line, &cap, f) > 0) {
		const char *pc = strstr(line, " FDE cie=") ? strstr(line, "pc=") : NULL;
		struct truth now = last;
		bool is_row = fde_end && line[0] != '\n' && strspn(line, "0123456789abcdef") == 16 && !strchr(line, '=') &&
			      !strstr(line, " CIE ") && !strstr(line, "ZERO");

		if (is_row)
			split_row(line, &now);
		if (has_last && !(is_row && now.start == last.start)) { /* of equal places the last line counts */
			uint64_t end = is_row ? now.start : fde_end;

			if (end > last.start) {
				check_truth(src, &last, end);
				checked++;
			}
		}
		has_last = is_row;
		if (is_row) {
			last = now;
		} else if (pc) {
			/* what starts at 0 is a function that the linker left out */
			fde_end = strtoull(pc + 3, NULL, 16) ? strtoull(strstr(pc, "..") + 2, NULL, 16) : 0;
		} else if (strstr(line, "LOC ")) {
			split_header(line, &last);
		} else {
			fde_end = 0;
		}
	}
	pclose(f);
	row_source_free(src);
	return checked;
}

#endif
