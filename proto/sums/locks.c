/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows by process and lock; parties by row, side and name. The party of a stack is its innermost function that is not of the
 * kernel or of a library of locks; the function that this one called is told as well: pthread_mutex_lock.
 */
#include "proto/sums/locks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/intern.h"
#include "base/vec.h"

/* A party while it is counted. */
struct counted {
	uint32_t row;
	enum lock_side side;
	struct lock_party party;
};

struct locks {
	const struct view *view;
	struct intern *keys;	/* pid, lock NUL, process NUL -> row */
	struct intern *parties; /* row, side, name NUL -> counted */
	struct lock_row *rows;
	struct counted *counted;
	struct lock_party *sorted; /* of all rows, one behind the other */
	size_t row_cap, counted_cap;
	struct lock_row *answer;
	struct buf key;
};

struct locks *locks_new(const struct view *view)
{
	struct locks *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	l->view = view;
	l->keys = intern_new();
	l->parties = intern_new();
	if (!l->keys || !l->parties) {
		locks_free(l);
		return NULL;
	}
	return l;
}

void locks_free(struct locks *l)
{
	if (!l)
		return;
	intern_free(l->keys);
	intern_free(l->parties);
	free(l->rows);
	free(l->counted);
	free(l->sorted);
	free(l->answer);
	buf_fini(&l->key);
	free(l);
}

/* --- who waits, or lets go --- */

static bool begins_with(struct str text, const char *with)
{
	return text.len >= strlen(with) && !memcmp(text.data, with, strlen(with));
}

/* The C library, and functions of runtimes, that wait for locks and let them go; their names begin so. */
static const char *const lock_modules[] = { "libc.so", "libc-2.", "libpthread", "ld-musl", "libstdc++", "libc++" };
static const char *const lock_functions[] = {
	"pthread_",
	"__pthread_",
	"___pthread_",
	"__lll_",
	"lll_",
	"__futex_",
	"futex_",
	"__condvar_",
	"sem_",
	"__new_sem_",
	"syscall",
	"std::__",
	"std::mutex",
	"std::condition_variable",
	"runtime.futex",
	"runtime.lock",
	"runtime.unlock",
	"runtime.note",
	"runtime.mPark",
	"parking_lot",
	"std::sys::",
	"std::sync::",
	/* CPython: locks of scripts, and its own */
	"PyThread_",
	"lock_PyThread_",
	"acquire_timed",
	"rlock_",
	"take_gil",
	"drop_gil",
	"PyCOND_",
	"PyEval_RestoreThread",
	"PyEval_SaveThread",
	"PyMutex_",
	"_PyMutex_",
	"_PyParkingLot_",
	"_PySemaphore_",
	"_PySeqLock_",
	/* Java */
	"Unsafe_Park",
	"Unsafe_Unpark",
	"Parker::",
	"PlatformParker::",
	"ObjectMonitor::",
	"ObjectSynchronizer::",
	"jdk.internal.misc.Unsafe.",
	"java.util.concurrent.locks.",
};

/* Is the frame of the kernel, of the C library, or of a runtime's own locks? */
static bool is_of_lock(const struct frame *f)
{
	if (str_is(f->type, "kernel"))
		return true;
	for (size_t i = 0; i < sizeof(lock_modules) / sizeof(*lock_modules); i++)
		if (begins_with(f->module, lock_modules[i]))
			return true;
	for (size_t i = 0; i < sizeof(lock_functions) / sizeof(*lock_functions); i++)
		if (begins_with(f->function, lock_functions[i]))
			return true;
	return false;
}

/* The frame that separates the stack of a waker, which comes first, from that of the wait; frame_count: there is none. */
static uint32_t find_separator(const struct stack_sample *s)
{
	uint32_t i = 0;

	while (i < s->frame_count && !str_is(stack_frame(s, i)->type, "waker"))
		i++;
	return i;
}

/* Appends the party of the frames from @from on, below @to: "take (pthread_mutex_lock)". Functions without names that a
 * script called are the runtime's: the script's is below them. */
static void print_party(const struct stack_sample *s, uint32_t from, uint32_t to, struct buf *out)
{
	uint32_t party = to, last = to;

	for (uint32_t i = from; i < to; i++) {
		const struct frame *f = stack_frame(s, i);
		bool is_native = str_is(f->type, "native");

		if (party == to && is_of_lock(f)) {
			last = str_is(f->type, "kernel") ? last : i;
			continue;
		}
		if (party == to || (f->function.len && !is_native && !is_of_lock(f)))
			party = i;
		if (f->function.len || !is_native)
			break;
	}
	if (party == to) {
		buf_puts(out, "[no function of the program]");
		return;
	}
	stack_frame_print(stack_frame(s, party), 0, out);
	if (last == to)
		return;
	buf_puts(out, " (");
	stack_frame_print(stack_frame(s, last), 0, out);
	buf_putc(out, ')');
}

/* The thread's name of the waker: the separator's own, without its words around it; "an interrupt". */
static void print_waker(const struct frame *separator, struct buf *out)
{
	static const char before[] = "[woken by ";
	struct str name = separator->function;

	if (begins_with(name, before) && name.data[name.len - 1] == ']')
		buf_append(out, name.data + strlen(before), name.len - strlen(before) - 1);
}

/* --- counting --- */

static struct str text_of(const struct stack_sample *s, const char *key)
{
	return profiles_value_text(s->profiles, view_sample_label(s, key));
}

