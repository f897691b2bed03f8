/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stops [-n STOPS] [-i NODE] COMMAND...
 *
 * Runs COMMAND, a node whose file is NODE (default: COMMAND's), stops its first thread at random instructions, and prints
 * the functions that hearth's reader of V8 finds on its stack, a line for each stop: NAME, LINE and FILE of each frame,
 * outermost first, separated by 0x1f, frames by tabs. Frames are found by frame pointers, as all code of V8 has them but in
 * prologues and epilogues: this tests names, not the walk. On standard error how many frames of which kind there were and
 * how much was read. Nothing of hearth's agent is used but the reader.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/runtime/code/v8/v8_code.h"
#include "base/text/parse.h"
#include "tests/v8/node.h"

enum { MAX_FRAMES = 2048, WARM_MS = 700 };

static struct {
	uint64_t stops, optimized, baseline, interpreted, leaf_interpreted, regexp, other, no_block, no_name, no_function,
		reads, lookups;
} counts;

static void count_reads(const struct code_memory *m)
{
	counts.reads += CODE_MAX_READS - m->reads_left;
}

/* --- frames --- */

static struct frame {
	char text[8192];
} frames[MAX_FRAMES];
static uint32_t frame_cnt;

static void add(const void *content, size_t len, uint32_t place, bool is_return)
{
	struct block_line lines[BLOCK_NAMES_MAX_DEPTH];
	uint32_t n = block_names_find(content, len, place, is_return, lines);

	for (uint32_t i = 0; i < n && frame_cnt < MAX_FRAMES; i++)
		snprintf(frames[frame_cnt++].text, sizeof(frames[0].text), "%.*s\x1f%u\x1f%.*s\x1f%u", lines[i].name_bytes,
			 lines[i].name, lines[i].line, lines[i].file_bytes, lines[i].file, lines[i].start_line);
	if (!n)
		counts.no_name++;
}

static void hole(const char *why)
{
	if (frame_cnt < MAX_FRAMES)
		snprintf(frames[frame_cnt++].text, sizeof(frames[0].text),
			 "[%s]\x1f"
			 "0\x1f\x1f"
			 "0",
			 why);
}

/* The words of the capture @number of a frame. */
static void read_words(const struct user_regs_struct *regs, uint32_t number, uint64_t fp, bool is_leaf,
		       uint64_t words[CODE_CAPTURE_WORDS])
{
	struct code_capture captures[CODE_CAPTURES];
	struct code_memory m = node_memory();

	memset(captures, 0, sizeof(captures));
	code_v8.captures(node.state, &node.facts, captures);
	for (uint32_t i = 0; i < captures[number - 1].count; i++) {
		const struct code_capture_word *w = &captures[number - 1].words[i];

		words[i] = is_leaf && w->leaf_reg == 9 ? regs->r9 : code_read_u64(&m, fp + (uint64_t)(int64_t)w->offset);
	}
}

static void captured(const struct user_regs_struct *regs, uint32_t number, uint64_t pc, uint64_t fp, bool is_leaf)
{
	uint64_t words[CODE_CAPTURE_WORDS + 1] = { 0 }, place;
	struct block_names *n = block_names_new();
	struct code_memory m = node_memory();
	struct captured_function f;
	struct buf out = BUF_EMPTY;
	int error;

	read_words(regs, number, fp, is_leaf, words);
	words[CODE_CAPTURE_WORDS] = pc;
	error = code_v8.function(node.state, &m, number, words, &f, n);
	count_reads(&m);
	if (error || block_names_write(n, &out)) {
		counts.no_function++;
		fprintf(stderr, "no function: capture %u pc %#" PRIx64 " bytecode %#" PRIx64 " closure %#" PRIx64 ": %s\n",
			number, pc, words[0], words[1], strerror(-error));
		hole("no function");
	} else {
		place = (uint32_t)((words[f.word] >> f.shift) - f.base);
		add(out.data, out.len, place < f.bytes ? (uint32_t)place : 0, false);
	}
	buf_fini(&out);
	block_names_free(n);
}

static void made_code(const struct user_regs_struct *regs, uint64_t pc, uint64_t fp, bool is_leaf)
{
	struct block_names *n = block_names_new();
	struct code_memory m = node_memory();
	struct buf out = BUF_EMPTY;
	struct code_block b;
	int error = code_v8.block(node.state, &m, pc, &b);

	counts.lookups++;
	count_reads(&m);
	if (error) {
		counts.no_block++;
		hole("no block");
	} else if (b.kind == V8_CODE_BASELINE) {
		counts.baseline++;
		captured(regs, 2, pc, fp, is_leaf);
	} else if (code_v8.names(node.state, &m, &b, n) || block_names_write(n, &out)) {
		counts.other++;
		if (b.kind == V8_CODE_OPTIMIZED)
			hole("no names");
	} else {
		counts.optimized += b.kind == V8_CODE_OPTIMIZED;
		counts.regexp += b.kind == V8_CODE_REGEXP;
		add(out.data, out.len, (uint32_t)(pc - b.start), !is_leaf);
	}
	buf_fini(&out);
	block_names_free(n);
}

static void take_frame(const struct user_regs_struct *regs, uint64_t pc, uint64_t fp, bool is_leaf)
{
	const struct area *a = node_area(pc);
	uint64_t addr = a && a->is_node ? pc - a->bias : 0;
	const struct v8_range *t = &node.layout.trampoline, *h = &node.layout.handlers;

	if (a && a->is_made)
		made_code(regs, pc, fp, is_leaf);
	else if ((addr >= t->start && addr < t->end) || (addr >= h->start && addr < h->end)) {
		struct code_memory m = node_memory();

		if (!(code_read_u64(&m, fp - 8) & 1)) /* a frame of the handler's own */
			return;
		counts.interpreted++;
		counts.leaf_interpreted += is_leaf;
		captured(regs, 1, pc, fp, is_leaf);
	}
}

static void walk(const struct user_regs_struct *regs)
{
	uint64_t fp = regs->rbp, pc = regs->rip;
	bool is_leaf = true;

	frame_cnt = 0;
	for (uint32_t i = 0; i < MAX_FRAMES; i++) {
		struct code_memory m = node_memory();
		uint64_t next;

		take_frame(regs, pc - !is_leaf, fp, is_leaf);
		is_leaf = false;
		next = code_read_u64(&m, fp);
		pc = code_read_u64(&m, fp + 8);
		if (next <= fp || !pc)
			break;
		fp = next;
	}
	for (uint32_t i = frame_cnt; i--;)
		printf("%s%s", frames[i].text, i ? "\t" : "");
	putchar('\n');
}

static void run(uint64_t stops)
{
	struct user_regs_struct regs;

	while (counts.stops < stops) {
		usleep(500 + (unsigned)random() % 5000);
		if (!node_stop(&regs))
			break;
		walk(&regs);
		counts.stops++;
		node_continue();
	}
}

int main(int argc, char **argv)
{
	const char *file = NULL;
	uint64_t stops = 1000;
	int c;

	while ((c = getopt(argc, argv, "+n:i:")) != -1) {
		if (c == 'i')
			file = optarg;
		else if (c != 'n' || parse_u64(optarg, &stops))
			return 2;
	}
	if (optind == argc)
		return 2;
	srandom((unsigned)getpid());
	node_start(file ? file : argv[optind], argv + optind, WARM_MS);
	run(stops);
	node_end();
	fprintf(stderr,
		"V8 %u.%u: %" PRIu64 " stops, frames: %" PRIu64 " optimized, %" PRIu64 " baseline, %" PRIu64
		" interpreted (%" PRIu64 " innermost), %" PRIu64 " regexp, %" PRIu64 " other code; not found: %" PRIu64
		" code, %" PRIu64 " names, %" PRIu64 " functions; %.1f reads a frame\n",
		node.layout.version >> 16, node.layout.version & 0xffff, counts.stops, counts.optimized, counts.baseline,
		counts.interpreted, counts.leaf_interpreted, counts.regexp, counts.other, counts.no_block, counts.no_name,
		counts.no_function,
		(double)counts.reads / (double)(counts.lookups + counts.interpreted + counts.baseline + 1));
	return counts.stops ? 0 : 1;
}
