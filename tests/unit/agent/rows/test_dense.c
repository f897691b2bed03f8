/* SPDX-License-Identifier: Apache-2.0 */
/*
 * No address whose row is lost: over the code of big programs, what the row builders say of every address is found again in
 * the packed blocks by the search that the kernel runs. The builders are asked here directly, one after another for the gaps
 * that those before it left. By default as much of each installed file as fits into a second;
 *	DENSE=FILE build/unit/agent/rows/test_dense
 * walks all of FILE and prints the table that docs/agent.md keeps.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/walk/blocks.h"
#include "agent/rows/row_builder.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "tests/unit/agent/stack_memory.h"
#include "tests/unit/descriptors.h"

enum { RUN_BLOCKS = 64, PARTS_SHOWN = 4 };

static const struct row_builder *const builders[] = { &rows_go, &rows_eh_frame, &rows_debug_frame, &rows_code };
enum { BUILDERS = ARRAY_LEN(builders), NOBODY = BUILDERS };

struct program {
	struct row_image image;
	struct row_source *src;
	void *states[BUILDERS];
	bool has[BUILDERS];
	/* what was found */
	uint64_t blocks, rows, user_rows, guess_rows, lost;
	uint64_t bytes[BUILDERS + 1]; /* by whose word holds there */
	uint64_t asked[BUILDERS], asked_ns[BUILDERS], slowest_ns[BUILDERS];
	uint64_t parts[PARTS_SHOWN + 1], build_ns, most_parts;
};

/* Of this thread, as the machine is shared with other tests. */
static uint64_t cpu_ns(void)
{
	struct timespec ts;

	assert_int_equal(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts), 0);
	return (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

/* What holds at each address of a block, as the builders say. */
struct truth {
	uint8_t who[CODE_BLOCK_BYTES];
	uint64_t packed[CODE_BLOCK_BYTES];
};

/* Asks builder number @first, and those behind it for its gaps. */
static void ask(struct program *p, size_t first, uint64_t start, uint64_t end, struct truth *t)
{
	struct row rows[CODE_BLOCK_BYTES];
	uint64_t began_ns, took_ns;
	size_t count;

	while (first < BUILDERS && !p->has[first])
		first++;
	if (first == BUILDERS || start == end)
		return;
	began_ns = cpu_ns();
	assert_int_equal(builders[first]->build(p->states[first], start, end, rows, CODE_BLOCK_BYTES, &count), 0);
	took_ns = cpu_ns() - began_ns;
	p->asked[first]++;
	p->asked_ns[first] += took_ns;
	if (took_ns > p->slowest_ns[first])
		p->slowest_ns[first] = took_ns;
	for (size_t i = 0; i < count; i++) {
		assert_true(rows[i].start >= start && rows[i].end > rows[i].start && rows[i].end <= end);
		ask(p, first + 1, start, rows[i].start, t);
		for (uint64_t addr = rows[i].start; addr < rows[i].end; addr++) {
			t->who[addr % CODE_BLOCK_BYTES] = (uint8_t)first;
			t->packed[addr % CODE_BLOCK_BYTES] = block_pack_row(&rows[i], 0);
		}
		start = rows[i].end;
	}
	ask(p, first + 1, start, end, t);
}

static void check_block(struct program *p, uint64_t block)
{
	uint64_t start = block * CODE_BLOCK_BYTES, began_ns, found;
	struct unwind_block parts[MAX_BLOCK_PARTS];
	struct row rows[CODE_BLOCK_BYTES];
	uint32_t part = 0, n;
	struct truth t;
	size_t count;

	memset(t.who, NOBODY, sizeof(t.who));
	ask(p, 0, start, start + CODE_BLOCK_BYTES, &t);
	began_ns = cpu_ns();
	assert_int_equal(rows_build(p->src, start, start + CODE_BLOCK_BYTES, rows, CODE_BLOCK_BYTES, &count), 0);
	p->build_ns += cpu_ns() - began_ns;
	n = blocks_pack(1, block, rows, count, parts);
	p->blocks++;
	p->rows += count;
	p->parts[n < PARTS_SHOWN ? n : PARTS_SHOWN]++;
	if (n > p->most_parts)
		p->most_parts = n;
	for (size_t i = 0; i < count; i++) {
		p->user_rows += ROW_RULE(block_pack_row(&rows[i], 0)) == RULE_USER;
		p->guess_rows += rows[i].is_guess;
	}
	for (uint32_t off = 0; off < CODE_BLOCK_BYTES; off++) {
		while (off >= parts[part].end)
			part++;
		p->bytes[t.who[off]]++;
		found = unwind_search(parts[part].rows, parts[part].row_cnt, off);
		if (t.who[off] == NOBODY || ROW_BODY(found) == ROW_BODY(t.packed[off]))
			continue;
		if (!p->lost++)
			print_message("%llx: the row of %s, %llx, is %llx in the block\n", (unsigned long long)start + off,
				      builders[t.who[off]]->name, (unsigned long long)t.packed[off],
				      (unsigned long long)found);
	}
}

/* --- a file --- */

static void open_program(struct program *p, int fd)
{
	GElf_Ehdr ehdr;
	struct stat st;
	void *map;

	memset(p, 0, sizeof(*p));
	assert_int_equal(fstat(fd, &st), 0);
	map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	assert_ptr_not_equal(map, MAP_FAILED);
	p->image.data = map;
	p->image.len = (size_t)st.st_size;
	p->image.elf = elf_memory(map, p->image.len);
	assert_non_null(gelf_getehdr(p->image.elf, &ehdr));
	p->image.entry = ehdr.e_entry;
	assert_int_equal(row_source_new(fd, &p->src), 0);
	for (size_t i = 0; i < BUILDERS; i++) {
		uint64_t began_ns = cpu_ns();

		p->has[i] = builders[i]->open(&p->image, &p->states[i]) == 0;
		if (p->has[i] && getenv("DENSE"))
			print_message("%-13s opened in %.1f ms\n", builders[i]->name, (double)(cpu_ns() - began_ns) / 1e6);
	}
}

static void close_program(struct program *p)
{
	for (size_t i = 0; i < BUILDERS; i++)
		if (p->has[i])
			builders[i]->close(p->states[i]);
	row_source_free(p->src);
	elf_end(p->image.elf);
	munmap((void *)(uintptr_t)p->image.data, p->image.len);
}

/* Every @step-th run of blocks of the executable segments, until @limit_ns have passed and enough was seen: a library may
 * begin with a megabyte that no table covers. */
static void check_code(struct program *p, uint64_t step, uint64_t limit_ns)
{
	uint64_t end_ns = clock_mono_ns() + limit_ns;
	size_t count;

	assert_int_equal(elf_getphdrnum(p->image.elf, &count), 0);
	for (size_t i = 0; i < count; i++) {
		GElf_Phdr ph;
		uint64_t first, last;

		if (!gelf_getphdr(p->image.elf, (int)i, &ph) || ph.p_type != PT_LOAD || !(ph.p_flags & PF_X) || !ph.p_filesz)
			continue;
		first = ph.p_vaddr / CODE_BLOCK_BYTES;
		last = (ph.p_vaddr + ph.p_filesz - 1) / CODE_BLOCK_BYTES;
		for (uint64_t run = first; run <= last && (clock_mono_ns() < end_ns || p->rows <= p->blocks);
		     run += RUN_BLOCKS * step)
			for (uint64_t block = run; block <= last && block < run + RUN_BLOCKS; block++)
				check_block(p, block);
	}
}

static void print_table(const struct program *p, const char *path)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	print_message("%s: %llu blocks, %llu rows, %llu only user space can evaluate, %llu guesses; %llu addresses lost\n",
		      path, (unsigned long long)p->blocks, (unsigned long long)p->rows, (unsigned long long)p->user_rows,
		      (unsigned long long)p->guess_rows, (unsigned long long)p->lost);
	for (size_t i = 0; i < BUILDERS; i++)
		if (p->asked[i])
			print_message("  %-13s %5.1f %% of the code; asked %llu times, %.2f us each, at most %.0f us\n",
				      builders[i]->name,
				      100.0 * (double)p->bytes[i] / (double)(p->blocks * CODE_BLOCK_BYTES),
				      (unsigned long long)p->asked[i], (double)p->asked_ns[i] / (double)p->asked[i] / 1e3,
				      (double)p->slowest_ns[i] / 1e3);
	print_message(
		"  nobody        %5.1f %%; rows_build %.2f us a block; parts 1/2/3/more: %llu/%llu/%llu/%llu, at most %llu; "
		"%ld MB resident\n",
		100.0 * (double)p->bytes[NOBODY] / (double)(p->blocks * CODE_BLOCK_BYTES),
		(double)p->build_ns / (double)p->blocks / 1e3, (unsigned long long)p->parts[1],
		(unsigned long long)p->parts[2], (unsigned long long)p->parts[3], (unsigned long long)p->parts[4],
		(unsigned long long)p->most_parts, usage.ru_maxrss / 1024);
}

