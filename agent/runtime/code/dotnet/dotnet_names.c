/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of .NET's methods: from a MethodDesc over its chunk and its class to the metadata of the image that has it. Methods
 * that the runtime or the program made at run time have a name of their own. Generic methods are named by their parameters,
 * so that one name stands for all of their instances.
 */
#include <errno.h>
#include <string.h>

#include "agent/runtime/code/dotnet/dotnet_state.h"

enum {
	DESC_CHUNK = 2,
	DESC_FLAGS = 6,
	DESC_DYNAMIC = 7, /* of the flags' lowest 3 bits */
	CHUNK_BYTES = 24,
	CHUNK_TOKEN = 18,
	CHUNK_ALIGN = 8,
	TOKEN_BITS = 24, /* of a method's number, the lower ones in the method, the upper ones in its chunk */
	TABLE_FLAGS = 8,
	TABLE_VIRTUALS = 12,
	TABLE_MODULE = 24,
	TABLE_CLASS = 40,
	SLOTS_BEFORE = 0x0f, /* has_slots: which of the slots before the one with a module there are */
	SLOT_SECOND = 0x02,  /* it stays in its place when it is alone */
	SLOT_MODULE = 0x10,
	SLOT_FIRST = 48,
	TABLE_BYTES = 64,
	VIRTUALS_PER_SLOT = 8,
};

/* An instance that was loaded for another module has its own one in one of the slots behind its table (methodtable.h,
 * MULTIPURPOSE_SLOT). */
static uint64_t module_by_slot(const struct dotnet_layout *l, struct code_memory *m, uint64_t table)
{
	uint64_t class = code_read_u64(m, table + TABLE_CLASS), at;
	uint32_t flags, before;

	if (class & l->shared_bit) /* not the class, but the table that all instances share */
		table = class & ~(uint64_t)l->shared_bit;
	flags = code_read_u16(m, table + TABLE_FLAGS);
	if (!(flags & SLOT_MODULE))
		return code_read_u64(m, table + TABLE_MODULE);
	flags &= SLOTS_BEFORE;
	before = flags == SLOT_SECOND ? 0 : (uint32_t)__builtin_popcount(flags);
	at = table + SLOT_FIRST + 8ull * before;
	if (before >= 2)
		at += 8ull * ((code_read_u16(m, table + TABLE_VIRTUALS) + VIRTUALS_PER_SLOT - 1u) / VIRTUALS_PER_SLOT);
	return code_read_u64(m, at);
}

static uint64_t module_of(const struct dotnet_layout *l, struct code_memory *m, uint64_t table)
{
	return l->has_slots ? module_by_slot(l, m, table) : code_read_u64(m, table + TABLE_MODULE);
}

static int dynamic_name(const struct dotnet_layout *l, struct code_memory *m, uint64_t method,
			char text[static DOTNET_MAX_NAME])
{
	static const char prefix[] = "[dynamic] ";
	size_t len = sizeof(prefix) - 1;

	memcpy(text, prefix, len);
	return code_read_text(m, code_read_u64(m, method + l->dynamic_name), text + len, DOTNET_MAX_NAME - len);
}

/* A method in its image. */
struct place {
	uint64_t base;
	uint32_t number; /* 0: it is in none */
};

static int method_name(const struct dotnet *s, struct code_memory *m, uint64_t method, char text[static DOTNET_MAX_NAME],
		       struct place *place)
{
	const struct dotnet_layout *l = dotnet_layout_of(s);
	uint64_t chunk = method - CHUNK_BYTES - CHUNK_ALIGN * code_read_u8(m, method + DESC_CHUNK), table, module;
	uint32_t low = code_read_u16(m, method) & ((1u << l->token_bits) - 1), high;

	if ((code_read_u16(m, method + DESC_FLAGS) & 7) == DESC_DYNAMIC)
		return dynamic_name(l, m, method, text);
	table = code_read_u64(m, chunk);
	high = code_read_u16(m, chunk + CHUNK_TOKEN) & ((1u << (TOKEN_BITS - l->token_bits)) - 1);
	module = table ? module_of(l, m, table) : 0;
	if (!module)
		return dotnet_unreadable(m, -EBADMSG);
	*place = (struct place){ dotnet_module_base(s, m, module), high << l->token_bits | low };
	return dotnet_metadata_name(m, place->base, place->number, text);
}

int dotnet_names(void *state, struct code_memory *m, const struct code_block *b, struct block_names *n)
{
	char text[DOTNET_MAX_NAME] = "[.NET stub]";
	struct place place = { 0 };
	uint16_t function;
	int error = 0;

	if (b->kind == DOTNET_NO_NAME)
		return -ENODATA;
	if (b->kind == DOTNET_METHOD)
		error = method_name(state, m, b->own[DOTNET_OWN_METHOD], text, &place);
	if (error)
		return error;
	if (place.number && !dotnet_lines(state, m, b, place.base, place.number, text, n))
		return 0;
	function = block_names_function(n, text, strlen(text), "", 0, 0);
	block_names_place(n, 0, block_names_scope(n, BLOCK_NAMES_NONE, function, 0), 0);
	return 0;
}
