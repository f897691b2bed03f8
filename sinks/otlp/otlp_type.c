/* SPDX-License-Identifier: Apache-2.0 */
/* The exporter as a type of sink: one for each collector, and in words why one cannot be made. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "sinks/sink_type.h"

static int make_otlp(const struct sink_settings *settings, const char *value, struct sink **ret, struct buf *error)
{
	struct otlp_sink_config config = settings->otlp;

	(void)error;
	config.url = value;
	return sink_otlp_new(&config, settings->metrics, ret);
}

/* Finds which of the collector's files or folders cannot be used, by its option; false when all can. */
static bool explain_files(const struct otlp_sink_config *config, int err, struct buf *error)
{
	const struct {
		const char *option, *file;
	} files[] = {
		{ "--collector-ca", config->ca_file },
		{ "--collector-cert", config->cert_file },
		{ "--collector-key", config->key_file },
		{ "--collector-token-file", config->token_file },
	};
	struct stat st;

	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		if (files[i].file && access(files[i].file, R_OK)) {
			buf_printf(error, "%s: cannot read %s: %s", files[i].option, files[i].file, strerror(errno));
			return true;
		}
	}
	if (!config->spool_dir ||
	    (!stat(config->spool_dir, &st) && S_ISDIR(st.st_mode) && !access(config->spool_dir, R_OK | W_OK | X_OK)))
		return false;
	buf_printf(error, "--spool: cannot keep files in %s: %s", config->spool_dir, strerror(-err));
	return true;
}

/* The address, headers or files are at fault; all but the last is wrong usage. */
static int explain_otlp(const struct sink_settings *settings, const char *value, int err, struct buf *error)
{
	const struct otlp_sink_config *config = &settings->otlp;

	if (err == -EINVAL || err == -EPROTONOSUPPORT)
		buf_printf(error,
			   "--collector: '%s' is no collector's address; give one such as http://127.0.0.1:4318 or "
			   "grpc://127.0.0.1:4317",
			   value);
	else if (err == -EBADMSG)
		buf_puts(error, "--collector-header: not every header is 'NAME: VALUE'");
	else if (err == -ENODATA)
		buf_printf(error, "--collector-token-file: %s does not hold a token: one word on one line",
			   config->token_file);
	else if (err == -EBUSY)
		buf_printf(error, "--spool: another process uses %s for %s", config->spool_dir, value);
	else if (!explain_files(config, err, error))
		buf_printf(error, "cannot send to %s: %s", value, strerror(-err));
	return err == -EPROTONOSUPPORT || err == -EBADMSG ? -EINVAL : err;
}

const struct sink_type sink_type_otlp = {
	.name = "otlp",
	.value = "URL",
	.is_sender = true,
	.make = make_otlp,
	.explain = explain_otlp,
};
