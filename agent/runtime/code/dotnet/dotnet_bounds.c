/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which of a method's instructions native code is of: what the compiler kept for debuggers (runtime/src/coreclr/vm/
 * debuginfostore.cpp), with the method's code, or in a section of an image that was compiled ahead. Numbers are of nibbles,
 * three bits each, the highest first; a nibble's fourth bit says that more follow (inc/nibblestream.h). Up to .NET 9 all
 * bounds are such numbers; from 10 on (ReadyToRun 16) each has the same number of bits. No state.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/runtime/code/dotnet/dotnet_state.h"
#include "base/cleanup.h"

enum {
	MAX_BLOB_BYTES = 1 << 20,
	MAX_BOUNDS = 1 << 17,
	MAX_SECTIONS = 64,
	HAS_PATCHPOINTS = 1, /* what stands before bounds, of code that may be replaced while it runs ... */
	HAS_RICH = 2,	     /* ... and of what some profilers ask for */
	PATCHPOINT_LOCALS = 8,
	MAX_LOCALS = 65536,
	IS_CALL = 0x10, /* a bound's flag: it is of a call within others' code, for profilers alone */
	IS_CALL_PACKED = 1,
	PACKED_FLAG_BITS = 2,
	READY_NATIVE = 64, /* in the head of .NET's part of an image: where ReadyToRun's is */
	READY_SIGNATURE = 0x00525452,
	READY_SECTIONS = 16,
	READY_SECTION_BYTES = 12,
	READY_DEBUG = 105, /* READYTORUN_SECTION_DEBUG_INFO */
	READY_PACKED = 16, /* the version from which on bounds are packed */
	ARRAY_BLOCK = 16,
};

/* --- numbers --- */

struct nibbles {
	const uint8_t *bytes;
	size_t count, at; /* of nibbles */
	bool has_failed;
};

static uint32_t number(struct nibbles *n)
{
	enum { MOST = 11 };
	uint32_t value = 0;

	for (int i = 0; i < MOST && n->at < n->count; i++) {
		uint32_t nibble = n->bytes[n->at / 2] >> (n->at % 2 ? 4 : 0) & 15;

		n->at++;
		value = value << 3 | (nibble & 7);
		if (!(nibble & 8))
			return value;
	}
	n->has_failed = true;
	return 0;
}

/* --- bounds --- */

/* Bounds that are calls are for profilers: the code around them is of another one. */
static void add(struct dotnet_bounds *b, uint32_t native, uint32_t biased, bool is_call)
{
	if (!is_call)
		b->bounds[b->count++] = (struct dotnet_bound){ native, (int32_t)(biased + (uint32_t)DOTNET_EPILOGUE) };
}

static int read_numbers(struct nibbles *n, uint32_t count, struct dotnet_bounds *ret)
{
	uint32_t native = 0;

	for (uint32_t i = 0; i < count; i++) {
		uint32_t more = number(n), il = number(n), flags = number(n);

		if (n->has_failed || more > CODE_BLOCK_MAX_BYTES || native > CODE_BLOCK_MAX_BYTES)
			return -EBADMSG;
		native += more;
		add(ret, native, il, flags & IS_CALL);
	}
	return 0;
}

static int read_packed(struct nibbles *n, uint32_t count, struct dotnet_bounds *ret)
{
	uint32_t native_bits = number(n) + 1, il_bits = number(n) + 1, bits = native_bits + il_bits + PACKED_FLAG_BITS;
	size_t at = (n->at + 1) / 2, have = 0;
	uint32_t native = 0;
	uint64_t word = 0;

	if (n->has_failed || native_bits > 32 || il_bits > 32 || bits > 56)
		return -EBADMSG;
	for (uint32_t i = 0; i < count; i++) {
		uint64_t more;

		for (; have < bits && at < n->count / 2; have += 8)
			word |= (uint64_t)n->bytes[at++] << have;
		more = word >> PACKED_FLAG_BITS & ((1ull << native_bits) - 1);
		if (have < bits || more > CODE_BLOCK_MAX_BYTES || native > CODE_BLOCK_MAX_BYTES)
			return -EBADMSG;
		native += (uint32_t)more;
		add(ret, native, (uint32_t)(word >> (PACKED_FLAG_BITS + native_bits) & ((1ull << il_bits) - 1)),
		    word & IS_CALL_PACKED);
		word >>= bits;
		have -= bits;
	}
	return 0;
}

