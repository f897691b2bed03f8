/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions are interned by name, module and type. Facts about a frame stand in an array by the frame's number, cut into
 * pages that are made when one of their frames is met: a store has many more than a question looks at. Strings of functions
 * live in interning tables, so that the store may forget what it has read of names.
 */
#include "backend/query/functions.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "backend/store/store_read.h"
#include "base/buf.h"
#include "base/intern.h"
#include "base/vec.h"
#include "proto/unnamed.h"

enum { PAGE_CALLS = 1024, PAGES_KEPT = 192 /* from one question to the next: 1.6 MB */ };

/* Texts of the first frame that had one; 0: none had yet. */
struct item {
	uint32_t file, build_id;
	bool is_named;
};

struct functions {
	struct store *store;
	uint64_t names_version; /* the store's, of all that is known */
	struct intern *keys;	/* name NUL module NUL type NUL */
	struct intern *texts;	/* of files and build ids; 0 is "" */
	struct item *items;	/* by number */
	uint32_t cap;
	struct function_call **pages; /* by frame / PAGE_CALLS; function UINT32_MAX: not looked at yet */
	uint32_t page_count, pages_made;
	struct buf key;
};

static int add_no_text(struct functions *f)
{
	uint32_t none;
	int err = intern_add(f->texts, "", 1, &none);

	return err < 0 ? err : 0;
}

struct functions *functions_new(struct store *store)
{
	struct functions *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	f->store = store;
	f->names_version = atomic_load(&store->names_version);
	f->keys = intern_new();
	f->texts = intern_new();
	if (f->keys && f->texts && !add_no_text(f))
		return f;
	functions_free(f);
	return NULL;
}

static void forget_calls(struct functions *f)
{
	for (uint32_t i = 0; i < f->page_count; i++)
		free(f->pages[i]);
	free(f->pages);
	f->pages = NULL;
	f->page_count = f->pages_made = 0;
}

void functions_free(struct functions *f)
{
	if (!f)
		return;
	intern_free(f->keys);
	intern_free(f->texts);
	buf_fini(&f->key);
	free(f->items);
	forget_calls(f);
	free(f);
}

/* The page that @frame is on; NULL when out of memory. */
static struct function_call *find_page(struct functions *f, uint32_t frame)
{
	const uint32_t number = frame / PAGE_CALLS;
	struct function_call *page;

	if (vec_reach_zero(&f->pages, &f->page_count, number))
		return NULL;
	if (f->pages[number])
		return f->pages[number];
	page = malloc(PAGE_CALLS * sizeof(*page));
	if (!page)
		return NULL;
	for (uint32_t i = 0; i < PAGE_CALLS; i++)
		page[i] = (struct function_call){ .function = UINT32_MAX };
	f->pages[number] = page;
	f->pages_made++;
	return page;
}

/* The function of f->key, made when it is new; 1 then. */
static int find_or_add(struct functions *f, uint32_t *ret)
{
	int is_new, err = f->key.failed ? -ENOMEM : vec_reach(&f->items, &f->cap, intern_count(f->keys));

	if (err)
		return err;
	is_new = intern_add(f->keys, f->key.data, f->key.len, ret);
	if (is_new == 1)
		f->items[*ret] = (struct item){ 0 };
	return is_new;
}

static int keep_first(struct functions *f, uint32_t *at, const char *text)
{
	int err = *at || !*text ? 0 : intern_add(f->texts, text, strlen(text) + 1, at);

	return err < 0 ? err : 0;
}

static void print_unnamed(const struct store_frame *frame, struct buf *out)
{
	struct unnamed u = { .module = str_z(frame->module),
			     .process = str_z(frame->process),
			     .address = frame->address,
			     .start = frame->code_start,
			     .size = frame->code_size };

	u.is_generated = unnamed_is_generated(str_z(frame->path));
	unnamed_print(&u, out);
}

