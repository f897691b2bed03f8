/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The walk in user space. A frame's row gives the caller's pc, sp and fp by the same step the kernel runs (bpf/unwind.h);
 * the other callee-saved registers are followed beside it, and a rule the step cannot evaluate is evaluated exactly
 * (row_eval). On its way the walk must meet the frames the kernel found; a difference is a counted bug. Agent's thread.
 */
#include <errno.h>
#include <string.h>

#include "agent/code/code_spaces.h"
#include "agent/rows/row_builder.h"
#include "agent/walk/blocks.h"
#include "agent/walk/cache_fill.h"
#include "agent/walk/late_memory.h"
#include "agent/walk/late_walk.h"
#include "agent/walk/tagged.h"
#include "agent/kernel/sampler.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "bpf/deep.h"

enum {
	MAX_WRONG_GUESSES = 3,
	REFILL_MS = 500, /* an entry put into a cache so recently is not put there again: samples in flight miss it too */
	KEPT_MS = 60000, /* for so long the kernel is believed to have entries that it did not miss */
	PROVEN_SLOTS = 4096,
};

struct late {
	struct processes *processes;
	struct files *files;
	struct code_spaces *code; /* NULL: generated code is walked by frame pointers */
	struct sampler *sampler;
	struct cache_fill *fill; /* owned */
	struct buf request, reply;
	struct late_result result;
	struct {
		uint32_t file; /* 0: free */
		uint64_t va;
	} proven[PROVEN_SLOTS]; /* return addresses that stand behind calls, as their files' reader said */
	struct metric *walks, *mismatches, *evaluated;
};

/* One walk in progress. */
struct walk {
	struct late *late;
	struct process *process;
	const struct pending_sample *sample;
	struct unwind_memory memory;
	struct row_regs regs;
	uint32_t falls; /* how often the stack pointer fell */
	uint64_t now_ns;
	bool reread;	   /* the mappings were read again for this sample already */
	bool was_followed; /* the rule that led to this frame came from instructions or frame pointers */
	struct deep deep;
};

int late_new(struct processes *processes, struct files *files, struct code_spaces *code, struct sampler *sampler,
	     struct metrics *metrics, struct late **ret)
{
	struct late *l = calloc(1, sizeof(*l));

	if (!l || cache_fill_new(files, code, sampler, metrics, &l->fill)) {
		free(l);
		return -ENOMEM;
	}
	l->processes = processes;
	l->files = files;
	l->code = code;
	l->sampler = sampler;
	l->walks = metrics_counter(metrics, "hearth_late_walks_total", NULL,
				   "Samples walked in user space after a cache miss.");
	l->evaluated = metrics_counter(metrics, "hearth_late_evaluated_frames_total", NULL,
				       "Frames whose rule only user space can evaluate.");
	l->mismatches = metrics_counter(metrics, "hearth_late_mismatches_total", NULL,
					"Late walks that did not meet the frames the kernel found (a bug in hearth).");
	*ret = l;
	return 0;
}

void late_free(struct late *l)
{
	if (!l)
		return;
	cache_fill_free(l->fill);
	buf_fini(&l->request);
	buf_fini(&l->reply);
	free(l);
}

/* --- one step --- */

/* The registers besides pc, sp and fp, from where @row says the frame with @cfa and @fp saved them. */
static void restore_saved(struct walk *w, const struct row *row, uint64_t cfa, uint64_t fp)
{
	for (int i = 0; i < SAVED_MAX; i++) {
		uint64_t base = row_is_at_fp(row->saved[i]) ? fp - (uint64_t)ROW_AT_FP : cfa;
		int reg = row_saved_regs[i];
		__u64 value;

		if (row->saved[i] == ROW_SAME || i == SAVED_FP || i == SAVED_RA)
			continue;
		if (unwind_read(&w->memory, base + (uint64_t)(int64_t)row->saved[i], &value)) {
			w->regs.known &= ~(REG_BIT(reg));
			continue;
		}
		w->regs.value[reg] = value;
		w->regs.known |= REG_BIT(reg);
	}
}

static bool row_has_other(const struct row *row)
{
	for (int i = 0; i < SAVED_MAX; i++)
		if (row->saved[i] == ROW_OTHER)
			return true;
	return false;
}

