/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines from a portable PDB ("Portable PDB v1.0", docs/design/specs/PortablePdb-Metadata.md of dotnet/runtime): metadata of
 * its own form in a file. Of its tables two are read, the first ones: documents, and for each method of the image its
 * sequence points. Only what one method needs is read. No state.
 */
#include <errno.h>
#include <string.h>

#include "agent/runtime/code/dotnet/dotnet_state.h"
#include "base/vec.h"

enum {
	SIGNATURE = 0x424a5342, /* BSJB */
	DOCUMENT = 0x30,
	METHOD_DEBUG = 0x31,
	MAX_POINTS = 1 << 16,
	MAX_BLOB_BYTES = 1 << 20,
	MAX_LINE = 0xfeefee,
	MAX_PARTS = 256,
	BIG_HEAP = 1 << 16,
};

/* Heaps whose indexes may have 4 bytes. */
enum { STRINGS, GUIDS, BLOBS };

static uint32_t heap_bytes(const struct dotnet_pdb *p, int heap)
{
	return p->heaps >> heap & 1 ? 4 : 2;
}

static uint32_t document_bytes(const struct dotnet_pdb *p)
{
	return 2 * heap_bytes(p, BLOBS) + 2 * heap_bytes(p, GUIDS); /* name, hash; their kinds, the language */
}

static uint32_t reference_bytes(const struct dotnet_pdb *p)
{
	return p->document_cnt < BIG_HEAP ? 2 : 4;
}

static uint32_t value_at(const struct dotnet_pdb *p, uint64_t at, uint32_t bytes)
{
	return bytes == 2 ? code_read_u16(p->m, at) : code_read_u32(p->m, at);
}

int dotnet_pdb_open(struct code_memory *m, const uint8_t id[static CODE_NEED_ID], struct dotnet_pdb *ret)
{
	uint64_t tables, pdb, there;
	uint8_t own[CODE_NEED_ID];

	*ret = (struct dotnet_pdb){ .m = m };
	if (code_read_u32(m, 0) != SIGNATURE)
		return dotnet_unreadable(m, -EBADMSG);
	pdb = dotnet_metadata_stream(m, 0, "#Pdb");
	tables = dotnet_metadata_stream(m, 0, "#~");
	ret->blobs = dotnet_metadata_stream(m, 0, "#Blob");
	if (!pdb || !tables || !ret->blobs || code_read(m, pdb, own, sizeof(own)))
		return dotnet_unreadable(m, -EBADMSG);
	if (memcmp(own, id, sizeof(own)) != 0)
		return -ESTALE;
	ret->heaps = code_read_u8(m, tables + 6);
	there = code_read_u64(m, tables + 8);
	if (there & ((1ull << DOCUMENT) - 1)) /* tables of the image are told by the image alone */
		return -EBADMSG;
	tables += 24;
	if (there >> DOCUMENT & 1) {
		ret->document_cnt = code_read_u32(m, tables);
		tables += 4;
	}
	if (there >> METHOD_DEBUG & 1) {
		ret->method_cnt = code_read_u32(m, tables);
		tables += 4;
	}
	tables += 4 * (uint32_t)__builtin_popcountll(there >> METHOD_DEBUG >> 1);
	if (ret->document_cnt >> 24 || ret->method_cnt >> 24)
		return -EBADMSG;
	ret->documents = tables;
	ret->methods = tables + (uint64_t)ret->document_cnt * document_bytes(ret);
	return dotnet_unreadable(m, 0);
}

/* --- blobs --- */

/* A blob, or what is left of it. */
struct blob {
	const struct dotnet_pdb *p;
	uint64_t at, end;
	bool has_failed;
};

/* A number of 1, 2 or 4 bytes, the highest first; *@bits_ret: those that it has. */
static uint32_t compressed(struct blob *b, uint32_t *bits_ret)
{
	uint8_t first = b->at < b->end ? code_read_u8(b->p->m, b->at) : 0xff;
	uint32_t bytes = !(first & 0x80) ? 1 : !(first & 0x40) ? 2 : 4, value;

	if ((first & 0xe0) == 0xe0 || b->end - b->at < bytes) {
		b->has_failed = true;
		b->at = b->end;
		return 0;
	}
	value = bytes == 1 ? first : first & (bytes == 2 ? 0x3f : 0x1f);
	for (uint32_t i = 1; i < bytes; i++)
		value = value << 8 | code_read_u8(b->p->m, b->at + i);
	b->at += bytes;
	*bits_ret = bytes == 1 ? 7 : bytes == 2 ? 14 : 29;
	return value;
}

static uint32_t unsigned_number(struct blob *b)
{
	uint32_t bits;

	return compressed(b, &bits);
}

