/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An exporter and a collector that answers as told, for the exporter's tests. finish() balances the books: samples in =
 * exported + dropped, and exported = what the server counted in the bodies it acknowledged. Include it after cmocka.h.
 */
#ifndef HEARTH_TESTS_EXPORTER_H
#define HEARTH_TESTS_EXPORTER_H

#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "sinks/sinks.h"
#include "tests/unit/sinks/vectors.h"
#include "tests/unit/sinks/counted_ack.h"

#define LONG_NS (20 * NSEC_PER_SEC)

enum { MAX_ARGUMENTS = 16, MAX_REQUESTS = 512, EVENTS = 100 };

static const char *const accepted_answers[] = { "answer=200 ", "answer=202 ", "answer=200:partial",
						"answer=OK",   ":200 ",	      "answer=slow=" };

#define ANSWERS(...) ((const char *const[]){ __VA_ARGS__, NULL })

struct collector {
	pid_t pid;
	FILE *out;
	int port;
};

/* Starts @argv; the server goes with this process. Its first line is "port N". */
static struct collector collector_run(const char *const *arguments)
{
	struct collector c = { .pid = -1 };
	char line[32];
	int pipe_fds[2];

	assert_int_equal(pipe2(pipe_fds, O_CLOEXEC), 0);
	c.pid = fork();
	assert_true(c.pid >= 0);
	if (c.pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(pipe_fds[1], STDOUT_FILENO);
		execvp(arguments[0], (char *const *)(uintptr_t)arguments);
		_exit(127);
	}
	close(pipe_fds[1]);
	c.out = fdopen(pipe_fds[0], "r");
	assert_non_null(c.out);
	if (!fgets(line, sizeof(line), c.out) || sscanf(line, "port %d", &c.port) != 1)
		fail_msg("the test collector did not start");
	return c;
}

/* The HTTP one, on @port (0: a free one). */
static inline struct collector collector_start(int port, const char *const *answers)
{
	char port_text[16];
	const char *arguments[MAX_ARGUMENTS] = { "python3", TEST_DATA "/unit/sinks/collector.py", port_text };

	snprintf(port_text, sizeof(port_text), "%d", port);
	for (size_t i = 0; answers[i]; i++)
		arguments[3 + i] = answers[i];
	return collector_run(arguments);
}

/* Waits for a request that is answered as @answer says; the lines until then go to @lines. Ends this process when none
 * comes. */
static inline void collector_wait(struct collector *c, const char *answer, struct buf *lines)
{
	char line[1024] = "", wanted[64];

	snprintf(wanted, sizeof(wanted), "answer=%s ", answer);
	alarm(LONG_NS / NSEC_PER_SEC);
	do {
		if (!fgets(line, sizeof(line), c->out))
			fail_msg("the collector ended before it had to answer %s", answer);
		buf_puts(lines, line);
	} while (!strstr(line, wanted));
	alarm(0);
}

/* Ends the server and returns its lines. */
static void collector_stop(struct collector *c, struct buf *lines)
{
	char chunk[4096];
	size_t n;

	kill(c->pid, SIGTERM);
	waitpid(c->pid, NULL, 0);
	while ((n = fread(chunk, 1, sizeof(chunk), c->out)) > 0)
		buf_append(lines, chunk, n);
	fclose(c->out);
}

struct exporter {
	struct sink *sink;
	struct metrics *metrics;
	struct counted_ack ack;
	struct counted_ack acks[MAX_REQUESTS];
	unsigned consumed;
	uint64_t samples;
	uint64_t spooled_before, spooled_after; /* the test's to say */
	FILE *log;				/* what went to stderr since the start */
	int saved_stderr;
};

static void exporter_open(struct exporter *e, struct otlp_sink_config config)
{
	*e = (struct exporter){ .metrics = metrics_new(), .log = tmpfile(), .saved_stderr = dup(STDERR_FILENO) };
	assert_non_null(e->log);
	dup2(fileno(e->log), STDERR_FILENO);
	assert_int_equal(sink_otlp_new(&config, e->metrics, &e->sink), 0);
}

static inline void exporter_start(struct exporter *e, int port, struct otlp_sink_config config)
{
	char url[64];

	snprintf(url, sizeof(url), "http://user:secret@127.0.0.1:%d", port);
	config.url = url;
	exporter_open(e, config);
}