/* The rule of a walk by frame pointers. */
enum { WALKED_HAS_SP = !CPU_HAS_LR };
#define WALKED (REG_BIT(REG_PC) | REG_BIT(REG_FP) | (WALKED_HAS_SP ? REG_BIT(REG_SP) : 0))

/* The exact rule, whatever it is, through the ELF service. 0, or 1 with *end set. */
static int step_exactly(struct walk *w, struct file *file, uint64_t va, enum walk_end *end)
{
	struct late *l = w->late;
	uint64_t sp = w->regs.value[REG_SP];
	/* A thread in the page fault that grows its stack has no page at sp; its callers' frames are above. */
	const struct stack_area *stack = stack_area_from(w->sample->areas, w->sample->area_cnt, sp);
	struct elf_eval eval = { .regs = w->regs, .stack_addr = stack ? stack->addr : 0 };
	int status;

	metric_add(l->evaluated, 1);
	*end = END_BAD_MEMORY;
	if (!stack)
		return 1;
	buf_reset(&l->request);
	buf_append(&l->request, &eval, sizeof(eval));
	buf_append(&l->request, stack->data, stack->bytes);
	status = l->request.failed ? -ENOMEM
				   : files_call(l->files, file, ELF_OP_EVAL, va, l->request.data, l->request.len, &l->reply);
	if (!status && l->reply.len == sizeof(w->regs)) {
		bool had_lr = CPU_HAS_LR && w->regs.known & REG_BIT(REG_RA);

		memcpy(&w->regs, l->reply.data, sizeof(w->regs));
		*end = END_ROOT;
		if (!w->regs.value[REG_PC])
			return 1;
		*end = END_NO_PROGRESS;
		return w->regs.value[REG_SP] <= sp && !(had_lr && w->regs.value[REG_SP] == sp) && !w->regs.is_exact &&
		       ++w->falls > UNWIND_MAX_FALLS;
	}
	*end = status == 1 ? END_ROOT : status == -EFAULT ? END_BAD_MEMORY : END_NO_RULE;
	return 1;
}

/* The kernel's own step over the packed rule. 0, or 1 with *end set. */
static int step_packed(struct walk *w, uint64_t packed, enum walk_end *end)
{
	struct unwind_state state = {
		.pc = w->regs.value[REG_PC],
		.sp = w->regs.value[REG_SP],
		.fp = w->regs.value[REG_FP],
		.lr = w->regs.known & REG_BIT(REG_RA) ? w->regs.value[REG_RA] : 0,
		.exact = w->regs.is_exact,
		.falls = w->falls,
		.lost_sp = !(w->regs.known & REG_BIT(REG_SP)),
	};

	if (unwind_step(&state, packed, &w->memory)) {
		*end = state.end;
		return 1;
	}
	w->regs.value[REG_PC] = state.pc;
	w->regs.value[REG_SP] = state.sp;
	w->regs.value[REG_FP] = state.fp;
	w->regs.is_exact = state.exact;
	if (CPU_HAS_LR && state.lr) {
		w->regs.value[REG_RA] = state.lr;
		w->regs.known |= REG_BIT(REG_RA);
	} else if (CPU_HAS_LR) {
		w->regs.known &= ~REG_BIT(REG_RA);
	}
	w->falls = state.falls;
	return 0;
}

static int step_row(struct walk *w, struct file *file, uint64_t va, const struct row *row, enum walk_end *end)
{
	uint64_t packed = row ? block_pack_row(row, 0) : ROW(0, RULE_NONE, 0, 0, 0);
	uint64_t fp = w->regs.value[REG_FP];
	uint32_t rule = ROW_RULE(packed);

	if (rule == RULE_SIGNAL) /* nobody called it: its address is no return address */
		w->late->result.frames[w->late->result.count - 1] |= FRAME_EXACT;
	/* A signal frame restores every register: only the exact rule brings them all back. A thread in the system call that
	 * ends it stands behind its code. */
	if (rule == RULE_USER || rule == RULE_SIGNAL || (row && row_has_other(row)))
		return step_exactly(w, file, rule == RULE_SIGNAL ? row->start : va, end);
	if (step_packed(w, packed, end))
		return 1;
	w->regs.known &= rule == RULE_SCHED ? WALKED | REG_BIT(REG_SP) | REG_BIT(REG_RA) : CPU_CALLEE_SAVED;
	if (row)
		restore_saved(w, row, w->regs.value[REG_SP], fp);
	return 0;
}

