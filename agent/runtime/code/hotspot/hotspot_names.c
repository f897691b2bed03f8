/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions, files and lines. A compiled method has a description (PcDesc) for each address where the virtual machine may
 * look at its frame, mostly behind calls, and there the scopes: the method that runs, the place in its bytecodes, and the
 * method that it was inlined into (src/hotspot/share/code/{pcDesc,debugInfo}.hpp). Between two such addresses the next one's
 * scopes are told, as inexact. A method's own names stand in its ConstMethod and ConstantPool, its lines behind the
 * bytecodes.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/runtime/code/hotspot/hotspot_cpu.h"
#include "agent/runtime/code/hotspot/hotspot_state.h"
#include "base/cleanup.h"
#include "base/map.h"
#include "base/search.h"
#include "base/vec.h"

enum {
	MAX_TABLE_BYTES = 1 << 20,
	MAX_SYMBOL_BYTES = 1000,
	MAX_LINES = 65536,
	MAX_DEPTH = 64,
	HAS_LINES = 1, /* ConstMethod's flag, the same in all versions */
};

/* --- methods --- */

struct line {
	uint32_t bci, line;
};

struct method {
	uint64_t addr;
	uint16_t function; /* in the block's names */
	uint64_t const_method, pool;
	uint64_t bytecodes, bytecode_bytes;
	struct line *lines; /* owned */
	uint32_t line_cnt, line_cap;
	struct method *next;
};

struct naming {
	struct hotspot *s;
	struct code_memory *m;
	struct block_names *names;
	struct map methods; /* address -> struct method */
	struct method *list;
	struct map scopes; /* offset + 1 in the scopes' data -> number + 1 */
	const uint8_t *data;
	size_t data_bytes;
	const uint64_t *metadata;
	size_t metadata_cnt;
};

/* A number as HotSpot packs them (UNSIGNED5, src/hotspot/share/utilities/unsigned5.hpp): up to 5 bytes of 6 bits each, the
 * last one at most 191 (or 192, before 20, when a byte of 0 was one, too). False: there is none. */
static bool read_packed(const struct hotspot *s, const uint8_t *bytes, size_t len, size_t *at, uint32_t *ret)
{
	const uint32_t excluded = s->major >= 20 ? 1 : 0, low = 256 - excluded - 64;
	uint64_t sum = 0;

	for (int i = 0; i < 5 && *at < len; i++) {
		uint32_t b = bytes[(*at)++];

		if (b < excluded)
			return false;
		sum += (uint64_t)(b - excluded) << (6 * i);
		if (b < excluded + low || i == 4) {
			*ret = (uint32_t)sum;
			return true;
		}
	}
	return false;
}

/* The text of the Symbol at @addr in @text. Its length; 0: there is none of sense. */
static size_t read_symbol(struct naming *n, uint64_t addr, char text[MAX_SYMBOL_BYTES])
{
	uint64_t len = addr ? hotspot_read(n->s, n->m, F_SYMBOL_LENGTH, addr) : 0;

	if (len > MAX_SYMBOL_BYTES)
		len = MAX_SYMBOL_BYTES;
	return len && !code_read(n->m, addr + n->s->field[F_SYMBOL_BODY].offset, text, len) ? len : 0;
}

