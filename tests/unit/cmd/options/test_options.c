/* SPDX-License-Identifier: Apache-2.0 */
/* Command line and environment into a configuration, or into a message. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "cmd/options/command.h"
#include "cmd/options/options.h"

enum { MAX_WORDS = 16 };

/* A parsed value as text, whatever its kind; lists with '|' between their items. */
static void render(const struct config *config, const char *name, struct buf *out)
{
	size_t count, i;
	const struct option_spec *o = options_table(&count);
	const void *field;

	for (i = 0; i < count && strcmp(o[i].name, name); i++)
		;
	assert_true(i < count);
	field = (const char *)config + o[i].offset;
	switch (o[i].kind) {
	case OPTION_FLAG:
		buf_puts(out, *(const bool *)field ? "yes" : "no");
		break;
	case OPTION_U64:
	case OPTION_FREQ:
	case OPTION_DURATION:
	case OPTION_SIZE:
		buf_printf(out, "%" PRIu64, *(const uint64_t *)field);
		break;
	case OPTION_DOUBLE:
		buf_printf(out, "%g", *(const double *)field);
		break;
	case OPTION_STRING:
	case OPTION_CHOICE:
		buf_puts(out, *(const char *const *)field ? *(const char *const *)field : "(null)");
		break;
	case OPTION_WORDS:
	case OPTION_LIST: {
		const struct string_list *list = field;

		for (size_t k = 0; k < list->count; k++)
			buf_printf(out, "%s%s", k ? "|" : "", list->items[k]);
		assert_true(!list->items || !list->items[list->count]);
		break;
	}
	case OPTION_PIDS: {
		const struct pid_list *pids = field;

		for (size_t k = 0; k < pids->count; k++)
			buf_printf(out, "%s%" PRIu32, k ? "|" : "", pids->items[k]);
		break;
	}
	}
}

struct parse_case {
	const char *line;	  /* command and arguments, a space between them */
	const char *env[4];	  /* NAME=VALUE */
	const char *name, *value; /* this option's value, */
	const char *error;	  /* or: -EINVAL with this message */
};

