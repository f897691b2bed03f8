/* SPDX-License-Identifier: Apache-2.0 */
/* The stage: what is added to resources, what stays as it is, and that the rest of the profiles is the same memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "enrich/enrich.h"
#include "proto/otlp/otlp.h"
#include "proto/profiles_builder.h"
#include "proto/sink.h"
#include "tests/unit/enrich/describing.h"

#define ID "1111111111111111111111111111111111111111111111111111111111111111"

static char root[] = "/tmp/hearth-enrich-XXXXXX";

static int setup(void **state)
{
	char command[1024];

	(void)state;
	assert_non_null(mkdtemp(root));
	snprintf(command, sizeof(command),
		 "mkdir -p %s/var/lib/docker/containers/" ID
		 " && echo '{\"Name\":\"/web\",\"Config\":{\"Image\":\"nginx:1\"}}' "
		 ">%s/var/lib/docker/containers/" ID "/config.v2.json",
		 root, root);
	return system(command);
}

static int teardown(void **state)
{
	char command[64];

	(void)state;
	snprintf(command, sizeof(command), "rm -r %s", root);
	return system(command);
}

/* Keeps what it gets. */
struct keeper {
	struct sink sink;
	struct profiles *got;
	struct ack *ack;
	int error;
	bool *freed;
	size_t other_len; /* of logs, metrics or traces */
	enum otlp_signal signal;
	uint64_t deadline_ns;
};

static int keeper_consume(struct sink *sink, struct profiles *p, struct ack *ack)
{
	struct keeper *k = (struct keeper *)sink;

	profiles_put(k->got);
	k->got = profiles_get(p);
	k->ack = ack;
	return k->error;
}

static int keeper_consume_other(struct sink *sink, enum otlp_signal signal, const uint8_t *data, size_t len, struct ack *ack)
{
	struct keeper *k = (struct keeper *)sink;

	assert_non_null(data);
	k->signal = signal;
	k->other_len = len;
	k->ack = ack;
	return k->error;
}

static int keeper_flush(struct sink *sink, uint64_t deadline_ns)
{
	((struct keeper *)sink)->deadline_ns = deadline_ns;
	return ((struct keeper *)sink)->error;
}

static void keeper_free(struct sink *sink)
{
	struct keeper *k = (struct keeper *)sink;

	profiles_put(k->got);
	*k->freed = true;
	free(k);
}

static const struct sink_ops keeper_ops = {
	.name = "keeper",
	.durable = true,
	.consume = keeper_consume,
	.consume_other = keeper_consume_other,
	.flush = keeper_flush,
	.free = keeper_free,
};

static struct key_value text(const char *key, const char *value)
{
	return (struct key_value){ .key = str_z(key), .value = { .kind = VALUE_STRING, .string = str_z(value) } };
}

static struct profiles *profiles_of(const struct key_value *lists[], const uint32_t counts[], size_t count)
{
	static const struct builder_profile_spec spec = { "t", "1", "samples", "count", "cpu", "nanoseconds", 1, NULL, 0 };
	struct builder *b = builder_new();
	struct profiles *p = NULL;

	for (size_t i = 0; i < count; i++)
		builder_event(b, builder_profile(b, builder_resource(b, lists[i], counts[i]), &spec), 0, NULL, 0, 0,
			      1000 + i, false, 0);
	assert_int_equal(builder_freeze(b, 1000, 2000, &p), 0);
	builder_free(b);
	return p;
}

/* The attributes of resource @i as "key=value;". */
static const char *attributes(const struct profiles *p, uint32_t i)
{
	static struct buf out;
	const struct key_values *list = &p->resources[i].resource.attributes;

	buf_reset(&out);
	for (uint32_t k = 0; k < list->count; k++) {
		struct str key = profiles_key(p, &list->items[k]), value = profiles_value_text(p, &list->items[k].value);

		buf_printf(&out, "%.*s=%.*s;", (int)key.len, key.data, (int)value.len, value.data);
	}
	return buf_text(&out);
}

static struct sink *open_stage(struct enrich_config config, struct keeper **keeper, bool *freed, struct metrics *metrics)
{
	struct buf error = BUF_EMPTY;
	struct sink *sink = NULL;

	*keeper = calloc(1, sizeof(**keeper));
	**keeper = (struct keeper){ .sink.ops = &keeper_ops, .freed = freed };
	config.host_root = root;
	if (sink_enrich_new(&config, &(*keeper)->sink, metrics, &sink, &error))
		fail_msg("%s", buf_text(&error));
	return sink;
}

