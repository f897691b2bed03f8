/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stops [-n STOPS] [-w WARM_MS] [-v] EMULATOR COMMAND...
 *
 * Runs COMMAND, an Erlang whose emulator's file is EMULATOR, waits until it is warm, stops its busiest thread at random
 * instructions, and walks Erlang's stack by the rows of hearth's reader of BEAM. The truth is the stack itself: a word of it
 * is a return address when its lowest two bits are 0 and it leads to code, and nothing else there is (measured: 0 of 48,700
 * words). The two must be the same. Prints the functions, a line for each stop, as tests/code/stops does. On standard error
 * what was counted; -v: each difference. Exit status 1 when there are any. Nothing of hearth's agent is used but the reader.
 */
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

#include "agent/runtime/code/code_reader.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/text/parse.h"
#include "symbols/elf_image.h"
#include "tests/code/thread.h"

enum { MAX_FRAMES = 65536, MAX_AREAS = 64, TAG = 3 };

static struct {
	pid_t pid, tid;
	int fd; /* of its memory */
	struct runtime_file file;
	uint8_t *state; /* the reader's */
	uint64_t bias;
	struct code_range areas[MAX_AREAS]; /* memory for code */
	uint32_t area_cnt;
} beam;

static struct {
	uint64_t stops, erlang, scheduler, native, frames, differ, stale, loop, no_block, no_row, tagged, reads, lookups;
} counts;

static uint64_t pcs[MAX_FRAMES], truth[MAX_FRAMES];
static bool is_verbose;

/* --- the process --- */

static struct code_memory memory_now(void)
{
	struct code_memory m;

	code_memory_of_process(&beam.fd, &m);
	m.end_ns = UINT64_MAX;
	return m;
}

static uint64_t word_at(uint64_t addr)
{
	uint64_t value = 0;

	return pread(beam.fd, &value, sizeof(value), (off_t)addr) == sizeof(value) ? value : 0;
}

static bool is_code(uint64_t addr)
{
	for (uint32_t i = 0; i < beam.area_cnt; i++)
		if (addr > beam.areas[i].start && addr <= beam.areas[i].end)
			return true;
	return false;
}

static void open_file(const char *path)
{
	int fd = open(path, O_RDONLY);
	struct elf_image image;
	struct stat st;
	void *bytes;

	if (fd < 0 || fstat(fd, &st)) {
		perror(path);
		exit(2);
	}
	bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (bytes == MAP_FAILED || elf_image_open(bytes, (size_t)st.st_size, &image) ||
	    !beam_file_read(&image, &beam.file)) {
		fprintf(stderr, "%s: no BEAM that the reader knows\n", path);
		exit(77);
	}
}

/* Finds where the emulator and code are mapped. */
static void read_areas(const char *emulator)
{
	AUTO_FCLOSE FILE *f = NULL;
	char path[64], line[4400];

	snprintf(path, sizeof(path), "/proc/%d/maps", beam.pid);
	f = fopen(path, "re");
	beam.area_cnt = 0;
	while (f && fgets(line, sizeof(line), f) && beam.area_cnt < MAX_AREAS) {
		char flags[8], name[4100] = "";
		uint64_t start, end, offset;

		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %*s %*s %4099s", &start, &end, flags, &offset,
			   name) < 4)
			continue;
		if (!offset && !strcmp(name, emulator))
			beam.bias = start;
		if (flags[2] == 'x' && (!name[0] || !strncmp(name, "/memfd:", 7)))
			beam.areas[beam.area_cnt++] = (struct code_range){ start, end };
	}
}

static void start(const char *emulator, char **argv, uint64_t warm_ms)
{
	struct code_memory m;

	open_file(emulator);
	beam.fd = thread_start(argv, (unsigned)warm_ms, &beam.pid, &beam.tid);
	if (beam.fd < 0)
		exit(2);
	beam.state = calloc(1, code_beam.state_bytes);
	read_areas(emulator);
	m = memory_now();
	if (code_beam.open(beam.state, &m, &beam.file.code, beam.bias)) {
		fprintf(stderr, "the reader does not know this BEAM\n");
		exit(2);
	}
}

/* --- the reader's walk --- */

struct cursor {
	uint64_t pc, sp, fp, process;
	bool is_leaf;
};

