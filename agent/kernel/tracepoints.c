/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tracefs has a folder for each system below events/, in it a folder for each event, and in that the file "id". If nobody
 * mounted tracefs, we use a mount that is attached nowhere and ends with its descriptor (fsmount(2), 5.2); nobody else sees
 * it.
 */
#include "agent/kernel/tracepoints.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "agent/config.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "base/text/nearest.h"

enum { NAME_BYTES = 128 };

static size_t word_len(const char *text)
{
	size_t len = 0;

	while (isalnum((unsigned char)text[len]) || text[len] == '_' || text[len] == '-')
		len++;
	return len;
}

bool tracepoint_is_name(const char *text)
{
	size_t system = word_len(text), event;

	if (!system || system >= NAME_BYTES || text[system] != ':')
		return false;
	event = word_len(text + system + 1);
	return event && event < NAME_BYTES && !text[system + 1 + event];
}

/* --- tracefs --- */

static int mount_privately(void)
{
	AUTO_CLOSE int fs = fsopen("tracefs", FSOPEN_CLOEXEC), mount = -1;
	int fd;

	if (fs < 0 || fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0))
		return -errno;
	mount = fsmount(fs, FSMOUNT_CLOEXEC, 0);
	fd = mount < 0 ? -1 : openat(mount, "events", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* Opens the folder events/. A descriptor or -errno. */
static int open_events(void)
{
	static const char *const places[] = { "/sys/kernel/tracing/events", "/sys/kernel/debug/tracing/events" };
	int error = 0;

	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		int fd = open(places[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		if (fd >= 0)
			return fd;
		if (errno != ENOENT)
			error = -errno;
	}
	return error ? error : mount_privately();
}

int tracepoints_check(void)
{
	AUTO_CLOSE int fd = open_events();

	return fd < 0 ? fd : 0;
}

static int explain_tracefs(int error, struct agent_error *err)
{
	const char *advice = "this kernel may be built without tracepoints (CONFIG_TRACING)";

	if (error == -EPERM || error == -EACCES)
		advice = geteuid() ? "tracepoints need root: run it with sudo"
				   : "it may be locked down (/sys/kernel/security/lockdown), or a container without "
				     "--privileged; 'mount -t tracefs none /sys/kernel/tracing' shows which";
	snprintf(err->message, sizeof(err->message), "tracepoints cannot be looked up in tracefs: %s; %s", strerror(-error),
		 advice);
	return error;
}

/* --- names --- */

/* Calls @fn for each folder in @fd until that returns true. */
static void each_folder(int fd, bool (*fn)(void *arg, const char *name), void *arg)
{
	int own = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = own < 0 ? NULL : fdopendir(own);
	const struct dirent *e;

	if (!dir) {
		if (own >= 0)
			close(own);
		return;
	}
	while ((e = readdir(dir)))
		if (e->d_type == DT_DIR && e->d_name[0] != '.' && fn(arg, e->d_name))
			break;
	closedir(dir);
}

struct near {
	struct nearest nearest;
	char best[NAME_BYTES];
};

static bool offer(void *arg, const char *name)
{
	struct near *n = arg;

	nearest_offer(&n->nearest, name);
	if (n->nearest.best == name) {
		snprintf(n->best, sizeof(n->best), "%s", name);
		n->nearest.best = n->best;
	}
	return false;
}

/* The folder in @fd whose name is nearly @word. "": none. */
static const char *find_near(int fd, const char *word, struct near *n)
{
	*n = (struct near){ .nearest = nearest_to(word) };
	each_folder(fd, offer, n);
	return n->best;
}

struct search {
	int events_fd;
	const char *event;
	char system[NAME_BYTES]; /* the first that has it */
};

static bool has_event(void *arg, const char *system)
{
	struct search *s = arg;
	char path[2 * NAME_BYTES + 8];

	snprintf(path, sizeof(path), "%s/%s/id", system, s->event);
	if (faccessat(s->events_fd, path, F_OK, 0))
		return false;
	snprintf(s->system, sizeof(s->system), "%s", system);
	return true;
}

void tracepoint_suggest_in(int events_fd, const char *event, char *out, size_t size)
{
	struct search s = { .events_fd = events_fd, .event = event };
	size_t len = word_len(event);

	if (!len || len >= NAME_BYTES || event[len])
		return;
	each_folder(events_fd, has_event, &s);
	if (s.system[0])
		snprintf(out, size, " (did you mean %s:%s?)", s.system, event);
}

void tracepoint_suggest(const char *event, char *out, size_t size)
{
	AUTO_CLOSE int fd = open_events();

	if (fd >= 0)
		tracepoint_suggest_in(fd, event, out, size);
}

static int read_id(int system_fd, const char *event, uint64_t *id_ret)
{
	char path[NAME_BYTES + 8], text[32];
	ssize_t n;

	snprintf(path, sizeof(path), "%s/id", event);
	n = io_read_text(system_fd, path, text, sizeof(text));
	if (n <= 0)
		return n ? (int)n : -EIO;
	*id_ret = strtoull(text, NULL, 10);
	return *id_ret ? 0 : -EIO;
}

int tracepoint_find_in(int events_fd, const char *text, uint64_t *id_ret, struct agent_error *err)
{
	size_t len = strcspn(text, ":");
	const char *event = text + len + 1, *best;
	char system[NAME_BYTES], suggestion[2 * NAME_BYTES + 32] = "";
	AUTO_CLOSE int fd = -1;
	struct near n;
	int error;

	snprintf(system, sizeof(system), "%.*s", (int)len, text);
	fd = openat(events_fd, system, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	error = fd < 0 ? -errno : read_id(fd, event, id_ret);
	if (!error)
		return 0;
	if (error != -ENOENT) {
		snprintf(err->message, sizeof(err->message), "tracefs does not tell the number of '%s': %s", text,
			 strerror(-error));
		return error;
	}
	if (fd >= 0) {
		best = find_near(fd, event, &n);
		if (*best)
			snprintf(suggestion, sizeof(suggestion), " (did you mean %s:%s?)", system, best);
	} else {
		tracepoint_suggest_in(events_fd, event, suggestion, sizeof(suggestion));
		best = *suggestion ? "" : find_near(events_fd, system, &n);
		if (*best)
			snprintf(suggestion, sizeof(suggestion), " (there is a system %s)", best);
	}
	snprintf(err->message, sizeof(err->message), "there is no tracepoint '%s' in this kernel%s; 'perf list' shows all",
		 text, suggestion);
	return -ENOENT;
}

int tracepoint_find(const char *text, uint64_t *id_ret, struct agent_error *err)
{
	AUTO_CLOSE int fd = open_events();

	return fd < 0 ? explain_tracefs(fd, err) : tracepoint_find_in(fd, text, id_ret, err);
}
