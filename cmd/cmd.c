/* SPDX-License-Identifier: Apache-2.0 */
/* The list of commands. A new one gets its line here, its bit in cmd/options/command.h, and a file of its own. And the texts
 * in help that other tables make. */
#include "agent/runtime/choice.h"
#include "cmd/options/command.h"
#include "cmd/options/options.h"
#include "cmd/setup/sinks_of.h"
#include "proto/formats/formats.h"

const struct cmd *const all_commands[] = {
	&cmd_run,   &cmd_top,	&cmd_record, &cmd_report, &cmd_diff,	&cmd_view, &cmd_convert, &cmd_symbols,
	&cmd_store, &cmd_serve, &cmd_check,  &cmd_bench,  &cmd_version, &cmd_help, NULL,
};

const struct option_text all_option_texts[] = {
	{ "sinks", sinks_print_help },	      { "runtimes", runtime_words_print }, { "formats", format_list_names },
	{ "suffixes", format_list_suffixes }, { "readers", format_list_readers },  { NULL, NULL },
};
