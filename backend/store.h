/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store: profiles kept, and questions about them answered. This is the interface of all stores (SQLite in
 * store_sqlite_*.c, ClickHouse) and all that queries, API and page know of them; what is written comes through a durable
 * sink.
 *
 * A sample is kept as one event a time stamp: its series (the resource it came from, and its profile's type), its labels
 * (thread.id, thread.name, cpu.logical_number, hearth.stack.truncated, others), its stack, its time, its weight. A stack is
 * a node of one prefix tree over all that was ever kept, root first: node 0 is the empty stack, every other node is its
 * caller's node and one frame more, and a node's number is greater than its parent's. Numbers of nodes and frames stay the
 * same until the store's rest(), so results of several questions can be put together by them.
 *
 * Questions may be asked on one thread at a time, which need not be the writer's; they see what is committed, and what is
 * committed later does not disturb them. They return 0, -errno, -ETIMEDOUT past the selection's deadline, -EBADMSG when the
 * store is damaged there, or what the callback returned when that was not 0. Strings given to callbacks live until the
 * callback returns, those of a frame until the next question about a frame.
 */
#ifndef HEARTH_BACKEND_STORE_H
#define HEARTH_BACKEND_STORE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/sink.h"

struct metrics;
struct pattern;
struct store;

enum store_match { MATCH_EQUAL, MATCH_NOT_EQUAL, MATCH_REGEX, MATCH_NOT_REGEX };

/* As in PromQL: a label that is absent has the value ""; a regular expression matches the whole value. */
struct store_matcher {
	const char *label; /* attribute's key as it came, "service.name" */
	enum store_match match;
	const char *value;
	struct pattern *pattern; /* @value compiled, PATTERN_WHOLE, where it is a regular expression; else NULL */
};

enum { STORE_MAX_MATCHERS = 32 };

struct store_selection {
	uint64_t from_ns, to_ns; /* Unix ns, from <= time < to */
	const char *kind;	 /* sample type: "samples", "cpu", "off_cpu"; NULL: the one with the most events */
	const struct store_matcher *matchers;
	size_t matcher_count;
	/* Only samples with these stacks: bit N of stacks[N / 64] for node N; nodes beyond stack_count are not in. NULL:
	 * all. */
	const uint64_t *stacks;
	size_t stack_count;
	uint64_t deadline_ns; /* CLOCK_MONOTONIC; 0: none */
};

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
	bool inlined;	    /* an inlined call of the frame of the parent node */
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
	uint64_t events;	       /* with a frame of it */
	uint64_t frames, named_frames; /* distinct ones, and how many of them have a function */
};

struct store_status {
	const char *kind;	    /* "sqlite", "clickhouse" */
	const char *place;	    /* folder or URL */
	const char *folder;	    /* where what belongs to it may be kept beside it; NULL: nowhere */
	uint64_t bytes;		    /* on disk */
	uint64_t events;	    /* kept */
	uint64_t first_ns, last_ns; /* times of the first and the last event; 0 when empty */
	uint64_t series, nodes, frames;
};

/* What is at an address of a file: the function whose code it is, not the calls inlined there. Strings may be "". */
struct store_name {
	uint64_t address;
	const char *function, *system_name, *file;
	int64_t line, start_line;
};

/* Work on the whole of a store, done by its writer; returns when it is done. Merging is done anyhow, but only of hours that
 * are over; compacting also gives all free room back, which takes as much again while it lasts. */
enum store_task { STORE_PRUNE, STORE_MERGE, STORE_COMPACT, STORE_CLEAR };

/* Weights are whatever a sender says: sums of absurd ones wrap around. */
static inline int64_t weights_add(int64_t a, int64_t b)
{
	return (int64_t)((uint64_t)a + (uint64_t)b);
}

/* A stack, as the prefix tree has it. */
struct store_node {
	uint32_t parent, frame;
};

struct store_ops {
	/* Weights summed by stack, and by the value of the label @by when that is not NULL ("" where absent; else @group is
	 * ""), one value after another. */
	int (*sum_stacks)(struct store *s, const struct store_selection *sel, const char *by,
			  int (*fn)(void *arg, const char *group, uint32_t node, int64_t weight, uint64_t events),
			  void *arg);

	/* Weights summed by time: bucket i is from_ns + i * step_ns; only those that are not empty. Fast when both are whole
	 * minutes (and no stacks are given): then nothing is looked at event by event. */
	int (*sum_times)(struct store *s, const struct store_selection *sel, uint64_t step_ns, const char *by,
			 int (*fn)(void *arg, const char *group, uint32_t bucket, int64_t weight, uint64_t events),
			 void *arg);

	/* Keys of labels, and the values of one with what they weigh, unordered. */
	int (*labels)(struct store *s, const struct store_selection *sel, int (*fn)(void *arg, const char *label),
		      void *arg);
	int (*label_values)(struct store *s, const struct store_selection *sel, const char *label,
			    int (*fn)(void *arg, const char *value, int64_t weight, uint64_t events), void *arg);

	/* The resources, each with its attributes as text and what it weighs; one that was met again after long may come
	 * twice. */
	int (*series)(struct store *s, const struct store_selection *sel,
		      int (*fn)(void *arg, const struct key_values *labels, int64_t weight, uint64_t events), void *arg);

