/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stops [-n STOPS] [-w WARM_MS] [-v] COMMAND...
 *
 * Runs COMMAND, a program whose runtime makes code that hearth has a reader of, stops its busiest thread at random
 * instructions, prologues and epilogues included, and walks its stack by rows: the reader's in made code, those of tables in
 * files. Prints the functions that the reader names, a line for each stop: NAME, LINE and FILE of each frame, outermost
 * first, separated by 0x1f, frames by tabs; tests/code/judge_stops.py judges them by what the program says. On standard
 * error what was counted; -v: why walks ended. A word of a frame that the walk cannot find ends it. Nothing of hearth's
 * agent is used but readers and rows. Exit status 1 when no stop was made.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/user.h>
#include <unistd.h>

#include "agent/rows/row_builder.h"
#include "agent/rows/rows.h"
#include "agent/runtime/code/code_reader.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/text/parse.h"
#include "symbols/elf_image.h"
#include "tests/code/thread.h"

enum { MAX_FRAMES = 4096, MAX_MAPS = 4096, MAX_FILES = 256 };

/* An ELF file that is mapped. */
struct image {
	uint64_t inode;
	const uint8_t *bytes; /* NULL: it cannot be read */
	size_t len;
	struct row_source *rows; /* NULL: none */
};

struct map {
	uint64_t start, end, offset, bias;
	struct image *image; /* NULL: memory without a file */
};

static struct {
	pid_t pid, tid;
	int fd; /* of its memory */
	const struct code_reader *reader;
	struct code_facts facts;
	void *state; /* the reader's */
	struct map maps[MAX_MAPS];
	uint32_t map_cnt;
	struct code_range made[CODE_RANGES]; /* ranges of the reader */
	uint32_t made_cnt;
} it;

static struct {
	uint64_t stops, without, complete, frames, made, named, no_block, no_row, no_name, no_function, no_map, reads,
		lookups;
} counts;

static struct image images[MAX_FILES];
static uint32_t image_cnt;
static bool is_verbose;

/* --- the process --- */

static struct code_memory memory_now(void)
{
	struct code_memory m;

	code_memory_of_process(&it.fd, &m);
	m.end_ns = UINT64_MAX;
	return m;
}

static int read_memory(void *arg, uint64_t addr, void *dst, size_t len)
{
	(void)arg;
	return pread(it.fd, dst, len, (off_t)addr) == (ssize_t)len ? 0 : -EFAULT;
}

static struct image *image_of(const char *name, uint64_t inode, uint64_t start, uint64_t end)
{
	struct image *im;
	struct stat st;
	char path[128];
	void *bytes;
	int fd;

	for (uint32_t i = 0; i < image_cnt; i++)
		if (images[i].inode == inode)
			return &images[i];
	if (image_cnt == MAX_FILES)
		return NULL;
	im = &images[image_cnt++];
	*im = (struct image){ .inode = inode };
	snprintf(path, sizeof(path), "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, it.pid, start, end);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st))
		return im;
	bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (bytes != MAP_FAILED) {
		im->bytes = bytes;
		im->len = (size_t)st.st_size;
		(void)row_source_new(fd, &im->rows);
	} else if (is_verbose) {
		perror(name);
	}
	close(fd);
	return im;
}

/* Puts the address - ELF virtual address of what is mapped at @start from @offset on into *@bias. False: it is no code of an
 * ELF file. */
static bool is_code_of(const struct image *im, uint64_t start, uint64_t offset, uint64_t *bias)
{
	struct elf_image elf;

	if (!im->bytes || elf_image_open(im->bytes, im->len, &elf))
		return false;
	for (uint32_t i = 0; i < elf.ehdr.e_phnum; i++) {
		Elf64_Phdr ph;

		memcpy(&ph, im->bytes + elf.ehdr.e_phoff + i * sizeof(ph), sizeof(ph));
		if (ph.p_type == PT_LOAD && ph.p_flags & PF_X && offset + 4096 > ph.p_offset &&
		    offset < ph.p_offset + ph.p_filesz) {
			*bias = start - (ph.p_vaddr + offset - ph.p_offset);
			return true;
		}
	}
	return false;
}

/* Reads which code is mapped where. */
static void read_maps(void)
{
	AUTO_FCLOSE FILE *f = NULL;
	char path[64], line[4400];

	snprintf(path, sizeof(path), "/proc/%d/maps", it.pid);
	f = fopen(path, "re");
	it.map_cnt = 0;
	while (f && fgets(line, sizeof(line), f) && it.map_cnt < MAX_MAPS) {
		struct map *m = &it.maps[it.map_cnt];
		char flags[8], name[4100] = "";
		uint64_t inode = 0;

		*m = (struct map){ 0 };
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %*s %" SCNu64 " %4099s", &m->start, &m->end, flags,
			   &m->offset, &inode, name) < 4 ||
		    flags[2] != 'x' || name[0] == '[')
			continue;
		if (inode && strncmp(name, "/memfd:", 7) != 0) {
			m->image = image_of(name, inode, m->start, m->end);
			if (m->image && !is_code_of(m->image, m->start, m->offset, &m->bias))
				m->image = NULL; /* compiled code in a file of a runtime's own */
		}
		it.map_cnt++;
	}
}

