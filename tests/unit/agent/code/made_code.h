/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process whose runtime makes code, as agent/code/ sees it: what the reader of its memory answers is made up here, as are
 * the kernel, files and time. Include it after cmocka.h, in one file of a binary.
 */
#ifndef HEARTH_TESTS_MADE_CODE_H
#define HEARTH_TESTS_MADE_CODE_H

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/code/code_state.h"
#include "agent/helper/debug_files.h"
#include "agent/kernel/sampler.h"
#include "agent/objects/objects.h"
#include "agent/proc/proc_maps.h"
#include "agent/samples/merge.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "symbols/script/block_names.h"
#include "tests/unit/descriptors.h"

enum {
	RUNTIME_AT = 0x400000,
	RUNTIME_BIAS = 0x3f0000,
	CODE_AT = 0x10000000, /* memory without a file */
	CODE_BYTES = 0x100000,
	ROWS = 4,
};

/* A piece of code; one token, a word at @token that must be @value. */
struct made_block {
	uint64_t start, end, token, value;
	const char *name; /* NULL: it has none */
	uint32_t row_cnt;
	struct row rows[ROWS];
};

struct made_function {
	uint64_t word, base, bytes, token, value;
	const char *name;
	uint8_t at, shift; /* the word with the place */
};

static struct {
	uint64_t now_ns;
	int status; /* of all calls that are no FORGET */
	struct code_ranges ranges;
	struct made_block blocks[8];
	struct made_function functions[4];
	struct {
		uint64_t addr, value;
	} words[8];	/* of its memory; those of address 0 are not there; where the runtime is mapped is one always */
	bool has_ended; /* ... but for this */
	size_t cut;	/* bytes less than the reply should have */
	void (*on_ask)(uint32_t op);
	/* what was asked */
	uint32_t calls[CODE_OP_FILE + 1], forgotten_cnt, forgotten, number, word_cnt, given_cnt;
	struct code_range given[CODE_RANGES];
	struct code_request request;
	int fd;
	/* files beside images */
	struct code_need need; /* while nothing was brought for it */
	int file;	       /* the file that is found; -errno: none */
	int brought;	       /* the descriptor that was brought; -1: that there is none */
	uint64_t brought_base;
	int bring_status;
	bool is_anonymous; /* the image is in memory without a file */
	char looked_beside[256], looked_for[256];
	/* what the kernel was told */
	struct {
		uint32_t file, block;
	} dropped[64];
	uint32_t dropped_cnt, capture_cnt, published_cnt;
	struct capture_class captures[CAPTURE_CLASSES];
	int capture_error;
	int held; /* references to files */
} made;

static struct process process;

uint64_t clock_mono_ns(void)
{
	return made.now_ns;
}

uint64_t clock_unix_ns(void)
{
	return made.now_ns;
}

uint64_t clock_mono_to_unix_ns(uint64_t mono_ns)
{
	return mono_ns;
}

struct file *file_get(struct file *file)
{
	made.held += file != NULL;
	return file;
}

void file_put(struct file *file)
{
	made.held -= file != NULL;
}

static uint32_t file_id;

uint32_t files_take_id(struct files *f)
{
	(void)f;
	return ++file_id;
}

int proc_maps_each(uint32_t pid, int (*fn)(void *arg, const struct proc_map *map), void *arg)
{
	static const char path[] = "/images/Image.dll (deleted)";
	const struct proc_map maps[] = {
		{ .start = 0x1000, .end = 0x2000, .inode = 7, .path = "/other", .path_len = 6 },
		{ .start = 0x5000,
		  .end = 0x9000,
		  .inode = made.is_anonymous ? 0 : 8,
		  .path = made.is_anonymous ? "" : path,
		  .path_len = made.is_anonymous ? 0 : sizeof(path) - 1 },
	};
	int status = 0;

	assert_int_equal(pid, process.pid);
	for (size_t i = 0; i < ARRAY_LEN(maps) && !status; i++)
		status = fn(arg, &maps[i]);
	return status;
}

void proc_path_strip(char *path)
{
	char *mark = strstr(path, " (deleted)");

	if (mark)
		*mark = '\0';
}