static const struct parse_case cases[] = {
	/* defaults */
	{ "run", .name = "freq", .value = "20" },
	{ "record", .name = "freq", .value = "20" },
	{ "run", .name = "report-interval", .value = "5000000000" },
	{ "run", .name = "report-jitter", .value = "0.2" },
	{ "run", .name = "drain-timeout", .value = "5000000000" },
	{ "run", .name = "stack-chunks", .value = "64" },
	{ "run", .name = "print", .value = "no" },
	{ "run", .name = "collector", .value = "" },
	{ "serve", .name = "http-address", .value = "127.0.0.1:4318" },
	{ "serve", .name = "max-receive-bytes", .value = "33554432" },
	{ "record", .name = "output", .value = "(null)" },
	{ "report x", .name = "format", .value = "top" },
	/* each kind, in the ways getopt_long knows */
	{ "run -F 99", .name = "freq", .value = "99" },
	{ "run -F99", .name = "freq", .value = "99" },
	{ "run --freq 99", .name = "freq", .value = "99" },
	{ "run --freq=99", .name = "freq", .value = "99" },
	{ "run --fre 99", .name = "freq", .value = "99" },
	{ "run -F 10 -F 11", .name = "freq", .value = "11" },
	{ "run --print", .name = "print", .value = "yes" },
	{ "run --report-jitter 0.5", .name = "report-jitter", .value = "0.5" },
	{ "record -d 5", .name = "duration", .value = "5000000000" },
	{ "record -d 5s", .name = "duration", .value = "5000000000" },
	{ "record -d 250ms", .name = "duration", .value = "250000000" },
	{ "run --ring-bytes 4MiB", .name = "ring-bytes", .value = "4194304" },
	{ "run -p 1", .name = "pid", .value = "1" },
	{ "run -F max", .name = "freq", .value = "0" },
	{ "run -t 5,6", .name = "tid", .value = "5|6" },
	{ "run --comm a,b* --comm c", .name = "comm", .value = "a|b*|c" },
	{ "run --uid root,1000", .name = "uid", .value = "root|1000" },
	{ "run", { "HEARTH_CGROUP=a/b,c" }, .name = "cgroup", .value = "a/b|c" },
	{ "run -c 18446744073709551615", .name = "count", .value = "18446744073709551615" },
	{ "run -p 1,22,333", .name = "pid", .value = "1|22|333" },
	{ "run -p 1 -p 2", .name = "pid", .value = "1|2" },
	{ "run --collector http://a --collector http://b", .name = "collector", .value = "http://a|http://b" },
	{ "run --sink file=/x=y --sink null", .name = "sink", .value = "file=/x=y|null" },
	{ "report --format folded x", .name = "format", .value = "folded" },
	{ "report x --format folded", .name = "format", .value = "folded" },
	/* perf's habits */
	{ "record -a -g -F 99 -o x.otlp -- sleep 1", .name = "output", .value = "x.otlp" },
	{ "record -ag -F99 -p 7", .name = "pid", .value = "7" },
	{ "record -e cycles ls -F 5", .name = "freq", .value = "20" }, /* the rest is the command's */
	{ "record -- ls -F 5", .name = "freq", .value = "20" },
	/* the environment, after flags and before defaults */
	{ "run", { "HEARTH_FREQ=33" }, .name = "freq", .value = "33" },
	{ "run -F 44", { "HEARTH_FREQ=33" }, .name = "freq", .value = "44" },
	{ "run", { "HEARTH_FREQ=" }, .name = "freq", .value = "20" },
	{ "run", { "HEARTH_PRINT=yes" }, .name = "print", .value = "yes" },
	{ "run", { "HEARTH_PRINT=0" }, .name = "print", .value = "no" },
	{ "run", { "HEARTH_REPORT_INTERVAL=2s" }, .name = "report-interval", .value = "2000000000" },
	{ "run", { "HEARTH_COLLECTOR=http://a\nhttp://b\n" }, .name = "collector", .value = "http://a|http://b" },
	{ "run --collector http://c", { "HEARTH_COLLECTOR=http://a\nhttp://b" }, .name = "collector", .value = "http://c" },
	{ "run", { "HEARTH_PID=5,6" }, .name = "pid", .value = "5|6" },
	{ "serve", { "HEARTH_FREQ=nonsense" }, .name = "print", .value = "no" }, /* not serve's */
	{ "run", { "HEARTH_HELP=yes" }, .name = "help", .value = "no" },
	/* OpenTelemetry's */
	{ "run",
	  { "OTEL_EXPORTER_OTLP_ENDPOINT=http://h:4318" },
	  .name = "collector",
	  .value = "http://h:4318/v1development/profiles" },
	{ "run",
	  { "OTEL_EXPORTER_OTLP_ENDPOINT=http://h/a/" },
	  .name = "collector",
	  .value = "http://h/a/v1development/profiles" },
	{ "run",
	  { "OTEL_EXPORTER_OTLP_ENDPOINT=http://h", "OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT=http://p/q" },
	  .name = "collector",
	  .value = "http://p/q" },
	{ "run",
	  { "HEARTH_COLLECTOR=http://mine", "OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT=http://p/q" },
	  .name = "collector",
	  .value = "http://mine" },
	{ "run --collector http://flag",
	  { "OTEL_EXPORTER_OTLP_ENDPOINT=http://h" },
	  .name = "collector",
	  .value = "http://flag" },
	{ "serve", { "OTEL_EXPORTER_OTLP_ENDPOINT=http://h" }, .name = "collector", .value = "" }, /* it could be itself */
	{ "run",
	  { "OTEL_EXPORTER_OTLP_HEADERS=api-key=a%20b, x=1=2,," },
	  .name = "collector-header",
	  .value = "api-key: a b|x: 1=2" },
	{ "run", { "OTEL_EXPORTER_OTLP_TIMEOUT=2500" }, .name = "collector-timeout", .value = "2500000000" },
	{ "run",
	  { "OTEL_EXPORTER_OTLP_TIMEOUT=2500", "OTEL_EXPORTER_OTLP_PROFILES_TIMEOUT=100" },
	  .name = "collector-timeout",
	  .value = "100000000" },
	{ "run", { "OTEL_EXPORTER_OTLP_COMPRESSION=none" }, .name = "collector-compression", .value = "none" },
	{ "run", { "OTEL_EXPORTER_OTLP_CERTIFICATE=/ca.pem" }, .name = "collector-ca", .value = "/ca.pem" },
	{ "run", { "OTEL_EXPORTER_OTLP_TIMEOUT=0" }, .name = "collector-timeout", .value = "0" },
	{ "run", { "OTEL_EXPORTER_OTLP_TIMEOUT=-1" }, .name = "collector-timeout", .value = "10000000000" },
	{ "run",
	  { "OTEL_EXPORTER_OTLP_ENDPOINT=https://h/" },
	  .name = "collector",
	  .value = "https://h/v1development/profiles" },
	{ "run", { "OTEL_EXPORTER_OTLP_ENDPOINT=h:4317" }, .name = "collector", .value = "h:4317" },
	{ "run", { "OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT=http://p:1" }, .name = "collector", .value = "http://p:1/." },
	{ "run", { "OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT=http://p:1/" }, .name = "collector", .value = "http://p:1/." },
	{ "run", { "OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT=p:1" }, .name = "collector", .value = "p:1" },
	{ "run", { "OTEL_EXPORTER_OTLP_PROFILES_HEADERS=a=b" }, .name = "collector-header", .value = "a: b" },
	{ "run", { "OTEL_EXPORTER_OTLP_PROFILES_COMPRESSION=none" }, .name = "collector-compression", .value = "none" },
	{ "run", .name = "collector-protocol", .value = "(null)" },
	{ "run", { "OTEL_EXPORTER_OTLP_PROTOCOL=http/json" }, .name = "collector-protocol", .value = "http/json" },
	{ "serve", .name = "spool-bytes", .value = "536870912" },
	{ "run --spool-age 0", .name = "spool-age", .value = "0" },
	{ "run", { "OTEL_EXPORTER_OTLP_PROTOCOL=grpc" }, .name = "collector-protocol", .value = "grpc" },
	{ "run",
	  { "OTEL_EXPORTER_OTLP_PROTOCOL=grpc", "OTEL_EXPORTER_OTLP_PROFILES_PROTOCOL=http/protobuf" },
	  .name = "collector-protocol",
	  .value = "http/protobuf" },
	{ "run", { "OTEL_EXPORTER_OTLP_INSECURE=TRUE" }, .name = "collector-insecure", .value = "yes" },
	{ "run", { "OTEL_EXPORTER_OTLP_INSECURE=1" }, .name = "collector-insecure", .value = "no" },
	{ "run",
	  { "OTEL_EXPORTER_OTLP_INSECURE=true", "OTEL_EXPORTER_OTLP_PROFILES_INSECURE=false" },
	  .name = "collector-insecure",
	  .value = "no" },
	{ "run", { "OTEL_EXPORTER_OTLP_PROFILES_CERTIFICATE=/ca" }, .name = "collector-ca", .value = "/ca" },
	{ "serve", { "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE=/c" }, .name = "collector-cert", .value = "/c" },
	{ "serve", { "OTEL_EXPORTER_OTLP_PROFILES_CLIENT_KEY=/k" }, .name = "collector-key", .value = "/k" },
	{ "run", { "HEARTH_COLLECTOR_TOKEN_FILE=/t" }, .name = "collector-token-file", .value = "/t" },
	{ "run --collector-proxy http://p:3128", .name = "collector-proxy", .value = "http://p:3128" },
	/* bad values */
	{ "run",
	  { "OTEL_EXPORTER_OTLP_PROTOCOL=http/thrift" },
	  .error = "OTEL_EXPORTER_OTLP_PROTOCOL: 'http/thrift' is none of http/protobuf|http/json|grpc" },
	{ "run",
	  { "OTEL_EXPORTER_OTLP_TIMEOUT=-" },
	  .error = "OTEL_EXPORTER_OTLP_TIMEOUT: '-' is not a number of milliseconds" },
	{ "run --freq abc", .error = "--freq: 'abc' is not a number; give a whole number or max, such as 20" },
	{ "run -F 12x", .error = "--freq: '12x' is not a number; give a whole number or max, such as 20" },
	{ "run -F -5", .error = "--freq: '-5' is not a number; give a whole number or max, such as 20" },
	{ "run -F 0", .error = "--freq: '0' is too small; the least is 1" },
	{ "run -F 10001", .error = "--freq: '10001' is too large; the most is 10000" },
	{ "run -F 99999999999999999999999", .error = "--freq: '99999999999999999999999' is too large; the most is 10000" },
	{ "record -d soon", .error = "--duration: 'soon' is not a time; give one such as 500ms, 2m or 30s" },
	{ "record -d 0", .error = "--duration: '0' is too small; the least is 1ms" },
	{ "run --report-interval 2h", .error = "--report-interval: '2h' is too large; the most is 3600s" },
	{ "run --ring-bytes 12Q", .error = "--ring-bytes: '12Q' is not a size; give one such as 64K, 4MiB or 1M" },
	{ "run --ring-bytes 1", .error = "--ring-bytes: '1' is too small; the least is 4K" },
	{ "run --ring-bytes 2G", .error = "--ring-bytes: '2G' is too large; the most is 1G" },
	{ "run --report-jitter nan", .error = "--report-jitter: 'nan' is not a number; give one such as 0.2" },
	{ "run --report-jitter 1.5", .error = "--report-jitter: '1.5' is too large; the most is 1" },
	{ "run --report-jitter=-1", .error = "--report-jitter: '-1' is too small; the least is 0" },
	{ "run -p 1,,2", .error = "--pid: '' is not a process id; give numbers with commas between them, 123,456" },
	{ "run -p 0", .error = "--pid: '0' is not a process id; give numbers with commas between them, 123,456" },
	{ "run -p 1,99999999999",
	  .error = "--pid: '99999999999' is not a process id; give numbers with commas between them, 123,456" },
	{ "run --comm a,,b", .error = "--comm: 'a,,b' has an empty value; give values with commas between them" },
	{ "run --comm=", .error = "--comm: '' has an empty value; give values with commas between them" },
	{ "run -F maximum", .error = "--freq: 'maximum' is not a number; give a whole number or max, such as 20" },
	{ "run -c 0", .error = "--count: '0' is too small; the least is 1" },
	{ "record --output=", .error = "--output: the value is empty" },
	{ "report x --format yaml",
	  .error = "--format: 'yaml' is none of "
		   "top|tree|folded|lines|processes|threads|timeline|locks|csv|json|truth|modules|print" },
	{ "report x --format to", .error = "--format: there is no 'to'; did you mean top?" },
	{ "report x --format xyzzy",
	  .error = "--format: 'xyzzy' is none of "
		   "top|tree|folded|lines|processes|threads|timeline|locks|csv|json|truth|modules|print" },
	{ "record --format pprov x", .error = "--format: there is no 'pprov'; did you mean pprof?" },
	{ "run -F 99Hzz", .error = "--freq: '99Hzz' is not a number; give a whole number or max, such as 20" },
	{ "run",
	  { "HEARTH_FREQ=abc" },
	  .error = "HEARTH_FREQ: 'abc' is not a number; give a whole number or max, such as 20" },
	{ "run", { "HEARTH_PRINT=maybe" }, .error = "HEARTH_PRINT: 'maybe' is neither yes nor no" },
	{ "run",
	  { "OTEL_EXPORTER_OTLP_TIMEOUT=5s" },
	  .error = "OTEL_EXPORTER_OTLP_TIMEOUT: '5s' is not a number of milliseconds" },
	{ "run", { "OTEL_EXPORTER_OTLP_HEADERS=a" }, .error = "OTEL_EXPORTER_OTLP_HEADERS: 'a' is not NAME=VALUE,..." },
	{ "run",
	  { "OTEL_EXPORTER_OTLP_HEADERS=a=b%0d%0ac" },
	  .error = "OTEL_EXPORTER_OTLP_HEADERS: 'a=b%0d%0ac' is not NAME=VALUE,..." },
	{ "run",
	  { "OTEL_EXPORTER_OTLP_COMPRESSION=lzma" },
	  .error = "OTEL_EXPORTER_OTLP_COMPRESSION: 'lzma' is none of gzip|zstd|none" },
	/* wrong usage */
	{ "run --frq 9", .error = "unknown option --frq; did you mean --freq?" },
	{ "run --frq=9", .error = "unknown option --frq; did you mean --freq?" },
	{ "run --rep 9", .error = "unknown option --rep; did you mean --report-interval?" }, /* could be two */
	{ "run --xyzzy", .error = "unknown option --xyzzy; 'hearth help run' lists what there is" },
	{ "run -Z", .error = "unknown option -Z; 'hearth help run' lists what there is" },
	{ "run -F", .error = "--freq needs a value: --freq HZ" },
	{ "run --sink", .error = "--sink needs a value: --sink NAME[=VALUE]" },
	{ "run --print=yes", .error = "--print takes no value" },
	{ "run --output x", .error = "--output is no option of 'hearth run' but of 'hearth record' and 'hearth diff'" },
	{ "record --print",
	  .error = "--print is no option of 'hearth record' but of 'hearth run' and 'hearth serve' and 'hearth check'" },
	{ "report -F 9",
	  .error = "-F is no option of 'hearth report' but of 'hearth run' and 'hearth top' and 'hearth record'" },
	{ "report", .error = "'hearth report' needs FILE...; try 'hearth help report'" },
	{ "serve x", .error = "'hearth serve' does not take 'x'; try 'hearth help serve'" },
	{ "run make", .error = "'hearth run' does not take 'make'; try 'hearth help run', or 'hearth record -- make' to "
			       "profile a command" },
};

