/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Command lines, with variables and a configuration file, through the parser of options. The input is text: a line a word,
 * the command first; a word NAME=VALUE in capitals is a variable; behind an empty line stands the file. Refusals must have
 * a reason of one line. Accepted values must be within their bounds, the same again, and fit to be written down.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/curl.h"
#include "cmd/options/command.h"
#include "cmd/options/config.h"
#include "cmd/options/effective.h"
#include "cmd/options/options.h"
#include "tests/fuzz/require.h"

enum { MAX_WORDS = 32, INPUT_BYTES = 8192 };

static const char capitals[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static CURL *no_handle(void)
{
	return NULL;
}

/* A configuration may name a server; none is asked. */
void *curl_function(const char *name)
{
	REQUIRE(!strcmp(name, "curl_easy_init"));
	return (void *)(uintptr_t)no_handle;
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	cmd_list(all_commands);
	REQUIRE(options_fill_in(all_option_texts) == 0);
	return 0;
}

struct line {
	char text[INPUT_BYTES + 1];
	char *words[MAX_WORDS + 3];
	int count;
};

static bool is_variable(const char *word)
{
	size_t len = strspn(word, capitals);

	return len && word[len] == '=' && (!strncmp(word, "HEARTH_", 7) || !strncmp(word, "OTEL_", 5));
}

/* Takes the input apart; the environment gets the variables and the file. False: there is no such command. */
static bool take_apart(const uint8_t *data, size_t size, struct line *line)
{
	static char config_word[] = "--config=env:FILE";
	char *file, *rest = line->text;

	memcpy(line->text, data, size);
	line->text[size] = '\0';
	line->count = 0;
	clearenv();
	setenv("HOME", "/nonexistent", 1);
	file = strstr(line->text, "\n\n");
	if (file) {
		*file = '\0';
		setenv("FILE", file + 2, 1);
	}
	while (rest && line->count < MAX_WORDS) {
		char *word = strsep(&rest, "\n");

		if (is_variable(word))
			putenv(word);
		else
			line->words[line->count++] = word;
		if (file && line->count == 1) {
			line->words[line->count++] = config_word;
			file = NULL;
		}
	}
	line->words[line->count] = NULL;
	return line->count && cmd_find(line->words[0]);
}

static void check_list(const struct string_list *list)
{
	REQUIRE(!list->items == !list->count);
	for (size_t i = 0; i < list->count; i++)
		REQUIRE(list->items[i]);
	REQUIRE(!list->items || !list->items[list->count]);
}

static bool is_choice(const char *choices, const char *value)
{
	size_t len;

	for (; *choices; choices += len + (choices[len] == '|')) {
		len = strcspn(choices, "|");
		if (strlen(value) == len && !strncmp(choices, value, len))
			return true;
	}
	return false;
}

/* A value that was not set is 0, whatever the least is. */
static void check_value(const struct option_spec *spec, const void *field)
{
	const char *text;
	uint64_t number;
	double real;

	switch (spec->kind) {
	case OPTION_U64:
	case OPTION_DURATION:
	case OPTION_SIZE:
	case OPTION_FREQ:
		number = *(const uint64_t *)field;
		REQUIRE(!number || (number >= spec->least && number <= spec->most));
		break;
	case OPTION_DOUBLE:
		real = *(const double *)field;
		REQUIRE(real >= 0 && real <= (double)spec->most);
		break;
	case OPTION_CHOICE:
		text = *(const char *const *)field;
		REQUIRE(!text || is_choice(spec->argument, text));
		break;
	case OPTION_LIST:
	case OPTION_WORDS:
		check_list(field);
		break;
	case OPTION_FLAG:
	case OPTION_STRING:
	case OPTION_PIDS:
		break;
	}
}

static int parse(const uint8_t *data, size_t size, struct buf *said)
{
	static struct line line;
	AUTO(config_fini) struct config config = { 0 };
	AUTO(buf_fini) struct buf error = BUF_EMPTY;
	size_t count;
	const struct option_spec *specs = options_table(&count);
	int err;

	if (!take_apart(data, size, &line))
		return 0;
	err = options_parse(cmd_find(line.words[0]), line.count, line.words, &config, &error);
	REQUIRE(err <= 0);
	if (err) { /* a server's configuration is refused for want of memory, see above */
		REQUIRE((err == -ENOMEM && strstr(line.text, "http")) || err == -EINVAL || err == -EBADMSG);
		REQUIRE(err == -ENOMEM || error.len);
		REQUIRE(!strchr(buf_text(&error), '\n'));
		buf_puts(said, buf_text(&error));
		return err;
	}
	for (size_t i = 0; i < count; i++)
		if (specs[i].commands & config.cmd->bit)
			check_value(&specs[i], (const char *)&config + specs[i].offset);
	effective_write(&config, said);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO(buf_fini) struct buf once = BUF_EMPTY, twice = BUF_EMPTY;

	if (size > INPUT_BYTES)
		return 0;
	REQUIRE(parse(data, size, &once) == parse(data, size, &twice));
	REQUIRE(!strcmp(buf_text(&once), buf_text(&twice)));
	return 0;
}
