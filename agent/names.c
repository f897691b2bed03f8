/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cache of names. Keys are (file id, address); answers lead into interned strings. Bounded: when it holds too many
 * answers it starts over, and the frames of this interval are asked again. Agent's thread.
 */
#include <errno.h>
#include <string.h>

#include "agent/names.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/intern.h"
#include "base/log.h"
#include "base/metrics.h"

enum {
	MAX_ANSWERS = 65536,
	KERNEL_FILE = UINT32_MAX,
	KALLSYMS_AGE_SECONDS =
		60, /* modules and BPF programs come and go: an unnamed address makes us look again after so long */
};

struct name_key {
	uint64_t addr;
	uint32_t file;
	uint32_t pad;
};

struct answer {
	uint32_t name, system_name, module; /* indices of strings */
};

struct names {
	struct files *files;
	struct intern *keys;
	struct answer *answers; /* parallel to keys */
	uint32_t cap;
	struct intern *strings; /* 0 is "" */
	struct kallsyms *kernel;
	uint64_t kernel_read_ns;
	bool kernel_refused;
	struct buf reply;
	struct metric *looked_up, *unnamed;
};

/* Empties the cache. */
static int start_over(struct names *n)
{
	uint32_t zero;

	intern_reset(n->keys);
	intern_reset(n->strings);
	return intern_add(n->strings, "", 0, &zero) < 0 ? -ENOMEM : 0;
}

int names_new(struct files *files, struct metrics *metrics, struct names **ret)
{
	struct names *n = calloc(1, sizeof(*n));

	if (!n)
		return -ENOMEM;
	n->files = files;
	n->keys = intern_new();
	n->strings = intern_new();
	if (!n->keys || !n->strings || start_over(n)) {
		names_free(n);
		return -ENOMEM;
	}
	n->looked_up = metrics_counter(metrics, "hearth_names_looked_up_total", NULL,
				       "Addresses that were looked up for a name.");
	n->unnamed = metrics_counter(metrics, "hearth_names_not_found_total", NULL, "Of these the ones no source names.");
	*ret = n;
	return 0;
}

void names_free(struct names *n)
{
	if (!n)
		return;
	intern_free(n->keys);
	intern_free(n->strings);
	kallsyms_free(n->kernel);
	free(n->answers);
	buf_fini(&n->reply);
	free(n);
}

static struct name_key key_of(const struct trace_frame *frame)
{
	return (struct name_key){ .addr = frame->addr, .file = frame->kind == FRAME_KERNEL ? KERNEL_FILE : frame->file->id };
}

/* Makes room for @key. 1 when it is new, 0 when it has its answer, -ENOMEM. */
static int claim(struct names *n, const struct name_key *key, uint32_t *index_ret)
{
	if (intern_count(n->keys) == n->cap) {
		uint32_t cap = n->cap ? n->cap * 2 : 1024;
		struct answer *answers = realloc(n->answers, cap * sizeof(*answers));

		if (!answers)
			return -ENOMEM;
		n->answers = answers;
		n->cap = cap;
	}
	return intern_add(n->keys, key, sizeof(*key), index_ret);
}

static uint32_t add_string(struct names *n, const char *text, size_t len)
{
	uint32_t index;

	return len && intern_add(n->strings, text, len, &index) >= 0 ? index : 0;
}

/* --- the kernel --- */

static void read_kernel(struct names *n)
{
	uint64_t now_ns = clock_mono_ns();
	struct kallsyms *fresh;
	int error;

	if (n->kernel_refused || (n->kernel && now_ns - n->kernel_read_ns < KALLSYMS_AGE_SECONDS * NSEC_PER_SEC))
		return;
	n->kernel_read_ns = now_ns;
	error = kallsyms_new(NULL, &fresh);
	if (error) {
		n->kernel_refused = !n->kernel;
		log_warn("kernel frames stay without names: /proc/kallsyms: %s%s", strerror(-error),
			 error == -EPERM ? " (kernel.kptr_restrict hides the addresses; 'sysctl kernel.kptr_restrict=1' "
					   "shows them to root)"
					 : "");
		return;
	}
	kallsyms_free(n->kernel);
	n->kernel = fresh;
}

