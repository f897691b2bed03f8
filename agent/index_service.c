/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a program and its debug files to an index. Files that are given are believed by what stands in them: the build id, a
 * checksum; of a .dwp file its units' own ids (symbols/source_dwarf.c). Maps files whole; nothing is read twice but when
 * names out of everything take too much memory, and names out of tables must do.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/elf_debug.h"
#include "agent/index_service.h"
#include "base/cleanup.h"
#include "base/parse.h"
#include "symbols/elf_image.h"
#include "symbols/source.h"
#include "symbols/symbol_image.h"
#include "symbols/symbol_index.h"

enum { WANTS_COMMON = 1u << ELF_NEED_COMMON, WANTS_PACKAGE = 1u << ELF_NEED_PACKAGE };

struct index_service {
	struct elf_service service;
	bool is_open;
	struct symbol_files files; /* .debug is that of @debug */
	struct elf_debug debug;
	bool has_looked; /* for what follows, in the debug file */
	uint32_t wanted; /* bits of enum elf_need besides those of @debug */
	char common_id[65];
	char common_path[ELF_NEED_NAME_BYTES]; /* below .dwz */
};

/* --- further files --- */

/* .gnu_debugaltlink: a path, then the build id of that file. Only what lies in a folder called .dwz is looked for. */
static void read_common_link(struct index_service *s, const struct elf_image *im)
{
	Elf64_Shdr section;
	const char *path, *below;
	size_t len, id_len;

	if (!elf_image_find(im, ".gnu_debugaltlink", &section))
		return;
	path = (const char *)elf_image_bytes(im, &section, &len);
	if (!path || !memchr(path, '\0', len))
		return;
	id_len = len - strlen(path) - 1;
	below = strstr(path, ".dwz/");
	if (!below || !id_len || id_len > sizeof(s->common_id) / 2 || strlen(below + 5) >= sizeof(s->common_path))
		return;
	hex_encode(s->common_id, (const uint8_t *)path + strlen(path) + 1, id_len);
	strcpy(s->common_path, below + 5);
	s->wanted |= WANTS_COMMON;
}

/* Once the debug file is there, or is known not to be. */
static void look_further(struct index_service *s)
{
	struct elf_image im;
	Elf64_Shdr section;

	s->has_looked = true;
	s->files.debug = (struct symbol_image){ s->debug.map, s->debug.map_bytes };
	if (elf_image_open(s->files.debug.data ? s->files.debug.data : s->files.program.data,
			   s->files.debug.data ? s->files.debug.len_bytes : s->files.program.len_bytes, &im))
		return;
	read_common_link(s, &im);
	if (elf_image_find(&im, ".debug_addr", &section)) /* split DWARF has one */
		s->wanted |= WANTS_PACKAGE;
}

static bool needs(struct index_service *s, struct elf_needed *ret)
{
	if (elf_debug_next(&s->debug, ret))
		return true;
	if (!s->has_looked)
		look_further(s);
	memset(ret, 0, sizeof(*ret));
	if (s->wanted & WANTS_COMMON) {
		ret->need = ELF_NEED_COMMON;
		memcpy(ret->name, s->common_path, sizeof(ret->name));
		if (elf_needed_is_sound(ret))
			return true;
		s->wanted &= ~(uint32_t)WANTS_COMMON;
		memset(ret, 0, sizeof(*ret));
	}
	ret->need = ELF_NEED_PACKAGE;
	return s->wanted & WANTS_PACKAGE;
}

static int take_common(struct index_service *s, int fd)
{
	struct build_ids ids;

	if (build_ids_read(fd, &ids) || strcmp(ids.gnu, s->common_id) != 0)
		return -ENOENT;
	return symbol_image_map(fd, &s->files.common) ? -ENOENT : 0;
}

static int take(struct index_service *s, uint64_t need, int fd)
{
	int error = 0;

	if (need == ELF_NEED_BUILD_ID || need == ELF_NEED_DEBUGLINK)
		return elf_debug_take(&s->debug, (enum elf_need)need, fd);
	if (need >= ELF_NEED_MAX || !(s->wanted >> need & 1))
		return -ENOENT;
	if (fd >= 0 && need == ELF_NEED_COMMON)
		error = take_common(s, fd);
	else if (fd >= 0)
		error = symbol_image_map(fd, &s->files.package) ? -ENOENT : 0;
	if (!error)
		s->wanted &= ~(1u << need);
	return error;
}

/* --- the index --- */

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

static int write_whole(int fd, const uint8_t *data, size_t len)
{
	while (len) {
		ssize_t n = write(fd, data, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -EIO;
		data += n;
		len -= (size_t)n;
	}
	return 0;
}

static int write_index(const struct code_names *names, const char *id, const struct index_made *made, int fd)
{
	AUTO(buf_fini) struct buf out = BUF_EMPTY;
	struct symbol_index_head head = { .best = made->best, .is_broken = made->is_broken };
	int error;

	memcpy(head.build_id, id, strlen(id) + 1);
	error = symbol_index_write(names, &head, &out);
	return error ? error : write_whole(fd, out.data, out.len);
}

static int make(struct index_service *s, enum index_depth depth, const char *id, int fd, struct index_made *made)
{
	struct code_names *names = code_names_new(NULL, 0);
	struct symbol_sources_result result;
	int error;

	if (!names)
		return -ENOMEM;
	if (depth == INDEX_FULL)
		error = symbol_sources_read(&s->files, names, &result);
	else
		error = symbol_sources_read_quick(&s->files, names, &result);
	if (!error) {
		made->best = result.best;
		made->is_broken = result.is_broken;
		error = write_index(names, id, made, fd);
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
	/* What was written of an index that came to its end is less than the whole: nothing is, on this error. */
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
	struct elf_needed needed;
	int error;

	if (!s->is_open) {
		error = symbol_image_map(fd, &s->files.program);
		if (error)
			return error;
		s->is_open = true;
		elf_debug_read(&s->debug, fd, "info");
	}
	if (request->can_bring && needs(s, &needed)) {
		buf_append(reply, &needed, sizeof(needed));
		return ELF_STATUS_NEED;
	}
	opened.dwarf_bytes = debug_section_bytes(&s->files.program) + debug_section_bytes(&s->files.debug) +
			     debug_section_bytes(&s->files.common) + debug_section_bytes(&s->files.package);
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
		return take(s, request->addr, fd);
	case INDEX_OP_MAKE:
		status = answer_make(s, request, fd, payload, payload_bytes, reply);
		break;
	}
	return status >= 0 && reply->failed ? -ENOMEM : status;
}

static void index_free(struct elf_service *service)
{
	struct index_service *s = (struct index_service *)service;

	elf_debug_drop(&s->debug);
	symbol_image_unmap(&s->files.program);
	symbol_image_unmap(&s->files.common);
	symbol_image_unmap(&s->files.package);
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
