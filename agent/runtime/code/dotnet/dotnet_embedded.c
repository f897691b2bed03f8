/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Portable PDBs that compilers put into the image ("Embedded Portable PDB Debug Directory Entry", docs/design/specs/
 * PE-COFF.md of dotnet/runtime): unpacked once, and kept as if they were files beside it. No state.
 */
#include <errno.h>
#include <stdlib.h>

#include "agent/runtime/code/dotnet/dotnet_state.h"
#include "base/cleanup.h"
#include "base/pack/deflate.h"

/* Packed, so that the rest of the request has the other half of its budget. */
enum { MAX_PACKED_BYTES = CODE_MAX_BYTES / 2 };

int dotnet_embedded_keep(const struct dotnet_image *im, struct code_files *files)
{
	AUTO_FREE uint8_t *packed = NULL;
	struct dotnet_embedded e;
	int error = dotnet_image_embedded(im, &e);
	uint8_t *pdb;

	if (error)
		return error;
	if (e.packed_bytes > MAX_PACKED_BYTES || e.packed_bytes > im->m->bytes_left / 2 || !e.bytes ||
	    e.bytes > CODE_FILES_BYTES)
		return -E2BIG;
	packed = malloc(e.packed_bytes);
	error = packed ? code_read(im->m, e.at, packed, e.packed_bytes) : -ENOMEM;
	if (error)
		return error;
	pdb = malloc(e.bytes);
	error = pdb ? deflate_unpack(packed, e.packed_bytes, pdb, e.bytes) : -ENOMEM;
	if (!error)
		return code_files_keep(files, im->base, pdb, e.bytes);
	free(pdb);
	return error;
}
