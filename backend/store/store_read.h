/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Questions to a store: all that queries, API and page know of it.
 *
 * Questions may be asked on one thread at a time, which need not be the writer's; they see what is committed, and later
 * commits do not disturb them. They return 0, -errno, what store_selection_check() says, -ELOOP when one of the selection's
 * regular expressions needs too many steps on a value, -EBADMSG when the store is damaged there, or what the callback
 * returned when that was not 0. Strings given to callbacks live until the callback returns, those of a frame until the next
 * question about a frame.
 */
#ifndef HEARTH_BACKEND_STORE_STORE_READ_H
#define HEARTH_BACKEND_STORE_STORE_READ_H

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backend/store/store.h"
#include "base/clock.h"
#include "proto/profiles.h"
#include "proto/weights.h"

struct pattern;

enum store_match { MATCH_EQUAL, MATCH_NOT_EQUAL, MATCH_REGEX, MATCH_NOT_REGEX };

/* A matcher, as in PromQL: a label that is absent has the value ""; a regular expression matches the whole value. */
struct store_matcher {
	const char *label; /* attribute's key as it came, "service.name" */
	enum store_match match;
	const char *value;
	struct pattern *pattern; /* @value compiled, PATTERN_WHOLE, where it is a regular expression; else NULL */
};

enum { STORE_MAX_MATCHERS = 32 };

/* A label that every store has besides those that were sent: the name of a sample's thread, or of its process where that is
 * not known (or empty). A matcher on it is met by a thread so named and by all threads of a process so named, as the
 * filter --comm is; != and !~ are met by the others. */
#define STORE_COMM_LABEL   "comm"
#define STORE_THREAD_LABEL "thread.name"
#define STORE_EXE_LABEL	   "process.executable.name"

/* The span that a sample is of, where it has a link: labels of 32 and 16 hexadecimal digits. */
#define STORE_TRACE_LABEL "trace_id"
#define STORE_SPAN_LABEL  "span_id"

struct store_selection {
	uint64_t from_ns, to_ns; /* Unix ns, from <= time < to */
	const char *kind;	 /* sample type: "samples", "cpu", "off_cpu"; NULL: the one with the most events */
	const struct store_matcher *matchers;
	size_t matcher_count;
	/* Only samples with these stacks: bit N of stacks[N / 64] for node N; nodes beyond stack_count are not in. NULL:
	 * all. */
	const uint64_t *stacks;
	size_t stack_count;
	uint64_t deadline_ns;		 /* CLOCK_MONOTONIC; 0: none */
	const _Atomic bool *is_unwanted; /* from any thread: nobody waits for the answer any more; NULL: somebody does */
};

/* The question's budget, looked at in every loop: 0, -ETIMEDOUT past its deadline, -ECANCELED when nobody waits for it. */
static inline int store_selection_check(const struct store_selection *sel)
{
	if (sel->is_unwanted && atomic_load_explicit(sel->is_unwanted, memory_order_relaxed))
		return -ECANCELED;
	return sel->deadline_ns && clock_mono_ns() > sel->deadline_ns ? -ETIMEDOUT : 0;
}

/* A frame as it is shown; strings are "" when unknown. */
struct store_frame {
	const char *function;
	const char *system_name; /* mangled, where it is another */
	const char *file;
	const char *module; /* base name of the mapping's file, "[kernel]" */
	const char *path;   /* of the mapping's file */
	const char *build_id;
	const char *type; /* profile.frame.type */
	int64_t line;
	int64_t start_line; /* of the function */
	uint64_t address;   /* in the file's own address space */
	/* For code without a function, as proto/unnamed.h has it: the process that generated it, and its function's range.
	 */
	const char *process; /* "": not told */
	uint64_t code_start, code_size;
	bool inlined; /* an inlined call of the frame of the parent node */
};

struct store_kind {
	const char *type, *unit;
	const char *period_type, *period_unit;
	int64_t period;
	uint64_t events;
};

struct store_executable {
	const char *path, *build_id;   /* build_id: the GNU one, else Go's, else htlhash, as text */
	const char *id_kind;	       /* "gnu", "go", "htlhash", "" */
	const char *process;	       /* the process that generated the code; else "" */
	uint64_t events;	       /* with a frame of it */
	uint64_t frames, named_frames; /* distinct ones, and how many of them have a function */
	int64_t self, named_self;      /* weight of stacks whose innermost frame it has, and where that has a function */
};

