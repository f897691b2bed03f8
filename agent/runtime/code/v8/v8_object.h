/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Objects in V8's heap. A word is a small integer (Smi: the high half of a word whose low half is 0) or a pointer to an
 * object, whose two low bits are 1 (or 3: a weak one). The first word of each object points to its map, which has its
 * instance type. The heap of pointers that are not compressed (node); one thread.
 */
#ifndef HEARTH_AGENT_RUNTIME_CODE_V8_V8_OBJECT_H
#define HEARTH_AGENT_RUNTIME_CODE_V8_V8_OBJECT_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/runtime/code/code_memory.h"
#include "agent/runtime/file/v8_layout.h"

struct buf;

enum {
	V8_NO_TYPE = 0xffff,
	V8_MAPS = 64, /* types kept, by map */
	V8_PAGE_BYTES = 4096,
	V8_NAME_CHARS = 512,
	V8_CONTAINER_CODE = 16, /* offset of CodeDataContainer::code (10.x) */
	V8_BASELINE_CODE = 8,	/* offset of BaselineData::baseline_code (9.x); the bytecode stands behind it */
	V8_BASELINE_BYTECODE = 16,
};

/* The heap during one request. */
struct v8_heap {
	const struct v8_layout *layout; /* borrowed */
	struct code_memory *memory;	/* borrowed */
	struct {
		uint64_t map;
		uint16_t type;
	} map[V8_MAPS];
	uint8_t page[V8_PAGE_BYTES];
};

/* A heap, to be freed; NULL: no memory. */
struct v8_heap *v8_heap_new(const struct v8_layout *layout, struct code_memory *memory);

/* Copies @len bytes at @addr. 0, -EFAULT or -EDQUOT. */
static inline int v8_copy(struct v8_heap *h, uint64_t addr, void *dst, size_t len)
{
	return code_read(h->memory, addr, dst, len);
}

/* The error of what could not be read: -EDQUOT once the budget is spent. */
static inline int v8_unreadable(const struct v8_heap *h)
{
	return h->memory->is_spent ? -EDQUOT : -EFAULT;
}

/* Is @word a pointer to an object (that may lie anywhere)? */
static inline bool v8_is_pointer(uint64_t word)
{
	return (word & 1) && word > V8_PAGE_BYTES && word < (1ULL << 56);
}

static inline bool v8_is_smi(uint64_t word)
{
	return !(word & UINT32_MAX);
}

static inline int32_t v8_smi(uint64_t word)
{
	return (int32_t)(word >> 32);
}

/* The address of the object that @word points to. */
static inline uint64_t v8_address(uint64_t word)
{
	return word & ~3ULL;
}

/* The instance type of the object @word; V8_NO_TYPE: it is no pointer, or cannot be read. */
uint16_t v8_type(struct v8_heap *h, uint64_t word);

/* The type of objects whose map is @map. */
uint16_t v8_map_type(struct v8_heap *h, uint64_t map);

/* The word @offset bytes behind the start of the object @word, or the one of 4 bytes. 0, -EFAULT or -EDQUOT. */
int v8_field(struct v8_heap *h, uint64_t word, uint32_t offset, uint64_t *ret);
int v8_field32(struct v8_heap *h, uint64_t word, uint32_t offset, uint32_t *ret);

/* Element @index of the array of words @word. 0; -EBADMSG: it has none; -EFAULT, -EDQUOT. */
int v8_element(struct v8_heap *h, uint64_t word, uint32_t index, uint64_t *ret);

/* Appends the content of the array of bytes @word, of at most @max bytes. 0; -EBADMSG, -EFAULT, -EDQUOT, -ENOMEM. */
int v8_bytes(struct v8_heap *h, uint64_t word, uint32_t max, struct buf *out);

/* Is @type one of strings? */
static inline bool v8_is_string(const struct v8_heap *h, uint16_t type)
{
	return type < h->layout->type.first_nonstring;
}

/* Appends the string @word, at most V8_NAME_CHARS of it, as UTF-8 (see script_text). 0; -EBADMSG: it is none; -EFAULT,
 * -EDQUOT. */
int v8_string(struct v8_heap *h, uint64_t word, struct buf *out);

/* A string whose characters lie in one run of memory. */
struct v8_text {
	uint64_t addr;
	uint32_t chars;
	uint32_t width; /* bytes of a character: 1 (Latin-1) or 2 (UTF-16) */
};

/* Finds the characters of the string @word. 0; -EBADMSG: it is none, or its characters do not lie in one run; -EFAULT,
 * -EDQUOT. */
int v8_text_of(struct v8_heap *h, uint64_t word, struct v8_text *ret);

#endif
