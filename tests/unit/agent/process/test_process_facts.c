/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes: of OpenTelemetry's variables, of a process's environment and control group, of the machine. */
#include <errno.h>
#include <ftw.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/proc/proc_root.h"
#include "agent/report/host_facts.h"
#include "agent/process/enrich.h"
#include "agent/process/process_facts.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/metrics.h"
#include "tests/unit/descriptors.h"

/* The list as "key=value;" in the order of keys. */
static int compare_keys(const void *x, const void *y)
{
	const struct key_value *a = x, *b = y;

	return strcmp(a->key.data, b->key.data);
}

static const char *text_of(struct attributes *a)
{
	static struct buf text;

	buf_reset(&text);
	if (a->count)
		qsort(a->items, a->count, sizeof(*a->items), compare_keys);
	for (uint32_t i = 0; i < a->count; i++)
		buf_printf(&text, "%s=%s;", a->items[i].key.data, a->items[i].value.string.data);
	attributes_fini(a);
	return buf_text(&text);
}

/* In a block of its own, so that reading past its end is seen by the sanitizers. */
static int parse(const char *text, struct attributes *a)
{
	size_t len = strlen(text);
	AUTO_FREE char *copy = malloc(len ? len : 1);

	assert_non_null(copy);
	memcpy(copy, text, len);
	return attributes_parse(a, (struct str){ copy, (uint32_t)len });
}

static void test_resource_attributes(void **state)
{
	static const struct {
		const char *text, *attributes; /* NULL: refused */
	} cases[] = {
		{ "", "" },
		{ "a=1", "a=1;" },
		{ "a=1,b=2", "a=1;b=2;" },
		{ " a = 1 ,\tb=2,", "a=1;b=2;" },
		{ ",,a=1,,", "a=1;" },
		{ "a=", "a=;" },
		{ "a=x%20y%2Cz%3d%e2%82%ac", "a=x y,z=\xe2\x82\xac;" },
		{ "k%2ey=1", "k.y=1;" },
		{ "a=b=c", "a=b=c;" },
		{ "a=1,a=2", "a=2;" },
		{ "a", NULL },
		{ "a=1,b", NULL },
		{ "=1", NULL },
		{ " =1", NULL },
		{ "a=%", NULL },
		{ "a=%2", NULL },
		{ "a=%g0", NULL },
		{ "a=%ff", NULL },
		{ "%ff=1", NULL },
		{ "b=2,a=%zz", NULL },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct attributes a = ATTRIBUTES_EMPTY;
		int error = parse(cases[i].text, &a);
		const char *text = text_of(&a);

		if (error != (cases[i].attributes ? 0 : -EINVAL) ||
		    strcmp(text, cases[i].attributes ? cases[i].attributes : "") != 0)
			fail_msg("'%s': %d, '%s'", cases[i].text, error, text);
	}
}

/* What is refused leaves what was there; what is there stays. */
static void test_lists(void **state)
{
	struct attributes a = ATTRIBUTES_EMPTY;
	char key[ATTRIBUTE_KEY_BYTES + 2], value[2 * ATTRIBUTE_VALUE_BYTES];

	(void)state;
	assert_int_equal(attributes_add(&a, STR("a"), STR("1")), 0);
	assert_int_equal(parse("a=2,b=2", &a), 0);
	assert_int_equal(parse("c=3,%", &a), -EINVAL);
	assert_int_equal(attributes_add(&a, STR("bad\xff"), STR("1")), 0);
	assert_int_equal(attributes_add(&a, STR(""), STR("1")), 0);
	assert_int_equal(attributes_add(&a, STR("d"), STR("x\xff")), 0);
	assert_string_equal(text_of(&a), "a=1;b=2;d=x\xef\xbf\xbd;");

	memset(key, 'k', sizeof(key) - 1);
	key[sizeof(key) - 1] = '\0';
	assert_int_equal(attributes_add(&a, str_z(key), STR("too long")), 0);
	memset(value, '\xe2', sizeof(value)); /* each becomes three bytes */
	assert_int_equal(attributes_add(&a, STR("v"), (struct str){ value, sizeof(value) }), 0);
	assert_int_equal(a.count, 1);
	assert_int_equal(a.items[0].value.string.len, ATTRIBUTE_VALUE_BYTES / 3 * 3);
	for (int i = 0; i < 2 * ATTRIBUTES_MAX; i++) {
		snprintf(key, sizeof(key), "k%d", i);
		assert_int_equal(attributes_add(&a, str_z(key), STR("")), 0);
	}
	assert_int_equal(a.count, ATTRIBUTES_MAX);
	attributes_fini(&a);
}