/* Notes the words of the frame by which its runtime names it. */
static void capture(struct walk *w, const struct row *row)
{
	const struct capture_class *c = w->late->code ? code_capture_class(w->late->code, row->capture) : NULL;
	struct late_result *result = &w->late->result;
	uint32_t at = result->capture_cnt;

	if (!c || at + 1 + c->count > MAX_CAPTURE_WORDS)
		return;
	result->captures[at++] = CAPTURE_HEAD(result->count - 1, row->capture, c->count);
	for (uint32_t i = 0; i < c->count; i++) {
		int reg = c->words[i].reg;
		__u64 value = 0;

		if (w->regs.is_exact && reg >= 0 && w->regs.known >> reg & 1)
			value = w->regs.value[reg];
		else
			(void)unwind_read(&w->memory, w->regs.value[REG_FP] + (uint64_t)(int64_t)c->words[i].offset, &value);
		result->captures[at++] = value;
	}
	result->capture_cnt = at;
}

static int read_stack(void *arg, uint64_t addr, void *dst, size_t len)
{
	const struct walk *w = arg;
	const struct stack_area *area = stack_area_find(w->sample->areas, w->sample->area_cnt, addr, len);

	if (!area)
		return -EFAULT;
	memcpy(dst, area->data + (addr - area->addr), len);
	return 0;
}

/* A rule of generated code that the kernel's step cannot evaluate. */
static int step_apply(struct walk *w, const struct row *row, enum walk_end *end)
{
	struct row_regs out, *in = &w->regs;
	int status = row->cfa == ROW_CFA_TAGGED ? tagged_apply(w->process->as, w->sample, row, in, &out)
						: row_apply(row, in, read_stack, w, &out);

	metric_add(w->late->evaluated, 1);
	*end = status == 1 ? END_ROOT : status == -EFAULT ? END_BAD_MEMORY : END_NO_RULE;
	if (status)
		return 1;
	*end = out.value[REG_PC] ? END_NO_PROGRESS : END_ROOT;
	status = !out.value[REG_PC] || (out.value[REG_SP] <= in->value[REG_SP] && ++w->falls > UNWIND_MAX_FALLS);
	*in = out;
	return status;
}

/* Goes from a frame in code that its process made to the caller, filling the caches on the way. */
static int step_code(struct walk *w, const struct mapping *m, uint64_t addr, enum walk_end *end)
{
	struct late *l = w->late;
	struct code_piece_range piece;
	uint64_t va = addr - m->bias, fp = w->regs.value[REG_FP], packed;
	struct file *file = m->file;
	struct row row;
	int status = code_row(l->code, w->process, file, va, w->sample->record->hdr.time_ns, &row, &piece);

	cache_fill_mapping(l->fill, w->process->as, addr, m, MAPPING_ROWS);
	*end = END_NO_RULE;
	if (status < 0)
		return 1;
	cache_fill_piece(l->fill, file, &piece);
	if (status)
		return 1;
	w->was_followed = false;
	if (row.capture)
		capture(w, &row);
	packed = block_pack_row(&row, 0);
	if (ROW_RULE(packed) == RULE_USER)
		return step_apply(w, &row, end);
	if (step_packed(w, packed, end))
		return 1;
	w->regs.known &= CPU_CALLEE_SAVED;
	restore_saved(w, &row, w->regs.value[REG_SP], fp);
	return 0;
}

/* Goes to the frame of a virtual machine that the kernel found right above, where its code runs, or (@is_made) code that it
 * made and that has none of its own. False: there is none. */
static bool enter_vm_frame(struct walk *w, bool is_made)
{
	const struct unwind_sched *vm = &w->sample->regs->sched;
	uint64_t *regs = w->regs.value;

	if (vm->stack_hi || !(w->regs.known & REG_BIT(REG_SP)) || vm->sp - regs[REG_SP] - 1 >= VM_FRAME_BELOW_BYTES ||
	    (is_made ? !vm->lr : regs[REG_PC] - vm->pc >= vm->fp - vm->pc))
		return false;
	regs[REG_SP] = vm->sp;
	if (!is_made)
		return true;
	w->late->result.count--;
	regs[REG_PC] = vm->pc + 1; /* as a return address */
	w->regs.known = WALKED;
	w->regs.is_exact = false;
	return true;
}

