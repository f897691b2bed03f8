/* SPDX-License-Identifier: Apache-2.0 */
/* Paths of workloads: which workload and process one asks for, whatever slashes are in the name. The writer is the test's.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <inttypes.h>

#include "backend/compat/workloads.h"
#include "backend/routes/handlers.h"
#include "tests/unit/backend/http/made_request.h"

static int written; /* the result of what follows */

int workloads_write(struct workloads *w, struct buf *out)
{
	(void)w;
	buf_puts(out, "all");
	return written;
}

int workloads_write_functions(struct workloads *w, const char *id, struct buf *out)
{
	(void)w;
	buf_printf(out, "functions of %s", id);
	return written;
}

int workloads_write_process_functions(struct workloads *w, const char *id, int64_t pid, struct buf *out)
{
	(void)w;
	buf_printf(out, "functions of %s, process %" PRId64, id, pid);
	return written;
}

/* The answer to @path, of which @fn makes the answer. */
static void answers(void (*fn)(struct request *r), const char *path, unsigned status, const char *text)
{
	struct request r = made_request();

	r.path = path;
	fn(&r);
	if (r.reply.status != status || strcmp(buf_text(&r.reply.body), text) != 0)
		fail_msg("%s: %u %s", path, r.reply.status, buf_text(&r.reply.body));
	if (status == 404)
		assert_string_equal(r.reply.content_type, "text/plain; charset=utf-8");
	else
		assert_string_equal(r.reply.content_type, "application/json");
	buf_fini(&r.reply.body);
}

#define NO_SUCH "404 no such workload or process"

static int begin(void **state)
{
	static char some;

	(void)state;
	made_server.workloads = (struct workloads *)&some;
	written = 0;
	return 0;
}

static void test_all(void **state)
{
	(void)state;
	answers(page_workloads, "/workloads", 200, "all");
	written = -ENOMEM;
	answers(page_workloads, "/workloads", 500, "all");
}

static void test_functions(void **state)
{
	(void)state;
	answers(page_workload, "/workload/shop/functions", 200, "functions of shop");
	answers(page_workload, "/workload/a/b/c/functions", 200, "functions of a/b/c");
	answers(page_workload, "/workload//functions", 404, NO_SUCH); /* none has an empty name */
	answers(page_workload, "/workload/functions", 404, NO_SUCH);
	answers(page_workload, "/workload/functions/functions", 200, "functions of functions");
}

static void test_functions_of_a_process(void **state)
{
	(void)state;
	answers(page_workload, "/workload/shop/process/12/functions", 200, "functions of shop, process 12");
	answers(page_workload, "/workload/a/b/process/0/functions", 200, "functions of a/b, process 0");
	answers(page_workload, "/workload/process/process/7/functions", 200, "functions of process, process 7");
	answers(page_workload, "/workload/a/process/1/process/2/functions", 200, "functions of a/process/1, process 2");
}

static void test_numbers_of_processes(void **state)
{
	(void)state;
	answers(page_workload, "/workload/a/process/9223372036854775807/functions", 200,
		"functions of a, process 9223372036854775807");
	answers(page_workload, "/workload/a/process/9223372036854775808/functions", 404, NO_SUCH);
	answers(page_workload, "/workload/a/process/x/functions", 404, NO_SUCH);
	answers(page_workload, "/workload/a/process//functions", 404, NO_SUCH);
	answers(page_workload, "/workload/a/process/-1/functions", 404, NO_SUCH);
}

/* "process" alone is a part of a name. */
static void test_names_with_a_process_in_them(void **state)
{
	(void)state;
	answers(page_workload, "/workload/process/12/functions", 200, "functions of process/12");
	answers(page_workload, "/workload/a/processes/12/functions", 200, "functions of a/processes/12");
	answers(page_workload, "/workload/a/process/functions", 200, "functions of a/process");
}

static void test_other_paths(void **state)
{
	(void)state;
	answers(page_workload, "/workload/", 404, NO_SUCH);
	answers(page_workload, "/workload/shop", 404, NO_SUCH);
	answers(page_workload, "/workload/shop/function", 404, NO_SUCH);
	answers(page_workload, "/workload/shop/functions/", 404, NO_SUCH);
	answers(page_workload, "/workload/shop/Functions", 404, NO_SUCH);
}

/* What was begun is not shown where there is no such workload. */
static void test_no_such_workload(void **state)
{
	(void)state;
	written = -ENOENT;
	answers(page_workload, "/workload/shop/functions", 404, NO_SUCH);
	answers(page_workload, "/workload/shop/process/1/functions", 404, NO_SUCH);
	written = -ENOMEM;
	answers(page_workload, "/workload/shop/functions", 500, "functions of shop");
}

static void test_not_kept(void **state)
{
	static const char text[] = "404 workloads are not kept here: start with --workloads or --rest-address";

	(void)state;
	made_server.workloads = NULL;
	answers(page_workloads, "/workloads", 404, text);
	answers(page_workload, "/workload/shop/functions", 404, text);
}

#define WORKLOAD_TEST(name) cmocka_unit_test_setup(name, begin)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WORKLOAD_TEST(test_all),
		WORKLOAD_TEST(test_functions),
		WORKLOAD_TEST(test_functions_of_a_process),
		WORKLOAD_TEST(test_numbers_of_processes),
		WORKLOAD_TEST(test_names_with_a_process_in_them),
		WORKLOAD_TEST(test_other_paths),
		WORKLOAD_TEST(test_no_such_workload),
		WORKLOAD_TEST(test_not_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
