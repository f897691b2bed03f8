/* SPDX-License-Identifier: Apache-2.0 */
/* Texts of code without a name, and what they say. Stateless. */
#include "proto/unnamed.h"

#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text/hex.h"

#define NO_SYMBOLS " (no symbols)"
#define GENERATED  "[JIT code]"
#define UNKNOWN	   "[unknown]"

bool unnamed_is_generated(struct str path)
{
	return str_is(path, ANONYMOUS_PATH);
}

static uint64_t number_of(const struct profiles *p, const struct indices *attributes, const char *key)
{
	const struct any_value *value = profiles_find_attribute(p, attributes, key);

	return value && value->kind == VALUE_INT ? (uint64_t)value->integer : 0;
}

struct unnamed unnamed_of_location(const struct profiles *p, const struct profile_location *l)
{
	const struct profile_mapping *mapping = &p->dict.mappings[l->mapping_index];
	struct str path = profiles_string(p, mapping->filename_strindex);
	const char *slash = path.len ? memrchr(path.data, '/', path.len) : NULL;
	uint32_t skip = slash ? (uint32_t)(slash - path.data) + 1 : 0;
	struct unnamed u = {
		.module = { path.data + skip, path.len - skip },
		.process = profiles_value_text(p, profiles_find_attribute(p, &mapping->attributes, CODE_PROCESS_KEY)),
		.address = l->address,
		.start = number_of(p, &l->attributes, CODE_START_KEY),
		.size = number_of(p, &l->attributes, CODE_SIZE_KEY),
	};

	u.is_generated = unnamed_is_generated(path);
	return u;
}

void unnamed_print(const struct unnamed *u, struct buf *out)
{
	/* anybody may say anything: a range that does not hold its address is none */
	bool has_range = u->size && u->module.len && u->start <= UINT64_MAX - u->size &&
			 (!u->address || u->address - u->start < u->size);

	if (u->is_generated) {
		buf_puts(out, GENERATED);
		buf_puts(out, u->process.len ? " " : "");
		buf_append(out, u->process.data, u->process.len);
		return;
	}
	if (!u->module.len) {
		buf_puts(out, UNKNOWN);
		return;
	}
	buf_append(out, u->module.data, u->module.len);
	if (has_range)
		buf_printf(out, "+0x%" PRIx64 "..0x%" PRIx64, u->start, u->start + u->size);
	else
		buf_puts(out, NO_SYMBOLS);
}

/* --- reading --- */

/* "0x1f" to its end. */
static bool read_address(const char *p, const char *end, uint64_t *ret)
{
	uint64_t address = 0;

	if (end - p < 3 || end - p > 18 || p[0] != '0' || p[1] != 'x')
		return false;
	for (p += 2; p < end; p++) {
		int digit = *p >= 'A' && *p <= 'F' ? -1 : hex_digit(*p);

		if (digit < 0)
			return false;
		address = address << 4 | (unsigned)digit;
	}
	*ret = address;
	return true;
}

static bool read_numbers(const char *p, const char *end, struct unnamed *u)
{
	const char *dots = memmem(p, (size_t)(end - p), "..", 2);
	uint64_t limit;

	if (!dots)
		return read_address(p, end, &u->address);
	if (!read_address(p, dots, &u->start) || !read_address(dots + 2, end, &limit) || limit <= u->start)
		return false;
	u->size = limit - u->start;
	return true;
}

/* The part of @text before @end, when it ends so and is not all of it. */
static bool cut_end(struct str text, const char *end, struct str *ret)
{
	size_t len = strlen(end);

	if (text.len <= len || memcmp(text.data + text.len - len, end, len) != 0)
		return false;
	*ret = (struct str){ text.data, text.len - (uint32_t)len };
	return true;
}

bool unnamed_read(struct str text, struct unnamed *ret)
{
	enum { GENERATED_LEN = sizeof(GENERATED) - 1 };
	const char *plus = text.len ? memrchr(text.data, '+', text.len) : NULL;

	*ret = UNNAMED_NOTHING;
	if (!text.len || str_is(text, UNKNOWN))
		return text.len;
	if (str_is(text, GENERATED) ||
	    (text.len > GENERATED_LEN + 1 && !memcmp(text.data, GENERATED " ", GENERATED_LEN + 1))) {
		ret->is_generated = true;
		if (text.len > GENERATED_LEN)
			ret->process = (struct str){ text.data + GENERATED_LEN + 1, text.len - GENERATED_LEN - 1 };
		return true;
	}
	if (cut_end(text, NO_SYMBOLS, &ret->module))
		return true;
	if (plus == text.data || (!plus && memmem(text.data, text.len, "..", 2)))
		return false;
	if (plus)
		ret->module = (struct str){ text.data, (uint32_t)(plus - text.data) };
	return read_numbers(plus ? plus + 1 : text.data, text.data + text.len, ret);
}

/* --- advice --- */

const char *unnamed_generated_advice(const char *process)
{
	static const struct {
		const char *begin, *advice;
	} known[] = {
		{ "java", "Java 17 and newer: jcmd PID Compiler.perfmap writes the names of what is compiled so far" },
		{ "node", "start it with node --perf-basic-prof, or NODE_OPTIONS=--perf-basic-prof" },
		{ "deno", "start it with deno run --v8-flags=--perf-basic-prof" },
		{ "bun", "nothing is known that names its functions: the jitdump it can write has none of them" },
		{ "python", "Python 3.12 and newer: start it with PYTHONPERFSUPPORT=1" },
		{ "dotnet", "start it with DOTNET_PerfMapEnabled=1" },
		{ "beam", "start it with ERL_FLAGS='+JPperf map'" },
		{ "php", "set opcache.jit_debug=0x10 in php.ini" },
		{ "ruby", "Ruby 3.3 and newer: start it with ruby --yjit-perf" },
		{ "julia", "start it with ENABLE_JITPROFILING=1" },
		{ "postgres", "set jit_profiling_support = on" },
		{ "qemu", "start it with -perfmap" },
		{ "wasmtime", "start it with --profile perfmap" },
		{ "mono", "start it with mono --jitmap" },
		{ "luajit", "LuaJIT writes no names of its machine code; luajit -joff shows the interpreter instead" },
	};

	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		if (!strncmp(process, known[i].begin, strlen(known[i].begin)))
			return known[i].advice;
	return "its JIT compiler can write /tmp/perf-PID.map or a jitdump; most have an option for it";
}