static bool find_row(uint64_t addr, struct row *ret)
{
	struct code_range ranges[CODE_RANGES];
	struct code_memory m = memory_now();
	struct row *rows = NULL;
	struct code_block b;
	size_t count = 0;
	bool found = false;

	memcpy(ranges, beam.areas, sizeof(ranges));
	(void)code_beam.ranges(beam.state, &m, beam.area_cnt < CODE_RANGES ? beam.area_cnt : CODE_RANGES, ranges);
	counts.lookups++;
	if (code_beam.block(beam.state, &m, addr, &b)) {
		counts.no_block++;
		if (is_verbose)
			fprintf(stderr, "no block at %#" PRIx64 "\n", addr);
		return false;
	}
	counts.reads += CODE_MAX_READS - m.reads_left;
	if (code_beam.rows(beam.state, &m, &b, &rows, &count))
		count = 0;
	for (size_t i = 0; i < count && !found; i++) {
		found = addr >= rows[i].start && addr < rows[i].end;
		if (found)
			*ret = rows[i];
	}
	free(rows);
	if (!found) {
		counts.no_row++;
		if (is_verbose)
			fprintf(stderr, "no row at %#" PRIx64 " = %#" PRIx64 " + %#" PRIx64 " (kind %u)\n", addr, b.start,
				addr - b.start, b.kind);
	}
	return found;
}

static uint64_t stack_pointer(uint64_t process)
{
	return word_at(process + beam.file.state.offset[BEAM_STACK_POINTER]);
}

/* Where Erlang's stack pointer is, by @row. */
static uint64_t base_of(const struct cursor *c, const struct row *row)
{
	if (row->cfa == ROW_CFA_SCHED || (row->cfa == ROW_CFA_TAGGED && row->cfa_reg == REG_PC))
		return stack_pointer(c->process);
	return row->cfa_reg == REG_FP ? c->fp : c->sp;
}

/* Goes to the caller. False: there is none. */
static bool step(struct cursor *c)
{
	struct row row;
	uint64_t at;

	if (!find_row(c->pc - !c->is_leaf, &row) || row.cfa == ROW_CFA_ROOT)
		return false;
	at = base_of(c, &row) + (uint64_t)(int64_t)row.cfa_off - 8;
	if (row.cfa == ROW_CFA_TAGGED) {
		counts.tagged++;
		for (at = base_of(c, &row); word_at(at) && !(!(word_at(at) & TAG) && is_code(word_at(at))); at += 8)
			;
	}
	c->pc = word_at(at);
	c->sp = at + 8;
	c->is_leaf = false;
	return is_code(c->pc);
}

/* --- the truth --- */

static uint32_t scan(uint64_t from, uint64_t end)
{
	uint32_t n = 0;

	for (uint64_t at = from; at < end && n < MAX_FRAMES; at += 8) {
		uint64_t word = word_at(at);

		if (!(word & TAG) && is_code(word))
			truth[n++] = word;
	}
	return n;
}

/*
 * A call of code that never looks at its callers may come from any address: the first of the reader's may have another tag.
 * The innermost frame may have just been made, with words in it of frames that were there before: the truth has more then,
 * all below the reader's first; names tell whether that was right.
 */
static bool are_same(uint32_t count, uint32_t true_count)
{
	uint32_t skip = count && pcs[0] & TAG, more = true_count > count - skip ? true_count - (count - skip) : 0;

	counts.stale += more != 0;
	return count - skip + more == true_count && count &&
	       !memcmp(pcs + skip, truth + more, (count - skip) * sizeof(*truth));
}

/* --- names --- */

static void print_names(uint64_t addr, bool is_leaf, uint64_t block_of)
{
	struct block_line lines[BLOCK_NAMES_MAX_DEPTH];
	struct block_names *n = block_names_new();
	struct code_memory m = memory_now();
	struct buf out = BUF_EMPTY;
	struct code_block b;
	uint32_t count = 0;

	if (!code_beam.block(beam.state, &m, block_of, &b) && !code_beam.names(beam.state, &m, &b, n) &&
	    !block_names_write(n, &out))
		count = block_names_find(out.data, out.len, (uint32_t)(addr - b.start), !is_leaf, lines);
	if (!count)
		printf("[no name]\x1f"
		       "0\x1f\t");
	for (uint32_t i = count; i-- > 0;)
		printf("%.*s\x1f%u\x1f%.*s\t", lines[i].name_bytes, lines[i].name, lines[i].line, lines[i].file_bytes,
		       lines[i].file);
	buf_fini(&out);
	block_names_free(n);
}

