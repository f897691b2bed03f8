/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cache of names. An answer is kept by (file, version of its index, address) and is a run of lines. The functions and
 * paths that lines lead to are kept by their numbers in the index, so that each is read and demangled once. The cache is
 * bounded: if it holds too many answers it starts over, small, and looks the frames of this interval up again. Agent's
 * thread.
 */
#include <errno.h>
#include <string.h>

#include "agent/names/indexes.h"
#include "agent/kernel/kernel_names.h"
#include "agent/names/names.h"
#include "base/cleanup.h"
#include "base/intern.h"
#include "base/metrics.h"
#include "base/vec.h"

enum {
	MAX_ANSWERS = 16384, /* or the frames of two intervals, if those are more; 5 MB */
	LINES_AN_ANSWER = 4,
	READS_A_REST = 32, /* a look-up touches up to 300 KB of an index, as the kernel maps what is around */
	KERNEL_FILE = UINT32_MAX,
};

/* The key of an answer: an address, or (in @things) a function or path of an index. */
enum key_kind { KEY_ADDRESS, KEY_FUNCTION, KEY_PATH, KEY_LINES };

struct name_key {
	uint64_t value; /* the address; the number in the index */
	uint64_t kernel_code;
	uint32_t file; /* id of the file, or KERNEL_FILE */
	uint32_t version;
	uint32_t kind;
	uint32_t pad;
};

struct answer {
	uint32_t first_line, line_count;
	uint32_t module; /* in @strings */
	enum code_source source;
	uint64_t start, size_bytes; /* range of a function without a name */
};

/* A function; or a path, which has only its text. */
struct thing {
	uint32_t name, system_name; /* in @strings */
	uint32_t start_line;
};

struct line {
	uint32_t function; /* in @things */
	uint32_t path;	   /* in @strings */
	uint32_t line, column;
	uint32_t all_lines; /* its function's lines in @path, in @things */
};

struct names {
	struct intern *keys;
	struct answer *answers; /* parallel to keys */
	uint32_t answer_cap;
	struct intern *thing_keys;
	struct thing *things; /* parallel to thing_keys */
	uint32_t thing_cap;
	struct line *lines;
	uint32_t line_cnt, line_cap;
	struct intern *strings;	     /* 0 is "" */
	struct kernel_names *kernel; /* borrowed */
	/* Indexes that were read since their pages were last given back, within an update. */
	struct file_index *read[READS_A_REST];
	uint32_t read_cnt, reads;
	struct buf text, readable;
	struct metric *looked_up, *unnamed, *found[CODE_SOURCE_MAX];
};

/* Empties the cache, and gives its memory back. */
static int start_over(struct names *n)
{
	uint32_t zero;

	intern_shrink(n->keys);
	intern_shrink(n->thing_keys);
	intern_shrink(n->strings);
	free(n->answers);
	free(n->things);
	free(n->lines);
	n->answers = NULL;
	n->things = NULL;
	n->lines = NULL;
	n->answer_cap = n->thing_cap = n->line_cap = n->line_cnt = 0;
	return intern_add(n->strings, "", 0, &zero) < 0 ? -ENOMEM : 0;
}

/* Would @frames more be too many for the cache? */
static bool is_full(const struct names *n, uint32_t frames)
{
	uint64_t most = 2ull * frames > MAX_ANSWERS ? 2ull * frames : MAX_ANSWERS;

	return (uint64_t)intern_count(n->keys) + frames > most || n->line_cnt > LINES_AN_ANSWER * most;
}

