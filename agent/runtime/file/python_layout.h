/* SPDX-License-Identifier: Apache-2.0 */
/* How CPython's structures are laid out: by version, and from 3.13 on by the table that the interpreter has for debuggers.
 * Used by python_file.c. No state. */
#ifndef HEARTH_AGENT_RUNTIME_FILE_PYTHON_LAYOUT_H
#define HEARTH_AGENT_RUNTIME_FILE_PYTHON_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/event.h"

enum {
	VERSION_3_6 = 0x0306,
	VERSION_3_7,
	VERSION_3_8,
	VERSION_3_9,
	VERSION_3_10,
	VERSION_3_11,
	VERSION_3_12,
	VERSION_3_13,
	VERSION_3_14,
	VERSION_3_15,
};

/* What _Py_DebugOffsets tells, the first member of _PyRuntime (Include/internal/pycore_debug_offsets.h). */
struct python_table {
	uint32_t version;      /* PY_VERSION_HEX without its level: major << 16 | minor << 8 | micro; 0: there is no table */
	bool is_free_threaded; /* built without the lock */
};

enum { PYTHON_TABLE_BYTES = 1024 }; /* that are looked at; the largest has 880 */

/* Takes apart the @len bytes @runtime that the file has for _PyRuntime. */
struct python_table python_table_read(const uint8_t *runtime, size_t len);

/*
 * Fills style and offsets of @ret for minor version @version (3 << 8 | minor) without a table, or by the table @runtime, of
 * @len bytes. @key: where the pthread key of a thread's state is in _PyRuntime; 0: not there, or not known. 0; -ENOENT: the
 * version is not known; -EBADMSG: the table makes no sense.
 */
int python_layout_find(uint16_t version, struct chain_state *ret, uint16_t *key);
int python_table_layout(const uint8_t *runtime, size_t len, struct chain_state *ret, uint16_t *key);

#endif