static int step_frame_pointer(struct walk *w, enum walk_end *end)
{
	if (step_packed(w, ROW_FRAME_POINTER, end))
		return 1;
	w->regs.known = WALKED;
	return 0;
}

static const struct mapping *find_mapping(struct walk *w, uint64_t addr)
{
	const struct mapping *m = address_space_find(w->process->as, addr);

	if (!m && !w->reread) { /* munmap and mremap make no record */
		w->reread = true;
		if (process_reread(w->late->processes, w->process) == 1)
			process_publish(w->process, w->late->sampler);
		m = address_space_find(w->process->as, addr);
	}
	return m;
}

/* The result of ELF_OP_RETURN for the frame's pc; 0 also where code that is in no file cannot be asked, -ENOENT where no
 * code is. */
static int ask_return(struct walk *w)
{
	uint64_t addr = w->regs.value[REG_PC] - 1, va;
	const struct mapping *m = addr >> CPU_USER_BITS ? NULL : find_mapping(w, addr);
	struct late *l = w->late;
	uint32_t slot;
	int status;

	if (!m || !m->file || m->file->code || m->file->state != FILE_READABLE)
		return m ? 0 : -ENOENT;
	va = w->regs.value[REG_PC] - m->bias;
	slot = (uint32_t)(va * 0x9E3779B1u >> 7 ^ m->file->id) % PROVEN_SLOTS;
	if (l->proven[slot].file == m->file->id && l->proven[slot].va == va)
		return 0;
	status = files_call(l->files, m->file, ELF_OP_RETURN, va, NULL, 0, &l->reply);
	if (!status) {
		l->proven[slot].file = m->file->id;
		l->proven[slot].va = va;
	}
	return status;
}

/* Does the pc that a guessed row led to look like a return address? */
static bool is_behind_call(struct walk *w)
{
	int status = ask_return(w);

	return status != -ENOENT && status != 1;
}

/* May a guess end the walk because it found no return address? A new thread finds none where its stack begins. */
static bool may_be_first(const struct row *row)
{
	return row->cfa == ROW_CFA_ROOT || (row->cfa == ROW_CFA_REG && row->cfa_reg == REG_SP);
}

/*
 * A guess is right when it led behind a call. The kernel, which cannot look at code, hears of it only then, and of one that
 * was wrong again and again as of no rule: once may be a thread that has just begun, or stands where two ways of a function
 * meet.
 */
static int step_guess(struct walk *w, struct file *file, uint64_t va, const struct row *guess, enum walk_end *end)
{
	struct row row = *guess, learned;
	bool is_right;
	int ended;

	row.is_guess = false;
	ended = step_row(w, file, va, &row, end);
	if (ended && *end == END_BAD_MEMORY && w->sample->record->flags & (SAMPLE_CUT | SAMPLE_LIMITED))
		return 1; /* the copy was too short: nothing was learned */
	is_right = ended ? *end == END_ROOT && may_be_first(&row) : is_behind_call(w);
	if (files_row(w->late->files, file, va, &learned) == 0) {
		learned.wrong_cnt += !is_right;
		learned.is_guess = !is_right && learned.wrong_cnt < MAX_WRONG_GUESSES;
		if (!is_right && !learned.is_guess)
			learned.cfa = ROW_CFA_NONE;
		files_learn(w->late->files, file, va, &learned);
		cache_fill_block(w->late->fill, file, va);
	}
	if (!is_right)
		*end = END_NO_RULE;
	return ended || !is_right;
}

/*
 * A return address that no call put on the stack, behind code that no table describes: who made this stack wrote it there,
 * and it is the stack's end. Behind a rule that is a guess itself it would say nothing. Padding in front of described code
 * (glibc's __start_context) is no code, but part of the row before it, whose last byte it has.
 */
static bool is_hand_made_end(struct walk *w, struct file *file, uint64_t va, const struct row *row)
{
	if (w->regs.is_exact)
		return false;
	if (row && row->is_end)
		return true;
	if (w->was_followed || (row && !row->is_followed && row->end != va + 1) || ask_return(w) != 1)
		return false;
	files_end(w->late->files, file, va);
	return true;
}

