/* SPDX-License-Identifier: Apache-2.0 */
/* Stands in for agent/proc/proc_reader.h where heaps are tested: every process was born when the test says. */
#ifndef HEARTH_TESTS_PROC_STAND_IN_H
#define HEARTH_TESTS_PROC_STAND_IN_H

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "agent/proc/proc_reader.h"

static uint64_t born_ticks;

/* The text of /proc/PID/stat: a name with all that may confuse, and numbers around the start that would be another. */
ssize_t proc_read_text(uint32_t pid, uint32_t task, const char *name, char *text, size_t size)
{
	assert_true(pid == task && !strcmp(name, "stat"));
	return snprintf(text, size,
			"7 (a) b (c) S 1 1 1 1 -1 1 1 1 1 1 1 1 1 1 20 0 1 99999999999999 %llu 99999999999999 1\n",
			(unsigned long long)born_ticks);
}

int proc_open(uint32_t pid, uint32_t task, const char *name)
{
	char path[64];
	int fd;

	assert_int_equal(pid, task);
	snprintf(path, sizeof(path), "/proc/%u/%s", task, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

#endif