struct store_status {
	const char *kind;	    /* the name of its folder in backend/store */
	const char *place;	    /* folder or URL */
	const char *folder;	    /* where what belongs to it may be kept beside it; NULL: nowhere */
	uint64_t bytes;		    /* on disk */
	uint64_t events;	    /* kept */
	uint64_t first_ns, last_ns; /* times of the first and the last event; 0 when empty */
	uint64_t series, nodes, frames;
};

/* A stack, as the prefix tree has it. */
struct store_node {
	uint32_t parent, frame;
};

struct store_read_ops {
	/* Weights summed by stack, and by the value of the label @by when that is not NULL ("" where absent; else @group is
	 * ""), one value after another. */
	int (*sum_stacks)(struct store *s, const struct store_selection *sel, const char *by,
			  int (*fn)(void *arg, const char *group, uint32_t node, int64_t weight, uint64_t events),
			  void *arg);

	/* Weights summed by time: bucket i is from_ns + i * step_ns; only those that are not empty. Fast when both are whole
	 * minutes (and no stacks are given): then no single events are looked at. */
	int (*sum_times)(struct store *s, const struct store_selection *sel, uint64_t step_ns, const char *by,
			 int (*fn)(void *arg, const char *group, uint32_t bucket, int64_t weight, uint64_t events),
			 void *arg);

	/* Keys of labels, and the values of one label with their weights, unordered. */
	int (*labels)(struct store *s, const struct store_selection *sel, int (*fn)(void *arg, const char *label),
		      void *arg);
	int (*label_values)(struct store *s, const struct store_selection *sel, const char *label,
			    int (*fn)(void *arg, const char *value, int64_t weight, uint64_t events), void *arg);

	/* The resources, each with its attributes as text and its weight; one that came again after a long time may be told
	 * twice. */
	int (*series)(struct store *s, const struct store_selection *sel,
		      int (*fn)(void *arg, const struct key_values *labels, int64_t weight, uint64_t events), void *arg);

	/* Kinds of samples, most events first; the selection's own kind is ignored. */
	int (*kinds)(struct store *s, const struct store_selection *sel, int (*fn)(void *arg, const struct store_kind *kind),
		     void *arg);

	/* Executables, most events first; then, with path NULL, the weight of frames of no executable by themselves, if
	 * there are any. */
	int (*executables)(struct store *s, const struct store_selection *sel,
			   int (*fn)(void *arg, const struct store_executable *e), void *arg);

	/* Tells all that is selected as profiles again, some at a time: labels, times and resources as they came. */
	int (*export)(struct store *s, const struct store_selection *sel, int (*fn)(void *arg, struct profiles *p),
		      void *arg);

	/* Optional: makes node_count() cover all stacks of the selection, for a store that learns of stacks only by
	 * questions. */
	int (*load_stacks)(struct store *s, const struct store_selection *sel);

	/* Optional: called between answers; @is_idle: nobody has asked for a while. Numbers of nodes and frames may begin
	 * anew then (names_version changes then). */
	void (*rest)(struct store *s, bool is_idle);

	/* The number of nodes, node 0 included; and the @count nodes from @first on. 0, or -EBADMSG when one is unknown or
	 * damaged. */
	uint32_t (*node_count)(struct store *s);
	int (*nodes)(struct store *s, uint32_t first, uint32_t count, struct store_node *ret);
	int (*frame)(struct store *s, uint32_t frame, struct store_frame *ret);

	/* Optional: a text about the last question that failed with -EHOSTUNREACH, -EACCES or -EBUSY: what, on what, why,
	 * what to do. It is valid until the next question. */
	const char *(*why)(struct store *s);

	/* Reads the status. Kind, place and folder are there also when it fails. */
	int (*status)(struct store *s, struct store_status *ret);

	/* Calls @fn for each frame, from number @from on, that came as a bare address of a file with a build id; one that
	 * has been given a name since has it. *@next_ret: the number behind the last one that @fn returned 0 for, or that
	 * needed no call. Strings live until it returns. */
	int (*bare_frames)(struct store *s, uint32_t from, uint32_t *next_ret,
			   int (*fn)(void *arg, const struct store_frame *frame), void *arg);

	/* Optional: opens the same store once more, for questions on another thread; the caller closes it, before this one.
	 * 0, -ENOTSUP when there can be no other (in memory), or -errno. Any thread. */
	int (*reader)(struct store *s, struct store **ret);
};

#endif