static void name_kernel(struct names *n, uint64_t addr, struct answer *answer)
{
	const char *name, *module;
	uint64_t start;

	if (!n->kernel)
		read_kernel(n);
	if (n->kernel && kallsyms_find(n->kernel, addr, &name, &module, &start)) {
		read_kernel(n); /* a module loaded since? */
		if (kallsyms_find(n->kernel, addr, &name, &module, &start))
			name = NULL;
	} else if (!n->kernel) {
		name = NULL;
	}
	if (!name)
		return;
	answer->name = add_string(n, name, strlen(name));
	answer->module = add_string(n, module, strlen(module));
}

/* --- files --- */

struct wanted {
	const struct trace_frame *frame;
	uint32_t index; /* of the answer */
};

static int by_file(const void *a, const void *b)
{
	const struct wanted *x = a, *y = b;
	uint32_t f = x->frame->file->id, g = y->frame->file->id;

	return f != g ? (f < g ? -1 : 1) : (x->frame->addr > y->frame->addr) - (x->frame->addr < y->frame->addr);
}

/* One batch: the addresses of one file. */
static void name_file(struct names *n, struct wanted *wanted, uint32_t count)
{
	AUTO_FREE uint64_t *addrs = malloc(count * sizeof(*addrs));
	struct file *file = wanted[0].frame->file;
	const struct symbol_query *queries;
	const char *text;

	if (!addrs || file->fd < 0)
		return;
	for (uint32_t i = 0; i < count; i++)
		addrs[i] = wanted[i].frame->addr;
	if (files_call(n->files, file, ELF_OP_NAMES, 0, addrs, count * sizeof(*addrs), &n->reply))
		return;
	queries = (const void *)n->reply.data;
	text = (const char *)(queries + count);
	for (uint32_t i = 0; i < count; i++) {
		struct answer *a = &n->answers[wanted[i].index];

		a->name = add_string(n, text + queries[i].name_off, queries[i].name_len);
		a->system_name = add_string(n, text + queries[i].raw_off, queries[i].raw_len);
		metric_add(n->unnamed, !a->name);
	}
}

int names_update(struct names *n, const struct traces *t)
{
	uint32_t frames = traces_frame_count(t), count = 0;
	AUTO_FREE struct wanted *wanted = malloc((frames ? frames : 1) * sizeof(*wanted));

	if (!wanted || (intern_count(n->keys) + frames > MAX_ANSWERS && start_over(n)))
		return -ENOMEM;
	for (uint32_t i = 0; i < frames; i++) {
		const struct trace_frame *frame = traces_frame(t, i);
		struct name_key key;
		uint32_t index;
		int status;

		if (frame->kind == FRAME_ANONYMOUS)
			continue;
		key = key_of(frame);
		status = claim(n, &key, &index);
		if (status < 0)
			return status;
		if (!status)
			continue;
		n->answers[index] = (struct answer){ 0 };
		metric_add(n->looked_up, 1);
		if (frame->kind == FRAME_KERNEL)
			name_kernel(n, frame->addr, &n->answers[index]);
		else
			wanted[count++] = (struct wanted){ frame, index };
	}
	qsort(wanted, count, sizeof(*wanted), by_file);
	for (uint32_t i = 0, next; i < count; i = next) {
		for (next = i + 1; next < count && wanted[next].frame->file == wanted[i].frame->file; next++)
			;
		name_file(n, wanted + i, next - i);
	}
	return 0;
}

static struct str string_at(const struct names *n, uint32_t index)
{
	size_t len;
	const char *text = intern_get(n->strings, index, &len);

	return (struct str){ text, (uint32_t)len };
}

struct frame_name names_find(const struct names *n, const struct trace_frame *frame)
{
	struct frame_name result = { STR(""), STR(""), STR("") };
	struct name_key key;
	uint32_t index;

	if (frame->kind == FRAME_ANONYMOUS)
		return result;
	key = key_of(frame);
	/* It stands already: nothing is added. */
	if (intern_add(n->keys, &key, sizeof(key), &index) != 0)
		return result;
	result.name = string_at(n, n->answers[index].name);
	result.system_name = string_at(n, n->answers[index].system_name);
	result.module = string_at(n, n->answers[index].module);
	return result;
}
