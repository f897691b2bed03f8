/* SPDX-License-Identifier: Apache-2.0 */
/* The backend's process, with the test as its agent: what is told to it, what it answers, and what its page says. Include it
 * after cmocka.h, in the one file of a binary. */
#ifndef HEARTH_TESTS_BACKEND_PROCESS_H
#define HEARTH_TESTS_BACKEND_PROCESS_H

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "cmd/halves/backend_half.h"
#include "cmd/halves/wire.h"
#include "cmd/setup/made_up.h"
#include "cmd/setup/page.h"
#include "proto/otlp/otlp.h"
#include "tests/unit/cmd/parsed.h"
#include "tests/unit/http_answers.h"

#define ANY "127.0.0.1:0"

enum { SAMPLES = 40, LAST_MS = 10000 };

static struct config config;
static struct share share;
static struct handed_over handed;
static struct backend_task task;
static FILE *messages;
static pid_t pid;
static int sock; /* the agent's end */
static struct wire_note note;

/* --- the process --- */

static inline void prepare(const char *const *words)
{
	config = parse_words(&cmd_run, words);
	assert_int_equal(share_divide(&config, &share), 0);
	handed = (struct handed_over){ .owner = { .is_decided = true } };
	task = (struct backend_task){ .share = &share, .handed = &handed, .is_first = true };
	assert_int_equal(ftruncate(fileno(messages), 0), 0);
	rewind(messages);
}

#define PREPARE(...) prepare((const char *const[]){ "--signals-size", "0", __VA_ARGS__, NULL })

static inline void start(void)
{
	int pair[2];

	assert_return_code(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), errno);
	fflush(NULL);
	pid = fork();
	if (!pid) {
		close(pair[0]);
		task.sock = pair[1];
		dup2(fileno(messages), STDERR_FILENO);
		backend_half(&task);
	}
	close(pair[1]);
	sock = pair[0];
}

static inline const char *all_said(void)
{
	static char all[16 << 10];
	ssize_t n = pread(fileno(messages), all, sizeof(all) - 1, 0);

	all[n > 0 ? n : 0] = '\0';
	return all;
}

static inline bool said(const char *text)
{
	return strstr(all_said(), text);
}

/* Its exit status. */
static inline int ended(void)
{
	int status = -1;

	for (int i = 0; i < LAST_MS && waitpid(pid, &status, WNOHANG) != pid; i++)
		usleep(1000);
	if (status == -1) {
		kill(pid, SIGKILL);
		waitpid(pid, &status, 0);
	}
	if (sock >= 0)
		close(sock);
	for (size_t i = 0; i < handed.folder_count; i++)
		close(handed.folders[i]);
	share_fini(&share);
	config_fini(&config);
	if (!WIFEXITED(status))
		fail_msg("ended by signal %d", WTERMSIG(status));
	return WEXITSTATUS(status);
}

/* The next note, of @kind. */
static inline void expect(enum note_kind kind)
{
	struct timeval within = { .tv_sec = LAST_MS / 1000 };

	(void)setsockopt(sock, SOL_SOCKET, SO_RCVTIMEO, &within, sizeof(within));
	note = (struct wire_note){ .kind = UINT32_MAX };
	assert_int_equal(recv(sock, &note, sizeof(note), 0), sizeof(note));
	if (note.kind != kind)
		fail_msg("kind %u, status %d; it said: %s", note.kind, note.status, all_said());
}

static inline void expect_none(unsigned ms)
{
	usleep(ms * 1000);
	assert_int_equal(recv(sock, &note, sizeof(note), MSG_DONTWAIT), -1);
}

static inline void expect_end(void)
{
	assert_int_equal(recv(sock, &note, sizeof(note), 0), 0);
}

static inline void expect_ready(void)
{
	expect(NOTE_HELLO);
	assert_int_equal(note.number, pid);
	expect(NOTE_READY);
	assert_int_equal(note.status, 0);
}

static inline void tell(enum wire_kind kind, uint64_t number, const void *body, size_t len)
{
	const struct wire_head head = { .kind = kind, .total_bytes = (uint32_t)len, .number = number };

	assert_int_equal(wire_send_piece(sock, &head, body, 0), len);
}

static inline void tell_profiles(uint64_t number)
{
	AUTO(buf_fini) struct buf body = BUF_EMPTY;
	struct profiles *p;

	assert_int_equal(made_up_profiles(SAMPLES, clock_unix_ns(), NSEC_PER_SEC, &p), 0);
	assert_int_equal(otlp_encode(p, NULL, &body), 0);
	profiles_put(p);
	tell(WIRE_PROFILES, number, body.data, body.len);
}

static inline void welcome(void)
{
	tell(WIRE_WELCOME, (uint64_t)pid, NULL, 0);
}

static inline void expect_flushed(uint64_t within_ns, int status, uint64_t dropped, uint64_t spooled)
{
	tell(WIRE_FLUSH, within_ns, NULL, 0);
	expect(NOTE_FLUSHED);
	assert_int_equal(note.status, status);
	assert_int_equal(note.values[0], dropped);
	assert_int_equal(note.values[1], spooled);
	expect_end();
	assert_int_equal(ended(), BACKEND_DONE);
}

/* What its page at @port answers to a request of @path; "" when nobody is there. */
static inline const char *page_says(uint16_t port, const char *path)
{
	static struct buf text;
	const struct sockaddr_in at = { .sin_family = AF_INET,
					.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
					.sin_port = htons(port) };
	AUTO_CLOSE int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	const struct timeval within = { .tv_usec = 500 * 1000 }; /* one that has stopped takes connections, and is silent */
	char piece[4096];
	ssize_t n;

	buf_reset(&text);
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &within, sizeof(within));
	if (connect(fd, (const struct sockaddr *)&at, sizeof(at)) == 0) {
		dprintf(fd, "GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n", path);
		while ((n = read(fd, piece, sizeof(piece))) > 0)
			buf_append(&text, piece, (size_t)n);
	}
	return buf_text(&text);
}

/* Waits until it has @text. */
static inline void page_will_say(uint16_t port, const char *path, const char *text)
{
	for (int i = 0; i < LAST_MS / 10; i++) {
		if (strstr(page_says(port, path), text))
			return;
		usleep(10000);
	}
	fail_msg("'%s' is not in: %s", text, page_says(port, path));
}

static const struct http_answer takes_nothing[] = { { 0 } };

static inline int set_up(void **state)
{
	(void)state;
	messages = tmpfile();
	return messages ? 0 : -1;
}

static inline int tear_down(void **state)
{
	(void)state;
	return fclose(messages);
}

#endif