#define ENV(text) text, sizeof(text) /* with the last NUL */

static void test_environments(void **state)
{
	static const char *const variables[] = { "COLOR", "EMPTY", "OTEL_SERVICE_NAME" };
	static const struct enrich_options options = { variables, ARRAY_LEN(variables) }, none;
	static const struct {
		const char *text;
		size_t len;
		const char *attributes;
	} cases[] = {
		{ ENV("PATH=/bin\0OTEL_SERVICE_NAME=shop\0COLOR=blue"),
		  "process.environment_variable.COLOR=blue;process.environment_variable.OTEL_SERVICE_NAME=shop;service.name="
		  "shop;" },
		{ ENV("OTEL_RESOURCE_ATTRIBUTES=service.name=a,service.version=2\0OTEL_SERVICE_NAME="),
		  "service.name=a;service.version=2;" },
		{ ENV("XCOLOR=1\0COLORX=2\0COLOR\0=COLOR=3\0EMPTY="), "" },
		{ ENV("COLOR=first\0COLOR=second"), "process.environment_variable.COLOR=first;" },
		{ ENV("OTEL_RESOURCE_ATTRIBUTES=broken\0COLOR=blue"), "process.environment_variable.COLOR=blue;" },
		{ ENV("postgres: writer process   \0\0\0\0"), "" },
		{ "COLOR=cut", 9, "process.environment_variable.COLOR=cut;" },
		{ "", 0, "" },
	};
	struct attributes a = ATTRIBUTES_EMPTY;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO_FREE char *copy = malloc(cases[i].len ? cases[i].len : 1);

		assert_non_null(copy);
		memcpy(copy, cases[i].text, cases[i].len);
		assert_int_equal(enrich_environment.add(&options, copy, cases[i].len, &a), 0);
		assert_string_equal(text_of(&a), cases[i].attributes);
	}
	assert_int_equal(
		enrich_environment.add(&none, ENV("OTEL_SERVICE_NAME=b\0OTEL_RESOURCE_ATTRIBUTES=service.name=a"), &a), 0);
	assert_string_equal(text_of(&a), "service.name=b;");
}

/* The kernel's word counts before the program's; what is in no container has no id. */
static void test_container(void **state)
{
#define CONTAINER "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	static const char group[] = "0::/system.slice/docker-" CONTAINER ".scope\n", none[] = "0::/user.slice\n";
	static const struct enrich_options options;
	struct attributes a = ATTRIBUTES_EMPTY;

	(void)state;
	assert_true(enrich_container.source < enrich_environment.source);
	assert_int_equal(enrich_container.add(&options, group, strlen(group), &a), 0);
	assert_int_equal(enrich_environment.add(&options, ENV("OTEL_RESOURCE_ATTRIBUTES=container.id=mine"), &a), 0);
	assert_string_equal(text_of(&a), "container.id=" CONTAINER ";");
	assert_int_equal(enrich_container.add(&options, none, strlen(none), &a), 0);
	assert_int_equal(a.count, 0);
}

/* A process that stands still, with an environment of its own. */
static pid_t start(char *const *environment)
{
	char *const args[] = { "sh", "-c", "kill -STOP $$", NULL };
	pid_t pid = fork();
	int status;

	if (!pid) {
		execve("/bin/sh", args, environment);
		_exit(127);
	}
	assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
	assert_true(WIFSTOPPED(status)); /* it runs the new program */
	return pid;
}