/* Reads the bounds of @bytes bytes at @addr. */
static int read_bounds(struct code_memory *m, uint64_t addr, uint32_t bytes, bool is_packed, struct dotnet_bounds *ret)
{
	AUTO_FREE uint8_t *blob = bytes <= MAX_BLOB_BYTES ? malloc(bytes + 1ul) : NULL;
	struct nibbles n = { .bytes = blob, .count = 2ul * bytes };
	uint32_t count;
	int error;

	if (!blob)
		return bytes <= MAX_BLOB_BYTES ? -ENOMEM : -EBADMSG;
	error = code_read(m, addr, blob, bytes);
	if (error)
		return error;
	count = number(&n);
	if (n.has_failed || count > MAX_BOUNDS || count > 2 * bytes)
		return -EBADMSG;
	ret->bounds = calloc(count + 1ul, sizeof(*ret->bounds));
	if (!ret->bounds)
		return -ENOMEM;
	return is_packed ? read_packed(&n, count, ret) : read_numbers(&n, count, ret);
}

/* --- where they are --- */

/* Reads the head at @addr: how long bounds are, which follow it. */
static int read_head(struct code_memory *m, uint64_t addr, bool is_packed, struct dotnet_bounds *ret)
{
	enum { HEAD_BYTES = 24, HAS_INSTRUMENTED = -1 };
	uint8_t head[HEAD_BYTES] = { 0 };
	struct nibbles n = { .bytes = head };
	uint32_t bytes, plain = 0;

	while (n.count < 2 * HEAD_BYTES && !code_read(m, addr + n.count / 2, &head[n.count / 2], 1))
		n.count += 2;
	bytes = number(&n);
	if (is_packed && bytes == (uint32_t)HAS_INSTRUMENTED) { /* code that counts itself has those without that, too */
		bytes = number(&n);
		plain = number(&n);
	}
	(void)number(&n); /* of variables */
	if (n.has_failed || bytes > MAX_BLOB_BYTES)
		return dotnet_unreadable(m, -EBADMSG);
	if (plain)
		return read_bounds(m, addr + (n.at + 1) / 2 + bytes, plain, is_packed, ret);
	return bytes ? read_bounds(m, addr + (n.at + 1) / 2, bytes, is_packed, ret) : -ENODATA;
}

/* With the method's code. */
static int read_of_method(const struct dotnet_layout *l, struct code_memory *m, uint64_t addr, struct dotnet_bounds *ret)
{
	uint8_t flags = l->has_flags ? code_read_u8(m, addr++) : 0;

	if (flags & ~(HAS_PATCHPOINTS | HAS_RICH))
		return -EBADMSG;
	if (flags & HAS_PATCHPOINTS) {
		uint32_t locals = code_read_u32(m, addr + PATCHPOINT_LOCALS);

		if (locals > MAX_LOCALS)
			return -EBADMSG;
		addr += l->patch_bytes + 4 * locals;
	}
	if (flags & HAS_RICH)
		return -ENODATA; /* nobody asks for that but who debugs the compiler; how long it is differs */
	return read_head(m, addr, l->is_packed, ret);
}

