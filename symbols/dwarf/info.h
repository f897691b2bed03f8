/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A flat walk over the debugging information entries (DIEs) of one file's .debug_info, DWARF 2 to 5. Abbreviations are
 * compiled into runs of fixed size, so that an entry nobody asks about costs an addition or two; a tree of libdw's cursors
 * costs twelve times that. Everything read is hostile: nothing is followed without a look at its bounds, and a budget ends
 * what goes round in circles. Leaf modules (info.c the units and the walk, abbrev.c, values.c): no global
 * state, no logging; the sections' memory is borrowed.
 */
#ifndef HEARTH_SYMBOLS_DWARF_INFO_H
#define HEARTH_SYMBOLS_DWARF_INFO_H

#include "symbols/dwarf/file.h"

/* The attributes that are read of an entry; all others are skipped. X(name, DWARF's name) */
#define DWARF_ATTRIBUTES(X)                         \
	X(LOW_PC, DW_AT_low_pc)                     \
	X(HIGH_PC, DW_AT_high_pc)                   \
	X(RANGE_LIST, DW_AT_ranges)                 \
	X(NAME, DW_AT_name)                         \
	X(LINKAGE_NAME, DW_AT_linkage_name)         \
	X(ORIGIN, DW_AT_abstract_origin)            \
	X(SPECIFICATION, DW_AT_specification)       \
	X(EXTERNAL, DW_AT_external)                 \
	X(DECL_LINE, DW_AT_decl_line)               \
	X(CALL_FILE, DW_AT_call_file)               \
	X(CALL_LINE, DW_AT_call_line)               \
	X(CALL_COLUMN, DW_AT_call_column)           \
	X(STMT_LIST, DW_AT_stmt_list)               \
	X(COMP_DIR, DW_AT_comp_dir)                 \
	X(DWO_NAME, DW_AT_dwo_name)                 \
	X(DWO_ID, DW_AT_GNU_dwo_id)                 \
	X(ADDR_BASE, DW_AT_addr_base)               \
	X(STR_OFFSETS_BASE, DW_AT_str_offsets_base) \
	X(RNGLISTS_BASE, DW_AT_rnglists_base)       \
	X(GNU_RANGES_BASE, DW_AT_GNU_ranges_base)

#define X(name, dwarf_name) DWARF_AT_##name,
enum dwarf_attribute { DWARF_ATTRIBUTES(X) DWARF_AT_MAX };
#undef X

struct dwarf_value {
	uint64_t raw;
	uint16_t form; /* DW_FORM_*: what @raw means */
};

struct dwarf_die {
	uint64_t off;	  /* in .debug_info */
	uint32_t present; /* bits of enum dwarf_attribute */
	uint32_t depth;	  /* 0: the unit's own */
	/* In a walk: entries shown before at this depth or deeper have ended, as have all without children. */
	uint32_t ended_depth;
	uint16_t tag;
	bool has_children;
	struct dwarf_value values[DWARF_AT_MAX];
};

static inline bool dwarf_has(const struct dwarf_die *die, enum dwarf_attribute attribute)
{
	return die->present >> attribute & 1;
}

struct dwarf_unit {
	uint64_t off, end; /* in .debug_info */
	uint64_t first;	   /* offset of its own entry */
	uint64_t abbrev;   /* offset in .debug_abbrev */
	uint64_t dwo_id;   /* of a skeleton or split unit, else 0 */
	uint16_t version;
	uint8_t type; /* DW_UT_*; DW_UT_compile before version 5 */
	uint8_t address_bytes, offset_bytes;
	bool is_read; /* its own entry has been seen: what follows is set */
	bool is_broken;
	uint64_t low_pc;    /* base of its ranges, 0 when it has none */
	uint64_t stmt_list; /* UINT64_MAX: none */
	uint64_t addr_base, str_offsets_base, rnglists_base, gnu_ranges_base;
	struct dwarf_value comp_dir, dwo_name; /* form 0: none */
};

struct dwarf_abbrevs;
enum { DWARF_ABBREV_SLOTS = 256 };

/* The reader of one .debug_info; the fields are private to the reader's files. */
struct dwarf_info {
	const struct dwarf_bytes *sections; /* DWARF_SECTION_MAX of them, borrowed */
	const struct dwarf_info *common;    /* what dwz moved away, NULL: nothing */
	struct dwarf_budget *budget;	    /* borrowed */
	struct dwarf_unit *units;	    /* owned, by rising offset */
	size_t unit_cnt;
	bool is_broken;					   /* units were left out */
	struct dwarf_abbrevs *abbrevs[DWARF_ABBREV_SLOTS]; /* owned; the latest tables, by offset */
};

/* Finds the units. 0, or -ENOMEM; what is broken has been left out. */
int dwarf_info_open(struct dwarf_info *info, const struct dwarf_bytes sections[DWARF_SECTION_MAX],
		    struct dwarf_budget *budget);
