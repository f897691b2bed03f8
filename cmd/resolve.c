/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints names for addresses on standard output. The names come from the file's index when there is one that is not behind;
 * else the file is read, the first time only what names the addresses asked for, and, should more of them come, as a whole.
 * Texts are demangled once. A word that is no address is printed as it is, as llvm-symbolizer does.
 */
#include "cmd/resolve.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/vec.h"
#include "cmd/options/command.h"
#include "cmd/options/config.h"
#include "cmd/files/output.h"
#include "symbols/find/debuginfod.h"
#include "symbols/demangle.h"
#include "symbols/code/source.h"
#include "symbols/index/cache.h"
#include "symbols/find/symbol_files.h"
#include "symbols/symbols.h"

enum { READ_BYTES = 64 << 10 };

/* Texts by number, once they were made: where each begins in @all, + 1; a NUL ends it. */
struct texts {
	struct buf all;
	uint32_t *starts;
	size_t count;
};

struct resolver {
	const char *path;
	bool with_inlines;
	struct symbol_files files;
	struct symbol_cache_entry entry; /* with an index: all comes from it */
	struct code_names *names;	 /* else from here */
	bool has_all_names;
	struct texts functions, paths;
	struct buf text; /* one that is being made */
};

/* One word that asks, and what it says. */
struct question {
	const char *word;
	size_t len;
	uint64_t addr;
	bool is_addr;
};

/* --- texts --- */

static void texts_fini(struct texts *t)
{
	buf_fini(&t->all);
	free(t->starts);
	*t = (struct texts){ 0 };
}

/* Text @number if it was made before, else NULL. */
static const char *find_text(const struct texts *t, uint32_t number)
{
	return number < t->count && t->starts[number] ? (const char *)t->all.data + t->starts[number] - 1 : NULL;
}

/* Makes room for text @number, which starts where @t->all ends. */
static int begin_text(struct texts *t, uint32_t number)
{
	if (vec_reach_zero(&t->starts, &t->count, number))
		return -ENOMEM;
	t->starts[number] = (uint32_t)t->all.len + 1;
	return 0;
}

/* A function's name into @text: it was in the index or in the names. */
static int append_name(struct resolver *r, uint32_t function, struct buf *out)
{
	const char *name;
	size_t len;
	int err = 0;

	if (r->entry.index) {
		buf_reset(&r->text);
		err = symbol_index_name(r->entry.index, function, &r->text);
		name = buf_text(&r->text);
		len = r->text.len;
	} else {
		name = code_names_name(r->names, function, &len);
	}
	if (!err)
		symbols_demangle(name, len, out);
	return err;
}

static int append_path(struct resolver *r, uint32_t file, struct buf *out)
{
	const char *path;
	size_t len;

	if (r->entry.index)
		return symbol_index_path(r->entry.index, file, out);
	path = code_names_path(r->names, file, &len);
	buf_append(out, path, len);
	return 0;
}

/* The text of function or file @number, which @append makes; NULL with *@err. */
static const char *text_of(struct resolver *r, struct texts *t, uint32_t number,
			   int (*append)(struct resolver *r, uint32_t number, struct buf *out), int *err)
{
	const char *text = find_text(t, number);

	if (text)
		return text;
	*err = begin_text(t, number);
	if (!*err)
		*err = append(r, number, &t->all);
	buf_putc(&t->all, '\0');
	if (!*err && t->all.failed)
		*err = -ENOMEM;
	if (*err && number < t->count)
		t->starts[number] = 0;
	return *err ? NULL : find_text(t, number);
}

/* --- answers --- */

static int write_frame(struct resolver *r, uint32_t function, const struct code_frame *at, struct buf *out)
{
	const char *name = "??", *path = "??";
	int err = 0;

	if (function != CODE_NONE)
		name = text_of(r, &r->functions, function, append_name, &err);
	if (!err && at->file != CODE_NONE)
		path = text_of(r, &r->paths, at->file, append_path, &err);
	if (!err)
		buf_printf(out, "%s\n%s:%u:%u\n", name, path, at->line, at->column);
	return err;
}

