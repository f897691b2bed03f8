/* SPDX-License-Identifier: Apache-2.0 */
/* Packets as they are; a message is never larger than 4 GB, and a packet goes whole or not at all. */
#include "cmd/halves/wire.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/fd_pass.h"
#include "base/metrics.h"

enum { MAX_MESSAGE_BYTES = 1 << 30 };

/* --- notes --- */

int wire_send_note(int sock, const struct wire_note *note, int fd)
{
	const struct iovec bytes = { .iov_base = (void *)(uintptr_t)note, .iov_len = sizeof(*note) };
	ssize_t n = fd_pass_send(sock, &bytes, 1, &fd, fd >= 0, 0);

	return n < 0 ? (int)n : 0;
}

int wire_receive_note(int sock, struct wire_note *note, int *fd_ret)
{
	const struct iovec bytes = { .iov_base = note, .iov_len = sizeof(*note) };
	AUTO_CLOSE int fd = -1;
	ssize_t n = fd_pass_receive(sock, &bytes, 1, &fd, 1, MSG_DONTWAIT);

	*fd_ret = -1;
	if (n < 0)
		return n == -ECONNRESET ? -EPIPE : n == -EMFILE ? -EBADMSG : (int)n;
	if (n != sizeof(*note))
		return n ? -EBADMSG : -EPIPE;
	*fd_ret = MOVE_FD(fd);
	return 0;
}

/* --- messages --- */

ptrdiff_t wire_send_piece(int sock, const struct wire_head *message, const uint8_t *body, size_t offset)
{
	struct wire_head head = *message;
	size_t left = message->total_bytes - offset, len = left < WIRE_PIECE_BYTES ? left : WIRE_PIECE_BYTES;
	struct iovec parts[] = { { .iov_base = &head, .iov_len = sizeof(head) },
				 { .iov_base = (void *)(uintptr_t)(body ? body + offset : NULL), .iov_len = len } };
	ssize_t n;

	head.offset = (uint32_t)offset;
	n = fd_pass_send(sock, parts, len ? 2 : 1, NULL, 0, MSG_DONTWAIT);
	return n < 0 ? n : (ptrdiff_t)len;
}

static int add_piece(struct wire_message *m, const struct wire_head *head, size_t len)
{
	if (head->offset == 0) {
		m->head = *head;
		m->body.len = 0;
	} else if (head->kind != m->head.kind || head->number != m->head.number || head->offset != m->body.len) {
		return 0; /* of a message whose beginning went to another backend */
	}
	m->body.len += len;
	m->is_whole = m->body.len == m->head.total_bytes;
	return 0;
}

int wire_receive(int sock, struct wire_message *m)
{
	struct wire_head head;
	size_t at = m->is_whole ? 0 : m->body.len;
	struct iovec parts[] = { { .iov_base = &head, .iov_len = sizeof(head) }, { .iov_len = WIRE_PIECE_BYTES } };
	ssize_t n;

	m->is_whole = false;
	m->body.len = at;
	if (buf_reserve(&m->body, WIRE_PIECE_BYTES))
		return -ENOMEM;
	parts[1].iov_base = m->body.data + at;
	n = fd_pass_receive(sock, parts, 2, NULL, 0, 0);
	if (n <= 0)
		return n == 0 || n == -ECONNRESET ? -EPIPE : (int)n;
	if ((size_t)n < sizeof(head) || head.total_bytes > MAX_MESSAGE_BYTES)
		return -EBADMSG;
	if (head.offset == 0 && at)
		memmove(m->body.data, m->body.data + at, (size_t)n - sizeof(head));
	return add_piece(m, &head, (size_t)n - sizeof(head));
}

/* --- series --- */

/* A series: name, help, labels, type as texts with a NUL behind each; a byte whether it counts nanoseconds; 8 bytes. */
static void put_series(void *arg, const struct metric_view *view)
{
	const char *const texts[] = { view->name, view->help, view->labels, view->type };
	const uint8_t in_ns = view->in_ns;

	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		buf_append(arg, texts[i], strlen(texts[i]) + 1);
	buf_append(arg, &in_ns, 1);
	buf_append(arg, &view->value, sizeof(view->value));
}

void wire_put_series(struct metrics *metrics, struct buf *out)
{
	metrics_view(metrics, put_series, out);
}

/* The text at *@at, which moves behind its NUL; NULL: there is no NUL. */
static const char *take_text(const struct buf *body, size_t *at)
{
	const char *text = (const char *)body->data + *at;
	const char *end = *at < body->len ? memchr(text, '\0', body->len - *at) : NULL;

	if (!end)
		return NULL;
	*at += (size_t)(end - text) + 1;
	return text;
}

int wire_take_series(struct metrics *metrics, struct buf *body)
{
	for (size_t at = 0; at < body->len;) {
		struct metric_view view = { 0 };
		const char **const texts[] = { &view.name, &view.help, &view.labels, &view.type };

		for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
			*texts[i] = take_text(body, &at);
			if (!*texts[i])
				return -EBADMSG;
		}
		if (body->len - at < 1 + sizeof(view.value))
			return -EBADMSG;
		view.in_ns = body->data[at++];
		memcpy(&view.value, body->data + at, sizeof(view.value));
		at += sizeof(view.value);
		(void)metrics_other(metrics, &view); /* one of another type, or one too many, is left out */
	}
	return 0;
}
