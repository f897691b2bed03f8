/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gRPC servers in a loop on a thread of its own, a recording sink behind them. The misdeeds of clients are in
 * grpc_requests.py, which speaks HTTP/2 frame by frame; here is what must be left of it all: nothing.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "backend/grpc/grpc.h"
#include "backend/ingest/ingest.h"
#include "backend/http/server.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/loop.h"
#include "base/metrics.h"
#include "tests/unit/backend/recorder.h"

struct world {
	struct loop *loop;
	struct metrics *metrics;
	struct sink_recorder sink;
	struct ingest *ingest;
	struct grpc *servers[2];
	int end; /* eventfd */
	pthread_t thread;
};

static void on_end(void *arg, int fd, uint32_t events)
{
	struct world *w = arg;
	(void)fd;
	(void)events;
	for (size_t i = 0; i < ARRAY_LEN(w->servers); i++)
		grpc_stop(w->servers[i], clock_mono_ns() + 5 * NSEC_PER_SEC);
	loop_stop(w->loop);
}

static void *run(void *arg)
{
	struct world *w = arg;
	loop_run(w->loop);
	return NULL;
}

static void world_start(struct world *w, const struct grpc_config configs[2])
{
	const struct ingest_config ingest = { .max_receive_bytes = 1 << 20, .receive_memory = 4 << 20 };
	struct server_error err = { "" };

	*w = (struct world){ .sink.sink.ops = &recorder_ops, .end = eventfd(0, EFD_CLOEXEC) };
	assert_true(w->end >= 0);
	assert_int_equal(loop_new(&w->loop), 0);
	w->metrics = metrics_new();
	assert_non_null(w->metrics);
	assert_int_equal(ingest_new(&ingest, w->loop, w->metrics, &w->sink.sink, &w->ingest), 0);
	for (size_t i = 0; i < ARRAY_LEN(w->servers); i++)
		if (grpc_new(&configs[i], w->loop, w->metrics, w->ingest, &w->servers[i], &err))
			fail_msg("%s", err.message);
	assert_int_equal(loop_add_fd(w->loop, w->end, EPOLLIN, on_end, w, NULL), 0);
	assert_int_equal(pthread_create(&w->thread, NULL, run, w), 0);
}

/* Stops the servers; what they counted can still be read. */
static void world_stop(struct world *w)
{
	const uint64_t one = 1;

	assert_int_equal(write(w->end, &one, sizeof(one)), sizeof(one));
	pthread_join(w->thread, NULL);
	for (size_t i = 0; i < ARRAY_LEN(w->servers); i++)
		grpc_free(w->servers[i]);
}

static void world_end(struct world *w)
{
	ingest_free(w->ingest);
	metrics_free(w->metrics);
	loop_free(w->loop);
	close(w->end);
}

struct total {
	const char *name, *label;
	uint64_t value;
};

static void find_total(void *arg, const char *name, const char *labels, uint64_t value)
{
	struct total *total = arg;

	if (strcmp(name, total->name) == 0 && (!total->label || (labels && strstr(labels, total->label))))
		total->value += value;
}

static uint64_t metric_total(struct world *w, const char *name, const char *label)
{
	struct total total = { .name = name, .label = label };

	metrics_each(w->metrics, find_total, &total);
	return total.value;
}

static void test_requests(void **state)
{
	const struct grpc_config configs[] = {
		{ .address = "127.0.0.1:0" },
		{ .address = "localhost:0",
		  .max_connections = 4,
		  .request_timeout_ns = 2400 * NSEC_PER_MSEC,
		  .idle_timeout_ns = 600 * NSEC_PER_MSEC },
	};
	struct world w;
	char command[256];
	(void)state;

	world_start(&w, configs);
	snprintf(command, sizeof(command), "/usr/bin/python3 " TEST_DATA "/unit/backend/grpc_requests.py %u %u",
		 grpc_port(w.servers[0]), grpc_port(w.servers[1]));
	int status = system(command);
	world_stop(&w);
	assert_int_equal(status, 0);

	/* What the counters say is what the sink got, and what was held is given back. */
	assert_int_equal(w.sink.sample_events, 1066);
	assert_int_equal(metric_total(&w, "hearth_received_samples_total", NULL), w.sink.sample_events);
	assert_int_equal(w.sink.other[OTLP_LOGS], 1 + 2 + 1);
	assert_int_equal(w.sink.other[OTLP_METRICS], 1 + 2);
	assert_int_equal(w.sink.other[OTLP_TRACES], 1);
	assert_int_equal(metric_total(&w, "hearth_grpc_connections", NULL), 0);
	assert_int_equal(metric_total(&w, "hearth_grpc_calls", NULL), 0);
	assert_int_equal(metric_total(&w, "hearth_grpc_early_bytes", NULL), 0);
	assert_int_equal(metric_total(&w, "hearth_receive_memory_bytes", NULL), 0);
	assert_int_equal(metric_total(&w, "hearth_grpc_connections_cut_total", "flood"), 21);
	assert_int_equal(metric_total(&w, "hearth_grpc_connections_cut_total", "protocol"), 47);
	world_end(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_requests),
	};
	return cmocka_run_group_tests_name("grpc", tests, NULL, NULL);
}