	/* Kinds of samples, most events first; the selection's own kind is ignored. */
	int (*kinds)(struct store *s, const struct store_selection *sel, int (*fn)(void *arg, const struct store_kind *kind),
		     void *arg);

	/* Most events first. */
	int (*executables)(struct store *s, const struct store_selection *sel,
			   int (*fn)(void *arg, const struct store_executable *e), void *arg);

	/* All that was selected as profiles again, some at a time: labels, times and resources as they came. */
	int (*export)(struct store *s, const struct store_selection *sel, int (*fn)(void *arg, struct profiles *p),
		      void *arg);

	/* Optional: has node_count() cover all stacks of the selection, for a store that learns of them as questions do. */
	int (*load_stacks)(struct store *s, const struct store_selection *sel);

	/* Optional: for between answers; @is_idle: nobody has asked for a while. Numbers of nodes and frames may begin anew
	 * then (names_version changes then). */
	void (*rest)(struct store *s, bool is_idle);

	/* How many nodes there are, node 0 included; and what the @count nodes from @first on are. 0, or -EBADMSG when one
	 * is unknown or damaged. */
	uint32_t (*node_count)(struct store *s);
	int (*nodes)(struct store *s, uint32_t first, uint32_t count, struct store_node *ret);
	int (*frame)(struct store *s, uint32_t frame, struct store_frame *ret);

	/* Optional: of the last question that failed with -EHOSTUNREACH, -EACCES or -EBUSY: what, on what, why, what to do.
	 * Until the next question. */
	const char *(*why)(struct store *s);

	/* Kind, place and folder are there also when it fails. */
	int (*status)(struct store *s, struct store_status *ret);

	/* Names frames of the file with @build_id (as struct store_frame has it) that came as bare addresses, those stored
	 * and those still to come; earlier ones of the same addresses are replaced. frame() tells them from then on. */
	int (*name_frames)(struct store *s, const char *build_id, const struct store_name *names, size_t count);

	/* Calls @fn for each frame, from number @from on, that came as a bare address of a file with a build id; one that
	 * has been given a name since has it. *@next_ret: the number behind the last one that @fn returned 0 for, or that
	 * needed no call. Strings live until it returns. */
	int (*bare_frames)(struct store *s, uint32_t from, uint32_t *next_ret,
			   int (*fn)(void *arg, const struct store_frame *frame), void *arg);

	/* -ENOTSUP: such a store does that by itself. */
	int (*task)(struct store *s, enum store_task task);

	/* A sink that writes here: durable, an ack comes after the commit, within 200 ms. The store outlives it. */
	int (*writer)(struct store *s, struct sink **ret);

	void (*close)(struct store *s);
};

struct store { /* first member of every kind of store */
	const struct store_ops *ops;
	/* Another number than before: frames that were asked about may be called otherwise now. It changes at any time. */
	_Atomic uint64_t names_version;
};

struct store_config {
	const char *place;     /* folder, made with mode 0700 when it is not there; or ":memory:" */
	uint64_t keep_age_ns;  /* older events go; 0: 7 days */
	uint64_t keep_bytes;   /* on disk; 0: 2 GB */
	uint64_t thin_age_ns;  /* older events keep stack, weight and minute alone; 0: none do */
	double keep_free_part; /* of the file system that stays free; 0: none need */
	bool read_only;	       /* no writer, no retention */
	/* Of ClickHouse alone, which knows no keep_bytes and no keep_free_part. */
	const char *folder;	   /* store_status's; or NULL */
	const char *password_file; /* its first line; NULL: the password stands in the address, or there is none */
	const char *ca_file;	   /* certificates (PEM) to trust instead of the system's, with https; NULL */
	const char *spool_dir;	   /* batches wait there, in a folder an address, while it is away; NULL: in memory only */
	uint64_t spool_bytes;	   /* at most; 0: 512 MiB */
	uint64_t spool_age_ns;	   /* older ones are dropped; 0: no limit */
};

struct store_error {
	char message[512]; /* what, on what file, why, and what to do */
};

int store_sqlite_task(struct store *s, enum store_task task);

/* As the ops of these names. */
int store_sqlite_name_frames(struct store *s, const char *build_id, const struct store_name *names, size_t count);

int store_sqlite_bare_frames(struct store *s, uint32_t from, uint32_t *next_ret,
			     int (*fn)(void *arg, const struct store_frame *frame), void *arg);

/* Reads everything that is in a SQLite store and calls @fn for each problem found. 0, -errno, or what @fn returned. */
int store_sqlite_verify(struct store *s, int (*fn)(void *arg, const char *problem), void *arg);

/* Opens or makes the default store. 0 or -errno with @err filled: -EBUSY: another process writes it; -EPROTO: it is of a
 * newer hearth, or of one too old. A damaged file is moved aside (said in the log) and a new one begun. */
int store_sqlite_open(const struct store_config *config, struct metrics *metrics, struct store **ret,
		      struct store_error *err);

/* Opens a store in ClickHouse, config's place being "clickhouse+http(s)://[USER[:PASSWORD]@]HOST[:PORT][/DATABASE]"; makes
 * database and tables. One that cannot be reached yet is waited for, unless read only. 0 or -errno with @err filled:
 * -EINVAL: no such address; -EPROTO: the tables are of a newer hearth; -EBUSY: another process uses the spool. */
int store_clickhouse_open(const struct store_config *config, struct metrics *metrics, struct store **ret,
			  struct store_error *err);

#endif
