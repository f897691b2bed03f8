/* SPDX-License-Identifier: Apache-2.0 */
/* In words why no exporter can be made, by the option that is wrong; and which errors are the user's own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/metrics.h"
#include "sinks/sink_type.h"
#include "tests/unit/descriptors.h"

extern const struct sink_type sink_type_otlp;

#define URL "http://127.0.0.1:9"

static char folder[64], file[96];

static int setup(void **state)
{
	FILE *f;

	(void)state;
	strcpy(folder, "/tmp/hearth-otlp-XXXXXX");
	if (!mkdtemp(folder))
		return -1;
	snprintf(file, sizeof(file), "%s/file", folder);
	f = fopen(file, "w");
	return !f || fclose(f);
}

static int teardown(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	return system(command);
}

/* For an exporter that failed with @err the text is this, and the error is @told. */
static void explains(const struct otlp_sink_config *config, int err, int told, const char *text)
{
	const struct sink_settings settings = { .otlp = *config };
	AUTO(buf_fini) struct buf error = BUF_EMPTY;

	assert_int_equal(sink_type_otlp.explain(&settings, URL, err, &error), told);
	assert_string_equal(buf_text(&error), text);
}

static void test_addresses(void **state)
{
	static const char text[] = "--collector: '" URL
				   "' is no collector's address; give one such as http://127.0.0.1:4318 or "
				   "grpc://127.0.0.1:4317";
	const struct otlp_sink_config config = { .token_file = "/no/such/file" };

	(void)state;
	explains(&config, -EINVAL, -EINVAL, text);
	explains(&config, -EPROTONOSUPPORT, -EINVAL, text);
}

static void test_headers(void **state)
{
	const struct otlp_sink_config config = { .token_file = NULL };

	(void)state;
	explains(&config, -EBADMSG, -EINVAL, "--collector-header: not every header is 'NAME: VALUE'");
}

static void test_token(void **state)
{
	const struct otlp_sink_config config = { .token_file = file };
	char text[256];

	(void)state;
	snprintf(text, sizeof(text), "--collector-token-file: %s does not hold a token: one word on one line", file);
	explains(&config, -ENODATA, -ENODATA, text);
}

static void test_spool_of_another(void **state)
{
	const struct otlp_sink_config config = { .spool_dir = "/spool" };

	(void)state;
	explains(&config, -EBUSY, -EBUSY, "--spool: another process uses /spool for " URL);
}

/* The first file that cannot be read is named, by its option. */
static void test_files(void **state)
{
	struct otlp_sink_config config = { .ca_file = file, .cert_file = file, .key_file = file, .token_file = "/no/token" };

	(void)state;
	explains(&config, -ENOENT, -ENOENT, "--collector-token-file: cannot read /no/token: No such file or directory");
	config.key_file = "/no/key";
	explains(&config, -ENOENT, -ENOENT, "--collector-key: cannot read /no/key: No such file or directory");
	config.cert_file = "/no/cert";
	explains(&config, -EIO, -EIO, "--collector-cert: cannot read /no/cert: No such file or directory");
	config.ca_file = "/no/ca";
	explains(&config, -EACCES, -EACCES, "--collector-ca: cannot read /no/ca: No such file or directory");
}

static void test_spool(void **state)
{
	struct otlp_sink_config config = { .spool_dir = file };
	char text[256];

	(void)state;
	snprintf(text, sizeof(text), "--spool: cannot keep files in %s: Not a directory", file);
	explains(&config, -ENOTDIR, -ENOTDIR, text);
	config.spool_dir = "/no/such/folder";
	explains(&config, -ENOSPC, -ENOSPC, "--spool: cannot keep files in /no/such/folder: No space left on device");
	config.spool_dir = folder; /* which is as it should be */
	explains(&config, -ENOMEM, -ENOMEM, "cannot send to " URL ": Cannot allocate memory");
}

static void test_nothing_known(void **state)
{
	const struct otlp_sink_config config = { .ca_file = file };

	(void)state;
	explains(&config, -ENOMEM, -ENOMEM, "cannot send to " URL ": Cannot allocate memory");
}

/* The address is the sink's value. */
static void test_made(void **state)
{
	struct sink_settings settings = { .metrics = metrics_new(), .otlp = { .url = "nonsense://" } };
	AUTO(buf_fini) struct buf error = BUF_EMPTY;
	struct sink *sink = NULL;

	(void)state;
	assert_int_equal(sink_type_otlp.make(&settings, URL, &sink, &error), 0);
	assert_non_null(sink);
	sink_free(sink);
	assert_true(sink_type_otlp.make(&settings, "ftp://x", &sink, &error) < 0);
	assert_int_equal(error.len, 0);
	assert_true(sink_type_otlp.is_sender);
	assert_false(sink_type_otlp.is_store);
	metrics_free(settings.metrics);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_addresses),	 cmocka_unit_test(test_headers), cmocka_unit_test(test_token),
		cmocka_unit_test(test_spool_of_another), cmocka_unit_test(test_files),	 cmocka_unit_test(test_spool),
		cmocka_unit_test(test_nothing_known),	 cmocka_unit_test(test_made),
	};

	return run_group_of_descriptors(tests, setup, teardown);
}
