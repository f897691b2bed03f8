/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Interning of stacks. The key of a stack is what was walked: process, address space id, end, and the raw addresses, so that
 * a stack seen before costs one hash of its bytes and nothing else. Of a key its 128-bit hash is kept, by a seed that nobody
 * knows, and no more: most stacks of a busy machine are new. Agent's thread.
 */
#include <errno.h>
#include <string.h>
#include <sys/random.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "agent/kernel/kernel_names.h"
#include "agent/samples/merge.h"
#include "agent/samples/traces.h"
#include "base/cleanup.h"
#include "base/intern.h"
#include "base/vec.h"

struct key_head {
	const struct process *process; /* NULL for stacks without user frames: processes that share mappings make code of
					* their own */
	uint32_t asid;
	uint32_t end;
	uint32_t kernel_cnt;
	uint32_t user_cnt;
	uint32_t kernel_changes; /* kernel_names_changes(); 0 without kernel frames */
	uint32_t is_wait;	 /* the first kernel frame is a return address, as the others are */
	uint32_t is_logical;	 /* see struct trace */
	uint32_t pad;
};

/* The hash of a key: struct key_head and addresses. */
struct stack_id {
	uint64_t low, high;
};

/* What a thread said; labels and bytes follow. */
struct context_head {
	const struct process *process; /* NULL: there are no bytes, whose meaning is the process's */
	struct span_info span;
	uint32_t label_words, byte_cnt;
};

enum {
	FRAMES_BEYOND = 16, /* of the stacks that go beyond a process's part */
	/* A frame, where it is found, and what the profile says of it: function, line, name. */
	FRAME_COSTS_BYTES = 256,
	MAX_FRAMES = MAX_KERNEL_FRAMES + MAX_MERGED_FRAMES,
	MAX_LABEL_WORDS = MAX_LABELS * (1 + (LABEL_KEY_BYTES + LABEL_VALUE_BYTES) / 8),
};

struct traces {
	const struct kernel_names *kernel; /* may be NULL */
	const struct objects *objects;	   /* NULL: no frames of scripts come */
	struct intern *ids;		   /* struct stack_id -> trace */
	uint64_t seed;			   /* of these */
	struct intern *frames;		   /* struct trace_frame -> frame id */
	struct intern *contexts;	   /* struct context_head, labels, bytes -> context */
	struct trace *traces;		   /* parallel to ids */
	uint32_t trace_cap;
	uint32_t *frame_ids;
	uint32_t frame_id_cnt, frame_id_cap;
	struct intern *targets; /* names of what was waited for */
	struct wakers *wakers;	/* owned */
	uint64_t *args;		/* of probes; owned */
	uint32_t arg_cnt, arg_cap;
	struct trace_event *events;
	uint32_t event_cnt, event_cap;
	uint32_t last;	   /* the stack that was added last */
	uint64_t round;	   /* of all traces there are; no other has it until traces_reset() */
	size_t most_bytes; /* of new stacks of one process */
	struct {
		struct key_head head;
		uint64_t addrs[MAX_FRAMES];
	} key;
	struct {
		struct context_head head;
		uint64_t words[MAX_LABEL_WORDS + MAX_CONTEXT_BYTES / 8 + 1];
	} context;
};

static void begin_round(struct traces *t)
{
	static uint64_t last;

	t->round = ++last;
}

int traces_new(const struct kernel_names *kernel, struct traces **ret)
{
	struct traces *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	t->kernel = kernel;
	t->ids = intern_new();
	t->frames = intern_new();
	t->contexts = intern_new();
	t->targets = intern_new();
	t->wakers = wakers_new();
	t->most_bytes = SIZE_MAX;
	begin_round(t);
	if (getrandom(&t->seed, sizeof(t->seed), 0) != sizeof(t->seed) || !t->ids || !t->frames || !t->contexts ||
	    !t->targets || !t->wakers) {
		traces_free(t);
		return -ENOMEM;
	}
	*ret = t;
	return 0;
}

void traces_of_objects(struct traces *t, const struct objects *objects)
{
	t->objects = objects;
}

void traces_limit(struct traces *t, size_t bytes)
{
	t->most_bytes = bytes;
}

static void give_back(void *array, uint32_t *cap)
{
	void **p = array;

	free(*p);
	*p = NULL;
	*cap = 0;
}

