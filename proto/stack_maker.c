/* SPDX-License-Identifier: Apache-2.0 */
/* A location is closed by the first frame that is not inlined, which is the one whose code stands at the address. */
#include "proto/stack_maker.h"

#include <string.h>

#include "base/cleanup.h"

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

struct str frame_type_guess(struct str module, struct str file)
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

static int hex_digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* "0x1f" to its end. */
static bool read_address(const char *p, const char *end, uint64_t *ret)
{
	uint64_t address = 0;

	if (end - p < 3 || end - p > 18 || p[0] != '0' || p[1] != 'x')
		return false;
	for (p += 2; p < end; p++) {
		if (hex_digit(*p) < 0)
			return false;
		address = address << 4 | (uint64_t)hex_digit(*p);
	}
	*ret = address;
	return true;
}

/* Code without a name as frame_print() writes it: takes the name away and fills in what it says. */
static void read_nameless(struct frame_said *f)
{
	const char *end = f->function.data + f->function.len;
	const char *plus = f->function.len ? memrchr(f->function.data, '+', f->function.len) : NULL;
	uint64_t address;

	if (!read_address(plus ? plus + 1 : f->function.data, end, &address) || (plus && plus == f->function.data))
		return;
	if (f->address && f->address != address)
		return;
	f->address = address;
	if (plus && !f->module.len)
		f->module = (struct str){ f->function.data, (uint32_t)(plus - f->function.data) };
	f->function = STR("");
}

static void close_location(struct stack_maker *m, const struct frame_said *f)
{
	struct str type = f->type.len ? f->type : frame_type_guess(f->module, f->file);
	int32_t attribute = builder_attribute_string(m->b, "profile.frame.type", type);
	int32_t mapping = f->module.len ? builder_mapping(m->b, 0, 0, 0, builder_string(m->b, f->module), NULL, 0) : 0;
	int32_t location = builder_location(m->b, mapping, f->address, (const void *)m->lines.data,
					    (uint32_t)(m->lines.len / sizeof(struct profile_line)), &attribute, 1);

	buf_append(&m->locations, &location, sizeof(location));
	m->lines.len = 0;
}

void stack_maker_add(struct stack_maker *m, const struct frame_said *said)
{
	struct frame_said f = *said;

	read_nameless(&f);
	if (f.function.len || m->lines.len) { /* what a call is inlined into is a line, with or without a name */
		struct profile_line line = { .line = f.line, .column = f.column };

		line.function_index = builder_function(m->b, builder_string(m->b, f.function), 0,
						       builder_string(m->b, f.file), 0);
		buf_append(&m->lines, &line, sizeof(line));
	}
	if (!f.inlined)
		close_location(m, &f);
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
		close_location(m, &nothing);
	if (stack_maker_failed(m))
		return 0;
	stack = builder_stack(m->b, (const int32_t *)(const void *)m->locations.data,
			      (uint32_t)(m->locations.len / sizeof(int32_t)));
	m->locations.len = 0;
	return stack;
}
