/* SPDX-License-Identifier: Apache-2.0 */
/* The access that a pod has by its service account, to the API server and to the kubelet. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/handed.h"
#include "enrich/kube/kube.h"

void kube_access_fini(struct kube_access *a)
{
	char *const texts[] = { a->url,	      a->ca_file,  a->ca_pem,	a->token_file, a->token,
				a->cert_file, a->cert_pem, a->key_file, a->key_pem,    a->namespace };

	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		free(texts[i]);
	*a = (struct kube_access){ 0 };
}

/* An IPv6 address stands in brackets within a URL. */
static char *url_of(const char *host, const char *port)
{
	bool is_ipv6 = strchr(host, ':');
	char *url;

	return asprintf(&url, "https://%s%s%s:%s", is_ipv6 ? "[" : "", host, is_ipv6 ? "]" : "", port) < 0 ? NULL : url;
}

static char *path_below(const char *folder, const char *name)
{
	char *path;

	return asprintf(&path, "%s/%s", folder, name) < 0 ? NULL : path;
}

/* The token may be for root alone to read: then a copy was handed over. */
static char *token_below(const char *folder)
{
	AUTO_FREE char *path = path_below(folder, "token");

	return path ? strdup(handed_path(path)) : NULL;
}

int kube_access_of_pod(const char *folder, struct kube_access *ret, struct buf *error)
{
	const char *host = getenv("KUBERNETES_SERVICE_HOST"), *port = getenv("KUBERNETES_SERVICE_PORT");
	int err = 0;

	*ret = (struct kube_access){ 0 };
	if (!host || !*host)
		return -ENOENT;
	folder = folder ? folder : KUBE_ACCOUNT_FOLDER;
	ret->url = url_of(host, port && *port ? port : "443");
	ret->token_file = token_below(folder);
	ret->ca_file = path_below(folder, "ca.crt");
	if (!ret->url || !ret->token_file || !ret->ca_file)
		err = -ENOMEM;
	else if (access(ret->token_file, R_OK) || access(ret->ca_file, R_OK))
		err = -errno;
	if (err && err != -ENOMEM)
		buf_printf(error,
			   "this is a pod, but %s has no token and ca.crt to read (%s): its spec says "
			   "automountServiceAccountToken: false, or it has no service account",
			   folder, strerror(-err));
	if (err)
		kube_access_fini(ret);
	return err;
}

int kube_access_of_kubelet(const char *url, const char *ca_file, const char *folder, struct kube_access *ret,
			   struct buf *error)
{
	size_t len = strlen(url);

	*ret = (struct kube_access){ .is_kubelet = true };
	if (strncmp(url, "https://", 8) != 0 && strncmp(url, "http://", 7) != 0) {
		buf_printf(error, "--kubelet: '%s' is no http(s):// address", url);
		return -EINVAL;
	}
	while (len && url[len - 1] == '/')
		len--;
	ret->url = strndup(url, len);
	ret->ca_file = ca_file ? strdup(ca_file) : NULL;
	ret->token_file = token_below(folder ? folder : KUBE_ACCOUNT_FOLDER);
	if (!ret->url || !ret->token_file || (ca_file && !ret->ca_file)) {
		kube_access_fini(ret);
		return -ENOMEM;
	}
	if (access(ret->token_file, R_OK)) {
		free(ret->token_file);
		ret->token_file = NULL;
	}
	return 0;
}
