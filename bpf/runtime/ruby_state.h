/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The state of Ruby for bpf/runtime/ruby.bpf.c, and the parts of its objects: shared by the program and by agent/runtime/,
 * which fills the state and reads the objects. chain_state.type is the address of the interpreter's loop, rb_vm_exec().
 */
#ifndef HEARTH_BPF_RUNTIME_RUBY_STATE_H
#define HEARTH_BPF_RUNTIME_RUBY_STATE_H

/* chain_state.data */
enum ruby_data {
	RUBY_SYMBOLS, /* address of ruby_global_symbols.ids, the array that has the names of methods by number */
	RUBY_OBJECT,  /* address of rb_cObject, the class Object; where classes keep their names among variables */
};

/* chain_state.style: where a class has its name, and a singleton class the object whose it is. */
enum ruby_names {
	RUBY_NAMES_TABLE, /* in the table of its variables, under one key in all classes; a singleton class's is the first */
	RUBY_NAMES_FIRST, /* the first of its variables */
	RUBY_NAMES_PATH,  /* in itself */
};

/* chain_state.offset */
enum ruby_offset {
	RUBY_STACK_START, /* in the thread's state: machine.stack_start, and two words behind it how large that stack may be.
			     0: the state is surely the thread's own */
	RUBY_FRAME_BYTES, /* rb_control_frame_t */
	RUBY_LINES,	  /* rb_iseq_constant_body.insns_info: its entries ... */
	RUBY_LINES_COUNT, /* ... how many there are ... */
	RUBY_LINES_INDEX, /* ... and the index of their positions; 0: the entries have positions */
	RUBY_LINE_BYTES,  /* of an entry */
	RUBY_LINE_SHIFT,  /* location.first_lineno is a number << this */
	RUBY_TEXT,	  /* struct RString: its text, when it is not elsewhere. 16: then its length is in the flags */
	RUBY_SINGLETON_BIT,   /* the number of the flag of singleton classes */
	RUBY_LAST_OPERATOR,   /* tLAST_OP_ID: numbers up to this one are operators' */
	RUBY_CLASS_VARIABLES, /* of RUBY_NAMES_FIRST: struct RClass's variables */
	RUBY_CLASS_PATH,      /* of RUBY_NAMES_PATH: the class's name */
	RUBY_CLASS_PERMANENT, /* ... the byte whose lowest bit says that the name is for ever */
	RUBY_CLASS_ATTACHED,  /* ... of a singleton class: whose it is */
	/* not the version's, but the file's */
	RUBY_LOOP_BYTES,   /* how long the loop's code is */
	RUBY_TAG_PC,	   /* in struct rb_vm_tag: where its jump leads to, and ... */
	RUBY_TAG_PREVIOUS, /* ... the tag outside */
};

/* Equal in all versions of agent/runtime/file/ruby_file.c; measured with them. */
enum {
	/* rb_execution_context_t: stack, its size in words, cfp, tag */
	RUBY_THREAD_BYTES = 32,
	/* rb_control_frame_t */
	RUBY_FRAME_PC = 0,
	RUBY_FRAME_ISEQ = 16,
	RUBY_FRAME_EP = 32,
	RUBY_FRAME_MIN = 40,
	/* at ep - 16: method or scope, block or ep outside, flags (vm_core.h: VM_ENV_DATA_INDEX_*) */
	RUBY_ENV_BYTES = 24,
	RUBY_ENV_BELOW = 16,
	/* the flags */
	RUBY_ENV_LOCAL = 0x2,
	RUBY_FRAME_FINISH = 0x20,
	RUBY_FRAME_BMETHOD = 0x40,
	RUBY_FRAME_MASK = 0x7fff0001,
	RUBY_FRAME_CFUNC = 0x55550001,
	/* rb_iseq_t: flags, wrapper, body */
	RUBY_ISEQ_BODY = 16,
	/* struct rb_iseq_constant_body: type, size; instructions; location: path, base label, label, first line */
	RUBY_BODY_HEAD_BYTES = 16,
	RUBY_ISEQ_EVAL = 6, /* ISEQ_TYPE_EVAL */
	RUBY_BODY_LOCATION = 64,
	RUBY_BODY_LOCATION_BYTES = 32,
	/* rb_callable_method_entry_t: flags, class, definition, number of the name, owner */
	RUBY_METHOD_BYTES = 40,
	RUBY_METHOD_OWNER = 32,
	RUBY_DEFINITION_ID = 32, /* rb_method_definition_t.original_id */
	/* values' flags (ruby/internal/fl_type.h, value_type.h; internal/imemo.h) */
	RUBY_TYPE_MASK = 0x1f,
	RUBY_TYPE_CLASS = 2,
	RUBY_TYPE_MODULE = 3,
	RUBY_TYPE_TEXT = 5,
	RUBY_TYPE_ARRAY = 7,
	RUBY_TYPE_INTERNAL = 0x1a,
	RUBY_INTERNAL_SHIFT = 12,
	RUBY_INTERNAL_MASK = 15,
	RUBY_INTERNAL_SVAR = 2, /* its second word is the method or scope */
	RUBY_INTERNAL_METHOD = 6,
	RUBY_INTERNAL_ISEQ = 7,
	RUBY_TEXT_ELSEWHERE = 1 << 13, /* RSTRING_NOEMBED */
	RUBY_TEXT_STATIC = 1 << 30,    /* STR_NOFREE */
	RUBY_TEXT_LENGTH_SHIFT = 14,   /* of one inside, until 3.1 */
	RUBY_TEXT_LENGTH = 16,
	RUBY_TEXT_AT = 24,
	RUBY_ARRAY_INSIDE = 1 << 13, /* RARRAY_EMBED_FLAG */
	RUBY_ARRAY_FIRST = 16,
	RUBY_ARRAY_AT = 32,
	/* struct RClass until 3.1: its ext; that one's iv_tbl; struct st_table; its entries: hash, key, value */
	RUBY_CLASS_EXT = 24,
	RUBY_EXT_TABLE = 8,
	RUBY_TABLE_COUNT = 16,
	RUBY_TABLE_BYTES = 56,
	RUBY_TABLE_ENTRIES = 4, /* so many are looked at */
	/* symbol.h: names stand in arrays of pairs, name and symbol */
	RUBY_NUMBER_SHIFT = 4,
	RUBY_NUMBERS_A_CHUNK = 512,
	/* iseq.c: struct succ_index_table: what stands for the first 54 words; a block for each 512 more */
	RUBY_INDEX_BYTES = 48,
	RUBY_INDEX_WORDS = 54,
	RUBY_INDEX_BLOCK_BYTES = 80,
	RUBY_INDEX_BLOCK_WORDS = 512,
	/* of objects */
	RUBY_NAME_BYTES = 255,
	RUBY_FILE_BYTES = 1023,
	RUBY_INDEX_MAX = 2047,
	RUBY_LINES_MAX = 4095,
};

/*
 * The parts of an object record: an iseq's, or a method's that is written in C, which has a name and perhaps a class alone.
 * RUBY_PART_LINES are the index and behind it the entries.
 */
enum ruby_part { RUBY_PART_NAME, RUBY_PART_CLASS, RUBY_PART_FILE, RUBY_PART_LINES };
/* part_state: of the name how many of its last bytes are the method's name, and RUBY_IS_SINGLETON; of the class where the
 * instructions begin, in words; of the file the first line; of the lines how many words of instructions there are. A frame's
 * place is the address of the word before its next instruction, in words. */
#define RUBY_IS_SINGLETON (1u << 31)

#endif
