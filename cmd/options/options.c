/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The option table and the parser. Flags are read first and marked; the environment and the defaults then fill what no flag
 * has set, so that a list given by flags replaces the one of the environment. Runs once, on the main thread.
 */
#include "cmd/options/options.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "cmd/options/command.h"
#include "cmd/options/config_file.h"
#include "cmd/options/environment.h"
#include "cmd/options/foreign.h"
#include "base/text/nearest.h"

static struct option_spec table[] = {
#define OPTION(field, name_, letter_, argument_, kind_, default_, least_, most_, commands_, group_, help_) \
	{ .name = (name_),                                                                                 \
	  .letter = (letter_),                                                                             \
	  .argument = (argument_),                                                                         \
	  .kind = OPTION_##kind_,                                                                          \
	  .default_text = (default_),                                                                      \
	  .least = (least_),                                                                               \
	  .most = (most_),                                                                                 \
	  .commands = (commands_),                                                                         \
	  .group = (group_),                                                                               \
	  .help = (help_),                                                                                 \
	  .offset = offsetof(struct config, field) },
#include "cmd/options/options.def"
#undef OPTION
};

enum {
	OPTION_COUNT = ARRAY_LEN(table),
	LONG_VALUE = 256,  /* getopt's value of table[i]'s long name: LONG_VALUE + i */
	LEAST_GO_FLAG = 6, /* "-data" may be letters */
};

static const struct option_text no_text;
static const struct option_text *texts = &no_text; /* those that were told */

/* The text that @p, which stands behind a '{', names. NULL: none. */
static const struct option_text *find_text(const char *p)
{
	for (const struct option_text *t = texts; t->name; t++) {
		size_t len = strlen(t->name);

		if (!strncmp(p, t->name, len) && p[len] == '}')
			return t;
	}
	return NULL;
}

void option_text_write(const char *text, struct buf *out)
{
	for (const char *p = text; *p; p++) {
		const struct option_text *t = *p == '{' ? find_text(p + 1) : NULL;

		if (!t) {
			buf_putc(out, *p);
			continue;
		}
		t->print(out);
		p += strlen(t->name) + 1;
	}
}

/* Writes *@text anew, if it names any texts. It then stays until the program ends. */
static int fill_in(const char **text)
{
	AUTO(buf_fini) struct buf out = BUF_EMPTY;

	if (!strchr(*text, '{'))
		return 0;
	option_text_write(*text, &out);
	buf_putc(&out, '\0');
	if (out.failed)
		return -ENOMEM;
	*text = (const char *)buf_take(&out, NULL);
	return 0;
}

int options_fill_in(const struct option_text *all)
{
	int err = 0;

	texts = all;
	for (size_t i = 0; i < OPTION_COUNT && !err; i++) {
		err = fill_in(&table[i].argument);
		if (!err)
			err = fill_in(&table[i].help);
	}
	return err;
}

const struct option_spec *options_table(size_t *count_ret)
{
	*count_ret = OPTION_COUNT;
	return table;
}

const char *option_group_title(enum option_group group)
{
	static const char *const titles[] = {
		[GROUP_SAMPLING] = "Sampling",
		[GROUP_FILTERS] = "Filters",
		[GROUP_OUTPUT] = "Output",
		[GROUP_PRINT] = "Printing",
		[GROUP_ENRICH] = "Pods, containers and services",
		[GROUP_NAMES] = "Names",
		[GROUP_COLLECTOR] = "Collector",
		[GROUP_STORE] = "Store",
		[GROUP_SERVER] = "Server",
		[GROUP_REPORT] = "Report",
		[GROUP_TUNING] = "Tuning",
		[GROUP_GENERAL] = "General",
	};
	_Static_assert(ARRAY_LEN(titles) == GROUP_MAX, "each group has a title");

	return titles[group];
}

bool option_env_name(const struct option_spec *spec, char name[static OPTION_ENV_BYTES])
{
	size_t len = strlen("HEARTH_");

	if (!spec->name[0] || spec->commands & ON_NO_ENV)
		return false;
	memcpy(name, "HEARTH_", len);
	for (const char *p = spec->name; *p && len < OPTION_ENV_BYTES - 1; p++)
		name[len++] = *p == '-' ? '_' : (char)toupper((unsigned char)*p);
	name[len] = '\0';
	return true;
}

/* --- what getopt_long wants to know --- */
struct getopt_tables {
	struct option longs[OPTION_COUNT + 1];
	char shorts[2 + 2 * OPTION_COUNT + 1];
};

