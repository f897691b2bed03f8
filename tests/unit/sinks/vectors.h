/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Profiles for the sinks' tests. The vectors T1 to T3 are messages whose text is known from the printers that hearth
 * follows; they are laid out by hand, index for index, over constant tables. Include it after cmocka.h.
 */
#ifndef HEARTH_TESTS_VECTORS_H
#define HEARTH_TESTS_VECTORS_H

#include "base/cleanup.h"
#include "proto/profiles.h"
#include "proto/profiles_builder.h"

#define TEXT(s)                    \
	{                          \
		(s), sizeof(s) - 1 \
	}
#define STRING_VALUE(s)                                 \
	{                                               \
		.kind = VALUE_STRING, .string = TEXT(s) \
	}
#define INT_VALUE(n)                              \
	{                                         \
		.kind = VALUE_INT, .integer = (n) \
	}
#define INDICES(...)                                                                             \
	{                                                                                        \
		(int32_t[]){ __VA_ARGS__ }, sizeof((int32_t[]){ __VA_ARGS__ }) / sizeof(int32_t) \
	}
#define TABLE(name, array) .name##s = (array), .name##_count = sizeof(array) / sizeof((array)[0])

#define UNUSED __attribute__((unused)) /* not every test takes all of them */

/* One string table for all vectors. */
enum {
	S_NONE,
	S_SAMPLES,
	S_COUNT,
	S_CPU,
	S_NANOSECONDS,
	S_EVENTS,
	S_FRAME_TYPE,
	S_THREAD_NAME,
	S_EXE_NAME,
	S_EXE_PATH,
	S_PID,
	S_TID,
	S_CPU_NUMBER,
	S_DO_SYSCALL,
	S_FUTEX,
	S_FUTEX_FILE,
	S_COPY_PROCESS,
	S_LIBC,
};

static struct str vector_strings[] = {
	[S_NONE] = TEXT(""),
	[S_SAMPLES] = TEXT("samples"),
	[S_COUNT] = TEXT("count"),
	[S_CPU] = TEXT("cpu"),
	[S_NANOSECONDS] = TEXT("nanoseconds"),
	[S_EVENTS] = TEXT("events"),
	[S_FRAME_TYPE] = TEXT("profile.frame.type"),
	[S_THREAD_NAME] = TEXT("thread.name"),
	[S_EXE_NAME] = TEXT("process.executable.name"),
	[S_EXE_PATH] = TEXT("process.executable.path"),
	[S_PID] = TEXT("process.pid"),
	[S_TID] = TEXT("thread.id"),
	[S_CPU_NUMBER] = TEXT("cpu.logical_number"),
	[S_DO_SYSCALL] = TEXT("do_syscall_64"),
	[S_FUTEX] = TEXT("runtime.futex"),
	[S_FUTEX_FILE] = TEXT("runtime/sys_linux_amd64.s"),
	[S_COPY_PROCESS] = TEXT("copy_process"),
	[S_LIBC] = TEXT("libc.so.6"),
};

enum {
	A_NONE,
	A_KERNEL,
	A_NATIVE,
	A_GO,
	A_THREAD_ETCD,
	A_EXE_ETCD,
	A_PATH_ETCD,
	A_PID,
	A_TID,
	A_LANGFLOW,
	A_TID_LANGFLOW,
	A_CPU
};

static struct profile_attribute vector_attributes[] = {
	[A_NONE] = { 0 },
	[A_KERNEL] = { S_FRAME_TYPE, 0, STRING_VALUE("kernel") },
	[A_NATIVE] = { S_FRAME_TYPE, 0, STRING_VALUE("native") },
	[A_GO] = { S_FRAME_TYPE, 0, STRING_VALUE("go") },
	[A_THREAD_ETCD] = { S_THREAD_NAME, 0, STRING_VALUE("etcd") },
	[A_EXE_ETCD] = { S_EXE_NAME, 0, STRING_VALUE("etcd") },
	[A_PATH_ETCD] = { S_EXE_PATH, 0, STRING_VALUE("/usr/local/bin/etcd") },
	[A_PID] = { S_PID, 0, INT_VALUE(3086) },
	[A_TID] = { S_TID, 0, INT_VALUE(11322) },
	[A_LANGFLOW] = { S_THREAD_NAME, 0, STRING_VALUE("langflow") },
	[A_TID_LANGFLOW] = { S_TID, 0, INT_VALUE(91228) },
	[A_CPU] = { S_CPU_NUMBER, 0, INT_VALUE(5) },
};

static struct profile_function vector_functions[] = {
	{ 0 },
	{ .name_strindex = S_DO_SYSCALL },
	{ .name_strindex = S_FUTEX, .filename_strindex = S_FUTEX_FILE },
	{ .name_strindex = S_COPY_PROCESS },
};

static struct profile_mapping vector_mappings[] = { { 0 }, { .filename_strindex = S_LIBC }, { 0 } };

#define LINE(f, n) .lines = (struct profile_line[]){ { (f), (n), 0 } }, .line_count = 1
#define NATIVE(mapping, addr)                                                                  \
	{                                                                                      \
		.mapping_index = (mapping), .address = (addr), .attributes = INDICES(A_NATIVE) \
	}

