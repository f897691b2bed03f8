/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests kept on disk while their collector is away. A folder of segment files, each a row of records; new ones at the
 * end, read from the front. It survives restarts and SIGKILL at any moment; a crash of the machine costs what was appended
 * since the last spool_sync(). One process a folder, one thread a spool.
 */
#ifndef HEARTH_SINKS_OTLP_SPOOL_H
#define HEARTH_SINKS_OTLP_SPOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

struct metric;
struct spool;

enum { SPOOL_PACKING_MAX = 3 };

struct spool_config {
	const char *dir;     /* made when it is not there, with the folder above it */
	uint64_t max_bytes;  /* of all its files; the oldest file goes when a record would not fit */
	uint64_t max_age_ns; /* what is older is dropped instead of read; 0: no limit */
	/* Counters, each may be NULL. The first two are levels, also shared between spools: changed, never set. */
	struct metric *bytes, *samples;
	struct metric *dropped_full, *dropped_age, *dropped_corrupt; /* samples */
	struct metric *corrupt_bytes;
};

struct spool_record {
	const uint8_t *data;
	size_t len;
	size_t message_bytes; /* three words for the owner, kept as they are */
	uint8_t packing;      /* 0 to SPOOL_PACKING_MAX */
	uint8_t kind;
	uint64_t samples;
	uint64_t time_unix_ns; /* when it was appended */
};

/*
 * Opens @config->dir and finds what a former process left there. A segment's tail that makes no sense is skipped, and
 * counted. 0; -EBUSY: another process uses it; -EMEDIUMTYPE: it holds a file of a format that this version does not know;
 * why it cannot be used; -ENOMEM.
 */
int spool_open(const struct spool_config *config, struct spool **ret);

/* Syncs and closes the spool; the records stay on disk. Accepts NULL. */
void spool_close(struct spool *s);

/* Appends a record (its time is now). 0; -EFBIG: larger than the whole spool may be; why it cannot be written, and then
 * nothing is. */
int spool_append(struct spool *s, const struct spool_record *record);

/* Syncs appended records to the disk. 0 or -errno. */
int spool_sync(struct spool *s);

/* The oldest record; @data is borrowed until the next call. 1; 0: there is none; -errno. */
int spool_peek(struct spool *s, struct spool_record *ret);

/* Takes away the record that spool_peek() gave. */
void spool_remove(struct spool *s);

bool spool_is_empty(const struct spool *s);

/* The number of samples in the spool. */
uint64_t spool_samples(const struct spool *s);

/* The folder of the spool, for messages. */
const char *spool_dir(const struct spool *s);

#endif
