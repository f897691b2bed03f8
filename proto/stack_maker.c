/* SPDX-License-Identifier: Apache-2.0 */
/* A location is closed by the first frame that is not inlined, which is the one whose code stands at the address. */
#include "proto/stack_maker.h"

#include <string.h>

#include "base/cleanup.h"
#include "proto/unnamed.h"

void stack_maker_init(struct stack_maker *m, struct builder *b)
{
	*m = (struct stack_maker){ .b = b };
}

void stack_maker_fini(struct stack_maker *m)
{
	buf_fini(&m->lines);
	buf_fini(&m->locations);
}

static bool ends_in(struct str s, const char *end)
{
	size_t len = strlen(end);

	return s.len > len && !memcmp(s.data + s.len - len, end, len);
}

static bool begins_with(struct str s, const char *begin)
{
	size_t len = strlen(begin);

	return s.len >= len && !memcmp(s.data, begin, len);
}

struct str stack_maker_guess_type(struct str module, struct str file)
{
	static const struct {
		const char *end, *type;
	} known[] = {
		{ ".go", "go" },    { ".py", "cpython" }, { ".rb", "ruby" },   { ".php", "php" },  { ".js", "v8js" },
		{ ".mjs", "v8js" }, { ".ts", "v8js" },	  { ".java", "jvm" },  { ".kt", "jvm" },   { ".scala", "jvm" },
		{ ".pl", "perl" },  { ".pm", "perl" },	  { ".cs", "dotnet" }, { ".erl", "beam" }, { ".lua", "luajit" },
	};

	for (size_t i = 0; i < ARRAY_LEN(known); i++) {
		if (ends_in(file, known[i].end))
			return (struct str){ known[i].type, (uint32_t)strlen(known[i].type) };
	}
	if (begins_with(module, "[kernel") || begins_with(module, "[guest.kernel") || str_is(module, "vmlinux") ||
	    ends_in(module, ".ko") || ends_in(module, "/vmlinux"))
		return STR("kernel");
	return STR("native");
}

/* Code without a name as stack_frame_print() writes it: takes the name away and fills in what it says. False: it has a name.
 */
static bool read_nameless(struct frame_said *f, struct unnamed *u)
{
	if (!unnamed_read(f->function, u) || (f->address && u->address && f->address != u->address))
		return false;
	if (u->address)
		f->address = u->address;
	if (!f->module.len)
		f->module = u->is_generated ? STR(ANONYMOUS_PATH) : u->module;
	f->function = STR("");
	return true;
}

static void close_location(struct stack_maker *m, const struct frame_said *f, const struct unnamed *u)
{
	struct str type = f->type.len ? f->type : stack_maker_guess_type(f->module, f->file);
	int32_t attributes[3] = { builder_attribute_string(m->b, "profile.frame.type", type) }, location, process = 0;
	int32_t mapping = 0;

	if (u->process.len)
		process = builder_attribute_string(m->b, CODE_PROCESS_KEY, u->process);
	if (f->module.len)
		mapping = builder_mapping(m->b, 0, 0, 0, builder_string(m->b, f->module), &process, process != 0);
	if (u->size) {
		attributes[1] = builder_attribute_int(m->b, CODE_START_KEY, (int64_t)u->start);
		attributes[2] = builder_attribute_int(m->b, CODE_SIZE_KEY, (int64_t)u->size);
	}
	location = builder_location(m->b, mapping, f->address, (const void *)m->lines.data,
				    (uint32_t)(m->lines.len / sizeof(struct profile_line)), attributes, u->size ? 3 : 1);
	buf_append(&m->locations, &location, sizeof(location));
	m->lines.len = 0;
}

void stack_maker_add(struct stack_maker *m, const struct frame_said *said)
{
	struct frame_said f = *said;
	struct unnamed u = UNNAMED_NOTHING;

	if (f.function.len && !read_nameless(&f, &u))
		u = UNNAMED_NOTHING;
	if (f.function.len || m->lines.len) { /* what a call is inlined into is a line, with or without a name */
		struct profile_line line = { .line = f.line, .column = f.column };

		line.function_index = builder_function(m->b, builder_string(m->b, f.function), 0,
						       builder_string(m->b, f.file), 0);
		buf_append(&m->lines, &line, sizeof(line));
	}
	if (!f.inlined)
		close_location(m, &f, &u);
}

int32_t stack_maker_last(const struct stack_maker *m)
{
	int32_t location = 0;

	if (m->locations.len && !m->lines.len)
		memcpy(&location, m->locations.data + m->locations.len - sizeof(location), sizeof(location));
	return location;
}

void stack_maker_repeat(struct stack_maker *m, int32_t location)
{
	buf_append(&m->locations, &location, sizeof(location));
}

bool stack_maker_failed(const struct stack_maker *m)
{
	return m->lines.failed || m->locations.failed;
}

int32_t stack_maker_end(struct stack_maker *m)
{
	const struct frame_said nothing = FRAME_SAID_NOTHING;
	int32_t stack;

	if (m->lines.len)
		close_location(m, &nothing, &UNNAMED_NOTHING);
	if (stack_maker_failed(m))
		return 0;
	stack = builder_stack(m->b, (const int32_t *)(const void *)m->locations.data,
			      (uint32_t)(m->locations.len / sizeof(int32_t)));
	m->locations.len = 0;
	return stack;
}
