/* SPDX-License-Identifier: Apache-2.0 */
/* Strings that are made here live as long as the process, which is the keeper. */
#include "cmd/halves/hand_over.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend/http/server.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/handed.h"
#include "base/io.h"
#include "base/log.h"
#include "cmd/pipeline/pipelines.h"
#include "cmd/setup/enrich_of.h"
#include "cmd/setup/sinks_of.h"
#include "cmd/setup/store_of.h"

enum {
	MAX_SECRET_BYTES = 1 << 20,
	FIRST_HANDED_FD = 100,	    /* so that they do not look like those of everything */
	FIRST_MISSING_FD = 1 << 24, /* more than a process may have: there is no such file */
	FIRST_FREE_PORT = 1024,
};

/* --- secrets --- */

/* Renews the copy from the file @fd. */
static int copy_secret(struct secret *s, int fd)
{
	AUTO(buf_fini) struct buf text = BUF_EMPTY;
	int err = fstat(fd, &s->seen) ? -errno : io_read_all(fd, MAX_SECRET_BYTES, &text);

	if (err)
		return err;
	if (pwrite(s->copy, text.data, text.len, 0) != (ssize_t)text.len || ftruncate(s->copy, (off_t)text.len))
		return -errno;
	explicit_bzero(text.data, text.len);
	return 0;
}

static int high_fd(int fd)
{
	int high = fcntl(fd, F_DUPFD_CLOEXEC, FIRST_HANDED_FD);

	close(fd);
	return high < 0 ? -errno : high;
}

static int make_copy(const struct owner *owner)
{
	int fd = memfd_create("hearth-secret", MFD_CLOEXEC);

	if (fd < 0)
		return -errno;
	if (fchmod(fd, 0400) || fchown(fd, owner->uid, owner->gid)) {
		int err = -errno;

		close(fd);
		return err;
	}
	return high_fd(fd);
}

/* A file that is not there stays one that is not there, whatever folder it would be in. */
static void hand_secret(struct handed_over *h, const char **path)
{
	AUTO_CLOSE int fd = *path ? open(*path, O_RDONLY | O_NONBLOCK | O_CLOEXEC) : -1;
	struct secret *s = &h->secrets[h->secret_count];
	static int missing = FIRST_MISSING_FD;
	struct stat st;

	if (!*path || (fd < 0 && errno != ENOENT))
		return;
	if (fd < 0) {
		(void)handed_add(missing++, *path, path);
		return;
	}
	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || h->secret_count == MAX_SECRETS)
		return;
	*s = (struct secret){ .path = *path, .copy = make_copy(&h->owner) };
	if (s->copy >= 0 && !copy_secret(s, fd) && !handed_add(s->copy, *path, path))
		h->secret_count++;
}

void hand_over_again(struct handed_over *h)
{
	for (size_t i = 0; i < h->secret_count; i++) {
		struct secret *s = &h->secrets[i];
		AUTO_CLOSE int fd = open(s->path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
		struct stat st;

		if (fd < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode))
			continue;
		if (st.st_ino != s->seen.st_ino || st.st_dev != s->seen.st_dev || st.st_size != s->seen.st_size ||
		    memcmp(&st.st_mtim, &s->seen.st_mtim, sizeof(st.st_mtim)) != 0)
			(void)copy_secret(s, fd);
	}
}

static void hand_secrets(struct handed_over *h, struct config *c)
{
	const char **const paths[] = {
		&c->tls_cert,	    &c->tls_key,       &c->tls_client_ca,	 &c->token_file,	  &c->collector_ca,
		&c->collector_cert, &c->collector_key, &c->collector_token_file, &c->store_password_file, &c->store_ca,
		&c->kube_config,    &c->kubelet_ca
	};

	for (size_t i = 0; i < ARRAY_LEN(paths); i++)
		hand_secret(h, paths[i]);
}

/* The kubelet gives a pod's token to the pod's user alone, where the pod names one. */
static void hand_account(struct handed_over *h, const struct config *c)
{
	const struct enrich_config enrich = enrich_config_of(c);
	const char *folder = enrich_account(&enrich), *name;
	char *path;

	if (!folder || asprintf(&path, "%s/token", folder) < 0)
		return;
	name = path;
	if (access(path, R_OK)) /* no pod: nobody will look for it */
		free(path);
	else
		hand_secret(h, &name);
}

/* --- folders --- */

