/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes jitdumps, from the format's specification (Linux tools/perf/Documentation/jitdump-specification.txt) and not from
 * hearth's reader. For tests; included also by a program that makes code.
 */
#ifndef HEARTH_TESTS_JITDUMP_BYTES_H
#define HEARTH_TESTS_JITDUMP_BYTES_H

#include <stdint.h>
#include <stdio.h>
#include <string.h>

struct jitdump_line {
	uint64_t addr;
	uint32_t line;
	const char *file;
};

static inline void jitdump_u32(FILE *f, uint32_t value)
{
	fwrite(&value, sizeof(value), 1, f);
}

static inline void jitdump_u64(FILE *f, uint64_t value)
{
	fwrite(&value, sizeof(value), 1, f);
}

static inline void jitdump_header(FILE *f, uint32_t elf_mach, uint32_t pid, uint64_t time_ns, uint64_t flags)
{
	jitdump_u32(f, 0x4A695444); /* "JiTD" */
	jitdump_u32(f, 1);
	jitdump_u32(f, 40);
	jitdump_u32(f, elf_mach);
	jitdump_u32(f, 0);
	jitdump_u32(f, pid);
	jitdump_u64(f, time_ns);
	jitdump_u64(f, flags);
}

static inline void jitdump_prefix(FILE *f, uint32_t id, size_t body_bytes, uint64_t time_ns)
{
	jitdump_u32(f, id);
	jitdump_u32(f, (uint32_t)(16 + body_bytes));
	jitdump_u64(f, time_ns);
}

static inline void jitdump_load(FILE *f, uint32_t pid, uint64_t time_ns, uint64_t addr, const void *code, size_t size,
				uint64_t index, const char *name)
{
	jitdump_prefix(f, 0, 40 + strlen(name) + 1 + size, time_ns);
	jitdump_u32(f, pid);
	jitdump_u32(f, pid);
	jitdump_u64(f, addr);
	jitdump_u64(f, addr);
	jitdump_u64(f, size);
	jitdump_u64(f, index);
	fwrite(name, strlen(name) + 1, 1, f);
	fwrite(code, size, 1, f);
}

static inline void jitdump_move(FILE *f, uint32_t pid, uint64_t time_ns, uint64_t from, uint64_t to, uint64_t size,
				uint64_t index)
{
	jitdump_prefix(f, 1, 48, time_ns);
	jitdump_u32(f, pid);
	jitdump_u32(f, pid);
	jitdump_u64(f, to);
	jitdump_u64(f, from);
	jitdump_u64(f, to);
	jitdump_u64(f, size);
	jitdump_u64(f, index);
}

static inline void jitdump_lines(FILE *f, uint64_t time_ns, uint64_t code_addr, const struct jitdump_line *lines,
				 size_t count)
{
	size_t bytes = 16;

	for (size_t i = 0; i < count; i++)
		bytes += 16 + strlen(lines[i].file) + 1;
	jitdump_prefix(f, 2, bytes, time_ns);
	jitdump_u64(f, code_addr);
	jitdump_u64(f, count);
	for (size_t i = 0; i < count; i++) {
		jitdump_u64(f, lines[i].addr);
		jitdump_u32(f, lines[i].line);
		jitdump_u32(f, 0);
		fwrite(lines[i].file, strlen(lines[i].file) + 1, 1, f);
	}
}

static inline void jitdump_close(FILE *f, uint64_t time_ns)
{
	jitdump_prefix(f, 3, 0, time_ns);
}

#endif
