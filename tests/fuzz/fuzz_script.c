/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Objects of functions with any content, as a process may have them in its memory. The input is the runtime's layout (its
 * offsets, from the first bytes), then the record behind its head of times and sizes; the parts' lengths are made to fit,
 * unless the first byte's highest bit is set. The result must be a function whose bytes are the same when it is
 * written again, whose texts are sound UTF-8 without control characters, and whose lines are lines.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/runtime/object.h"
#include "base/cleanup.h"
#include "tests/fuzz/require.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { LIES = 0x80, LAYOUT_BYTES = 2 * CHAIN_OFFSETS };

/* The length of the character at @p, as UTF-8 has them (RFC 3629); 0: it is none. */
static size_t character(const uint8_t *p, size_t len)
{
	static const uint32_t lowest[] = { 0, 0, 0x80, 0x800, 0x10000 };
	size_t n = p[0] < 0x80 ? 1 : p[0] >> 5 == 6 ? 2 : p[0] >> 4 == 14 ? 3 : p[0] >> 3 == 30 ? 4 : 0;
	uint32_t c = n == 1 ? p[0] : p[0] & (0x7f >> n);

	if (!n || n > len)
		return 0;
	for (size_t i = 1; i < n; i++) {
		if (p[i] >> 6 != 2)
			return 0;
		c = c << 6 | (p[i] & 63);
	}
	return c >= lowest[n] && c <= 0x10ffff && (c < 0xd800 || c > 0xdfff) && c >= 0x20 && c != 0x7f ? n : 0;
}

static void check_text(const char *text, size_t len)
{
	for (size_t at = 0, n; at < len; at += n) {
		n = character((const uint8_t *)text + at, len - at);
		REQUIRE(n);
	}
}

static void check_script(const struct buf *content)
{
	struct buf again = BUF_EMPTY;
	struct script s;

	REQUIRE(script_open(content->data, content->len, &s) == 0);
	script_write(&s, &again);
	REQUIRE(again.len == content->len && !memcmp(again.data, content->data, again.len));
	buf_fini(&again);
	check_text(s.name, s.head.name_bytes);
	check_text(s.file, s.head.file_bytes);
	for (uint32_t i = 0; i < 64; i++) {
		static const uint32_t far[] = { UINT32_MAX, UINT32_MAX - 1, INT32_MAX, (uint32_t)INT32_MIN };

		REQUIRE(script_line(&s, i < 4 ? far[i] : s.head.code_offset + i * i - 16) <= INT32_MAX);
	}
	REQUIRE(script_open(content->data, content->len - 1, &s) != 0);
}

/* Makes the parts of @r fit into its size. */
static void tell_truth(struct object_record *r)
{
	uint32_t rest = r->hdr.size - (uint32_t)sizeof(*r);

	for (int i = 0; i < OBJECT_PARTS; i++) {
		if (r->part_bytes[i] > rest)
			r->part_bytes[i] = (uint16_t)rest;
		rest -= r->part_bytes[i];
	}
	r->runtime %= RUNTIME_ID_MAX;
}

/* Any bytes, as what the store of functions has. */
static void open_any(const uint8_t *data, size_t size)
{
	AUTO_FREE uint8_t *copy = malloc(size);
	struct script s;

	REQUIRE(copy);
	memcpy(copy, data, size);
	if (script_open(copy, size, &s) == 0)
		for (uint32_t place = 0; place < 8; place++)
			REQUIRE(script_line(&s, place * place + s.head.code_offset) <= INT32_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct chain_state layout = { .runtime = 0 };
	AUTO_FREE struct object_record *r = NULL;
	struct buf content = BUF_EMPTY;
	bool lies;

	if (size)
		open_any(data, size);
	if (size < 1 + LAYOUT_BYTES + sizeof(*r))
		return 0;
	lies = data[0] & LIES;
	memcpy(layout.offset, data + 1, LAYOUT_BYTES);
	data += 1 + LAYOUT_BYTES;
	size -= 1 + LAYOUT_BYTES;
	r = malloc(size); /* no byte behind the end can be read unseen */
	REQUIRE(r);
	memcpy(r, data, size);
	if (!lies || r->hdr.size > size) /* what the ring hands out is no longer than it says */
		r->hdr.size = (uint32_t)size;
	if (!lies)
		tell_truth(r);
	if (object_read(r, &layout, &content) == 0)
		check_script(&content);
	else
		REQUIRE(lies || !r->part_bytes[0] || r->runtime == RUNTIME_PERL); /* whose addresses have kinds */
	buf_fini(&content);
	return 0;
}