void traces_reset(struct traces *t)
{
	for (uint32_t i = 0; i < traces_frame_count(t); i++) {
		file_put(traces_frame(t, i)->file);
		object_put(traces_frame(t, i)->object);
	}
	for (uint32_t i = 0; i < t->event_cnt; i++)
		process_put(t->events[i].process);
	if (t->event_cnt < t->event_cap / 4) { /* a busy interval is over */
		intern_shrink(t->ids);
		intern_shrink(t->frames);
		intern_shrink(t->contexts);
		give_back(&t->traces, &t->trace_cap);
		give_back(&t->frame_ids, &t->frame_id_cap);
		give_back(&t->events, &t->event_cap);
		give_back(&t->args, &t->arg_cap);
	} else {
		intern_reset(t->ids);
		intern_reset(t->frames);
		intern_reset(t->contexts);
	}
	wakers_reset(t->wakers);
	intern_reset(t->targets);
	t->last = 0;
	t->frame_id_cnt = 0;
	t->event_cnt = 0;
	t->arg_cnt = 0;
	begin_round(t);
}

void traces_free(struct traces *t)
{
	if (!t)
		return;
	if (t->ids && t->frames && t->contexts && t->targets && t->wakers)
		traces_reset(t);
	wakers_free(t->wakers);
	intern_free(t->ids);
	intern_free(t->frames);
	intern_free(t->contexts);
	intern_free(t->targets);
	free(t->traces);
	free(t->frame_ids);
	free(t->events);
	free(t->args);
	free(t);
}

static int add_frame(struct traces *t, const struct trace_frame *frame)
{
	uint32_t id;
	int status = intern_add(t->frames, frame, sizeof(*frame), &id);

	if (status > 0) { /* traces_reset puts the file and object of every frame */
		file_get(frame->file);
		(void)object_get(frame->object);
	}
	if (status < 0 || vec_reach(&t->frame_ids, &t->frame_id_cap, t->frame_id_cnt))
		return -ENOMEM;
	t->frame_ids[t->frame_id_cnt++] = id;
	return 0;
}

static struct trace_frame resolve(struct process *process, uint64_t pc)
{
	uint64_t addr = (pc & ~FRAME_EXACT) - !(pc & FRAME_EXACT);
	const struct mapping *m = address_space_find(process->as, addr);

	if (!m || !m->file || m->file->code || m->file->state == FILE_UNREADABLE)
		return (struct trace_frame){ .kind = FRAME_ANONYMOUS, .process = process, .addr = addr };
	return (struct trace_frame){ .kind = FRAME_NATIVE, .file = m->file, .addr = addr - m->bias };
}

static struct trace_frame resolve_script(const struct traces *t, uint64_t frame)
{
	return (struct trace_frame){ .kind = FRAME_SCRIPTED,
				     .addr = FRAME_PLACE(frame),
				     .object = t->objects ? objects_find(t->objects, FRAME_OBJECT(frame)) : NULL };
}

static struct trace_frame resolve_kernel(const struct traces *t, uint64_t addr)
{
	return (struct trace_frame){ .kind = FRAME_KERNEL,
				     .addr = addr,
				     .kernel_code = t->kernel ? kernel_names_code(t->kernel, addr) : 0 };
}

/* The frames of a stack that was not seen before. There is room for the stack; without memory for its frames it is cut. */
static int add_trace(struct traces *t, uint32_t index, struct process *process)
{
	const struct key_head *head = &t->key.head;
	struct trace *trace = &t->traces[index];

	*trace = (struct trace){ .first_frame = t->frame_id_cnt,
				 .kernel_cnt = head->kernel_cnt,
				 .end = head->end,
				 .is_logical = head->is_logical };
	for (uint32_t i = 0; i < head->kernel_cnt + head->user_cnt; i++) {
		struct trace_frame frame;

		if (i < head->kernel_cnt)
			frame = resolve_kernel(t, t->key.addrs[i] - (i > 0 || head->is_wait));
		else if (FRAME_IS_SCRIPT(t->key.addrs[i]))
			frame = resolve_script(t, t->key.addrs[i]);
		else
			frame = resolve(process, t->key.addrs[i]);
		if (add_frame(t, &frame))
			return -ENOMEM;
		trace->frame_cnt++;
		trace->asks_runtimes |= trace_frame_kind(&frame)->namer == NAMER_RUNTIME;
		trace->has_script |= trace_frame_kind(&frame)->namer == NAMER_OBJECT;
	}
	return 0;
}