void dwarf_info_close(struct dwarf_info *info);

/* The unit that the entry at @off belongs to, or NULL. */
struct dwarf_unit *dwarf_unit_at(struct dwarf_info *info, uint64_t off);

/* Reads the unit's own entry into @die and @unit. To be called before any other use of the unit. 0, -EBADMSG, -ENOMEM. */
int dwarf_unit_read(struct dwarf_info *info, struct dwarf_unit *unit, struct dwarf_die *die);

/* The entry at @off of @unit, whatever its tag. 0, -EBADMSG, -ENOMEM. */
int dwarf_die_read(struct dwarf_info *info, const struct dwarf_unit *unit, uint64_t off, struct dwarf_die *die);

/* The entries that a walk shows. */
enum dwarf_walk {
	DWARF_WALK_FUNCTIONS, /* subprograms and inlined subroutines */
	DWARF_WALK_SCOPES,    /* subprograms, and what may be part of their names: namespaces, classes */
};

/*
 * Walks the entries of @unit behind its own and calls @fn for those it shows, in their order. @fn returns 0; 1: inlined
 * calls below this entry are not asked for; or an error, which ends the walk. 0, that error, -EBADMSG (broken from some
 * entry on), -ENOMEM.
 */
int dwarf_unit_walk(struct dwarf_info *info, const struct dwarf_unit *unit, enum dwarf_walk what,
		    int (*fn)(void *arg, const struct dwarf_die *die), void *arg);

/* --- values (values.c) --- */

/* A text, always with an end, at most 64 KB; NULL when the value is none or leads nowhere. */
const char *dwarf_string(const struct dwarf_info *info, const struct dwarf_unit *unit, struct dwarf_value value,
			 size_t *len_ret);

/* An address. 0 or -EBADMSG. */
int dwarf_address(const struct dwarf_info *info, const struct dwarf_unit *unit, struct dwarf_value value, uint64_t *ret);

/* Resolves a reference to an offset in .debug_info, or in that of the common file with *@in_common_ret. False: it leads
 * nowhere. */
bool dwarf_reference(const struct dwarf_unit *unit, struct dwarf_value value, uint64_t *off_ret, bool *in_common_ret);

/*
 * The ranges of code of @die, one call of @fn each, by low_pc and high_pc or by a list, until @fn returns true. Empty ones
 * are left out. 0 or -EBADMSG.
 */
int dwarf_ranges(const struct dwarf_info *info, const struct dwarf_unit *unit, const struct dwarf_die *die,
		 bool (*fn)(void *arg, uint64_t start, uint64_t end), void *arg);

/* --- abbreviations (abbrev.c) --- */

enum dwarf_op_kind {
	DWARF_OP_FIXED,
	DWARF_OP_LEB,
	DWARF_OP_STRING,
	DWARF_OP_BLOCK1,
	DWARF_OP_BLOCK2,
	DWARF_OP_BLOCK4,
	DWARF_OP_BLOCK,
	DWARF_OP_INDIRECT,
	DWARF_OP_CONST,
};

enum { DWARF_NOT_WANTED = 0xff };

/* How to take or skip one value, or a run of them that are skipped. */
struct dwarf_op {
	uint8_t kind;
	uint8_t attribute; /* enum dwarf_attribute or DWARF_NOT_WANTED */
	uint16_t form;
	uint32_t bytes;	 /* DWARF_OP_FIXED */
	uint64_t number; /* DWARF_OP_CONST */
};

struct dwarf_abbrev {
	uint64_t code;
	uint32_t first, count; /* of the operations */
	uint16_t tag;
	bool has_children;
	bool is_fixed; /* all it takes is to skip @bytes */
	uint32_t bytes;
};

struct dwarf_abbrevs {
	uint64_t off;
	uint8_t address_bytes, offset_bytes;
	uint16_t version;
	uint32_t pin_cnt;	      /* a walk uses it */
	bool is_dense;		      /* the codes are 1, 2, 3, ... */
	struct dwarf_abbrev *abbrevs; /* by rising code */
	uint32_t count, cap;
	struct dwarf_op *ops;
	uint32_t op_cnt, op_cap;
};

/* The table of @unit, which may be gone after the next call unless pinned. 0, -EBADMSG, -ENOMEM. */
int dwarf_abbrevs_get(struct dwarf_info *info, const struct dwarf_unit *unit, struct dwarf_abbrevs **ret);
void dwarf_abbrevs_free(struct dwarf_abbrevs *t);

/* How a value of @form is taken. False: we do not know. */
bool dwarf_form_op(const struct dwarf_unit *unit, uint64_t form, struct dwarf_op *op);

/* Is @tag a namespace or a type, in which functions lie? */
bool dwarf_is_scope(uint64_t tag);

#endif