static const struct map *map_at(uint64_t addr)
{
	for (int again = 0; again < 2; again++) {
		for (uint32_t i = 0; i < it.map_cnt; i++)
			if (addr >= it.maps[i].start && addr < it.maps[i].end)
				return &it.maps[i];
		if (!again)
			read_maps();
	}
	return NULL;
}

/* --- its runtime --- */

/* Asks the reader where code is, by memory without a file, pieces that are near to each other as one. */
static void find_made(void)
{
	enum { NEAR_BYTES = 1 << 20 };
	struct code_range ranges[CODE_RANGES];
	struct code_memory m = memory_now();
	uint32_t given = 0;
	int count;

	for (uint32_t i = 0; i < it.map_cnt; i++) {
		if (it.maps[i].image)
			continue;
		if (given && it.maps[i].start <= ranges[given - 1].end + NEAR_BYTES)
			ranges[given - 1].end = it.maps[i].end;
		else if (given < CODE_RANGES)
			ranges[given++] = (struct code_range){ it.maps[i].start, it.maps[i].end };
	}
	count = it.reader->ranges(it.state, &m, given, ranges);
	if (count < 0)
		return;
	it.made_cnt = (uint32_t)count;
	memcpy(it.made, ranges, sizeof(ranges));
}

static bool open_runtime(const struct map *map)
{
	struct code_memory m = memory_now();
	struct runtime_file file;
	struct elf_image elf;

	if (!map->image || !map->image->bytes || elf_image_open(map->image->bytes, map->image->len, &elf))
		return false;
	memset(&file, 0, sizeof(file));
	runtime_file_read(&elf, &file);
	it.reader = file.kind == RUNTIME_FILE_CODE ? code_reader_of(file.code.id) : NULL;
	if (!it.reader)
		return false;
	it.facts = file.code;
	free(it.state);
	it.state = calloc(1, it.reader->state_bytes);
	return !it.reader->open(it.state, &m, &it.facts, map->bias);
}

static void end(int status)
{
	if (it.pid)
		kill(it.pid, SIGKILL);
	exit(status);
}

static void start(char **argv, unsigned warm_ms)
{
	bool is_open = false;

	it.fd = thread_start(argv, warm_ms, &it.pid, &it.tid);
	if (it.fd < 0)
		end(2);
	read_maps();
	for (uint32_t i = 0; i < it.map_cnt && !is_open; i++)
		is_open = open_runtime(&it.maps[i]);
	if (!is_open) {
		fprintf(stderr, "%s: no runtime that a reader knows\n", argv[0]);
		end(77);
	}
	find_made();
}

/* --- names --- */

static char frames[MAX_FRAMES][1024];
static uint32_t frame_cnt;

static void add(const struct buf *content, uint32_t place, bool is_return)
{
	struct block_line lines[BLOCK_NAMES_MAX_DEPTH];
	uint32_t n = block_names_find(content->data, content->len, place, is_return, lines);

	for (uint32_t i = 0; i < n && frame_cnt < MAX_FRAMES; i++)
		snprintf(frames[frame_cnt++], sizeof(frames[0]), "%.*s\x1f%u\x1f%.*s", lines[i].name_bytes, lines[i].name,
			 lines[i].line, lines[i].file_bytes, lines[i].file);
	counts.named += n != 0;
	counts.no_name += n == 0;
}

static void hole(const char *why)
{
	if (frame_cnt < MAX_FRAMES)
		snprintf(frames[frame_cnt++], sizeof(frames[0]), "[no %s]\x1f%d\x1f", why, 0);
}

