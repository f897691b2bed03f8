/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "agent/runtime/file/python_layout.h"
#include "agent/runtime/file/runtime_file.h"
#include "base/cleanup.h"
#include "bpf/runtime/python_state.h"

/*
 * Measured by offsetof in gdb on builds with DWARF (gdb -batch -ex 'p &((PyThreadState *)0)->cframe' libpython3.11.so and
 * the like). start is the pthread key in _PyRuntime, gilstate.autoTSSkey, behind its int. offset is in the order of enum
 * python_offset: THREAD_FRAME, THREAD_CFRAME, CFRAME_FRAME, CFRAME_PREVIOUS; FRAME_BYTES, CODE, PREVIOUS, PLACE, OWNER,
 * ENTRY, WITNESS; CODE_NAME, FILE, LINES, FIRSTLINE, BYTECODE; OBJECT_TYPE, TEXT_LENGTH, TEXT_SHIFT, ASCII_DATA, TEXT_DATA,
 * BYTES_LENGTH, FRAME_COPY, CODE_COPIES; RUNTIME_CURRENT, RUNTIME_MAIN, INTERPRETER_THREADS, THREAD_NEXT,
 * THREAD_INTERPRETER, THREAD_ID.
 */
static const struct runtime_layout layouts[] = {
	{ VERSION_3_6, PYTHON_EACH, 0, { 24,  0,  0,   0,	       /* threads */
					 124, 32, 24,  120, 0,	0, 48, /* frames */
					 104, 96, 112, 36,  0,	       /* code */
					 8,   16, 2,   48,  72, 16 /* objects */ } },
	{ VERSION_3_7, PYTHON_EACH, 1508, { 24,	  0,  0,   0,		       /* threads */
					    108,  32, 24,  104, 0,  0,	48,    /* frames */
					    104,  96, 112, 36,	0,	       /* code */
					    8,	  16, 2,   48,	72, 16, 0,  0, /* objects */
					    1480, 0,  0,   0,	0,  176 /* several interpreters */ } },
	{ VERSION_3_8, PYTHON_EACH, 1396, { 24,	  0,   0,   0,			/* threads */
					    108,  32,  24,  104, 0,  0,	 48,	/* frames */
					    112,  104, 120, 40,	 0,		/* code */
					    8,	  16,  2,   48,	 72, 16, 0,  0, /* objects */
					    1368, 0,   0,   0,	 0,  176 /* several interpreters */ } },
	{ VERSION_3_9, PYTHON_EACH, 588, { 24,	0,   0,	  0,		      /* threads */
					   108, 32,  24,  104, 0,  0,  48,    /* frames */
					   112, 104, 120, 40,  0,	      /* code */
					   8,	16,  2,	  48,  72, 16, 0,  0, /* objects */
					   568, 0,   0,	  0,   0,  176 /* several interpreters */ } },
	{ VERSION_3_10, PYTHON_CFRAME_EACH, 588, { 24,	48,  0,	  8,		     /* threads */
						   104, 32,  24,  96, 0,  0,  48,    /* frames */
						   112, 104, 120, 40, 0,	     /* code */
						   8,	16,  2,	  48, 72, 16, 0,  0, /* objects */
						   568, 0,   0,	  0,  0,  176 /* several interpreters */ } },
	{ VERSION_3_11, PYTHON_CFRAME_ENTRY, 596, { 0,	 56,  8,   16,		      /* threads */
						    80,	 32,  48,  56, 69,  68, 0,    /* frames */
						    128, 112, 136, 72, 184,	      /* code */
						    8,	 16,  2,   48, 72,  16, 0, 0, /* objects */
						    576, 0,   0,   0,  0,   152 /* several interpreters */ } },
	{ VERSION_3_12, PYTHON_CFRAME_SHIM, 1548, { 0,	 56,  0,   8,		       /* threads */
						    80,	 0,   8,   56, 70,  0,	16,    /* frames */
						    128, 112, 136, 68, 192,	       /* code */
						    8,	 16,  2,   40, 56,  16, 0,  0, /* objects */
						    0,	 48,  72,  8,  16,  136 /* several interpreters */ } },
};

/*
 * chain_state.lock: gdb's &((_PyRuntimeState *)0)->ceval.gil until 3.11, then &((PyInterpreterState *)0)->ceval.gil. 3.6 has
 * its lock in variables apart.
 */
static const uint16_t locks[] = { 0, 1264, 1152, 352, 352, 360, 384 };

