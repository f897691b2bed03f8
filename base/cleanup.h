/* SPDX-License-Identifier: Apache-2.0 */
/* Scope guards: a resource is released where its variable goes out of scope, so that an error path is a plain return. */
#ifndef HEARTH_BASE_CLEANUP_H
#define HEARTH_BASE_CLEANUP_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static inline void cleanup_free(void *p)
{
	free(*(void **)p);
}

static inline void cleanup_close(int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

static inline void cleanup_fclose(FILE **f)
{
	if (*f)
		fclose(*f);
}

#define AUTO(fn)    __attribute__((cleanup(fn)))
#define AUTO_FREE   AUTO(cleanup_free)
#define AUTO_CLOSE  AUTO(cleanup_close)
#define AUTO_FCLOSE AUTO(cleanup_fclose)

/* Hands a pointer's ownership on: returns it and leaves NULL behind, so that the guard does nothing. */
#define MOVE(p)                         \
	({                              \
		__typeof__(p) p_ = (p); \
		(p) = NULL;             \
		p_;                     \
	})

/* Same for a file descriptor. */
#define MOVE_FD(fd)           \
	({                    \
		int fd_ = fd; \
		(fd) = -1;    \
		fd_;          \
	})

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

#endif