static int write_answer(struct resolver *r, uint64_t addr, struct buf *out)
{
	static const struct code_frame nothing = { .function = CODE_NONE, .file = CODE_NONE };
	struct code_answer a;
	int err = r->entry.index ? symbol_index_find(r->entry.index, addr, &a) : code_names_find(r->names, addr, &a);

	if (err && err != -ENOENT)
		return err;
	err = 0;
	if (!a.frame_count)
		err = write_frame(r, CODE_NONE, &nothing, out);
	else if (!r->with_inlines)
		err = write_frame(r, a.frames[a.frame_count - 1].function, &a.frames[0], out);
	else
		for (uint32_t i = 0; !err && i < a.frame_count; i++)
			err = write_frame(r, a.frames[i].function, &a.frames[i], out);
	buf_putc(out, '\n');
	return err;
}

static int write_answers(struct resolver *r, const struct question *questions, size_t count, struct buf *out)
{
	int err = 0;

	for (size_t i = 0; !err && i < count; i++) {
		const struct question *q = &questions[i];

		if (q->is_addr)
			err = write_answer(r, q->addr, out);
		else
			buf_printf(out, "%.*s\n", (int)q->len, q->word);
		if (!err && out->failed)
			err = -ENOMEM;
	}
	return err;
}

/* --- where names come from --- */