static void complain(const struct user_regs_struct *regs, uint32_t count, uint32_t true_count)
{
	fprintf(stderr, "at %#llx rsp %#llx: %u frames, %u return addresses:", regs->rip, regs->rsp, count, true_count);
	for (uint32_t i = 0; i < count || i < true_count; i++) {
		if (i < count && i < true_count && pcs[i] == truth[i])
			continue;
		fprintf(stderr, " %u: %#" PRIx64 " is %#" PRIx64, i, i < count ? pcs[i] : 0, i < true_count ? truth[i] : 0);
		break;
	}
	fputc('\n', stderr);
}

static void look(const struct user_regs_struct *regs)
{
	uint64_t process = regs->r13, low = word_at(process + beam.file.state.offset[BEAM_HEAP]),
		 end = word_at(process + beam.file.state.offset[BEAM_STACK_END]);
	struct cursor c = { regs->rip, regs->rsp, regs->rbp, process, true };
	uint32_t n = 0, true_count;
	bool is_erlang = regs->rsp >= low && regs->rsp < end;
	struct row row;

	counts.stops++;
	if (!is_code(regs->rip)) {
		counts.native++;
		return;
	}
	counts.erlang += is_erlang;
	counts.scheduler += !is_erlang;
	if (!find_row(c.pc, &row))
		row.cfa = ROW_CFA_NONE;
	if (row.cfa == ROW_CFA_ROOT && !is_erlang) { /* no process runs */
		counts.loop++;
		return;
	}
	low = row.cfa == ROW_CFA_NONE ? regs->rsp : base_of(&c, &row);
	while (n < MAX_FRAMES && step(&c))
		pcs[n++] = c.pc;
	true_count = scan(low, end);
	counts.frames += true_count;
	if (!are_same(n, true_count)) {
		counts.differ++;
		if (is_verbose)
			complain(regs, n, true_count);
	}
	for (uint32_t i = n; i-- > 0;)
		print_names(pcs[i] - 1, false, pcs[i] - 1);
	print_names(regs->rip, true, regs->rip);
	putchar('\n');
}

int main(int argc, char **argv)
{
	struct user_regs_struct regs;
	uint64_t stops = 1000, warm_ms = 1500;
	int c;

	while ((c = getopt(argc, argv, "+n:w:v")) != -1) {
		if (c == 'v')
			is_verbose = true;
		else if (c == '?' || parse_u64(optarg, c == 'w' ? &warm_ms : &stops))
			return 2;
	}
	if (argc - optind < 2)
		return 2;
	srandom((unsigned)getpid());
	start(argv[optind], argv + optind + 1, warm_ms);
	for (uint64_t tries = 0; counts.erlang + counts.scheduler < stops && tries < 20 * stops; tries++) {
		usleep(200 + (unsigned)random() % 2000);
		if (!thread_stop(beam.tid, &regs))
			break;
		look(&regs);
		ptrace(PTRACE_CONT, beam.tid, 0, 0);
	}
	kill(beam.pid, SIGKILL);
	fprintf(stderr,
		"OTP %u: %" PRIu64 " stops, %" PRIu64 " on Erlang's stack, %" PRIu64 " on the scheduler's (%" PRIu64
		" between processes), %" PRIu64 " in native code; %" PRIu64 " return addresses, %" PRIu64
		" stacks differ, %" PRIu64 " had old words in a new frame; %" PRIu64 " frames by the tag, %" PRIu64
		" without code, %" PRIu64 " without a row; %.1f reads a frame\n",
		beam.file.version >> 16, counts.stops, counts.erlang, counts.scheduler, counts.loop, counts.native,
		counts.frames, counts.differ, counts.stale, counts.tagged, counts.no_block, counts.no_row,
		(double)counts.reads / (double)(counts.lookups + 1));
	return counts.differ || !counts.erlang;
}
