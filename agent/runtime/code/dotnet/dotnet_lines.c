/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files and lines of a method's code: what the compiler says of native code (dotnet_bounds.c) and the PDB of the method's
 * instructions (dotnet_pdb.c). Each piece of code between two bounds has the line of the last sequence point at or before
 * its instructions. Code that the compiler made up, epilogues and what a PDB hides have the method's file and no line. No
 * state.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/runtime/code/dotnet/dotnet_state.h"
#include "base/cleanup.h"
#include "base/search.h"

struct lines {
	const struct dotnet_pdb *pdb;
	const char *name;
	struct block_names *n;
	struct dotnet_points points;
	struct dotnet_bounds bounds;
	uint32_t document; /* the function is of */
	uint16_t function;
};

static void lines_fini(struct lines *l)
{
	free(l->points.points);
	free(l->bounds.bounds);
}

static bool use_document(struct lines *l, uint32_t document)
{
	char path[DOTNET_MAX_PATH];

	if (l->document == document)
		return true;
	if (dotnet_pdb_document(l->pdb, document, path))
		return false;
	l->document = document;
	l->function = block_names_function(l->n, l->name, strlen(l->name), path, strlen(path), 0);
	return true;
}

/* The scope of instructions from @il on. */
static uint16_t scope_of(struct lines *l, int32_t il)
{
	const struct dotnet_point *first = &l->points.points[0], *point = first;
	uint32_t behind = 0, line = 0;

	if (il == DOTNET_PROLOGUE)
		il = 0;
	if (il >= 0)
		behind = search_first(at, l->points.count, l->points.points[at].il > (uint32_t)il);
	if (behind) {
		point = &l->points.points[behind - 1];
		line = point->line;
	}
	if (!use_document(l, point->document))
		line = 0; /* the name is right, whatever file it came with */
	return block_names_scope(l->n, BLOCK_NAMES_NONE, l->function, line);
}

/* Bounds are of the method's code, of which the block is a part. */
static void tell(struct lines *l, const struct code_block *b)
{
	uint64_t off = b->start - b->own[DOTNET_OWN_CODE], end = b->end - b->own[DOTNET_OWN_CODE];
	int32_t before = DOTNET_NO_IL;
	uint32_t i = 0;

	for (; i < l->bounds.count && l->bounds.bounds[i].native <= off; i++)
		before = l->bounds.bounds[i].il;
	block_names_place(l->n, 0, scope_of(l, before), 0);
	for (; i < l->bounds.count && l->bounds.bounds[i].native < end; i++)
		block_names_place(l->n, (uint32_t)(l->bounds.bounds[i].native - off), scope_of(l, l->bounds.bounds[i].il),
				  0);
}

int dotnet_lines(const struct dotnet *s, struct code_memory *m, const struct code_block *b, uint64_t base, uint32_t method,
		 const char *name, struct block_names *n)
{
	AUTO(lines_fini) struct lines l = { .name = name, .n = n };
	struct dotnet_image im;
	struct code_memory file;
	struct code_need need;
	struct dotnet_pdb pdb;
	int error;

	if (!m->files || b->start < b->own[DOTNET_OWN_CODE])
		return -ENODATA;
	error = dotnet_image_open(m, base, &im);
	if (!error)
		error = dotnet_image_pdb(&im, &need);
	if (!error && !code_files_has(m->files, base)) /* where this does not keep one, a file may be beside the image */
		(void)dotnet_embedded_keep(&im, m->files);
	if (!error)
		error = code_files_find(m, &need, &file);
	if (!error)
		error = dotnet_pdb_open(&file, need.id, &pdb);
	l.pdb = &pdb;
	if (!error)
		error = dotnet_pdb_points(&pdb, method, &l.points);
	if (!error)
		error = dotnet_bounds_read(s, m, b, &l.bounds);
	if (!error && !use_document(&l, l.points.points[0].document))
		error = -EBADMSG;
	if (!error)
		tell(&l, b);
	return error;
}
