/* SPDX-License-Identifier: Apache-2.0 */
/* Stacks out of frames as other tools write them: inlined calls, code without a name, and types that are guessed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/buf.h"
#include "proto/stack_maker.h"
#include "proto/sums/stack_walk.h"
#include "tests/unit/proto/text_profiles.h"

static struct builder *builder;
static struct stack_maker maker;

static int setup(void **state)
{
	(void)state;
	builder = builder_new();
	stack_maker_init(&maker, builder);
	return !builder;
}

static int teardown(void **state)
{
	(void)state;
	stack_maker_fini(&maker);
	builder_free(builder);
	return 0;
}

static struct frame_said said(const char *function, const char *module)
{
	struct frame_said f = FRAME_SAID_NOTHING;

	f.function = text_str(function);
	f.module = text_str(module);
	return f;
}

static void add(const char *function, const char *module)
{
	const struct frame_said f = said(function, module);

	stack_maker_add(&maker, &f);
}

static void add_inlined(const char *function, int64_t line)
{
	struct frame_said f = said(function, "");

	f.inlined = true;
	f.line = line;
	stack_maker_add(&maker, &f);
}

/* "FUNCTION@MODULE:TYPE:ADDRESS:LINE" a frame, with a ~ before inlined ones; leaf first. */
static int describe(void *arg, const struct stack_sample *s)
{
	for (uint32_t i = 0; i < s->frame_count; i++) {
		const struct frame *f = stack_frame(s, i);

		buf_printf(arg, "%s%s%.*s@%.*s:%.*s:%" PRIx64 ":%" PRId64, i ? " " : "", f->inlined ? "~" : "",
			   (int)f->function.len, f->function.data, (int)f->module.len, f->module.data, (int)f->type.len,
			   f->type.data, f->address, f->line);
	}
	return 0;
}

/* Ends the stack, which reads so. */
static void reads(const char *wanted)
{
	struct buf text = BUF_EMPTY;
	struct profiles *p = NULL;

	builder_event(builder, builder_profile(builder, builder_resource(builder, NULL, 0), &text_cpu_spec),
		      stack_maker_end(&maker), NULL, 0, 0, 5, false, 0);
	assert_false(stack_maker_failed(&maker));
	assert_int_equal(builder_freeze(builder, 1, 10, &p), 0);
	assert_int_equal(stack_walk_each(p, describe, &text), 0);
	assert_string_equal(buf_text(&text), wanted);
	buf_fini(&text);
	profiles_put(p);
}

static void test_plain_frames(void **state)
{
	(void)state;
	add("leaf", "/lib/libc.so.6");
	add("root", "/bin/app");
	reads("leaf@libc.so.6:native:0:0 root@app:native:0:0");
}

static void test_inlined(void **state)
{
	(void)state;
	add_inlined("inner", 7);
	add_inlined("middle", 8);
	add("outer", "app");
	add("root", "app");
	reads("~inner@app:native:0:7 ~middle@app:native:0:8 outer@app:native:0:0 root@app:native:0:0");
}

/* What a call is inlined into has a frame though nobody said its name. */
static void test_inlined_into_nothing(void **state)
{
	(void)state;
	add_inlined("inner", 7);
	add("", "app");
	reads("~inner@app:native:0:7 @app:native:0:0");
}

/* The stack ends within inlined calls: nothing is lost. */
static void test_inlined_at_the_end(void **state)
{
	(void)state;
	add("leaf", "app");
	add_inlined("inner", 7);
	reads("leaf@app:native:0:0 inner@:native:0:7");
}

static void test_stacks_begin_anew(void **state)
{
	(void)state;
	add("one", "app");
	(void)stack_maker_end(&maker);
	assert_int_equal(stack_maker_last(&maker), 0);
	add("two", "app");
	reads("two@app:native:0:0");
}

static void test_repeated(void **state)
{
	int32_t location;

	(void)state;
	assert_int_equal(stack_maker_last(&maker), 0);
	add("a", "app");
	location = stack_maker_last(&maker);
	assert_true(location > 0);
	add_inlined("i", 1);
	assert_int_equal(stack_maker_last(&maker), 0); /* none is closed */
	add("b", "app");
	assert_int_not_equal(stack_maker_last(&maker), location);
	stack_maker_repeat(&maker, location);
	assert_int_equal(stack_maker_last(&maker), location);
	reads("a@app:native:0:0 ~i@app:native:0:1 b@app:native:0:0 a@app:native:0:0");
}