static void test_adding(void **state)
{
	const struct key_value web[] = { text("process.executable.name", "nginx"), text("process.executable.path", "/nginx"),
					 text("container.id", ID), text("service.version", "mine") };
	const struct key_value unit[] = { text("process.executable.name", "cron"), text("process.executable.path", "/cron"),
					  text("systemd.unit.name", "cron.service") };
	const struct key_value shell[] = { text("process.executable.name", "sh"),
					   text("process.executable.path", "/bin/sh") };
	const struct key_value thread[] = { text("process.executable.name", "kworker/0:1") };
	const struct key_value *lists[] = { web, unit, shell, thread };
	struct metrics *metrics = metrics_new();
	struct profiles *p = profiles_of(lists, (const uint32_t[]){ 4, 3, 2, 1 }, 4);
	struct keeper *keeper;
	bool freed = false;
	struct ack ack;
	struct sink *sink = open_stage((struct enrich_config){ .containers = true, .services = true }, &keeper, &freed,
				       metrics);
	struct buf out = BUF_EMPTY;

	(void)state;
	assert_true(sink->ops->durable);
	assert_int_equal(sink_consume(sink, p, &ack), 0);
	assert_ptr_equal(keeper->ack, &ack);
	assert_string_equal(attributes(keeper->got, 0),
			    "process.executable.name=nginx;process.executable.path=/nginx;container.id=" ID
			    ";service.version=mine;container.name=web;container.image.name=nginx;"
			    "container.image.tag=1;service.name=web;");
	assert_string_equal(attributes(keeper->got, 1), "process.executable.name=cron;process.executable.path=/cron;"
							"systemd.unit.name=cron.service;service.name=cron;");
	assert_string_equal(attributes(keeper->got, 2),
			    "process.executable.name=sh;process.executable.path=/bin/sh;service.name=sh;");
	assert_string_equal(attributes(keeper->got, 3), "process.executable.name=kworker/0:1;");
	/* the profiles that came are as they were, and all but the resources is theirs */
	assert_string_equal(attributes(p, 2), "process.executable.name=sh;process.executable.path=/bin/sh;");
	assert_ptr_equal(keeper->got->dict.strings, p->dict.strings);
	assert_ptr_equal(keeper->got->resources[0].scopes, p->resources[0].scopes);
	assert_int_equal(keeper->got->sample_events, p->sample_events);
	assert_true(profiles_memory_bytes(keeper->got) > profiles_memory_bytes(p));
	profiles_put(p); /* the derived one keeps it */
	assert_int_equal(otlp_encode(keeper->got, NULL, &out), 0);
	assert_int_equal(describing_count(metrics, "hearth_enrich_samples_total", "found=\"container\""), 1);
	assert_int_equal(describing_count(metrics, "hearth_enrich_samples_total", "found=\"no container\""), 3);
	buf_fini(&out);
	sink_free(sink);
	assert_true(freed);
	metrics_free(metrics);
}

/* Where nothing is known the profiles themselves go on; errors of the next sink are the producer's. */
static void test_nothing_to_add(void **state)
{
	const struct key_value shell[] = { text("process.executable.name", "sh"), text("service.name", "said") };
	const struct key_value *lists[] = { shell };
	struct metrics *metrics = metrics_new();
	struct profiles *p = profiles_of(lists, (const uint32_t[]){ 2 }, 1);
	struct keeper *keeper;
	bool freed = false;
	struct sink *sink = open_stage((struct enrich_config){ .containers = true, .services = true }, &keeper, &freed,
				       metrics);

	(void)state;
	keeper->error = -EAGAIN;
	assert_int_equal(sink_consume(sink, p, NULL), -EAGAIN);
	assert_ptr_equal(keeper->got, p);
	sink_free(sink);
	profiles_put(p);
	metrics_free(metrics);
}

/* Logs, metrics and traces go on as they are, and so do a flush, the acks and the errors. */
static void test_passed_on(void **state)
{
	struct metrics *metrics = metrics_new();
	struct keeper *keeper;
	struct ack ack;
	bool freed = false;
	struct sink *sink = open_stage((struct enrich_config){ .containers = true }, &keeper, &freed, metrics);

	(void)state;
	assert_int_equal(sink_consume_other(sink, OTLP_TRACES, (const uint8_t *)"abc", 3, &ack), 0);
	assert_int_equal(keeper->signal, OTLP_TRACES);
	assert_int_equal(keeper->other_len, 3);
	assert_ptr_equal(keeper->ack, &ack);
	assert_int_equal(sink_flush(sink, 77), 0);
	assert_int_equal(keeper->deadline_ns, 77);
	keeper->error = -ETIMEDOUT;
	assert_int_equal(sink_flush(sink, 78), -ETIMEDOUT);
	assert_int_equal(sink_consume_other(sink, OTLP_LOGS, (const uint8_t *)"a", 1, NULL), -ETIMEDOUT);
	sink_free(sink);
	assert_true(freed);
	metrics_free(metrics);
}

/* Where no pods are followed nobody waits for them. */
static void test_nothing_to_wait_for(void **state)
{
	struct metrics *metrics = metrics_new();
	struct buf why = BUF_EMPTY;
	struct keeper *keeper;
	bool freed = false;
	struct sink *sink = open_stage((struct enrich_config){ .containers = true }, &keeper, &freed, metrics);

	(void)state;
	assert_int_equal(sink_enrich_wait(sink, 0, &why), 0);
	assert_int_equal(why.len, 0);
	sink_free(sink);
	metrics_free(metrics);
}

/* A configuration that is wrong frees the next sink, too. */
static void test_wrong(void **state)
{
	struct metrics *metrics = metrics_new();
	struct buf error = BUF_EMPTY;
	bool freed = false;
	struct keeper *keeper = calloc(1, sizeof(*keeper));
	struct sink *sink = NULL;

	(void)state;
	*keeper = (struct keeper){ .sink.ops = &keeper_ops, .freed = &freed };
	assert_int_equal(sink_enrich_new(&(struct enrich_config){ .pods = true, .kube_config = "/nowhere" }, &keeper->sink,
					 metrics, &sink, &error),
			 -ENOENT);
	assert_string_equal(buf_text(&error), "cannot read /nowhere: No such file or directory");
	assert_true(freed);
	buf_fini(&error);
	metrics_free(metrics);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_adding),	  cmocka_unit_test(test_nothing_to_add),
		cmocka_unit_test(test_passed_on), cmocka_unit_test(test_nothing_to_wait_for),
		cmocka_unit_test(test_wrong),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