/* Takes the folder @path; *@name_ret is its name from then on. 0 or -errno. */
static int hand_folder(struct handed_over *h, const char *path, const char **name_ret)
{
	int fd = owner_take_folder(&h->owner, path), err;

	if (fd == -EPERM && h->owner.changes && !h->folder_count) {
		log_warn("%s is root's and holds more than hearth's files, so the half of hearth that listens stays root, "
			 "without any privilege; give it a folder of its own",
			 path);
		h->owner = (struct owner){ .is_decided = true, .uid = geteuid(), .gid = getegid() };
		fd = owner_take_folder(&h->owner, path);
	}
	fd = fd < 0 ? fd : high_fd(fd);
	if (fd < 0)
		return fd;
	if (h->folder_count == MAX_FOLDERS)
		return -ENOSPC;
	h->folders[h->folder_count++] = fd;
	err = 0;
	if (h->owner.changes)
		err = handed_add(fd, path, name_ret);
	return err;
}

/* "store=FOLDER" among the sinks; NULL: none. */
static char **store_in(struct string_list *sinks)
{
	for (size_t i = 0; i < sinks->count; i++)
		if (!strncmp(sinks->items[i], "store=", 6))
			return &sinks->items[i];
	return NULL;
}

/* The folder that the store is in, as it was given; NULL: there is none, or it is the default one. */
static const char *store_given(struct config *config)
{
	char **sink = store_in(&config->sinks);

	if (sink)
		return *sink + 6;
	return config->store && !store_is_clickhouse(config->store) ? config->store : NULL;
}

static void set_store(struct config *config, const char *name)
{
	char **sink = store_in(&config->sinks);

	if (!sink || config->store) /* two are refused where sinks are opened */
		config->store = name;
	if (sink && asprintf(sink, "store=%s", name) < 0)
		*sink = NULL;
}

/* Where hearth keeps what is not a store's: the default folder. */
static void hand_state(struct handed_over *h, const char *folder)
{
	const char *name = folder;

	if (!hand_folder(h, folder, &name))
		(void)setenv("STATE_DIRECTORY", name, 1);
}

/* Words that are no folder's are the store's to refuse, or to keep in memory. */
static bool is_folder_name(const char *place)
{
	const char *is = strchr(place, '=');

	return strcmp(place, ":memory:") != 0 && !store_is_clickhouse(place) &&
	       !(is && sinks_has_type(place, (size_t)(is - place)));
}

static void hand_store(struct handed_over *h, struct config *config, bool keeps, const char *default_folder)
{
	const char *given = store_given(config), *name = given ? given : default_folder;
	int err;

	if (!name || !is_folder_name(name))
		return;
	if (!given && !keeps && !config->store) /* ClickHouse keeps symbols that were sent there */
		return;
	if (!given && !keeps) {
		hand_state(h, default_folder);
		return;
	}
	err = hand_folder(h, name, &name);
	if (err) {
		h->store_errno = err;
		snprintf(h->store_error, sizeof(h->store_error), "cannot keep profiles in %s: %s", name, strerror(-err));
	} else if (given) {
		set_store(config, name);
	} else {
		(void)setenv("STATE_DIRECTORY", name, 1);
	}
}

/* Files of debug servers come into a folder of the backend's own, or the one that the environment names. */
static void hand_cache(struct handed_over *h, const char *folder)
{
	const char *urls = getenv("DEBUGINFOD_URLS"), *set = getenv("DEBUGINFOD_CACHE_PATH"), *name;
	AUTO_FREE char *path = NULL;

	if (!urls || !*urls || !h->owner.changes || !folder)
		return;
	if (set && *set)
		path = strdup(set);
	else if (asprintf(&path, "%s/debuginfod", folder) < 0)
		path = NULL;
	name = path;
	if (path && !hand_folder(h, path, &name) && name != path) {
		path = NULL; /* handed_add has it */
		(void)setenv("DEBUGINFOD_CACHE_PATH", name, 1);
	}
}

/* --- pipelines --- */

/* Names are as long-lived as the process, also those that others take the place of: messages have them. */
static void set_text(char **text, const char *name)
{
	char *copy = name != *text ? strdup(name) : NULL;

	if (copy)
		*text = copy;
}

static void hand_text(void *arg, char **text)
{
	const char *name = *text;

	hand_secret(arg, &name);
	set_text(text, name);
}

static void hand_spool(void *arg, char **text)
{
	const char *name = *text;

	if (!hand_folder(arg, *text, &name))
		set_text(text, name);
}

