/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A store: profiles kept, and questions about them answered. Everybody who has one holds a struct store, whatever its kind;
 * what can be done with it stands in store_read.h (questions), store_write.h (samples and names) and store_maintain.h (work
 * on the whole of it). Each kind of store has a folder here, and in it a header of the same name, which opens one.
 *
 * A sample is kept as one event a time stamp: its series (the resource it came from, and its profile's type), its labels
 * (thread.id, thread.name, cpu.logical_number, hearth.stack.truncated, others), its stack, its time, its weight. A stack is
 * a node of one prefix tree over all that was ever kept, root first: node 0 is the empty stack, every other node is its
 * caller's node and one frame more, and a node's number is greater than its parent's. Numbers of nodes and frames stay the
 * same until the store's rest(), so results of several questions can be put together by them.
 */
#ifndef HEARTH_BACKEND_STORE_STORE_H
#define HEARTH_BACKEND_STORE_STORE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct store_read_ops;
struct store_write_ops;
struct store_maintain_ops;
struct store_record_ops;

struct store { /* first member of every kind of store; none of its pointers but @records is NULL */
	const struct store_read_ops *read;
	const struct store_write_ops *write;
	const struct store_maintain_ops *maintain;
	const struct store_record_ops *records; /* of other signals (store_records.h); NULL: it keeps none */
	void (*close)(struct store *s);		/* frees it; what was written is kept first */
	/* Changes when frames that were asked about may have other names than before, which may be at any time. */
	_Atomic uint64_t names_version;
};

struct store_config {
	const char *place;     /* folder, made with mode 0700 when it is not there; or ":memory:" */
	uint64_t keep_age_ns;  /* older events go; 0: 7 days */
	uint64_t keep_bytes;   /* on disk; 0: 2 GB */
	uint64_t thin_age_ns;  /* older events keep stack, weight and minute alone; 0: none do */
	double keep_free_part; /* of the file system that stays free; 0: none need */
	bool read_only;	       /* no writer, no retention */
	/* For ClickHouse alone, which knows no keep_bytes and no keep_free_part. */
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

#endif
