/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads folded stacks, as stackcollapse-*.pl, py-spy, async-profiler and hearth write them: "thread;root;...;leaf COUNT".
 * The first part is the thread, as perf's and hearth's own; the count is the last word and may have a fraction. A frame may
 * end in the mark of its kind: _[k] kernel, _[i] inlined, _[j] compiled at run time.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text/utf8.h"
#include "proto/formats/formats.h"
#include "proto/stack_maker.h"

static const struct builder_profile_spec samples_spec = {
	.scope_name = "hearth",
	.scope_version = HEARTH_VERSION,
	.sample_type = "samples",
	.sample_unit = "count",
	.period_type = "",
	.period_unit = "",
};

/* Splits @line at the last blank. False: no stack, or no count behind it. */
static bool split_count(struct str line, struct str *stack, double *count)
{
	char number[64], *end;
	uint32_t at;

	line = read_trimmed(line);
	for (at = line.len; at && line.data[at - 1] != ' ' && line.data[at - 1] != '\t'; at--)
		;
	if (at < 2 || line.len - at >= sizeof(number))
		return false;
	memcpy(number, line.data + at, line.len - at);
	number[line.len - at] = '\0';
	if (strspn(number, "0123456789.") != line.len - at)
		return false;
	*count = strtod(number, &end);
	*stack = read_trimmed((struct str){ line.data, at });
	return !*end && *count < 0x1p62 && stack->len;
}

static bool is_skipped(struct str line)
{
	line = read_trimmed(line);
	return !line.len || line.data[0] == '#';
}

bool folded_fits(const uint8_t *data, size_t len)
{
	struct read_lines lines = { .at = (const char *)data, .end = (const char *)data + len };
	struct str line, stack;
	double count;

	while (read_line(&lines, &line)) {
		if (!is_skipped(line))
			return split_count(line, &stack, &count) && !memchr(line.data, '\0', line.len) &&
			       utf8_is_valid(line.data, line.len);
	}
	return false;
}

struct reader {
	struct builder *b;
	struct stack_maker maker;
	uint32_t profile;
	double carried; /* fractions not counted yet */
};

/* Takes the mark @mark off the end of the name. */
static bool take_mark(struct str *name, const char *mark)
{
	if (name->len <= 4 || memcmp(name->data + name->len - 4, mark, 4) != 0)
		return false;
	name->len -= 4;
	return true;
}

static void add_frame(struct reader *r, struct str name)
{
	struct frame_said f = FRAME_SAID_NOTHING;

	if (take_mark(&name, "_[k]"))
		f.type = STR("kernel");
	else if (take_mark(&name, "_[i]"))
		f.inlined = true;
	else
		take_mark(&name, "_[j]");
	f.function = name;
	stack_maker_add(&r->maker, &f);
}

static void add_stack(struct reader *r, struct str stack, double count)
{
	const char *semicolon = memchr(stack.data, ';', stack.len), *end = stack.data + stack.len;
	struct str thread = { stack.data, semicolon ? (uint32_t)(semicolon - stack.data) : stack.len };
	int32_t name = builder_attribute_string(r->b, "thread.name", thread);
	double whole;

	for (const char *at; semicolon && end > semicolon; end = at) {
		at = memrchr(semicolon, ';', (size_t)(end - semicolon));
		add_frame(r, (struct str){ at + 1, (uint32_t)(end - at - 1) });
	}
	r->carried = modf(count + r->carried, &whole);
	builder_value(r->b, r->profile, stack_maker_end(&r->maker), &name, 1, 0, (int64_t)whole);
}

int folded_read(const uint8_t *data, size_t len, struct profiles **ret, struct otlp_error *error)
{
	struct read_lines lines = { .at = (const char *)data, .end = (const char *)data + len };
	struct reader r = { .b = builder_new(), .carried = 1e-9 }; /* ten times 0.1 is 1 */
	struct str line, stack;
	double count;
	bool failed;

	if (!r.b)
		return -ENOMEM;
	stack_maker_init(&r.maker, r.b);
	r.profile = builder_profile(r.b, builder_resource(r.b, NULL, 0), &samples_spec);
	while (read_line(&lines, &line)) {
		if (is_skipped(line))
			continue;
		if (!split_count(line, &stack, &count)) {
			stack_maker_fini(&r.maker);
			builder_free(r.b);
			return read_fail(error, "line %llu does not end in a count", (unsigned long long)lines.number);
		}
		add_stack(&r, stack, count);
	}
	failed = stack_maker_failed(&r.maker);
	stack_maker_fini(&r.maker);
	return read_freeze(r.b, failed, 0, 0, ret);
}
