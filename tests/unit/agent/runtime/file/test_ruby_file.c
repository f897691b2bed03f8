/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The facts that a file tells of Ruby: files that gcc makes, with functions that do what Ruby's do, and the Ruby that is
 * installed. RUBY_FILES='FILE ...' prints what those files tell.
 */
#include <fcntl.h>
#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "bpf/runtime/ruby_state.h"
#include "tests/unit/agent/runtime/file/made_file.h"

#ifdef __x86_64__
/* What is looked at of Ruby: the ways to the loop, to the thread's state and to the names. */
static const char source[] =
	"#include <setjmp.h>\n"
	"const char ruby_version[] = VERSION; const int ruby_api_version[3] = { 3, 1, 0 };\n"
	"long rb_cObject = 8;\n"
	"struct ec { long words[16]; };\n"
	"#ifdef GLOBAL\n"
	"struct ec *ruby_current_execution_context_ptr; \n"
	"#define EC ruby_current_execution_context_ptr\n"
	"#else\n"
	"__attribute__((visibility(\"hidden\"))) __thread struct ec *other, *ec;\n"
	"#define EC ec\n"
	"#endif\n"
	"long rb_errinfo(void) { return EC->words[14]; }\n"
	"__attribute__((visibility(\"hidden\"))) struct { unsigned last_id; void *str; long *ids; } symbols = { 1, 0, (long "
	"*)8 };\n"
	"long rb_id2str(unsigned long id) { if (id > 170) id >>= 4; return id <= symbols.last_id ? symbols.ids[id / 512] : "
	"0; }\n"
	"static __attribute__((noinline)) long core(long n) {\n"
	"#define STEP n = n * 3 + (n >> 2) ^ __COUNTER__ * 0x1234567;\n"
	"#define STEPS STEP STEP STEP STEP STEP STEP STEP STEP\n"
	"#define MANY STEPS STEPS STEPS STEPS STEPS STEPS STEPS STEPS\n"
	"MANY MANY MANY MANY MANY MANY MANY MANY MANY MANY MANY MANY return n; }\n"
	"static __attribute__((noinline)) long small(long n) { return n * 3; }\n"
	"struct tag { long tag, value; JUMP; struct tag *prev; };\n"
	"static __attribute__((noinline)) long loop(long n) {\n"
	"	struct tag tag; volatile long m = n;\n"
	"	if (SETJMP(tag.buf) == 0) { __asm__ volatile(\"\" :: \"r\"(&tag) : \"memory\"); m = core(m) + small(m); }\n"
	"	else m = small(m + 1) + core(m);\n"
	"	return m * 2; }\n"
	"long rb_iseq_eval(long n) { if (!n) n = small(rb_errinfo()); return loop(n + 5); }\n"
	"int main(void) { return 0; }\n";

/* Makes the file @path of the source with gcc's @options. False: there is no gcc. */
#define OWN  "'-DJUMP=void *buf[5]' '-DSETJMP(b)=__builtin_setjmp(b)'"
#define LIBC "'-DJUMP=jmp_buf buf' '-DSETJMP(b)=_setjmp(b)'"