/* The function of a frame with the capture @number. */
static void add_captured(uint32_t number, const struct row_regs *in, bool is_leaf)
{
	AUTO(block_names_free_at) struct block_names *n = block_names_new();
	uint64_t words[CODE_CAPTURE_WORDS + 1] = { 0 };
	struct code_capture captures[CODE_CAPTURES];
	AUTO(buf_fini) struct buf out = BUF_EMPTY;
	struct code_memory m = memory_now();
	struct captured_function f = { 0 };
	uint64_t place;

	memset(captures, 0, sizeof(captures));
	it.reader->captures(it.state, &it.facts, captures);
	for (uint32_t i = 0; i < captures[number - 1].count; i++) {
		const struct code_capture_word *w = &captures[number - 1].words[i];

		words[i] = is_leaf && w->leaf_reg >= 0 ? in->value[w->leaf_reg]
						       : code_read_u64(&m, in->value[REG_FP] + (uint64_t)(int64_t)w->offset);
		if (w->follow)
			words[i] = code_read_u64(&m, words[i] + (uint64_t)(int64_t)w->follow);
	}
	words[CODE_CAPTURE_WORDS] = in->value[REG_PC] - !is_leaf;
	if (it.reader->function(it.state, &m, number, words, &f, n) || block_names_write(n, &out)) {
		counts.no_function++;
		hole("function");
		return;
	}
	place = (uint32_t)((words[f.word] >> f.shift) - f.base);
	add(&out, place < f.bytes ? (uint32_t)place : 0, false);
}

/* --- the walk --- */

/* Goes from the frame @in in made code to its caller. As row_apply(). */
static int step_made(const struct row_regs *in, bool is_leaf, struct row_regs *out)
{
	AUTO(block_names_free_at) struct block_names *n = block_names_new();
	uint64_t addr = in->value[REG_PC] - !is_leaf;
	AUTO(buf_fini) struct buf names = BUF_EMPTY;
	struct code_memory m = memory_now();
	AUTO_FREE struct row *rows = NULL;
	const struct row *row = NULL;
	struct code_block b;
	size_t count = 0;

	memset(&b, 0, sizeof(b));
	counts.made++;
	counts.lookups++;
	if (it.reader->block(it.state, &m, addr, &b)) {
		counts.no_block++;
		hole("block");
		return -ENOENT;
	}
	if (!it.reader->rows(it.state, &m, &b, &rows, &count))
		for (size_t i = 0; i < count; i++)
			if (addr >= rows[i].start && addr < rows[i].end)
				row = &rows[i];
	counts.reads += CODE_MAX_READS - m.reads_left;
	m = memory_now();
	if (row && row->capture)
		add_captured(row->capture, in, is_leaf);
	else if (!it.reader->names(it.state, &m, &b, n) && !block_names_write(n, &names))
		add(&names, (uint32_t)(addr - b.start), !is_leaf);
	else {
		counts.no_name++;
		if (is_verbose)
			fprintf(stderr, "no name at %#" PRIx64 " = %#" PRIx64 " + %#" PRIx64 " (kind %u)\n", addr, b.start,
				addr - b.start, b.kind);
	}
	if (!row || row->cfa == ROW_CFA_NONE) {
		counts.no_row++;
		if (is_verbose)
			fprintf(stderr, "no row at %#" PRIx64 " = %#" PRIx64 " + %#" PRIx64 " in %s, %zu rows\n", addr,
				b.start, addr - b.start, frame_cnt ? frames[frame_cnt - 1] : "", count);
		return -ENOENT;
	}
	return row_apply(row, in, read_memory, NULL, out);
}

static bool is_made(uint64_t addr)
{
	for (uint32_t i = 0; i < it.made_cnt; i++)
		if (addr >= it.made[i].start && addr < it.made[i].end)
			return true;
	return false;
}

/* Goes to the caller. As row_apply(). */
static int step(const struct row_regs *in, bool is_leaf, struct row_regs *out)
{
	uint64_t addr = in->value[REG_PC] - !is_leaf;
	const struct map *map = map_at(addr);
	size_t count = 0;
	struct row row;

	if (map && !map->image && !is_made(addr))
		find_made();
	if (map && !map->image && is_made(addr))
		return step_made(in, is_leaf, out);
	if (!map || !map->image || !map->image->rows) {
		counts.no_map++;
		return -ENOENT;
	}
	/* an interpreter that is part of a file, as V8's */
	if (!rows_build(map->image->rows, addr - map->bias, addr - map->bias + 1, &row, 1, &count) && count && row.capture) {
		counts.made++;
		add_captured(row.capture, in, is_leaf);
	}
	return row_eval(map->image->rows, addr - map->bias, in, read_memory, NULL, out);
}

