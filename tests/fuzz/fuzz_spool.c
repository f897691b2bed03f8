/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A segment file with any content: opened, read to its end, appended to, and read again. The one seed is a file that the
 * spool itself writes.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sinks/otlp/spool.h"

/* A folder of this process, in memory where there is such a place. */
static const char *folder(void)
{
	static char dir[64];

	if (!dir[0])
		snprintf(dir, sizeof(dir), "%s/hearth-fuzz-%d", access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm", getpid());
	mkdir(dir, 0700);
	return dir;
}

static void write_segment(const uint8_t *data, size_t len)
{
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "%s/0000000000000001.spool", folder());
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	if (fd < 0 || write(fd, data, len) != (ssize_t)len)
		abort();
	close(fd);
}

static void read_all(struct spool *s)
{
	struct spool_record record;
	volatile uint8_t last;

	while (spool_peek(s, &record) == 1) {
		if (record.len)
			last = record.data[record.len - 1];
		spool_remove(s);
	}
	(void)last;
	if (!spool_is_empty(s) || spool_samples(s))
		abort();
}

static void remove_folder(void)
{
	char path[128];

	for (unsigned i = 1; i <= 2; i++) {
		snprintf(path, sizeof(path), "%s/%016x.spool", folder(), i);
		unlink(path);
	}
	snprintf(path, sizeof(path), "%s/lock", folder());
	unlink(path);
	rmdir(folder());
}

static void fill(struct spool *s)
{
	for (unsigned i = 0; i < 4; i++) {
		const struct spool_record record = {
			.data = (const uint8_t *)"some content", .len = 3 * i, .samples = i, .packing = i & SPOOL_PACKING_MAX
		};

		if (spool_append(s, &record))
			abort();
	}
}

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	const char *corpus = *argc > 1 && (*argv)[1][0] != '-' ? (*argv)[1] : NULL;
	const struct spool_config config = { .dir = folder(), .max_bytes = 1 << 20 };
	char command[512];
	struct spool *s;

	if (!corpus || spool_open(&config, &s))
		return 0;
	fill(s);
	spool_close(s);
	snprintf(command, sizeof(command), "cp %s/*1.spool %s/seed", folder(), corpus);
	if (system(command))
		fprintf(stderr, "no seed\n");
	remove_folder();
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	const struct spool_config config = { .dir = folder(), .max_bytes = 1 << 20, .max_age_ns = len & 2 ? 1 : 0 };
	const struct spool_record record = { .data = (const uint8_t *)"x", .len = 1, .samples = 3 };
	struct spool *s;

	write_segment(data, len);
	if (spool_open(&config, &s))
		abort();
	if (len & 1)
		read_all(s);
	if (spool_append(s, &record))
		abort();
	read_all(s);
	spool_close(s);
	remove_folder();
	return 0;
}