/* A thread that just began: the system call that made it returned 0, and its stack is empty. The same row is right for the
 * thread that made it. */
static bool may_be_new_thread(const struct walk *w, const struct row *row)
{
	return row && row->is_behind_syscall && w->regs.is_exact && w->regs.known & 1 && !w->regs.value[0];
}

static int step_new_thread(struct walk *w, struct file *file, uint64_t va, const struct row *new_row, enum walk_end *end)
{
	struct row row = *new_row;

	row.is_guess = false;
	if (!step_row(w, file, va, &row, end) && is_behind_call(w))
		return 0;
	*end = END_ROOT;
	return 1;
}

/* Goes from the frame at regs to its caller, filling the caches on the way. 0, or 1 with *end set. */
static int step(struct walk *w, enum walk_end *end)
{
	uint64_t addr = w->regs.value[REG_PC] - !w->regs.is_exact, va;
	const struct mapping *m = addr >> CPU_USER_BITS ? NULL : find_mapping(w, addr);
	struct row found, *row;
	int error;

	if (CPU_HAS_VSYSCALL && addr >> 12 == VSYSCALL_PAGE)
		return step_packed(w, ROW_VSYSCALL, end);
	if (w->sample->return_cnt && w->regs.value[REG_PC] - w->sample->returns[0] < PROBES_PAGE_BYTES) {
		*end = END_UPROBE;
		return 1;
	}
	if (!m) {
		*end = END_NO_MAPPING;
		if (!(addr >> CPU_USER_BITS))
			cache_fill_mapping(w->late->fill, w->process->as, addr, NULL, MAPPING_NOT_CODE);
		return 1;
	}
	if ((!m->file || m->is_foreign) && w->late->code && code_spaces_meet(w->late->code, w->process))
		m = address_space_find(w->process->as, addr);
	if (m->file && m->file->code)
		return step_code(w, m, addr, end);
	va = addr - m->bias;
	error = m->file ? files_row(w->late->files, m->file, va, &found) : -ENOENT;
	if (!error)
		code_map_captures(w->late->code, m->file, &found, 1);
	if (error == -EAGAIN) { /* the file is still being read; the kernel hears nothing of it */
		*end = END_NO_RULE;
		w->late->result.is_unfinished = true;
		return 1;
	}
	if (error < 0) {
		if (!code_spaces_is_behind(w->process->as)) /* else a runtime may yet say that it keeps code there */
			cache_fill_mapping(w->late->fill, w->process->as, addr, m, MAPPING_FP);
		w->was_followed = true;
		return !m->file && enter_vm_frame(w, true) ? 0 : step_frame_pointer(w, end);
	}
	cache_fill_mapping(w->late->fill, w->process->as, addr, m, MAPPING_ROWS);
	row = error ? NULL : &found;
	if (is_hand_made_end(w, m->file, va, row)) {
		cache_fill_block(w->late->fill, m->file, va);
		*end = END_ROOT;
		return 1;
	}
	cache_fill_blocks(w->late->fill, m->file, va);
	found.is_end = false; /* who runs here has a caller */
	if (row && row->capture)
		capture(w, row);
	w->was_followed = row && row->is_followed;
	if (may_be_new_thread(w, row))
		return step_new_thread(w, m->file, va, row, end);
	if (row && row->is_guess)
		return step_guess(w, m->file, va, row, end);
	return step_row(w, m->file, va, row, end);
}

/* Adds the frame at regs, if it has a place, and goes to its caller. 0, or 1 with @end set. */
static int walk_frame(struct walk *w, uint32_t met, enum walk_end *end)
{
	struct late_result *result = &w->late->result;
	const uint64_t pc = w->regs.value[REG_PC];
	const uint32_t captures = result->capture_cnt;
	const bool is_exact = w->regs.is_exact;
	uint32_t dropped;
	const bool is_new = !deep_folds(&w->deep, pc, is_exact, result->count, &dropped);
	int ended;

	result->count -= dropped;
	if (is_new && result->count == MAX_USER_FRAMES) {
		*end = END_DEPTH;
		return 1;
	}
	if (is_new) {
		result->sps[result->count] = w->regs.known & REG_BIT(REG_SP) ? w->regs.value[REG_SP] : UINT64_MAX;
		result->frames[result->count++] = pc | (is_exact ? FRAME_EXACT : 0);
	}
	cache_fill_begin(w->late->fill, w->now_ns,
			 result->count < met ? UINT64_MAX : (result->count == met ? REFILL_MS : KEPT_MS) * NSEC_PER_MSEC);
	ended = step(w, end);
	if (is_new)
		deep_note(&w->deep, pc, 0, !is_exact && !w->sample->chain_cnt && result->capture_cnt == captures,
			  result->count);
	return ended;
}