static void stop(pid_t pid)
{
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static uint64_t unread(struct metrics *m, const char *labels)
{
	return metric_get(metrics_counter(m, "hearth_process_facts_unread_total", labels, ""));
}

/* How often the file was asked for. */
static uint64_t asked(struct metrics *m, const char *file)
{
	char labels[32];

	snprintf(labels, sizeof(labels), "file=\"%s\"", file);
	return metric_get(metrics_counter(m, "hearth_process_facts_read_total", labels, ""));
}

static void test_reader(void **state)
{
	static const char *const variables[] = { "COLOR" };
	AUTO_FREE char *large = malloc(400 << 10);
	char *small_environment[] = { "OTEL_SERVICE_NAME=shop", "COLOR=red", NULL };
	/* A string may have 128 KiB: COLOR stands behind the first 64 KiB, LATE behind all that is read. */
	char *large_environment[] = { large, "COLOR=red", large + 1, large + 2, "OTEL_SERVICE_NAME=late", NULL };
	struct metrics *metrics = metrics_new();
	struct facts_reader *r = NULL;
	struct process_facts *f;
	struct program_id id = { .start_boottime_ns = 1, .exec_id = 2 }, other = { .start_boottime_ns = 1, .exec_id = 3 };
	const struct program_told nothing = { .time_ns = 7 };

	(void)state;
	assert_non_null(large);
	memset(large, 'x', 400 << 10);
	large[100 << 10] = '\0';
	assert_int_equal(facts_reader_new(variables, 1, "", metrics, &r), 0);
	id.pid = other.pid = (uint32_t)start(small_environment);
	facts_reader_meet(r, &id, &nothing);
	facts_reader_meet(r, &id, &nothing);
	assert_null(facts_reader_take(r, &other)); /* of another program of this process */
	f = facts_reader_take(r, &id);
	assert_non_null(f);
	assert_true(f->is_whole && f->read_ns > nothing.time_ns);
	assert_non_null(attributes_find(&f->attributes, STR("service.name")));
	assert_true(asked(metrics, "environ") == 1 && asked(metrics, "cgroup") == 1);
	assert_null(facts_reader_take(r, &id)); /* told once */
	process_facts_put(process_facts_get(f));
	process_facts_put(f);

	/* Behind its end, before it is waited for: its control group is still known. */
	assert_int_equal(kill((pid_t)id.pid, SIGKILL), 0);
	assert_int_equal(waitid(P_PID, id.pid, &(siginfo_t){ 0 }, WEXITED | WNOWAIT), 0);
	facts_reader_meet(r, &id, &nothing);
	f = facts_reader_take(r, &id);
	assert_non_null(f);
	assert_false(f->is_whole);
	process_facts_put(f);
	assert_int_equal(unread(metrics, "file=\"environ\""), 1);
	assert_int_equal(unread(metrics, "file=\"cgroup\""), 0);
	assert_int_equal(waitpid((pid_t)id.pid, NULL, 0), id.pid);
	facts_reader_meet(r, &id, &nothing);
	assert_null(facts_reader_take(r, &id));
	assert_int_equal(unread(metrics, "file=\"environ\""), 2);
	assert_int_equal(unread(metrics, "file=\"cgroup\""), 1);

	other.pid = (uint32_t)start(large_environment);
	facts_reader_meet(r, &other, &nothing);
	f = facts_reader_take(r, &(struct program_id){ .pid = other.pid }); /* as samples of its end tell it */
	stop((pid_t)other.pid);
	assert_non_null(f);
	assert_non_null(attributes_find(&f->attributes, STR("process.environment_variable.COLOR")));
	assert_null(attributes_find(&f->attributes, STR("service.name")));
	assert_int_equal(metric_get(metrics_counter(metrics, "hearth_process_environments_cut_total", NULL, "")), 1);
	process_facts_put(f);

	facts_reader_meet(r, &other, &nothing);
	facts_reader_settle(r);
	facts_reader_settle(r);
	assert_null(facts_reader_take(r, &other)); /* nobody asked for it in time */
	facts_reader_free(r);
	facts_reader_free(NULL);
	metrics_free(metrics);
}

/* What the sample of a program tells of it is not read, and is there when the program is gone. */
static void test_told_environment(void **state)
{
	static const char text[] = "OTEL_SERVICE_NAME=told\0COLOR=red";
	static const char *const variables[] = { "COLOR" };
	char *environment[] = { "OTEL_SERVICE_NAME=read", NULL };
	struct program_told told = { .time_ns = 7, .environment = text, .environment_bytes = sizeof(text) };
	struct program_id id = { .start_boottime_ns = 1, .exec_id = 2 };
	struct metrics *metrics = metrics_new();
	struct facts_reader *r = NULL;
	struct process_facts *f;

	(void)state;
	assert_int_equal(facts_reader_new(variables, 1, "", metrics, &r), 0);
	id.pid = (uint32_t)start(environment);
	facts_reader_meet(r, &id, &told);
	f = facts_reader_take(r, &id);
	assert_true(f && f->is_whole && f->read_ns == told.time_ns); /* a later exec changes nothing */
	assert_string_equal(attributes_find(&f->attributes, STR("service.name"))->string.data, "told");
	assert_string_equal(attributes_find(&f->attributes, STR("process.environment_variable.COLOR"))->string.data, "red");
	process_facts_put(f);
	told.environment_bytes = 0; /* it has none */
	facts_reader_meet(r, &id, &told);
	f = facts_reader_take(r, &id);
	assert_true(f && f->is_whole);
	assert_null(attributes_find(&f->attributes, STR("service.name")));
	process_facts_put(f);
	stop((pid_t)id.pid);

	told.environment_bytes = sizeof(text);
	facts_reader_meet(r, &id, &told);
	f = facts_reader_take(r, &id);
	assert_true(f && !f->is_whole);
	assert_non_null(attributes_find(&f->attributes, STR("service.name")));
	process_facts_put(f);
	assert_true(asked(metrics, "environ") == 0 && asked(metrics, "cgroup") == 3);
	assert_int_equal(unread(metrics, "file=\"environ\""), 0);
	assert_int_equal(unread(metrics, "file=\"cgroup\""), 1);
	facts_reader_free(r);
	metrics_free(metrics);
}

/* Control groups in a folder, and a /proc with one process, all made up. */
struct groups {
	char folder[PATH_MAX];
	struct facts_reader *reader;
	struct metrics *metrics;
	uint64_t exec_id;
};

/* Makes the group @name. Returns its id. */
static uint64_t make_group(const struct groups *g, const char *name)
{
	char path[2 * PATH_MAX];
	struct stat st;

	snprintf(path, sizeof(path), "%s/groups/%s", g->folder, name);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(stat(path, &st), 0);
	return st.st_ino;
}

static void put_cgroup_file(const struct groups *g, const char *text)
{
	char path[2 * PATH_MAX];
	FILE *f;

	snprintf(path, sizeof(path), "%s/5/cgroup", g->folder);
	f = fopen(path, "w");
	assert_true(f && fputs(text, f) >= 0 && !fclose(f));
}

/* Meets a program in group @id. How often the file was read for it, and the end of its container's id. */
static uint64_t meet_in(struct groups *g, uint64_t id, char *container)
{
	const struct program_id program = { .pid = 5, .start_boottime_ns = 1, .exec_id = ++g->exec_id };
	const uint64_t before = asked(g->metrics, "cgroup");
	const struct any_value *v;
	struct process_facts *f;

	facts_reader_meet(g->reader, &program, &(struct program_told){ .cgroup = id, .environment = "" });
	f = facts_reader_take(g->reader, &program);
	assert_non_null(f);
	v = attributes_find(&f->attributes, STR("container.id"));
	*container = v ? v->string.data[v->string.len - 1] : '-';
	process_facts_put(f);
	return asked(g->metrics, "cgroup") - before;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *place)
{
	(void)st, (void)type, (void)place;
	return remove(path);
}

static void test_groups(void **state)
{
#define FOLDER(last) "docker-0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcde" last ".scope"
	struct groups g = { .folder = "/tmp/hearth-groups-XXXXXX", .metrics = metrics_new() };
	char path[2 * PATH_MAX], container;
	uint64_t a, b;

	(void)state;
	assert_non_null(mkdtemp(g.folder));
	assert_int_equal(proc_root_set(g.folder), 0);
	snprintf(path, sizeof(path), "%s/5", g.folder);
	assert_int_equal(mkdir(path, 0700), 0);
	snprintf(path, sizeof(path), "%s/groups", g.folder);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(facts_reader_new(NULL, 0, path, g.metrics, &g.reader), 0);
	a = make_group(&g, FOLDER("a"));
	b = make_group(&g, FOLDER("b"));

	put_cgroup_file(&g, "2:cpu:/x\n0::/" FOLDER("a") "\n"); /* the id does not tell the group of version 1 */
	assert_true(meet_in(&g, a, &container) == 1 && container == 'a');
	assert_true(meet_in(&g, a, &container) == 1 && container == 'a');
	put_cgroup_file(&g, "0::/" FOLDER("b") "\n"); /* it went there after its sample */
	assert_true(meet_in(&g, a, &container) == 1 && container == 'b');
	assert_true(meet_in(&g, a, &container) == 1 && container == 'b');
	assert_true(meet_in(&g, 0, &container) == 1 && container == 'b'); /* not told */
	assert_true(meet_in(&g, b, &container) == 1 && container == 'b');
	put_cgroup_file(&g, "0::/" FOLDER("a") "\n");
	assert_true(meet_in(&g, b, &container) == 0 && container == 'b');
	assert_true(meet_in(&g, a, &container) == 1 && container == 'a');
	assert_true(meet_in(&g, a, &container) == 0 && container == 'a');
	for (int i = 0; i < 1024; i++) { /* more than are kept */
		char name[16], text[32];
		uint64_t id;

		snprintf(name, sizeof(name), "g%d", i);
		snprintf(text, sizeof(text), "0::/%s\n", name);
		id = make_group(&g, name);
		put_cgroup_file(&g, text);
		assert_true(meet_in(&g, id, &container) == 1 && container == '-');
		assert_int_equal(meet_in(&g, id, &container), 0);
	}
	put_cgroup_file(&g, "0::/" FOLDER("a") "\n");
	assert_true(meet_in(&g, a, &container) == 1 && container == 'a');

	facts_reader_free(g.reader);
	metrics_free(g.metrics);
	assert_int_equal(proc_root_set(NULL), 0);
	assert_int_equal(nftw(g.folder, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
}

static void test_host(void **state)
{
	struct attributes a = ATTRIBUTES_EMPTY;
	const struct any_value *v;

	(void)state;
	assert_int_equal(host_facts_of_release(STR("NAME=\"Debian \\\"GNU\\\"/Linux\"\nVERSION_ID='12 "
						   "\\x'\n#PRETTY_NAME=no\n\nXNAME=no\nBUILD_ID=\nPRETTY_NAME=plain"),
					       &a),
			 0);
	assert_string_equal(text_of(&a), "os.description=plain;os.name=Debian \"GNU\"/Linux;os.version=12 \\x;");
	assert_int_equal(attributes_add(&a, STR("host.arch"), STR("mine")), 0);
	assert_int_equal(host_facts_add(&a), 0);
	v = attributes_find(&a, STR("host.name"));
	assert_true(v && v->string.len);
	assert_string_equal(attributes_find(&a, STR("host.arch"))->string.data, "mine");
	assert_string_equal(attributes_find(&a, STR("os.type"))->string.data, "linux");
	attributes_fini(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_resource_attributes),
		cmocka_unit_test(test_lists),
		cmocka_unit_test(test_environments),
		cmocka_unit_test(test_container),
		cmocka_unit_test(test_reader),
		cmocka_unit_test(test_told_environment),
		cmocka_unit_test(test_groups),
		cmocka_unit_test(test_host),
	};

	return run_group_of_descriptors(tests, NULL, NULL);
}