static int find_row(struct locks *l, const struct stack_sample *s, struct str lock, uint32_t *ret)
{
	struct str process = text_of(s, "process.executable.name");
	uint32_t count = intern_count(l->keys);

	buf_reset(&l->key);
	buf_append(&l->key, &s->pid, sizeof(s->pid));
	stack_walk_put_key(&l->key, lock);
	stack_walk_put_key(&l->key, process.len ? process : s->comm);
	if (vec_reach_zero(&l->rows, &l->row_cap, count) || l->key.failed ||
	    intern_add(l->keys, l->key.data, l->key.len, ret) < 0)
		return -ENOMEM;
	return 0;
}

static int add_party(struct locks *l, const struct stack_sample *s, uint32_t row, enum lock_side side)
{
	uint32_t separator = find_separator(s), count = intern_count(l->parties), number;
	uint32_t ids[2] = { row, side };

	buf_reset(&l->key);
	buf_append(&l->key, ids, sizeof(ids));
	if (side == LOCK_RELEASERS) {
		print_waker(stack_frame(s, separator), &l->key);
		buf_puts(&l->key, ": ");
		print_party(s, 0, separator, &l->key);
	} else {
		print_party(s, separator < s->frame_count ? separator + 1 : 0, s->frame_count, &l->key);
	}
	buf_putc(&l->key, '\0');
	if (vec_reach_zero(&l->counted, &l->counted_cap, count) || l->key.failed ||
	    intern_add(l->parties, l->key.data, l->key.len, &number) < 0)
		return -ENOMEM;
	l->counted[number].row = row;
	l->counted[number].side = side;
	l->counted[number].party.weight += s->weight;
	l->counted[number].party.events += s->events;
	l->rows[row].told_weight[side] += s->weight;
	return 0;
}

static int add_sample(void *arg, const struct stack_sample *s)
{
	bool is_wait = str_is(s->kind->type, "off_cpu"), is_waker = str_is(s->kind->type, "waker"),
	     is_count = str_is(s->kind->type, "contentions");
	struct locks *l = arg;
	struct str lock;
	uint32_t row;

	if (!is_wait && !is_waker && !is_count)
		return 0;
	lock = text_of(s, "wait.target");
	if (!begins_with(lock, "futex ") || (is_waker && find_separator(s) == s->frame_count))
		return 0;
	if (find_row(l, s, lock, &row))
		return -ENOMEM;
	if (is_count) {
		l->rows[row].count += s->weight;
		return 0;
	}
	if (is_wait) {
		l->rows[row].weight += s->weight;
		l->rows[row].events += s->events;
	}
	return add_party(l, s, row, is_wait ? LOCK_WAITERS : LOCK_RELEASERS);
}

int locks_add(struct locks *l, const struct profiles *p)
{
	return view_each_stack(l->view, p, add_sample, l);
}

/* --- reading --- */

static int compare_counted(const void *x, const void *y)
{
	const struct counted *a = x, *b = y;

	if (a->row != b->row)
		return a->row < b->row ? -1 : 1;
	if (a->side != b->side)
		return a->side < b->side ? -1 : 1;
	if (a->party.weight != b->party.weight)
		return a->party.weight > b->party.weight ? -1 : 1;
	return strcmp(a->party.name, b->party.name);
}

static int compare_rows(const void *x, const void *y)
{
	const struct lock_row *a = x, *b = y;
	int order;

	if (a->weight != b->weight)
		return a->weight > b->weight ? -1 : 1;
	order = strcmp(a->process, b->process);
	order = order ? order : (a->pid > b->pid) - (a->pid < b->pid);
	return order ? order : strcmp(a->lock, b->lock);
}

/* Puts the parties of all rows, sorted, at l->sorted, where the rows of l->answer find theirs. */
static int sort_parties(struct locks *l)
{
	uint32_t count = intern_count(l->parties);
	struct counted *list = calloc(count + 1, sizeof(*list));

	free(l->sorted);
	l->sorted = calloc(count + 1, sizeof(*l->sorted));
	if (!list || !l->sorted) {
		free(list);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < count; i++) {
		list[i] = l->counted[i];
		list[i].party.name = (const char *)intern_get(l->parties, i, NULL) + 2 * sizeof(uint32_t);
	}
	qsort(list, count, sizeof(*list), compare_counted);
	for (uint32_t i = 0; i < count; i++) {
		struct lock_row *row = &l->answer[list[i].row];

		l->sorted[i] = list[i].party;
		if (!row->party_cnt[list[i].side]++)
			row->parties[list[i].side] = &l->sorted[i];
	}
	free(list);
	return 0;
}

const struct lock_row *locks_rows(struct locks *l, uint32_t *count_ret)
{
	uint32_t count = intern_count(l->keys);

	*count_ret = 0;
	free(l->answer);
	l->answer = calloc(count + 1, sizeof(*l->answer));
	if (!l->answer)
		return NULL;
	for (uint32_t i = 0; i < count; i++) {
		const char *key = intern_get(l->keys, i, NULL);

		l->answer[i] = l->rows[i];
		memcpy(&l->answer[i].pid, key, sizeof(int64_t));
		l->answer[i].lock = key + sizeof(int64_t);
		l->answer[i].process = l->answer[i].lock + strlen(l->answer[i].lock) + 1;
	}
	if (sort_parties(l))
		return NULL;
	qsort(l->answer, count, sizeof(*l->answer), compare_rows);
	*count_ret = count;
	return l->answer;
}
