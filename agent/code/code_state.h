/* SPDX-License-Identifier: Apache-2.0 */
/* The state of agent/code/, for its own files. */
#ifndef HEARTH_AGENT_CODE_CODE_STATE_H
#define HEARTH_AGENT_CODE_CODE_STATE_H

#include "agent/code/code_spaces.h"
#include "agent/helper/code_service.h"
#include "base/buf.h"
#include "base/intern.h"
#include "base/map.h"

/* Something that was read from a process and is right as long as its tokens hold. */
struct code_thing {
	struct code_token tokens[CODE_TOKENS];
	uint64_t born_ns;     /* when it was read */
	uint64_t checked_ns;  /* the tokens held then; at least born_ns */
	uint64_t used_ns;     /* when a sample had a frame in it last */
	struct object *names; /* a reference; NULL: it has none */
	bool is_watched;      /* it stands in the process's list */
	bool is_idle;	      /* it left the list, as no sample had a frame in it for long */
	bool has_gone;
	bool is_asked; /* it is in the list of a request that is being made */
};

/* A row's start, and the number of its rule; the rule's end is the next row's start. */
struct code_piece_row {
	uint32_t start;
	uint32_t rule;
};

struct code_piece {
	struct code_thing thing;
	uint64_t gone_ns;    /* when it was found to have gone; 0: it is there */
	struct object *told; /* names that a frame's words told, where the piece does not tell its own; owned */
	bool is_out;	     /* the kernel has no rows of it: it has gone, or is idle */
	uint32_t start, end; /* offsets in the file */
	uint32_t row_cnt;
	struct code_piece_row rows[]; /* offsets from the file's start */
};

/* A function that is told by captured words. */
struct code_known_function {
	struct code_thing thing;
	uint64_t base, bytes;
	uint8_t word, shift;
	struct code_known_function *next; /* of those that have gone */
};

enum { BURIED_KEPT = 64, CODE_ABSENT = 1024 };

/* One range of memory. */
struct code_range_state {
	struct code_process *process; /* that it is of */
	struct file *file;	      /* owned; stands for the range */
	uint64_t start, end;
	struct code_piece **pieces; /* owned; by offset, disjoint */
	uint32_t count, cap;
	struct code_piece *buried[BURIED_KEPT]; /* owned; those that went last */
	uint32_t buried_cnt;			/* of all that went */
};

/* All that is known of the code in an address space. */
struct code_process {
	struct as_code as_code; /* first */
	struct code_spaces *all;
	struct file *runtime; /* a reference: the file with the facts */
	uint32_t number;      /* by which the helper knows the memory */
	uint32_t pid;
	int memory_fd; /* -EBUSY: it is to be opened later; another -errno: it cannot be */
	uint64_t bias;
	uint64_t runtime_at;			      /* an address where @runtime is mapped */
	uint32_t harms;				      /* times that reading it did harm ... */
	uint64_t rest_end_ns;			      /* ... after which nothing is read until then */
	uint64_t ranges_ns;			      /* when ranges were asked for last */
	uint64_t asked_memory;			      /* ... of what memory: its hash */
	bool is_behind;				      /* there is other memory by now */
	uint32_t wait_ms;			      /* until they are asked for again */
	struct code_range_state *ranges[CODE_RANGES]; /* owned */
	uint32_t range_cnt;
	uint32_t classes[CODE_CAPTURES];	    /* number of each capture in capture_classes; 0: none */
	struct map functions;			    /* first captured word -> struct code_known_function, owned */
	struct code_known_function *gone_functions; /* to be buried */
	bool has_gone;				    /* there is something to be buried */
	bool has_idle;				    /* there are pieces whose rows are to be taken from the kernel */
	uint64_t rested_ns;			    /* when things left the list of those in use last */
	struct code_thing **watched;		    /* those in use of late */
	uint32_t watched_cnt, watched_cap;
	uint64_t all_checked_ns, check_all_ns; /* when all of these were looked at last, and how long it took */
	struct map absent;		       /* images without a file that was needed -> anything; at most CODE_ABSENT */
	bool has_brought;		       /* a file was brought to the helper */
	bool brings_nothing;		       /* reading one did harm: none is brought any more */
	bool has_ended;			       /* its memory cannot be read any more */
	struct code_process *next, **link;     /* in the list of all; that which leads here */
};

