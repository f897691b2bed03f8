/* SPDX-License-Identifier: Apache-2.0 */
/*
 * steps [-n STRETCHES] [-s STEPS] COMMAND...
 *
 * Runs COMMAND, a node, stops its first thread at random, and lets it take STEPS instructions one by one. Calls and returns
 * that the processor makes tell who called each function: its return address, and the caller's frame pointer at the call.
 * Before each instruction in code that V8 made, and in V8's builtins, hearth's row there must lead to just these. On
 * standard output what differs, by place in the code; on standard error a sum. Exit status 1 when more than one in a
 * thousand differs.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/rows/code/insn_x86_64.h"
#include "agent/rows/row_builder.h"
#include "agent/rows/rows.h"
#include "base/cleanup.h"
#include "base/text/parse.h"
#include "tests/v8/node.h"

enum { MAX_DEPTH = 65536, MAX_BLOCKS = 8192, WARM_MS = 700, SHOWN = 400 };

/* A call that has not returned. */
struct call {
	uint64_t return_addr, fp, sp; /* sp: behind the return address */
};

struct block {
	struct code_block block;
	struct row *rows;
	size_t count;
};

static struct call calls[MAX_DEPTH];
static uint32_t depth;
static struct block blocks[MAX_BLOCKS];
static uint32_t block_cnt;
static struct row_source *file_rows;
static struct {
	uint64_t stretches, steps, made, builtin, wrong_made, wrong_builtin, no_row, lost;
} counts;

/* --- rows --- */

static bool is_alive(const struct block *b)
{
	for (int i = 0; i < CODE_TOKENS; i++)
		if (b->block.tokens[i].mask &&
		    (node_word(b->block.tokens[i].addr) & b->block.tokens[i].mask) != b->block.tokens[i].value)
			return false;
	return true;
}

static struct block *find_block(uint64_t pc)
{
	struct block *b = NULL;
	struct code_memory m = node_memory();

	for (uint32_t i = 0; i < block_cnt && !b; i++)
		if (pc >= blocks[i].block.start && pc < blocks[i].block.end)
			b = &blocks[i];
	if (b && is_alive(b))
		return b;
	if (!b && block_cnt < MAX_BLOCKS)
		b = &blocks[block_cnt++];
	if (!b)
		b = &blocks[(uint64_t)random() % MAX_BLOCKS];
	free(b->rows);
	memset(b, 0, sizeof(*b));
	if (code_v8.block(node.state, &m, pc, &b->block) || code_v8.rows(node.state, &m, &b->block, &b->rows, &b->count))
		memset(b, 0, sizeof(*b));
	return b;
}

static int read_word(void *arg, uint64_t addr, void *dst, size_t len)
{
	struct code_memory m = node_memory();

	(void)arg;
	return code_read(&m, addr, dst, len);
}

/* The caller of @in by the row at @pc. 0, or -errno; -ENOENT: no row. */
static int caller(uint64_t pc, const struct area *a, const struct row_regs *in, struct row_regs *out)
{
	const struct block *b;

	if (a->is_node)
		return row_eval(file_rows, pc - a->bias, in, read_word, NULL, out);
	b = find_block(pc);
	for (size_t i = 0; i < b->count; i++)
		if (pc >= b->rows[i].start && pc < b->rows[i].end)
			return row_apply(&b->rows[i], in, read_word, NULL, out);
	return -ENOENT;
}

/* --- what differs, by place --- */

static struct place {
	uint64_t addr; /* in the file, or offset in a block */
	uint64_t block;
	uint64_t count;
	bool is_node;
	int error;
	uint64_t found, expected, fp_found, fp_expected;
} places[4096];
static uint32_t place_cnt;

static void differs(uint64_t pc, const struct area *a, int error, const struct row_regs *out, const struct call *c)
{
	uint64_t block = a->is_node ? 0 : find_block(pc)->block.start, addr = a->is_node ? pc - a->bias : pc - block;

	for (uint32_t i = 0; i < place_cnt; i++) {
		if (places[i].addr == addr && places[i].block == block) {
			places[i].count++;
			return;
		}
	}
	if (place_cnt < ARRAY_LEN(places))
		places[place_cnt++] = (struct place){
			addr, block, 1, a->is_node, error, out->value[REG_PC], c->return_addr, out->value[REG_FP], c->fp
		};
}

static int by_count(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	return (x->count < y->count) - (x->count > y->count);
}

static void show(void)
{
	qsort(places, place_cnt, sizeof(places[0]), by_count);
	for (uint32_t i = 0; i < place_cnt && i < SHOWN; i++)
		printf("%6" PRIu64 " %s %#" PRIx64 "+%#" PRIx64 " error %d found %#" PRIx64 " instead of %#" PRIx64
		       ", fp %#" PRIx64 " instead of %#" PRIx64 "\n",
		       places[i].count, places[i].is_node ? "builtin" : "made", places[i].block, places[i].addr,
		       places[i].error, places[i].found, places[i].expected, places[i].fp_found, places[i].fp_expected);
}

/* --- steps --- */

static struct row_regs row_regs_of(const struct user_regs_struct *r)
{
	struct row_regs in = { .known = (1ull << USER_REGS) - 1, .is_exact = true };
	const uint64_t values[] = { r->rax, r->rdx, r->rcx, r->rbx, r->rsi, r->rdi, r->rbp, r->rsp, r->r8,
				    r->r9,  r->r10, r->r11, r->r12, r->r13, r->r14, r->r15, r->rip };

