/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The in-process form of the ELF service. Keeps the row sources (a file's unwind tables, opened) of the files asked about
 * last; each maps its file, so the number is bounded and the coldest goes first. The memory that reading
 * the files took is given back each few MB.
 */
#include <elf.h>
#include <errno.h>
#include <gelf.h>
#include <libelf.h>
#include <string.h>
#include <sys/resource.h>

#include "agent/helper/elf_service.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/map.h"
#include "base/memory.h"
#include "symbols/elf_image.h"
#include "symbols/sources/symbol_image.h"

enum {
	MAX_SOURCES = 48,
	FORGET_SECONDS = 30,	   /* what was searched for and not needed for so long goes */
	FAULTS_A_REST = 64,	   /* page faults; each maps up to 64 KB of a file (fault_around_bytes) */
	MAX_CRC_BYTES = 128 << 20, /* a checksum over more takes longer than a request may */
};

struct source {
	uint32_t file;
	bool is_open;
	struct row_source *rows; /* once open. NULL: the file has none, @error says why */
	int error;
	struct debug_search search; /* the search for a debug file, until then */
	uint64_t used;		    /* value of the service's clock at the last use */
	bool is_read;		    /* since its pages were given back */
};

struct in_process {
	struct elf_service service;
	struct source sources[MAX_SOURCES];
	uint32_t count;
	uint64_t clock;
	uint64_t faults;    /* of this process when pages were given back */
	uint64_t forget_ns; /* CLOCK_MONOTONIC: when what was searched for is looked at next */
};

static void end_search(struct source *src)
{
	debug_search_fini(&src->search);
	symbol_image_unmap(&src->search.files.program);
}

static void source_close(struct source *src)
{
	row_source_free(src->rows);
	end_search(src);
}

static struct source *coldest_source(struct in_process *s)
{
	struct source *coldest = &s->sources[0];

	if (s->count < MAX_SOURCES)
		return &s->sources[s->count++];
	for (uint32_t i = 1; i < s->count; i++)
		if (s->sources[i].used < coldest->used)
			coldest = &s->sources[i];
	source_close(coldest);
	return coldest;
}

static struct source *known_source(struct in_process *s, uint32_t file)
{
	for (uint32_t i = 0; i < s->count; i++)
		if (s->sources[i].file == file)
			return &s->sources[i];
	return NULL;
}

static void begin_search(struct source *src, int fd)
{
	struct symbol_image program = { 0 };

	if (!symbol_image_map(fd, &program))
		debug_search_start(&src->search, fd, &program, false, MAX_CRC_BYTES);
}

/* Opens the source of the file, or says which file it needs before that. */
static int find_source(struct in_process *s, const struct elf_request *request, int fd, struct buf *reply,
		       struct source **ret)
{
	struct source *src = known_source(s, request->file);
	const struct symbol_image *debug;
	struct debug_need needed;

	if (!src) {
		src = coldest_source(s);
		*src = (struct source){ .file = request->file };
		begin_search(src, fd);
	}
	src->used = ++s->clock;
	src->is_read = true;
	*ret = src;
	if (request->can_bring && debug_search_next(&src->search, &needed)) {
		buf_append(reply, &needed, sizeof(needed));
		return ELF_STATUS_NEED;
	}
	if (!src->is_open) {
		debug = &src->search.files.debug;
		src->error = row_source_new_debug(fd, (void *)(uintptr_t)debug->data, debug->len_bytes, &src->rows);
		src->is_open = true;
		end_search(src);
	}
	return src->error;
}

static void forget_source(struct in_process *s, uint32_t file)
{
	struct source *src = known_source(s, file);

	if (!src)
		return;
	source_close(src);
	*src = s->sources[--s->count];
}

/* --- memory --- */

static void forget_searches(struct in_process *s)
{
	const uint64_t now_ns = clock_mono_ns();

	if (now_ns < s->forget_ns)
		return;
	s->forget_ns = now_ns + FORGET_SECONDS * NSEC_PER_SEC;
	for (uint32_t i = 0; i < s->count; i++)
		if (s->sources[i].rows)
			row_source_forget(s->sources[i].rows);
	memory_give_back();
}

/* Looks after each answer whether reading files has taken memory again. */
static void rest(struct in_process *s)
{
	struct rusage usage;

	forget_searches(s);
	if (getrusage(RUSAGE_SELF, &usage) || (uint64_t)usage.ru_minflt - s->faults < FAULTS_A_REST)
		return;
	s->faults = (uint64_t)usage.ru_minflt;
	for (uint32_t i = 0; i < s->count; i++) {
		if (s->sources[i].is_read && s->sources[i].rows)
			row_source_rest(s->sources[i].rows);
		s->sources[i].is_read = false;
	}
	memory_give_back();
}

/* --- answers --- */

static int take_file(struct in_process *s, const struct elf_request *request, int fd)
{
	struct source *src = known_source(s, request->file);

	return src && request->addr < DEBUG_NEED_MAX
		       ? debug_search_take(&src->search, (enum debug_need_kind)request->addr, fd)
		       : -ENOENT;
}

static int read_segments(int fd, struct elf_info *info)
{
	Elf *elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	size_t count;

	if (!elf || elf_kind(elf) != ELF_K_ELF || elf_getphdrnum(elf, &count)) {
		elf_end(elf);
		return -ENOEXEC;
	}
	for (size_t i = 0; i < count && info->segment_count < ELF_MAX_SEGMENTS; i++) {
		GElf_Phdr ph;

		if (!gelf_getphdr(elf, (int)i, &ph) || ph.p_type != PT_LOAD || !(ph.p_flags & PF_X))
			continue;
		info->segments[info->segment_count++] = (struct elf_segment){ .vaddr = ph.p_vaddr,
									      .offset = ph.p_offset,
									      .size_bytes = ph.p_filesz };
	}
	elf_end(elf);
	return 0;
}

static void read_runtime(int fd, struct runtime_file *ret)
{
	struct symbol_image image = { 0 };
	struct elf_image im;

	if (symbol_image_map(fd, &image))
		return;
	if (!elf_image_open(image.data, image.len_bytes, &im))
		runtime_file_read(&im, ret);
	symbol_image_unmap(&image);
}

static int answer_info(int fd, struct buf *reply)
{
	struct elf_info info;
	int error;

	memset(&info, 0, sizeof(info));
	error = build_ids_read(fd, &info.build_ids);
	if (!error)
		error = read_segments(fd, &info);
	if (!error)
		read_runtime(fd, &info.runtime);
	if (!error)
		buf_append(reply, &info, sizeof(info));
	return error;
}

static int answer_rows(struct source *src, const struct elf_request *request, struct buf *reply)
{
	size_t max = request->addr_end - request->addr, count;
	struct row *rows;
	int error;

	if (request->addr_end <= request->addr || max > 65536)
		return -EBADMSG;
	if (buf_reserve(reply, max * sizeof(struct row)))
		return -ENOMEM;
	rows = (struct row *)(void *)reply->data;
	error = request->at ? rows_build_at(src->rows, request->at, request->addr, request->addr_end, rows, max, &count)
			    : rows_build(src->rows, request->addr, request->addr_end, rows, max, &count);
	if (error)
		return error;
	reply->len = count * sizeof(struct row);
	return 0;
}

struct eval_memory {
	const uint8_t *data;
	uint64_t addr;
	size_t len;
};

static int read_stack(void *arg, uint64_t addr, void *dst, size_t len)
{
	const struct eval_memory *m = arg;
	uint64_t off = addr - m->addr;

	if (off > m->len || len > m->len - off)
		return -EFAULT;
	memcpy(dst, m->data + off, len);
	return 0;
}

static int answer_eval(struct source *src, const struct elf_request *request, const void *payload, size_t len,
		       struct buf *reply)
{
	const struct elf_eval *eval = payload;
	struct eval_memory memory;
	struct row_regs out;
	int status;

	if (len < sizeof(*eval))
		return -EBADMSG;
	memory = (struct eval_memory){ (const uint8_t *)(eval + 1), eval->stack_addr, len - sizeof(*eval) };
	memset(&out, 0, sizeof(out));
	status = row_eval(src->rows, request->addr, &eval->regs, read_stack, &memory, &out);
	if (!status)
		buf_append(reply, &out, sizeof(out));
	return status;
}

static int answer_return(struct source *src, uint64_t addr)
{
	struct row row;
	size_t count;
	int error;

	if (row_is_return_address(src->rows, addr))
		return 0;
	error = rows_build(src->rows, addr - 1, addr, &row, 1, &count);
	return error ? error : count && !row.is_followed ? -ENOENT : 1;
}

static int answer_holds(const struct elf_request *request, int fd, const void *payload, size_t len)
{
	AUTO_FREE void *bytes = malloc(len ? len : 1);

	if (!bytes)
		return -ENOMEM;
	return pread(fd, bytes, len, (off_t)request->addr) == (ssize_t)len && !memcmp(bytes, payload, len) ? 0 : -ENOENT;
}

static int in_process_call(struct elf_service *service, const struct elf_request *request, int fd, const void *payload,
			   size_t payload_bytes, struct buf *reply)
{
	struct in_process *s = (struct in_process *)service;
	struct source *src = NULL;
	int status = 0;

	buf_reset(reply);
	if (request->op == ELF_OP_ROWS || request->op == ELF_OP_EVAL || request->op == ELF_OP_RETURN)
		status = find_source(s, request, fd, reply, &src);
	if (status)
		return status;
	switch ((enum elf_op)request->op) {
	case ELF_OP_INFO:
		status = answer_info(fd, reply);
		break;
	case ELF_OP_ROWS:
		status = answer_rows(src, request, reply);
		break;
	case ELF_OP_EVAL:
		status = answer_eval(src, request, payload, payload_bytes, reply);
		break;
	case ELF_OP_RETURN:
		status = answer_return(src, request->addr);
		break;
	case ELF_OP_HOLDS:
		status = answer_holds(request, fd, payload, payload_bytes);
		break;
	case ELF_OP_FORGET:
		forget_source(s, request->file);
		break;
	case ELF_OP_GIVE:
		status = take_file(s, request, fd);
		break;
	case ELF_OP_CODE:
	default:
		return -EBADMSG;
	}
	if (src)
		rest(s);
	return !status && reply->failed ? -ENOMEM : status;
}

static void in_process_free(struct elf_service *service)
{
	struct in_process *s = (struct in_process *)service;

	for (uint32_t i = 0; i < s->count; i++)
		source_close(&s->sources[i]);
	free(s);
}

static const struct elf_service_ops in_process_ops = { .call = in_process_call, .free = in_process_free };

int elf_service_new(struct elf_service **ret)
{
	struct in_process *s;

	if (elf_version(EV_CURRENT) == EV_NONE)
		return -ENOTSUP;
	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->service.ops = &in_process_ops;
	*ret = &s->service;
	return 0;
}