/* Walks from the frame at regs, which is added first, to where the walk ends. */
static void walk_on(struct walk *w)
{
	struct late_result *result = &w->late->result;
	const uint32_t met = w->sample->user_cnt; /* frames, the last where the kernel missed */
	uint32_t i;

	for (i = 0; i < MAX_WALKED_FRAMES; i++) {
		w->regs.value[REG_PC] = sample_put_back(w->sample, w->regs.value[REG_PC], w->regs.value[REG_SP]);
		(void)enter_vm_frame(w, false);
		if (walk_frame(w, met, &result->end))
			break;
	}
	if (i == MAX_WALKED_FRAMES)
		result->end = END_DEPTH;
	if (result->end == END_BAD_MEMORY && w->sample->record->flags & (SAMPLE_CUT | SAMPLE_LIMITED))
		result->end = END_COPY_LIMIT;
}

/*
 * The copy ended, and the kernel, which needs none, came further: on from the frame where it missed. There pc, sp and fp are
 * known, which is enough for nearly every rule; at the least the place gets its entries.
 */
static void go_on_from_kernel(struct walk *w)
{
	struct late_result *result = &w->late->result;
	uint64_t pc = w->sample->user[w->sample->user_cnt - 1];
	enum walk_end first_end = result->end;

	w->regs.value[REG_PC] = pc & ~FRAME_EXACT;
	w->regs.value[REG_SP] = w->sample->regs->stop_sp;
	w->regs.value[REG_FP] = w->sample->regs->stop_fp;
	w->regs.is_exact = pc & FRAME_EXACT;
	w->regs.known = WALKED | (w->sample->regs->stop_sp ? REG_BIT(REG_SP) : 0);
	result->count = w->sample->user_cnt - 1;
	memcpy(result->frames, w->sample->user, result->count * sizeof(*result->frames));
	for (uint32_t i = 0; i < result->count; i++)
		result->sps[i] = sample_sp(w->sample, i);
	result->capture_cnt = w->sample->capture_cnt;
	if (result->capture_cnt)
		memcpy(result->captures, w->sample->captures, result->capture_cnt * sizeof(*result->captures));
	walk_on(w);
	if (result->end != END_ROOT && result->end != END_DEPTH)
		result->end = first_end;
}

const struct late_result *late_walk(struct late *l, struct process *process, const struct pending_sample *sample)
{
	struct walk w = {
		.late = l,
		.process = process,
		.sample = sample,
		.memory = { sample },
		.regs = { .known = REG_BIT(USER_REGS) - 1, .is_exact = true },
		.now_ns = clock_mono_ns(),
	};
	struct late_result *result = &l->result;

	memcpy(w.regs.value, sample->regs->regs, sizeof(w.regs.value));
	if (l->code && !process->as->code)
		(void)code_spaces_meet(l->code, process);
	if (l->code)
		code_expect(process, sample);
	cache_fill_begin(l->fill, w.now_ns, (sample->record->end == END_MISS_PROC ? REFILL_MS : KEPT_MS) * NSEC_PER_MSEC);
	if (sample->record->end == END_MISS_PROC || sample->record->end == END_MISS_MAPPING)
		cache_fill_address_space(l->fill, process->as);
	result->count = result->capture_cnt = 0;
	result->is_unfinished = false;
	walk_on(&w);
	metric_add(l->mismatches, sample_differs(sample, result->frames, result->count));
	if (sample->user_cnt > result->count && result->end != END_ROOT)
		go_on_from_kernel(&w);
	metric_add(l->walks, !result->is_unfinished);
	return result;
}