	memcpy(in.value, values, sizeof(values));
	return in;
}

static bool is_builtin(uint64_t addr)
{
	return addr >= node.layout.builtins.start && addr < node.layout.builtins.end;
}

/* Is the code at @pc a bytecode's? Such code may run in the frame of the function, and then stands for it. */
static bool is_handler(uint64_t pc, const struct area *a)
{
	const struct v8_range *h = &node.layout.handlers;

	return a->is_node && pc - a->bias >= h->start && pc - a->bias < h->end;
}

/* Does the code at regs->rip, which @c called, run in the frame of its caller? So do handlers, and the prologue of baseline
 * code once it has made that. */
static bool runs_in_frame(const struct user_regs_struct *regs, const struct area *a, const struct call *c)
{
	const struct area *from = node_area(c->return_addr);

	return is_handler(regs->rip, a) || (from && from->is_made && node_word(regs->rbp + 8) == c[-1].return_addr);
}

static bool leads_to(const struct row_regs *out, const struct call *c)
{
	return out->value[REG_PC] == c->return_addr && out->value[REG_FP] == c->fp;
}

/* Compares the row before the instruction at regs->rip with the call that led there. A regular expression's code calls parts
 * of itself, which have no frame. */
static void judge(const struct user_regs_struct *regs)
{
	const struct area *a = node_area(regs->rip);
	struct row_regs in = row_regs_of(regs), out = { 0 };
	const struct call *c;
	const struct block *b;
	int error;

	if (!depth || !a || (!a->is_made && !(a->is_node && is_builtin(regs->rip - a->bias))))
		return;
	c = &calls[depth - 1];
	b = a->is_made ? find_block(regs->rip) : NULL;
	if ((b && c->return_addr >= b->block.start && c->return_addr < b->block.end) ||
	    (is_handler(regs->rip, a) && depth == 1))
		return;
	error = caller(regs->rip, a, &in, &out);
	*(a->is_made ? &counts.made : &counts.builtin) += 1;
	counts.no_row += error == -ENOENT;
	if (!error && (leads_to(&out, c) || (depth > 1 && leads_to(&out, c - 1) && runs_in_frame(regs, a, c))))
		return;
	*(a->is_made ? &counts.wrong_made : &counts.wrong_builtin) += 1;
	differs(regs->rip, a, error, &out, c);
}

/* Follows calls and returns: @before and @after one instruction, whose bytes are @insn. */
static void follow(const struct user_regs_struct *before, const struct user_regs_struct *after, const uint8_t insn[16])
{
	uint32_t len = insn_bytes(insn, 16);
	uint8_t op = insn[0];

	if ((op & 0xf0) == 0x40) /* REX */
		op = insn[1];
	if (after->rsp == before->rsp - 8 && (op == 0xe8 || op == 0xff) && after->rip != before->rip + len &&
	    node_word(after->rsp) == before->rip + len) {
		if (depth < MAX_DEPTH)
			calls[depth++] = (struct call){ before->rip + len, before->rbp, before->rsp };
		return;
	}
	if (op != 0xc3 && op != 0xc2)
		return;
	while (depth && calls[depth - 1].return_addr != after->rip && after->rsp > calls[depth - 1].sp)
		depth--;
	if (depth && calls[depth - 1].return_addr == after->rip)
		depth--;
	else if (depth) { /* a return that is none */
		counts.lost++;
		depth = 0;
	}
}

static bool stretch(uint64_t steps)
{
	struct user_regs_struct regs, before;

	if (!node_stop(&regs))
		return false;
	depth = 0;
	for (uint64_t i = 0; i < steps; i++) {
		struct code_memory m = node_memory();
		uint8_t insn[16] = { 0 };

		judge(&regs);
		before = regs;
		if (code_read(&m, regs.rip, insn, sizeof(insn)) || !node_step(&regs))
			break;
		follow(&before, &regs, insn);
		counts.steps++;
	}
	counts.stretches++;
	node_continue();
	return true;
}

int main(int argc, char **argv)
{
	uint64_t stretches = 100, steps = 5000, judged, wrong;
	int c;

	while ((c = getopt(argc, argv, "+n:s:")) != -1)
		if ((c != 'n' && c != 's') || parse_u64(optarg, c == 'n' ? &stretches : &steps))
			return 2;
	if (optind == argc)
		return 2;
	srandom((unsigned)getpid());
	node_start(argv[optind], argv + optind, WARM_MS);
	if (row_source_new_memory(node.file, node.file_bytes, &file_rows))
		return 2;
	while (counts.stretches < stretches) {
		usleep(500 + (unsigned)random() % 20000);
		if (!stretch(steps))
			break;
	}
	node_end();
	show();
	judged = counts.made + counts.builtin;
	wrong = counts.wrong_made + counts.wrong_builtin;
	fprintf(stderr,
		"V8 %u.%u: %" PRIu64 " stretches, %" PRIu64 " steps; judged: %" PRIu64 " in made code, %" PRIu64
		" wrong; %" PRIu64 " in builtins, %" PRIu64 " wrong; %" PRIu64 " without a row; %" PRIu64
		" returns that were none\n",
		node.layout.version >> 16, node.layout.version & 0xffff, counts.stretches, counts.steps, counts.made,
		counts.wrong_made, counts.builtin, counts.wrong_builtin, counts.no_row, counts.lost);
	return judged && wrong * 1000 <= judged ? 0 : 1;
}
