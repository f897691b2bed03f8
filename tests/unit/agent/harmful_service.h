/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A form of the ELF service that does, inside the worker, whatever a hostile file could make a parser do: the address of a
 * request says which. Included once by test_elf_helper.c, behind cmocka.
 */
#ifndef HEARTH_TESTS_HARMFUL_SERVICE_H
#define HEARTH_TESTS_HARMFUL_SERVICE_H

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "agent/helper/elf_service.h"
#include "base/sanitizer.h"

enum { BLOCK = 256, HUGE_REPLY = (16 << 20) + 1 };

enum harm {
	NO_HARM,
	CRASH,
	CRASH_IF_SPOILT, /* when the worker has answered about another file */
	ABORT,
	EXIT,
	EXIT_IF_USED,
	EXIT_IF_FIRST, /* when the worker is the one that the helper began with */
	CALL_FORBIDDEN,
	CALL_EXECUTABLE,
	OPEN_FILE, /* status: the errno */
	TAKE_MEMORY,
	SPIN,
	SLEEP,
	SLOW, /* once a worker: longer than a caller stays who can come back, shorter than a request may take */
	REPLY_HUGE,
	REPLY_BAD_STATUS,
	REPLY_ROW_OUTSIDE, /* of ELF_OP_ROWS */
	REPLY_ROW_REVERSED,
	REPLY_PART,
	REPLY_UNTERMINATED, /* of ELF_OP_INFO */
	REPLY_NEED,	    /* sound */
	REPLY_NEED_PATH,    /* a path of its own choosing */
	REPLY_NEED_MORE,    /* a need that there is not */
	REPLY_NEED_PART,
	REPLY_NEED_UNASKED, /* the caller can bring nothing */
};

struct harmful {
	struct elf_service service;
	uint32_t file;
	bool is_spoilt, is_slow_over;
	bool is_first; /* it was asked when the helper began */
};

static volatile uint64_t sink;
static volatile int *volatile nowhere = (volatile int *)64; /* what a sanitizer lets pass, and nobody has */

static int harm_process(struct harmful *h, enum harm harm)
{
	int word = 0;

	switch (harm) {
	case CRASH:
	case CRASH_IF_SPOILT:
		return harm == CRASH || h->is_spoilt ? *nowhere : 0;
	case ABORT:
		abort();
	case EXIT:
	case EXIT_IF_USED:
	case EXIT_IF_FIRST:
		if (harm == EXIT || (harm == EXIT_IF_USED ? h->file != 0 : h->is_first))
			_exit(0);
		return 0;
	case CALL_FORBIDDEN:
		return (int)syscall(SYS_socket, 0, 0, 0);
	case CALL_EXECUTABLE:
		return mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED;
	case OPEN_FILE:
		return open("/etc/passwd", O_RDONLY) < 0 ? -errno : 0;
	case TAKE_MEMORY: /* 1 GB, which need not be touched to count */
		for (int i = 0; i < 64; i++) {
			void *volatile p = HAS_SANITIZER ? NULL : malloc(16 << 20);

			if (!p)
				return -ENOMEM;
		}
		return 0;
	case SPIN:
		for (;;)
			sink++;
	case SLEEP:
		for (;;)
			syscall(SYS_futex, &word, FUTEX_WAIT, 0, NULL, NULL, 0);
	case SLOW:
		while (!h->is_slow_over && clock() < 7 * CLOCKS_PER_SEC / 20)
			sink++;
		h->is_slow_over = true;
		return 0;
	default:
		return 0;
	}
}

static int harm_reply(const struct elf_request *request, enum harm harm, struct buf *out)
{
	struct row row = { .start = request->addr, .end = request->addr_end };
	struct debug_need needed = { .kind = DEBUG_NEED_LINK, .name = "a.debug" };
	struct elf_info info;

	switch (harm) {
	case REPLY_NEED ... REPLY_NEED_UNASKED:
		if (harm == REPLY_NEED_PATH)
			strcpy(needed.name, "../shadow");
		if (harm == REPLY_NEED_MORE)
			needed.kind = DEBUG_NEED_MAX;
		buf_append(out, &needed, sizeof(needed) - (harm == REPLY_NEED_PART));
		return ELF_STATUS_NEED;
	case REPLY_HUGE:
		if (buf_reserve(out, HUGE_REPLY))
			return -ENOMEM;
		memset(out->data, 0, HUGE_REPLY);
		out->len = HUGE_REPLY;
		return 0;
	case REPLY_BAD_STATUS: /* 1 is for ELF_OP_EVAL alone */
		return 1;
	case REPLY_ROW_OUTSIDE:
		row.end++;
		break;
	case REPLY_ROW_REVERSED:
		row.end = row.start;
		break;
	case REPLY_PART:
		buf_append(out, &row, sizeof(row) - 1);
		return 0;
	case REPLY_UNTERMINATED:
		memset(&info, 'a', sizeof(info));
		info.segment_count = 0;
		buf_append(out, &info, sizeof(info));
		return 0;
	default:
		break;
	}
	buf_append(out, &row, sizeof(row));
	return 0;
}

static int harmful_call(struct elf_service *service, const struct elf_request *request, int fd, const void *payload,
			size_t payload_bytes, struct buf *out)
{
	struct harmful *h = (struct harmful *)service;
	enum harm harm = request->addr % BLOCK;
	int status;

	(void)fd, (void)payload, (void)payload_bytes;
	buf_reset(out);
	if (request->op == ELF_OP_FORGET) {
		h->is_first = true;
		return 0;
	}
	h->is_spoilt |= h->file && h->file != request->file;
	status = harm_process(h, harm);
	h->file = request->file;
	return status ? status : harm_reply(request, harm, out);
}

static int harmful_new(struct elf_service **ret) /* never freed: a worker just ends */
{
	static const struct elf_service_ops ops = { .call = harmful_call };
	struct harmful *h = calloc(1, sizeof(*h));

	if (!h)
		return -ENOMEM;
	h->service.ops = &ops;
	*ret = &h->service;
	return 0;
}

static bool can_come_back;

static int do_harm(struct elf_service *s, uint32_t file, enum harm harm, struct buf *out)
{
	struct elf_request request = { .op = ELF_OP_ROWS, .file = file, .addr = 0x10000 + harm, .addr_end = 0x20000 };
	uint64_t addrs[3] = { 0 };

	request.can_come_back = can_come_back;
	request.can_bring = harm != REPLY_NEED_UNASKED;
	if (harm == REPLY_UNTERMINATED)
		request.op = ELF_OP_INFO;
	return elf_service_call(s, &request, STDIN_FILENO, addrs, sizeof(addrs), out);
}

#endif
