/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The state of CPython for bpf/runtime/python.bpf.c, and the parts of its objects: shared by the program and by
 * agent/runtime/file/python_layout.c, which fills the state.
 */
#ifndef HEARTH_BPF_RUNTIME_PYTHON_STATE_H
#define HEARTH_BPF_RUNTIME_PYTHON_STATE_H

/*
 * A thread that runs several interpreters has a state in each. The one that runs is found first; it is the one that has the
 * lock until 3.11, where the thread's own key stays with its first one. Then come the frames of the others below it, as far
 * as these are the thread's first state (until 3.11) or in the main interpreter.
 */

/* How frames are linked (chain_state.style), and by which a segment ends. */
enum python_style {
	PYTHON_EACH,	     /* 3.6 to 3.9: each frame is a segment, without a marker */
	PYTHON_CFRAME_EACH,  /* 3.10: each frame is a segment; its marker is its C frame's record */
	PYTHON_CFRAME_ENTRY, /* 3.11: is_entry ends a segment; the same marker */
	PYTHON_CFRAME_SHIM,  /* 3.12: found through the C frame's record; a frame without a function ends a segment, and is
				its marker */
	PYTHON_SHIM,	     /* 3.13 on: found in the thread state */
};

/*
 * The lock (struct _gil_runtime_state, Include/internal/pycore_gil.h; the same from 3.7 to 3.15): interval, last holder and
 * is it locked, then what threads wait on. chain_state.lock is where it is in _PyRuntime, until 3.11, then where an
 * interpreter has its address.
 */
enum {
	PYTHON_GIL_HOLDER = 8,
	PYTHON_GIL_LOCKED = 16,
	PYTHON_GIL_BYTES = 208, /* x86-64; more on arm64, where what is behind is waited for no longer than that */
};

/* chain_state.offset */
enum python_offset {
	PYTHON_THREAD_FRAME,	/* PyThreadState: its frame (not 3.11, 3.12) */
	PYTHON_THREAD_CFRAME,	/* PyThreadState.cframe */
	PYTHON_CFRAME_FRAME,	/* _PyCFrame.current_frame */
	PYTHON_CFRAME_PREVIOUS, /* _PyCFrame.previous */
	PYTHON_FRAME_BYTES,	/* as many bytes of a frame are read; below 128 */
	PYTHON_FRAME_CODE,
	PYTHON_FRAME_PREVIOUS,
	PYTHON_FRAME_PLACE, /* instruction pointer, or f_lasti */
	PYTHON_FRAME_OWNER,
	PYTHON_FRAME_ENTRY,   /* is_entry */
	PYTHON_FRAME_WITNESS, /* the function's object, or the globals */
	PYTHON_CODE_NAME,     /* co_qualname, or co_name where there is none */
	PYTHON_CODE_FILE,
	PYTHON_CODE_LINES,     /* line table */
	PYTHON_CODE_FIRSTLINE, /* user space's */
	PYTHON_CODE_BYTECODE,  /* where the instructions begin; 0: in an object of their own */
	PYTHON_OBJECT_TYPE,    /* PyObject.ob_type */
	PYTHON_TEXT_LENGTH,    /* text objects: length, hash, state, a word each (Include/cpython/unicodeobject.h) */
	PYTHON_TEXT_SHIFT,     /* of the state: before the bits of kind, compact, ascii */
	PYTHON_ASCII_DATA,     /* characters, of ASCII ... */
	PYTHON_TEXT_DATA,      /* ... and of other text */
	PYTHON_BYTES_LENGTH,   /* bytes objects: length, hash, bytes */
	PYTHON_FRAME_COPY,  /* builds without the lock, 3.14 on: which copy of the instructions the frame runs (tlbc_index);
			     */
	PYTHON_CODE_COPIES, /* where the code object has its array of copies (co_tlbc); 0: there are none */
	PYTHON_RUNTIME_CURRENT, /* until 3.11: the state of the thread that has the lock, in chain_state.global */
	PYTHON_RUNTIME_MAIN,	/* from 3.12 on: the first interpreter there */
	PYTHON_INTERPRETER_THREADS,
	PYTHON_THREAD_NEXT,
	PYTHON_THREAD_INTERPRETER,
	PYTHON_THREAD_ID,    /* pthread_self() */
	PYTHON_CODE_CHECKED, /* of PYTHON_CHECKED_BYTES */
	PYTHON_CODE_VERSION, /* user space's: 3 << 8 | minor */
};

enum {
	PYTHON_OWNER_SHIM = 3, /* FRAME_OWNED_BY_CSTACK, from 3.14 on FRAME_OWNED_BY_INTERPRETER, and above
				  (pycore_interpframe_structs.h) */
	PYTHON_OWNER_MAX = 4,
	PYTHON_CHECKED_BYTES = 88, /* of a code object: from the first line's number to the line table */
	PYTHON_CHECKED_NAME = 9,   /* the word of these that is the name: in all versions it stands before the line table */
	PYTHON_CHECKED_NAME_BYTES = 64, /* of its name's object: length, hash, first characters */
	PYTHON_CODE_BYTES = 224,	/* the head of PyCodeObject, up to its instructions */
	PYTHON_BYTES_DATA = 16,		/* of bytes objects, from their length on: the bytes */
	PYTHON_TYPE_NAME = 16,		/* PyTypeObject.tp_name, from PyObject.ob_type on: behind it and ob_size */
	PYTHON_MAX_COPIES = 1 << 16,
	PYTHON_MAX_THREADS = 64,     /* of the main interpreter that are looked at */
	PYTHON_MAIN_BYTES = 1 << 20, /* from 3.12 on _PyRuntime is shorter, and has the main interpreter in it */
	PYTHON_ID_BYTES = 8192,	     /* pthread_self() is at most so far below the thread pointer */
};

/* The parts of an object record. part_state of texts: bytes a character. */
enum { PYTHON_PART_HEAD, PYTHON_PART_NAME, PYTHON_PART_FILE, PYTHON_PART_LINES };

#endif
