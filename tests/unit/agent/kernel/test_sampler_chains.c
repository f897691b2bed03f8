/* SPDX-License-Identifier: Apache-2.0 */
/* A runtime whose program the kernel does not take, and one that is not wanted: said once, counted, not tried again. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/kernel/sampler_state.h"
#include "base/cleanup.h"
#include "tests/unit/descriptors.h"

static int opened_cnt;

/* In place of libbpf's: it has no object. */
struct bpf_object *bpf_object__open_mem(const void *bytes, size_t len, const struct bpf_object_open_opts *opts)
{
	assert_true(bytes && len && !opts);
	opened_cnt++;
	errno = EBADMSG;
	return NULL;
}

/* Tells the sampler of runtime @id; how often a message said it in *@said. */
static int tell(struct sampler *s, uint32_t id, int *said)
{
	struct chain_state state = { .asid = 1, .runtime = id };
	int ends[2], kept = dup(STDERR_FILENO), error;
	char text[1024] = "";
	ssize_t len;

	assert_int_equal(pipe2(ends, O_NONBLOCK), 0);
	assert_true(dup2(ends[1], STDERR_FILENO) >= 0);
	error = sampler_set_chain(s, &state);
	assert_true(dup2(kept, STDERR_FILENO) >= 0);
	len = read(ends[0], text, sizeof(text) - 1);
	*said = len > 0 && strstr(text, "cannot load the program") && strstr(text, strerror(EBADMSG));
	close(ends[0]);
	close(ends[1]);
	close(kept);
	return error;
}

static void test_failure(void **state)
{
	struct sampler s = { .caller_cnt = 1 };
	int said;

	(void)state;
	opened_cnt = 0;
	assert_false(sampler_chain_failed(&s, RUNTIME_PYTHON));
	assert_int_equal(tell(&s, RUNTIME_PYTHON, &said), -EBADMSG);
	assert_true(said && opened_cnt == 1);
	assert_int_equal(tell(&s, RUNTIME_PYTHON, &said), -EBADMSG);
	assert_true(!said && opened_cnt == 1);
	assert_true(sampler_chain_failed(&s, RUNTIME_PYTHON));
	assert_false(sampler_chain_failed(&s, RUNTIME_PHP));
	assert_int_equal(tell(&s, RUNTIME_ID_MAX, &said), -EINVAL);
	sampler_chains_free(&s);
}

static void test_not_wanted(void **state)
{
	const struct agent_config config = { .runtimes_off = 1u << RUNTIME_PYTHON };
	struct sampler s = { .caller_cnt = 1 };
	int said;

	(void)state;
	opened_cnt = 0;
	sampler_chains_configure(&s, &config);
	assert_int_equal(tell(&s, RUNTIME_PYTHON, &said), -EOPNOTSUPP);
	assert_true(!said && !opened_cnt);
	assert_false(sampler_chain_failed(&s, RUNTIME_PYTHON));
	assert_int_equal(tell(&s, RUNTIME_PHP, &said), -EBADMSG);
	assert_true(said && opened_cnt == 1);
	sampler_chains_free(&s);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_failure),
		cmocka_unit_test(test_not_wanted),
	};

	return run_group_of_descriptors(tests, NULL, NULL);
}