/* A number of an image's arrays (vm/nativeformatreader.h); *@at goes behind it. */
static uint32_t array_number(struct code_memory *m, uint64_t *at)
{
	uint32_t first = code_read_u8(m, *at);
	uint64_t word = 0;
	int bytes = 1;

	while (bytes < 5 && first >> (bytes - 1) & 1)
		bytes++;
	if (bytes == 5) {
		*at += 5;
		return code_read_u32(m, *at - 4);
	}
	for (int i = 0; i < bytes; i++)
		word |= (uint64_t)code_read_u8(m, *at + (uint64_t)i) << 8 * i;
	*at += (uint64_t)bytes;
	return (uint32_t)(word >> bytes);
}

/* The element @index of the array at @at: sixteen of them are a tree, whose branches say which halves there are. 0: none. */
static uint64_t array_at(struct code_memory *m, uint64_t at, uint32_t index)
{
	uint32_t head = array_number(m, &at), block = index / ARRAY_BLOCK, step = 0;
	uint64_t element, next;

	if (index >= head >> 2)
		return 0;
	if ((head & 3) == 0)
		step = code_read_u8(m, at + block);
	else if ((head & 3) == 1)
		step = code_read_u16(m, at + 2ull * block);
	else
		step = code_read_u32(m, at + 4ull * block);
	element = at + step;
	for (uint32_t bit = ARRAY_BLOCK / 2; bit; bit /= 2) {
		uint32_t value;

		next = element;
		value = array_number(m, &next);
		if (index & bit && value & 2)
			element += value >> 2;
		else if (!(index & bit) && value & 1)
			element = next;
		else /* a leaf for one that is alone */
			return !(value & 3) && value >> 2 == index % ARRAY_BLOCK ? next : 0;
	}
	return element;
}

/* The address of the image's section with debug information, and the version of its form; 0: there is none. */
static uint64_t find_section(const struct dotnet_image *im, uint32_t *version)
{
	uint64_t head = dotnet_image_at(im, code_read_u32(im->m, im->clr + READY_NATIVE));
	uint32_t count = code_read_u32(im->m, head + READY_SECTIONS - 4);

	if (code_read_u32(im->m, head) != READY_SIGNATURE)
		return 0;
	*version = code_read_u16(im->m, head + 4);
	for (uint32_t i = 0; i < count && i < MAX_SECTIONS; i++) {
		uint64_t at = head + READY_SECTIONS + i * READY_SECTION_BYTES;

		if (code_read_u32(im->m, at) == READY_DEBUG)
			return dotnet_image_at(im, code_read_u32(im->m, at + 4));
	}
	return 0;
}

/* In an image: the element of an entry says how far before it the information is, or else is followed by that. Handlers have
 * none of their own: the last entry before them that has is their method's. */
static int read_of_image(struct code_memory *m, const struct code_block *b, struct dotnet_bounds *ret)
{
	uint32_t version = 0, back;
	uint64_t array, at, from;
	struct dotnet_image im;
	int error = dotnet_image_open(m, b->own[DOTNET_OWN_IMAGE], &im);

	if (error)
		return error;
	array = find_section(&im, &version);
	from = array && version <= READY_PACKED ? array_at(m, array, (uint32_t)b->own[DOTNET_OWN_ENTRY]) : 0;
	if (!from)
		return dotnet_unreadable(m, -ENODATA);
	at = from;
	back = array_number(m, &at);
	return read_head(m, back ? from - back : at, version >= READY_PACKED, ret);
}

int dotnet_bounds_read(const struct dotnet *s, struct code_memory *m, const struct code_block *b, struct dotnet_bounds *ret)
{
	int error = -ENODATA;

	*ret = (struct dotnet_bounds){ 0 };
	if (b->own[DOTNET_OWN_DEBUG])
		error = read_of_method(dotnet_layout_of(s), m, b->own[DOTNET_OWN_DEBUG], ret);
	else if (b->own[DOTNET_OWN_IMAGE])
		error = read_of_image(m, b, ret);
	return error ? error : ret->count ? dotnet_unreadable(m, 0) : -ENODATA;
}
