/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CPython in an executable or libpython: its version, and the layout of its structures by version. The layouts were measured
 * by offsetof in gdb on builds with DWARF (gdb -batch -ex 'p &((PyThreadState *)0)->cframe' libpython3.11.so and the like);
 * that of 3.14 is from Debian's python3.14-dbg and was not tried on a process.
 */
#include <string.h>

#include "agent/runtime/file/runtime_file.h"
#include "base/cleanup.h"
#include "bpf/runtime/python_state.h"
#include "symbols/elf_image.h"

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

/* The layout of one minor version. */
struct layout {
	uint16_t version; /* 3 << 8 | minor */
	uint16_t style;	  /* enum python_style */
	uint16_t key;	  /* of the pthread key in _PyRuntime: gilstate.autoTSSkey, behind its int; 0: none */
	uint16_t thread_frame, thread_cframe, cframe_frame, cframe_previous;
	uint16_t frame_bytes, frame_code, frame_previous, frame_place, frame_owner, frame_entry, frame_witness;
	uint16_t code_name, code_file, code_lines, code_firstline, code_flags, code_bytecode;
	uint16_t ascii_data, text_data;
};

static const struct layout layouts[] = {
	{
		.version = VERSION_3_7,
		.style = PYTHON_EACH,
		.key = 1508,
		.thread_frame = 24,
		.frame_bytes = 108,
		.frame_code = 32,
		.frame_previous = 24,
		.frame_place = 104,
		.frame_witness = 48,
		.code_name = 104,
		.code_file = 96,
		.code_lines = 112,
		.code_firstline = 36,
		.code_flags = 32,
		.ascii_data = 48,
		.text_data = 72,
	},
	{
		.version = VERSION_3_8,
		.style = PYTHON_EACH,
		.key = 1396,
		.thread_frame = 24,
		.frame_bytes = 108,
		.frame_code = 32,
		.frame_previous = 24,
		.frame_place = 104,
		.frame_witness = 48,
		.code_name = 112,
		.code_file = 104,
		.code_lines = 120,
		.code_firstline = 40,
		.code_flags = 36,
		.ascii_data = 48,
		.text_data = 72,
	},
	{
		.version = VERSION_3_9,
		.style = PYTHON_EACH,
		.key = 588,
		.thread_frame = 24,
		.frame_bytes = 108,
		.frame_code = 32,
		.frame_previous = 24,
		.frame_place = 104,
		.frame_witness = 48,
		.code_name = 112,
		.code_file = 104,
		.code_lines = 120,
		.code_firstline = 40,
		.code_flags = 36,
		.ascii_data = 48,
		.text_data = 72,
	},
	{
		.version = VERSION_3_10,
		.style = PYTHON_CFRAME_EACH,
		.key = 588,
		.thread_frame = 24,
		.thread_cframe = 48,
		.cframe_previous = 8,
		.frame_bytes = 104,
		.frame_code = 32,
		.frame_previous = 24,
		.frame_place = 96,
		.frame_witness = 48,
		.code_name = 112,
		.code_file = 104,
		.code_lines = 120,
		.code_firstline = 40,
		.code_flags = 36,
		.ascii_data = 48,
		.text_data = 72,
	},
	{
		.version = VERSION_3_11,
		.style = PYTHON_CFRAME_ENTRY,
		.key = 596,
		.thread_cframe = 56,
		.cframe_frame = 8,
		.cframe_previous = 16,
		.frame_bytes = 80,
		.frame_code = 32,
		.frame_previous = 48,
		.frame_place = 56,
		.frame_owner = 69,
		.frame_entry = 68,
		.code_name = 128,
		.code_file = 112,
		.code_lines = 136,
		.code_firstline = 72,
		.code_flags = 48,
		.code_bytecode = 184,
		.ascii_data = 48,
		.text_data = 72,
	},
	{
		.version = VERSION_3_12,
		.style = PYTHON_CFRAME_SHIM,
		.key = 1548,
		.thread_cframe = 56,
		.cframe_previous = 8,
		.frame_bytes = 80,
		.frame_code = 0,
		.frame_previous = 8,
		.frame_place = 56,
		.frame_owner = 70,
		.frame_witness = 16,
		.code_name = 128,
		.code_file = 112,
		.code_lines = 136,
		.code_firstline = 68,
		.code_flags = 48,
		.code_bytecode = 192,
		.ascii_data = 40,
		.text_data = 56,
	},
	{
		.version = VERSION_3_13,
		.style = PYTHON_SHIM,
		.key = 2164,
		.thread_frame = 72,
		.frame_bytes = 80,
		.frame_code = 0,
		.frame_previous = 8,
		.frame_place = 56,
		.frame_owner = 70,
		.frame_witness = 16,
		.code_name = 128,
		.code_file = 112,
		.code_lines = 136,
		.code_firstline = 68,
		.code_flags = 48,
		.code_bytecode = 200,
		.ascii_data = 40,
		.text_data = 56,
	},
	{
		.version = VERSION_3_14,
		.style = PYTHON_SHIM,
		.key = 2340,
		.thread_frame = 72,
		.frame_bytes = 88,
		.frame_code = 0,
		.frame_previous = 8,
		.frame_place = 56,
		.frame_owner = 74,
		.frame_witness = 16,
		.code_name = 128,
		.code_file = 112,
		.code_lines = 136,
		.code_firstline = 68,
		.code_flags = 48,
		.code_bytecode = 208,
		.ascii_data = 40,
		.text_data = 56,
	},
};

