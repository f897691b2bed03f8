/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The code heaps, and the blobs in them. A heap is cut into segments; its map has a byte for each: 0 where a block begins,
 * 255 where none is, else how far to go back at most (src/hotspot/share/memory/heap.cpp). A block has a header, then the
 * blob.
 */
#include <errno.h>
#include <string.h>

#include "agent/runtime/code/hotspot/hotspot_cpu.h"
#include "agent/runtime/code/hotspot/hotspot_state.h"
#include "base/cleanup.h"
#include "base/search.h"

/* --- fields --- */

static uint64_t number(const uint8_t *bytes, const struct hotspot_field_place *place)
{
	uint64_t value = 0;
	uint32_t unused = 64 - 8u * place->bytes;

	memcpy(&value, bytes, place->bytes);
	return place->is_signed ? (uint64_t)((int64_t)(value << unused) >> unused) : value;
}

uint64_t hotspot_get(const struct hotspot *s, enum hotspot_field f, const uint8_t *bytes, size_t len)
{
	const struct hotspot_field_place *place = &s->field[f];

	if (place->offset == NO_FIELD || place->offset + (size_t)place->bytes > len)
		return 0;
	return number(bytes + place->offset, place);
}

uint64_t hotspot_read(const struct hotspot *s, struct code_memory *m, enum hotspot_field f, uint64_t addr)
{
	const struct hotspot_field_place *place = &s->field[f];
	uint8_t bytes[8] = { 0 };

	if (place->offset == NO_FIELD || code_read(m, addr + place->offset, bytes, place->bytes))
		return 0;
	return number(bytes, place);
}

/* --- heaps --- */

static void read_heap(struct hotspot *s, struct code_memory *m, uint64_t heap)
{
	uint64_t memory = heap + s->field[F_HEAP_MEMORY].offset, segmap = heap + s->field[F_HEAP_SEGMAP].offset;
	struct hotspot_heap h = {
		.low = hotspot_read(s, m, F_SPACE_LOW, memory),
		.high = hotspot_read(s, m, F_SPACE_HIGH, memory),
		.reserved_low = hotspot_read(s, m, F_SPACE_LOW_BOUNDARY, memory),
		.reserved_high = hotspot_read(s, m, F_SPACE_HIGH_BOUNDARY, memory),
		.segmap = hotspot_read(s, m, F_SPACE_LOW, segmap),
		.segment_log2 = (uint32_t)hotspot_read(s, m, F_HEAP_SEGMENT_LOG2, heap),
	};

	if (!h.reserved_low)
		h.reserved_low = h.low;
	if (h.reserved_high < h.high)
		h.reserved_high = h.high;
	if (!heap || !h.low || !h.segmap || h.low >= h.high || h.reserved_low > h.low || h.segment_log2 < 4 ||
	    h.segment_log2 > 16 || h.reserved_high - h.reserved_low > 4ull << 30 || s->heap_cnt == CODE_RANGES)
		return;
	s->heaps[s->heap_cnt++] = h;
}

int hotspot_read_heaps(struct hotspot *s, struct code_memory *m)
{
	uint64_t array, data, count;

	s->heap_cnt = 0;
	if (s->variable[S_HEAP]) {
		read_heap(s, m, code_read_u64(m, s->variable[S_HEAP]));
	} else {
		array = code_read_u64(m, s->variable[S_HEAPS]);
		count = array ? hotspot_read(s, m, F_ARRAY_LENGTH, array) : 0;
		data = count ? hotspot_read(s, m, F_ARRAY_DATA, array) : 0;
		for (uint64_t i = 0; data && i < count && i < CODE_RANGES; i++)
			read_heap(s, m, code_read_u64(m, data + 8 * i));
	}
	if (m->is_spent)
		return -EDQUOT;
	return s->heap_cnt ? 0 : -EAGAIN;
}

int hotspot_ranges(void *state, struct code_memory *m, uint32_t given, struct code_range ranges[static CODE_RANGES])
{
	struct hotspot *s = state;
	int error = hotspot_read_heaps(s, m);

	(void)given;
	if (error)
		return error;
	for (uint32_t i = 0; i < s->heap_cnt; i++)
		ranges[i] = (struct code_range){ s->heaps[i].reserved_low, s->heaps[i].reserved_high };
	return (int)s->heap_cnt;
}

/* --- kinds of blobs --- */

