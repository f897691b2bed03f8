/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The facts that an ELF file with V8 in it (node, libnode) tells of the objects in V8's heap: where their fields are, by
 * which numbers their types go. Plain bytes, made by agent/runtime/file/v8_file.c, read by agent/runtime/v8/. No state.
 */
#ifndef HEARTH_AGENT_RUNTIME_FILE_V8_LAYOUT_H
#define HEARTH_AGENT_RUNTIME_FILE_V8_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

enum {
	V8_MAX_BYTECODES = 256,
	V8_SCALES = 3, /* of bytecodes' operands: 1, 2, 4 bytes */
};

/* Instance types of objects (v8dbg_type_*). 0: there is no such type. */
struct v8_types {
	uint16_t first_function, last_function; /* JSFunction and what is derived from it */
	uint16_t shared;			/* SharedFunctionInfo */
	uint16_t shared_wrapper;
	uint16_t script, scope_info;
	uint16_t code, stream; /* until 10.x code holds its instructions: both are Code */
	uint16_t code_container;
	uint16_t bytecode, interpreter_data, baseline_data;
	uint16_t fixed_array;
	uint16_t first_nonstring;
};

/* Offsets of fields from the start of their object, in bytes, unless another unit is told. */
struct v8_offsets {
	uint16_t function_shared;
	uint16_t shared_data, shared_name, shared_script;
	uint16_t script_source, script_name, script_line, script_column, script_line_ends, script_id;
	uint16_t scope_flags;	 /* number of bits by which the flags are to be shifted: 32 where they are a Smi */
	uint16_t scope_first;	 /* number of words before the names of the locals */
	uint16_t scope_receiver; /* 1: a function whose receiver (this) has a place has a word for it before its name */
	uint16_t stream_code;	 /* 0: the stream is the code */
	uint16_t stream_head;	 /* from the stream to its first instruction */
	uint16_t stream_at;	 /* where streams begin, modulo stream_step */
	uint16_t stream_step;
	uint16_t code_deopt; /* deoptimization data; in baseline code its BytecodeArray */
	uint16_t code_positions;
	uint16_t code_start, code_flags, code_size;
	uint16_t bytecode_positions, bytecode_data;
	uint16_t deopt_shared, deopt_inlined, deopt_literals; /* indices */
};

struct v8_layout {
	uint32_t version; /* V8's, major << 16 | minor; 0: the file's V8 is none that can be read */
	/* Kinds of code (Code::flags & 15); those above baseline are optimized. */
	uint16_t kind_regexp, kind_interpreted, kind_baseline;
	uint16_t position_flags; /* bits below the code offset in tables of positions; 0: its sign is a flag */
	struct v8_types type;
	struct v8_offsets offset;
	struct v8_range {
		uint64_t start, end;
	} builtins,	    /* ELF addresses of the code that V8 was built with; 0: not told, for each range */
		trampoline, /* of these the one that bytecode is entered by and returns to ... */
		handlers;   /* ... and the code of bytecodes */
	/* ELF address of the lengths of bytecodes with their operands: @bytecode_cnt bytes for each scale. 0: not told */
	uint64_t bytecode_lengths;
	uint64_t wasm_frames; /* bit n: frames of type n are WebAssembly's; 0: not told */
	uint32_t bytecode_cnt;
	uint16_t frame_wasm; /* the type of frames of WebAssembly's functions; 0: not told */
	uint16_t pad;
};

/* Can the reader work by @l, which came from a process that is not trusted, without leaving its own memory? */
bool v8_layout_is_sound(const struct v8_layout *l);

#endif
