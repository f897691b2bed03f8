/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The things that the reader of HotSpot knows of one process, found through the tables that the virtual machine exports
 * (src/hotspot/share/runtime/vmStructs.cpp): no version of it is assumed, but for a few constants that no table has, which
 * stand beside their use. Plain bytes (struct code_reader's state). Only files of this folder include this.
 */
#ifndef HEARTH_AGENT_RUNTIME_CODE_HOTSPOT_STATE_H
#define HEARTH_AGENT_RUNTIME_CODE_HOTSPOT_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/runtime/code/code_reader.h"

/* Fields of structures. X(name, type, field, another name of that, bytes where the type of the field does not tell) */
#define HOTSPOT_FIELDS(X)                                                                      \
	X(ARRAY_LENGTH, "GrowableArrayBase", "_len", "GenericGrowableArray", 4)                \
	X(ARRAY_DATA, "GrowableArray<int>", "_data", NULL, 8) /* as in all GrowableArray<T> */ \
	X(HEAP_MEMORY, "CodeHeap", "_memory", NULL, 8)                                         \
	X(HEAP_SEGMAP, "CodeHeap", "_segmap", NULL, 8)                                         \
	X(HEAP_SEGMENT_LOG2, "CodeHeap", "_log2_segment_size", NULL, 4)                        \
	X(SPACE_LOW, "VirtualSpace", "_low", NULL, 8)                                          \
	X(SPACE_HIGH, "VirtualSpace", "_high", NULL, 8)                                        \
	X(SPACE_LOW_BOUNDARY, "VirtualSpace", "_low_boundary", NULL, 8)                        \
	X(SPACE_HIGH_BOUNDARY, "VirtualSpace", "_high_boundary", NULL, 8)                      \
	X(HEAP_BLOCK_USED, "HeapBlock::Header", "_used", NULL, 1)                              \
	X(BLOB_NAME, "CodeBlob", "_name", NULL, 8)                                             \
	X(BLOB_SIZE, "CodeBlob", "_size", NULL, 4)                                             \
	X(BLOB_FRAME_SIZE, "CodeBlob", "_frame_size", NULL, 4)                                 \
	X(BLOB_CODE_BEGIN, "CodeBlob", "_code_begin", NULL, 8)                                 \
	X(BLOB_CODE_END, "CodeBlob", "_code_end", NULL, 8)                                     \
	X(BLOB_CODE_OFFSET, "CodeBlob", "_code_offset", NULL, 4)                               \
	X(BLOB_DATA_OFFSET, "CodeBlob", "_data_offset", NULL, 4)                               \
	X(BLOB_MUTABLE_DATA, "CodeBlob", "_mutable_data", NULL, 8)                             \
	X(BLOB_MUTABLE_SIZE, "CodeBlob", "_mutable_data_size", NULL, 4)                        \
	X(BLOB_RELOCATION_SIZE, "CodeBlob", "_relocation_size", NULL, 4)                       \
	X(NM_METHOD, "nmethod", "_method", "CompiledMethod", 8)                                \
	X(NM_ENTRY_BCI, "nmethod", "_entry_bci", NULL, 4)                                      \
	X(NM_COMPILE_ID, "nmethod", "_compile_id", NULL, 4)                                    \
	X(NM_ENTRY, "nmethod", "_entry_point", NULL, 8)                                        \
	X(NM_VERIFIED, "nmethod", "_verified_entry_point", NULL, 8)                            \
	X(NM_OSR, "nmethod", "_osr_entry_point", NULL, 8)                                      \
	X(NM_ENTRY_OFFSET, "nmethod", "_entry_offset", NULL, 2)                                \
	X(NM_VERIFIED_OFFSET, "nmethod", "_verified_entry_offset", NULL, 2)                    \
	X(NM_STUB_OFFSET, "nmethod", "_stub_offset", NULL, 4)                                  \
	X(NM_EXCEPTION_OFFSET, "nmethod", "_exception_offset", NULL, 4)                        \
	X(NM_DEOPT_BEGIN, "CompiledMethod", "_deopt_handler_begin", "nmethod", 8)              \
	X(NM_DEOPT_OFFSET, "nmethod", "_deopt_handler_offset", NULL, 4)                        \
	X(NM_DEOPT_ENTRY_OFFSET, "nmethod", "_deopt_handler_entry_offset", NULL, 4)            \
	X(NM_DEOPTIMIZE_OFFSET, "nmethod", "_deoptimize_offset", NULL, 4) /* 8 */              \
	X(NM_SCOPES_BEGIN, "CompiledMethod", "_scopes_data_begin", "nmethod", 8)               \
	X(NM_SCOPES_OFFSET, "nmethod", "_scopes_data_offset", NULL, 4)                         \
	X(NM_PCS_OFFSET, "nmethod", "_scopes_pcs_offset", NULL, 4)                             \
	X(NM_DEPENDENCIES_OFFSET, "nmethod", "_dependencies_offset", NULL, 4)                  \
	X(NM_METADATA_OFFSET, "nmethod", "_metadata_offset", NULL, 4)                          \
	X(NM_HANDLERS_OFFSET, "nmethod", "_handler_table_offset", NULL, 4)                     \
	X(NM_NUL_CHECKS_OFFSET, "nmethod", "_nul_chk_table_offset", NULL, 4)                   \
	X(NM_END_OFFSET, "nmethod", "_nmethod_end_offset", NULL, 4)                            \
	X(NM_IMMUTABLE_DATA, "nmethod", "_immutable_data", NULL, 8)                            \
	X(NM_IMMUTABLE_SIZE, "nmethod", "_immutable_data_size", NULL, 4)                       \
	X(METHOD_CONST, "Method", "_constMethod", NULL, 8)                                     \
	X(CONST_POOL, "ConstMethod", "_constants", NULL, 8)                                    \
	X(CONST_SIZE, "ConstMethod", "_constMethod_size", NULL, 4)                             \
	X(CONST_CODE_SIZE, "ConstMethod", "_code_size", NULL, 2)                               \
	X(CONST_NAME, "ConstMethod", "_name_index", NULL, 2)                                   \
	X(CONST_FLAGS, "ConstMethod", "_flags", NULL, 2)                                       \
	X(CONST_FLAGS_FLAGS, "ConstMethod", "_flags._flags", NULL, 4) /* 21 on */              \
	X(POOL_HOLDER, "ConstantPool", "_pool_holder", NULL, 8)                                \
	X(POOL_LENGTH, "ConstantPool", "_length", NULL, 4)                                     \
	X(POOL_FILE, "ConstantPool", "_source_file_name_index", NULL, 2)                       \
	X(CLASS_FILE, "InstanceKlass", "_source_file_name_index", NULL, 2) /* until 11 */      \
	X(KLASS_NAME, "Klass", "_name", NULL, 8)                                               \
	X(SYMBOL_LENGTH, "Symbol", "_length", NULL, 2)                                         \
	X(SYMBOL_BODY, "Symbol", "_body", NULL, 1)                                             \
	X(QUEUE_BUFFER, "StubQueue", "_stub_buffer", NULL, 8)                                  \
	X(QUEUE_LIMIT, "StubQueue", "_buffer_limit", NULL, 4)                                  \
	X(QUEUE_COUNT, "StubQueue", "_number_of_stubs", NULL, 4)                               \
	X(CODELET_SIZE, "InterpreterCodelet", "_size", NULL, 4)                                \
	X(CODELET_DESCRIPTION, "InterpreterCodelet", "_description", NULL, 8)

/* Variables. X(name, type, field) */
#define HOTSPOT_STATICS(X)                                                    \
	X(HEAPS, "CodeCache", "_heaps")                                       \
	X(HEAP, "CodeCache", "_heap") /* 8: there is one */                   \
	X(INTERPRETER, "AbstractInterpreter", "_code")                        \
	X(CALL_STUB_RETURN, "StubRoutines", "_call_stub_return_address")      \
	X(CALL_STUB_ENTRY, "StubRoutines", "_call_stub_entry") /* until 24 */ \
	X(MAJOR, "Abstract_VM_Version", "_vm_major_version")

/* Types whose size is needed. X(name, type) */
#define HOTSPOT_TYPES(X)                 \
	X(HEAP_BLOCK, "HeapBlock")       \
	X(NMETHOD, "nmethod")            \
	X(CONST_METHOD, "ConstMethod")   \
	X(CONSTANT_POOL, "ConstantPool") \
	X(CODELET, "InterpreterCodelet") \
	X(PC_DESC, "PcDesc")             \
	X(CONTINUATION_ENTRY, "ContinuationEntry") /* 25 on; may be missing */

#define X(name, ...) F_##name,
enum hotspot_field { HOTSPOT_FIELDS(X) F_MAX };
#undef X
#define X(name, ...) S_##name,
enum hotspot_static { HOTSPOT_STATICS(X) S_MAX };
#undef X
#define X(name, ...) T_##name,
enum hotspot_type { HOTSPOT_TYPES(X) T_MAX };
#undef X

enum {
	MAX_CODELETS = 1024,  /* 271 in 17 and 25 */
	MAX_STUBS = 160,      /* 71 in 17 */
	MAX_BLOB_NAMES = 96,  /* distinct names of blobs that are kept */
	MAX_TARGETS = 128,    /* of calls that are kept */
	MAX_BLOB_HEAD = 1024, /* bytes: a nmethod has 224 to 360 */
	NO_FIELD = UINT16_MAX,
};

struct hotspot_field_place {
	uint16_t offset; /* NO_FIELD: this version has none */
	uint8_t bytes;
	bool is_signed;
};

/* A CodeHeap. */
struct hotspot_heap {
	uint64_t low, high; /* committed */
	uint64_t reserved_low, reserved_high;
	uint64_t segmap;
	uint32_t segment_log2;
	uint32_t pad;
};

/* Kinds of blobs, by the look of their name. */
enum blob_kind {
	BLOB_STUB,	  /* entered at its begin; its frame has the blob's size where it calls */
	BLOB_NMETHOD,	  /* a compiled method */
	BLOB_NATIVE,	  /* the wrapper of a native method */
	BLOB_INTERPRETER, /* codelets */
	BLOB_STUBS,	  /* many functions, one behind the other */
	BLOB_FLAT,	  /* nothing in it moves the stack pointer */
	BLOB_ADAPTERS,	  /* from the interpreter's calls to compiled code's, and back */
	BLOB_NO_RETURN,	  /* a stub that does not return to whom calls it */
};

struct hotspot_codelet {
	uint32_t start, end;  /* of its code, from the interpreter's begin */
	uint64_t description; /* address of its text */
};

struct hotspot_blob {
	uint64_t addr, header; /* of the blob, and the heap's block around it */
	uint64_t begin, end;   /* code */
	uint64_t name;	       /* address of its text */
	uint32_t kind;	       /* enum blob_kind */
	uint32_t frame_bytes;  /* from sp where it calls to its CFA; 0: not known */
	/* of methods */
	uint64_t method;
	uint64_t entry, verified, osr, exception, deopt; /* 0: there is none */
	uint64_t scopes, scopes_end, pcs, pcs_end, metadata, metadata_end;
	uint64_t handlers, handlers_end, nul_checks, nul_checks_end;
	uint32_t compile_id;
	int32_t entry_bci;
};

struct hotspot {
	struct hotspot_field_place field[F_MAX];
	uint64_t variable[S_MAX]; /* addresses; 0: this version has none */
	uint32_t type_bytes[T_MAX];
	uint32_t major; /* 8, 17, ... */
	uint32_t heap_cnt;
	struct hotspot_heap heaps[CODE_RANGES];
	uint64_t call_stub_return;
	uint64_t interpreter, interpreter_end; /* 0: not read yet */
	uint32_t codelet_cnt, stub_cnt, stub_var_cnt, blob_name_cnt, target_cnt;
	uint32_t pad;
	struct hotspot_codelet codelets[MAX_CODELETS];
	struct {
		uint64_t entry, variable, name; /* variable: that has the entry; name: address of the variable's name */
		uint64_t bytes_before; /* that belong to it, too: it is returned to, and looked up by the byte in front */
	} stubs[MAX_STUBS];	       /* sorted by entry */
	struct {
		uint64_t name;
		uint64_t kind;
	} blob_names[MAX_BLOB_NAMES];
	struct {
		uint64_t start, end, is_no_return;
	} targets[MAX_TARGETS];
	struct hotspot_blob last; /* the blob that was asked for last */
};

_Static_assert(sizeof(struct hotspot) <= CODE_STATE_BYTES, "the state is as small as promised");

static inline bool hotspot_has(const struct hotspot *s, enum hotspot_field f)
{
	return s->field[f].offset != NO_FIELD;
}

/* The field @f of the structure whose first @len bytes are @bytes; 0 where there is none. Signed fields are extended. */
uint64_t hotspot_get(const struct hotspot *s, enum hotspot_field f, const uint8_t *bytes, size_t len);

/* The same of the structure at @addr; 0 where it cannot be read. */
uint64_t hotspot_read(const struct hotspot *s, struct code_memory *m, enum hotspot_field f, uint64_t addr);

/* struct code_reader's operations, and those between the files of this folder. */
int hotspot_open(void *state, struct code_memory *m, const struct code_facts *facts, uint64_t bias);
int hotspot_ranges(void *state, struct code_memory *m, uint32_t given, struct code_range ranges[static CODE_RANGES]);
int hotspot_block(void *state, struct code_memory *m, uint64_t pc, struct code_block *ret);
int hotspot_rows(void *state, struct code_memory *m, const struct code_block *b, struct row **ret, size_t *count_ret);
int hotspot_names(void *state, struct code_memory *m, const struct code_block *b, struct block_names *n);
int hotspot_function(void *state, struct code_memory *m, uint32_t capture, const uint64_t words[static CODE_CAPTURE_WORDS],
		     struct captured_function *ret, struct block_names *n);
void hotspot_captures(const void *state, const struct code_facts *facts, struct code_capture captures[static CODE_CAPTURES]);

/* Reads the heaps anew. 0, -EAGAIN (there are none yet), -EFAULT, -EDQUOT. */
int hotspot_read_heaps(struct hotspot *s, struct code_memory *m);

/* The blob that has the code at @pc. 0, -ENOENT, -EBADMSG, -EFAULT, -EDQUOT. */
int hotspot_find_blob(struct hotspot *s, struct code_memory *m, uint64_t pc, struct hotspot_blob *ret);

/* Does whoever calls @target never come back? */
bool hotspot_never_returns(struct hotspot *s, struct code_memory *m, uint64_t target);

/* The number of the codelet of the interpreter that has @pc; MAX_CODELETS: none. */
uint32_t hotspot_find_codelet(const struct hotspot *s, uint64_t pc);

/* The captures of this reader's rows. */
enum {
	CAPTURE_FRAME = 1, /* a frame of the interpreter */
	CAPTURE_ENTRY
}; /* one that is not built yet: the method is in a register */

/* Makes the rows of the codelet with the @len bytes @code at @addr. @is_entry: methods are entered by it. 0 or -ENOMEM. */
int hotspot_interpreter_rows(const struct hotspot *s, const uint8_t *code, size_t len, uint64_t addr, bool is_entry,
			     struct row **ret, size_t *count_ret);

/* The words of struct code_block's own. */
enum { OWN_BLOB, OWN_IS_ENTRY, OWN_NAME };

#endif