/* A command line in words; the configuration borrows from it. */
struct words {
	char text[256];
	char *argv[MAX_WORDS + 1];
};

static int parse(const char *line, struct words *words, struct config *config, struct buf *error)
{
	char *rest = strcpy(words->text, line);
	const struct cmd *cmd;
	int argc = 0;

	while (rest && argc < MAX_WORDS)
		words->argv[argc++] = strsep(&rest, " ");
	words->argv[argc] = NULL;
	cmd = cmd_find(words->argv[0]);
	assert_non_null(cmd);
	return options_parse(cmd, argc, words->argv, config, error);
}

static void check_case(const struct parse_case *c)
{
	AUTO(buf_fini) struct buf error = BUF_EMPTY, value = BUF_EMPTY;
	AUTO(config_fini) struct config config;
	struct words words;
	int err;

	clearenv();
	for (size_t i = 0; i < ARRAY_LEN(c->env) && c->env[i]; i++)
		assert_int_equal(putenv((char *)(uintptr_t)c->env[i]), 0);
	err = parse(c->line, &words, &config, &error);
	if (c->error) {
		if (err != -EINVAL || strcmp(buf_text(&error), c->error))
			fail_msg("'%s' %s: %d \"%s\"", c->line, c->env[0] ? c->env[0] : "", err, buf_text(&error));
		return;
	}
	if (err)
		fail_msg("'%s' %s: refused: %s", c->line, c->env[0] ? c->env[0] : "", buf_text(&error));
	render(&config, c->name, &value);
	if (strcmp(buf_text(&value), c->value))
		fail_msg("'%s' %s: %s is '%s', not '%s'", c->line, c->env[0] ? c->env[0] : "", c->name, buf_text(&value),
			 c->value);
}