static inline void export_events(struct exporter *e, unsigned events)
{
	struct profiles *p = agent_profiles(e->consumed, events);
	struct counted_ack *ack = &e->acks[e->consumed++];

	ack->ack.done = counted_done;
	e->samples += events;
	assert_int_equal(sink_consume(e->sink, p, &ack->ack), 0);
	assert_int_equal(p->refs, 1);
	profiles_put(p);
}

static inline int flush_for(struct exporter *e, uint64_t ns)
{
	return sink_flush(e->sink, clock_mono_ns() + ns);
}

static uint64_t counter(struct exporter *e, const char *name, const char *labels)
{
	return metric_get(metrics_counter(e->metrics, name, labels, ""));
}

static inline uint64_t attempts(struct exporter *e, const char *result)
{
	char labels[64];

	snprintf(labels, sizeof(labels), "result=\"%s\"", result);
	return counter(e, "hearth_export_requests_total", labels);
}

static inline uint64_t dropped(struct exporter *e, const char *reason)
{
	char labels[64];

	snprintf(labels, sizeof(labels), "reason=\"%s\"", reason);
	return counter(e, "hearth_export_dropped_samples_total", labels);
}

static uint64_t exported(struct exporter *e)
{
	return counter(e, "hearth_exported_samples_total", NULL);
}

/* Sum of @field over the request lines whose answer acknowledged them. */
static uint64_t acknowledged(struct buf *lines, const char *field)
{
	AUTO_FREE char *copy = strdup(buf_text(lines));
	uint64_t sum = 0;
	char *rest = copy;

	assert_non_null(copy);
	for (char *line; (line = strsep(&rest, "\n"));) {
		const char *value = strstr(line, field);

		for (size_t i = 0; value && i < ARRAY_LEN(accepted_answers); i++)
			if (strstr(line, accepted_answers[i]))
				sum += strtoull(value + strlen(field), NULL, 10);
	}
	return sum;
}

static inline unsigned count_lines(struct buf *lines)
{
	unsigned count = 0;

	for (const char *c = buf_text(lines); (c = strchr(c, '\n')); c++)
		count++;
	return count;
}

static uint64_t all_dropped(struct exporter *e)
{
	static const char *const reasons[] = { "queue full", "refused",	   "shutdown",	"unanswered",
					       "error",	     "spool full", "spool age", "spool corrupt" };
	uint64_t sum = 0;

	for (size_t i = 0; i < ARRAY_LEN(reasons); i++)
		sum += dropped(e, reasons[i]);
	return sum;
}

/* Ends both, balances the books, and leaves the collector's lines and our messages. Either may be NULL. */
static void finish(struct exporter *e, struct collector *c, struct buf *lines, struct buf *messages)
{
	struct buf own_lines = BUF_EMPTY;
	uint64_t sum = exported(e), delivered = sum, bytes = counter(e, "hearth_export_bytes_total", NULL);
	char chunk[4096];
	size_t n;

	lines = lines ? lines : &own_lines;
	sink_free(e->sink);
	dup2(e->saved_stderr, STDERR_FILENO); /* what fails from here on is shown */
	close(e->saved_stderr);
	for (unsigned i = 0; i < e->consumed; i++)
		assert_int_equal(e->acks[i].done, 1);
	assert_int_equal(sum + all_dropped(e) + e->spooled_after, e->samples + e->spooled_before);
	if (c) {
		collector_stop(c, lines);
		assert_int_equal(acknowledged(lines, " events="), delivered);
		assert_int_equal(acknowledged(lines, " sent="), bytes);
	}
	rewind(e->log);
	while (messages && (n = fread(chunk, 1, sizeof(chunk), e->log)) > 0)
		buf_append(messages, chunk, n);
	fclose(e->log);
	metrics_free(e->metrics);
	buf_fini(&own_lines);
}

static void assert_has(struct buf *text, const char *part)
{
	if (!strstr(buf_text(text), part))
		fail_msg("'%s' is not in:\n%s", part, buf_text(text));
}

/* A port where nothing listens now. */
static inline int free_port(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	assert_int_equal(bind(fd, (struct sockaddr *)&address, len), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &len), 0);
	close(fd);
	return ntohs(address.sin_port);
}

static inline void wait_for_attempt(struct exporter *e, const char *result)
{
	uint64_t until = clock_mono_ns() + LONG_NS;

	while (attempts(e, result) == 0 && clock_mono_ns() < until)
		usleep(1000);
	assert_true(attempts(e, result) > 0);
}

#endif
