/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Everything the agent wants from other people's ELF files goes through this one interface, as plain bytes: a request {op,
 * file, fd, range, payload} and a reply {status, bytes}, or {ELF_STATUS_NEED, struct debug_need}: a further file, which the
 * agent looks for (agent/helper/debug_files.h) and brings with ELF_OP_GIVE before it asks again. The file is read either
 * here, in the process, or in a helper process without privileges (agent/helper/elf_helper.h). Callers never see the
 * parsers' state (libdw's).
 */
#ifndef HEARTH_AGENT_HELPER_ELF_SERVICE_H
#define HEARTH_AGENT_HELPER_ELF_SERVICE_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/rows/rows.h"
#include "agent/runtime/file/runtime_file.h"
#include "base/buf.h"
#include "base/wait_hook.h"
#include "symbols/find/debug_search.h"
#include "symbols/symbols.h"

enum elf_op {
	ELF_OP_INFO, /* -> struct elf_info */
	ELF_OP_ROWS, /* [addr, addr_end) -> struct row[] */
	ELF_OP_EVAL, /* payload struct elf_eval + stack bytes -> struct row_regs; status 1: outermost frame */
	/* No bytes; status 0: a call ends at addr, so it may be a return address; -ENOENT: none does, and a table describes
	 * the byte before addr; 1: none does, nor does a table. */
	ELF_OP_RETURN,
	ELF_OP_HOLDS,  /* payload bytes; status 0: the file holds them at offset addr; -ENOENT: it does not */
	ELF_OP_FORGET, /* the file will not be asked about again soon */
	ELF_OP_GIVE, /* addr is the enum debug_need_kind, fd what was found (-1: nothing more). Status 0: taken; -ENOENT: not
			it */
	ELF_OP_CODE, /* about code in a process's memory: agent/helper/code_service.h, which alone answers it */
};

enum { ELF_STATUS_NEED = 2 };

struct elf_request {
	uint32_t op;   /* enum elf_op */
	uint32_t file; /* the agent's file id: state is kept under it */
	uint64_t addr, addr_end;
	uint64_t at;	    /* ELF_OP_ROWS: the address that the rows are for (rows_build_at); 0: all that can be known */
	uint32_t can_bring; /* bool: the caller can bring further files; else the reader goes on without them */
	uint32_t can_come_back; /* bool: an answer that takes long may be -EAGAIN: ask the same again later */
};

enum { ELF_MAX_SEGMENTS = 16 };

struct elf_segment { /* an executable PT_LOAD */
	uint64_t vaddr, offset, size_bytes;
};

struct elf_info {
	struct build_ids build_ids;
	uint32_t segment_count;
	uint32_t pad;
	struct elf_segment segments[ELF_MAX_SEGMENTS];
	struct runtime_file runtime;
};

struct elf_eval {
	struct row_regs regs;
	uint64_t stack_addr; /* offset of the first byte behind this struct */
};

struct elf_service;

/* One form of the service; agent/helper/elf_service.c and agent/helper/elf_helper.c have one each. */
struct elf_service_ops {
	int (*call)(struct elf_service *s, const struct elf_request *request, int fd, const void *payload,
		    size_t payload_bytes, struct buf *reply);
	void (*free)(struct elf_service *s);
	void (*distrust)(struct elf_service *s); /* NULL: the form has no process that might be taken over */
};

struct elf_service { /* the first member of the state that a form really keeps */
	const struct elf_service_ops *ops;
	struct wait_hook on_wait; /* runs while a call waits; must not call the service */
};

/* The form that reads files in this process. */
int elf_service_new(struct elf_service **ret);

/*
 * Makes one request about the open file @fd (borrowed; the position is not moved). The reply's bytes replace @reply's
 * content. Returns the status: 0; 1 (see ELF_OP_EVAL, ELF_OP_RETURN); ELF_STATUS_NEED (only where request->can_bring);
 * -EAGAIN (only where request->can_come_back); -ENOEXEC (not an ELF file we read), -ENODATA (no tables), -ENOENT (no rule
 * there), -EBADMSG (bad request), -ENOMEM, or another -errno.
 */
static inline int elf_service_call(struct elf_service *s, const struct elf_request *request, int fd, const void *payload,
				   size_t payload_bytes, struct buf *reply)
{
	return s->ops->call(s, request, fd, payload, payload_bytes, reply);
}

/* The last answer made no sense to the caller: who gave it may have been taken over, and answers nothing more. */
static inline void elf_service_distrust(struct elf_service *s)
{
	if (s->ops->distrust)
		s->ops->distrust(s);
}

/* Accepts NULL. */
static inline void elf_service_free(struct elf_service *s)
{
	if (s)
		s->ops->free(s);
}

/* Does the status say that the file itself did harm: too much time (-ETIMEDOUT), too much memory (-ENOBUFS), a crash
 * (-EPROTO), a system call that is forbidden (-ENOSYS), or nonsense as the answer (-EILSEQ)? The form that reads in this
 * process never returns these. */
static inline bool elf_service_is_hostile(int status)
{
	return status == -ETIMEDOUT || status == -ENOBUFS || status == -EPROTO || status == -ENOSYS || status == -EILSEQ;
}

#endif
