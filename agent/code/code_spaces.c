/* SPDX-License-Identifier: Apache-2.0 */
/* Processes with a runtime, and their ranges. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "agent/code/code_state.h"
#include "agent/kernel/sampler.h"
#include "agent/proc/proc_reader.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"

enum {
	FIRST_WAIT_MS = 20, /* a runtime that has just begun has no code yet */
	LAST_WAIT_MS = 2000,
	FIRST_CODE_WAIT_MS = 250, /* ... or has not made any, and may do so at any time */
	NEAR_BYTES = 1 << 20,	  /* ranges so near to each other are one */
	REST_S = 10,   /* that a process is left alone after the first harm; after the next one ten times as long ... */
	MAX_HARMS = 3, /* ... and after so many for good */
};

int code_spaces_new(struct elf_service *service, uint32_t off, struct files *files, struct objects *objects,
		    struct metrics *metrics, struct code_spaces **ret)
{
	struct code_spaces *cs = calloc(1, sizeof(*cs));

	if (cs)
		cs->rules = intern_new();
	if (!cs || !cs->rules) {
		free(cs);
		elf_service_free(service);
		return -ENOMEM;
	}
	cs->service = service;
	cs->off = off;
	cs->files = files;
	cs->objects = objects;
	cs->class_cnt = 1;
	cs->met = metrics_counter(metrics, "hearth_code_processes_total", NULL,
				  "Processes met whose runtime makes code that a reader knows.");
	cs->pieces = metrics_counter(metrics, "hearth_code_pieces_read_total", NULL,
				     "Pieces of generated code read, for rows and names.");
	cs->functions = metrics_counter(metrics, "hearth_code_functions_read_total", NULL,
					"Interpreted functions read for their names.");
	cs->gone = metrics_counter(metrics, "hearth_code_pieces_gone_total", NULL,
				   "Of the things read the ones that had gone when they were looked at again.");
	cs->refused = metrics_counter(metrics, "hearth_code_refused_total", NULL,
				      "Times generated code, or a function, could not be read where one should be.");
	cs->unknown = metrics_counter(metrics, "hearth_code_frames_unknown_total", NULL,
				      "Frames in generated code whose function is not known.");
	cs->checks = metrics_counter(
		metrics, "hearth_code_checks_total", NULL,
		"Times generated code in use by a process was looked at, to see whether it is the same.");
	cs->hostile = metrics_counter(
		metrics, "hearth_code_hostile_total", NULL,
		"Times that the memory of a process made its reader crash, hang or take too much memory; it is left alone "
		"for a while then, after the third time for good.");
	*ret = cs;
	return 0;
}

void code_spaces_free(struct code_spaces *cs)
{
	if (!cs)
		return;
	elf_service_free(cs->service);
	intern_free(cs->rules);
	buf_fini(&cs->request);
	buf_fini(&cs->reply);
	free(cs);
}

void code_spaces_attach(struct code_spaces *cs, struct sampler *sampler)
{
	cs->sampler = sampler;
}

void code_spaces_detach(struct code_spaces *cs)
{
	cs->sampler = NULL;
	cs->service->on_wait = (struct wait_hook){ 0 };
	cs->is_over = true;
}

void code_spaces_on_wait(struct code_spaces *cs, struct wait_hook hook)
{
	cs->service->on_wait = hook;
}

size_t code_spaces_memory_bytes(const struct code_spaces *cs)
{
	return sizeof(*cs) + cs->bytes + intern_memory_bytes(cs->rules) + cs->request.cap + cs->reply.cap;
}

/* --- requests --- */

struct code_request code_request_of(const struct code_process *p, enum code_op op)
{
	return (struct code_request){ .op = op, .bias = p->bias, .facts = p->runtime->info.runtime.code };
}

uint32_t code_spaces_take_number(struct code_spaces *cs)
{
	return ++cs->last_number;
}

int code_spaces_read(struct code_spaces *cs, uint32_t number, int memory_fd, const struct code_request *what,
		     const void *more, size_t more_bytes, const struct buf **reply_ret)
{
	const struct elf_request request = { .op = ELF_OP_CODE, .file = number };
	int status;

	*reply_ret = &cs->reply;
	buf_reset(&cs->request);
	buf_append(&cs->request, what, sizeof(*what));
	buf_append(&cs->request, more, more_bytes);
	if (cs->request.failed)
		return -ENOMEM;
	status = elf_service_call(cs->service, &request, memory_fd, cs->request.data, cs->request.len, &cs->reply);
	if (status || code_reply_is_sound(what, cs->reply.data, cs->reply.len))
		return status;
	elf_service_distrust(cs->service);
	return -EILSEQ;
}

