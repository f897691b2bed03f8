/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes an index from a program and its debug files (symbols/find/debug_search.h). Files are mapped whole. They are read
 * twice only if names out of everything take too much memory, and names out of tables must do.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/names/index_service.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "symbols/elf_image.h"
#include "symbols/code/source.h"
#include "symbols/sources/symbol_image.h"
#include "symbols/index/index.h"

struct index_service {
	struct elf_service service;
	bool is_open;
	struct symbol_image program;
	struct debug_search search;
};

static uint64_t debug_section_bytes(const struct symbol_image *image)
{
	struct elf_image im;
	Elf64_Shdr section, names;
	uint64_t sum = 0;

	if (!image->data || elf_image_open(image->data, image->len_bytes, &im) ||
	    !elf_image_section(&im, im.name_section, &names))
		return 0;
	for (uint32_t i = 0; elf_image_section(&im, i, &section); i++) {
		size_t len, name_len;
		const char *text = (const char *)elf_image_bytes(&im, &names, &name_len);

		if (text && section.sh_name < name_len && name_len - section.sh_name > 7 &&
		    (!memcmp(text + section.sh_name, ".debug_", 7) || !memcmp(text + section.sh_name, ".zdebug", 7)) &&
		    elf_image_bytes(&im, &section, &len))
			sum += len;
	}
	return sum;
}

static int write_index(const struct symbol_files *files, const struct code_names *names, const char *id,
		       const struct index_made *made, int fd)
{
	AUTO(buf_fini) struct buf out = BUF_EMPTY;
	struct symbol_index_head head = { .best = made->best,
					  .is_broken = made->is_broken,
					  .had_debug = files->debug.data,
					  .had_common = files->common.data,
					  .had_package = files->package.data,
					  .has_ranges = files->with_ranges };
	int error;

	memcpy(head.build_id, id, strlen(id) + 1);
	error = symbol_index_write(names, &head, &out);
	return error ? error : io_write_all(fd, out.data, out.len);
}

static int make(struct index_service *s, enum index_depth depth, const char *id, int fd, struct index_made *made)
{
	struct code_names *names = code_names_new(NULL, 0);
	struct symbol_sources_result result;
	int error;

	if (!names)
		return -ENOMEM;
	s->search.files.with_ranges = true;
	if (depth == INDEX_FULL)
		error = symbol_sources_read(&s->search.files, names, &result);
	else
		error = symbol_sources_read_quick(&s->search.files, names, &result);
	if (!error) {
		made->best = result.best;
		made->is_broken = result.is_broken;
		error = write_index(&s->search.files, names, id, made, fd);
	}
	code_names_free(names);
	return error;
}

static bool is_out_of_memory(int error)
{
	return error == -ENOMEM || error == -E2BIG;
}

static int answer_make(struct index_service *s, const struct elf_request *request, int fd, const char *id, size_t id_bytes,
		       struct buf *reply)
{
	struct index_made made = { 0 };
	int error;

	if (!s->is_open || !id_bytes || id_bytes > SYMBOL_INDEX_ID_BYTES + 1 || id[id_bytes - 1] ||
	    request->addr > INDEX_FULL)
		return -EBADMSG;
	error = make(s, request->addr, id, fd, &made);
	/* On these errors nothing was written to @fd, so a smaller index can be. */
	if (is_out_of_memory(error) && request->addr == INDEX_FULL) {
		made.is_cut = true;
		error = make(s, INDEX_TABLES, id, fd, &made);
	}
	if (!error)
		buf_append(reply, &made, sizeof(made));
	return error;
}

static int answer_open(struct index_service *s, const struct elf_request *request, int fd, struct buf *reply)
{
	struct index_opened opened;
	struct debug_need needed;
	int error;

	if (!s->is_open) {
		error = symbol_image_map(fd, &s->program);
		if (error)
			return error;
		s->is_open = true;
		debug_search_start(&s->search, fd, &s->program, true, UINT64_MAX);
	}
	if (request->can_bring && debug_search_next(&s->search, &needed)) {
		buf_append(reply, &needed, sizeof(needed));
		return ELF_STATUS_NEED;
	}
	opened.dwarf_bytes = debug_section_bytes(&s->search.files.program) + debug_section_bytes(&s->search.files.debug) +
			     debug_section_bytes(&s->search.files.common) + debug_section_bytes(&s->search.files.package);
	buf_append(reply, &opened, sizeof(opened));
	return 0;
}

static int index_call(struct elf_service *service, const struct elf_request *request, int fd, const void *payload,
		      size_t payload_bytes, struct buf *reply)
{
	struct index_service *s = (struct index_service *)service;
	int status = -EBADMSG;

	buf_reset(reply);
	switch ((enum index_op)request->op) {
	case INDEX_OP_OPEN:
		status = answer_open(s, request, fd, reply);
		break;
	case INDEX_OP_GIVE:
		return request->addr < DEBUG_NEED_MAX ? debug_search_take(&s->search, request->addr, fd) : -ENOENT;
	case INDEX_OP_MAKE:
		status = answer_make(s, request, fd, payload, payload_bytes, reply);
		break;
	}
	return status >= 0 && reply->failed ? -ENOMEM : status;
}

static void index_free(struct elf_service *service)
{
	struct index_service *s = (struct index_service *)service;

	debug_search_fini(&s->search);
	symbol_image_unmap(&s->program);
	free(s);
}

static const struct elf_service_ops index_ops = { .call = index_call, .free = index_free };

int index_service_new(struct elf_service **ret)
{
	struct index_service *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->service.ops = &index_ops;
	*ret = &s->service;
	return 0;
}