static const struct {
	const char *part; /* of the name */
	enum blob_kind kind;
} kinds[] = {
	{ "native nmethod", BLOB_NATIVE },
	{ "nmethod", BLOB_NMETHOD },
	{ "Interpreter", BLOB_INTERPRETER },
	{ "vtable chunks", BLOB_FLAT },
	{ "InlineCacheBuffer", BLOB_FLAT },	    /* until 21; its code changes all the time, as does that of */
	{ "native signature handlers", BLOB_FLAT }, /* which come with new methods */
	{ "I2C/C2I adapters", BLOB_ADAPTERS },
	/* those that end a path of whom calls them: uncommon traps and all ways to throw */
	{ "UncommonTrap", BLOB_NO_RETURN },
	{ "throw", BLOB_NO_RETURN },
	{ "unwind_exception", BLOB_NO_RETURN },
	{ "forward_exception", BLOB_NO_RETURN },
	{ "handle_exception", BLOB_NO_RETURN },
	{ "predicate_failed", BLOB_NO_RETURN },
	{ "ExceptionBlob", BLOB_NO_RETURN },
	{ "eoptimiz", BLOB_NO_RETURN },
	{ "StubRoutines", BLOB_STUBS },
};

static enum blob_kind kind_of_name(struct hotspot *s, struct code_memory *m, uint64_t addr)
{
	enum blob_kind kind = BLOB_STUB;
	char name[96];

	for (uint32_t i = 0; i < s->blob_name_cnt; i++)
		if (s->blob_names[i].name == addr)
			return (enum blob_kind)s->blob_names[i].kind;
	if (code_read_text(m, addr, name, sizeof(name)))
		return kind;
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		if (!strstr(name, kinds[i].part))
			continue;
		kind = kinds[i].kind;
		break;
	}
	if (s->blob_name_cnt < MAX_BLOB_NAMES) {
		s->blob_names[s->blob_name_cnt].name = addr;
		s->blob_names[s->blob_name_cnt++].kind = kind;
	}
	return kind;
}

/* --- finding a blob --- */

static const struct hotspot_heap *heap_of(const struct hotspot *s, uint64_t pc)
{
	for (uint32_t i = 0; i < s->heap_cnt; i++)
		if (pc >= s->heaps[i].low && pc < s->heaps[i].high)
			return &s->heaps[i];
	return NULL;
}

/* The segment where the block of segment @i begins. 0, -ENOENT, -EFAULT, -EDQUOT. */
static int find_begin(struct code_memory *m, const struct hotspot_heap *heap, uint64_t i, uint64_t *ret)
{
	enum { WINDOW = 64, MAX_HOPS = 4096, FREE = 255 };
	uint64_t from = UINT64_MAX;
	uint8_t tags[WINDOW];

	for (int hops = 0; hops < MAX_HOPS; hops++) {
		uint8_t tag;

		if (from == UINT64_MAX || i < from) {
			from = i >= WINDOW - 1 ? i - (WINDOW - 1) : 0;
			if (code_read(m, heap->segmap + from, tags, i - from + 1))
				return m->is_spent ? -EDQUOT : -EFAULT;
		}
		tag = tags[i - from];
		if (tag == FREE)
			return -ENOENT;
		*ret = i;
		if (!tag)
			return 0;
		if (tag > i)
			return -EBADMSG;
		i -= tag;
	}
	return -EBADMSG;
}

/* The head of a blob, as it was read. */
struct head {
	const struct hotspot *s;
	uint8_t bytes[MAX_BLOB_HEAD];
	size_t len;
};

static uint64_t get(const struct head *h, enum hotspot_field f)
{
	return hotspot_get(h->s, f, h->bytes, h->len);
}

/* @base plus the offset in field @f; 0: there is no such field, or it says that there is none. */
static uint64_t at_offset(const struct head *h, uint64_t base, enum hotspot_field f)
{
	int64_t offset = (int64_t)get(h, f);

	return hotspot_has(h->s, f) && offset > 0 ? base + (uint64_t)offset : 0;
}

static uint64_t first_of(uint64_t a, uint64_t b)
{
	return a ? a : b;
}

