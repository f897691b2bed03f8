/* SPDX-License-Identifier: Apache-2.0 */
/* Questions wait in a short list, which is gone through when the servers' thread has an answer. */
#include "cmd/halves/fetch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/loop.h"
#include "cmd/halves/wire.h"
#include "symbols/find/debuginfod.h"

enum { MAX_ASKED = 256 };

struct asked {
	int sock;
	uint64_t number;
	char id[WIRE_ID_BYTES];
};

struct fetch {
	struct debuginfod *servers;
	struct loop_watch *watch;
	struct asked asked[MAX_ASKED];
	size_t count;
};

static void answer(const struct asked *a, int fd)
{
	const struct wire_note note = { .kind = NOTE_SERVED, .number = a->number, .status = fd < 0 ? fd : 0 };

	(void)wire_send_note(a->sock, &note, fd < 0 ? -1 : fd);
}

/* Whether the question is answered. */
static bool try(const struct fetch *f, const struct asked *a)
{
	AUTO_CLOSE int fd = debuginfod_find(f->servers, a->id);

	if (fd == -EINPROGRESS)
		return false;
	answer(a, fd);
	return true;
}

static void on_served(void *arg, int event_fd, uint32_t events)
{
	struct fetch *f = arg;
	size_t kept = 0;
	uint64_t count;

	(void)events;
	(void)!read(event_fd, &count, sizeof(count));
	for (size_t i = 0; i < f->count; i++)
		if (!try(f, &f->asked[i]))
			f->asked[kept++] = f->asked[i];
	f->count = kept;
}

void fetch_ask(struct fetch *f, int sock, uint64_t number, const char *build_id)
{
	struct asked a = { .sock = sock, .number = number };

	strncpy(a.id, build_id, sizeof(a.id) - 1);
	if (!f)
		answer(&a, -ENOENT);
	else if (f->count == MAX_ASKED)
		answer(&a, -EAGAIN);
	else if (!try(f, &a))
		f->asked[f->count++] = a;
}

void fetch_free(struct fetch *f)
{
	if (!f)
		return;
	loop_remove(f->watch);
	debuginfod_free(f->servers); /* which accepts NULL */
	free(f);
}

struct fetch *fetch_new(struct loop *loop)
{
	struct fetch *f = calloc(1, sizeof(*f));
	int err = f ? debuginfod_new(&f->servers) : -ENOMEM;

	if (!err)
		err = loop_add_fd(loop, debuginfod_event_fd(f->servers), EPOLLIN, on_served, f, &f->watch);
	if (!err)
		return f;
	if (err != -ENOENT)
		log_warn("the servers of DEBUGINFOD_URLS are not asked: %s", strerror(-err));
	fetch_free(f);
	return NULL;
}
