/* SPDX-License-Identifier: Apache-2.0 */
/* A node that runs under ptrace, for tests of hearth's reader of V8. One thread, one node. */
#ifndef HEARTH_TESTS_V8_NODE_H
#define HEARTH_TESTS_V8_NODE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

#include "agent/runtime/code/code_reader.h"
#include "agent/runtime/file/v8_layout.h"

struct area {
	uint64_t start, end, bias; /* bias: of the file's code, where it is node's */
	bool is_node, is_made;	   /* is_made: executable memory without a file */
};

struct node {
	pid_t pid;
	int fd; /* of its memory */
	struct code_facts facts;
	struct v8_layout layout;
	uint8_t state[CODE_STATE_BYTES]; /* the reader's */
	const uint8_t *file;		 /* its ELF file */
	size_t file_bytes;
};

extern struct node node;

/* Starts @argv, whose ELF file is @path, lets it run for @warm_ms, and attaches to its first thread. Ends the program on
 * failure: with 77 when the file has no V8 that the reader knows. */
void node_start(const char *path, char **argv, unsigned warm_ms);

/* Stops the thread and reads its registers. False: it is gone. */
bool node_stop(struct user_regs_struct *regs);
/* Lets it take one instruction. False: it is gone. */
bool node_step(struct user_regs_struct *regs);
void node_continue(void);
void node_end(void);

/* The area of code that @pc is in; NULL: none. Valid until the next call. */
const struct area *node_area(uint64_t pc);

/* Memory with a fresh budget. */
struct code_memory node_memory(void);

uint64_t node_word(uint64_t addr);

#endif
