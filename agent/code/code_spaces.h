/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Code that runtimes make in processes while they run, with frames on the native stack (agent/runtime/code/): where it is
 * kept, its rows and its names. The memory where a process keeps code is a file as far as the kernel's caches and the walks
 * are concerned (struct file's code), made of pieces: what a reader calls a block. A piece is read by a helper process when
 * a walk first meets it, names and all, so that names survive the code and the process.
 *
 * Birth and death. A piece is told by words of memory that change when it goes (tokens). A frame in it counts only if the
 * tokens were the same when they were looked at after the sample's time; that is done at once for all that a sample's
 * frames, or words of its stack, lead to, and now and then for all that is in use. When a piece is found to have gone its
 * blocks leave the kernel's cache, and the process takes another asid, as the kernel's smaller caches (first level, memo)
 * are keyed by that: no walk that begins later can use the piece's rows. A sample that crossed a piece which has gone, or
 * which is younger than the sample, is cut there.
 *
 * Agent's thread.
 */
#ifndef HEARTH_AGENT_CODE_CODE_SPACES_H
#define HEARTH_AGENT_CODE_CODE_SPACES_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/process/processes.h"
#include "agent/rows/row.h"
#include "agent/samples/record.h"
#include "base/wait_hook.h"
#include "bpf/event.h"

struct buf;
struct code_spaces;
struct elf_service;
struct metrics;
struct sampler;

/* Takes over @service, which reads other processes' memory, also when it fails. The others are borrowed. @off: bit i: code
 * of the runtime i (enum code_id) is left alone. 0 or -ENOMEM. */
int code_spaces_new(struct elf_service *service, uint32_t off, struct files *files, struct objects *objects,
		    struct metrics *metrics, struct code_spaces **ret);
/* To be called when no process is left. */
void code_spaces_free(struct code_spaces *cs);

/* Nobody is told, called or asked any more: what they stand on is about to go. */
void code_spaces_detach(struct code_spaces *cs);

/* From now on the kernel is told. @hook (copied) runs now and then while something here waits. */
void code_spaces_attach(struct code_spaces *cs, struct sampler *sampler);
void code_spaces_on_wait(struct code_spaces *cs, struct wait_hook hook);

/* Is a runtime mapped in @as whose code a reader knows? */
bool code_spaces_has_runtime(const struct code_spaces *cs, const struct address_space *as);

/* Is there memory of @as of which its runtime is to be asked yet, whether it keeps code there? As of the last
 * code_spaces_meet(). */
bool code_spaces_is_behind(const struct address_space *as);

/* Is memory of @as known to hold generated code? */
bool code_spaces_has_code(const struct address_space *as);

/* Finds out where @p keeps code, unless that is known or was tried a moment ago. Returns whether its mappings have changed,
 * which the kernel was told then. */
bool code_spaces_meet(struct code_spaces *cs, struct process *p);

/* Does any process make code? */
bool code_spaces_are_used(const struct code_spaces *cs);

/* Looks at the tokens of all that was in use of late, in all processes: of one that ends, samples are to be named that
 * nobody has read yet. To be called about each CODE_LOOK_MS. */
void code_spaces_look(struct code_spaces *cs);

enum { CODE_LOOK_MS = 250 };

struct code_request;

/* A number for memory that is read by code_spaces_read(), and forgotten there when @number is. */
uint32_t code_spaces_take_number(struct code_spaces *cs);

/* Has the reader of other processes' memory answer @what, with @more behind it, about the memory @number, by @memory_fd.
 * Returns elf_service_call()'s status; *@reply_ret is the answer, sound, until the next call. */
int code_spaces_read(struct code_spaces *cs, uint32_t number, int memory_fd, const struct code_request *what,
		     const void *more, size_t more_bytes, const struct buf **reply_ret);

/* --- rows --- */

/* A piece as the caches need it: offsets in its file. */
struct code_piece_range {
	uint64_t start, end;
	bool is_new;
};

/* Looks, by one question, at the tokens of all pieces that a walk of @s, a sample of @p with copies of its stack, may come
 * through: those that a word of the stack points into. */
void code_expect(struct process *p, const struct pending_sample *s);

/* Puts the row at offset @va of @file (with code), as it was at @time_ns (CLOCK_MONOTONIC), into *@row, and its piece into
 * *@piece. 0; 1: no rule there; -ENOENT: no code is known there. @row's capture is a number of capture_classes. */
int code_row(struct code_spaces *cs, struct process *p, struct file *file, uint64_t va, uint64_t time_ns, struct row *row,
	     struct code_piece_range *piece);

/* Puts the rows that touch the block of code of @va, uncut, into @rows (ROW_CFA_UNASKED where no piece is known). Returns
 * their number, at most CODE_BLOCK_BYTES. */
size_t code_block_rows(const struct code_spaces *cs, const struct file *file, uint64_t va, struct row *rows);

/* Rows of @file, a runtime's own: turns the numbers of captures that its reader has into those of capture_classes. Without
 * @cs rows have no captures. */
void code_map_captures(struct code_spaces *cs, const struct file *file, struct row *rows, size_t count);

/* The words that go with frames whose row has the capture @number. NULL: there is none such. */
const struct capture_class *code_capture_class(const struct code_spaces *cs, uint32_t number);

/* --- names --- */

/*
 * Makes frames of objects (FRAME_OF_SCRIPT) of the @count user frames @user of @s that are in such code; @captures are words
 * as of SECTION_CAPTURES. The result is in @frames, which has room for as many. Returns their number: fewer, with *@end set
 * to END_STALE, where the kernel walked through code that has gone since. Frames in memory that nobody knows make it ask the
 * runtime again where it keeps code: the kernel walks such memory by frame pointers and needs nobody for it.
 */
uint32_t code_frames(struct code_spaces *cs, struct process *p, const struct pending_sample *s, const uint64_t *user,
		     uint32_t count, const uint64_t *captures, uint32_t capture_cnt, uint64_t *frames, enum walk_end *end);

/* To be called when a sample of @p has its stack: takes out of all caches what was found to have gone. */
void code_settle(struct process *p);

/* The place of such a frame (struct trace_frame's addr): an offset in its piece, and whether it is that of a call's last
 * byte. */
#define CODE_PLACE_RETURN (1u << 31)

size_t code_spaces_memory_bytes(const struct code_spaces *cs);

#endif
