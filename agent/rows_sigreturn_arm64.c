/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The builder for the code that signal handlers return to, `mov x8, #139; svc #0` in the vDSO or in a C library: no table
 * says that the kernel's signal frame stands there (the vDSO's own was taken out in 5.8). The state is the code's segments.
 * One thread.
 */
#include <errno.h>
#include <string.h>

#include "agent/code_starts.h"
#include "agent/row_builder.h"
#include "base/cleanup.h"

static const uint8_t sigreturn[] = { 0x68, 0x11, 0x80, 0xd2, 0x01, 0x00, 0x00, 0xd4 };

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

/* Nobody calls it: it is found as a return address, so the byte before it is looked up, and the row begins there. */
static int sigreturn_build(void *state, uint64_t start, uint64_t end, struct row *rows, size_t max, size_t *count_ret)
{
	enum { BEFORE = 1, AFTER = sizeof(sigreturn) };

	*count_ret = 0;
	for (uint64_t at = (start & ~3ull) - (start >= AFTER ? AFTER : 0); at < end + BEFORE; at += 4) {
		struct row row = { .start = at - BEFORE, .end = at + AFTER, .cfa = ROW_CFA_SIGNAL, .is_signal_frame = true };

		if (!at || !is_sigreturn(state, at) || row.end <= start || row.start >= end)
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
