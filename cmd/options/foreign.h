/* SPDX-License-Identifier: Apache-2.0 */
/* Words of perf, py-spy, async-profiler, samply and others that hearth does not have, each with hearth's equivalent. */
#ifndef HEARTH_CMD_OPTIONS_FOREIGN_H
#define HEARTH_CMD_OPTIONS_FOREIGN_H

#include <stddef.h>

enum foreign_kind { FOREIGN_COMMAND, FOREIGN_OPTION, FOREIGN_FORMAT };

struct foreign {
	enum foreign_kind kind;
	unsigned commands;  /* enum on_command: of an option or a format, where it is answered so; 0 of commands */
	const char *words;  /* with spaces between them, and with their dashes */
	const char *answer; /* what to do, as one sentence without its end; command lines stand in single quotes */
};

/* The answer to @word as a @kind for any of @commands; NULL when it is not known. Static. */
const char *foreign_answer(enum foreign_kind kind, unsigned commands, const char *word);

/* All of them, for tests. */
const struct foreign *foreign_table(size_t *count_ret);

#endif