int names_new(struct kernel_names *kernel, struct metrics *metrics, struct names **ret)
{
	struct names *n = calloc(1, sizeof(*n));

	if (!n)
		return -ENOMEM;
	n->kernel = kernel;
	n->keys = intern_new();
	n->thing_keys = intern_new();
	n->strings = intern_new();
	if (!n->keys || !n->thing_keys || !n->strings || start_over(n)) {
		names_free(n);
		return -ENOMEM;
	}
	n->looked_up = metrics_counter(metrics, "hearth_names_looked_up_total", NULL,
				       "Addresses that were looked up for a name.");
	n->unnamed = metrics_counter(metrics, "hearth_names_not_found_total", NULL, "Of these the ones no source names.");
	for (int i = CODE_SOURCE_NONE + 1; i < CODE_SOURCE_UNWIND; i++) { /* UNWIND names nothing */
		AUTO(buf_fini) struct buf labels = BUF_EMPTY;

		metrics_label(&labels, "source", code_source_name(i), strlen(code_source_name(i)));
		n->found[i] = metrics_counter(metrics, "hearth_names_found_total", buf_text(&labels),
					      "Addresses in files that have names, by what names them.");
	}
	*ret = n;
	return 0;
}

void names_free(struct names *n)
{
	if (!n)
		return;
	intern_free(n->keys);
	intern_free(n->thing_keys);
	intern_free(n->strings);
	free(n->answers);
	free(n->things);
	free(n->lines);
	buf_fini(&n->text);
	buf_fini(&n->readable);
	free(n);
}

static struct name_key kernel_key(const struct names *n, const struct trace_frame *frame)
{
	return (struct name_key){ .value = frame->addr,
				  .kernel_code = frame->kernel_code,
				  .file = KERNEL_FILE,
				  .version = kernel_names_version(n->kernel) };
}

static struct name_key file_key(const struct names *n, const struct trace_frame *frame)
{
	(void)n;
	return (struct name_key){ .value = frame->addr,
				  .file = frame->file->id,
				  .version = frame->file->index ? frame->file->index->version : 0 };
}

static uint32_t add_string(struct names *n, const void *text, size_t len)
{
	uint32_t index;

	return len && intern_add(n->strings, text, len, &index) >= 0 ? index : 0;
}

/* A line of a function whose thing is @function; the line is left out without memory. */
static void add_line(struct names *n, struct answer *answer, const struct line *line)
{
	if (vec_reach(&n->lines, &n->line_cap, n->line_cnt))
		return;
	n->lines[n->line_cnt++] = *line;
	answer->line_count++;
}

/* The number of @key's thing. 1: it is new, and empty; 0; -ENOMEM. */
static int find_thing(struct names *n, const struct name_key *key, uint32_t *index_ret)
{
	int status;

	if (vec_reach(&n->things, &n->thing_cap, intern_count(n->thing_keys)))
		return -ENOMEM;
	status = intern_add(n->thing_keys, key, sizeof(*key), index_ret);
	if (status > 0)
		n->things[*index_ret] = (struct thing){ 0 };
	return status;
}

/* --- the kernel --- */

static void name_kernel(struct names *n, const struct trace_frame *frame, struct answer *answer)
{
	struct name_key key = { .file = KERNEL_FILE, .kind = KEY_FUNCTION };
	const char *name, *module;
	struct line line = { 0 };

	if (!kernel_names_find(n->kernel, frame->addr, frame->kernel_code, &name, &module))
		return;
	key.value = add_string(n, name, strlen(name));
	answer->module = add_string(n, module, strlen(module));
	if (find_thing(n, &key, &line.function) >= 0) {
		n->things[line.function].name = (uint32_t)key.value;
		add_line(n, answer, &line);
	}
}

/* --- files --- */

/* The function @number of the file's index. 0 or -ENOMEM; it may have no name. */
static int find_function(struct names *n, const struct file *file, uint32_t number, uint32_t *index_ret)
{
	struct name_key key = { .value = number, .file = file->id, .version = file->index->version, .kind = KEY_FUNCTION };
	int status = find_thing(n, &key, index_ret);
	struct thing *thing;

	if (status <= 0)
		return status;
	thing = &n->things[*index_ret];
	buf_reset(&n->text);
	buf_reset(&n->readable);
	if (symbol_index_name(file->index->entry.index, number, &n->text))
		return 0;
	symbols_demangle(buf_text(&n->text), n->text.len, &n->readable);
	if (n->text.failed || n->readable.failed)
		return -ENOMEM;
	thing->start_line = symbol_index_decl_line(file->index->entry.index, number);
	thing->name = add_string(n, n->readable.data, n->readable.len);
	thing->system_name = add_string(n, n->text.data, n->text.len);
	if (thing->system_name == thing->name)
		thing->system_name = 0;
	return 0;
}

