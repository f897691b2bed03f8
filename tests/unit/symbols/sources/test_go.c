/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Go's inlined calls and lines against two judges: the stacks that the runtime prints itself, and llvm-symbolizer, which
 * reads the DWARF of a program where ours reads the table of the same program, stripped. Go of two ages, in
 * position-independent and externally linked programs, too.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "symbols/code/source.h"
#include "symbols/sources/symbol_image.h"
#include "tests/unit/symbols/go_program.h"

enum { ADDRESSES = 3000, NAME_BYTES = 2048 };

static struct go_program programs[] = {
	{ .name = "plain", .go = NEW_GO, .options = "" },
	{ .name = "pie", .go = NEW_GO, .options = "-buildmode=pie" },
	{ .name = "external", .go = NEW_GO, .options = "-buildmode=pie -ldflags=-linkmode=external" },
	{ .name = "old", .go = OLD_GO, .options = "" },
	{ .name = "old_external", .go = OLD_GO, .options = "-buildmode=pie -ldflags=-linkmode=external" },
};

static int build_all(void **state)
{
	(void)state;
	return go_programs_build(programs, ARRAY_LEN(programs));
}

static int remove_all(void **state)
{
	(void)state;
	return go_programs_remove(programs, ARRAY_LEN(programs));
}

static void names_free(struct code_names **c)
{
	code_names_free(*c);
}

/* What @path says of itself once it is stripped. */
static struct code_names *read_stripped(const char *path, const uint64_t *wanted, size_t count)
{
	struct code_names *c = code_names_new(wanted, count);
	struct symbol_files files = { 0 };
	char stripped[128], command[512];
	AUTO_CLOSE int fd = -1;

	assert_non_null(c);
	snprintf(stripped, sizeof(stripped), "%s.stripped", path);
	snprintf(command, sizeof(command), "strip -o %s %s", stripped, path);
	assert_int_equal(system(command), 0);
	fd = open(stripped, O_RDONLY | O_CLOEXEC);
	assert_int_equal(symbol_image_map(fd, &files.program), 0);
	assert_int_equal(source_go(&files, c), 0);
	assert_int_equal(code_names_finish(c), 0);
	symbol_image_unmap(&files.program);
	unlink(stripped);
	return c;
}

/* --- answers as text --- */

static void frame_name(const struct code_names *c, const struct code_frame *frame, char *out)
{
	char name[NAME_BYTES];
	size_t len;
	const char *text = code_names_name(c, frame->function, &len);

	snprintf(name, sizeof(name), "%.*s", (int)len, text);
	go_plain_name(name, out, NAME_BYTES);
}

static void frame_line(const struct code_names *c, const struct code_frame *frame, char *out)
{
	size_t len;
	const char *text;

	strcpy(out, "??:0");
	if (frame->file == CODE_NONE)
		return;
	text = code_names_path(c, frame->file, &len);
	snprintf(out, NAME_BYTES, "%.*s:%u", (int)len, text, frame->line);
}

static void assert_frame(const struct code_names *c, const struct code_frame *frame, const char *name, const char *line)
{
	char ours[NAME_BYTES], theirs[NAME_BYTES];

	frame_name(c, frame, ours);
	go_plain_name(name, theirs, sizeof(theirs));
	assert_string_equal(ours, theirs);
	frame_line(c, frame, ours);
	assert_string_equal(ours, line);
}

/* --- against the runtime --- */

struct printed {
	char name[NAME_BYTES], line[NAME_BYTES];
};

/* The next frame: "name(...)", "\tfile:line[ +0xoffset]", past what stands between stacks. *@offset_ret 0: an inlined call.
 */
static bool read_frame(FILE *f, struct printed *ret, uint64_t *offset_ret)
{
	char *space;

	do {
		if (!fgets(ret->name, sizeof(ret->name), f))
			return false;
	} while (!strchr(ret->name, '('));
	assert_non_null(fgets(ret->line, sizeof(ret->line), f));
	*strrchr(ret->name, '(') = '\0';
	memmove(ret->line, ret->line + 1, strlen(ret->line));
	ret->line[strcspn(ret->line, "\n")] = '\0';
	space = strstr(ret->line, " +0x");
	*offset_ret = space ? strtoull(space + 4, NULL, 16) : 0;
	if (space)
		*space = '\0';
	return true;
}

static uint64_t entry_of(const char *path, const char *name)
{
	char command[128], line[4096], symbol[NAME_BYTES], plain[NAME_BYTES], wanted[NAME_BYTES];
	uint64_t addr, found = 0;
	FILE *f;

	go_plain_name(name, wanted, sizeof(wanted));
	snprintf(command, sizeof(command), "nm %s", path);
	f = popen(command, "r");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%lx %*1[tT] %2047s", &addr, symbol) != 2)
			continue;
		go_plain_name(symbol, plain, sizeof(plain));
		if (!strcmp(plain, wanted))
			found = addr;
	}
	assert_int_equal(pclose(f), 0);
	assert_true(found);
	return found;
}