/* Keeps the arguments of a probe's sample for @event. Without memory it has none. */
static void keep_args(struct traces *t, const struct pending_sample *sample, struct trace_event *event)
{
	if (!sample->arg_cnt || vec_reserve(&t->args, &t->arg_cap, t->arg_cnt + sample->arg_cnt))
		return;
	memcpy(t->args + t->arg_cnt, sample->probe->args, sample->arg_cnt * sizeof(*t->args));
	event->first_arg = t->arg_cnt;
	event->arg_cnt = sample->arg_cnt;
	t->arg_cnt += sample->arg_cnt;
}

/* Keeps what the thread of @sample said. Returns 1 + its number; 0: it said nothing, or without memory. */
static uint32_t keep_context(struct traces *t, const struct process *process, const struct pending_sample *sample)
{
	struct context_head *head = &t->context.head;
	size_t words = sample->label_words, bytes = sample->context_bytes;
	uint32_t index;

	if ((!words && !bytes && !sample->span) || words > MAX_LABEL_WORDS || bytes > MAX_CONTEXT_BYTES)
		return 0;
	*head = (struct context_head){ .process = bytes ? process : NULL,
				       .label_words = sample->label_words,
				       .byte_cnt = sample->context_bytes };
	if (sample->span)
		head->span = *sample->span;
	if (words)
		memcpy(t->context.words, sample->labels, words * sizeof(*t->context.words));
	if (bytes)
		memcpy(t->context.words + words, sample->context, bytes);
	if (intern_add(t->contexts, &t->context, sizeof(*head) + words * sizeof(*t->context.words) + bytes, &index) < 0)
		return 0;
	return index + 1;
}

/* Keeps the name of what @sample waited for. Without memory it is not known. */
static void keep_target(struct traces *t, const struct pending_sample *sample, struct trace_event *event)
{
	const char *name = sample->target_name;
	uint32_t number;

	if (name && *name && intern_add(t->targets, name, strlen(name) + 1, &number) >= 0)
		event->target = number + 1;
}

/* The id of the stack whose key, of @bytes, is t->key. */
static struct stack_id stack_id(const struct traces *t, size_t bytes)
{
	XXH128_hash_t hash = XXH3_128bits_withSeed(&t->key, bytes, t->seed);

	return (struct stack_id){ hash.low64, hash.high64 };
}

/* Finds the id of the stack whose key, of @bytes, is t->key. A process whose stacks are all different would take all the
 * memory there is: beyond its part, of a stack that is new only the innermost frames are kept, and the key is cut. */
static struct stack_id choose_id(struct traces *t, const struct process *process, size_t bytes)
{
	struct key_head *head = &t->key.head;
	uint32_t index, cut = head->user_cnt > FRAMES_BEYOND ? head->user_cnt - FRAMES_BEYOND : 0;
	struct stack_id id = stack_id(t, bytes);

	if (!cut || process->stacks.round != t->round || process->stacks.bytes < t->most_bytes ||
	    intern_find(t->ids, &id, sizeof(id), &index))
		return id;
	head->user_cnt = FRAMES_BEYOND;
	head->end = END_BUDGET;
	return stack_id(t, bytes - cut * sizeof(uint64_t));
}

/* Counts what the new stack @trace of @process takes, of which @frames frames were not seen before. */
static void count_stack(struct traces *t, struct process *process, const struct trace *trace, uint32_t frames)
{
	if (process->stacks.round != t->round)
		process->stacks.bytes = 0;
	process->stacks.round = t->round;
	process->stacks.bytes += sizeof(struct stack_id) + sizeof(*trace) + trace->frame_cnt * sizeof(*t->frame_ids) +
				 frames * FRAME_COSTS_BYTES;
}

