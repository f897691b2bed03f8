/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The whole walk: this program's own registers and a copy of its own stack go through late_walk, and the chain must be the
 * one glibc's backtrace() finds. All that late unwinding told the kernel (kernel_stand_in.h has its place) must then be
 * enough to walk the same stack as the kernel does: mappings, blocks and unwind_step alone.
 */
#include <execinfo.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/walk/late_walk.h"
#include "base/cleanup.h"
#include "base/metrics.h"
#include "bpf/deep.h"
#include "tests/unit/agent/kernel_stand_in.h"
#include "tests/unit/agent/walk/own_samples.h"
#include "tests/unit/descriptors.h"

static struct metrics *metrics;
static struct files *files;
static struct processes *processes;
static struct late *late;

static int make(void **state)
{
	struct file_opener *opener;
	struct elf_service *service;
	struct sigaction act = { .sa_handler = on_signal };
	pthread_attr_t attr;
	void *stack;
	size_t bytes;

	(void)state;
	memset(&told, 0, sizeof(told));
	capture = calloc(1, sizeof(*capture));
	metrics = metrics_new();
	if (!capture || !metrics || pthread_getattr_np(pthread_self(), &attr) ||
	    pthread_attr_getstack(&attr, &stack, &bytes))
		return -1;
	pthread_attr_destroy(&attr);
	stack_end = (uintptr_t)stack + bytes;
	return sigaction(SIGUSR1, &act, NULL) || elf_service_new(&service) || file_opener_new(metrics, &opener) ||
	       files_new(service, opener, metrics, &files) || processes_new(files, &processes) ||
	       late_new(processes, files, NULL, NULL, metrics, &late);
}

static int destroy(void **state)
{
	(void)state;
	late_free(late);
	processes_free(processes);
	files_free(files);
	metrics_free(metrics);
	free(capture);
	return 0;
}

static uint64_t mismatches(void)
{
	return metrics_counter(metrics, "hearth_late_mismatches_total", NULL, "")->value;
}

/* All but the innermost, whose two places in take() differ; a sanitizer has a frame of its own around backtrace(). */
static void check_chain(const uint64_t *pcs, uint32_t count, uint32_t interrupted)
{
	int more = capture->truth_cnt - (int)count;

	assert_true(count > 15 || interrupted);
	assert_in_range(more, 0, 1);
	for (uint32_t i = 1; i < count; i++)
		assert_int_equal(pcs[i] & ~FRAME_EXACT, (uintptr_t)capture->truth[i + (uint32_t)more]);
	for (uint32_t i = 0; i < count; i++)
		assert_int_equal(pcs[i] >> 63, i == 0 || (interrupted && (i == interrupted || i == interrupted - 1)));
}

static void check_walks(uint32_t interrupted)
{
	const struct pending_sample *s = &capture->sample;
	struct process *process = processes_find(processes, (uint32_t)getpid());
	AUTO_FREE struct chain *kernel = calloc(1, sizeof(*kernel));
	const struct late_result *result = late_walk(late, process, s);
	uint32_t mapping_cnt = told.mapping_cnt, block_cnt = told.block_cnt;

	if (!kernel)
		abort();
	assert_int_equal(result->end, END_ROOT);
	check_chain(result->frames, result->count, interrupted);
	assert_true(mapping_cnt >= 2 && block_cnt >= 5);

	walk_as_kernel(process->as->asid, s, kernel);
	assert_int_equal(kernel->end, END_ROOT);
	assert_int_equal(kernel->count, result->count);
	assert_memory_equal(kernel->pcs, result->frames, kernel->count * sizeof(*kernel->pcs));

	/* Another sample in flight that missed: it meets the kernel's frames, and the kernel is not told the same again so
	 * soon (but for the few things that share a slot of the memory of what it was told). */
	capture->sample.user = kernel->pcs;
	capture->sample.user_cnt = kernel->count - 1;
	result = late_walk(late, process, s);
	assert_int_equal(result->count, kernel->count);
	assert_int_equal(mismatches(), 0);
	assert_in_range(told.mapping_cnt - mapping_cnt + told.block_cnt - block_cnt, 0, (mapping_cnt + block_cnt) / 4);
	kernel->pcs[3]++;
	late_walk(late, process, s);
	assert_int_equal(mismatches(), 1);
}

