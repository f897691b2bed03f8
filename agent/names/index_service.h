/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The form of the ELF service that makes indexes of names (symbols/index/index.h), one file in its life: it is asked to make
 * one, says what further files it needs, is given them or hears that there are none, and is asked again. The service reads
 * everything that the file's names can come from, so it runs in a process of its own (agent/names/index_helper.h).
 */
#ifndef HEARTH_AGENT_NAMES_INDEX_SERVICE_H
#define HEARTH_AGENT_NAMES_INDEX_SERVICE_H

#include "agent/helper/elf_service.h"

enum index_op {		       /* op of struct elf_request, in place of enum elf_op */
		INDEX_OP_OPEN, /* fd: the program -> ELF_STATUS_NEED, or struct index_opened: everything is there */
		INDEX_OP_GIVE, /* as ELF_OP_GIVE */
		INDEX_OP_MAKE, /* fd: an empty file, for the index; addr: enum index_depth; payload: the id for the index's
				  head, with its end -> struct index_made. May be asked again, with another depth */
};

enum index_depth {
	INDEX_TABLES, /* functions' names out of tables of symbols, and Go's: quick */
	INDEX_FULL,   /* everything */
};

struct index_opened {
	uint64_t dwarf_bytes; /* size of the debug sections, as they stand in the files */
};

struct index_made {
	uint32_t best;	    /* enum code_source */
	uint32_t is_broken; /* bool: something in the files was broken */
	uint32_t is_cut;    /* bool: everything took more memory than there is; these are the names of INDEX_TABLES */
	uint32_t pad;
};

int index_service_new(struct elf_service **ret);

#endif