/* Compares the stacks that @path prints. Returns how many inlined frames there were. */
static size_t check_stacks(const char *path)
{
	AUTO(names_free) struct code_names *c = read_stripped(path, NULL, 0);
	static struct printed frames[CODE_MAX_FRAMES];
	size_t count = 0, inlined = 0;
	struct code_answer answer;
	uint64_t offset;
	FILE *f = popen(path, "r");

	assert_non_null(f);
	while (read_frame(f, &frames[count], &offset)) {
		assert_true(++count < CODE_MAX_FRAMES);
		if (!offset)
			continue;
		offset += entry_of(path, frames[count - 1].name) - 1;
		assert_int_equal(code_names_find(c, offset, &answer), 0);
		assert_int_equal(answer.frame_count, count);
		for (size_t i = 0; i < count; i++)
			assert_frame(c, &answer.frames[i], frames[i].name, frames[i].line);
		inlined += count - 1;
		count = 0;
	}
	assert_int_equal(pclose(f), 0);
	return inlined;
}

static void test_stacks(void **state)
{
	static const char *const toolchains[] = { NEW_GO, OLD_GO };
	char path[64], command[512];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(toolchains); i++) {
		snprintf(path, sizeof(path), "%s/inline", go_folder);
		snprintf(
			command, sizeof(command),
			"command -v %s >/dev/null && HOME=${HOME:-%s} env -u GOROOT GO111MODULE=off GOFLAGS= GOPROXY=off %s "
			"build -o %s " TEST_DATA "/unit/symbols/go_inline.go",
			toolchains[i], go_folder, toolchains[i], path);
		if (system(command)) {
			print_message("left out: %s not here\n", toolchains[i]);
			continue;
		}
		assert_true(check_stacks(path) >= 10);
		unlink(path);
	}
}

/* --- against llvm-symbolizer --- */

/* What the compiler made by itself has no DWARF, or one without its line; the table has both. */
static bool is_made(const struct code_names *c, const struct code_answer *answer)
{
	char text[NAME_BYTES];

	for (uint32_t i = 0; i < answer->frame_count; i++) {
		frame_line(c, &answer->frames[i], text);
		if (strstr(text, "<autogenerated>"))
			return true;
	}
	frame_name(c, &answer->frames[0], text);
	return !strncmp(text, "go:text", 7);
}

/* Reads llvm-symbolizer's next answer and compares it. */
static void check_answer(const struct code_names *c, uint64_t addr, FILE *f, size_t *inlined)
{
	char name[NAME_BYTES], line[NAME_BYTES];
	struct code_answer answer;
	bool is_known = code_names_find(c, addr, &answer) == 0, is_other = is_known && is_made(c, &answer);
	uint32_t count = 0;

	while (fgets(name, sizeof(name), f) && name[0] != '\n') {
		assert_non_null(fgets(line, sizeof(line), f));
		name[strcspn(name, "\n")] = '\0';
		*strrchr(line, ':') = '\0'; /* the column: Go's table has none */
		if (!is_other && is_known) {
			assert_true(count < answer.frame_count);
			assert_frame(c, &answer.frames[count], name, line);
		} else if (!is_other) {
			assert_string_equal(name, "??");
		}
		count++;
	}
	assert_true(!is_known || is_other || count == answer.frame_count);
	*inlined += count > 1;
}

static void check_dwarf(const struct go_program *p)
{
	AUTO(names_free) struct code_names *c = NULL;
	char command[512];
	uint64_t start, end, wanted[ADDRESSES];
	size_t inlined = 0;
	FILE *f;

	snprintf(command, sizeof(command), "nm %s | awk '$3 ~ /^runtime.e?text$/ { print $1 }' | sort", p->path);
	f = popen(command, "r");
	assert_non_null(f);
	assert_int_equal(fscanf(f, "%lx %lx", &start, &end), 2);
	pclose(f);
	for (uint64_t i = 0; i < ADDRESSES; i++)
		wanted[i] = start + i * ((end - start) / ADDRESSES);
	c = read_stripped(p->path, wanted, ADDRESSES);
	snprintf(command, sizeof(command),
		 "python3 -c 'for i in range(%d): print(hex(%lu + i * %lu))' | llvm-symbolizer --no-demangle --obj=%s",
		 ADDRESSES, start, (end - start) / ADDRESSES, p->path);
	f = popen(command, "r");
	assert_non_null(f);
	for (size_t i = 0; i < ADDRESSES; i++)
		check_answer(c, wanted[i], f, &inlined);
	assert_int_equal(pclose(f), 0);
	assert_true(inlined > ADDRESSES / 10);
}

static void test_dwarf(void **state)
{
	(void)state;
	if (system("command -v llvm-symbolizer >/dev/null"))
		skip();
	for (size_t i = 0; i < ARRAY_LEN(programs); i++)
		if (programs[i].path[0])
			check_dwarf(&programs[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stacks),
		cmocka_unit_test(test_dwarf),
	};

	return cmocka_run_group_tests(tests, build_all, remove_all);
}