/* Where the tables of a method stand: behind its code until 22, in memory of their own from 23 on. */
static void take_tables(const struct head *h, struct hotspot_blob *b)
{
	uint64_t a = b->addr, data = get(h, F_NM_IMMUTABLE_DATA);

	if (hotspot_has(h->s, F_NM_IMMUTABLE_DATA)) {
		b->pcs = at_offset(h, data, F_NM_PCS_OFFSET);
		b->pcs_end = b->scopes = at_offset(h, data, F_NM_SCOPES_OFFSET);
		b->scopes_end = data + get(h, F_NM_IMMUTABLE_SIZE);
		b->nul_checks = data + get(h, F_NM_NUL_CHECKS_OFFSET);
		b->nul_checks_end = b->handlers = data + get(h, F_NM_HANDLERS_OFFSET);
		b->handlers_end = b->pcs;
	} else {
		b->scopes = first_of(get(h, F_NM_SCOPES_BEGIN), at_offset(h, a, F_NM_SCOPES_OFFSET));
		b->scopes_end = b->pcs = at_offset(h, a, F_NM_PCS_OFFSET);
		b->pcs_end = at_offset(h, a, F_NM_DEPENDENCIES_OFFSET);
		b->handlers = at_offset(h, a, F_NM_HANDLERS_OFFSET);
		b->handlers_end = b->nul_checks = at_offset(h, a, F_NM_NUL_CHECKS_OFFSET);
		b->nul_checks_end = at_offset(h, a, F_NM_END_OFFSET);
	}
	if (hotspot_has(h->s,
			F_NM_METADATA_OFFSET)) { /* until 24 it ends where the scopes begin, or where the code of 23 does */
		b->metadata = at_offset(h, a, F_NM_METADATA_OFFSET);
		b->metadata_end = hotspot_has(h->s, F_NM_IMMUTABLE_DATA) ? a + get(h, F_BLOB_SIZE) : b->scopes;
	} else { /* behind the relocations */
		data = get(h, F_BLOB_MUTABLE_DATA);
		b->metadata = data + ((get(h, F_BLOB_RELOCATION_SIZE) + 7) & ~7ull);
		b->metadata_end = data + get(h, F_BLOB_MUTABLE_SIZE);
	}
}

static void take_method(const struct head *h, struct hotspot_blob *b)
{
	enum { NO_OSR = -1 }; /* InvocationEntryBci */
	uint64_t a = b->addr;

	b->method = get(h, F_NM_METHOD);
	b->compile_id = (uint32_t)get(h, F_NM_COMPILE_ID);
	b->entry_bci = (int32_t)get(h, F_NM_ENTRY_BCI);
	if (hotspot_has(h->s, F_NM_VERIFIED)) {
		b->entry = get(h, F_NM_ENTRY);
		b->verified = get(h, F_NM_VERIFIED);
	} else {
		b->entry = b->begin + get(h, F_NM_ENTRY_OFFSET);
		b->verified = b->begin + get(h, F_NM_VERIFIED_OFFSET);
	}
	b->osr = b->entry_bci != NO_OSR ? get(h, F_NM_OSR) : 0;
	b->exception = at_offset(h, a, F_NM_EXCEPTION_OFFSET);
	b->deopt = first_of(get(h, F_NM_DEOPT_BEGIN), at_offset(h, a, F_NM_DEOPT_OFFSET));
	b->deopt = first_of(b->deopt, at_offset(h, a, F_NM_DEOPT_ENTRY_OFFSET));
	b->deopt = first_of(b->deopt, at_offset(h, a, F_NM_DEOPTIMIZE_OFFSET));
	take_tables(h, b);
}

static int read_blob(struct hotspot *s, struct code_memory *m, uint64_t addr, struct hotspot_blob *b)
{
	struct head h = { .s = s, .len = s->type_bytes[T_NMETHOD] };
	int32_t words;
	uint64_t size;

	if (code_read(m, addr, h.bytes, h.len))
		return m->is_spent ? -EDQUOT : -EFAULT;
	*b = (struct hotspot_blob){ .addr = addr, .header = addr - s->type_bytes[T_HEAP_BLOCK] };
	b->name = get(&h, F_BLOB_NAME);
	b->kind = kind_of_name(s, m, b->name);
	size = get(&h, F_BLOB_SIZE);
	words = (int32_t)get(&h, F_BLOB_FRAME_SIZE);
	b->frame_bytes = words > 0 && words < 1 << 20 ? 8 * (uint32_t)words : 0;
	if (hotspot_has(s, F_BLOB_CODE_BEGIN)) {
		b->begin = get(&h, F_BLOB_CODE_BEGIN);
		b->end = get(&h, F_BLOB_CODE_END);
	} else {
		b->begin = addr + get(&h, F_BLOB_CODE_OFFSET);
		b->end = addr + get(&h, F_BLOB_DATA_OFFSET);
	}
	if (size > CODE_BLOCK_MAX_BYTES || b->begin < addr || b->end > addr + size || b->begin > b->end)
		return -EBADMSG;
	if (b->kind == BLOB_NMETHOD || b->kind == BLOB_NATIVE)
		take_method(&h, b);
	return 0;
}

