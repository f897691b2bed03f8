/* SPDX-License-Identifier: Apache-2.0 */
/* CPython's code objects, as the kernel copied them. */
#include <errno.h>

#include "agent/runtime/object.h"
#include "bpf/runtime/python_state.h"

int python_object_read(const struct object_record *r, const struct chain_state *layout, struct buf *out)
{
	const uint16_t *offset = layout->offset;
	uint32_t version = offset[PYTHON_CODE_VERSION];
	const uint8_t *parts[OBJECT_PARTS];
	struct script s = { 0 };
	struct buf text = BUF_EMPTY;
	uint32_t name_bytes;

	if (object_parts(r, parts) || !r->part_bytes[PYTHON_PART_HEAD])
		return -EBADMSG;
	script_text(parts[PYTHON_PART_NAME], r->part_bytes[PYTHON_PART_NAME], r->part_state[PYTHON_PART_NAME], &text);
	name_bytes = (uint32_t)text.len;
	script_text(parts[PYTHON_PART_FILE], r->part_bytes[PYTHON_PART_FILE], r->part_state[PYTHON_PART_FILE], &text);
	s.head = (struct script_head){
		.first_line = object_word(r, parts, PYTHON_PART_HEAD, offset[PYTHON_CODE_FIRSTLINE]),
		.name_bytes = name_bytes,
		.file_bytes = (uint32_t)text.len - name_bytes,
		.line_bytes = r->part_bytes[PYTHON_PART_LINES],
		.lines = version <= 0x0309   ? SCRIPT_LINES_LNOTAB
			 : version == 0x030a ? SCRIPT_LINES_LINETABLE
					     : SCRIPT_LINES_LOCATIONS,
		.code_offset = offset[PYTHON_CODE_BYTECODE],
		.scale = version == 0x030a ? 2 : 1,
		.is_cut = r->is_cut >> PYTHON_PART_LINES & 1,
	};
	s.name = buf_text(&text); /* not NULL, if empty */
	s.file = s.name + name_bytes;
	s.line_table = parts[PYTHON_PART_LINES];
	if (!text.failed)
		script_write(&s, out);
	out->failed |= text.failed;
	buf_fini(&text);
	return out->failed ? -ENOMEM : 0;
}
