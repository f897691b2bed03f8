/* SPDX-License-Identifier: Apache-2.0 */
/* The entry: finds the command, reads its options, runs it. Without a command's name it is `hearth run`. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/text/nearest.h"
#include "cmd/options/command.h"
#include "cmd/options/config.h"
#include "cmd/options/foreign.h"
#include "cmd/help/help.h"
#include "cmd/options/effective.h"
#include "cmd/options/hide.h"
#include "cmd/options/options.h"
#include "cmd/options/seed_flags.h"
#include "cmd/pipeline/pipelines.h"
#include "symbols/demangle.h"

/* The command of @argv[1]; moves *argc and *argv on so that their first word is the command's. NULL when there is none so
 * named. */
static const struct cmd *choose_command(int *argc, char ***argv)
{
	const char *word = *argc > 1 ? (*argv)[1] : NULL;
	const struct cmd *cmd;

	if (!word || (word[0] == '-' && strcmp(word, "--version") && strcmp(word, "--help") && strcmp(word, "-h")))
		return &cmd_run;
	if (word[0] == '-')
		cmd = !strcmp(word, "--version") ? &cmd_version : &cmd_help;
	else
		cmd = cmd_find(word);
	(*argc)--;
	(*argv)++;
	return cmd;
}

static int refuse_command(const char *word)
{
	const char *answer = foreign_answer(FOREIGN_COMMAND, 0, word);
	struct nearest nearest = nearest_to(word);

	for (const struct cmd *const *c = cmd_all(); *c; c++)
		nearest_offer(&nearest, (*c)->name);
	if (answer)
		log_error("there is no 'hearth %s': %s", word, answer);
	else if (nearest.best)
		log_error("unknown command '%s'; did you mean 'hearth %s'?", word, nearest.best);
	else if (!access(word, X_OK))
		log_error("unknown command '%s'; 'hearth record -- %s' profiles it", word, word);
	else if (!access(word, R_OK))
		log_error("unknown command '%s'; 'hearth report %s' reads it", word, word);
	else
		log_error("unknown command '%s'; 'hearth help' lists what there is", word);
	return STATUS_USAGE;
}

/* Only the commands that name things have the options. */
static void set_demangling(const struct config *config)
{
	if (!config->demangle)
		return;
	symbols_set_demangling(!strcmp(config->demangle, "full")   ? DEMANGLE_FULL
			       : !strcmp(config->demangle, "none") ? DEMANGLE_NONE
								   : DEMANGLE_SHORT,
			       config->keep_hash);
}

static int run_command(const struct cmd *cmd, const struct config *config)
{
	if (config->help)
		return help_print(cmd);
	if (config->log_format)
		log_set_format(!strcmp(config->log_format, "json")     ? LOG_AS_JSON
			       : !strcmp(config->log_format, "logfmt") ? LOG_AS_LOGFMT
								       : LOG_AS_TEXT);
	if (config->verbose)
		log_set_level(LOG_DEBUG);
	else if (config->quiet)
		log_set_level(LOG_WARN);
	if (config->verbose && cmd->bit & (ON_RUN | ON_SERVE))
		effective_log(config);
	set_demangling(config);
	if (config->feature_gates.count)
		log_info("--feature-gates has no effect: profiles need no gate in hearth");
	return cmd->run(config);
}

/* A file whose pipelines receive, and sample nothing, is the backend's, whatever it was given to. */
static int go_on_as_serve(int argc, char **argv, struct config *config, const struct cmd **cmd, struct buf *error)
{
	config_fini(config);
	*cmd = &cmd_serve;
	return options_parse(*cmd, argc, argv, config, error);
}

int main(int argc, char **argv)
{
	AUTO(buf_fini) struct buf error = BUF_EMPTY;
	AUTO(seed_flags_fini) struct seed_flags seed = { 0 }; /* config borrows its strings */
	AUTO(config_fini) struct config config = { 0 };
	const struct cmd *cmd;
	int err;

	cmd_list(all_commands);
	err = options_fill_in(all_option_texts);
	cmd = choose_command(&argc, &argv);
	signal(SIGPIPE, SIG_IGN); /* a reader that went away is an error of that write, not the end of us */
	if (!cmd)
		return refuse_command(argv[0]);
	hide_passwords(argc, argv);
	if (!err && cmd == &cmd_serve)
		err = seed_flags_rewrite(argc, argv, &seed, &error);
	if (!err && seed.argv)
		log_warn("these are the lazy backend's flags: listening where it did, on all addresses unless said "
			 "otherwise");
	if (!err)
		err = options_parse(cmd, seed.argv ? seed.argc : argc, seed.argv ? seed.argv : argv, &config, &error);
	if (!err && cmd == &cmd_run && config.pipelines && pipelines_have_source(config.pipelines, SOURCE_OTLP) &&
	    !pipelines_have_source(config.pipelines, SOURCE_AGENT))
		err = go_on_as_serve(argc, argv, &config, &cmd, &error);
	if (err == -EINVAL || err == -EBADMSG) {
		log_error("%s", buf_text(&error));
		return err == -EINVAL ? STATUS_USAGE : STATUS_FAILED; /* pipelines: as the Collector ends */
	}
	if (err) {
		log_error("cannot read the options: %s", strerror(-err));
		return STATUS_FAILED;
	}
	return run_command(cmd, &config);
}
