/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The library of names by itself, without a process's start. Prints nanoseconds of elapsed and of processor time, then
 * counts. names build FILE INDEX     reads all names of FILE and writes the index; prints its size names ask INDEX names the
 * hexadecimal addresses on standard input; prints what opening took before the rest names look-up FILE         the same out
 * of FILE itself, for these addresses alone
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "symbols/code/source.h"
#include "symbols/find/symbol_files.h"
#include "symbols/index/index.h"

static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * NSEC_PER_SEC + (uint64_t)t.tv_nsec;
}

struct times {
	uint64_t mono, cpu;
};

static struct times now(void)
{
	return (struct times){ clock_mono_ns(), cpu_ns() };
}

static void print_since(struct times then)
{
	struct times t = now();

	printf("%" PRIu64 " %" PRIu64 " ", t.mono - then.mono, t.cpu - then.cpu);
}

static void need(bool ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	exit(1);
}

static size_t read_addrs(uint64_t **ret)
{
	size_t count = 0, cap = 1 << 20;
	uint64_t *addrs = malloc(cap * sizeof(*addrs));

	need(addrs, "addresses");
	while (count < cap && scanf("%" SCNx64, &addrs[count]) == 1)
		count++;
	*ret = addrs;
	return count;
}

static struct symbol_files open_files(const char *path)
{
	AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct symbol_files files;

	need(fd >= 0, path);
	errno = -symbol_files_open(fd, path, NULL, NULL, &files);
	need(!errno, path);
	return files;
}

static int build(const char *path, const char *index)
{
	AUTO(buf_fini) struct buf out = BUF_EMPTY;
	struct symbol_index_head head = { .build_id = "00" };
	struct times start = now();
	struct symbol_files files = open_files(path);
	struct code_names *names = code_names_new(NULL, 0);
	struct symbol_sources_result result;
	FILE *f;

	need(names && !symbol_sources_read(&files, names, &result) && !symbol_index_write(names, &head, &out), path);
	print_since(start);
	printf("%zu\n", out.len);
	f = fopen(index, "w");
	need(f && fwrite(out.data, 1, out.len, f) == out.len && !fclose(f), index);
	code_names_free(names);
	symbol_files_close(&files);
	return 0;
}

/* One address, with all that a frame shows, into @text. */
static size_t ask_one(const struct symbol_index *x, uint64_t addr, struct buf *text)
{
	struct code_answer answer;

	buf_reset(text);
	if (symbol_index_find(x, addr, &answer))
		return 0;
	for (uint32_t i = 0; i < answer.frame_count; i++) {
		symbol_index_name(x, answer.frames[i].function, text);
		if (answer.frames[i].file != CODE_NONE)
			symbol_index_path(x, answer.frames[i].file, text);
	}
	return answer.frame_count;
}

static int ask(const char *path)
{
	AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
	AUTO(buf_fini) struct buf text = BUF_EMPTY;
	AUTO_FREE uint64_t *addrs = NULL;
	size_t count = read_addrs(&addrs), frames = 0;
	struct symbol_index *x;
	struct times start;
	struct stat st;
	void *data;

	need(fd >= 0 && !fstat(fd, &st), path);
	start = now();
	data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	need(data != MAP_FAILED && !symbol_index_open(data, (size_t)st.st_size, &x), path);
	print_since(start);
	start = now();
	for (size_t i = 0; i < count; i++)
		frames += ask_one(x, addrs[i], &text);
	print_since(start);
	printf("%zu %zu\n", count, frames);
	symbol_index_close(x);
	return 0;
}

static int by_addr(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static int look_up(const char *path)
{
	AUTO_FREE uint64_t *addrs = NULL;
	size_t count = read_addrs(&addrs), found = 0;
	struct times start = now();
	struct symbol_files files = open_files(path);
	struct symbol_sources_result result;
	struct code_names *names;

	qsort(addrs, count, sizeof(*addrs), by_addr);
	names = code_names_new(addrs, count);
	need(names && !symbol_sources_read(&files, names, &result), path);
	for (size_t i = 0; i < count; i++) {
		struct code_answer answer;

		found += !code_names_find(names, addrs[i], &answer);
	}
	print_since(start);
	printf("%zu %zu\n", count, found);
	code_names_free(names);
	symbol_files_close(&files);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 4 && !strcmp(argv[1], "build"))
		return build(argv[2], argv[3]);
	if (argc == 3 && !strcmp(argv[1], "ask"))
		return ask(argv[2]);
	if (argc == 3 && !strcmp(argv[1], "look-up"))
		return look_up(argv[2]);
	return 2;
}