int python_layout_find(uint16_t version, struct chain_state *ret, uint16_t *key)
{
	const struct runtime_layout *l = runtime_layout_find(layouts, ARRAY_LEN(layouts), (uint32_t)version << 8);

	if (!l)
		return -ENOENT;
	*key = l->start;
	ret->style = l->style;
	ret->lock = locks[l - layouts];
	memcpy(ret->offset, l->offset, sizeof(ret->offset));
	ret->offset[PYTHON_CODE_CHECKED] = (uint16_t)(ret->offset[PYTHON_CODE_LINES] + 8 - PYTHON_CHECKED_BYTES);
	ret->offset[PYTHON_CODE_VERSION] = version;
	return 0;
}

/* --- the interpreter's own table --- */

enum {
	TABLE_VERSION = 1, /* words of it; 0 is the cookie */
	TABLE_FREE_THREADED,
	LEAST_FRAME_BYTES = 72,
};

/* Which words of the table, an array of uint64_t, tell what, by version. */
struct words {
	uint16_t version;
	/* No words: where the pthread key is, as above; in builds without the lock; 0: not in _PyRuntime, or not known. */
	uint16_t key, free_threaded_key;
	uint8_t heads;	   /* struct _runtime_state: interpreters_head */
	uint8_t threads;   /* struct _interpreter_state: threads_head */
	uint8_t gil;	   /* its ceval_gil, gil_runtime_state, _enabled, _locked, _holder */
	uint8_t thread;	   /* struct _thread_state: size, prev, next, interp, current_frame */
	uint8_t thread_id; /* its thread_id */
	uint8_t frame;	   /* struct _interpreter_frame: size, previous, executable, instr_ptr, localsplus, owner */
	uint8_t copy;	   /* its tlbc_index; 0: none */
	uint8_t code;	   /* struct _code_object: size, filename, name, qualname, linetable, firstlineno */
	uint8_t bytecode;  /* its co_code_adaptive */
	uint8_t copies;	   /* its co_tlbc; 0: none */
	uint8_t type;	   /* struct _pyobject: ob_type */
	uint8_t bytes;	   /* struct _bytes_object: ob_size */
	uint8_t text;	   /* struct _unicode_object: size, state, length, asciiobject_size */
};

static const struct words tables[] = {
	{ VERSION_3_13, 2164, 2164, 5, 9, 14, 19, 24, 28, 0, 34, 43, 0, 45, 65, 67 },
	{ VERSION_3_14, 2340, 0, 5, 9, 15, 22, 27, 31, 38, 39, 48, 49, 51, 75, 77 },
	{ VERSION_3_15, 0, 0, 5, 9, 15, 22, 30, 39, 46, 47, 56, 57, 59, 87, 89 },
};

static uint64_t word_of(const uint8_t *runtime, uint32_t i)
{
	uint64_t value;

	memcpy(&value, runtime + i * sizeof(value), sizeof(value));
	return value;
}

struct python_table python_table_read(const uint8_t *runtime, size_t len)
{
	struct python_table table = { 0 };

	if (!runtime || len < PYTHON_TABLE_BYTES || memcmp(runtime, "xdebugpy", 8) != 0)
		return table;
	table.version = (uint32_t)(word_of(runtime, TABLE_VERSION) >> 8) & 0xffffff;
	table.is_free_threaded = word_of(runtime, TABLE_FREE_THREADED);
	return table;
}

/* That of the version, or of the newest one before it: later ones may have the same table. */
static const struct words *find_words(uint16_t version)
{
	for (size_t i = ARRAY_LEN(tables); i-- > 0;)
		if (tables[i].version <= version)
			return &tables[i];
	return NULL;
}

/* Where an interpreter has the address of its lock, by the words from @told on; 0: there is none, or it is another one. */
static uint32_t find_lock(const uint8_t *runtime, uint8_t told)
{
	uint64_t lock = word_of(runtime, told), start = word_of(runtime, told + 1);

	if (lock > UINT16_MAX || word_of(runtime, told + 3) - start != PYTHON_GIL_LOCKED ||
	    word_of(runtime, told + 4) - start != PYTHON_GIL_HOLDER)
		return 0;
	return (uint32_t)lock;
}

