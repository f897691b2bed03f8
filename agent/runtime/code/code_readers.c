/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/runtime/code/code_reader.h"

#define CODE_READER_PLACE(id, name) [id] = &name,
static const struct code_reader *const readers[CODE_ID_MAX] = { CODE_READERS(CODE_READER_PLACE) };

const struct code_reader *code_reader_of(uint32_t id)
{
	return id < CODE_ID_MAX ? readers[id] : NULL;
}
