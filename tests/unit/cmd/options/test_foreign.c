/* SPDX-License-Identifier: Apache-2.0 */
/* The words of other tools: each is answered where its row says, and each command line in an answer is one that hearth
 * takes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "cmd/options/command.h"
#include "cmd/options/config.h"
#include "cmd/options/foreign.h"
#include "cmd/options/options.h"

enum { MAX_WORDS = 16, LINE_BYTES = 256 };

/* Copies the next word of *@words into @word and moves on. Whether there was one. */
static bool next_word(const char **words, char word[static LINE_BYTES])
{
	size_t len = strcspn(*words, " ");

	if (!len)
		return false;
	assert_true(len < LINE_BYTES);
	memcpy(word, *words, len);
	word[len] = '\0';
	*words += len + ((*words)[len] == ' ');
	return true;
}

/* Options whose values are placeholders in an answer. */
static char *value_of(char *word)
{
	static char number[] = "1234";

	return !strcmp(word, "PID") || !strcmp(word, "TID") ? number : word;
}

/* @line, "hearth record -d 10", parses. */
static void check_line(char *line)
{
	AUTO(buf_fini) struct buf error = BUF_EMPTY;
	AUTO(config_fini) struct config config = { 0 };
	char *words[MAX_WORDS + 1] = { NULL }, *rest = line, *word;
	const struct cmd *cmd;
	int count = 0;

	while ((word = strsep(&rest, " "))) {
		assert_true(count < MAX_WORDS);
		words[count++] = value_of(word);
	}
	assert_true(count > 1);
	cmd = cmd_find(words[1]);
	if (!cmd)
		fail_msg("'hearth %s' is no command", words[1]);
	if (options_parse(cmd, count - 1, words + 1, &config, &error))
		fail_msg("hearth %s ...: %s", words[1], buf_text(&error));
}

static void test_answers_are_command_lines(void **state)
{
	size_t count, lines = 0;
	const struct foreign *table = foreign_table(&count);

	(void)state;
	for (size_t i = 0; i < count; i++) {
		for (const char *p = strstr(table[i].answer, "'hearth "); p; p = strstr(p, "'hearth ")) {
			char line[LINE_BYTES];
			size_t len = strcspn(++p, "'");

			assert_true(len < sizeof(line));
			memcpy(line, p, len);
			line[len] = '\0';
			check_line(line);
			lines++;
		}
	}
	assert_true(lines > 30);
}

/* Options in an answer are options, of some command. */
static void test_answers_name_options(void **state)
{
	size_t count, spec_count;
	const struct foreign *table = foreign_table(&count);
	const struct option_spec *specs = options_table(&spec_count);

	(void)state;
	for (size_t i = 0; i < count; i++) {
		for (const char *p = strstr(table[i].answer, "--"); p; p = strstr(p, "--")) {
			size_t len = strspn(p += 2, "abcdefghijklmnopqrstuvwxyz-");
			bool is_known = !len; /* "record -- COMMAND" */

			for (size_t k = 0; k < spec_count && !is_known; k++)
				is_known = strlen(specs[k].name) == len && !memcmp(specs[k].name, p, len);
			if (!is_known)
				fail_msg("'%s' speaks of --%.*s", table[i].answer, (int)len, p);
		}
	}
}

static void check_option(const struct cmd *cmd, char *word, const char *answer)
{
	AUTO(buf_fini) struct buf error = BUF_EMPTY;
	AUTO(config_fini) struct config config = { 0 };
	char name[] = "hearth", *argv[] = { name, word, NULL };
	int err = options_parse(cmd, 2, argv, &config, &error);

	if (err != -EINVAL || !strstr(buf_text(&error), answer))
		fail_msg("hearth %s %s: %d, '%s' instead of '%s'", cmd->name, word, err, buf_text(&error), answer);
}

/* No row is dead: hearth has no such command or option itself, and no row above has the word. */
static void test_rows_are_reached(void **state)
{
	size_t count;
	const struct foreign *table = foreign_table(&count);

	(void)state;
	for (size_t i = 0; i < count; i++) {
		const char *words = table[i].words;
		char word[LINE_BYTES];
		bool is_reached = false;

		while (next_word(&words, word)) {
			if (table[i].kind == FOREIGN_COMMAND && cmd_find(word))
				fail_msg("'hearth %s' is a command", word);
			for (const struct cmd *const *c = cmd_all(); *c; c++) {
				const char *answer = foreign_answer(table[i].kind, (*c)->bit, word);

				if (table[i].kind != FOREIGN_COMMAND && !(table[i].commands & (*c)->bit))
					continue;
				assert_non_null(answer);
				is_reached |= answer == table[i].answer;
				if (table[i].kind == FOREIGN_OPTION)
					check_option(*c, word, answer);
			}
		}
		if (!is_reached)
			fail_msg("'%s' is never said", table[i].answer);
	}
}

static void test_unknown_words_have_no_answer(void **state)
{
	(void)state;
	assert_null(foreign_answer(FOREIGN_COMMAND, 0, "recrod"));
	assert_null(foreign_answer(FOREIGN_COMMAND, 0, ""));
	assert_null(foreign_answer(FOREIGN_COMMAND, 0, "scrip"));
	assert_null(foreign_answer(FOREIGN_OPTION, ON_HELP, "--sort"));
	assert_null(foreign_answer(FOREIGN_FORMAT, ON_DIFF, "flame"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_answers_are_command_lines),
		cmocka_unit_test(test_answers_name_options),
		cmocka_unit_test(test_rows_are_reached),
		cmocka_unit_test(test_unknown_words_have_no_answer),
	};

	cmd_list(all_commands);
	if (options_fill_in(all_option_texts))
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
