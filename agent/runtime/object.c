/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "agent/objects/objects.h"
#include "agent/runtime/code/code_reader.h"
#include "agent/runtime/object.h"

static const struct {
	const char *frame_type;
	int (*read)(const struct object_record *r, const struct chain_state *layout, struct buf *out);
} runtimes[RUNTIME_ID_MAX] = {
	[RUNTIME_PYTHON] = { "cpython", python_object_read }, [RUNTIME_PHP] = { "php", php_object_read },
	[RUNTIME_PERL] = { "perl", perl_object_read },	      [RUNTIME_RUBY] = { "ruby", ruby_object_read },
	[RUNTIME_LUA] = { "lua", lua_object_read },	      [RUNTIME_LUAJIT] = { "luajit", lua_object_read_jit },
};

int object_parts(const struct object_record *r, const uint8_t *parts[static OBJECT_PARTS])
{
	const uint8_t *at = (const uint8_t *)(r + 1), *end = (const uint8_t *)r + r->hdr.size;

	for (int i = 0; i < OBJECT_PARTS; i++) {
		parts[i] = at;
		if (r->part_bytes[i] > end - at)
			return -EBADMSG;
		at += r->part_bytes[i];
	}
	return 0;
}

uint32_t object_word(const struct object_record *r, const uint8_t *const *parts, int part, uint32_t offset)
{
	uint32_t len = r->part_bytes[part], value = 0;

	if (len >= sizeof(value) && offset <= len - sizeof(value))
		memcpy(&value, parts[part] + offset, sizeof(value));
	return value;
}

int object_read(const struct object_record *r, const struct chain_state *layout, struct buf *out)
{
	if (r->hdr.size < sizeof(*r) || r->runtime >= RUNTIME_ID_MAX)
		return -EBADMSG;
	return runtimes[r->runtime].read(r, layout, out);
}

const char *object_frame_type(uint32_t id)
{
	const struct code_reader *reader = id >= OBJECT_OF_CODE ? code_reader_of(id - OBJECT_OF_CODE) : NULL;

	return reader ? reader->frame_type : id < RUNTIME_ID_MAX ? runtimes[id].frame_type : "";
}