/* The version that the file tells, Py_Version (3.11 on, PY_VERSION_HEX). 0: not told. */
static uint32_t find_version(const struct elf_image *im)
{
	struct runtime_symbol symbol;
	const uint8_t *bytes;
	uint64_t hex;

	if (runtime_file_symbol(im, "Py_Version", &symbol))
		return 0;
	bytes = runtime_file_bytes(im, symbol.addr, sizeof(hex));
	if (!bytes)
		return 0;
	memcpy(&hex, bytes, sizeof(hex));
	return (uint32_t)(hex >> 8) & 0xffffff;
}

/* The version by functions that came with it, without its micro part: libpython's and executables' alike, of which many have
 * no library, are older than Py_Version. 0: none of these. */
static uint32_t guess_version(const struct elf_image *im)
{
	static const struct {
		const char *function;
		uint32_t version;
	} news[] = {
		{ "PyIter_Send", VERSION_3_10 },
		{ "PyType_FromModuleAndSpec", VERSION_3_9 },
		{ "PyCode_NewWithPosOnlyArgs", VERSION_3_8 },
		{ "PyContext_New", VERSION_3_7 },
	};
	struct runtime_symbol symbol;

	for (size_t i = 0; i < ARRAY_LEN(news); i++)
		if (!runtime_file_symbol(im, news[i].function, &symbol))
			return news[i].version << 8;
	return 0;
}

static const struct layout *find_layout(uint32_t version)
{
	for (size_t i = 0; i < ARRAY_LEN(layouts); i++)
		if (layouts[i].version == version >> 8)
			return &layouts[i];
	return NULL;
}

static void fill(struct chain_state *s, const struct layout *l)
{
	const uint16_t offsets[CHAIN_OFFSETS] = {
		[PYTHON_THREAD_FRAME] = l->thread_frame,
		[PYTHON_THREAD_CFRAME] = l->thread_cframe,
		[PYTHON_CFRAME_FRAME] = l->cframe_frame,
		[PYTHON_CFRAME_PREVIOUS] = l->cframe_previous,
		[PYTHON_FRAME_BYTES] = l->frame_bytes,
		[PYTHON_FRAME_CODE] = l->frame_code,
		[PYTHON_FRAME_PREVIOUS] = l->frame_previous,
		[PYTHON_FRAME_PLACE] = l->frame_place,
		[PYTHON_FRAME_OWNER] = l->frame_owner,
		[PYTHON_FRAME_ENTRY] = l->frame_entry,
		[PYTHON_FRAME_WITNESS] = l->frame_witness,
		[PYTHON_CODE_CHECKED] = (uint16_t)(l->code_lines + 8 - PYTHON_CHECKED_BYTES),
		[PYTHON_CODE_NAME] = l->code_name,
		[PYTHON_CODE_FILE] = l->code_file,
		[PYTHON_CODE_LINES] = l->code_lines,
		[PYTHON_CODE_FIRSTLINE] = l->code_firstline,
		[PYTHON_CODE_FLAGS] = l->code_flags,
		[PYTHON_CODE_BYTECODE] = l->code_bytecode,
		[PYTHON_CODE_VERSION] = l->version,
		[PYTHON_ASCII_DATA] = l->ascii_data,
		[PYTHON_TEXT_DATA] = l->text_data,
	};

	s->style = l->style;
	memcpy(s->offset, offsets, sizeof(s->offset));
}

bool python_file_read(const struct elf_image *im, struct runtime_file *ret)
{
	struct runtime_symbol runtime, type, loop;
	const struct layout *l;

	if (runtime_file_symbol(im, "_PyRuntime", &runtime) || runtime_file_symbol(im, "PyCode_Type", &type))
		return false;
	ret->kind = RUNTIME_FILE_CHAIN;
	ret->id = RUNTIME_PYTHON;
	ret->version = find_version(im);
	if (!ret->version)
		ret->version = guess_version(im);
	l = find_layout(ret->version);
	if (!l)
		return true; /* of a version that is not known: without a way to its threads */
	fill(&ret->state, l);
	if (l->style == PYTHON_EACH && !runtime_file_symbol(im, "_PyEval_EvalFrameDefault", &loop)) {
		ret->loop.start = loop.addr;
		ret->loop.end = loop.addr + loop.size_bytes;
	}
	ret->state.runtime = RUNTIME_PYTHON;
	ret->state.type = type.addr;
	ret->state.thread = (struct thread_locator){ .place = THREAD_KEY, .addr = runtime.addr + l->key };
	return true;
}