/* Reading @p's memory did harm, a moment ago or too often. */
static bool is_left_alone(const struct code_process *p)
{
	return p->harms && (p->harms == MAX_HARMS || clock_mono_ns() < p->rest_end_ns);
}

/* Notes that reading @p's memory ended with @status. An honest process may be read at an unlucky moment: there are further
 * tries. */
static void note_harm(struct code_process *p, int status)
{
	unsigned rest_s = REST_S;
	char until[32] = "any more";

	for (uint32_t i = 0; i < p->harms; i++)
		rest_s *= 10;
	if (++p->harms < MAX_HARMS)
		snprintf(until, sizeof(until), "for %u s", rest_s);
	p->rest_end_ns = clock_mono_ns() + rest_s * NSEC_PER_SEC;
	metric_add(p->all->hostile, 1);
	log_warn("process %u: reading the code that %s made in it %s, in the helper process; its functions are not shown %s",
		 p->pid, p->runtime->path, status == -ETIMEDOUT ? "took too long" : "failed", until);
}

int code_ask(struct code_process *p, const struct code_request *what, const void *more, size_t more_bytes)
{
	const struct buf *reply;
	int status;

	if (p->memory_fd == -EBUSY && !p->has_ended) /* it let nobody look a while ago */
		p->memory_fd = proc_open(p->pid, p->pid, "mem");
	if (is_left_alone(p) || p->memory_fd < 0)
		return -ENOENT;
	status = code_spaces_read(p->all, p->number, p->memory_fd, what, more, more_bytes, &reply);
	if (elf_service_is_hostile(status) && p->has_brought) { /* a file may have done the harm: another try without */
		p->brings_nothing = true;
		p->has_brought = false;
	} else if (elf_service_is_hostile(status)) {
		note_harm(p, status);
	}
	return status;
}

/* --- processes --- */

/* The helper need not remember @cp's memory any more. */
static void forget(struct code_process *cp)
{
	const struct elf_request forget = { .op = ELF_OP_FORGET, .file = cp->number };

	if (!cp->all->is_over)
		(void)elf_service_call(cp->all->service, &forget, -1, NULL, 0, &cp->all->reply);
}

static void process_free(struct as_code *as_code)
{
	struct code_process *cp = (struct code_process *)as_code;

	forget(cp);
	*cp->link = cp->next;
	if (cp->next)
		cp->next->link = cp->link;
	for (uint32_t i = 0; i < cp->range_cnt; i++)
		code_range_free(cp->ranges[i]);
	code_functions_free(cp);
	free(cp->watched);
	map_fini(&cp->absent);
	if (cp->memory_fd >= 0)
		close(cp->memory_fd);
	file_put(cp->runtime);
	free(cp);
}

static struct file *file_at(const struct as_code *as_code, uint64_t start, uint64_t end, uint64_t *off_ret)
{
	const struct code_range_state *range = code_range_at((const struct code_process *)as_code, start);

	if (!range || end > range->end)
		return NULL;
	*off_ret = start - range->start;
	return range->file;
}

/* The order in which the files of a process are asked for code: the readers' order. What is registered for debuggers is in
 * libraries that many programs have and few use. */
static uint64_t order_of(const struct file *file)
{
	return (uint64_t)file->info.runtime.code.id << 32 | file->id;
}

/* The mapping of a runtime whose code a reader knows, of those behind @before (NULL: of all) the first; NULL: none. */
static const struct mapping *find_runtime(const struct code_spaces *cs, const struct address_space *as,
					  const struct file *before)
{
	const struct mapping *found = NULL;

	for (uint32_t i = 0; i < as->count; i++) {
		const struct file *file = as->maps[i].file;
		const struct code_facts *facts = file ? &file->info.runtime.code : NULL;

		if (file && !as->maps[i].is_foreign && file->info.runtime.kind == RUNTIME_FILE_CODE &&
		    code_reader_of(facts->id) && !(cs->off >> facts->id & 1) &&
		    (!before || order_of(file) > order_of(before)) && (!found || order_of(file) < order_of(found->file)))
			found = &as->maps[i];
	}
	return found;
}

bool code_spaces_has_runtime(const struct code_spaces *cs, const struct address_space *as)
{
	return as->code || find_runtime(cs, as, NULL);
}

bool code_spaces_is_behind(const struct address_space *as)
{
	const struct code_process *cp = (const struct code_process *)as->code;

	return cp && cp->is_behind && !is_left_alone(cp);
}

