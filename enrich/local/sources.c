/* SPDX-License-Identifier: Apache-2.0 */
#include "enrich/local/sources.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "enrich/local/state_json.h"

enum { MAX_STATE_BYTES = 4 << 20, MAX_STORAGE_BYTES = 32 << 20, PATH_BYTES = 1024 };

void local_fill(struct container *c, uint32_t *field, const char *text, size_t len)
{
	if (!*field)
		*field = texts_add(&c->texts, text, len);
}

/* Reads the file at the path that @format makes of the root and the id. */
__attribute__((format(printf, 1, 0))) static int read_state(const char *format, const char *root, const char *id,
							    size_t max_bytes, struct buf *out)
{
	char path[PATH_BYTES];

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	if (snprintf(path, sizeof(path), format, root, id) >= (int)sizeof(path))
		return -ENAMETOOLONG;
#pragma GCC diagnostic pop
	return io_read_file(path, max_bytes, out);
}

static int find_in(const char *format, const char *root, const char *id,
		   bool (*read)(const void *json, size_t len, struct container *c), struct container *c)
{
	AUTO(buf_fini) struct buf text = BUF_EMPTY;
	int err = read_state(format, root, id, MAX_STATE_BYTES, &text);

	if (err == -ENOTDIR)
		err = -ENOENT;
	return err ? err : read(text.data, text.len, c) ? 0 : -EBADMSG;
}

static int find_docker(const char *root, const char *id, struct container *c)
{
	return find_in("%s/var/lib/docker/containers/%s/config.v2.json", root, id, state_read_docker, c);
}

const struct local_source local_source_docker = { "docker", "/var/lib/docker/containers", find_docker };

/* The namespaces are those of Kubernetes and of nerdctl. */
static int find_containerd(const char *root, const char *id, struct container *c)
{
	static const char *const formats[] = {
		"%s/run/containerd/io.containerd.runtime.v2.task/k8s.io/%s/config.json",
		"%s/run/containerd/io.containerd.runtime.v2.task/default/%s/config.json",
	};
	int err = -ENOENT;

	for (size_t i = 0; i < ARRAY_LEN(formats) && err == -ENOENT; i++)
		err = find_in(formats[i], root, id, state_read_oci, c);
	return err;
}

const struct local_source local_source_containerd = { "containerd", "/run/containerd/io.containerd.runtime.v2.task",
						      find_containerd };

static int find_crio(const char *root, const char *id, struct container *c)
{
	return find_in("%s/run/containers/storage/overlay-containers/%s/userdata/config.json", root, id, state_read_oci, c);
}

const struct local_source local_source_crio = { "CRI-O", "/run/containers/storage/overlay-containers", find_crio };

/* Podman keeps the names of all containers in one file, those that must not outlive a boot in another. */
static int find_podman(const char *root, const char *id, struct container *c)
{
	static const char *const formats[] = {
		"%s/var/lib/containers/storage/overlay-containers/containers.json",
		"%s/var/lib/containers/storage/overlay-containers/volatile-containers.json",
	};
	int found = -ENOENT;

	for (size_t i = 0; i < ARRAY_LEN(formats) && found; i++) {
		AUTO(buf_fini) struct buf text = BUF_EMPTY;
		int err = read_state(formats[i], root, id, MAX_STORAGE_BYTES, &text);

		if (!err && state_read_podman(text.data, text.len, id, c))
			found = 0;
		else if (err && err != -ENOENT && err != -ENOTDIR)
			found = err;
	}
	return found;
}

const struct local_source local_source_podman = { "Podman", "/var/lib/containers/storage/overlay-containers/containers.json",
						  find_podman };

static int find_log_link(const char *root, const char *id, struct container *c)
{
	char path[PATH_BYTES];
	const struct dirent *e;
	int err = -ENOENT;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/var/log/containers", root);
	dir = opendir(path);
	if (!dir)
		return errno == ENOTDIR ? -ENOENT : -errno;
	while (err && (e = readdir(dir)))
		if (state_read_log_name(e->d_name, id, c))
			err = 0;
	closedir(dir);
	return err;
}

const struct local_source local_source_log_links = { "the kubelet's log links", "/var/log/containers", find_log_link };