/* Are the structures as the kernel's program can read them? */
static bool is_sound(const uint16_t *offset)
{
	static const uint8_t in_frame[] = { PYTHON_FRAME_CODE, PYTHON_FRAME_PREVIOUS, PYTHON_FRAME_PLACE, PYTHON_FRAME_OWNER,
					    PYTHON_FRAME_COPY };
	static const uint8_t in_code[] = { PYTHON_CODE_NAME, PYTHON_CODE_FILE, PYTHON_CODE_FIRSTLINE, PYTHON_CODE_LINES };

	if (offset[PYTHON_FRAME_BYTES] < LEAST_FRAME_BYTES || offset[PYTHON_FRAME_BYTES] >= 128 ||
	    offset[PYTHON_CODE_LINES] < PYTHON_CHECKED_BYTES || offset[PYTHON_CODE_NAME] + 8 != offset[PYTHON_CODE_LINES])
		return false;
	for (size_t i = 0; i < ARRAY_LEN(in_frame); i++)
		if (offset[in_frame[i]] + 4u > offset[PYTHON_FRAME_BYTES])
			return false;
	for (size_t i = 0; i < ARRAY_LEN(in_code); i++)
		if (offset[in_code[i]] + 8u > PYTHON_CODE_BYTES)
			return false;
	return offset[PYTHON_OBJECT_TYPE] < 64 && offset[PYTHON_TEXT_LENGTH] < 64 && offset[PYTHON_BYTES_LENGTH] < 64 &&
	       offset[PYTHON_ASCII_DATA] < 256 && offset[PYTHON_TEXT_DATA] < 256 && offset[PYTHON_THREAD_FRAME] < 1024;
}

int python_table_layout(const uint8_t *runtime, size_t len, struct chain_state *ret, uint16_t *key)
{
	const struct python_table table = python_table_read(runtime, len);
	const struct words *w = find_words((uint16_t)(table.version >> 8));

	if (!w)
		return -ENOENT;

	const struct {
		uint8_t offset, word;
	} told[] = {
		{ PYTHON_RUNTIME_MAIN, w->heads },	{ PYTHON_INTERPRETER_THREADS, w->threads },
		{ PYTHON_THREAD_NEXT, w->thread + 2 },	{ PYTHON_THREAD_INTERPRETER, w->thread + 3 },
		{ PYTHON_THREAD_FRAME, w->thread + 4 }, { PYTHON_THREAD_ID, w->thread_id },
		{ PYTHON_FRAME_BYTES, w->frame },	{ PYTHON_FRAME_PREVIOUS, w->frame + 1 },
		{ PYTHON_FRAME_CODE, w->frame + 2 },	{ PYTHON_FRAME_PLACE, w->frame + 3 },
		{ PYTHON_FRAME_OWNER, w->frame + 5 },	{ PYTHON_CODE_FILE, w->code + 1 },
		{ PYTHON_CODE_NAME, w->code + 3 },	{ PYTHON_CODE_LINES, w->code + 4 },
		{ PYTHON_CODE_FIRSTLINE, w->code + 5 }, { PYTHON_CODE_BYTECODE, w->bytecode },
		{ PYTHON_OBJECT_TYPE, w->type },	{ PYTHON_BYTES_LENGTH, w->bytes },
		{ PYTHON_TEXT_LENGTH, w->text + 2 },	{ PYTHON_ASCII_DATA, w->text + 3 },
		{ PYTHON_TEXT_DATA, w->text },		{ PYTHON_FRAME_COPY, w->copy },
		{ PYTHON_CODE_COPIES, w->copies },
	};
	uint16_t *offset = ret->offset;

	for (size_t i = 0; i < ARRAY_LEN(told); i++) {
		uint64_t value = told[i].word ? word_of(runtime, told[i].word) : 0;

		offset[told[i].offset] = value < UINT16_MAX ? (uint16_t)value : UINT16_MAX;
	}
	if (offset[PYTHON_CODE_BYTECODE] > PYTHON_CODE_BYTES + 64)
		return -EBADMSG;
	offset[PYTHON_TEXT_DATA] -=
		8; /* the table tells PyUnicodeObject, which has a pointer behind PyCompactUnicodeObject */
	offset[PYTHON_TEXT_SHIFT] = table.is_free_threaded && w->version >= VERSION_3_14 ? 8 : 2;
	offset[PYTHON_FRAME_WITNESS] = 16; /* f_funcobj */
	offset[PYTHON_RUNTIME_MAIN] += 8;  /* interpreters.main, behind head */
	if (!table.is_free_threaded)
		offset[PYTHON_FRAME_COPY] = offset[PYTHON_CODE_COPIES] = 0;
	offset[PYTHON_CODE_CHECKED] = (uint16_t)(offset[PYTHON_CODE_LINES] + 8 - PYTHON_CHECKED_BYTES);
	offset[PYTHON_CODE_VERSION] = (uint16_t)(table.version >> 8);
	*key = table.is_free_threaded ? w->free_threaded_key : w->key;
	ret->style = PYTHON_SHIM;
	ret->lock = table.is_free_threaded ? 0 : find_lock(runtime, w->gil);
	return is_sound(offset) ? 0 : -EBADMSG;
}
