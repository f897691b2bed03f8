/* SPDX-License-Identifier: Apache-2.0 */
/* A server on the loopback that answers each request as the test says, by its first line, and keeps what was asked. */
#ifndef HEARTH_TESTS_HTTP_ANSWERS_H
#define HEARTH_TESTS_HTTP_ANSWERS_H

#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

/* Ends with one whose @begin is NULL, which answers all others with 404. */
struct http_answer {
	const char *begin; /* of the request, "GET /" */
	int status;
	const char *text;
};

struct http_answers {
	const struct http_answer *answers;
	pthread_t thread;
	int sock;
	char url[64];
	unsigned count;	    /* requests */
	char head[4096];    /* of the last one */
	size_t body_bytes;  /* which came */
	long content_bytes; /* which were promised; -1: nothing was */
};

static inline void http_answers_take(struct http_answers *s, int fd)
{
	static const char *const reasons[] = { [2] = "OK", [4] = "No", [5] = "Broken" };
	const struct http_answer *a = s->answers;
	char *end = NULL, rest[4096], *length;
	size_t len = 0;
	ssize_t n = 1;

	while (!end && len < sizeof(s->head) - 1 && (n = read(fd, s->head + len, sizeof(s->head) - 1 - len)) > 0) {
		len += (size_t)n;
		s->head[len] = '\0';
		end = strstr(s->head, "\r\n\r\n");
	}
	if (!end)
		return;
	s->count++;
	s->body_bytes = len - (size_t)(end + 4 - s->head);
	length = strcasestr(s->head, "\r\nContent-Length:");
	s->content_bytes = length && length < end ? strtol(length + 17, NULL, 10) : -1;
	end[4] = '\0';
	if (strcasestr(s->head, "\r\nExpect: 100-continue\r\n")) /* of a large body, which else comes after a second */
		dprintf(fd, "HTTP/1.1 100 Continue\r\n\r\n");
	while ((long)s->body_bytes < s->content_bytes && (n = read(fd, rest, sizeof(rest))) > 0)
		s->body_bytes += (size_t)n;
	while (a->begin && strncmp(s->head, a->begin, strlen(a->begin)) != 0)
		a++;
	if (a->begin)
		dprintf(fd, "HTTP/1.1 %d %s\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n%s", a->status,
			reasons[a->status / 100], strlen(a->text), a->text);
	else
		dprintf(fd, "HTTP/1.1 404 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
}

static inline void *http_answers_main(void *arg)
{
	struct http_answers *s = arg;
	int fd;

	while ((fd = accept(s->sock, NULL, NULL)) >= 0) {
		http_answers_take(s, fd);
		close(fd);
	}
	return NULL;
}

static inline void http_answers_begin(struct http_answers *s, const struct http_answer *answers)
{
	struct sockaddr_in addr = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(addr);

	memset(s, 0, sizeof(*s));
	s->answers = answers;
	s->sock = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (s->sock < 0 || bind(s->sock, (struct sockaddr *)&addr, len) || listen(s->sock, 8) ||
	    getsockname(s->sock, (struct sockaddr *)&addr, &len) || pthread_create(&s->thread, NULL, http_answers_main, s))
		abort();
	snprintf(s->url, sizeof(s->url), "http://127.0.0.1:%d", ntohs(addr.sin_port));
}

static inline void http_answers_end(struct http_answers *s)
{
	shutdown(s->sock, SHUT_RDWR);
	pthread_join(s->thread, NULL);
	close(s->sock);
}

#endif
