/* SPDX-License-Identifier: Apache-2.0 */
/* A command line of any words: a byte says which command's, each further word ends with a zero. Whatever is refused is said,
 * and what is taken is freed. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "cmd/options/command.h"
#include "cmd/options/config.h"
#include "cmd/options/options.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { WORDS = 32 };

static const struct cmd
	run = { .name = "run", .bit = ON_RUN },
	record = { .name = "record", .bit = ON_RECORD, .operands = "[-- COMMAND]", .max_operands = WORDS },
	report = { .name = "report", .bit = ON_REPORT, .operands = "FILE...", .min_operands = 1, .max_operands = 4 },
	diff = { .name = "diff", .bit = ON_DIFF, .operands = "A B", .min_operands = 2, .max_operands = WORDS },
	serve = { .name = "serve", .bit = ON_SERVE };
static const struct cmd *const all[] = { &run, &record, &report, &diff, &serve, NULL };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO(config_fini) struct config config = { 0 };
	AUTO(buf_fini) struct buf error = BUF_EMPTY;
	AUTO_FREE char *text = calloc(1, size + 1);
	const struct cmd *cmd = all[size ? data[0] % (ARRAY_LEN(all) - 1) : 0];
	char *argv[WORDS + 1] = { NULL };
	int argc = 0, err;

	if (!text)
		abort();
	cmd_list(all);
	if (size > 1)
		memcpy(text, data + 1, size - 1);
	argv[argc++] = (char *)(uintptr_t)cmd->name;
	for (size_t at = 0; at + 1 < size && argc < WORDS; at += strlen(text + at) + 1)
		argv[argc++] = text + at;
	err = options_parse(cmd, argc, argv, &config, &error);
	if (err && !error.len)
		abort();
	return 0;
}
