/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The threads that ask the store, so that a question that takes its time holds up neither receivers nor sampling. Questions
 * are answered in their order. While one is answered a second thread takes the next ones: a question that takes longer than
 * a second there waits for the first thread, so that long questions do not hold up short ones. A store that can be asked on
 * one thread only (in memory) has no second one. Equal questions that wait are answered at once, by one answer. Answers come
 * back on the loop's thread.
 */
#ifndef HEARTH_BACKEND_API_QUERY_THREAD_H
#define HEARTH_BACKEND_API_QUERY_THREAD_H

#include <stdbool.h>
#include <stdint.h>

#include "backend/api/api.h"
#include "base/loop.h"

struct query_thread;

/* One question. It is part of the asker's own object, which must stay until done(). */
struct query_job {
	const char *path; /* borrowed, as are the parameters, until done() */
	struct query_params params;
	uint64_t not_before_ns; /* CLOCK_MONOTONIC: not asked earlier; others go on meanwhile. 0: at once */
	int symbols_fd;		/* not a question but a file with symbols, from query_thread_symbols_file(); -1: none */
	enum ingest_encoding symbols_encoding;
	bool clears;		  /* not a question either: the store is emptied */
	bool hides_addresses;	  /* of memory, as struct api_budget */
	bool pack;		  /* a long answer is packed by gzip */
	struct api_answer answer; /* all zeros before; whoever asked frees its body */
	bool is_long;		  /* the threads' own: only the first takes it */
	_Atomic bool is_unwanted; /* its asker has gone */
	bool is_packed;
	uint64_t hash; /* of the answer's body before it was packed */
	void (*done)(struct query_job *job);
	struct query_job *next; /* the thread's own, as is the following */
	struct query_job *same; /* that get its answer */
};

/* @api is the thread's from now on (api_free() at the end); @loop is borrowed. 0 or -errno, @api then freed. */
int query_thread_new(struct api *api, struct loop *loop, unsigned max_waiting, struct query_thread **ret);

/* Waits for the question that is being answered and tells it; no other may be under way then: see query_thread_cancel(). The
 * loop must not run again. Accepts NULL. */
void query_thread_free(struct query_thread *t);

/* 0, or -EAGAIN: too many wait already. */
int query_thread_ask(struct query_thread *t, struct query_job *job);

/* See api_symbols_file(). Any thread. */
int query_thread_symbols_file(const struct query_thread *t);

/* Takes back a question that still waits: true, and done() will not come. False: it is too late, but it ends soon. */
bool query_thread_cancel(struct query_thread *t, struct query_job *job);

#endif
