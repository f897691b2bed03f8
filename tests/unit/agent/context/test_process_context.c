/* SPDX-License-Identifier: Apache-2.0 */
/* The context that a process published about itself, read from bytes and from this very process. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/context/process_context.h"
#include "base/cleanup.h"

/* ProcessContext: resource { service.name: "shop", a number: 7 }, attributes { threadlocal.attribute_key_map: ["route", 5,
 * "user"] }. */
static const uint8_t payload[] = "\x0a\x2b"
				 "\x0a\x16\x0a\x0cservice.name\x12\x06\x0a\x04shop"
				 "\x0a\x11\x0a\x0bsome.number\x12\x02\x18\x07"
				 "\x12\x37\x0a\x1dthreadlocal.attribute_key_map\x12\x16\x2a\x14"
				 "\x0a\x07\x0a\x05route\x0a\x02\x18\x05\x0a\x05\x0a\x03usr";
enum { PAYLOAD_BYTES = sizeof(payload) - 1 };

static const char *value_of(const struct process_context *c, const char *key)
{
	const struct any_value *v = attributes_find(&c->resource, str_z(key));

	return v ? v->string.data : NULL;
}

static void test_parse(void **state)
{
	struct process_context c;

	(void)state;
	assert_int_equal(process_context_parse(payload, PAYLOAD_BYTES, &c), 0);
	assert_string_equal(value_of(&c, "service.name"), "shop");
	assert_string_equal(value_of(&c, "some.number"), "7");
	assert_int_equal(c.key_cnt, 3);
	assert_string_equal(c.keys[0], "route");
	assert_null(c.keys[1]); /* a number is no name, and the next keeps its place */
	assert_string_equal(c.keys[2], "usr");
	process_context_fini(&c);
	for (size_t len = 0; len < PAYLOAD_BYTES; len++) /* cut anywhere */
		if (!process_context_parse(payload, len, &c))
			process_context_fini(&c);
	assert_int_equal(process_context_parse((const uint8_t *)"\x0a\xff", 2, &c), -EBADMSG);
	assert_int_equal(process_context_parse(payload, 0, &c), 0);
	assert_true(!c.key_cnt && !c.resource.count);
	process_context_fini(&c);
}

static void fill_header(uint8_t *at, uint64_t published_ns)
{
	const uint8_t *address = payload;
	uint32_t head[2] = { 2, PAYLOAD_BYTES };

	memcpy(at, "OTEL_CTX", 8);
	memcpy(at + 8, head, sizeof(head));
	memcpy(at + 16, &published_ns, sizeof(published_ns));
	memcpy(at + 24, &address, sizeof(address));
}

static void test_header(void **state)
{
	uint8_t bytes[CONTEXT_HEADER_BYTES];
	struct context_header h;

	(void)state;
	fill_header(bytes, 77);
	assert_true(context_header_parse(bytes, &h));
	assert_true(h.published_ns == 77 && h.payload == (uintptr_t)payload && h.payload_bytes == PAYLOAD_BYTES);
	bytes[8] = 1; /* of the time before there was a standard */
	assert_false(context_header_parse(bytes, &h));
	fill_header(bytes, 0); /* it is being written */
	assert_false(context_header_parse(bytes, &h));
	fill_header(bytes, 1);
	bytes[14] = 2; /* 131 KB */
	assert_false(context_header_parse(bytes, &h));
	fill_header(bytes, 1);
	bytes[0] = 'o';
	assert_false(context_header_parse(bytes, &h));
}

/* This process publishes one, and takes it back. */
static void test_process(void **state)
{
	struct process p = { .refs = 1, .pid = (uint32_t)getpid() };
	int fd = memfd_create("OTEL_CTX", MFD_CLOEXEC);
	uint8_t *at;

	(void)state;
	process_context_look(&p, false);
	assert_null(process_context_of(&p));
	assert_true(fd >= 0 && !ftruncate(fd, 4096));
	at = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	close(fd);
	assert_true(at != MAP_FAILED);
	fill_header(at, 5);
	process_context_look(&p, false); /* not so soon */
	assert_null(process_context_of(&p));
	p.exec_id++;
	p.has_exited = true; /* its leader alone: it is in /proc still */
	process_context_look(&p, false);
	assert_non_null(process_context_of(&p));
	assert_string_equal(value_of(process_context_of(&p), "service.name"), "shop");
	munmap(at, 4096);
	process_context_look(&p, false);
	assert_null(process_context_of(&p));
	p.context->free(p.context);
}

/* Nothing is asked of /proc for a process of which a record told that it ended. */
static void test_ended_process(void **state)
{
	struct process p = { .refs = 1, .pid = (uint32_t)fork(), .has_exited = true };

	(void)state;
	if (!p.pid)
		_exit(0);
	assert_int_equal(waitpid((pid_t)p.pid, NULL, 0), p.pid);
	process_context_look(&p, false);
	assert_null(p.context);
	p.has_exited = false;
	process_context_look(&p, false);
	assert_non_null(p.context);
	p.context->free(p.context);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parse),
		cmocka_unit_test(test_header),
		cmocka_unit_test(test_process),
		cmocka_unit_test(test_ended_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