int files_open_mapped(struct files *f, const struct file_key *key, const char *path, const struct file_place *at)
{
	(void)f;
	assert_int_equal(key->inode, 8);
	assert_string_equal(path, "/images/Image.dll");
	assert_int_equal(at->start, 0x5000);
	return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

int debug_file_open(const struct debug_place *place, const struct debug_need *need, unsigned index)
{
	assert_true(debug_need_is_sound(need) && need->kind == DEBUG_NEED_LINK && !index && place->fd >= 0);
	snprintf(made.looked_beside, sizeof(made.looked_beside), "%s", place->path);
	snprintf(made.looked_for, sizeof(made.looked_for), "%s", need->name);
	return made.file < 0 ? made.file : dup(made.file);
}

void process_publish(struct process *p, struct sampler *sampler)
{
	assert_non_null(p);
	assert_ptr_equal(sampler, &made);
	made.published_cnt++;
}

void sampler_forget_block(struct sampler *s, uint32_t file, uint32_t block)
{
	(void)s;
	assert_true(made.dropped_cnt < ARRAY_LEN(made.dropped));
	made.dropped[made.dropped_cnt].file = file;
	made.dropped[made.dropped_cnt++].block = block;
}

int sampler_set_capture(struct sampler *s, uint32_t number, const struct capture_class *what)
{
	(void)s;
	assert_true(number < CAPTURE_CLASSES);
	if (made.capture_error)
		return made.capture_error;
	made.captures[number] = *what;
	made.capture_cnt++;
	return 0;
}

/* --- runtimes --- */

/* Two kinds of frames with captures. */
static void made_captures(const void *state, const struct code_facts *facts, struct code_capture ret[static CODE_CAPTURES])
{
	assert_null(state);
	assert_non_null(facts);
	ret[0] = (struct code_capture){ .count = 1, .words = { { .offset = -8, .leaf_reg = 3, .follow = 7 } } };
	ret[1] = (struct code_capture){ .count = 2, .words = { { .offset = -16, .leaf_reg = -1 }, { .offset = -24 } } };
}

const struct code_reader *code_reader_of(uint32_t id)
{
	static const struct code_reader with_captures = { .name = "made", .captures = made_captures },
					without = { .name = "plain" };

	return id == CODE_V8 ? &with_captures : id == CODE_HOTSPOT || id == CODE_GDB_JIT ? &without : NULL;
}

static struct file runtime = { .id = 50,
			       .path = (char *)"/runtime",
			       .info = { .runtime = { .kind = RUNTIME_FILE_CODE,
						      .code = { .id = CODE_V8, .version = 77 } } } };

/* --- the reader --- */

static void add_names(const char *name, struct buf *reply)
{
	struct block_names *n = name ? block_names_new() : NULL;

	if (!n)
		return;
	block_names_place(
		n, 0, block_names_scope(n, BLOCK_NAMES_NONE, block_names_function(n, name, strlen(name), "", 0, 0), 0), 0);
	assert_int_equal(block_names_write(n, reply), 0);
	block_names_free(n);
}

static int answer_block(uint64_t addr, struct buf *reply)
{
	for (size_t i = 0; i < ARRAY_LEN(made.blocks); i++) {
		const struct made_block *b = &made.blocks[i];
		struct code_found found = { .block = { .start = b->start, .end = b->end }, .row_cnt = b->row_cnt };

		if (addr < b->start || addr >= b->end)
			continue;
		if (b->token)
			found.block.tokens[0] = (struct code_token){ b->token, b->value, ~0ull };
		found.need = made.need;
		buf_append(reply, &found, sizeof(found));
		buf_append(reply, b->rows, b->row_cnt * sizeof(b->rows[0]));
		add_names(b->name, reply);
		((struct code_found *)(void *)reply->data)->name_bytes = (uint32_t)(reply->len - sizeof(found) -
										    b->row_cnt * sizeof(b->rows[0]));
		return 0;
	}
	return -ENOENT;
}

static int answer_function(const struct code_request *r, struct buf *reply)
{
	for (size_t i = 0; i < ARRAY_LEN(made.functions); i++) {
		const struct made_function *f = &made.functions[i];
		struct code_named named = {
			.function = { .key = 1, .base = f->base, .bytes = f->bytes, .word = f->at, .shift = f->shift }
		};

		if (!f->word || f->word != r->words[0])
			continue;
		if (f->token)
			named.function.tokens[0] = (struct code_token){ f->token, f->value, ~0ull };
		buf_append(reply, &named, sizeof(named));
		add_names(f->name, reply);
		((struct code_named *)(void *)reply->data)->name_bytes = (uint32_t)(reply->len - sizeof(named));
		return 0;
	}
	return -ENOENT;
}

static int answer_words(const uint64_t *addrs, size_t count, struct buf *reply)
{
	made.word_cnt = (uint32_t)count;
	for (size_t i = 0; i < count; i++) {
		struct code_word word = { 0, addrs[i] == RUNTIME_AT && !made.has_ended };

		for (size_t k = 0; k < ARRAY_LEN(made.words); k++)
			if (addrs[i] && made.words[k].addr == addrs[i])
				word = (struct code_word){ made.words[k].value, 1 };
		buf_append(reply, &word, sizeof(word));
	}
	return 0;
}

static int made_call(struct elf_service *s, const struct elf_request *request, int fd, const void *payload, size_t bytes,
		     struct buf *reply)
{
	const struct code_request *r = payload;
	size_t more = bytes - sizeof(*r);
	int status = 0;

	(void)s;
	buf_reset(reply);
	if (request->op == ELF_OP_FORGET) {
		assert_true(fd == -1 && !payload && !bytes);
		made.forgotten = request->file;
		made.forgotten_cnt++;
		return 0;
	}
	assert_int_equal(request->op, ELF_OP_CODE);
	assert_true(bytes >= sizeof(*r) && r->op <= CODE_OP_FILE && (fd > 0 || r->op == CODE_OP_FILE));
	if (r->op == CODE_OP_FILE) {
		made.calls[r->op]++;
		made.brought = fd;
		made.brought_base = r->addr;
		if (!made.bring_status)
			made.need.base = 0;
		return made.bring_status;
	}
	made.request = *r;
	made.number = request->file;
	made.fd = fd;
	made.calls[r->op]++;
	if (made.on_ask)
		made.on_ask(r->op);
	if (made.status)
		return made.status;
	if (r->op == CODE_OP_RANGES) {
		made.given_cnt = (uint32_t)(more / sizeof(made.given[0]));
		assert_true(made.given_cnt <= CODE_RANGES && more % sizeof(made.given[0]) == 0);
		memcpy(made.given, r + 1, more);
		buf_append(reply, &made.ranges, sizeof(made.ranges));
	} else if (r->op == CODE_OP_BLOCK) {
		status = answer_block(r->addr, reply);
	} else if (r->op == CODE_OP_FUNCTION) {
		status = answer_function(r, reply);
	} else {
		status = answer_words((const uint64_t *)(r + 1), more / 8, reply);
	}
	reply->len -= made.cut;
	return status;
}

static int services_freed;

static void made_free(struct elf_service *s)
{
	(void)s;
	services_freed++;
}

static int distrusted;

static void made_distrust(struct elf_service *s)
{
	(void)s;
	distrusted++;
}

static const struct elf_service_ops made_ops = { .call = made_call, .free = made_free, .distrust = made_distrust };
static struct elf_service made_service = { .ops = &made_ops };

/* --- a session --- */

static struct code_spaces *spaces;
static struct objects *objects;
static struct metrics *metrics;

static void map_at(uint64_t start, uint64_t end, uint64_t off, struct file *file)
{
	assert_true(address_space_map(&process.as, start, end, off, file) >= 0);
}

static int made_begin(void **state)
{
	(void)state;
	memset(&made, 0, sizeof(made));
	made.file = -ENOENT;
	made.now_ns = 100 * NSEC_PER_SEC;
	services_freed = 0;
	file_id = 0;
	metrics = metrics_new();
	assert_non_null(metrics);
	assert_int_equal(objects_new(&objects), 0);
	assert_int_equal(code_spaces_new(&made_service, 0, NULL, objects, metrics, &spaces), 0);
	code_spaces_attach(spaces, (struct sampler *)(void *)&made);
	runtime.info.segment_count = 1;
	runtime.info.segments[0] = (struct elf_segment){ .vaddr = 0x10000, .offset = 0, .size_bytes = 0x10000 };
	process = (struct process){ .pid = (uint32_t)getpid(), .as = address_space_new() };
	assert_non_null(process.as);
	map_at(RUNTIME_AT, RUNTIME_AT + 0x1000, 0, &runtime);
	map_at(CODE_AT, CODE_AT + CODE_BYTES, 0, NULL);
	made.ranges = (struct code_ranges){ .count = 1, .ranges = { { CODE_AT, CODE_AT + CODE_BYTES } } };
	return 0;
}

static int made_end(void **state)
{
	(void)state;
	address_space_put(process.as);
	assert_int_equal(spaces->bytes, 0);
	assert_int_equal(spaces->piece_cnt, 0);
	assert_int_equal(objects_count(objects), 0);
	code_spaces_free(spaces);
	code_spaces_free(NULL);
	assert_int_equal(services_freed, 1);
	objects_free(objects);
	metrics_free(metrics);
	return 0;
}

struct counted_metric {
	const char *name;
	uint64_t value;
};

static void count_metric(void *arg, const char *name, const char *labels, uint64_t value)
{
	struct counted_metric *m = arg;

	(void)labels;
	if (!strcmp(name, m->name))
		m->value = value;
}

static inline uint64_t metric_of(const char *name)
{
	struct counted_metric m = { name, UINT64_MAX };

	metrics_each(metrics, count_metric, &m);
	return m.value;
}

/* The state of the process's code, which it has. */
static inline struct code_process *code_of_process(void)
{
	assert_non_null(process.as->code);
	return (struct code_process *)process.as->code;
}

#endif
