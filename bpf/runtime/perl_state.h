/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The state of Perl for bpf/runtime/perl.bpf.c, and the parts of its objects: shared by the program and by
 * agent/runtime/file/, which fills the state. chain_state.type is the address of PL_curinterp, which points to the
 * interpreter that runs the main program. Built without threads there is no struct interpreter: its members are variables,
 * and the offsets are from the lowest of these, whose address is chain_state.thread.addr; and a COP has the glob of its
 * file.
 */
#ifndef HEARTH_BPF_RUNTIME_PERL_STATE_H
#define HEARTH_BPF_RUNTIME_PERL_STATE_H

/* chain_state.offset: in struct interpreter, but for the last ones. */
enum perl_offset {
	PERL_COP,	   /* Icurcop: the statement that runs */
	PERL_STACK,	   /* Icurstackinfo */
	PERL_TOP_ENV,	   /* Itop_env: the innermost JMPENV */
	PERL_START_ENV,	   /* Istart_env: the outermost */
	PERL_PHASE,	   /* Iphase */
	PERL_FILE,	   /* Iorigfilename */
	PERL_ENV_CATCHES,  /* JMPENV.je_mustcatch */
	PERL_OP_NEXTSTATE, /* numbers of operators */
	PERL_OP_REQUIRE,
	PERL_OP_DOFILE,
	PERL_OP_ENTEREVAL,
	PERL_OP_ENTERSUB, /* behind it are leavesub and leavesublv */
	PERL_OP_RETURN,
	PERL_OP,      /* Iop, in struct interpreter */
	PERL_GLOBALS, /* not 0: built without threads, see above */
	PERL_OFFSETS,
};

/* Equal in all versions of agent/runtime/file/perl_file.c; measured with them. */
enum {
	/* PERL_SI */
	PERL_SI_CONTEXTS = 8,
	PERL_SI_PREVIOUS = 16,
	PERL_SI_INDEX = 32,
	PERL_SI_INDEX_MAX = 36,
	PERL_SI_SUB_INDEX = 40,
	PERL_SI_TYPE = 44,
	PERL_SI_BYTES = 48,
	PERL_SI_SORT = 3, /* PERLSI_SORT */
	/* PERL_CONTEXT */
	PERL_CONTEXT_BYTES = 104,
	PERL_CONTEXT_WORD = 2, /* blk_u16: of an eval the operator << 7 */
	PERL_CONTEXT_COP = 16, /* blku_oldcop */
	PERL_CONTEXT_RETURN = 48,
	PERL_CONTEXT_SUB_INDEX = 56, /* old_cxsubix */
	PERL_CONTEXT_CV = 72,	     /* of a sub or format */
	PERL_CONTEXT_ENV = 96,	     /* of an eval: cur_top_env */
	/* PERL_CONTEXT's type */
	PERL_NULL = 0,
	PERL_SUB = 9,
	PERL_FORMAT = 10,
	PERL_EVAL = 11,
	PERL_KIND_MASK = 15,
	PERL_EVAL_BLOCK = 0x40, /* CXp_TRYBLOCK; else it is of a text or a file */
	PERL_EVAL_TRY = 0x80,	/* CXp_TRY: try { }, which caller() does not show either */
	PERL_SUB_FAKE = 0x80,	/* CXp_SUB_RE_FAKE: the sub around a code block of a pattern, a second time */
	/* COP */
	PERL_COP_LINE = 36,
	PERL_COP_FILE = 48, /* built without threads: cop_filegv, a glob whose name is the file's behind two characters */
	/* values */
	PERL_VALUE_FLAGS = 12, /* sv_flags: the type is the low byte */
	PERL_VALUE_BODY = 16,  /* sv_u */
	PERL_TYPE_GLOB = 9,
	PERL_TYPE_CODE = 13,
	PERL_TYPE_FORMAT = 14,
	/* XPVCV */
	PERL_CODE_STASH = 32, /* xcv_stash: from here on are read ... */
	PERL_CODE_BYTES = 64,
	PERL_CODE_START = 40,	  /* xcv_start_u */
	PERL_CODE_NAMED = 0x8000, /* CVf_NAMED */
	/* GP, XPVGV, struct xpvhv_with_aux, HEK, OP */
	PERL_GLOB_EFFECTIVE = 56, /* gp_egv */
	PERL_GLOB_NAME = 32,
	PERL_GLOB_STASH = 40,
	PERL_STASH_NAME = 32, /* xhv_name_u; 28 bytes behind it is xhv_name_count */
	PERL_KEY_BYTES = 4,
	PERL_KEY_TEXT = 8,
	PERL_OP_TYPE = 32,   /* 9 bits */
	PERL_PHASE_RUNS = 4, /* PERL_PHASE_RUN */
};

/* What a frame stands for, in the bits 48 to 55 of its object's address. */
enum perl_frame {
	PERL_FRAME_SUB,	  /* the CV's address */
	PERL_FRAME_MAIN,  /* the interpreter's */
	PERL_FRAME_BLOCK, /* eval { }; of these all in a file are one object, by a hash of the file's name */
	PERL_FRAME_TEXT,  /* eval of a text */
	PERL_FRAME_FILE,  /* require, do */
	PERL_FRAME_MAX,
};

#define PERL_OBJECT(frame, at) ((__u64)(frame) << 48 | ((at)&0xffffffffffffull))
#define PERL_FRAME_OF(addr)    ((__u32)((addr) >> 48))

/* The parts of an object record. Name and package are keys: text, a zero, and a byte whose lowest bit says that it is UTF-8.
 */
enum { PERL_PART_NAME, PERL_PART_PACKAGE, PERL_PART_FILE };
enum { PERL_FILE_BYTES = 256 };

#endif