static void make_tables(const struct cmd *cmd, struct getopt_tables *t)
{
	size_t long_count = 0;
	char *s = t->shorts;

	memset(t, 0, sizeof(*t));
	if (cmd->ends_at_operand)
		*s++ = '+';
	*s++ = ':'; /* tells a missing value from an unknown option */
	for (size_t i = 0; i < OPTION_COUNT; i++) {
		bool has_value = table[i].kind != OPTION_FLAG;

		if (!(table[i].commands & cmd->bit))
			continue;
		if (table[i].name[0])
			t->longs[long_count++] = (struct option){ .name = table[i].name,
								  .has_arg = has_value ? required_argument : no_argument,
								  .val = LONG_VALUE + (int)i };
		if (table[i].letter) {
			*s++ = table[i].letter;
			if (has_value)
				*s++ = ':';
		}
	}
}

/* The option of @cmd that getopt_long returned as @value; NULL when it is none. */
static const struct option_spec *find_value(const struct cmd *cmd, int value)
{
	if (value >= LONG_VALUE)
		return &table[value - LONG_VALUE];
	for (size_t i = 0; i < OPTION_COUNT; i++) {
		if (value && table[i].letter == value && table[i].commands & cmd->bit)
			return &table[i];
	}
	return NULL;
}

static const char *flag_name(const struct option_spec *spec, char name[static OPTION_ENV_BYTES])
{
	if (spec->name[0])
		snprintf(name, OPTION_ENV_BYTES, "--%s", spec->name);
	else
		snprintf(name, OPTION_ENV_BYTES, "-%c", spec->letter);
	return name;
}

/* --- messages --- */

/* The option is known, but to other @commands. */
static void print_owners(unsigned commands, const struct cmd *cmd, const char *typed, struct buf *error)
{
	const char *separator = "";

	buf_printf(error, "%s is no option of 'hearth %s' but of ", typed, cmd->name);
	for (const struct cmd *const *c = cmd_all(); *c; c++) {
		if (!(commands & (*c)->bit))
			continue;
		buf_printf(error, "%s'hearth %s'", separator, (*c)->name);
		separator = " and ";
	}
}

static void print_unknown(const struct cmd *cmd, const char *typed, struct buf *error)
{
	bool is_long = !strncmp(typed, "--", 2);
	const char *name = typed + (is_long ? 2 : 1);
	struct nearest nearest = nearest_to(name);
	const char *answer = foreign_answer(FOREIGN_OPTION, cmd->bit, typed);
	unsigned owners = 0;

	if (answer) {
		buf_printf(error, "%s: %s", typed, answer);
		return;
	}
	for (size_t i = 0; i < OPTION_COUNT; i++) {
		if (is_long ? !strcmp(table[i].name, name) : table[i].letter == name[0])
			owners |= table[i].commands;
		if (is_long && table[i].name[0] && table[i].commands & cmd->bit)
			nearest_offer(&nearest, table[i].name);
	}
	if (owners) {
		print_owners(owners, cmd, typed, error);
		return;
	}
	buf_printf(error, "unknown option %s", typed);
	if (nearest.best)
		buf_printf(error, "; did you mean --%s?", nearest.best);
	else
		buf_printf(error, "; 'hearth help %s' lists what there is", cmd->name);
}

/* getopt_long returned '?'. */
static void print_refused(const struct cmd *cmd, char **argv, struct buf *error)
{
	char text[OPTION_ENV_BYTES];

	if (optopt >= LONG_VALUE) {
		buf_printf(error, "--%s takes no value", table[optopt - LONG_VALUE].name);
	} else if (optopt) {
		snprintf(text, sizeof(text), "-%c", optopt);
		print_unknown(cmd, text, error);
	} else {
		snprintf(text, sizeof(text), "%.*s", (int)strcspn(argv[optind - 1], "="), argv[optind - 1]);
		print_unknown(cmd, text, error);
	}
}

static int check_operands(const struct cmd *cmd, const struct config *config, struct buf *error)
{
	if (config->operand_count < cmd->min_operands) {
		buf_printf(error, "'hearth %s' needs %s; try 'hearth help %s'", cmd->name, cmd->operands, cmd->name);
		return -EINVAL;
	}
	if (config->operand_count > cmd->max_operands) {
		const char *word = config->operands[cmd->max_operands];

		buf_printf(error, "'hearth %s' does not take '%s'; try 'hearth help %s'", cmd->name, word, cmd->name);
		if (cmd->bit == ON_RUN)
			buf_printf(error, ", or 'hearth record -- %s' to profile a command", word);
		return -EINVAL;
	}
	return 0;
}

/* --- parsing --- */

/* Whether @cmd has an option of this name, which is longer than what may be letters. */
static bool has_long(const struct cmd *cmd, const char *name)
{
	for (size_t i = 0; i < OPTION_COUNT; i++)
		if (table[i].commands & cmd->bit && !strcmp(table[i].name, name))
			return true;
	return false;
}

/* Programs in Go have one dash before a whole word, which getopt would take for letters; those that are known are answered.
 */
