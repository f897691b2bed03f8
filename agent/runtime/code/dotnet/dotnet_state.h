/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of the reader of .NET's code (CoreCLR), for its own files. The runtime keeps a map from addresses to sections of
 * memory: heaps of compiled code, images that were compiled ahead (ReadyToRun), and stubs. All compiled code has entries in
 * the form of Windows, {begin, end, unwind information}, one for each method and for each of its handlers of exceptions,
 * which are functions of their own: a block is such an entry.
 *
 * Layouts are of runtime/src/coreclr/vm (of .NET Core 3.1, coreclr/src/vm): codeman.h, nibblemapmacros.h, method.hpp,
 * methodtable.h, peimage.h, readytoruninfo.h; sections are alike in .NET 8 to 10, and code heaps in all, the rest is a table
 * by release (dotnet_layouts.c).
 */
#ifndef HEARTH_AGENT_RUNTIME_CODE_DOTNET_STATE_H
#define HEARTH_AGENT_RUNTIME_CODE_DOTNET_STATE_H

#include <errno.h>

#include "agent/runtime/code/code_files.h"
#include "agent/runtime/code/code_reader.h"

enum dotnet_kind {
	DOTNET_METHOD,	/* an entry of a compiled method */
	DOTNET_STUB,	/* code of the runtime that ends in a jump, and has no frame */
	DOTNET_NO_NAME, /* an entry of an image for which the runtime has no method */
};

/* Words of a block. Where the method's code begins, handlers' included; its debug information, or if it was compiled ahead
 * the image and the number of its entry there. */
enum { DOTNET_OWN_METHOD, DOTNET_OWN_UNWIND, DOTNET_OWN_CODE, DOTNET_OWN_DEBUG, DOTNET_OWN_IMAGE, DOTNET_OWN_ENTRY };

enum { DOTNET_MAX_NAME = 1024 };

/* Bytes into structures, and forms that differ by release. */
struct dotnet_layout {
	uint8_t release;	  /* of .NET */
	bool has_list;		  /* sections are a list by falling address; else a tree by the address's bits */
	bool has_flags;		  /* a method's debug information begins with a byte that says what stands before bounds */
	bool is_packed;		  /* bounds of methods are bits, not nibbles */
	bool has_slots;		  /* a type's table has its module in another place when it was loaded for another one */
	uint8_t token_bits;	  /* of a method's number, those in the method; the others are in its chunk */
	uint8_t shared_bit;	  /* has_slots: the word with a type's class is the table that instances share, plus this */
	uint16_t module_file;	  /* Module: PEAssembly, if its image may be known by that alone; 0: none */
	uint16_t module_base;	  /* Module: address of its image; 0: none */
	uint16_t module_ready;	  /* Module: ReadyToRunInfo */
	uint16_t image_flat;	  /* PEImage: its layout as the file is ... */
	uint16_t image_loaded;	  /* ... and as sections, if it has that */
	uint16_t ready_functions; /* ReadyToRunInfo: its entries; their number follows */
	uint16_t ready_methods;	  /* ReadyToRunInfo: the buckets of its map from entry points to methods */
	uint16_t dynamic_name;	  /* DynamicMethodDesc: its name */
	uint16_t patch_bytes;	  /* PatchpointInfo, without what it has of each local variable */
};

struct dotnet {
	uint64_t map;	 /* has_list: where the first section's address stands; else the tree */
	uint32_t layout; /* in the table of layouts */
	uint32_t given_cnt;
	struct code_range given[CODE_RANGES]; /* memory without a file, where helpers of the runtime are */
};

/* --- layouts: dotnet_layouts.c --- */

/* The number of the layout of the release with @facts, or -ENOTSUP. */
int dotnet_layout_find(const struct code_facts *facts);

const struct dotnet_layout *dotnet_layout_of(const struct dotnet *s);

/* The address of the image of @module; 0: it has none. */
uint64_t dotnet_module_base(const struct dotnet *s, struct code_memory *m, uint64_t module);

/* --- sections: dotnet_sections.c --- */

enum {
	DOTNET_SECTION_HEAP = 2, /* of compiled code */
	DOTNET_SECTION_STUBS = 4,
};

struct dotnet_section {
	uint64_t start, end, flags, manager;
	uint64_t module, heap; /* of an image; of a heap */
};

/* Where the sections of the process are, by the file's @facts. 0 in *@ret: not there yet. 0; or as code_read(). */
int dotnet_sections_open(const struct dotnet_layout *l, struct code_memory *m, const struct code_facts *facts, uint64_t bias,
			 uint64_t *ret);

/* 0; -ENOENT: there is no section at @pc; -EBADMSG: nothing of sense is; -EDQUOT. */
int dotnet_section_find(const struct dotnet *s, struct code_memory *m, uint64_t pc, struct dotnet_section *ret);

/* Is there a section in @r? */
bool dotnet_section_is_in(const struct dotnet *s, struct code_memory *m, const struct code_range *r);

/* --- blocks --- */

/* What an error of @m means: @otherwise, or that the budget is spent. */
static inline int dotnet_unreadable(const struct code_memory *m, int otherwise)
{
	return m->is_spent ? -EDQUOT : otherwise;
}

int dotnet_block(void *state, struct code_memory *m, uint64_t pc, struct code_block *ret);
int dotnet_rows(void *state, struct code_memory *m, const struct code_block *b, struct row **ret, size_t *count_ret);
int dotnet_names(void *state, struct code_memory *m, const struct code_block *b, struct block_names *n);

