/* SPDX-License-Identifier: Apache-2.0 */
/* The resource of a process: who is believed before whom, and which keys nobody but us may set. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "agent/context/process_context.h"
#include "agent/process/process_facts.h"
#include "agent/process/processes.h"
#include "agent/report/resource.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "tests/unit/proto/text_profiles.h"

static struct process_context said;
static bool has_published;

/* What the process said of itself. */
static const struct process_context *told_context(const struct process *p)
{
	(void)p;
	return has_published ? &said : NULL;
}

#define process_context_of(p) told_context(p)

#include "agent/report/resource.c"

static struct process process;
static struct process_facts facts;
static struct attributes common;

static int setup(void **state)
{
	(void)state;
	memset(&process, 0, sizeof(process));
	memset(&facts, 0, sizeof(facts));
	process.pid = 77;
	process.exe_path = (char *)(uintptr_t) "/usr/bin/shop";
	process.facts = &facts;
	has_published = false;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	attributes_fini(&facts.attributes);
	attributes_fini(&common);
	attributes_fini(&said.resource);
	return 0;
}

static void add(struct attributes *to, const char *key, const char *value)
{
	assert_int_equal(attributes_add(to, text_str(key), text_str(value)), 0);
}

/* The resource reads "key=value ...". */
static void reads(const char *wanted)
{
	struct builder *b = builder_new();
	struct buf text = BUF_EMPTY;
	struct profiles *p = NULL;
	const struct key_values *list;
	int32_t frame = builder_location(b, 0, 1, NULL, 0, NULL, 0);

	builder_event(b, builder_profile(b, resource_build(b, &process, &common), &text_cpu_spec),
		      builder_stack(b, &frame, 1), NULL, 0, 0, 5, false, 0);
	assert_int_equal(builder_freeze(b, 1, 10, &p), 0);
	list = &p->resources[0].resource.attributes;
	for (uint32_t i = 0; i < list->count; i++) {
		struct str key = profiles_key(p, &list->items[i]);

		buf_printf(&text, "%s%.*s=", i ? " " : "", (int)key.len, key.data);
		profiles_value_append(p, &list->items[i].value, &text);
	}
	assert_string_equal(buf_text(&text), wanted);
	buf_fini(&text);
	profiles_put(p);
	builder_free(b);
}

#define SHOP "process.pid=77 process.executable.name=shop process.executable.path=/usr/bin/shop"

static void test_process(void **state)
{
	(void)state;
	reads(SHOP);
	process.facts = NULL;
	reads(SHOP);
}

/* Without a file a thread of the kernel has its name. */
static void test_no_file(void **state)
{
	(void)state;
	process.exe_path = NULL;
	snprintf(process.comm, sizeof(process.comm), "kworker/0:1");
	reads("process.pid=77 process.executable.name=kworker/0:1");
}

/* A process outside of our namespace has no pid here. */
static void test_outside(void **state)
{
	(void)state;
	process.is_outside = true;
	process.exe_path = NULL;
	snprintf(process.comm, sizeof(process.comm), "far");
	reads("process.executable.name=far");
}

static void test_own_pid(void **state)
{
	(void)state;
	process.own_pid = 5;
	reads(SHOP " process.vpid=5");
}

/* The process's word comes before its environment's, and that before the settings. */
static void test_who_is_believed(void **state)
{
	(void)state;
	has_published = true;
	add(&said.resource, "service.name", "published");
	add(&facts.attributes, "service.name", "fact");
	add(&facts.attributes, "a", "fact");
	add(&common, "service.name", "common");
	add(&common, "a", "common");
	add(&common, "b", "common");
	reads(SHOP " service.name=published a=fact b=common");
	has_published = false;
	reads(SHOP " service.name=fact a=fact b=common");
}

/* Of what the kernel or the machine knows better a process is not believed; the kernel's facts are. */
static void test_keys_that_are_ours(void **state)
{
	static const char *const ours[] = { "host.name",   "host.id",		"os.type",     "container.id",
					    "k8s.pod.uid", "systemd.unit.name", "process.pid", "process.vpid" },
				 *const others[] = { "hostname", "o", "container.name", "k8s.pod.name",
						     "process.runtime.name" };

	(void)state;
	has_published = true;
	for (size_t i = 0; i < ARRAY_LEN(ours); i++)
		add(&said.resource, ours[i], "x");
	for (size_t i = 0; i < ARRAY_LEN(others); i++)
		add(&said.resource, others[i], "y");
	add(&facts.attributes, "container.id", "kernel's");
	add(&common, "host.name", "ours");
	reads(SHOP
	      " hostname=y o=y container.name=y k8s.pod.name=y process.runtime.name=y container.id=kernel's host.name=ours");
}

/* Nor does anybody tell the executable anew. */
static void test_executable(void **state)
{
	(void)state;
	has_published = true;
	add(&said.resource, "process.executable.name", "other");
	add(&facts.attributes, "process.executable.path", "/other");
	add(&common, "process.pid", "1");
	reads(SHOP);
}

#define RESOURCE_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		RESOURCE_TEST(test_process),	RESOURCE_TEST(test_no_file),	     RESOURCE_TEST(test_outside),
		RESOURCE_TEST(test_own_pid),	RESOURCE_TEST(test_who_is_believed), RESOURCE_TEST(test_keys_that_are_ours),
		RESOURCE_TEST(test_executable),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