bool code_spaces_has_code(const struct address_space *as)
{
	const struct code_process *cp = (const struct code_process *)as->code;

	return cp && cp->range_cnt;
}

static struct code_process *process_new(struct code_spaces *cs, const struct process *p, const struct mapping *runtime)
{
	struct code_process *cp = calloc(1, sizeof(*cp));

	if (!cp)
		return NULL;
	cp->as_code = (struct as_code){ .refs = 1, .free = process_free, .file_at = file_at };
	cp->all = cs;
	cp->number = ++cs->last_number;
	cp->pid = p->pid;
	cp->bias = runtime->bias;
	cp->runtime_at = runtime->start;
	cp->runtime = file_get(runtime->file);
	cp->wait_ms = FIRST_WAIT_MS;
	cp->memory_fd = proc_open(p->pid, p->pid, "mem");
	cp->next = cs->processes;
	cp->link = &cs->processes;
	if (cp->next)
		cp->next->link = &cp->next;
	cs->processes = cp;
	metric_add(cs->met, 1);
	return cp;
}

/* Turns to the next file of @as that may make code: in the one that was asked there is none yet. */
static void try_next(struct code_process *cp, const struct address_space *as)
{
	const struct mapping *next = find_runtime(cp->all, as, cp->runtime);

	if (!next)
		next = find_runtime(cp->all, as, NULL);
	if (!next || next->file == cp->runtime)
		return;
	forget(cp);
	file_put(cp->runtime);
	cp->runtime = file_get(next->file);
	cp->bias = next->bias;
	cp->runtime_at = next->start;
	cp->number = ++cp->all->last_number;
}

bool code_spaces_are_used(const struct code_spaces *cs)
{
	return cs->processes;
}

void code_spaces_look(struct code_spaces *cs)
{
	for (struct code_process *cp = cs->processes; cp; cp = cp->next)
		code_check_used(cp);
}

/* --- captures --- */

/* The number of @capture among all, told to the kernel; 0: there are too many. */
static uint32_t class_of(struct code_spaces *cs, const struct code_capture *capture)
{
	struct capture_class class = { .count = capture->count };
	uint32_t i;

	for (i = 0; i < capture->count; i++) {
		class.words[i].offset = capture->words[i].offset;
		class.words[i].reg = capture->words[i].leaf_reg;
		class.words[i].follow = capture->words[i].follow;
	}
	if (!capture->count)
		return 0;
	for (i = 1; i < cs->class_cnt; i++)
		if (memcmp(&cs->classes[i], &class, sizeof(class)) == 0)
			return i;
	if (i == CAPTURE_CLASSES || (cs->sampler && sampler_set_capture(cs->sampler, i, &class)))
		return 0;
	cs->classes[cs->class_cnt++] = class;
	return i;
}

void code_map_captures(struct code_spaces *cs, const struct file *file, struct row *rows, size_t count)
{
	const struct runtime_file *runtime = &file->info.runtime;
	const struct code_reader *reader = runtime->kind == RUNTIME_FILE_CODE ? code_reader_of(runtime->code.id) : NULL;
	struct code_capture captures[CODE_CAPTURES];

	for (size_t i = 0; i < count; i++) {
		uint8_t number = rows[i].capture;

		if (!number)
			continue;
		rows[i].capture = 0;
		if (!cs || !reader || !reader->captures || number > CODE_CAPTURES)
			continue;
		memset(captures, 0, sizeof(captures));
		reader->captures(NULL, &runtime->code, captures);
		rows[i].capture = (uint8_t)class_of(cs, &captures[number - 1]);
	}
}

const struct capture_class *code_capture_class(const struct code_spaces *cs, uint32_t number)
{
	return number && number < cs->class_cnt ? &cs->classes[number] : NULL;
}

/* --- ranges --- */