int hotspot_find_blob(struct hotspot *s, struct code_memory *m, uint64_t pc, struct hotspot_blob *ret)
{
	const struct hotspot_heap *heap = heap_of(s, pc);
	uint64_t segment, header;
	int error;

	if (!heap) { /* it has grown, or a heap has come */
		error = hotspot_read_heaps(s, m);
		heap = error ? NULL : heap_of(s, pc);
	}
	if (!heap)
		return -ENOENT;
	error = find_begin(m, heap, (pc - heap->low) >> heap->segment_log2, &segment);
	if (error)
		return error;
	header = heap->low + (segment << heap->segment_log2);
	if (!hotspot_read(s, m, F_HEAP_BLOCK_USED, header))
		return m->is_spent ? -EDQUOT : -ENOENT;
	error = read_blob(s, m, header + s->type_bytes[T_HEAP_BLOCK], ret);
	return error ? error : pc >= ret->begin && pc < ret->end ? 0 : -ENOENT;
}

bool hotspot_never_returns(struct hotspot *s, struct code_memory *m, uint64_t target)
{
	struct hotspot_blob b;
	bool never;

	for (uint32_t i = 0; i < s->target_cnt; i++)
		if (target >= s->targets[i].start && target < s->targets[i].end)
			return s->targets[i].is_no_return;
	if (!heap_of(s, target) || hotspot_find_blob(s, m, target, &b))
		return false;
	never = b.kind == BLOB_NO_RETURN;
	/* Stubs of the runtime stay for ever; methods come and go, and all of them return. */
	if (b.kind != BLOB_NMETHOD && b.kind != BLOB_NATIVE && s->target_cnt < MAX_TARGETS) {
		s->targets[s->target_cnt].start = b.begin;
		s->targets[s->target_cnt].end = b.end;
		s->targets[s->target_cnt++].is_no_return = never;
	}
	return never;
}

/* --- blobs of many functions --- */

/* Reads where the interpreter's codelets are. They are made once, when the virtual machine starts. */
static int read_codelets(struct hotspot *s, struct code_memory *m)
{
	enum { ALIGN = HOTSPOT_CODELET_ALIGN, HEAD = 64 };
	uint64_t queue = code_read_u64(m, s->variable[S_INTERPRETER]), at, end, count, bytes = s->type_bytes[T_CODELET];

	if (!queue)
		return -ENOENT;
	at = hotspot_read(s, m, F_QUEUE_BUFFER, queue);
	end = at + hotspot_read(s, m, F_QUEUE_LIMIT, queue);
	count = hotspot_read(s, m, F_QUEUE_COUNT, queue);
	if (!at || end - at > CODE_BLOCK_MAX_BYTES || bytes > HEAD)
		return -EBADMSG;
	s->interpreter = at;
	s->codelet_cnt = 0;
	for (uint64_t i = 0; i < count && i < MAX_CODELETS && at < end; i++) {
		uint8_t head[HEAD];
		uint64_t size, code = (at + bytes + ALIGN - 1) / ALIGN * ALIGN;

		if (code_read(m, at, head, bytes))
			break;
		size = hotspot_get(s, F_CODELET_SIZE, head, bytes);
		if (size < bytes || size > end - at)
			break;
		s->codelets[s->codelet_cnt++] = (struct hotspot_codelet){
			.start = (uint32_t)(code - s->interpreter),
			.end = (uint32_t)(at + size - s->interpreter),
			.description = hotspot_get(s, F_CODELET_DESCRIPTION, head, bytes),
		};
		at += size;
	}
	s->interpreter_end = at;
	return m->is_spent ? -EDQUOT : s->codelet_cnt ? 0 : -EBADMSG;
}

uint32_t hotspot_find_codelet(const struct hotspot *s, uint64_t pc)
{
	uint64_t off = pc - s->interpreter;
	uint32_t behind;

	if (pc < s->interpreter || pc >= s->interpreter_end)
		return MAX_CODELETS;
	behind = search_first(at, s->codelet_cnt, s->codelets[at].start > off);
	return behind && off < s->codelets[behind - 1].end ? behind - 1 : MAX_CODELETS;
}