static struct profile_location vector_locations[] = {
	{ 0 },
	{ LINE(1, 0), .attributes = INDICES(A_KERNEL) },
	{ LINE(2, 558), .attributes = INDICES(A_GO) },
	{ LINE(3, 0), .attributes = INDICES(A_KERNEL) },
	NATIVE(1, 0xd4377),
	NATIVE(1, 0x2c91),
	NATIVE(1, 0xa),
	NATIVE(1, 0),
	NATIVE(0, 0x7f12345678),
	NATIVE(2, 0x10),
	{ .mapping_index = 1, .address = 0x1234 },
};

static struct indices vector_stacks[] = { { 0 }, INDICES(1, 2), INDICES(3, 4, 5, 6, 7, 8, 9, 10) };

static struct profile_link vector_links[1] = { { TEXT(""), TEXT("") } };

static struct key_value t1_resource[] = {
	{ TEXT("container.id"), 0, STRING_VALUE("6d7d5c336f79fbfae3e76c4a25b2c3805ffa74ab4c6145d4219ec2b92185fb6f") },
};
static struct sample t1_sample = {
	.stack_index = 1,
	.attributes = INDICES(A_THREAD_ETCD, A_EXE_ETCD, A_PATH_ETCD, A_PID, A_TID),
	.timestamps_unix_ns = (uint64_t[]){ 1758603335517877230 },
	.timestamp_count = 1,
};
static struct profile t1_profile = {
	.sample_type = { S_SAMPLES, S_COUNT },
	.period_type = { S_CPU, S_NANOSECONDS },
	.period = 50000000,
	.time_unix_ns = 1758603335517877230,
	.duration_ns = 2840298447,
	.samples = &t1_sample,
	.sample_count = 1,
};
static struct scope_profiles t1_scope = { .profiles = &t1_profile, .profile_count = 1 };
static UNUSED struct resource_profiles t1_resources[] = {
	{ .has_resource = true, .resource.attributes = { t1_resource, 1 }, .scopes = &t1_scope, .scope_count = 1 },
};

static struct key_value t2_container[] = { { TEXT("container.id"), 0, STRING_VALUE("abc123") } };
static struct key_value t2_service[] = { { TEXT("service.name"), 0, STRING_VALUE("x") } };
static struct sample t2_sample;
static struct profile t2_profile = { .samples = &t2_sample, .sample_count = 1 };
static struct scope_profiles t2_scope = { .profiles = &t2_profile, .profile_count = 1 };
static UNUSED struct resource_profiles t2_resources[] = {
	{ .has_resource = true, .resource.attributes = { t2_container, 1 }, .scopes = &t2_scope, .scope_count = 1 },
	{ .has_resource = true, .resource.attributes = { t2_service, 1 } },
	{ 0 },
};

static struct sample t3_sample = {
	.stack_index = 2,
	.attributes = INDICES(A_LANGFLOW, A_TID_LANGFLOW, A_CPU),
	.timestamps_unix_ns = (uint64_t[]){ 1778067329629468959 },
	.timestamp_count = 1,
};
static struct profile t3_profile = {
	.sample_type = { S_EVENTS, S_COUNT },
	.time_unix_ns = 1778067325372004042,
	.duration_ns = 4790449180,
	.samples = &t3_sample,
	.sample_count = 1,
};
static struct scope_profiles t3_scope = { .profiles = &t3_profile, .profile_count = 1 };
static UNUSED struct resource_profiles t3_resources[] = { { .scopes = &t3_scope, .scope_count = 1 } };

static const struct dictionary vector_dictionary = {
	TABLE(mapping, vector_mappings), TABLE(location, vector_locations), TABLE(function, vector_functions),
	TABLE(link, vector_links),	 TABLE(string, vector_strings),	    TABLE(attribute, vector_attributes),
	TABLE(stack, vector_stacks),
};

/* The profiles of @resources over the vectors' dictionary; one reference, the caller's. */
static inline struct profiles *vector_new(struct resource_profiles *resources, uint32_t count)
{
	struct profiles *p = profiles_new();

	assert_non_null(p);
	p->dict = vector_dictionary;
	p->resources = resources;
	p->resource_count = count;
	p->sample_events = 1;
	return p;
}

/* What the agent makes: @events events in stacks that all differ, named after @seed, of one process. */
static inline struct profiles *agent_profiles(unsigned seed, unsigned events)
{
	static const struct builder_profile_spec spec = {
		.scope_name = "hearth",
		.scope_version = "1",
		.sample_type = "samples",
		.sample_unit = "count",
		.period_type = "cpu",
		.period_unit = "nanoseconds",
		.period = 50000000,
	};
	struct key_value who[] = { { TEXT("process.executable.name"), 0, STRING_VALUE("worker") } };
	struct builder *b = builder_new();
	struct profiles *p = NULL;
	uint32_t profile;

	assert_non_null(b);
	profile = builder_profile(b, builder_resource(b, who, 1), &spec);
	for (unsigned i = 0; i < events; i++) {
		int32_t type = builder_attribute_string(b, "profile.frame.type", STR("native"));
		char name[32];
		struct profile_line line = { .line = i };
		int32_t location, stack;

		snprintf(name, sizeof(name), "f%u_%u", seed, i);
		line.function_index = builder_function(b, builder_string_z(b, name), 0, 0, 0);
		location = builder_location(b, 0, i + 1, &line, 1, &type, 1);
		stack = builder_stack(b, &location, 1);
		builder_event(b, profile, stack, NULL, 0, 0, 1758603335000000000ull + i, false, 0);
	}
	assert_int_equal(builder_freeze(b, 1758603335000000000ull, 1758603336000000000ull, &p), 0);
	builder_free(b);
	return p;
}

#endif