static int compare_addrs(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static void forget_names(struct resolver *r)
{
	symbol_cache_entry_close(&r->entry);
	code_names_free(r->names);
	r->names = NULL;
	texts_fini(&r->functions);
	texts_fini(&r->paths);
}

/* Reads names from the file: all of them, or those of the @count @wanted addresses. */
static int read_names(struct resolver *r, uint64_t *wanted, size_t count)
{
	struct symbol_sources_result result;

	forget_names(r);
	r->has_all_names = !wanted;
	if (wanted)
		qsort(wanted, count, sizeof(*wanted), compare_addrs);
	r->names = code_names_new(wanted, count);
	return r->names ? symbol_sources_read(&r->files, r->names, &result) : -ENOMEM;
}

/* Answers all of @questions. */
static int answer(struct resolver *r, const struct question *questions, size_t count, struct buf *out)
{
	AUTO_FREE uint64_t *wanted = NULL;
	size_t start = out->len, addrs = 0;
	int err = 0;

	if (!r->entry.index && !r->has_all_names) {
		bool is_first = !r->names;

		wanted = malloc((count + 1) * sizeof(*wanted));
		if (!wanted)
			return -ENOMEM;
		for (size_t i = 0; i < count; i++)
			if (questions[i].is_addr)
				wanted[addrs++] = questions[i].addr;
		if (addrs)
			err = read_names(r, is_first ? wanted : NULL, addrs);
	}
	if (!err)
		err = write_answers(r, questions, count, out);
	if (err == -EBADMSG && r->entry.index) {
		log_warn("the index of %s is broken and not used; 'hearth symbols build %s' makes a new one", r->path,
			 r->path);
		out->len = start;
		err = read_names(r, NULL, 0);
		if (!err)
			err = write_answers(r, questions, count, out);
	}
	return err;
}

/* --- questions --- */

/* Hexadecimal, with or without 0x. */
static bool parse_addr(const char *text, size_t len, uint64_t *ret)
{
	uint64_t addr = 0;

	if (len > 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X')) {
		text += 2;
		len -= 2;
	}
	for (size_t i = 0; i < len; i++) {
		char c = text[i];
		int digit = c >= '0' && c <= '9' ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : -1;

		if (digit < 0 || addr >> 60)
			return false;
		addr = addr << 4 | (uint64_t)digit;
	}
	*ret = addr;
	return len > 0;
}

static struct question ask(const char *word, size_t len)
{
	struct question q = { .word = word, .len = len };

	while (len && (word[len - 1] == ' ' || word[len - 1] == '\r' || word[len - 1] == '\t'))
		len--;
	while (len && (*word == ' ' || *word == '\t')) {
		word++;
		len--;
	}
	q.is_addr = parse_addr(word, len, &q.addr);
	return q;
}

static int resolve_words(struct resolver *r, char *const *words, size_t count, struct buf *out)
{
	AUTO_FREE struct question *questions = malloc((count + 1) * sizeof(*questions));

	if (!questions)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		questions[i] = ask(words[i], strlen(words[i]));
	return answer(r, questions, count, out);
}

/* Answers the lines of @text; how many of its bytes those are. */
static int resolve_lines(struct resolver *r, const char *text, size_t len, bool is_end, size_t *used_ret, struct buf *out)
{
	AUTO(buf_fini) struct buf questions = BUF_EMPTY;
	size_t at = 0;

	while (at < len) {
		const char *line = text + at, *newline = memchr(line, '\n', len - at);
		size_t line_len = newline ? (size_t)(newline - line) : len - at;
		struct question q = ask(line, line_len);

		if (!newline && !is_end)
			break;
		buf_append(&questions, &q, sizeof(q));
		at += line_len + (newline ? 1 : 0);
	}
	*used_ret = at;
	if (questions.failed)
		return -ENOMEM;
	return answer(r, (const struct question *)questions.data, questions.len / sizeof(struct question), out);
}

/* Lines are answered as soon as they are there; those of a plain file together. */
static int resolve_input(struct resolver *r, struct buf *out)
{
	AUTO(buf_fini) struct buf input = BUF_EMPTY;
	struct stat st;
	bool is_plain = fstat(STDIN_FILENO, &st) == 0 && S_ISREG(st.st_mode);
	ssize_t n = 1;
	int err = 0;

	while (!err && n > 0) {
		size_t used = 0;

		if (buf_reserve(&input, READ_BYTES))
			return -ENOMEM;
		n = read(STDIN_FILENO, input.data + input.len, READ_BYTES);
		if (n < 0 && errno == EINTR) {
			n = 1;
			continue;
		}
		if (n < 0)
			return -errno;
		input.len += (size_t)n;
		if (is_plain && n > 0)
			continue;
		err = resolve_lines(r, (const char *)input.data, input.len, n == 0, &used, out);
		input.len -= used;
		memmove(input.data, input.data + used, input.len);
		if (!err && output_write(out))
			return -EPIPE;
		buf_reset(out);
	}
	return err;
}

/* --- the file --- */

int resolve_open_elf(const char *path)
{
	AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
	char ident[EI_CLASS + 1];
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = pread(fd, ident, sizeof(ident), 0);
	if (n < 0)
		return -errno;
	if (n < (ssize_t)sizeof(ident) || memcmp(ident, ELFMAG, SELFMAG) != 0 || ident[EI_CLASS] != ELFCLASS64)
		return -ENOEXEC;
	return MOVE_FD(fd);
}

int resolve_open_symbol_files(int fd, const char *path, struct symbol_files *ret)
{
	struct debuginfod *servers = NULL;
	int err = debuginfod_new(&servers);

	if (err && err != -ENOENT)
		log_warn("no server is asked for debug files: %s",
			 err == -EPERM ? "the folder of debuginfod's cache is another user's" : strerror(-err));
	err = symbol_files_open(fd, path, NULL, err ? NULL : servers, ret);
	debuginfod_free(servers);
	return err;
}

/* Opens the file's index, if there is one that knows as much as could be known. */
static void find_index(struct resolver *r, struct symbol_cache *cache, int fd)
{
	struct symbol_cache_key key;
	struct build_ids ids;
	struct stat st;

	if (!cache || fstat(fd, &st) || build_ids_read(fd, &ids))
		return;
	symbol_cache_key(&ids, st.st_uid, &key);
	if (symbol_cache_find(cache, &key, &r->entry))
		return;
	if (symbol_index_is_behind(symbol_index_head(r->entry.index), &r->files)) {
		log_info("the index of %s was made without a debug file that is there now; 'hearth symbols build %s' makes "
			 "a new one",
			 r->path, r->path);
		symbol_cache_entry_close(&r->entry);
	}
}

int resolve(const struct config *config, struct symbol_cache *cache, const char *path, char *const *words, size_t count)
{
	AUTO_CLOSE int fd = resolve_open_elf(path);
	AUTO(buf_fini) struct buf out = BUF_EMPTY;
	struct resolver r = { .path = path, .with_inlines = !config->no_inline };
	bool is_input = count == 0 || (count == 1 && !strcmp(words[0], "-"));
	int err = fd < 0 ? fd : resolve_open_symbol_files(fd, path, &r.files);

	if (err) {
		log_error("cannot read %s: %s", path, err == -ENOEXEC ? "it is no 64-bit ELF file" : strerror(-err));
		return STATUS_FAILED;
	}
	find_index(&r, cache, fd);
	err = is_input ? resolve_input(&r, &out) : resolve_words(&r, words, count, &out);
	forget_names(&r);
	symbol_files_close(&r.files);
	buf_fini(&r.text);
	if (err && err != -EPIPE) {
		log_error("cannot name the addresses of %s: %s", path, strerror(-err));
		return STATUS_FAILED;
	}
	return err ? STATUS_FAILED : output_write(&out);
}
