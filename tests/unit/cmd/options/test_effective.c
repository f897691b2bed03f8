/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration that counts: every kind of value, from wherever it is, and nothing that is secret. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "cmd/options/command.h"
#include "cmd/options/effective.h"
#include "cmd/options/options.h"

static bool has_line(struct buf *text, const char *line)
{
	const char *at = strstr(buf_text(text), line);

	return at && (at == buf_text(text) || at[-1] == '\n') && at[strlen(line)] == '\n';
}

static void test_values(void **state)
{
	char words[][64] = { "run",
			     "--freq=99",
			     "--report-interval=1500ms",
			     "--pid=12,34",
			     "--collector=http://u:secret@h:4318",
			     "--collector-header=Authorization: Bearer hidden",
			     "--enrich=pods",
			     "--off-cpu",
			     "--max-export-bytes=2M" };
	static const char *const lines[] = { "freq: 99",
					     "report-interval: 1.5s",
					     "pid: [12, 34]",
					     "collector: [http://u:xxxxxx@h:4318]",
					     "collector-header: [Authorization]",
					     "enrich: [pods]",
					     "off-cpu: true",
					     "max-export-bytes: 2097152",
					     "drain-timeout: 7s" };
	char *argv[sizeof(words) / sizeof(*words) + 1] = { NULL };
	AUTO(buf_fini) struct buf error = BUF_EMPTY, text = BUF_EMPTY;
	AUTO(config_fini) struct config config = { 0 };
	int count = 0;

	(void)state;
	for (; count < (int)(sizeof(words) / sizeof(*words)); count++)
		argv[count] = words[count];
	setenv("HEARTH_DRAIN_TIMEOUT", "7s", 1);
	if (options_parse(cmd_find("run"), count, argv, &config, &error))
		fail_msg("%s", buf_text(&error));
	unsetenv("HEARTH_DRAIN_TIMEOUT");
	effective_write(&config, &text);
	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++)
		if (!has_line(&text, lines[i]))
			fail_msg("no '%s' in %s", lines[i], buf_text(&text));
	assert_null(strstr(buf_text(&text), "secret"));
	assert_null(strstr(buf_text(&text), "hidden"));
	assert_null(strstr(buf_text(&text), "wakers")); /* nobody asks for it */
}

int main(void)
{
	static const struct CMUnitTest tests[] = { cmocka_unit_test(test_values) };

	cmd_list(all_commands);
	if (options_fill_in(all_option_texts))
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