struct code_spaces {
	struct elf_service *service; /* owned */
	uint32_t off;		     /* bit i: not of enum code_id i */
	struct files *files;
	struct objects *objects;
	struct sampler *sampler; /* NULL: not yet */
	struct intern *rules;	 /* struct row without its range */
	struct buf request, reply;
	struct capture_class classes[CAPTURE_CLASSES]; /* [0] is none */
	uint32_t class_cnt;
	uint32_t last_number;
	struct code_process *processes; /* all */
	bool is_over;			/* the agent ends */
	size_t bytes;			/* of pieces */
	uint32_t piece_cnt;
	struct metric *met, *pieces, *functions, *gone, *refused, *unknown, *checks, *hostile;
};

/* Makes a request about @p's memory. The reply is in cs->reply, and is sound. 0 or -errno. */
int code_ask(struct code_process *p, const struct code_request *what, const void *more, size_t more_bytes);

/* A request of @op about @p's memory. */
struct code_request code_request_of(const struct code_process *p, enum code_op op);

/* Brings the helper the file that @need says, or that there is none. Returns whether it has one now. */
bool code_bring(struct code_process *cp, const struct code_need *need);

/* The range of @file, with code; never NULL. */
static inline struct code_range_state *code_range_of(const struct file *file)
{
	return file->code;
}

/* The range that @addr is in; NULL: none. */
static inline struct code_range_state *code_range_at(const struct code_process *cp, uint64_t addr)
{
	for (uint32_t i = 0; i < cp->range_cnt; i++)
		if (addr - cp->ranges[i]->start < cp->ranges[i]->end - cp->ranges[i]->start)
			return cp->ranges[i];
	return NULL;
}

/* The piece at offset @va; NULL: none is known. */
struct code_piece *code_piece_find(const struct code_range_state *range, uint64_t va);

/* The piece that a sample of @time_ns had at offset @va: the one that is there, or one that was still there then and went
 * since; else the one that is there and was read later. NULL: none is known. */
struct code_piece *code_piece_known(struct code_range_state *range, uint64_t va, uint64_t time_ns);

/*
 * What may a sample of @time_ns have had at offset @va, where @piece is now? It itself; a piece that went since and was just
 * the same there, as code is when only the objects that tell of it moved; one that nobody knows of, as @piece was read
 * later; or another one that went since.
 */
enum code_then { CODE_ITSELF, CODE_ITS_LIKE, CODE_UNSEEN, CODE_ANOTHER };
enum code_then code_piece_then(const struct code_range_state *range, const struct code_piece *piece, uint64_t va,
			       uint64_t time_ns);

/* Reads the piece at offset @va, where none is known. NULL: there is none, or it cannot be read. */
struct code_piece *code_piece_read(struct code_range_state *range, uint64_t va);

/* Takes out of all caches what has gone, and out of the kernel's what is idle; @p takes another asid if that was code. */
void code_bury(struct code_process *cp, struct process *p);

/* Frees all pieces and functions. */
void code_range_free(struct code_range_state *range);
void code_functions_free(struct code_process *cp);
void code_functions_bury(struct code_process *cp);
void code_thing_fini(struct code_process *cp, struct code_thing *t);

/* Looks at the tokens of all that was in use of late. */
void code_check_used(struct code_process *cp);

/* Notes that a sample taken at @time_ns has a frame in @t. Returns whether it was there then, as far as can be known: looks
 * at its tokens, and at others' that are in use, unless that was done since. */
bool code_thing_is_there(struct code_process *cp, struct code_thing *t, uint64_t time_ns);

#endif