/* The address of entry @index of the constant pool, a Symbol. */
static uint64_t pool_entry(struct naming *n, uint64_t pool, uint64_t index)
{
	uint64_t length = hotspot_read(n->s, n->m, F_POOL_LENGTH, pool);

	if (!index || (hotspot_has(n->s, F_POOL_LENGTH) && index >= length))
		return 0;
	return code_read_u64(n->m, pool + n->s->type_bytes[T_CONSTANT_POOL] + 8 * index) & ~1ull; /* bit 0: not resolved */
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/*
 * Writes the class's name for people: dots for slashes. The name of a class that the virtual machine made itself ends with
 * an address (`/0x0000...` or `+0x...`), and may have a number that counts such classes; both differ each time the program
 * runs.
 */
static void put_class(struct buf *out, const char *name, size_t len)
{
	static const char lambda[] = "$$Lambda";
	size_t at = 0, end = len;

	for (size_t i = 0; i + 2 < len; i++) {
		if ((name[i] == '/' || name[i] == '+') && name[i + 1] == '0' && name[i + 2] == 'x')
			end = i;
	}
	for (size_t i = 0; i + sizeof(lambda) - 1 <= end; i++)
		if (memcmp(name + i, lambda, sizeof(lambda) - 1) == 0)
			at = i + sizeof(lambda) - 1;
	if (at && at < end && name[at] == '$' && is_digit(name[end - 1]))
		end = at;
	for (size_t i = 0; i < end; i++)
		buf_putc(out, name[i] == '/' ? '.' : name[i]);
}

static int compare_lines(const void *a, const void *b)
{
	const struct line *x = a, *y = b;

	return x->bci < y->bci ? -1 : x->bci > y->bci;
}

/* The lines: pairs of differences, both in one byte (5 bits of bci, 3 of line) or, behind 0xff, packed with a sign; 0 ends
 * (src/hotspot/share/oops/method.cpp, CompressedLineNumberReadStream). */
static void parse_lines(const struct hotspot *s, struct method *me, const uint8_t *bytes, size_t len)
{
	uint32_t bci = 0, line = 0, a, b;

	for (size_t at = 0; at < len && bytes[at] && me->line_cnt < MAX_LINES;) {
		if (bytes[at] == 0xff) {
			at++;
			if (!read_packed(s, bytes, len, &at, &a) || !read_packed(s, bytes, len, &at, &b))
				break;
			bci += (a >> 1) ^ -(a & 1);
			line += (b >> 1) ^ -(b & 1);
		} else {
			bci += bytes[at] >> 3;
			line += bytes[at++] & 7;
		}
		if (vec_reach(&me->lines, &me->line_cap, me->line_cnt))
			break;
		me->lines[me->line_cnt++] = (struct line){ bci, line };
	}
	if (me->line_cnt)
		qsort(me->lines, me->line_cnt, sizeof(*me->lines), compare_lines);
}

static void read_lines(struct naming *n, struct method *me, uint64_t flags, uint64_t whole_bytes)
{
	uint64_t from = me->bytecodes + me->bytecode_bytes, bytes = me->const_method + whole_bytes - from;
	AUTO_FREE uint8_t *table = NULL;

	if (!(flags & HAS_LINES) || from > me->const_method + whole_bytes || bytes > MAX_TABLE_BYTES)
		return;
	table = malloc(bytes + 1);
	if (table && !code_read(n->m, from, table, bytes))
		parse_lines(n->s, me, table, bytes);
}

/* The line of @bci; 0: not known. */
static uint32_t line_of(const struct method *me, int64_t bci)
{
	uint32_t behind = bci < 0 ? 0 : search_first(at, me->line_cnt, me->lines[at].bci > (uint64_t)bci);

	return behind ? me->lines[behind - 1].line : 0;
}

static uint32_t first_line(const struct method *me)
{
	uint32_t least = 0;

	for (uint32_t i = 0; i < me->line_cnt; i++)
		if (!least || me->lines[i].line < least)
			least = me->lines[i].line;
	return least;
}

/* Reads what @me's structures say. 0; -EBADMSG: they make no sense. */
static int read_method(struct naming *n, struct method *me)
{
	char class[MAX_SYMBOL_BYTES], name[MAX_SYMBOL_BYTES], file[MAX_SYMBOL_BYTES];
	size_t class_bytes, name_bytes, file_bytes, head_bytes = n->s->type_bytes[T_CONST_METHOD];
	uint64_t holder, whole_bytes, file_index, flags;
	AUTO(buf_fini) struct buf text = BUF_EMPTY;
	uint8_t head[MAX_BLOB_HEAD];

	me->const_method = hotspot_read(n->s, n->m, F_METHOD_CONST, me->addr);
	if (!me->const_method || code_read(n->m, me->const_method, head, head_bytes))
		return -EBADMSG;
	me->pool = hotspot_get(n->s, F_CONST_POOL, head, head_bytes);
	me->bytecodes = me->const_method + head_bytes;
	me->bytecode_bytes = hotspot_get(n->s, F_CONST_CODE_SIZE, head, head_bytes);
	whole_bytes = 8 * (hotspot_get(n->s, F_CONST_SIZE, head, head_bytes) & UINT32_MAX);
	flags = hotspot_get(n->s, hotspot_has(n->s, F_CONST_FLAGS_FLAGS) ? F_CONST_FLAGS_FLAGS : F_CONST_FLAGS, head,
			    head_bytes);
	holder = me->pool ? hotspot_read(n->s, n->m, F_POOL_HOLDER, me->pool) : 0;
	if (!holder || head_bytes + me->bytecode_bytes > whole_bytes)
		return -EBADMSG;
	class_bytes = read_symbol(n, hotspot_read(n->s, n->m, F_KLASS_NAME, holder), class);
	name_bytes = read_symbol(n, pool_entry(n, me->pool, hotspot_get(n->s, F_CONST_NAME, head, head_bytes)), name);
	if (!class_bytes || !name_bytes)
		return -EBADMSG;
	file_index = hotspot_has(n->s, F_POOL_FILE) ? hotspot_read(n->s, n->m, F_POOL_FILE, me->pool)
						    : hotspot_read(n->s, n->m, F_CLASS_FILE, holder);
	file_bytes = file_index ? read_symbol(n, pool_entry(n, me->pool, file_index), file) : 0;
	read_lines(n, me, flags, whole_bytes);
	put_class(&text, class, class_bytes);
	buf_putc(&text, '.');
	buf_append(&text, name, name_bytes);
	if (text.failed)
		return -ENOMEM;
	me->function = block_names_function(n->names, (const char *)text.data, text.len, file, file_bytes, first_line(me));
	return 0;
}

/* The method at @addr; NULL: it makes no sense, or there is no memory. */
static const struct method *find_method(struct naming *n, uint64_t addr)
{
	struct method *me = addr ? map_get(&n->methods, addr) : NULL;

	if (me || !addr)
		return me && me->function != BLOCK_NAMES_NONE ? me : NULL;
	me = calloc(1, sizeof(*me));
	if (!me)
		return NULL;
	me->addr = addr;
	me->next = n->list;
	n->list = me;
	if (read_method(n, me))
		me->function = BLOCK_NAMES_NONE;
	(void)map_put(&n->methods, addr, me);
	return me->function != BLOCK_NAMES_NONE ? me : NULL;
}

static void fini_naming(struct naming *n)
{
	while (n->list) {
		struct method *me = n->list;

		n->list = me->next;
		free(me->lines);
		free(me);
	}
	map_fini(&n->methods);
	map_fini(&n->scopes);
}

/* --- compiled methods --- */

/* The scope at @offset in the scopes' data, with those around it. A scope stands behind the one that it is inlined into. */
static uint16_t find_scope(struct naming *n, uint32_t offset, int depth)
{
	uintptr_t known = (uintptr_t)map_get(&n->scopes, offset + 1ull);
	uint32_t sender, method, bci;
	uint16_t parent = BLOCK_NAMES_NONE, scope;
	const struct method *me;
	size_t at = offset;

	if (known)
		return (uint16_t)(known - 1);
	if (!offset || !read_packed(n->s, n->data, n->data_bytes, &at, &sender) ||
	    !read_packed(n->s, n->data, n->data_bytes, &at, &method) ||
	    !read_packed(n->s, n->data, n->data_bytes, &at, &bci))
		return BLOCK_NAMES_NONE;
	me = method && method <= n->metadata_cnt ? find_method(n, n->metadata[method - 1]) : NULL;
	if (!me || (sender && (sender >= offset || depth >= MAX_DEPTH)))
		return BLOCK_NAMES_NONE;
	if (sender) {
		parent = find_scope(n, sender, depth + 1);
		if (parent == BLOCK_NAMES_NONE)
			return BLOCK_NAMES_NONE;
	}
	scope = block_names_scope(n->names, parent, me->function, line_of(me, (int64_t)bci - 1));
	(void)map_put(&n->scopes, offset + 1ull, (void *)((uintptr_t)scope + 1)); /* without memory it is read again */
	return scope;
}

/* Reads the table [@start, @end) of the process into memory of its own. 0 or -errno; *@ret is NULL where it is empty. */
static int read_table(struct naming *n, uint64_t start, uint64_t end, void *ret, size_t *bytes_ret)
{
	void **bytes = ret;

	*bytes_ret = 0;
	if (!start || end <= start)
		return 0;
	if (end - start > MAX_TABLE_BYTES)
		return -EBADMSG;
	*bytes = malloc(end - start);
	if (!*bytes)
		return -ENOMEM;
	*bytes_ret = end - start;
	return code_read(n->m, start, *bytes, end - start);
}

/* Tells the places that the descriptions @pcs have. */
static void tell_places(struct naming *n, const uint8_t *pcs, size_t bytes, uint32_t code_bytes)
{
	const size_t one = n->s->type_bytes[T_PC_DESC];
	uint32_t from = 0;

	for (size_t at = 0; at + one <= bytes; at += one) {
		int32_t offset, decode;

		memcpy(&offset, pcs + at,
		       sizeof(offset)); /* _pc_offset and _scope_decode_offset come first in all versions */
		memcpy(&decode, pcs + at + sizeof(offset), sizeof(decode));
		if (offset <= 0 || (uint32_t)offset <= from || (uint32_t)offset > code_bytes)
			continue;
		block_names_place(n->names, from, decode > 0 ? find_scope(n, (uint32_t)decode, 0) : BLOCK_NAMES_NONE,
				  BLOCK_PLACE_INEXACT | BLOCK_PLACE_EXACT_CALLS);
		from = (uint32_t)offset;
	}
	block_names_place(n->names, from, BLOCK_NAMES_NONE, 0);
}

/* Where no scope is told the code is still the method's. */
static void fill_places(struct naming *n, const struct hotspot_blob *b)
{
	const struct method *me = find_method(n, b->method);
	uint16_t whole = me ? block_names_scope(n->names, BLOCK_NAMES_NONE, me->function, 0) : BLOCK_NAMES_NONE;

	block_names_fill(n->names, whole);
}

static int name_method(struct naming *n, const struct hotspot_blob *b)
{
	AUTO_FREE uint8_t *data = NULL;
	AUTO_FREE uint64_t *metadata = NULL;
	AUTO_FREE uint8_t *pcs = NULL;
	size_t metadata_bytes, pcs_bytes;
	int error = read_table(n, b->scopes, b->scopes_end, &data, &n->data_bytes);

	if (!error)
		error = read_table(n, b->metadata, b->metadata_end, &metadata, &metadata_bytes);
	if (!error)
		error = read_table(n, b->pcs, b->pcs_end, &pcs, &pcs_bytes);
	if (error)
		return error;
	n->data = data;
	n->metadata = metadata;
	n->metadata_cnt = metadata_bytes / sizeof(*metadata);
	tell_places(n, pcs, pcs_bytes, (uint32_t)(b->end - b->begin));
	fill_places(n, b);
	return 0;
}

static void name_native(struct naming *n, const struct hotspot_blob *b)
{
	block_names_place(n->names, 0, BLOCK_NAMES_NONE, 0);
	fill_places(n, b);
}

/* --- the virtual machine's own code --- */

/* Code at the return barrier stands for the frames of a virtual thread that are in the heap: for a return to it, which is
 * looked up one byte before it, and until it has brought some. */
static void name_barrier(struct naming *n, const struct code_block *b)
{
	static const char name[] = "[frames in the heap]";
	uint64_t len = b->end - b->start, at;
	AUTO_FREE uint8_t *code = NULL;
	uint16_t function;
	uint32_t bytes;

	if (b->kind != BLOB_STUBS || b->end < b->start || len > CODE_BLOCK_MAX_BYTES)
		return;
	code = malloc(len);
	if (!code || code_read(n->m, b->start, code, len))
		return;
	at = hotspot_find_barrier(code, len, 0, &bytes);
	if (!at || at == len)
		return;
	function = block_names_function(n->names, name, sizeof(name) - 1, "", 0, 0);
	block_names_place(n->names, (uint32_t)at - 1, block_names_scope(n->names, BLOCK_NAMES_NONE, function, 0), 0);
}

/* `_jbyte_arraycopy` of StubRoutines, "method entry point (kind = native)" of the interpreter. */
static void name_stub(struct naming *n, const struct code_block *b)
{
	const char *prefix = b->kind == BLOB_INTERPRETER	   ? "[interpreter] "
			     : b->own[OWN_NAME] != n->s->last.name ? "StubRoutines::"
								   : "";
	AUTO(buf_fini) struct buf text = BUF_EMPTY;
	char name[96] = "", *begin = name;
	uint16_t function;

	if (code_read_text(n->m, b->own[OWN_NAME], name, sizeof(name)))
		return;
	if (*prefix == 'S' && *begin == '_')
		begin++;
	buf_puts(&text, prefix);
	buf_puts(&text, begin);
	if (text.failed)
		return;
	function = block_names_function(n->names, (const char *)text.data, text.len, "", 0, 0);
	block_names_place(n->names, 0, block_names_scope(n->names, BLOCK_NAMES_NONE, function, 0), 0);
	name_barrier(n, b);
}

int hotspot_names(void *state, struct code_memory *m, const struct code_block *b, struct block_names *names)
{
	struct naming n = { .s = state, .m = m, .names = names };
	struct hotspot_blob blob;
	int error = 0;

	if (n.s->last.addr != b->own[OWN_BLOB])
		error = hotspot_find_blob(n.s, m, b->start, &n.s->last);
	if (error)
		return error;
	blob = n.s->last;
	if (blob.kind == BLOB_NMETHOD)
		error = name_method(&n, &blob);
	else if (blob.kind == BLOB_NATIVE)
		name_native(&n, &blob);
	else
		name_stub(&n, b);
	fini_naming(&n);
	return error ? error : m->is_spent ? -EDQUOT : 0;
}

/* --- interpreted methods --- */

static void tell_lines(struct naming *n, const struct method *me)
{
	block_names_place(n->names, 0, block_names_scope(n->names, BLOCK_NAMES_NONE, me->function, line_of(me, 0)), 0);
	for (uint32_t i = 0; i < me->line_cnt; i++)
		block_names_place(n->names, me->lines[i].bci,
				  block_names_scope(n->names, BLOCK_NAMES_NONE, me->function, me->lines[i].line), 0);
}

/* Words: the Method*, and where it is in its bytecodes. */
int hotspot_function(void *state, struct code_memory *m, uint32_t capture, const uint64_t words[static CODE_CAPTURE_WORDS],
		     struct captured_function *ret, struct block_names *names)
{
	struct naming n = { .s = state, .m = m, .names = names };
	const struct method *me = find_method(&n, words[0]);
	int error = me ? 0 : -EBADMSG;

	if (me) {
		tell_lines(&n, me);
		*ret = (struct captured_function){
			.key = me->addr, .base = me->bytecodes, .bytes = me->bytecode_bytes, .word = 1
		};
		/* Memory of classes that are gone is used again. */
		ret->tokens[0] = (struct code_token){ me->addr + n.s->field[F_METHOD_CONST].offset, me->const_method,
						      UINT64_MAX };
		ret->tokens[1] = (struct code_token){ me->const_method + n.s->field[F_CONST_POOL].offset, me->pool,
						      UINT64_MAX };
	}
	(void)capture;
	fini_naming(&n);
	return m->is_spent ? -EDQUOT : error;
}

void hotspot_captures(const void *state, const struct code_facts *facts, struct code_capture captures[static CODE_CAPTURES])
{
	const struct hotspot_interpreter in = hotspot_interpreter_of(state);

	(void)facts;
	captures[CAPTURE_FRAME - 1] = (struct code_capture){ 2, { { in.method, -1, 0 }, { in.bcp, in.bcp_reg, 0 } } };
	captures[CAPTURE_ENTRY - 1] = (struct code_capture){ 1, { { in.method, in.method_reg, 0 } } };
}

const struct code_reader code_hotspot = {
	.name = "HotSpot",
	.frame_type = "jvm",
	.state_bytes = sizeof(struct hotspot),
	.open = hotspot_open,
	.ranges = hotspot_ranges,
	.captures = hotspot_captures,
	.block = hotspot_block,
	.rows = hotspot_rows,
	.names = hotspot_names,
	.function = hotspot_function,
};
