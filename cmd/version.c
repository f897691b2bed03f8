/* SPDX-License-Identifier: Apache-2.0 */
/* `hearth version`: prints the version. */
#include "base/buf.h"
#include "base/cleanup.h"
#include "cmd/options/command.h"
#include "cmd/files/output.h"

static int run_version(const struct config *config)
{
	AUTO(buf_fini) struct buf text = BUF_EMPTY;

	(void)config;
	buf_puts(&text, "hearth " HEARTH_VERSION "\n");
	return output_write(&text);
}

const struct cmd cmd_version = {
	.name = "version",
	.bit = ON_VERSION,
	.summary = "print the version",
	.operands = "",
	.description = "Prints the version.",
	.run = run_version,
};
