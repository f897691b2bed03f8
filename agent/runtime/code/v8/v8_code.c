/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "agent/runtime/code/code_reader.h"
#include "agent/runtime/code/v8/v8_code.h"

enum { KIND_MASK = 15 };

/* Between the kinds of regular expressions and of interpreted functions are those of WebAssembly (src/objects/code-kind.h);
 * its functions themselves are not in the heap. */
static enum v8_code_kind kind_of(const struct v8_layout *l, uint32_t flags)
{
	uint32_t kind = flags & KIND_MASK;

	if (kind == l->kind_baseline)
		return V8_CODE_BASELINE;
	if (kind > l->kind_baseline)
		return V8_CODE_OPTIMIZED;
	if (kind > l->kind_regexp && kind < l->kind_interpreted)
		return V8_CODE_WASM_WRAPPER;
	return kind == l->kind_regexp ? V8_CODE_REGEXP : V8_CODE_OTHER;
}

/* Reads the Code of the stream at @stream. -ENOENT: there is none, or it says that its instructions are elsewhere. */
static int read_code(struct v8_heap *h, uint64_t stream, struct v8_code *ret)
{
	const struct v8_offsets *o = &h->layout->offset;
	uint64_t start = stream + o->stream_head;
	uint32_t flags, size;
	int error = 0;

	memset(ret, 0, sizeof(*ret));
	ret->stream = stream;
	ret->word = stream + 1;
	if (o->stream_code)
		error = v8_copy(h, stream + o->stream_code, &ret->word, sizeof(ret->word));
	if (!error && v8_type(h, ret->word) != h->layout->type.code)
		return h->memory->is_spent ? -EDQUOT : -ENOENT;
	if (!error && o->code_start)
		error = v8_field(h, ret->word, o->code_start, &start);
	if (error || v8_field32(h, ret->word, o->code_flags, &flags) || v8_field32(h, ret->word, o->code_size, &size) ||
	    v8_field(h, ret->word, o->code_deopt, &ret->deopt) || v8_field(h, ret->word, o->code_positions, &ret->positions))
		return v8_unreadable(h);
	if (start != stream + o->stream_head || !size || size > CODE_BLOCK_MAX_BYTES)
		return -ENOENT;
	ret->start = start;
	ret->size = size;
	ret->kind = kind_of(h->layout, flags);
	return 0;
}

/* May a stream begin with @word? The first time its map's type tells. */
static bool begins_stream(struct v8_heap *h, uint64_t word, uint64_t stream_map)
{
	if (stream_map)
		return word == stream_map;
	return (word & 7) == 1 && v8_map_type(h, word) == h->layout->type.stream;
}

/* Looks at the places before @at, which is one where a stream may begin, down to the page's start. Leaves @at below that. */
static int scan_page(struct v8_heap *h, uint64_t pc, uint64_t *at, uint64_t *stream_map, struct v8_code *ret)
{
	uint64_t page = *at - *at % V8_PAGE_BYTES, word;

	if (v8_copy(h, page, h->page, sizeof(h->page)))
		return h->memory->is_spent ? -EDQUOT : -ENOENT; /* the range begins behind it */
	for (; *at >= page; *at -= h->layout->offset.stream_step) {
		int error;

		memcpy(&word, h->page + (*at - page), sizeof(word));
		if (!begins_stream(h, word, *stream_map))
			continue;
		error = read_code(h, *at, ret);
		if (error == -EDQUOT)
			return error;
		if (error)
			continue;
		*stream_map = word;
		return pc < ret->start + ret->size ? 0 : -ENOENT;
	}
	return 1;
}

int v8_code_find(struct v8_heap *h, uint64_t pc, uint64_t *stream_map, struct v8_code *ret)
{
	const struct v8_offsets *o = &h->layout->offset;
	uint64_t at = pc - o->stream_head, low;
	int status = 1;

	if (pc < CODE_BLOCK_MAX_BYTES || pc > INT64_MAX)
		return -ENOENT;
	low = pc - CODE_BLOCK_MAX_BYTES;
	at -= (at - o->stream_at) % o->stream_step;
	while (status == 1 && at > low)
		status = scan_page(h, pc, &at, stream_map, ret);
	return status == 1 ? -ENOENT : status;
}

int v8_code_of_function(struct v8_heap *h, uint64_t shared, struct v8_code *ret)
{
	const struct v8_layout *l = h->layout;
	uint64_t word, start;
	int error = v8_field(h, shared, l->offset.shared_data, &word);
	uint16_t type = error ? V8_NO_TYPE : v8_type(h, word);

	if (!error && l->type.code_container && type == l->type.code_container)
		error = v8_field(h, word, V8_CONTAINER_CODE, &word);
	else if (!error && l->type.baseline_data && type == l->type.baseline_data)
		error = v8_field(h, word, V8_BASELINE_CODE, &word);
	if (!error && v8_type(h, word) != l->type.code)
		error = h->memory->is_spent ? -EDQUOT : -EBADMSG;
	start = v8_address(word) + l->offset.stream_head;
	if (!error && l->offset.code_start)
		error = v8_field(h, word, l->offset.code_start, &start);
	if (!error)
		error = read_code(h, start - l->offset.stream_head, ret);
	return error == -ENOENT || (!error && ret->word != word) ? -EBADMSG : error;
}
