/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration file: any bytes, checked, and set for every option of every command. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "cmd/options/command.h"
#include "cmd/options/config.h"
#include "cmd/options/config_file.h"
#include "cmd/options/options.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Two commands with options of every kind; the others would bring the whole program along. */
static const struct cmd run = { .name = "run", .bit = ON_RUN }, record = { .name = "record", .bit = ON_RECORD };
static const struct cmd *const all[] = { &run, &record, NULL };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO(buf_fini) struct buf error = BUF_EMPTY, out = BUF_EMPTY;
	struct config_file *file = NULL;
	size_t count;
	const struct option_spec *specs = options_table(&count);

	cmd_list(all);
	if (config_file_parse("c", data, size, &file, &error)) {
		if (!error.len || file)
			abort();
		return 0;
	}
	if (config_file_check(file, &out) > 0 && !out.len)
		abort();
	for (size_t k = 0; all[k]; k++) {
		AUTO(config_fini) struct config config = { 0 };

		for (size_t i = 0; i < count; i++)
			if (specs[i].commands & all[k]->bit)
				(void)config_file_set(file, all[k], &specs[i], &config, &error);
	}
	config_file_free(file);
	return 0;
}
