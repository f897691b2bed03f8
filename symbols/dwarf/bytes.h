/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads numbers from untrusted bytes: every function checks the end first. For the readers of DWARF only, little-endian. A
 * run is never NULL, so that an empty one has an end too.
 */
#ifndef HEARTH_SYMBOLS_DWARF_BYTES_H
#define HEARTH_SYMBOLS_DWARF_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct dwarf_bytes {
	const uint8_t *data;
	size_t len;
};

#define DWARF_NO_BYTES ((struct dwarf_bytes){ (const uint8_t *)"", 0 })

/*
 * The bytes that may still be read, of all the files together. Sections that refer to each other can make a reader go over
 * the same bytes again and again.
 */
struct dwarf_budget {
	uint64_t left;
};

enum { DWARF_BUDGET_TIMES = 32 /* of the sections' bytes; a sound file takes less than ten */ };

/* Takes @bytes from the budget. False once nothing is left. */
static inline bool dwarf_spend(struct dwarf_budget *budget, uint64_t bytes)
{
	if (budget->left < bytes) {
		budget->left = 0;
		return false;
	}
	budget->left -= bytes;
	return true;
}

struct dwarf_cursor {
	const uint8_t *at, *end;
};

/* A cursor at @off; at the end of @bytes when @off lies outside. */
static inline struct dwarf_cursor dwarf_cursor_at(const struct dwarf_bytes *bytes, uint64_t off)
{
	const uint8_t *end = bytes->data + bytes->len;

	return (struct dwarf_cursor){ off < bytes->len ? bytes->data + off : end, end };
}

static inline size_t dwarf_left(const struct dwarf_cursor *c)
{
	return (size_t)(c->end - c->at);
}

/* A number of @bytes <= 8. False, and nothing is taken, at the end. */
static inline bool dwarf_take(struct dwarf_cursor *c, unsigned bytes, uint64_t *ret)
{
	uint32_t four;

	if (dwarf_left(c) < bytes)
		return false;
	switch (bytes) {
	case 1:
		*ret = *c->at;
		break;
	case 4:
		memcpy(&four, c->at, sizeof(four));
		*ret = four;
		break;
	case 8:
		memcpy(ret, c->at, sizeof(*ret));
		break;
	default:
		*ret = 0;
		for (unsigned i = 0; i < bytes; i++)
			*ret |= (uint64_t)c->at[i] << (8 * i);
	}
	c->at += bytes;
	return true;
}

static inline bool dwarf_skip(struct dwarf_cursor *c, uint64_t bytes)
{
	if (dwarf_left(c) < bytes)
		return false;
	c->at += bytes;
	return true;
}

/* Bits above the 64th are dropped. */
static inline bool dwarf_take_uleb(struct dwarf_cursor *c, uint64_t *ret)
{
	uint64_t value = 0;

	for (unsigned shift = 0; c->at < c->end; shift += 7) {
		uint8_t byte = *c->at++;

		if (shift < 64)
			value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80)) {
			*ret = value;
			return true;
		}
	}
	return false;
}

static inline bool dwarf_take_sleb(struct dwarf_cursor *c, uint64_t *ret)
{
	uint64_t value = 0;

	for (unsigned shift = 0; c->at < c->end;) {
		uint8_t byte = *c->at++;

		if (shift < 64)
			value |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
		if (!(byte & 0x80)) {
			if (byte & 0x40 && shift < 64)
				value |= ~0ull << shift;
			*ret = value;
			return true;
		}
	}
	return false;
}

static inline bool dwarf_skip_leb(struct dwarf_cursor *c)
{
	while (c->at < c->end)
		if (!(*c->at++ & 0x80))
			return true;
	return false;
}

/* Skips a text and the NUL that ends it. */
static inline bool dwarf_skip_string(struct dwarf_cursor *c)
{
	const uint8_t *nul = memchr(c->at, 0, dwarf_left(c));

	if (!nul)
		return false;
	c->at = nul + 1;
	return true;
}

#endif
