/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The channel between hearth's halves alone: hands the profiles of a capture over time and again, as an agent does at the
 * end of each interval, to a process that takes them as the backend does, up to where its sinks would have them. Prints
 * nanoseconds of CPU time a sample, of the agent's side and of the backend's. channel FILE
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "base/loop.h"
#include "base/metrics.h"
#include "cmd/halves/channel.h"
#include "proto/otlp/otlp.h"

enum { WARM = 3, SECONDS = 2, MAX_BYTES = 1 << 30 };

static double seconds_of(const struct timeval *t)
{
	return (double)t->tv_sec + (double)t->tv_usec / 1e6;
}

static double cpu_s(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return seconds_of(&u.ru_utime) + seconds_of(&u.ru_stime);
}

/* The other half: decodes and acknowledges. The messages after the first WARM count; says how much CPU time they took. */
__attribute__((noreturn)) static void be_backend(int sock, int out)
{
	struct wire_message m = { 0 };
	struct otlp_error why;
	double from = 0, took;
	uint64_t count = 0;

	(void)wire_send_note(sock, &(struct wire_note){ .kind = NOTE_HELLO, .number = 1 }, -1);
	for (int err = 0; err != -EPIPE;) {
		struct profiles *p = NULL;
		uint8_t *bytes;
		size_t len;

		err = wire_receive(sock, &m);
		if (err || !m.is_whole || m.head.kind != WIRE_PROFILES)
			continue;
		bytes = buf_take(&m.body, &len);
		if (otlp_decode(bytes, len, true, &p, &why))
			_exit(1);
		profiles_put(p);
		if (++count == WARM)
			from = cpu_s();
		(void)wire_send_note(sock, &(struct wire_note){ .kind = NOTE_ACK, .number = m.head.number }, -1);
	}
	took = cpu_s() - from;
	_exit(write(out, &took, sizeof(took)) != sizeof(took));
}

/* Hands @p over and waits for its acknowledgement, which a counter tells. */
static void hand_over(struct channel *c, struct loop *loop, const struct metric *queue, struct profiles *p)
{
	(void)sink_consume(channel_sink(c), p, NULL);
	while (metric_get(queue))
		(void)loop_step(loop, 1000);
}

static int measure(struct profiles *p, int sock, int result)
{
	struct metrics *metrics = metrics_new();
	struct loop *loop = NULL;
	struct channel *c = NULL;
	const struct metric *queue;
	double from = 0, agent, backend;
	uint64_t samples = 0;

	if (!metrics || loop_new(&loop) ||
	    channel_new(&(struct channel_config){ .sock = sock, .loop = loop, .metrics = metrics }, &c))
		return 1;
	queue = metrics_gauge(metrics, "hearth_channel_queue_bytes", NULL,
			      "Profiles that the backend has not acknowledged.");
	for (int i = 0; i < WARM || cpu_s() - from < SECONDS; i++) {
		if (i == WARM)
			from = cpu_s();
		hand_over(c, loop, queue, p);
		samples += i >= WARM ? p->sample_events : 0;
	}
	agent = cpu_s() - from;
	sink_free(channel_sink(c));
	if (read(result, &backend, sizeof(backend)) != sizeof(backend))
		return 1;
	printf("%.1f %.1f %llu\n", agent / (double)samples * 1e9, backend / (double)samples * 1e9,
	       (unsigned long long)p->sample_events);
	loop_free(loop);
	metrics_free(metrics);
	return 0;
}

int main(int argc, char **argv)
{
	AUTO(buf_fini) struct buf file = BUF_EMPTY;
	struct profiles *p;
	struct otlp_error err;
	int pair[2], out[2], status;
	FILE *f = argc == 2 ? fopen(argv[1], "r") : NULL;

	if (!f || io_read_all(fileno(f), MAX_BYTES, &file) || otlp_decode(file.data, file.len, false, &p, &err) ||
	    pipe(out) || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair)) {
		fprintf(stderr, "channel: cannot read %s\n", argc == 2 ? argv[1] : "a capture: name one");
		return 1;
	}
	fclose(f);
	if (!fork()) {
		close(pair[0]);
		be_backend(pair[1], out[1]);
	}
	close(pair[1]);
	close(out[1]);
	status = measure(p, pair[0], out[0]);
	profiles_put(p);
	return status;
}