/* Finds the stack of @sample, or adds it: t->last. 0 or -ENOMEM. */
static int add_stack(struct traces *t, struct process *process, const struct pending_sample *sample, const uint64_t *user,
		     uint32_t user_cnt, enum walk_end end)
{
	uint32_t kernel_cnt = sample->kernel_cnt, frames = traces_frame_count(t);
	size_t bytes = sizeof(t->key.head) + ((size_t)kernel_cnt + user_cnt) * sizeof(uint64_t);
	struct stack_id id;
	uint32_t index;
	int status;

	if (kernel_cnt > MAX_KERNEL_FRAMES || user_cnt > MAX_MERGED_FRAMES)
		return -ENOMEM;
	t->key.head = (struct key_head){ .process = user_cnt ? process : NULL,
					 .asid = user_cnt ? process->as->asid : 0,
					 .end = end,
					 .kernel_cnt = kernel_cnt,
					 .user_cnt = user_cnt,
					 .kernel_changes = t->kernel && kernel_cnt ? kernel_names_changes(t->kernel) : 0,
					 .is_wait = (sample->wait || sample->wakes) && kernel_cnt,
					 .is_logical = sample->is_logical };
	if (kernel_cnt)
		memcpy(t->key.addrs, sample->kernel, kernel_cnt * sizeof(*sample->kernel));
	if (user_cnt)
		memcpy(t->key.addrs + kernel_cnt, user, user_cnt * sizeof(*user));
	if (vec_reach(&t->traces, &t->trace_cap, traces_count(t)))
		return -ENOMEM;
	id = choose_id(t, process, bytes);
	status = intern_add(t->ids, &id, sizeof(id), &index);
	if (status < 0 || (status && add_trace(t, index, process)))
		return -ENOMEM;
	if (status)
		count_stack(t, process, &t->traces[index], traces_frame_count(t) - frames);
	t->last = index;
	return 0;
}

int traces_add(struct traces *t, struct process *process, const struct pending_sample *sample, const uint64_t *user,
	       uint32_t user_cnt, enum walk_end end)
{
	const struct sample_record *r = sample->record;
	struct trace_event *event;

	if (vec_reach(&t->events, &t->event_cap, t->event_cnt) || add_stack(t, process, sample, user, user_cnt, end))
		return -ENOMEM;
	event = &t->events[t->event_cnt++];
	*event = (struct trace_event){
		.process = process_get(process),
		.time_ns = r->hdr.time_ns,
		.value = sample->value,
		.kind = r->kind,
		.trace = t->last,
		.tid = r->tid,
		.cpu = r->hdr.cpu,
		.wait = sample->wait && sample->wait->state < WAIT_STATE_MAX ? sample->wait->state + 1 : 0,
		.probe = sample->probe && sample->probe->probe < UINT32_MAX ? sample->probe->probe + 1 : 0,
		.context = keep_context(t, process, sample),
		.syscall = sample->wait ? sample->wait->syscall : -1
	};
	memcpy(event->comm, r->comm, sizeof(event->comm));
	keep_args(t, sample, event);
	keep_target(t, sample, event);
	return 0;
}

void traces_note_script(struct traces *t, uint32_t outcome, uint32_t lock)
{
	t->events[t->event_cnt - 1].script = outcome;
	t->events[t->event_cnt - 1].lock = lock;
}

/* Of waits only one for a CPU comes with another sample, the sleep before it. */
int traces_add_more(struct traces *t, uint32_t kind, uint64_t value)
{
	struct trace_event *event;

	if (!t->event_cnt || vec_reach(&t->events, &t->event_cap, t->event_cnt))
		return -ENOMEM;
	event = &t->events[t->event_cnt++];
	*event = event[-1];
	(void)process_get(event->process);
	event->kind = kind;
	event->value = value;
	event->waker = 0;
	if (event->wait)
		event->wait = WAIT_WOKEN + 1;
	event->target = 0; /* it waited for the CPU alone */
	return 0;
}

int traces_add_contentions(struct traces *t, uint32_t kind, uint64_t count)
{
	struct trace_event *event;

	if (vec_reach(&t->events, &t->event_cap, t->event_cnt))
		return -ENOMEM;
	event = &t->events[t->event_cnt++];
	*event = event[-1];
	(void)process_get(event->process);
	event->kind = kind;
	event->value = count;
	return 0;
}

