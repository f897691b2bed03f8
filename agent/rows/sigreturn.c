/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The builder for the code that signal handlers return to, a rt_sigreturn system call and nothing else: no table says that
 * the kernel's signal frame stands there where it is in the vDSO of arm64 (taken out in 5.8) or in musl. The state is the
 * code's segments. One thread.
 */
#include <errno.h>
#include <string.h>

#include "agent/rows/code/starts.h"
#include "agent/rows/code/state.h"
#include "agent/cpu/cpu.h"
#include "agent/rows/row_builder.h"
#include "base/cleanup.h"

static const uint8_t sigreturn[] = CPU_SIGRETURN;

static int sigreturn_open(const struct row_image *image, void **ret)
{
	struct code_starts *starts;
	int r = code_starts_new(image, &starts);

	if (!r)
		*ret = starts;
	return r;
}

static bool is_sigreturn(const struct code_starts *starts, uint64_t addr)
{
	const uint8_t *code = code_starts_bytes(starts, addr, sizeof(sigreturn));

	return code && memcmp(code, sigreturn, sizeof(sigreturn)) == 0;
}

bool rows_sigreturn_is_at(const struct row_image *image, uint64_t addr)
{
	struct code_starts *starts;
	bool is_there;

	if (code_starts_new(image, &starts))
		return false;
	is_there = is_sigreturn(starts, addr);
	code_starts_free(starts);
	return is_there;
}

/*
 * Nobody calls it: it is found as a return address, so the byte before it is looked up, and the row begins there. But not
 * where a thread may stand at that byte: authors put a nop there, for this very reason.
 */
static uint64_t row_start(const struct code_starts *starts, uint64_t addr)
{
	const uint8_t *before = code_starts_bytes(starts, addr - 1, 1);

	return CPU_CODE_ALIGN > 1 || (before && (*before == CPU_NOP || *before == CPU_TRAP)) ? addr - 1 : addr;
}

/* A thread in the system call stands behind it: the row ends there, if that is padding. */
static uint64_t row_end(const struct code_starts *starts, uint64_t addr)
{
	uint64_t end = addr + sizeof(sigreturn);
	const uint8_t *behind = code_starts_bytes(starts, end, CPU_CODE_ALIGN);

	return behind && code_padding_bytes(behind, CPU_CODE_ALIGN) ? end + 1 : end;
}

/* The first address in [@at, @end) where it stands; @end: nowhere. */
static uint64_t next_sigreturn(const struct code_starts *starts, uint64_t at, uint64_t end)
{
	size_t len = end - at + sizeof(sigreturn) - 1;
	const uint8_t *code = code_starts_bytes(starts, at, len);
	const uint8_t *found = code ? memmem(code, len, sigreturn, sizeof(sigreturn)) : NULL;

	if (code)
		return found ? at + (uint64_t)(found - code) : end;
	while (at < end && !is_sigreturn(starts, at)) /* the code may end at the border of a segment */
		at++;
	return at;
}

static int sigreturn_build(void *state, uint64_t start, uint64_t end, struct row *rows, size_t max, size_t *count_ret)
{
	enum { AFTER = sizeof(sigreturn) + CPU_CODE_ALIGN, BEFORE = 1 };

	*count_ret = 0;
	for (uint64_t at = (start & -(uint64_t)CPU_CODE_ALIGN) - (start >= AFTER ? AFTER : 0);
	     (at = next_sigreturn(state, at, end + BEFORE)) < end + BEFORE; at++) {
		struct row row = { .cfa = ROW_CFA_SIGNAL, .is_signal_frame = true };

		if (!at || at % CPU_CODE_ALIGN)
			continue;
		row.start = row_start(state, at);
		row.end = row_end(state, at);
		if (row.end <= start || row.start >= end)
			continue;
		if (*count_ret == max)
			return -ENOSPC;
		row.start = row.start > start ? row.start : start;
		row.end = row.end < end ? row.end : end;
		rows[(*count_ret)++] = row;
	}
	return 0;
}

static void sigreturn_close(void *state)
{
	code_starts_free(state);
}

const struct row_builder rows_sigreturn = {
	.name = "signal return",
	.open = sigreturn_open,
	.build = sigreturn_build,
	.close = sigreturn_close,
};