/* Opened as who started hearth may, and written to through this descriptor alone; what cannot be opened is the sink's to
 * say. */
static void hand_file(const char *path)
{
	const char *ignored, *shown;
	struct stat st;
	int fd;

	if (!stat(path, &st) && !S_ISREG(st.st_mode)) /* to open a pipe is to wait for who reads it */
		return;
	fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, 0644);
	fd = fd < 0 ? fd : high_fd(fd);
	shown = fd < 0 ? NULL : strdup(path);
	if (shown && !handed_add(fd, shown, &ignored))
		return;
	free((char *)(uintptr_t)shown);
	if (fd >= 0)
		close(fd);
}

static void hand_exporter(void *arg, char **sink)
{
	static const char prefix[] = "store=";
	struct handed_over *h = arg;
	const char *folder = *sink + strlen(prefix), *name = folder;
	char *fresh;
	int err;

	if (!strncmp(*sink, "file=", 5))
		hand_file(*sink + 5);
	if (strncmp(*sink, prefix, strlen(prefix)) != 0 || !is_folder_name(folder))
		return;
	err = hand_folder(h, folder, &name);
	if (err) {
		h->store_errno = err;
		snprintf(h->store_error, sizeof(h->store_error), "cannot keep profiles in %s: %s", folder, strerror(-err));
	} else if (name != folder && asprintf(&fresh, "%s%s", prefix, name) > 0) {
		*sink = fresh;
	}
}

static void hand_pipelines(struct handed_over *h, const struct pipelines *p)
{
	static const char *const secrets[] = { "collector-ca",	       "collector-cert",      "collector-key",
					       "collector-token-file", "store-password-file", "store-ca",
					       "kube-config",	       "kubelet-ca" };

	pipelines_each_sink(p, hand_exporter, h);
	pipelines_each_text(p, "spool", hand_spool, h);
	for (size_t i = 0; h->owner.changes && i < ARRAY_LEN(secrets); i++)
		pipelines_each_text(p, secrets[i], hand_text, h);
}

static void find_folder(void *arg, char **sink)
{
	const char **folder = arg;

	if (!*folder && !strncmp(*sink, "store=", 6) && is_folder_name(*sink + 6))
		*folder = *sink + 6;
}

/* --- all --- */

void hand_over(struct share *share, bool keeps, struct handed_over *ret)
{
	AUTO(buf_fini) struct buf folder = BUF_EMPTY;
	struct config *config = &share->backend;
	const char *given = store_given(config);
	const struct pipelines *pipelines = config->pipelines;
	static char *default_folder; /* as long as the process: configurations point there */

	if (!default_folder && !store_default_folder(&folder))
		default_folder = strdup(buf_text(&folder));
	if (pipelines)
		pipelines_each_sink(pipelines, find_folder, &given);
	*ret = (struct handed_over){ 0 };
	if (geteuid() == 0 && !owner_may_change())
		log_warn("the half of hearth that listens keeps the user id 0, without any capability: CAP_SETUID, "
			 "CAP_SETGID "
			 "or CAP_CHOWN is missing");
	ret->owner = owner_for(given && is_folder_name(given) ? given : default_folder);
	hand_store(ret, config, keeps, default_folder);
	if (config->spool) {
		const char *name = config->spool;

		if (!hand_folder(ret, config->spool, &name))
			config->spool = name;
	}
	hand_cache(ret, given && is_folder_name(given) ? given : default_folder);
	if (pipelines)
		hand_pipelines(ret, pipelines);
	if (ret->owner.changes) {
		hand_secrets(ret, config);
		hand_account(ret, config);
	}
	share_renew_senders(share);
}

/* --- ports --- */

static void hand_port(const char *address)
{
	const char *colon = address ? strrchr(address, ':') : NULL;
	unsigned long number = colon ? strtoul(colon + 1, NULL, 10) : 0;
	struct server_error ignored;
	uint16_t port = 0;
	int fd;

	if (!number || number >= FIRST_FREE_PORT)
		return;
	fd = listen_on(address, &port, &ignored);
	if (fd >= 0)
		(void)handed_add_socket(fd, address, port);
}

void hand_over_ports(const struct config *config)
{
	hand_port(config->http_address);
	hand_port(config->page_address);
	hand_port(config->metrics_address);
	hand_port(config->grpc_address);
	hand_port(config->pprof_address);
	hand_port(config->rest_address);
}