static int add_frame(struct functions *f, const struct store_frame *frame, uint32_t *ret)
{
	int err;

	buf_reset(&f->key);
	if (*frame->function)
		buf_puts(&f->key, frame->function);
	else
		print_unnamed(frame, &f->key);
	buf_putc(&f->key, 0);
	buf_append(&f->key, frame->module, strlen(frame->module) + 1);
	buf_append(&f->key, frame->type, strlen(frame->type) + 1);
	err = find_or_add(f, ret);
	if (err < 0)
		return err;
	if (*frame->function)
		f->items[*ret].is_named = true;
	err = keep_first(f, &f->items[*ret].file, frame->file);
	return err ? err : keep_first(f, &f->items[*ret].build_id, frame->build_id);
}

int functions_of_frame(struct functions *f, uint32_t number, struct function_call *ret)
{
	struct function_call *page = find_page(f, number), *call;
	struct store_frame frame;
	int err;

	if (!page)
		return -ENOMEM;
	call = &page[number % PAGE_CALLS];
	if (call->function == UINT32_MAX) {
		struct function_call made = { 0 };

		err = f->store->read->frame(f->store, number, &frame);
		if (!err)
			err = add_frame(f, &frame, &made.function);
		if (err)
			return err;
		made.line = frame.line > 0 && frame.line <= INT32_MAX ? (uint32_t)frame.line : 0;
		made.inlined = frame.inlined;
		*call = made;
	}
	*ret = *call;
	return 0;
}

int functions_meet(struct functions *f, const uint64_t *frames, uint32_t word_count)
{
	struct function_call call;
	int err = 0;

	for (uint32_t word = 0; word < word_count; word++)
		for (uint64_t bits = frames[word]; bits && !err; bits &= bits - 1)
			err = functions_of_frame(f, word * 64 + (uint32_t)__builtin_ctzll(bits), &call);
	return err;
}

int functions_of_label(struct functions *f, const char *label, uint32_t *ret)
{
	int err;

	buf_reset(&f->key);
	buf_puts(&f->key, *label ? label : "(none)");
	buf_append(&f->key, "\0\0label", sizeof("\0\0label"));
	err = find_or_add(f, ret);
	if (err < 0)
		return err;
	f->items[*ret].is_named = true;
	return 0;
}

/* Keys move when a table grows, so the pointers into them are made here. */
struct function functions_get(const struct functions *f, uint32_t number)
{
	const struct item *item = &f->items[number];
	struct function function = { .name = intern_get(f->keys, number, NULL) };

	function.module = function.name + strlen(function.name) + 1;
	function.type = function.module + strlen(function.module) + 1;
	function.file = intern_get(f->texts, item->file, NULL);
	function.build_id = intern_get(f->texts, item->build_id, NULL);
	function.is_named = item->is_named;
	return function;
}

uint32_t functions_count(const struct functions *f)
{
	return intern_count(f->keys);
}

size_t functions_memory_bytes(const struct functions *f)
{
	return sizeof(*f) + intern_memory_bytes(f->keys) + intern_memory_bytes(f->texts) + f->cap * sizeof(*f->items) +
	       f->page_count * sizeof(*f->pages) + (size_t)f->pages_made * PAGE_CALLS * sizeof(**f->pages) + f->key.cap;
}

void functions_trim(struct functions *f, uint32_t max)
{
	const uint64_t version = atomic_load(&f->store->names_version);

	if (f->pages_made > PAGES_KEPT)
		forget_calls(f);
	if (intern_count(f->keys) <= max && version == f->names_version)
		return;
	f->names_version = version;
	if (max) {
		intern_reset(f->keys);
		intern_reset(f->texts);
	} else {
		intern_shrink(f->keys);
		intern_shrink(f->texts);
		free(f->items);
		f->items = NULL;
		f->cap = 0;
	}
	forget_calls(f);
	(void)add_no_text(f); /* there is room for it */
}