#ifdef __aarch64__
static struct row_regs registers(const struct user_regs_struct *r)
{
	struct row_regs regs = { .known = REG_BIT(USER_REGS) - 1, .is_exact = true };

	memcpy(regs.value, r->regs, sizeof(r->regs));
	regs.value[REG_SP] = r->sp;
	regs.value[REG_PC] = r->pc;
	return regs;
}
#else
static struct row_regs registers(const struct user_regs_struct *r)
{
	return (struct row_regs){ .value = { r->rax, r->rdx, r->rcx, r->rbx, r->rsi, r->rdi, r->rbp, r->rsp, r->r8, r->r9,
					     r->r10, r->r11, r->r12, r->r13, r->r14, r->r15, r->rip },
				  .known = REG_BIT(USER_REGS) - 1,
				  .is_exact = true };
}
#endif

/* The 8 bytes at @addr, first one lowest. */
static uint64_t code_bytes(uint64_t addr)
{
	uint64_t bytes = 0;

	(void)read_memory(NULL, addr, &bytes, sizeof(bytes));
	return bytes;
}

/* The ELF virtual address of @addr; 0: it is in no file. */
static uint64_t file_address(uint64_t addr)
{
	const struct map *map = map_at(addr);

	return map && map->image ? addr - map->bias : 0;
}

static void walk(const struct user_regs_struct *at)
{
	struct row_regs in = registers(at), out;
	uint64_t made = counts.made, first = in.value[REG_PC], last = 0, before = 0;
	int status = 0;

	frame_cnt = 0;
	for (uint32_t i = 0; i < MAX_FRAMES && !status && in.value[REG_PC]; i++) {
		memset(&out, 0, sizeof(out));
		counts.frames++;
		before = last;
		last = in.value[REG_PC];
		status = step(&in, in.is_exact, &out);
		if (!status)
			in = out;
	}
	counts.without += counts.made == made;
	if (counts.made == made)
		return;
	counts.complete += status >= 0;
	if (status < 0 && is_verbose)
		fprintf(stderr,
			"at %#" PRIx64 " (%#" PRIx64 "): ended at %#" PRIx64 " (%s), sp %#" PRIx64 ", behind %#" PRIx64
			" (%#" PRIx64 " of its file), %s\n",
			first, code_bytes(first), last, strerror(-status), in.value[REG_SP], before, file_address(before),
			frame_cnt ? frames[frame_cnt - 1] : "nothing");
	for (uint32_t i = frame_cnt; i--;)
		printf("%s%s", frames[i], i ? "\t" : "");
	putchar('\n');
}

static void run(uint64_t stops)
{
	struct user_regs_struct regs;

	while (counts.stops - counts.without < stops && counts.stops < 4 * stops) {
		usleep(300 + (unsigned)random() % 3000);
		if (!thread_stop(it.tid, &regs))
			break;
		walk(&regs);
		counts.stops++;
		ptrace(PTRACE_CONT, it.tid, 0, 0);
	}
}

int main(int argc, char **argv)
{
	uint64_t stops = 1000, warm_ms = 1500;
	int c;

	while ((c = getopt(argc, argv, "+n:w:v")) != -1) {
		is_verbose |= c == 'v';
		if (c != 'v' && (c == '?' || parse_u64(optarg, c == 'n' ? &stops : &warm_ms)))
			return 2;
	}
	if (optind == argc)
		return 2;
	srandom((unsigned)getpid());
	start(argv + optind, (unsigned)warm_ms);
	run(stops);
	fprintf(stderr,
		"%s: %" PRIu64 " stops with made code on the stack, %" PRIu64
		" (%.2f %%) walked to the root; frames: %" PRIu64 ", %" PRIu64 " in made code, %" PRIu64
		" named; not found: %" PRIu64 " code, %" PRIu64 " rows, %" PRIu64 " names, %" PRIu64 " functions, %" PRIu64
		" files; %.1f reads a frame\n",
		it.reader->name, counts.stops - counts.without, counts.complete,
		100.0 * (double)counts.complete / (double)(counts.stops - counts.without + !counts.stops), counts.frames,
		counts.made, counts.named, counts.no_block, counts.no_row, counts.no_name, counts.no_function, counts.no_map,
		(double)counts.reads / (double)(counts.lookups + 1));
	end(counts.stops > counts.without ? 0 : 1);
}