/* The place in @strings of the path @number of the file's index; 0: unknown. */
static uint32_t find_path(struct names *n, const struct file *file, uint32_t number)
{
	struct name_key key = { .value = number, .file = file->id, .version = file->index->version, .kind = KEY_PATH };
	uint32_t index;
	int status = number == CODE_NONE ? -ENOENT : find_thing(n, &key, &index);

	if (status < 0)
		return 0;
	if (status) {
		buf_reset(&n->text);
		if (!symbol_index_path(file->index->entry.index, number, &n->text))
			n->things[index].name = add_string(n, n->text.data, n->text.len);
	}
	return n->things[index].name;
}

/* Numbers what @line has in common with other lines of its function. */
static int find_lines(struct names *n, struct line *line)
{
	struct name_key key = { .value = (uint64_t)line->function << 32 | line->path, .kind = KEY_LINES };

	return find_thing(n, &key, &line->all_lines);
}

static void rest_read(struct names *n)
{
	for (uint32_t i = 0; i < n->read_cnt; i++)
		kept_file_rest(&n->read[i]->entry.file);
	n->read_cnt = n->reads = 0;
}

/* @fi is about to be read. */
static void note_read(struct names *n, struct file_index *fi)
{
	uint32_t i = 0;

	if (n->reads == READS_A_REST)
		rest_read(n);
	while (i < n->read_cnt && n->read[i] != fi)
		i++;
	if (i == n->read_cnt)
		n->read[n->read_cnt++] = fi;
	n->reads++;
	fi->is_read = true;
}

static void name_native(struct names *n, const struct trace_frame *frame, struct answer *answer)
{
	const struct file *file = frame->file;
	struct code_answer code;
	int error;

	if (!file->index || !file->index->entry.index)
		return;
	note_read(n, file->index);
	error = symbol_index_find(file->index->entry.index, frame->addr, &code);
	file->index->is_broken |= error == -EBADMSG;
	if (error == -ENOENT) {
		answer->start = code.start;
		answer->size_bytes = code.size_bytes;
	}
	if (error)
		return;
	for (uint32_t i = 0; i < code.frame_count; i++) {
		const struct code_frame *f = &code.frames[i];
		struct line line = { .line = f->line, .column = f->column };

		if (f->function == CODE_NONE || find_function(n, file, f->function, &line.function) ||
		    !n->things[line.function].name)
			continue;
		line.path = find_path(n, file, f->file);
		if (find_lines(n, &line) < 0)
			continue;
		add_line(n, answer, &line);
	}
	answer->source = code.source < CODE_SOURCE_MAX ? code.source : CODE_SOURCE_NONE;
}

/* How the frames that this cache knows are looked up, by their namer. */
static const struct {
	struct name_key (*key)(const struct names *n, const struct trace_frame *frame);
	void (*name)(struct names *n, const struct trace_frame *frame, struct answer *answer);
} namers[NAMER_MAX] = {
	[NAMER_KERNEL] = { kernel_key, name_kernel },
	[NAMER_FILE] = { file_key, name_native },
};

