/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server that a store takes for ClickHouse: it says what was asked, in order, and answers each statement with the bytes
 * that were put there for it, or with a status. A thread of its own; begin and end it on another one. Include it after
 * cmocka.h.
 */
#ifndef HEARTH_TESTS_FAKE_CLICKHOUSE_H
#define HEARTH_TESTS_FAKE_CLICKHOUSE_H

#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "backend/store/clickhouse/clickhouse.h"
#include "base/buf.h"

enum { FAKE_ANSWERS = 8 };

struct fake_clickhouse {
	pthread_t thread;
	pthread_mutex_t lock; /* what follows */
	struct buf said;      /* a word a statement: "CREATE ", "INSERT hearth_samples " */
	struct buf asked;     /* the last SELECT */
	struct buf inserted;  /* the last INSERT's rows, packed */
	struct buf line;      /* the last request's first line */
	struct buf created;   /* the last statement that makes a database */
	int refuse_cnt;	      /* so many INSERTs are answered with ... */
	int refuse_status;
	struct {
		const char *part; /* of a statement */
		struct buf bytes;
	} answers[FAKE_ANSWERS];
	uint32_t version; /* of the tables; 0: there are none */
	int fd;
	char place[64];
};

/* Reads a request; *@body_ret points behind its head. False: there is none any more. */
static inline bool fake_read_request(int fd, char *text, size_t max, const char **body_ret, size_t *body_bytes_ret)
{
	size_t len = 0, wanted = SIZE_MAX;
	ssize_t n;

	while (len < wanted && len < max - 1 && (n = read(fd, text + len, max - 1 - len)) > 0) {
		const char *end, *length;

		len += (size_t)n;
		text[len] = '\0';
		end = strstr(text, "\r\n\r\n");
		if (!end)
			continue;
		*body_ret = end + 4;
		length = strcasestr(text, "content-length:");
		wanted = (size_t)(end + 4 - text) + (length && length < end ? strtoul(length + 15, NULL, 10) : 0);
	}
	if (len >= wanted)
		*body_bytes_ret = (size_t)(text + len - *body_ret);
	return len >= wanted;
}

/* Notes the statement, and finds the answer to it. Returns the status. */
static inline int fake_answer(struct fake_clickhouse *f, const char *head, const char *body, size_t body_bytes,
			      struct buf *answer)
{
	const char *insert = strstr(head, "query=INSERT");
	int status = 200;

	pthread_mutex_lock(&f->lock);
	buf_reset(&f->line);
	buf_append(&f->line, head, strcspn(head, "\r\n"));
	if (!strncmp(body, "CREATE DATABASE", 15)) {
		buf_reset(&f->created);
		buf_puts(&f->created, body);
	}
	if (insert && insert < body) {
		const char *table = strstr(insert, "hearth_");

		buf_printf(&f->said, "INSERT %.*s ", (int)strcspn(table, "%& ("), table);
		buf_reset(&f->inserted);
		buf_append(&f->inserted, body, body_bytes);
		if (f->refuse_cnt) {
			f->refuse_cnt--;
			status = f->refuse_status;
		}
	} else if (!strncmp(body, "TRUNCATE", 8)) {
		buf_printf(&f->said, "TRUNCATE %s ", strstr(body, "hearth_"));
	}
	if (!strncmp(body, "SELECT", 6)) {
		buf_reset(&f->asked);
		buf_puts(&f->asked, body);
	}
	if (strstr(body, "SELECT max(version)")) {
		buf_append(answer, &f->version, 4);
		buf_append(answer, &(uint64_t){ 0 }, 8); /* how long samples stay */
	}
	for (int i = 0; i < FAKE_ANSWERS && f->answers[i].part; i++)
		if (strstr(body, f->answers[i].part)) {
			buf_append(answer, f->answers[i].bytes.data, f->answers[i].bytes.len);
			break;
		}
	pthread_mutex_unlock(&f->lock);
	return status;
}

static inline void *fake_serve(void *arg)
{
	struct fake_clickhouse *f = arg;
	char *text = malloc(1 << 20);
	int fd;

	while (text && (fd = accept(f->fd, NULL, NULL)) >= 0) {
		struct buf answer = BUF_EMPTY, head = BUF_EMPTY;
		const char *body = NULL;
		size_t body_bytes = 0;

		if (fake_read_request(fd, text, 1 << 20, &body, &body_bytes)) {
			int status = fake_answer(f, text, body, body_bytes, &answer);

			buf_printf(&head, "HTTP/1.1 %d x\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n", status,
				   answer.len);
			buf_append(&head, answer.data, answer.len);
			if (write(fd, head.data, head.len) != (ssize_t)head.len)
				print_message("an answer was not taken\n");
		}
		buf_fini(&answer);
		buf_fini(&head);
		close(fd);
	}
	free(text);
	return NULL;
}

static inline void fake_begin(struct fake_clickhouse *f)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(address);

	*f = (struct fake_clickhouse){ .lock = PTHREAD_MUTEX_INITIALIZER };
	f->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(f->fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(f->fd, 16), 0);
	assert_int_equal(getsockname(f->fd, (struct sockaddr *)&address, &len), 0);
	snprintf(f->place, sizeof(f->place), "clickhouse+http://127.0.0.1:%u/some", ntohs(address.sin_port));
	assert_int_equal(pthread_create(&f->thread, NULL, fake_serve, f), 0);
}

/* Begins, and opens a store there. 0 or -errno. */
static inline int fake_store(struct fake_clickhouse *f, struct store **ret)
{
	struct store_config config;
	struct store_error error;

	fake_begin(f);
	config = (struct store_config){ .place = f->place };
	return store_clickhouse_open(&config, NULL, ret, &error);
}

static inline void fake_end(struct fake_clickhouse *f)
{
	shutdown(f->fd, SHUT_RDWR);
	pthread_join(f->thread, NULL);
	close(f->fd);
	buf_fini(&f->said);
	buf_fini(&f->asked);
	buf_fini(&f->inserted);
	buf_fini(&f->line);
	buf_fini(&f->created);
	for (int i = 0; i < FAKE_ANSWERS; i++)
		buf_fini(&f->answers[i].bytes);
}

/* Checks what was said since the last time. */
static inline void fake_check_said(struct fake_clickhouse *f, const char *said)
{
	pthread_mutex_lock(&f->lock);
	assert_string_equal(buf_text(&f->said), said);
	buf_reset(&f->said);
	pthread_mutex_unlock(&f->lock);
}

static inline void fake_refuse(struct fake_clickhouse *f, int count, int status)
{
	pthread_mutex_lock(&f->lock);
	f->refuse_cnt = count;
	f->refuse_status = status;
	pthread_mutex_unlock(&f->lock);
}

/* Statements with @part get what is appended to the buffer, by statements that come later; the first @part that fits counts.
 */
static inline struct buf *fake_answer_to(struct fake_clickhouse *f, const char *part)
{
	int i = 0;

	while (f->answers[i].part)
		assert_true(++i < FAKE_ANSWERS - 1);
	f->answers[i].part = part;
	return &f->answers[i].bytes;
}

#endif
