/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading another process's memory under a budget. All that a reader of a runtime (code_reader.h) knows of the process comes
 * through here; nothing of it is believed. Pages that small reads met are kept for the request, as a read takes a
 * microsecond, and structures lie close together: within a request memory is mostly as it was first seen. A read that fails,
 * or for which the budget has nothing left, says so and leaves zeros. One thread.
 */
#ifndef HEARTH_AGENT_RUNTIME_CODE_CODE_MEMORY_H
#define HEARTH_AGENT_RUNTIME_CODE_CODE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct code_memory {
	/* Copies the @len bytes at @addr. 0 or -EFAULT. */
	int (*read)(void *arg, uint64_t addr, void *dst, size_t len);
	void *arg;
	uint32_t reads_left;
	uint64_t bytes_left;
	uint64_t end_ns;	  /* CLOCK_THREAD_CPUTIME_ID: until when it may go on; UINT64_MAX */
	bool is_spent;		  /* a read was refused: what was found so far may not be whole */
	struct code_pages *pages; /* those that were read for this request; NULL: none are kept */
	struct code_files *files; /* that were brought for it (code_files.h); NULL: none can be */
};

/* The budget of one request. */
enum { CODE_MAX_READS = 65536, CODE_MAX_BYTES = 16 << 20, CODE_MAX_MS = 200 };

/* Forgets what was read: from now on it is read again. */
void code_memory_forget(struct code_memory *m);

/* Memory read through @fd, a descriptor of /proc/PID/mem (borrowed; it must outlive @ret). */
void code_memory_of_process(int *fd, struct code_memory *ret);

/* The same for the file @fd, whose offsets are the addresses; @end_ns as in struct code_memory. */
void code_memory_of_file(int *fd, uint64_t end_ns, struct code_memory *ret);

struct code_bytes {
	uint8_t *data;
	size_t len;
};

/* The same for the bytes of @bytes (borrowed; it must outlive @ret), as if they were the file's. */
void code_memory_of_bytes(const struct code_bytes *bytes, uint64_t end_ns, struct code_memory *ret);

/* 0; -EFAULT: not all of it can be read; -EDQUOT: the budget is spent. */
int code_read(struct code_memory *m, uint64_t addr, void *dst, size_t len_bytes);

/* The same for one number; 0 where it cannot be read. */
uint64_t code_read_u64(struct code_memory *m, uint64_t addr);
uint32_t code_read_u32(struct code_memory *m, uint64_t addr);
uint16_t code_read_u16(struct code_memory *m, uint64_t addr);
uint8_t code_read_u8(struct code_memory *m, uint64_t addr);

/* Reads text up to its NUL, which @dst gets as well, @max bytes with it at most. 0; -ENAMETOOLONG; or as code_read(). */
int code_read_text(struct code_memory *m, uint64_t addr, char *dst, size_t max);

#endif