static int update_frame(struct names *n, const struct trace_frame *frame)
{
	enum frame_namer namer = trace_frame_kind(frame)->namer;
	struct answer answer = { .first_line = n->line_cnt };
	struct name_key key = namers[namer].key(n, frame);
	uint32_t index;
	int status;

	if (vec_reach(&n->answers, &n->answer_cap, intern_count(n->keys)))
		return -ENOMEM;
	status = intern_add(n->keys, &key, sizeof(key), &index);
	if (status <= 0)
		return status;
	namers[namer].name(n, frame, &answer);
	n->answers[index] = answer;
	metric_add(n->looked_up, 1);
	metric_add(n->unnamed, !answer.line_count);
	if (answer.line_count && frame->file)
		metric_add(n->found[answer.source], 1);
	return 0;
}

/* Answers are kept, so hardly a page of an index is needed twice; the pages of many files would be most of the agent's
 * memory. */
static void let_indexes_rest(const struct traces *t)
{
	for (uint32_t i = 0; i < traces_frame_count(t); i++) {
		const struct trace_frame *frame = traces_frame(t, i);

		if (!frame->file || !frame->file->index || !frame->file->index->is_read)
			continue;
		frame->file->index->is_read = false;
		kept_file_rest(&frame->file->index->entry.file);
	}
}

int names_update(struct names *n, const struct traces *t, uint64_t since_ns, const struct wait_hook *hook)
{
	uint32_t frames = traces_frame_count(t);
	bool has_kernel = false;
	int error = 0;

	for (uint32_t i = 0; i < frames && !has_kernel; i++)
		has_kernel = trace_frame_kind(traces_frame(t, i))->namer == NAMER_KERNEL;
	if (has_kernel)
		kernel_names_update(n->kernel, since_ns);
	if (is_full(n, frames) && start_over(n))
		return -ENOMEM;
	for (uint32_t i = 0; !error && i < frames; i++) {
		if (namers[trace_frame_kind(traces_frame(t, i))->namer].key)
			error = update_frame(n, traces_frame(t, i));
		wait_hook_run(hook);
	}
	let_indexes_rest(t);
	if (has_kernel)
		kernel_names_rest(n->kernel);
	n->read_cnt = n->reads = 0; /* those are among them */
	return error;
}

static struct str string_at(const struct names *n, uint32_t index)
{
	size_t len;
	const char *text = intern_get(n->strings, index, &len);

	return (struct str){ text, (uint32_t)len };
}

void names_find(const struct names *n, const struct trace_frame *frame, struct frame_name *ret)
{
	enum frame_namer namer = trace_frame_kind(frame)->namer;
	const struct answer *answer;
	struct name_key key;
	uint32_t index;

	ret->module = STR("");
	ret->source = CODE_SOURCE_NONE;
	ret->line_count = 0;
	ret->start = ret->size_bytes = 0;
	if (!namers[namer].key)
		return;
	key = namers[namer].key(n, frame);
	/* The answer is in the cache already: nothing is added. */
	if (intern_add(n->keys, &key, sizeof(key), &index) != 0)
		return;
	answer = &n->answers[index];
	ret->module = string_at(n, answer->module);
	ret->source = answer->source;
	ret->line_count = answer->line_count;
	ret->start = answer->start;
	ret->size_bytes = answer->size_bytes;
	for (uint32_t i = 0; i < answer->line_count; i++) {
		const struct line *line = &n->lines[answer->first_line + i];
		const struct thing *function = &n->things[line->function];

		ret->lines[i] = (struct frame_line){ .name = string_at(n, function->name),
						     .system_name = string_at(n, function->system_name),
						     .file = string_at(n, line->path),
						     .line = line->line,
						     .column = line->column,
						     .start_line = function->start_line,
						     .function = line->all_lines };
	}
}

uint32_t names_function_count(const struct names *n)
{
	return intern_count(n->thing_keys);
}

size_t names_memory_bytes(const struct names *n)
{
	return sizeof(*n) + intern_memory_bytes(n->keys) + intern_memory_bytes(n->thing_keys) +
	       intern_memory_bytes(n->strings) + n->answer_cap * sizeof(*n->answers) + n->thing_cap * sizeof(*n->things) +
	       n->line_cap * sizeof(*n->lines) + n->text.cap + n->readable.cap;
}