static void test_cases(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		check_case(&cases[i]);
}

static void test_operands(void **state)
{
	static const struct {
		const char *line;
		size_t count;
		const char *first;
	} lines[] = {
		{ "record -F 99 -- make -j2", 2, "make" },
		{ "record make -j2", 2, "make" },
		{ "record -F 99", 0, NULL },
		{ "report --format tree x", 1, "x" },
		{ "report -- -x", 1, "-x" },
		{ "report -", 1, "-" },
		{ "help run", 1, "run" },
	};

	(void)state;
	clearenv();
	for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
		AUTO(buf_fini) struct buf error = BUF_EMPTY;
		AUTO(config_fini) struct config config;
		struct words words;

		assert_int_equal(parse(lines[i].line, &words, &config, &error), 0);
		assert_int_equal(config.operand_count, lines[i].count);
		if (lines[i].first)
			assert_string_equal(config.operands[0], lines[i].first);
		assert_null(config.operands[config.operand_count]);
	}
}

/* Every option: a name or a letter of its own in each command, a default that its own parser takes, a help text. */
static void test_table(void **state)
{
	size_t count;
	const struct option_spec *o = options_table(&count);

	(void)state;
	for (size_t i = 0; i < count; i++) {
		AUTO(buf_fini) struct buf error = BUF_EMPTY;
		AUTO(config_fini) struct config config = { 0 };

		assert_true(o[i].name[0] || o[i].letter);
		assert_true(o[i].help[0]);
		for (const char *at = o[i].help; (at = strchr(at, '{')); at++) /* filled in, but for what users write */
			assert_true(at > o[i].help && at[-1] == '$');
		assert_null(strchr(o[i].argument, '{'));
		assert_true((o[i].kind == OPTION_FLAG) == !o[i].argument[0]);
		if (o[i].default_text[0])
			assert_int_equal(option_set(&o[i], o[i].default_text, "default", &config, &error), 0);
		for (size_t k = 0; k < i; k++) {
			bool are_together = o[i].commands & o[k].commands & ON_ALL;

			assert_true(!o[i].name[0] || !are_together || strcmp(o[i].name, o[k].name));
			assert_true(!o[i].letter || !are_together || o[i].letter != o[k].letter);
		}
	}
}

static void test_env_name(void **state)
{
	char name[OPTION_ENV_BYTES];
	struct option_spec spec = { .name = "report-interval", .commands = ON_RUN };

	(void)state;
	assert_true(option_env_name(&spec, name));
	assert_string_equal(name, "HEARTH_REPORT_INTERVAL");
	spec.commands |= ON_NO_ENV;
	assert_false(option_env_name(&spec, name));
	spec = (struct option_spec){ .name = "", .letter = 'g', .commands = ON_RUN };
	assert_false(option_env_name(&spec, name));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cases),
		cmocka_unit_test(test_operands),
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_env_name),
	};

	cmd_list(all_commands);
	if (options_fill_in(all_option_texts))
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