/* --- images: dotnet_image.c --- */

struct dotnet_image {
	struct code_memory *m;
	uint64_t base, head;  /* head: of the PE file */
	uint64_t directories; /* the first of the head's; 8 bytes each: address and length */
	uint64_t clr, root;   /* head of .NET's part, and its metadata */
	bool is_flat;	      /* mapped as the file is */
};

/* 0; -EBADMSG: there is none at @base; or as code_read(). */
int dotnet_image_open(struct code_memory *m, uint64_t base, struct dotnet_image *ret);

/* The address of the @rva, which is what images call their places by. */
uint64_t dotnet_image_at(const struct dotnet_image *im, uint32_t rva);

/* The name and the id of the portable PDB that was made with the image. 0; -ENOENT: it has none; or as code_read(). */
int dotnet_image_pdb(const struct dotnet_image *im, struct code_need *ret);

/* A portable PDB in the image itself, packed by deflate. */
struct dotnet_embedded {
	uint64_t at;
	uint32_t packed_bytes, bytes;
};

/* 0; -ENOENT: it has none; or as code_read(). */
int dotnet_image_embedded(const struct dotnet_image *im, struct dotnet_embedded *ret);

/* --- metadata (ECMA-335, partition II): dotnet_metadata.c --- */

/* Puts the name of the method with the number @method (its row, from 1) of the image at @base into @text, as a person
 * writes it: Namespace.Type.Method. 0; -EBADMSG: there is none; or as code_read(). */
int dotnet_metadata_name(struct code_memory *m, uint64_t base, uint32_t method, char text[static DOTNET_MAX_NAME]);

/* The stream @name of the metadata at @root; 0: there is none. */
uint64_t dotnet_metadata_stream(struct code_memory *m, uint64_t root, const char *name);

/* --- places of native code in a method's instructions (IL): dotnet_bounds.c --- */

enum {
	DOTNET_NO_IL = -1, /* code that the compiler made up */
	DOTNET_PROLOGUE = -2,
	DOTNET_EPILOGUE = -3,
};

/* From @native on, an offset in the method's code, code is of the instructions from @il on, an offset or one of the above.
 */
struct dotnet_bound {
	uint32_t native;
	int32_t il;
};

struct dotnet_bounds {
	struct dotnet_bound *bounds; /* owned; by rising native offset */
	uint32_t count;
};

/* Reads those of the method of @b. The caller frees ret->bounds, also on failure. 0; -ENODATA: there are none; -EBADMSG; or
 * as code_read(); -ENOMEM. */
int dotnet_bounds_read(const struct dotnet *s, struct code_memory *m, const struct code_block *b, struct dotnet_bounds *ret);

/* --- portable PDBs: dotnet_pdb.c --- */

/* A sequence point: instructions from @il on are of @line. */
struct dotnet_point {
	uint32_t il, line; /* 0: of none ("hidden") */
	uint32_t document; /* its row */
};

struct dotnet_points {
	struct dotnet_point *points; /* owned; by rising il */
	uint32_t count;
};

struct dotnet_pdb {
	struct code_memory *m; /* the file's */
	uint64_t blobs, documents, methods;
	uint32_t document_cnt, method_cnt;
	uint8_t heaps; /* as in metadata */
};

enum { DOTNET_MAX_PATH = 1024 };

/* Opens the PDB that @m reads. 0; -ESTALE: it is another one than that with the @id; -EBADMSG: it is none; or as
 * code_read().
 */
int dotnet_pdb_open(struct code_memory *m, const uint8_t id[static CODE_NEED_ID], struct dotnet_pdb *ret);

/* Reads the points of the method number @method. The caller frees ret->points, also on failure. 0; -ENODATA: it has none;
 * -EBADMSG; or as code_read(); -ENOMEM. */
int dotnet_pdb_points(const struct dotnet_pdb *p, uint32_t method, struct dotnet_points *ret);

/* Puts the path of the document number @document into @path. 0; -EBADMSG; or as code_read(). */
int dotnet_pdb_document(const struct dotnet_pdb *p, uint32_t document, char path[static DOTNET_MAX_PATH]);

/* --- portable PDBs in images: dotnet_embedded.c --- */

/* Unpacks the one in @im and keeps it in @files as the image's file. 0; -ENOENT: there is none; -EBADMSG; -E2BIG: it is too
 * large; or as code_read(); -ENOMEM. */
int dotnet_embedded_keep(const struct dotnet_image *im, struct code_files *files);

/* --- lines: dotnet_lines.c --- */

/* Tells @n the places of the block @b of the method called @name, number @method of the image at @base, with files and
 * lines. 0; another -errno: lines are not known, and nothing was told. */
int dotnet_lines(const struct dotnet *s, struct code_memory *m, const struct code_block *b, uint64_t base, uint32_t method,
		 const char *name, struct block_names *n);

/* --- names as people write them: dotnet_text.c --- */

enum { DOTNET_MAX_DEPTH = 8, DOTNET_MAX_PART = 256 };

struct dotnet_text {
	char namespace[DOTNET_MAX_PART];
	char types[DOTNET_MAX_DEPTH][DOTNET_MAX_PART]; /* the outermost first, with their parameters */
	uint32_t depth;
	char method[DOTNET_MAX_PART];
};

/* Writes Namespace.Type.Method, with what compilers made of lambdas, local functions, iterators and async methods named
 * after the function that they stand in. */
void dotnet_text_write(const struct dotnet_text *t, char text[static DOTNET_MAX_NAME]);

#endif