static int block_in_interpreter(struct hotspot *s, struct code_memory *m, uint64_t pc, struct code_block *ret)
{
	char description[96] = "";
	uint32_t i = hotspot_find_codelet(s, pc);
	int error = i == MAX_CODELETS ? read_codelets(s, m) : 0;

	if (error)
		return error;
	i = hotspot_find_codelet(s, pc);
	if (i == MAX_CODELETS)
		return -ENOENT;
	ret->start = s->interpreter + s->codelets[i].start;
	ret->end = s->interpreter + s->codelets[i].end;
	ret->own[OWN_NAME] = s->codelets[i].description;
	(void)code_read_text(m, ret->own[OWN_NAME], description, sizeof(description));
	/* from 21 on some begin with "native" */
	ret->own[OWN_IS_ENTRY] = strstr(description, "method entry point") != NULL;
	return 0;
}

/* Reads where the stubs begin that variables lead to. They are made when the virtual machine starts, some when the compilers
 * do. */
static void read_stubs(struct hotspot *s, struct code_memory *m)
{
	for (uint32_t i = 0; i < s->stub_var_cnt; i++)
		s->stubs[i].entry = code_read_u64(m, s->stubs[i].variable) - s->stubs[i].bytes_before;
	s->stub_cnt = s->stub_var_cnt;
	for (uint32_t i = 1; i < s->stub_cnt; i++) {
		typeof(s->stubs[0]) stub = s->stubs[i];
		uint32_t k = i;

		for (; k && s->stubs[k - 1].entry > stub.entry; k--)
			s->stubs[k] = s->stubs[k - 1];
		s->stubs[k] = stub;
	}
	s->call_stub_return = code_read_u64(m, s->variable[S_CALL_STUB_RETURN]);
}

/* A stub of a blob with many: from the last known entry up to @pc to the next one. */
static void block_in_stubs(struct hotspot *s, struct code_memory *m, uint64_t pc, struct code_block *ret)
{
	uint32_t behind;

	read_stubs(s, m);
	behind = search_first(at, s->stub_cnt, s->stubs[at].entry > pc);
	while (behind && s->stubs[behind - 1].entry == s->call_stub_return)
		behind--; /* within a stub */
	if (behind && s->stubs[behind - 1].entry > ret->start) {
		ret->start = s->stubs[behind - 1].entry;
		ret->own[OWN_NAME] = s->stubs[behind - 1].name;
	}
	while (behind < s->stub_cnt && (s->stubs[behind].entry <= pc || s->stubs[behind].entry == s->call_stub_return))
		behind++;
	if (behind < s->stub_cnt && s->stubs[behind].entry < ret->end)
		ret->end = s->stubs[behind].entry;
}

/* The 8 bytes at @addr whose @mask counts. */
static struct code_token token(struct code_memory *m, uint64_t addr, uint64_t mask)
{
	return (struct code_token){ addr, code_read_u64(m, addr) & mask, mask };
}

int hotspot_block(void *state, struct code_memory *m, uint64_t pc, struct code_block *ret)
{
	struct hotspot *s = state;
	struct hotspot_blob *b = &s->last;
	int error = hotspot_find_blob(s, m, pc, b);

	if (error)
		return error;
	*ret = (struct code_block){ .start = b->begin, .end = b->end, .kind = b->kind };
	ret->own[OWN_BLOB] = b->addr;
	ret->own[OWN_NAME] = b->name;
	if (b->kind == BLOB_INTERPRETER)
		error = block_in_interpreter(s, m, pc, ret);
	else if (b->kind == BLOB_STUBS)
		block_in_stubs(s, m, pc, ret);
	/* Memory of a freed block keeps its bytes but for this one; in memory that is used again a method has another
	 * number. */
	ret->tokens[0] = token(m, b->header + s->field[F_HEAP_BLOCK_USED].offset, 0xff);
	if (b->kind == BLOB_NMETHOD || b->kind == BLOB_NATIVE)
		ret->tokens[1] = token(m, b->addr + s->field[F_NM_COMPILE_ID].offset, UINT32_MAX);
	else
		ret->tokens[1] = token(m, b->addr + s->field[F_BLOB_NAME].offset, UINT64_MAX);
	return error ? error : m->is_spent ? -EDQUOT : 0;
}
