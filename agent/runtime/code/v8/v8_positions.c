/* SPDX-License-Identifier: Apache-2.0 */
/* The forms were taken from real tables: tests/v8/ compares the lines that they lead to with those of known programs. */
#include <string.h>

#include "agent/runtime/code/v8/v8_positions.h"
#include "base/varint.h"

enum {
	EXTERNAL = 1, /* bit: the position is not one of a script */
	OFFSET_SHIFT = 1,
	OFFSET_MASK = (1 << 30) - 1,
	INLINED_SHIFT = 31,
	INLINED_MASK = (1 << 16) - 1,
	INLINED_BYTES = 16,
};

struct v8_position v8_position_of(int64_t raw)
{
	if (raw & EXTERNAL)
		return (struct v8_position){ -1, -1 };
	return (struct v8_position){ (int32_t)(raw >> OFFSET_SHIFT & OFFSET_MASK) - 1,
				     (int32_t)(raw >> INLINED_SHIFT & INLINED_MASK) - 1 };
}

struct v8_positions v8_positions_begin(const uint8_t *bytes, size_t len, uint32_t flags)
{
	return (struct v8_positions){ .at = bytes, .end = len ? bytes + len : bytes, .flags = flags & 7 };
}

static int64_t zigzag(uint64_t value)
{
	return (int64_t)(value >> 1) ^ -(int64_t)(value & 1);
}

bool v8_positions_next(struct v8_positions *p)
{
	const uint8_t *at = p->at;
	uint64_t code, raw;
	int64_t step;

	if (at == p->end)
		return false;
	at = varint_read(at, p->end, &code);
	at = at ? varint_read(at, p->end, &raw) : NULL;
	if (!at) {
		p->at = p->end;
		return false;
	}
	p->at = at;
	step = p->flags ? (int64_t)(code >> p->flags) : zigzag(code);
	if (step < 0) /* an expression, not a statement */
		step = -(step + 1);
	p->code += step & INT32_MAX;
	p->raw = (int64_t)((uint64_t)p->raw + (uint64_t)zigzag(raw));
	p->position = v8_position_of(p->raw);
	return true;
}

bool v8_inlined_at(const uint8_t *bytes, size_t len, int32_t index, struct v8_inlined *ret)
{
	int64_t raw;

	if (index < 0 || (size_t)index >= len / INLINED_BYTES)
		return false;
	memcpy(&raw, bytes + (size_t)index * INLINED_BYTES, sizeof(raw));
	memcpy(&ret->function, bytes + (size_t)index * INLINED_BYTES + sizeof(raw), sizeof(ret->function));
	ret->call = v8_position_of(raw);
	return true;
}

/* The length of the bytecode at @at. The first four only say how wide the operands of the one behind them are: it has the
 * length of both. 0: it has none. */
static uint32_t bytecode_bytes(const struct v8_baseline *b, const uint8_t *at)
{
	enum { WIDE, EXTRA_WIDE, DEBUG_WIDE, DEBUG_EXTRA_WIDE };
	uint32_t scale = 0, prefix = 0;

	if (at < b->bytecode_end && *at <= DEBUG_EXTRA_WIDE) {
		scale = *at == WIDE || *at == DEBUG_WIDE ? 1 : 2;
		prefix = 1;
		at++;
	}
	if (at >= b->bytecode_end || *at >= b->length_cnt || !b->lengths[scale * b->length_cnt + *at])
		return 0;
	return prefix + b->lengths[scale * b->length_cnt + *at];
}

bool v8_baseline_next(struct v8_baseline *b)
{
	const uint8_t *at;
	uint64_t step;
	uint32_t len;

	if (b->has_begun) {
		len = bytecode_bytes(b, b->bytecode + b->offset);
		if (!len || len > (size_t)(b->bytecode_end - b->bytecode) - b->offset)
			return false;
		b->offset += len;
		if (b->bytecode + b->offset >= b->bytecode_end)
			return false;
	}
	at = varint_read(b->at, b->end, &step);
	if (!at)
		return false;
	b->at = at;
	b->code += (uint32_t)(step & INT32_MAX);
	b->has_begun = true;
	return true;
}