static void check_file(const char *path, uint64_t step, uint64_t limit_ns)
{
	AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct program p;

	if (fd < 0)
		return;
	open_program(&p, fd);
	check_code(&p, step, limit_ns);
	close_program(&p);
	print_table(&p, path);
	assert_true(p.blocks > 0 && p.rows > p.blocks / 2);
	assert_int_equal(p.lost, 0);
}

static void test_big_programs(void **state)
{
	static const struct {
		const char *path;
		uint64_t step; /* of runs */
	} files[] = {
		{ "/proc/self/exe", 1 },
		{ "/usr/bin/node", 200 },
		{ "/usr/lib/x86_64-linux-gnu/libLLVM-14.so.1", 300 },
		{ "/usr/local/go/bin/go", 60 },
		{ "/usr/lib/go-1.19/bin/go", 60 },
		{ "/usr/lib/x86_64-linux-gnu/libcrypto.so.3", 10 },
	};
	const char *whole = getenv("DENSE");

	(void)state;
	if (elf_version(EV_CURRENT) == EV_NONE)
		fail();
	if (whole) {
		check_file(whole, 1, UINT64_MAX / 2);
		return;
	}
	for (size_t i = 0; i < ARRAY_LEN(files); i++)
		check_file(files[i].path, files[i].step, NSEC_PER_SEC);
}

int main(void)
{
	static const struct CMUnitTest tests[] = { cmocka_unit_test(test_big_programs) };

	return run_group_of_descriptors(tests, NULL, NULL);
}
