/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of /proc/PID/status. Include it after cmocka.h. */
#ifndef HEARTH_TESTS_PROCESS_STATUS_H
#define HEARTH_TESTS_PROCESS_STATUS_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/io.h"

/* The number of @process behind @name, which has its colon, in this base. */
static inline uint64_t process_status(pid_t process, const char *name, int base)
{
	AUTO(buf_fini) struct buf text = BUF_EMPTY;
	char path[64];
	const char *at;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)process);
	assert_int_equal(io_read_file(path, SIZE_MAX, &text), 0);
	at = strstr(buf_text(&text), name);
	assert_non_null(at);
	return strtoull(at + strlen(name), NULL, base);
}

#endif