/* Code without a name is told by its module and address. */
static void test_nameless(void **state)
{
	struct frame_said f = said("libc.so.6+0x1234", "");

	(void)state;
	stack_maker_add(&maker, &f);
	reads("@libc.so.6:native:1234:0");
}

static void test_nameless_with_a_module(void **state)
{
	struct frame_said f = said("0x4000", "/bin/app");

	(void)state;
	stack_maker_add(&maker, &f);
	reads("@app:native:4000:0");
}

/* An address that contradicts the text makes that a name. */
static void test_nameless_elsewhere(void **state)
{
	struct frame_said f = said("0x4000", "/bin/app");

	(void)state;
	f.address = 0x5000;
	stack_maker_add(&maker, &f);
	f.address = 0x4000;
	stack_maker_add(&maker, &f);
	reads("0x4000@app:native:5000:0 @app:native:4000:0");
}

/* What was said of the type is not guessed. */
static void test_type_that_was_said(void **state)
{
	struct frame_said f = said("f", "[kernel]");

	(void)state;
	f.type = STR("beam");
	stack_maker_add(&maker, &f);
	add("g", "[kernel]");
	reads("f@[kernel]:beam:0:0 g@[kernel]:kernel:0:0");
}

static void guesses(const char *module, const char *file, const char *type)
{
	struct str told = stack_maker_guess_type(text_str(module), text_str(file));

	if (!str_is(told, type))
		fail_msg("%s %s: %.*s", module, file, (int)told.len, told.data);
}

static void test_types_by_files(void **state)
{
	(void)state;
	guesses("app", "main.go", "go");
	guesses("app", "/a/b.py", "cpython");
	guesses("app", "b.rb", "ruby");
	guesses("app", "b.php", "php");
	guesses("app", "b.js", "v8js");
	guesses("app", "b.mjs", "v8js");
	guesses("app", "b.ts", "v8js");
	guesses("app", "B.java", "jvm");
	guesses("app", "b.kt", "jvm");
	guesses("app", "b.scala", "jvm");
	guesses("app", "b.pl", "perl");
	guesses("app", "b.pm", "perl");
	guesses("app", "b.cs", "dotnet");
	guesses("app", "b.erl", "beam");
	guesses("app", "b.lua", "luajit");
	guesses("[kernel]", "b.py", "cpython"); /* the file says more */
	guesses("app", "b.c", "native");
	guesses("app", "b.py.c", "native");
	guesses("app", ".py", "native"); /* a name before it there must be */
	guesses("app", "", "native");
}

static void test_types_by_modules(void **state)
{
	(void)state;
	guesses("[kernel]", "", "kernel");
	guesses("[kernel.kallsyms]", "", "kernel");
	guesses("[guest.kernel.kallsyms]", "", "kernel");
	guesses("vmlinux", "fs/read.c", "kernel");
	guesses("/usr/lib/debug/vmlinux", "", "kernel");
	guesses("/lib/modules/x/xfs.ko", "", "kernel");
	guesses("xfs.ko", "", "kernel");
	guesses("not-vmlinux", "", "native");
	guesses("vmlinux2", "", "native");
	guesses("[kerne", "", "native");
	guesses("[vdso]", "", "native");
	guesses(".ko", "", "native");
	guesses("", "", "native");
}

#define MAKER_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		MAKER_TEST(test_plain_frames),
		MAKER_TEST(test_inlined),
		MAKER_TEST(test_inlined_into_nothing),
		MAKER_TEST(test_inlined_at_the_end),
		MAKER_TEST(test_stacks_begin_anew),
		MAKER_TEST(test_repeated),
		MAKER_TEST(test_nameless),
		MAKER_TEST(test_nameless_with_a_module),
		MAKER_TEST(test_nameless_elsewhere),
		MAKER_TEST(test_type_that_was_said),
		cmocka_unit_test(test_types_by_files),
		cmocka_unit_test(test_types_by_modules),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
