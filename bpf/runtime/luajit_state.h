/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The state of LuaJIT for bpf/runtime/luajit.bpf.c, and the parts of its objects: shared by the program and by
 * agent/runtime/, which fills the state and reads the objects. 2.1 on x86-64 with 64-bit pointers (LJ_GC64), as all builds
 * since 2022 have it unless they are told not to.
 */
#ifndef HEARTH_BPF_RUNTIME_LUAJIT_STATE_H
#define HEARTH_BPF_RUNTIME_LUAJIT_STATE_H

/* chain_state.data */
enum luajit_data {
	LUAJIT_VM,     /* address of the virtual machine's code, which is one piece ... */
	LUAJIT_VM_END, /* ... and of its end */
};

/* chain_state.offset */
enum luajit_offset {
	LUAJIT_CURRENT, /* global_State.cur_L: the state that runs, and jit_base: the frame that the trace which runs began
			   in; 0: not known */
	LUAJIT_TEXT_BYTES, /* where GCstr has its length */
};

/* Equal in all builds of that kind; offsetof on lj_obj.h of 2.1 (July 2022 to August 2026), and lj_frame.h. */
enum {
	/* what objects begin with */
	LUAJIT_TAG = 9, /* gct */
	LUAJIT_TAG_THREAD = 6,
	LUAJIT_TAG_PROTO = 7,
	LUAJIT_TAG_FUNCTION = 8,
	LUAJIT_TAG_TEXT = 4,
	LUAJIT_FUNCTION_KIND = 10, /* ffid: 0: a function of a script */
	LUAJIT_FUNCTION_CODE = 32, /* pc: its instructions, right behind its GCproto */
	/* lua_State, of which so much is read */
	LUAJIT_STATE_BYTES = 88,
	LUAJIT_STATE_GLOBAL = 16 / 8,
	LUAJIT_STATE_BASE = 32 / 8,
	LUAJIT_STATE_STACK_END = 48 / 8,
	LUAJIT_STATE_STACK = 56 / 8,
	LUAJIT_STATE_FRAME = 80 / 8, /* cframe; its low bits are flags */
	/* GCproto */
	LUAJIT_PROTO_BYTES = 104,
	LUAJIT_PROTO_COUNT = 12, /* sizebc */
	LUAJIT_PROTO_CHUNK = 64, /* chunkname */
	LUAJIT_PROTO_LINE = 72,	 /* firstline; behind it numline */
	LUAJIT_PROTO_LINES = 80, /* lineinfo */
	LUAJIT_TEXT = 24,	 /* of GCstr: its characters */
	/* values: the tag is in the upper 17 bits */
	LUAJIT_VALUE_SHIFT = 47,
	LUAJIT_VALUE_FUNCTION = 0x1fff7, /* LJ_TFUNC */
	LUAJIT_VALUE_THREAD = 0x1fff9,	 /* LJ_TTHREAD: a frame that stands for nothing */
	LUAJIT_VALUE_ANY = 0x1ffff,	 /* the two, with the bits in which they differ */
	/* the virtual machine's frame on the native stack (lj_frame.h: CFRAME_*) */
	LUAJIT_FRAME_BYTES = 80,
	LUAJIT_FRAME_RESULTS = 8, /* below 0: -the stack's height, of a protected call of C that has no frame yet */
	LUAJIT_FRAME_STATE = 16,
	LUAJIT_FRAME_PC = 24,
	LUAJIT_FRAME_PREVIOUS = 32,
	LUAJIT_FRAME_FLAGS = 3,
	/* links of frames on the stack of values: the word before base */
	LUAJIT_LINK_MASK = 3,
	LUAJIT_LINK_SCRIPT = 0, /* the address behind the caller's instruction; else the way to the caller's base | kind */
	LUAJIT_LINK_C = 1,	/* a call of the virtual machine began with it */
	LUAJIT_LINK_CONTINUES = 2,
	LUAJIT_LINK_KIND_MASK = 7,
	LUAJIT_LINK_VARARG = 3,
};

#define LUAJIT_VALUE_ADDRESS ((1ull << LUAJIT_VALUE_SHIFT) - 1)

/*
 * The parts of an object record. The chunk's name is as Lua's source; lines are differences to the function's first one,
 * one for each instruction but the first, of one, two or four bytes by how many lines the function has.
 */
enum { LUAJIT_PART_CHUNK, LUAJIT_PART_LINES, LUAJIT_PART_MORE };
enum { LUAJIT_CHUNK_BYTES = 511, LUAJIT_LINES_BYTES = 4092, LUAJIT_LINES_MAX = 4095, LUAJIT_MORE_BYTES = 3584 };

/* part_state */
enum {
	LUAJIT_HAS_LINE,  /* of LUAJIT_PART_CHUNK: the first line; 0: it is the file's own code */
	LUAJIT_HAS_COUNT, /* of LUAJIT_PART_LINES: how many instructions there are */
	LUAJIT_HAS_LINES, /* of LUAJIT_PART_MORE: how many lines */
	LUAJIT_HAS_CODE,  /* the low half of the code's address */
};

#endif
