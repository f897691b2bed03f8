/* SPDX-License-Identifier: Apache-2.0 */
/* One question, for who does not follow anything. */
#include <errno.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/log.h"
#include "enrich/kube/client.h"
#include "enrich/kube/kube.h"

enum { ANSWER_MAX_BYTES = 1 << 20 };

static int take_bytes(void *arg, const char *data, size_t len)
{
	struct buf *out = arg;

	if (out->len + len > ANSWER_MAX_BYTES)
		return -EFBIG;
	buf_append(out, data, len);
	return out->failed ? -ENOMEM : 0;
}

int kube_ask(struct kube_access *access, const char *path, uint64_t timeout_ns, struct buf *out)
{
	static const _Atomic bool never = false;
	const struct kube_request request = {
		.path = path,
		.timeout_ms = timeout_ns / NSEC_PER_MSEC,
		.body = take_bytes,
		.arg = out,
	};
	struct buf error = BUF_EMPTY;
	struct client *client = NULL;
	struct kube_answer answer;
	int err = client_new(access, &never, &client, &error);

	if (!err) {
		client_get(client, &request, &answer);
		err = answer.outcome == KUBE_OK ? 0 : answer.outcome == KUBE_ABSENT ? -ENOENT : -EIO;
	}
	if (err == -EIO)
		log_warn("Kubernetes does not tell %s: %s", path, answer.message);
	else if (err && error.len)
		log_warn("Kubernetes cannot be asked: %s", buf_text(&error));
	client_free(client);
	buf_fini(&error);
	kube_access_fini(access);
	return err;
}
