/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Debug files by build id from the servers in $DEBUGINFOD_URLS, as elfutils' own client gets them (debuginfod(8)), into the
 * same cache. A thread of its own fetches, one file after another; a caller asks again later, or waits. Any thread may ask.
 */
#ifndef HEARTH_SYMBOLS_FIND_DEBUGINFOD_H
#define HEARTH_SYMBOLS_FIND_DEBUGINFOD_H

#include <stdint.h>

struct debuginfod;

/*
 * Reads the environment: DEBUGINFOD_URLS (servers, with spaces between them), DEBUGINFOD_CACHE_PATH, _TIMEOUT (seconds for
 * each 100 KB, 90), _MAXTIME (seconds for a file, 600), _MAXSIZE (bytes of a file, 4 GB). 0; -ENOENT: no servers are set, or
 * no folder for the cache is known; -EPERM: that folder is somebody else's; -ENOMEM, -errno. debuginfod_free gives up what
 * is under way, and takes up to a second; nobody may ask any more.
 */
int debuginfod_new(struct debuginfod **ret);
void debuginfod_free(struct debuginfod *d);

/*
 * The same in front of another process, which asks the servers: @ask (@arg) tells it to look for @build_id. It may fail, and
 * then nobody asks. debuginfod_answer() brings the answer.
 */
typedef int (*debuginfod_ask_fn)(void *arg, const char *build_id);
int debuginfod_new_far(debuginfod_ask_fn ask, void *arg, struct debuginfod **ret);

/* Takes the answer to a question for @build_id: the file @fd, which is taken over, or why there is none, in @error. On the
 * thread that asks. An answer that nobody waits for is dropped. */
void debuginfod_answer(struct debuginfod *d, const char *build_id, int error, int fd);

/*
 * The debug file with @build_id (lower-case hex): a descriptor for reading, the caller's to close; -EINPROGRESS: it is asked
 * for, look again when the descriptor of debuginfod_event_fd is readable; -ENOENT: no server has it; -EINVAL: no build id;
 * -EAGAIN: too many are asked for; or why it could not be had, which is remembered for some minutes (-EBADMSG: what came was
 * another file; -EFBIG; -ETIMEDOUT; -EIO). The returned file was verified, or another client put it into the cache.
 */
int debuginfod_find(struct debuginfod *d, const char *build_id);

/* The same, but waits for it. */
int debuginfod_wait(struct debuginfod *d, const char *build_id);

/* An eventfd, counted up when something was fetched or given up; who polls it reads it. */
int debuginfod_event_fd(const struct debuginfod *d);

struct debuginfod_counts {
	uint64_t fetched;    /* files */
	uint64_t bytes;	     /* of these */
	uint64_t missing;    /* no server has it */
	uint64_t unverified; /* what came was another file */
	uint64_t failed;     /* for another reason */
};

struct debuginfod_counts debuginfod_counts(struct debuginfod *d);

#endif