static void test_made(void **state)
{
	static const struct {
		const char *options;
		uint32_t version;
		enum thread_place place;
		uint16_t tag_pc, tag_previous, lines;
	} cases[] = {
		{ "-fPIC -shared -s '-DVERSION=\"3.1.7\"' " OWN, 0x030107, THREAD_TLS_INDEX, 24, 56, 120 },
		{ "-fPIC -shared -s '-DVERSION=\"3.4.9\"' " LIBC, 0x030409, THREAD_TLS_INDEX, 72, 216, 112 },
		{ "-fPIE -pie -rdynamic -s '-DVERSION=\"4.0.5\"' " OWN, 0x040005, THREAD_TLS, 24, 56, 112 },
		{ "-fPIC -pie -rdynamic '-DVERSION=\"4.0.5\"' " OWN, 0x040005, THREAD_TLS, 24, 56, 112 },
		{ "-fPIC -shared -DGLOBAL '-DVERSION=\"2.7.4\"' " OWN, 0x020704, THREAD_GLOBAL, 24, 56, 120 },
	};
	char path[] = "/tmp/ruby_file.XXXXXX";
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	close(fd);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct runtime_file f;

		if (!make_file(path, source, cases[i].options))
			break;
		f = read_file(path);
		assert_int_equal(f.kind, RUNTIME_FILE_CHAIN);
		assert_int_equal(f.id, RUNTIME_RUBY);
		assert_int_equal(f.version, cases[i].version);
		assert_int_equal(f.state.thread.place, cases[i].place);
		assert_true(runtime_file_has_threads(&f));
		assert_int_equal(f.state.offset[RUBY_TAG_PC], cases[i].tag_pc);
		assert_int_equal(f.state.offset[RUBY_TAG_PREVIOUS], cases[i].tag_previous);
		assert_int_equal(f.state.offset[RUBY_LINES], cases[i].lines);
		assert_int_equal(f.state.offset[RUBY_LOOP_BYTES], f.loop.end - f.loop.start);
		assert_int_equal(f.state.type, f.loop.start);
		assert_true(f.loop.end - f.loop.start > 50 && f.loop.end - f.loop.start < 1000);
		assert_true(f.body.end - f.body.start > 8192 && f.body.end - f.body.start < 40000);
		assert_true(f.state.data[RUBY_SYMBOLS]);
		assert_int_equal(!f.state.data[RUBY_OBJECT], cases[i].version > 0x030200);
	}
	unlink(path);
}

/* It is Ruby, but of a version that is not known: its state has no way to it. */
static void test_unknown(void **state)
{
	char path[] = "/tmp/ruby_file.XXXXXX";
	int fd = mkstemp(path);
	struct runtime_file f;

	(void)state;
	assert_true(fd >= 0);
	close(fd);
	if (!make_file(path, source, "-fPIC -shared '-DVERSION=\"1.9.3\"' " OWN))
		skip();
	f = read_file(path);
	unlink(path);
	assert_int_equal(f.kind, RUNTIME_FILE_CHAIN);
	assert_int_equal(f.id, RUNTIME_RUBY);
	assert_int_equal(f.version, 0x010903);
	assert_false(runtime_file_has_threads(&f));
}
#endif

static void print(const char *path)
{
	struct runtime_file f = read_file(path);

	printf("%s: kind %u id %u version %x loop %jx..%jx body %jx..%jx thread %u %d %jx symbols %jx tag %u\n", path,
	       f.kind, f.id, f.version, (uintmax_t)f.loop.start, (uintmax_t)f.loop.end, (uintmax_t)f.body.start,
	       (uintmax_t)f.body.end, f.state.thread.place, f.state.thread.offset, (uintmax_t)f.state.thread.addr,
	       (uintmax_t)f.state.data[RUBY_SYMBOLS], f.state.offset[RUBY_TAG_PC]);
}

/* The Ruby that is here is of the version that its file name has. */
static void test_installed(void **state)
{
	const char *files = getenv("RUBY_FILES");
	glob_t found = { 0 };

	(void)state;
	for (char *list = files ? strdup(files) : NULL, *at = list ? strtok(list, " ") : NULL; at; at = strtok(NULL, " "))
		print(at);
	if (glob("/usr/lib/*/libruby-?.?.so.?.?.*", 0, NULL, &found)) {
		globfree(&found);
		skip();
	}
	for (size_t i = 0; i < found.gl_pathc; i++) {
		struct runtime_file f = read_file(found.gl_pathv[i]);
		char version[32];

		assert_int_equal(f.kind, RUNTIME_FILE_CHAIN);
		assert_int_equal(f.id, RUNTIME_RUBY);
		(void)snprintf(version, sizeof(version), "so.%u.%u.%u", f.version >> 16, f.version >> 8 & 255,
			       f.version & 255);
		assert_non_null(strstr(found.gl_pathv[i], version));
	}
	globfree(&found);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#ifdef __x86_64__
		cmocka_unit_test(test_made),
		cmocka_unit_test(test_unknown),
#endif
		cmocka_unit_test(test_installed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
