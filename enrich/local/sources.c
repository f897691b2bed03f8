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
/* Reads the file "@root @folder @id @file", put together. */
static int read_state(const char *root, const char *folder, const char *id, const char *file, size_t max_bytes,
		      struct buf *out)
{
	char path[PATH_BYTES];

	if (snprintf(path, sizeof(path), "%s%s%s%s", root, folder, id, file) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	return io_read_file(path, max_bytes, out);
}

static int find_in(const char *root, const char *folder, const char *id, const char *file,
		   bool (*read)(const void *json, size_t len, struct container *c), struct container *c)
{
	AUTO(buf_fini) struct buf text = BUF_EMPTY;
	int err = read_state(root, folder, id, file, MAX_STATE_BYTES, &text);

	if (err == -ENOTDIR)
		err = -ENOENT;
	return err ? err : read(text.data, text.len, c) ? 0 : -EBADMSG;
}

static int find_docker(const char *root, const char *id, struct container *c)
{
	return find_in(root, "/var/lib/docker/containers/", id, "/config.v2.json", state_read_docker, c);
}

const struct local_source local_source_docker = { "docker", "/var/lib/docker/containers", find_docker };

/* The namespaces are those of Kubernetes and of nerdctl. */
static int find_containerd(const char *root, const char *id, struct container *c)
{
	static const char *const folders[] = {
		"/run/containerd/io.containerd.runtime.v2.task/k8s.io/",
		"/run/containerd/io.containerd.runtime.v2.task/default/",
	};
	int err = -ENOENT;

	for (size_t i = 0; i < ARRAY_LEN(folders) && err == -ENOENT; i++)
		err = find_in(root, folders[i], id, "/config.json", state_read_oci, c);
	return err;
}

const struct local_source local_source_containerd = { "containerd", "/run/containerd/io.containerd.runtime.v2.task",
						      find_containerd };

static int find_crio(const char *root, const char *id, struct container *c)
{
	return find_in(root, "/run/containers/storage/overlay-containers/", id, "/userdata/config.json", state_read_oci, c);
}

const struct local_source local_source_crio = { "CRI-O", "/run/containers/storage/overlay-containers", find_crio };

/* Podman keeps the names of all containers in one file, those that must not outlive a boot in another. */
static int find_podman(const char *root, const char *id, struct container *c)
{
	static const char *const files[] = { "containers.json", "volatile-containers.json" };
	int found = -ENOENT;

	for (size_t i = 0; i < ARRAY_LEN(files) && found; i++) {
		AUTO(buf_fini) struct buf text = BUF_EMPTY;
		int err = read_state(root, "/var/lib/containers/storage/overlay-containers/", "", files[i],
				     MAX_STORAGE_BYTES, &text);

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
