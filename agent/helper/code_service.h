/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Everything the agent wants from other processes' memory about the code that runtimes made there, as plain bytes over the
 * interface of agent/helper/elf_service.h: ELF_OP_CODE, whose descriptor is of /proc/PID/mem and whose payload is a struct
 * code_request. The request's file number is the agent's number of that memory: the reader's state is kept under it, and
 * files that were brought for it, and both are forgotten by ELF_OP_FORGET. A kind of worker of its own answers, as memory
 * may belong to whom never answers.
 */
#ifndef HEARTH_AGENT_HELPER_CODE_SERVICE_H
#define HEARTH_AGENT_HELPER_CODE_SERVICE_H

#include "agent/helper/elf_service.h"
#include "agent/runtime/code/code_files.h"
#include "agent/runtime/code/code_reader.h"
#include "agent/runtime/code/go_heap.h"

enum code_op {
	CODE_OP_RANGES, /* behind the request: struct code_range each, code's memory without a file -> struct code_ranges */
	CODE_OP_BLOCK,	/* addr -> struct code_found, row_cnt rows, name_bytes of symbols/script/block_names.h */
	CODE_OP_FUNCTION, /* words -> struct code_named, name_bytes of these */
	CODE_OP_WORDS,	  /* behind the request: addresses -> the words there, struct code_word each */
	CODE_OP_HEAP,	  /* behind the request: struct go_heap_request -> as agent/runtime/code/go_heap.h says */
	CODE_OP_FILE,	  /* the descriptor is the file that was needed for the image at addr; none: there is no such file */
};

struct code_request {
	uint32_t op;	  /* enum code_op */
	uint32_t capture; /* CODE_OP_FUNCTION */
	uint64_t addr;
	uint64_t words[CODE_CAPTURE_WORDS];
	uint64_t bias; /* of the file with the facts */
	struct code_facts facts;
};

struct code_ranges {
	uint32_t count, pad;
	struct code_range ranges[CODE_RANGES];
	struct code_capture captures[CODE_CAPTURES];
};

/* Where a file is needed, names are as they are without it; once it was brought they are worth asking for again. */
struct code_found {
	struct code_block block;
	struct code_need need;
	uint32_t row_cnt, name_bytes; /* 0: there are none */
};

struct code_named {
	struct captured_function function;
	uint32_t name_bytes, pad;
};

struct code_word {
	uint64_t value;
	uint64_t is_read; /* 0: it cannot be read */
};

enum { CODE_MAX_WORDS = 4096 };

/* The form that reads in this process. 0 or -ENOMEM. */
int code_service_new(struct elf_service **ret);

/* Is the @len bytes reply to a request of @op what an honest worker may have said? Then every count and offset in it is
 * good. */
bool code_reply_is_sound(const struct code_request *request, const void *reply, size_t len);

#endif
