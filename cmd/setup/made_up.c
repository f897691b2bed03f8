/* SPDX-License-Identifier: Apache-2.0 */
/* The stacks are the same each time; how often each comes goes by its weight, so that a graph of them looks the same each
 * time. */
#include "cmd/setup/made_up.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "base/thread.h"
#include "proto/profiles_builder.h"
#include "proto/sink.h"

struct made_up {
	uint64_t interval_ns;
	uint32_t samples;
	struct sink *sink;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t ends;
	bool is_running, is_ending;
	struct metric *dropped;
};

/* --- what is made up --- */

enum { DEPTH = 5 };

struct made_up_stack {
	const char *service, *container, *executable;
	int64_t pid;
	uint32_t weight;
	struct {
		const char *type, *function, *file;
		int64_t line;
	} frames[DEPTH]; /* leaf first; those without a type are none */
};

#define SHOP	"shop", "5f0c", "shop"
#define BILLING "billing", "77a1", "python3.11"
#define IDLE	"cleaner", "", "cleaner"

static const struct made_up_stack stacks[] = {
	{ SHOP,
	  1001,
	  40,
	  { { "go", "shop.price", "shop/price.go", 42 },
	    { "go", "shop.serve", "shop/serve.go", 17 },
	    { "go", "main.main", "main.go", 9 } } },
	{ SHOP,
	  1001,
	  20,
	  { { "kernel", "tcp_sendmsg", "", 0 },
	    { "native", "write", "", 0 },
	    { "go", "shop.serve", "shop/serve.go", 21 },
	    { "go", "main.main", "main.go", 9 } } },
	{ BILLING,
	  1002,
	  30,
	  { { "native", "long_mul", "longobject.c", 3200 },
	    { "cpython", "total", "billing.py", 12 },
	    { "cpython", "<module>", "billing.py", 30 } } },
	{ IDLE,
	  1003,
	  10,
	  { { "kernel", "do_sys_poll", "", 0 }, { "native", "poll", "", 0 }, { "native", "main", "cleaner.c", 5 } } },
};

static const struct builder_profile_spec spec = {
	.scope_name = "hearth.synthetic",
	.scope_version = HEARTH_VERSION,
	.sample_type = "samples",
	.sample_unit = "count",
	.period_type = "cpu",
	.period_unit = "nanoseconds",
	.period = 50000000,
};

static uint32_t add_resource(struct builder *b, const struct made_up_stack *s)
{
	const struct key_value attributes[] = {
		{ .key = STR("service.name"), .value = { .kind = VALUE_STRING, .string = str_z(s->service) } },
		{ .key = STR("process.executable.name"), .value = { .kind = VALUE_STRING, .string = str_z(s->executable) } },
		{ .key = STR("process.pid"), .value = { .kind = VALUE_INT, .integer = s->pid } },
		{ .key = STR("container.id"), .value = { .kind = VALUE_STRING, .string = str_z(s->container) } },
	};

	return builder_resource(b, attributes, ARRAY_LEN(attributes) - !s->container[0]);
}

static int32_t add_stack(struct builder *b, const struct made_up_stack *s)
{
	int32_t locations[DEPTH];
	uint32_t depth = 0;

	for (; depth < DEPTH && s->frames[depth].type; depth++) {
		int32_t name = builder_string_z(b, s->frames[depth].function);
		int32_t type = builder_attribute_string(b, "profile.frame.type", str_z(s->frames[depth].type));
		const struct profile_line line = {
			.function_index = builder_function(b, name, name, builder_string_z(b, s->frames[depth].file), 0),
			.line = s->frames[depth].line,
		};

		locations[depth] = builder_location(b, 0, 0, &line, 1, &type, 1);
	}
	return builder_stack(b, locations, depth);
}

static const struct made_up_stack *choose(uint32_t i)
{
	uint32_t at = i * 37 % 100, k = 0; /* 37 and 100 have no common factor: each hundred has each weight */

	while (at >= stacks[k].weight)
		at -= stacks[k++].weight;
	return &stacks[k];
}