static bool is_go_flag(const struct cmd *cmd, const char *word, struct buf *error)
{
	AUTO(buf_fini) struct buf name = BUF_EMPTY;
	const char *answer;

	if (word[0] != '-' || word[1] == '-' || strcspn(word, "=") < LEAST_GO_FLAG)
		return false;
	buf_printf(&name, "-%.*s", (int)strcspn(word, "="), word);
	answer = foreign_answer(FOREIGN_OPTION, cmd->bit, buf_text(&name));
	if (answer)
		buf_printf(error, "%s: %s", buf_text(&name) + 1, answer);
	else if (has_long(cmd, buf_text(&name) + 2))
		buf_printf(error, "%s: hearth has it with two dashes: %s", buf_text(&name) + 1, buf_text(&name));
	else
		return false;
	return true;
}

static int parse_flags(const struct cmd *cmd, int argc, char **argv, bool *is_set, struct config *config, struct buf *error)
{
	char name[OPTION_ENV_BYTES];
	struct getopt_tables tables;
	int value, err = 0;

	make_tables(cmd, &tables);
	for (int i = 1; i < argc && !config->operands_after_dashes; i++)
		if (!strcmp(argv[i], "--")) /* getopt will put all operands together */
			config->operands_after_dashes = (size_t)(argc - i - 1);
	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0 && !cmd->ends_at_operand; i++)
		if (is_go_flag(cmd, argv[i], error))
			return -EINVAL;
	optind = 0; /* glibc: start anew */
	opterr = 0;
	while (!err && (value = getopt_long(argc, argv, tables.shorts, tables.longs, NULL)) != -1) {
		const struct option_spec *spec = find_value(cmd, value == ':' ? optopt : value);

		if (value == '?' || !spec) {
			print_refused(cmd, argv, error);
			return -EINVAL;
		}
		flag_name(spec, name);
		if (value == ':') {
			buf_printf(error, "%s needs a value: %s %s", name, name, spec->argument);
			return -EINVAL;
		}
		err = option_set(spec, optarg, name, config, error);
		is_set[spec - table] = true;
	}
	config->operands = argv + optind;
	config->operand_count = (size_t)(argc - optind);
	return err;
}

/* The file of --config, or the one that is found. For `hearth check` it is what is checked, not what counts. */
static int read_file(const struct cmd *cmd, struct config *config, struct buf *error)
{
	AUTO(buf_fini) struct buf found = BUF_EMPTY;
	const char *alone[2] = { NULL }, *const *sources = (const char *const *)config->configs.items;
	int err;

	if (cmd->bit & (ON_CHECK | ON_HELP | ON_VERSION))
		return 0;
	if (!config->configs.count) {
		err = config_file_find(&found);
		if (err && (err != -ENOENT || !config->config_sets.count))
			return err == -ENOENT ? 0 : err;
		alone[0] = err ? NULL : buf_text(&found);
		sources = alone;
	}
	err = config_file_read(sources, (const char *const *)config->config_sets.items, &config->file, error);
	config->pipelines = config_file_pipelines(err ? NULL : config->file);
	if (!err)
		err = config_file_check_keys(config->file, error);
	return err && err != -ENOMEM && err != -EBADMSG ? -EINVAL : err;
}

/* Sets an option that no flag has set: from the environment, else the file, else the default. */
static int fill_option(const struct cmd *cmd, const struct option_spec *spec, struct config *config, struct buf *error)
{
	int err = environment_set(cmd, spec, config, error);

	if (!err && config->file)
		err = config_file_set(config->file, cmd, spec, config, error);
	if (!err && spec->default_text[0])
		err = option_set(spec, spec->default_text, spec->name, config, error);
	return err < 0 ? err : 0;
}

int options_parse(const struct cmd *cmd, int argc, char **argv, struct config *config, struct buf *error)
{
	bool is_set[OPTION_COUNT] = { false };
	int err;

	*config = (struct config){ .cmd = cmd, .argc = argc, .argv = argv };
	err = parse_flags(cmd, argc, argv, is_set, config, error);
	if (err || config->help)
		return err;
	/* The path of the file must be known before its content. `hearth check` looks at the variable itself. */
	for (size_t i = 0; i < OPTION_COUNT && !config->configs.count && cmd->bit != ON_CHECK; i++)
		if (table[i].offset == offsetof(struct config, configs))
			err = environment_set(cmd, &table[i], config, error);
	if (err >= 0)
		err = read_file(cmd, config, error);
	for (size_t i = 0; i < OPTION_COUNT && err >= 0; i++) {
		if (!is_set[i] && table[i].commands & cmd->bit && table[i].offset != offsetof(struct config, configs))
			err = fill_option(cmd, &table[i], config, error);
	}
	return err < 0 ? err : check_operands(cmd, config, error);
}