/* The sign is the lowest bit, as if it had been rotated there. */
static int32_t signed_number(struct blob *b)
{
	uint32_t bits = 7, value = compressed(b, &bits);

	return value & 1 ? (int32_t)(value >> 1) - (int32_t)(1u << (bits - 1)) : (int32_t)(value >> 1);
}

static struct blob open_blob(const struct dotnet_pdb *p, uint32_t index)
{
	uint64_t at = p->blobs + index;
	struct blob b = { p, at, at + 4, false };
	uint32_t bytes = unsigned_number(&b);

	b.has_failed |= bytes > MAX_BLOB_BYTES;
	b.end = b.has_failed ? b.at : b.at + bytes;
	return b;
}

/* --- sequence points --- */

/* Lines and columns of a point are told by how much they differ from the last visible one's. */
static int read_points(struct blob *b, uint32_t document, struct dotnet_points *ret)
{
	struct dotnet_point point = { .document = document };
	bool is_first = true, has_line = false;
	int64_t line = 0;
	uint32_t cap = 0;

	while (b->at < b->end && !b->has_failed && ret->count < MAX_POINTS) {
		uint32_t more = unsigned_number(b), lines;
		int32_t columns;

		if (!is_first && !more) {
			point.document = unsigned_number(b);
			continue;
		}
		point.il += more;
		is_first = false;
		lines = unsigned_number(b);
		columns = lines ? signed_number(b) : (int32_t)unsigned_number(b);
		point.line = 0;
		if (lines || columns) {
			line = has_line ? line + signed_number(b) : unsigned_number(b);
			(void)(has_line ? signed_number(b) : (int32_t)unsigned_number(b));
			has_line = true;
			if (line <= 0 || line >= MAX_LINE)
				return -EBADMSG;
			point.line = (uint32_t)line;
		}
		if (point.il > INT32_MAX || !point.document || point.document > b->p->document_cnt)
			return -EBADMSG;
		if (b->has_failed)
			break;
		if (vec_reach(&ret->points, &cap, ret->count))
			return -ENOMEM;
		ret->points[ret->count++] = point;
	}
	return b->has_failed || b->at < b->end ? -EBADMSG : 0;
}

int dotnet_pdb_points(const struct dotnet_pdb *p, uint32_t method, struct dotnet_points *ret)
{
	uint32_t reference = reference_bytes(p), document, index;
	struct blob b;
	uint64_t at;
	int error;

	*ret = (struct dotnet_points){ 0 };
	if (!method || method > p->method_cnt)
		return -EBADMSG;
	at = p->methods + (uint64_t)(method - 1) * (reference + heap_bytes(p, BLOBS));
	document = value_at(p, at, reference);
	index = value_at(p, at + reference, heap_bytes(p, BLOBS));
	if (!index)
		return dotnet_unreadable(p->m, -ENODATA);
	b = open_blob(p, index);
	(void)unsigned_number(&b); /* of its variables */
	if (!document)
		document = unsigned_number(&b);
	error = b.has_failed ? -EBADMSG : read_points(&b, document, ret);
	return error ? error : dotnet_unreadable(p->m, ret->count ? 0 : -ENODATA);
}

/* --- documents --- */

static size_t append(char path[static DOTNET_MAX_PATH], size_t len, char byte)
{
	if (len + 1 < DOTNET_MAX_PATH)
		path[len++] = byte;
	path[len] = '\0';
	return len;
}

/* A name is a character that separates, none being 0, and the parts, which are blobs. */
int dotnet_pdb_document(const struct dotnet_pdb *p, uint32_t document, char path[static DOTNET_MAX_PATH])
{
	size_t len = 0;
	struct blob b;
	char separator;

	path[0] = '\0';
	if (!document || document > p->document_cnt)
		return -EBADMSG;
	b = open_blob(p, value_at(p, p->documents + (uint64_t)(document - 1) * document_bytes(p), heap_bytes(p, BLOBS)));
	if (b.has_failed || b.at >= b.end)
		return dotnet_unreadable(p->m, -EBADMSG);
	separator = (char)code_read_u8(p->m, b.at++);
	if (separator & 0x80)
		return -EBADMSG;
	for (int i = 0; i < MAX_PARTS && b.at < b.end && !b.has_failed; i++) {
		struct blob part = open_blob(p, unsigned_number(&b));

		if (i && separator)
			len = append(path, len, separator);
		for (; part.at < part.end && len + 1 < DOTNET_MAX_PATH; part.at++)
			len = append(path, len, (char)code_read_u8(p->m, part.at));
		b.has_failed |= part.has_failed;
	}
	return b.has_failed || b.at < b.end || len + 1 >= DOTNET_MAX_PATH ? dotnet_unreadable(p->m, -EBADMSG)
									  : dotnet_unreadable(p->m, 0);
}