static int compare_ranges(const void *a, const void *b)
{
	const struct code_range *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

static struct code_range_state *range_new(struct code_process *cp, const struct code_range *r)
{
	struct code_range_state *range = calloc(1, sizeof(*range));

	if (!range)
		return NULL;
	range->process = cp;
	range->start = r->start & ~4095ull;
	range->end = (r->end + 4095) & ~4095ull;
	range->file = memory_file_new(files_take_id(cp->all->files), cp->runtime->path, range->end - range->start);
	if (!range->file) {
		free(range);
		return NULL;
	}
	range->file->code = range;
	return range;
}

static bool is_known(const struct code_process *cp, const struct code_range *r)
{
	uint64_t off;

	return file_at(&cp->as_code, r->start & ~4095ull, (r->end + 4095) & ~4095ull, &off);
}

/* Adds the ranges of @found that are not known. Returns whether there are new ones. */
static bool take_ranges(struct code_process *cp, const struct code_ranges *found)
{
	struct code_range sorted[CODE_RANGES];
	uint32_t n = 0, before = cp->range_cnt;

	memcpy(sorted, found->ranges, sizeof(sorted));
	qsort(sorted, found->count, sizeof(*sorted), compare_ranges);
	for (uint32_t i = 0; i < found->count; i++) {
		if (n && sorted[i].start <= sorted[n - 1].end + NEAR_BYTES &&
		    sorted[i].end - sorted[n - 1].start <= UINT32_MAX)
			sorted[n - 1].end = sorted[i].end > sorted[n - 1].end ? sorted[i].end : sorted[n - 1].end;
		else
			sorted[n++] = sorted[i];
	}
	for (uint32_t i = 0; i < n && cp->range_cnt < CODE_RANGES; i++) {
		struct code_range_state *range = is_known(cp, &sorted[i]) ? NULL : range_new(cp, &sorted[i]);

		if (range)
			cp->ranges[cp->range_cnt++] = range;
	}
	for (int i = 0; i < CODE_CAPTURES; i++)
		cp->classes[i] = class_of(cp->all, &found->captures[i]);
	return cp->range_cnt != before;
}

/* Collects the executable memory of @as without a file, pieces that are near to each other as one. Returns their number. */
static uint32_t memory_of(const struct address_space *as, struct code_range ranges[static CODE_RANGES])
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < as->count; i++) {
		const struct mapping *m = &as->maps[i];

		if (m->file && !m->file->code)
			continue;
		if (n && m->start <= ranges[n - 1].end + NEAR_BYTES)
			ranges[n - 1].end = m->end;
		else if (n < CODE_RANGES)
			ranges[n++] = (struct code_range){ m->start, m->end };
	}
	return n;
}

/* Where there is memory that was not there at the last question, the next one comes soon. */
static bool is_too_early(const struct code_process *cp)
{
	uint64_t wait_ms = cp->is_behind ? FIRST_WAIT_MS : cp->wait_ms;

	return cp->ranges_ns && clock_mono_ns() - cp->ranges_ns < wait_ms * NSEC_PER_MSEC;
}

/* The time to the next question doubles. */
static void wait_longer(struct code_process *cp)
{
	uint32_t max = cp->range_cnt ? LAST_WAIT_MS : FIRST_CODE_WAIT_MS;

	cp->ranges_ns = clock_mono_ns();
	cp->wait_ms = cp->wait_ms * 2 < max ? cp->wait_ms * 2 : max;
}

/* As code_spaces_meet(), without telling the kernel that the asid has changed. */
static bool meet(struct code_spaces *cs, struct process *p)
{
	struct code_process *cp = (struct code_process *)p->as->code;
	const struct mapping *runtime = cp ? NULL : find_runtime(cs, p->as, NULL);
	struct code_range memory[CODE_RANGES];
	uint32_t memory_bytes;
	struct code_request request;
	uint64_t hash;

	if (cp ? is_left_alone(cp) : !runtime)
		return false;
	memory_bytes = memory_of(p->as, memory) * sizeof(*memory);
	if (!cp && !memory_bytes && code_reader_of(runtime->file->info.runtime.code.id)->needs_memory)
		return false;
	hash = XXH3_64bits(memory, memory_bytes);
	if (cp)
		cp->is_behind = hash != cp->asked_memory;
	if (cp && is_too_early(cp))
		return false;
	if (!cp) {
		cp = process_new(cs, p, runtime);
		if (!cp || address_space_set_code(&p->as, &cp->as_code) < 0)
			return false;
	} else if (!cp->range_cnt) {
		try_next(cp, p->as);
	}
	wait_longer(cp);
	cp->asked_memory = hash;
	cp->is_behind = false;
	request = code_request_of(cp, CODE_OP_RANGES);
	if (code_ask(cp, &request, memory, memory_bytes) || !take_ranges(cp, (const void *)cs->reply.data))
		return false;
	cp->as_code.refs++;
	return address_space_set_code(&p->as, &cp->as_code) == 1;
}

bool code_spaces_meet(struct code_spaces *cs, struct process *p)
{
	const uint32_t asid = p->as->asid;
	bool has_more = meet(cs, p);

	if (p->as->asid != asid && cs->sampler)
		process_publish(p, cs->sampler);
	return has_more;
}