static void add_samples(struct builder *b, uint32_t samples, uint64_t end_unix_ns, uint64_t interval_ns)
{
	for (uint32_t i = 0; i < samples; i++) {
		const struct made_up_stack *s = choose(i);
		uint32_t profile = builder_profile(b, add_resource(b, s), &spec);
		int32_t attributes[] = { builder_attribute_string(b, "thread.name", str_z(s->executable)),
					 builder_attribute_int(b, "thread.id", s->pid) };

		builder_event(b, profile, add_stack(b, s), attributes, ARRAY_LEN(attributes), 0,
			      end_unix_ns - interval_ns + interval_ns / samples * i, false, 0);
	}
}

/* A resource with an empty scope. @p is not handed out yet. */
static int add_empty_resource(struct profiles *p)
{
	struct resource_profiles *r = profiles_alloc(p, sizeof(*r));
	struct key_value *id = profiles_alloc(p, sizeof(*id));
	struct scope_profiles *scope = profiles_alloc(p, sizeof(*scope));

	if (!r || !id || !scope)
		return -ENOMEM;
	*id = (struct key_value){ .key = STR("container.id"), .value = { .kind = VALUE_STRING, .string = STR("abc123") } };
	scope->scope = (struct scope){ .name = STR(""), .version = STR("") };
	scope->schema_url = STR("");
	*r = (struct resource_profiles){ .has_resource = true,
					 .resource.attributes = { id, 1 },
					 .scopes = scope,
					 .scope_count = 1,
					 .schema_url = STR("") };
	p->resources = r;
	p->resource_count = 1;
	return 0;
}

static void free_builder(struct builder **b)
{
	builder_free(*b);
}

int made_up_profiles(uint32_t samples, uint64_t end_unix_ns, uint64_t interval_ns, struct profiles **ret)
{
	AUTO(free_builder) struct builder *b = builder_new();
	int err;

	if (!b)
		return -ENOMEM;
	add_samples(b, samples, end_unix_ns, interval_ns);
	err = builder_freeze(b, end_unix_ns - interval_ns, end_unix_ns, ret);
	if (!err && !samples)
		err = add_empty_resource(*ret);
	return err;
}

/* --- the thread --- */

static void hand_out(struct made_up *m)
{
	struct profiles *p = NULL;

	if (made_up_profiles(m->samples, clock_unix_ns(), m->interval_ns, &p) || sink_consume(m->sink, p, NULL))
		metric_add(m->dropped, m->samples);
	profiles_put(p);
}

static void *made_up_main(void *arg)
{
	struct made_up *m = arg;
	uint64_t next_ns = clock_mono_ns();

	pthread_mutex_lock(&m->lock);
	while (!m->is_ending) {
		next_ns += m->interval_ns;
		while (!m->is_ending && !thread_cond_wait(&m->ends, &m->lock, next_ns))
			;
		if (m->is_ending)
			break;
		pthread_mutex_unlock(&m->lock);
		hand_out(m);
		pthread_mutex_lock(&m->lock);
	}
	pthread_mutex_unlock(&m->lock);
	return NULL;
}

int made_up_new(uint64_t interval_ns, uint32_t samples, struct sink *sink, struct metrics *metrics, struct made_up **ret)
{
	struct made_up *m = calloc(1, sizeof(*m));
	int err;

	if (!m) {
		sink_free(sink);
		return -ENOMEM;
	}
	m->interval_ns = interval_ns;
	m->samples = samples;
	m->sink = sink;
	m->dropped = metrics_counter(metrics, "hearth_synthetic_dropped_samples_total", NULL,
				     "Samples that were made up and that no exporter took.");
	pthread_mutex_init(&m->lock, NULL);
	err = thread_cond_init(&m->ends);
	if (!err)
		err = thread_start(&m->thread, "synthetic", made_up_main, m);
	m->is_running = !err;
	if (err)
		made_up_free(m);
	else
		*ret = m;
	return err;
}

void made_up_stop(struct made_up *m)
{
	if (!m->is_running)
		return;
	pthread_mutex_lock(&m->lock);
	m->is_ending = true;
	pthread_cond_signal(&m->ends);
	pthread_mutex_unlock(&m->lock);
	pthread_join(m->thread, NULL);
	m->is_running = false;
}

void made_up_free(struct made_up *m)
{
	if (!m)
		return;
	made_up_stop(m);
	sink_free(m->sink);
	pthread_cond_destroy(&m->ends);
	pthread_mutex_destroy(&m->lock);
	free(m);
}
