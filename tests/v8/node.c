/* SPDX-License-Identifier: Apache-2.0 */
#include <elf.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "symbols/elf_image.h"
#include "tests/v8/node.h"

enum { MAX_AREAS = 4096 };

struct node node;
static struct elf_image image;
static char real_path[4096];
static struct area areas[MAX_AREAS];
static uint32_t area_cnt;

struct code_memory node_memory(void)
{
	struct code_memory m;

	code_memory_of_process(&node.fd, &m);
	m.end_ns = UINT64_MAX;
	return m;
}

uint64_t node_word(uint64_t addr)
{
	struct code_memory m = node_memory();

	return code_read_u64(&m, addr);
}

static void open_file(const char *path)
{
	int fd = open(path, O_RDONLY);
	struct runtime_file file = { 0 };
	struct stat st;

	if (fd < 0 || fstat(fd, &st) || !realpath(path, real_path)) {
		perror(path);
		exit(2);
	}
	node.file_bytes = (size_t)st.st_size;
	node.file = mmap(NULL, node.file_bytes, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (node.file == MAP_FAILED || elf_image_open(node.file, node.file_bytes, &image) || !v8_file_read(&image, &file)) {
		fprintf(stderr, "%s: no V8 that the reader knows\n", path);
		exit(77);
	}
	node.facts = file.code;
	memcpy(&node.layout, file.code.fact, sizeof(node.layout));
}

static uint64_t segment_bias(uint64_t start, uint64_t offset)
{
	for (uint32_t i = 0; i < image.ehdr.e_phnum; i++) {
		Elf64_Phdr ph;

		memcpy(&ph, image.data + image.ehdr.e_phoff + i * sizeof(ph), sizeof(ph));
		if (ph.p_type == PT_LOAD && ph.p_flags & PF_X && offset + 4096 > ph.p_offset &&
		    offset < ph.p_offset + ph.p_filesz)
			return start - (ph.p_vaddr + offset - ph.p_offset);
	}
	return 0;
}

static void read_areas(void)
{
	AUTO_FCLOSE FILE *f = NULL;
	char path[64], line[4400];

	snprintf(path, sizeof(path), "/proc/%d/maps", node.pid);
	f = fopen(path, "re");
	area_cnt = 0;
	while (f && fgets(line, sizeof(line), f) && area_cnt < MAX_AREAS) {
		struct area *a = &areas[area_cnt];
		char flags[8], name[4100] = "";
		uint64_t offset;

		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %*s %*s %4099s", &a->start, &a->end, flags,
			   &offset, name) < 4 ||
		    flags[2] != 'x')
			continue;
		a->is_node = !strcmp(name, real_path);
		a->is_made = !name[0];
		a->bias = a->is_node ? segment_bias(a->start, offset) : 0;
		area_cnt++;
	}
}

const struct area *node_area(uint64_t pc)
{
	for (int tries = 0; tries < 2; tries++) {
		for (uint32_t i = 0; i < area_cnt; i++)
			if (pc >= areas[i].start && pc < areas[i].end)
				return &areas[i];
		read_areas();
	}
	return NULL;
}

static void open_reader(void)
{
	read_areas();
	for (uint32_t i = 0; i < area_cnt; i++) {
		struct code_memory m = node_memory();

		if (areas[i].is_node && code_v8.open(node.state, &m, &node.facts, areas[i].bias) == 0)
			return;
	}
	fprintf(stderr, "%s is not mapped\n", real_path);
	exit(2);
}

void node_start(const char *path, char **argv, unsigned warm_ms)
{
	char mem[64];

	open_file(path);
	node.pid = fork();
	if (!node.pid) {
		dup2(2, 1);
		execvp(argv[0], argv);
		_exit(127);
	}
	usleep(warm_ms * 1000);
	snprintf(mem, sizeof(mem), "/proc/%d/mem", node.pid);
	node.fd = open(mem, O_RDONLY | O_CLOEXEC);
	if (node.fd < 0 || ptrace(PTRACE_SEIZE, node.pid, 0, PTRACE_O_EXITKILL)) {
		perror("ptrace");
		exit(2);
	}
	open_reader();
}

static bool await(struct user_regs_struct *regs)
{
	struct iovec iov = { regs, sizeof(*regs) };
	int status;

	return waitpid(node.pid, &status, __WALL) == node.pid && WIFSTOPPED(status) &&
	       !ptrace(PTRACE_GETREGSET, node.pid, NT_PRSTATUS, &iov);
}

bool node_stop(struct user_regs_struct *regs)
{
	return !ptrace(PTRACE_INTERRUPT, node.pid, 0, 0) && await(regs);
}

bool node_step(struct user_regs_struct *regs)
{
	return !ptrace(PTRACE_SINGLESTEP, node.pid, 0, 0) && await(regs);
}

void node_continue(void)
{
	ptrace(PTRACE_CONT, node.pid, 0, 0);
}

void node_end(void)
{
	int status;

	kill(node.pid, SIGKILL);
	waitpid(node.pid, &status, 0);
}