static void test_calls(void **state)
{
	(void)state;
	through_calls();
	check_walks(0);
}

static void test_signal(void **state)
{
	(void)state;
	raise(SIGUSR1);
	/* take, small_frame, large_frame three times, on_signal, the trampoline, then the frame that was interrupted */
	check_walks(7);
}

static uint64_t interrupted_pc;

static void on_return(int signal, siginfo_t *info, void *context)
{
	enum { SIGRETURN_BYTES = 9 }; /* mov $15, %rax; syscall */
	uint64_t trampoline;

	(void)signal, (void)info;
	take(capture);
	memcpy(&trampoline, (const char *)context - sizeof(trampoline), sizeof(trampoline)); /* our return address */
	capture->regs.regs[REG_PC] = trampoline + SIGRETURN_BYTES;
	capture->regs.regs[REG_SP] = (uintptr_t)context;
	interrupted_pc = (uint64_t)((const ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
}

/* A thread in the system call that ends a signal frame: it stands behind the trampoline, where other code may begin. */
static void test_sigreturn(void **state)
{
	struct process *process = processes_find(processes, (uint32_t)getpid());
	const struct sigaction act = { .sa_sigaction = on_return, .sa_flags = SA_SIGINFO };
	const struct late_result *result;

	(void)state;
	assert_int_equal(sigaction(SIGUSR2, &act, NULL), 0);
	raise(SIGUSR2);
	result = late_walk(late, process, &capture->sample);
	assert_int_equal(result->end, END_ROOT);
	assert_int_equal(result->frames[0], capture->regs.regs[REG_PC] | FRAME_EXACT);
	assert_int_equal(result->frames[1], interrupted_pc | FRAME_EXACT);
}

FRAME_OF_ITS_OWN static void recurse(int depth)
{
	if (depth)
		recurse(depth - 1);
	else
		take(capture);
	sink++;
}

/* The number of frames of @r that stand behind its recursion, which returns to @place. */
static uint32_t behind(const struct late_result *r, uint64_t place)
{
	uint32_t n = 0;

	while (n < r->count && r->frames[r->count - 1 - n] != place)
		n++;
	return n;
}

/* Of deep recursion frames are passed over, and its callers are there. */
static void test_deep_recursion(void **state)
{
	enum { SHALLOW = 100, DEEP = 1200 };
	AUTO_FREE struct late_result *shallow = malloc(sizeof(*shallow));
	const struct late_result *deep = NULL;
	uint64_t place;
	uint32_t callers;

	(void)state;
	if (!shallow)
		abort();
	for (int depth = SHALLOW; depth <= DEEP; depth += DEEP - SHALLOW) {
		recurse(depth);
		deep = late_walk(late, processes_find(processes, (uint32_t)getpid()), &capture->sample);
		assert_int_equal(deep->end, END_ROOT);
		if (depth == SHALLOW)
			memcpy(shallow, deep, sizeof(*shallow));
	}
	place = shallow->frames[SHALLOW / 2];
	callers = behind(shallow, place);
	assert_in_range(callers, 5, 50);
	assert_int_equal(behind(deep, place), callers);
	assert_int_equal(deep->count, DEEP_FRAMES + callers);
	assert_memory_equal(&deep->frames[DEEP_FRAMES], &shallow->frames[shallow->count - callers],
			    callers * sizeof(*deep->frames));
	assert_memory_equal(&deep->sps[DEEP_FRAMES], &shallow->sps[shallow->count - callers], callers * sizeof(*deep->sps));
}

static void test_exotic_frame(void **state)
{
	struct process *process = processes_find(processes, (uint32_t)getpid());
	AUTO_FREE struct chain *kernel = calloc(1, sizeof(*kernel));
	const struct late_result *result;

	(void)state;
	if (!kernel)
		abort();
	hand_frame(use_registers);
	result = late_walk(late, process, &capture->sample);
	assert_int_equal(result->end, END_ROOT);
	check_chain(result->frames, result->count, 0);
	walk_as_kernel(process->as->asid, &capture->sample, kernel);
	assert_int_equal(kernel->end, END_USER_RULE);
	assert_in_range(kernel->pcs[kernel->count - 1], (uintptr_t)hand_frame, (uintptr_t)hand_frame + 40);
	assert_memory_equal(kernel->pcs, result->frames, kernel->count * sizeof(*kernel->pcs));
}

/* A stack of one frame, of the code at @frame, hand_frame's or a copy: the thread stood right behind the push. */
static void take_in_frame(uint64_t frame, uint64_t caller)
{
	static uint64_t words[2];

	take(capture);
	words[1] = caller;
	capture->regs.regs[REG_PC] = frame + 1;
	capture->regs.regs[REG_SP] = 0x7000;
	capture->area = (struct stack_area){ 0x7000, sizeof(words), (const uint8_t *)words };
}

/* The thread stood right behind the push: the row is that of its pc, not of the byte before, as for a return address. */
static void test_exact_pc(void **state)
{
	struct process *process = processes_find(processes, (uint32_t)getpid());
	const struct late_result *result;

	(void)state;
	take_in_frame((uintptr_t)hand_frame, (uintptr_t)test_exact_pc + 8);
	result = late_walk(late, process, &capture->sample);
	assert_int_equal(result->count, 2);
	assert_int_equal(result->frames[0], ((uintptr_t)hand_frame + 1) | FRAME_EXACT);
	assert_int_equal(result->frames[1], (uintptr_t)test_exact_pc + 8);
	assert_int_equal(result->end, END_BAD_MEMORY);
}

/*
 * Code that is never run. hand_padded is where a stack made by hand ends, as glibc's __start_context: padding stands before
 * it, which its neighbour's row covers, too. hand_behind_code has no call before it either, but described code.
 */
extern const char hand_padded[], hand_behind_code[];
__asm__(".pushsection .text\n"
	".cfi_startproc\n"
	".cfi_def_cfa_offset 24\n"
	"ud2\n"
	".cfi_endproc\n"
	".skip 15, 0x90\n"
	"hand_padded:\n"
	".cfi_startproc\n"
	"ud2\n"
	".cfi_def_cfa_offset 24\n"
	"hand_behind_code:\n"
	"ud2\n"
	".cfi_endproc\n"
	".popsection\n");

static void check_end(const char *code, enum walk_end end)
{
	struct process *process = processes_find(processes, (uint32_t)getpid());
	AUTO_FREE struct chain *kernel = calloc(1, sizeof(*kernel));
	const struct late_result *result;

	if (!kernel)
		abort();
	take_in_frame((uintptr_t)hand_frame, (uintptr_t)code);
	for (int times = 0; times < 2; times++) { /* once more, by what was learned */
		result = late_walk(late, process, &capture->sample);
		assert_int_equal(result->count, 2);
		assert_int_equal(result->frames[1], (uintptr_t)code);
		assert_int_equal(result->end, end);
	}
	walk_as_kernel(process->as->asid, &capture->sample, kernel);
	assert_int_equal(kernel->count, 2);
	assert_int_equal(kernel->end, end);
}

static void test_hand_made_end(void **state)
{
	(void)state;
	check_end(hand_padded, END_ROOT);
	check_end(hand_behind_code, END_BAD_MEMORY);
}

/* Functions that no table describes: their rows are guesses, from their instructions. They are never run. */
extern const char hand_guess[], hand_cut_guess[], hand_wrong_guess[], hand_first_guess[];
#define HAND_GUESS(name)                         \
	".type " name ", @function\n" name ":\n" \
	"push %rbx\nxor %ebx, %ebx\n"            \
	"call *%rdi\n"                           \
	"pop %rbx\nret\n"                        \
	".size " name ", . - " name "\n"         \
	".skip 16, 0xcc\n"
__asm__(".pushsection .text\n" HAND_GUESS("hand_guess") HAND_GUESS("hand_cut_guess") HAND_GUESS("hand_wrong_guess")
		HAND_GUESS("hand_first_guess") ".popsection\n");

FRAME_OF_ITS_OWN static uintptr_t behind_a_call(void)
{
	return (uintptr_t)__builtin_return_address(0);
}

/* The frames of a walk from within @code, which @caller called; @bytes of its stack are there. */
static uint32_t walk_guess(const char *code, uintptr_t caller, size_t bytes, uint32_t flags, enum walk_end *end)
{
	struct process *process = processes_find(processes, (uint32_t)getpid());
	const struct late_result *result;

	take_in_frame((uintptr_t)code, caller);
	capture->area.bytes = bytes;
	capture->record.flags |= flags;
	result = late_walk(late, process, &capture->sample);
	*end = result->end;
	return result->count;
}

/* A guess that led behind a call, or to the stack's end, is right; one that was wrong three times is no rule any more. */
static void test_guesses(void **state)
{
	const uintptr_t caller = behind_a_call(), nowhere = (uintptr_t)test_guesses;
	enum walk_end end;

	(void)state;
	assert_int_equal(walk_guess(hand_first_guess, 0, 16, 0, &end), 1);
	assert_int_equal(end, END_ROOT);
	assert_in_range(walk_guess(hand_guess, caller, 16, 0, &end), 2, 3);
	for (int i = 0; i < 5; i++) {
		assert_int_equal(walk_guess(hand_cut_guess, caller, 8, SAMPLE_CUT, &end), 1);
		assert_int_equal(end, END_COPY_LIMIT);
	}
	assert_in_range(walk_guess(hand_cut_guess, caller, 16, 0, &end), 2, 3);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(walk_guess(hand_wrong_guess, nowhere, 16, 0, &end), 1);
		assert_int_equal(end, END_NO_RULE);
	}
	assert_int_equal(walk_guess(hand_wrong_guess, caller, 16, 0, &end), 1);
	assert_int_equal(end, END_NO_RULE);
}

/* Code that moved to where no record told of it (mremap makes none), read from /proc when a thread is met there. */
static void test_unheard_mapping(void **state)
{
	struct process *process = processes_find(processes, (uint32_t)getpid());
	const struct mapping *m = address_space_find(process->as, (uintptr_t)hand_frame);
	uint64_t off, page;
	const struct late_result *result;
	char *code;

	(void)state;
	assert_non_null(m);
	assert_int_equal(file_offset(m->file, (uintptr_t)hand_frame - m->bias, &off), 0);
	page = off & ~4095ull;
	code = mmap(NULL, 2 * 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, m->file->fd, (off_t)page);
	assert_true(code != MAP_FAILED);
	take_in_frame((uintptr_t)code + (off - page), (uintptr_t)test_unheard_mapping + 8);
	result = late_walk(late, process, &capture->sample);
	assert_int_equal(result->count, 2);
	assert_int_equal(result->frames[1], (uintptr_t)test_unheard_mapping + 8);
	assert_int_equal(munmap(code, 2 * 4096), 0);
}

/* Walks from @pc and @sp; the kernel found the frame of a virtual machine, whose code begins at hand_frame, at 0x7000. */
static const struct late_result *walk_near_vm(uint64_t pc, uint64_t sp, bool has_made_code)
{
	static uint64_t words[1];

	take(capture);
	words[0] = (uintptr_t)walk_near_vm + 8; /* hand_frame's caller, where it begins */
	capture->regs.regs[REG_PC] = pc;
	capture->regs.regs[REG_SP] = sp;
	capture->regs.sched = (struct unwind_sched){
		.pc = (uintptr_t)hand_frame, .fp = (uintptr_t)hand_frame + 16, .sp = 0x7000, .lr = has_made_code
	};
	capture->area = (struct stack_area){ 0x7000, sizeof(words), (const uint8_t *)words };
	return late_walk(late, processes_find(processes, (uint32_t)getpid()), &capture->sample);
}

/* Code without rules in the frame of a virtual machine: its own, and what it made, which that frame stands for. */
static void test_vm_frame(void **state)
{
	char *made = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const uint64_t vm = (uintptr_t)hand_frame, caller = (uintptr_t)walk_near_vm + 8;
	const struct late_result *result;

	(void)state;
	assert_true(made != MAP_FAILED);
	result = walk_near_vm(vm, 0x7000 - 8, false);
	assert_int_equal(result->count, 2);
	assert_int_equal(result->frames[0], vm | FRAME_EXACT);
	assert_int_equal(result->frames[1], caller);
	result = walk_near_vm((uintptr_t)made, 0x7000 - 16, true);
	assert_int_equal(result->count, 2);
	assert_int_equal(result->frames[0], vm + 1);
	assert_int_equal(result->frames[1], caller);
	/* other made code, other code, too far away */
	result = walk_near_vm((uintptr_t)made, 0x7000 - 16, false);
	assert_int_equal(result->frames[0], (uintptr_t)made | FRAME_EXACT);
	assert_int_equal(walk_near_vm(vm + 1, 0x7000 - VM_FRAME_BELOW_BYTES - 8, true)->end, END_BAD_MEMORY);
	assert_int_equal(walk_near_vm((uintptr_t)made, 0x7000, true)->frames[0], (uintptr_t)made | FRAME_EXACT);
	assert_int_equal(munmap(made, 4096), 0);
}

/* In the page fault that grows the stack: nothing at sp could be copied, and the frame is found from rbx. */
static void test_untouched_page(void **state)
{
	struct process *process = processes_find(processes, (uint32_t)getpid());
	uint64_t words[] = { 0x1111, (uintptr_t)test_untouched_page + 8 };
	const struct late_result *result;

	(void)state;
	take(capture);
	capture->regs.regs[REG_PC] = (uintptr_t)hand_frame + 15; /* at the call */
	capture->regs.regs[3] = 0x7000;				 /* rbx */
	capture->regs.regs[REG_SP] = 0x6f00;
	capture->area = (struct stack_area){ 0x7000, sizeof(words), (const uint8_t *)words };
	result = late_walk(late, process, &capture->sample);
	assert_int_equal(result->count, 2);
	assert_int_equal(result->frames[1], words[1]);
	capture->area.addr = 0x6000;
	assert_int_equal(late_walk(late, process, &capture->sample)->count, 1);
}

/* The copy ends before the stack does: the kernel's frames stand where it came further, and the end says why. */
static void test_short_copy(void **state)
{
	struct process *process = processes_find(processes, (uint32_t)getpid());
	const struct late_result *result;
	uint64_t whole[MAX_TRUTH];
	uint32_t count;

	(void)state;
	through_calls();
	result = late_walk(late, process, &capture->sample);
	count = result->count;
	assert_in_range(count, 15, MAX_TRUTH);
	memcpy(whole, result->frames, count * sizeof(*whole));
	capture->area.bytes = 16 << 10;
	result = late_walk(late, process, &capture->sample);
	assert_int_equal(result->end, END_BAD_MEMORY);
	assert_in_range(result->count, 5, count - 1);
	assert_memory_equal(result->frames, whole, result->count * sizeof(*whole));
	capture->record.flags |= SAMPLE_CUT;
	assert_int_equal(late_walk(late, process, &capture->sample)->end, END_COPY_LIMIT);
	capture->area.bytes = 0;
	capture->sample.user = whole;
	capture->sample.user_cnt = count - 1;
	result = late_walk(late, process, &capture->sample);
	assert_int_equal(result->count, count - 1);
	assert_memory_equal(result->frames, whole, result->count * sizeof(*whole));
	assert_int_equal(mismatches(), 0);
}

/*
 * A frame so large that the copy ends inside it. The kernel came further, and what it copied from there on is enough to go
 * on to the outermost frame.
 */
static void test_copy_with_a_gap(void **state)
{
	struct process *process = processes_find(processes, (uint32_t)getpid());
	AUTO_FREE struct chain *kernel = calloc(1, sizeof(*kernel));
	struct stack_area areas[2];
	const struct late_result *result;
	enum { MISSED = 7 };

	(void)state;
	if (!kernel)
		abort();
	through_calls();
	(void)late_walk(late, process, &capture->sample);
	walk_as_kernel(process->as->asid, &capture->sample, kernel);
	assert_int_equal(kernel->end, END_ROOT);
	areas[0] = (struct stack_area){ capture->area.addr, 4096, capture->stack };
	areas[1].addr = kernel->sps[MISSED] - RED_ZONE_BYTES;
	areas[1].data = capture->stack + (areas[1].addr - capture->area.addr);
	areas[1].bytes = capture->area.bytes - (areas[1].addr - capture->area.addr);
	assert_true(areas[1].addr > areas[0].addr + areas[0].bytes + 4096);
	capture->sample.areas = areas;
	capture->sample.area_cnt = 2;
	capture->sample.user = kernel->pcs;
	capture->sample.user_cnt = MISSED + 1;
	capture->record.flags |= SAMPLE_CUT;
	capture->regs.stop_sp = kernel->sps[MISSED];
	capture->regs.stop_fp = kernel->fps[MISSED];
	result = late_walk(late, process, &capture->sample);
	assert_int_equal(result->end, END_ROOT);
	assert_int_equal(result->count, kernel->count);
	assert_memory_equal(result->frames, kernel->pcs, kernel->count * sizeof(*kernel->pcs));
	assert_int_equal(mismatches(), 0);
	kernel->pcs[MISSED] |= FRAME_EXACT; /* as where a signal came, which is no part of the address */
	result = late_walk(late, process, &capture->sample);
	assert_int_equal(result->end, END_ROOT);
	assert_int_equal(result->count, kernel->count);
	assert_memory_equal(result->frames, kernel->pcs, kernel->count * sizeof(*kernel->pcs));
	capture->sample.area_cnt = 1;
	result = late_walk(late, process, &capture->sample);
	assert_int_equal(result->end, END_COPY_LIMIT);
	assert_int_equal(result->count, MISSED + 1);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_calls, make, destroy),
		cmocka_unit_test_setup_teardown(test_signal, make, destroy),
		cmocka_unit_test_setup_teardown(test_sigreturn, make, destroy),
		cmocka_unit_test_setup_teardown(test_deep_recursion, make, destroy),
		cmocka_unit_test_setup_teardown(test_exotic_frame, make, destroy),
		cmocka_unit_test_setup_teardown(test_exact_pc, make, destroy),
		cmocka_unit_test_setup_teardown(test_hand_made_end, make, destroy),
		cmocka_unit_test_setup_teardown(test_guesses, make, destroy),
		cmocka_unit_test_setup_teardown(test_unheard_mapping, make, destroy),
		cmocka_unit_test_setup_teardown(test_vm_frame, make, destroy),
		cmocka_unit_test_setup_teardown(test_untouched_page, make, destroy),
		cmocka_unit_test_setup_teardown(test_short_copy, make, destroy),
		cmocka_unit_test_setup_teardown(test_copy_with_a_gap, make, destroy),
	};

	return run_group_of_descriptors(tests, NULL, NULL);
}