int traces_add_waker(struct traces *t, struct process *process, const struct pending_sample *sample, const uint64_t *user,
		     uint32_t user_cnt, enum walk_end end)
{
	const struct sample_record *r = sample->record;
	struct waker waker = { .process = process, .kind = r->kind, .tid = r->tid, .is_irq = sample->is_irq };

	if (add_stack(t, process, sample, user, user_cnt, end))
		return -ENOMEM;
	waker.trace = t->last;
	memcpy(waker.comm, r->comm, sizeof(waker.comm));
	for (uint32_t i = 0; i < sample->wake_cnt; i++) {
		waker.woken_ns = sample->wakes[i].woken_ns;
		waker.woken_tid = sample->wakes[i].tid;
		waker.value = sample->wakes[i].value;
		if (wakers_add(t->wakers, &waker))
			return -ENOMEM;
		(void)process_get(process);
	}
	return 0;
}

void traces_join_waker(struct traces *t, const struct pending_sample *sample)
{
	uint64_t woken_ns = sample->wait ? sample->wait->woken_ns : 0;
	bool has_room = woken_ns && !vec_reach(&t->events, &t->event_cap, t->event_cnt);
	uint32_t number = has_room ? wakers_use(t->wakers, sample->record->tid, woken_ns) : UINT32_MAX;
	const struct waker *waker;
	struct trace_event *event;

	if (number == UINT32_MAX)
		return;
	waker = wakers_get(t->wakers, number);
	event = &t->events[t->event_cnt++];
	*event = event[-1];
	(void)process_get(event->process);
	event->kind = waker->kind;
	event->value = waker->value;
	event->waker = number + 1;
}

const struct trace_frame *traces_last_user_frame(const struct traces *t)
{
	const struct trace *trace = &t->traces[t->last];

	if (trace->kernel_cnt >= trace->frame_cnt)
		return NULL;
	return traces_frame(t, t->frame_ids[trace->first_frame + trace->kernel_cnt]);
}

enum walk_end traces_last_end(const struct traces *t)
{
	return t->traces[t->last].end;
}

uint32_t traces_event_count(const struct traces *t)
{
	return t->event_cnt;
}

uint32_t traces_context_count(const struct traces *t)
{
	return intern_count(t->contexts);
}

void traces_context(const struct traces *t, uint32_t context, struct trace_context *ret)
{
	const struct context_head *head = intern_get(t->contexts, context, NULL);

	*ret = (struct trace_context){ .process = head->process,
				       .span = head->span,
				       .labels = (const uint64_t *)(head + 1),
				       .bytes = (const uint8_t *)(head + 1) + head->label_words * sizeof(uint64_t),
				       .label_words = head->label_words,
				       .byte_cnt = head->byte_cnt };
}

const uint64_t *traces_args(const struct traces *t)
{
	return t->args;
}

const struct trace_event *traces_events(const struct traces *t)
{
	return t->events;
}

const char *traces_target(const struct traces *t, uint32_t number)
{
	return intern_get(t->targets, number, NULL);
}

const struct wakers *traces_wakers(const struct traces *t)
{
	return t->wakers;
}

uint32_t traces_count(const struct traces *t)
{
	return intern_count(t->ids);
}

bool traces_last_asks_runtimes(const struct traces *t)
{
	return traces_count(t) && t->traces[t->last].asks_runtimes;
}

const struct trace *traces_get(const struct traces *t, uint32_t trace)
{
	return &t->traces[trace];
}

const uint32_t *traces_frame_ids(const struct traces *t, const struct trace *trace)
{
	return trace->first_frame ? t->frame_ids + trace->first_frame : t->frame_ids;
}

uint32_t traces_frame_count(const struct traces *t)
{
	return intern_count(t->frames);
}

const struct trace_frame *traces_frame(const struct traces *t, uint32_t frame)
{
	return intern_get(t->frames, frame, NULL);
}

size_t traces_memory_bytes(const struct traces *t)
{
	return sizeof(*t) + intern_memory_bytes(t->ids) + intern_memory_bytes(t->frames) + intern_memory_bytes(t->targets) +
	       intern_memory_bytes(t->contexts) + t->trace_cap * sizeof(*t->traces) +
	       t->frame_id_cap * sizeof(*t->frame_ids) + t->event_cap * sizeof(*t->events) + t->arg_cap * sizeof(*t->args) +
	       wakers_memory_bytes(t->wakers);
}
