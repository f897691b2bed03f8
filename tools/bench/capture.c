/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes a capture of as many samples as wanted, as `hearth record` would over a long time: intervals of 10,000 samples,
 * each with the stacks it saw, drawn from 20,000 different ones of 15 to 45 frames of 3,000 functions, a few of them often.
 *   capture SAMPLES FILE
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "proto/otlp/stream.h"
#include "proto/profiles_builder.h"

enum { FUNCTIONS = 3000, STACKS = 20000, INTERVAL_SAMPLES = 10000, THREADS = 16, CPUS = 8 };

static const struct builder_profile_spec spec = {
	.scope_name = "hearth",
	.scope_version = "1",
	.sample_type = "samples",
	.sample_unit = "count",
	.period_type = "cpu",
	.period_unit = "nanoseconds",
	.period = 1001001,
};

static uint64_t random_state = 1;

static uint64_t draw(uint64_t below)
{
	random_state = random_state * 6364136223846793005u + 1442695040888963407u;
	return (random_state >> 33) % below;
}

static int32_t location(struct builder *b, uint32_t function)
{
	struct profile_line line = { .line = 10 + function % 500 };
	int32_t mapping = builder_mapping(b, 0x400000, 0x800000, 0,
					  builder_string_z(b, function % 3 ? "/usr/bin/app" : "/usr/lib/lib.so"), NULL, 0);
	int32_t type = builder_attribute_string(b, "profile.frame.type", STR("native"));
	char name[64];

	snprintf(name, sizeof(name), "module::function_%u", function);
	line.function_index = builder_function(b, builder_string_z(b, name), 0, builder_string_z(b, "/src/module.cc"), 0);
	return builder_location(b, mapping, 0x1000 + function * 64, &line, 1, &type, 1);
}

/* Stack @number has the same frames in each interval; @known are those of this interval. */
static int32_t stack(struct builder *b, uint32_t number, int32_t *known)
{
	uint64_t state = number * 0x9e3779b97f4a7c15u + 1;
	uint32_t depth = 15 + number % 31;
	int32_t locations[64];

	if (known[number])
		return known[number];
	for (uint32_t i = 0; i < depth; i++) {
		state = state * 6364136223846793005u + 1442695040888963407u;
		/* Near the root few functions, near the leaf all. */
		locations[depth - 1 - i] = location(b, (uint32_t)((state >> 33) % (i < 8 ? 20 * (i + 1) : FUNCTIONS)));
	}
	return known[number] = builder_stack(b, locations, depth);
}

static void add_interval(struct builder *b, uint64_t start_ns, unsigned samples)
{
	struct key_value pid = { .key = STR("process.pid"), .value = { .kind = VALUE_INT, .integer = 4711 } };
	uint32_t profile = builder_profile(b, builder_resource(b, &pid, 1), &spec);
	static int32_t known[STACKS];

	memset(known, 0, sizeof(known));

	for (unsigned i = 0; i < samples; i++) {
		uint32_t thread = (uint32_t)draw(THREADS);
		char name[16];
		int32_t attributes[3];

		snprintf(name, sizeof(name), "worker-%u", thread);
		attributes[0] = builder_attribute_string(b, "thread.name", str_z(name));
		attributes[1] = builder_attribute_int(b, "thread.id", 5000 + thread);
		attributes[2] = builder_attribute_int(b, "cpu.logical_number", (int64_t)draw(CPUS));
		builder_event(b, profile, stack(b, (uint32_t)(draw(STACKS) * draw(STACKS) / STACKS), known), attributes, 3,
			      0, start_ns + i * 500000ull, false, 0);
	}
}

int main(int argc, char **argv)
{
	uint64_t samples = argc == 3 ? strtoull(argv[1], NULL, 10) : 0;
	struct otlp_stream *stream = otlp_stream_new();
	struct builder *b = builder_new();
	FILE *out = samples ? fopen(argv[2], "w") : NULL;

	if (!out || !b || !stream) {
		fprintf(stderr, "usage: capture SAMPLES FILE\n");
		return 2;
	}
	for (uint64_t done = 0; done < samples; done += INTERVAL_SAMPLES) {
		uint64_t start = 1700000000000000000 + done * 500000;
		struct buf message = BUF_EMPTY;
		struct profiles *p;

		add_interval(b, start, samples - done < INTERVAL_SAMPLES ? (unsigned)(samples - done) : INTERVAL_SAMPLES);
		if (builder_freeze(b, start, start + 5000000000, &p) || otlp_stream_encode(stream, p, &message) ||
		    fwrite(message.data, 1, message.len, out) != message.len)
			return 1;
		buf_fini(&message);
		profiles_put(p);
	}
	builder_free(b);
	otlp_stream_free(stream);
	return fclose(out) != 0;
}
