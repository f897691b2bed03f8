/* SPDX-License-Identifier: Apache-2.0 */
/* The cluster and the user of a context in a kubeconfig, and what is refused there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "enrich/kube/kube.h"

static char path[] = "/tmp/hearth-kubeconfig-XXXXXX";

static int read_text(const char *text, const char *context, struct kube_access *ret, struct buf *error)
{
	AUTO_FCLOSE FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs(text, f);
	fflush(f);
	return kube_access_of_file(path, context, ret, error);
}

static const char whole[] = "apiVersion: v1\n"
			    "kind: Config\n"
			    "current-context: one\n"
			    "clusters:\n"
			    "- name: c1\n"
			    "  cluster: {server: 'https://[::1]:6443/', certificate-authority: pki/ca.crt}\n"
			    "- name: c2\n"
			    "  cluster: {server: https://two, certificate-authority-data: SEVMTE8=}\n"
			    "users:\n"
			    "- name: u1\n"
			    "  user: {tokenFile: /abs/token}\n"
			    "- name: u2\n"
			    "  user: {client-certificate-data: QQ==, client-key-data: Qg==}\n"
			    "- name: u3\n"
			    "  user: {exec: {command: aws}}\n"
			    "contexts:\n"
			    "- name: one\n"
			    "  context: {cluster: c1, user: u1}\n"
			    "- name: two\n"
			    "  context: {cluster: c2, user: u2}\n"
			    "- name: three\n"
			    "  context: {cluster: c1, user: u3}\n"
			    "- name: four\n"
			    "  context: {cluster: none, user: u1}\n"
			    "- name: five\n"
			    "  context: {cluster: c1}\n";

static void test_contexts(void **state)
{
	AUTO(buf_fini) struct buf error = BUF_EMPTY;
	struct kube_access a;

	(void)state;
	assert_int_equal(read_text(whole, NULL, &a, &error), 0);
	assert_string_equal(a.url, "https://[::1]:6443");
	assert_string_equal(a.ca_file, "/tmp/pki/ca.crt");
	assert_string_equal(a.token_file, "/abs/token");
	assert_null(a.ca_pem);
	kube_access_fini(&a);
	assert_int_equal(read_text(whole, "two", &a, &error), 0);
	assert_string_equal(a.ca_pem, "HELLO");
	assert_string_equal(a.cert_pem, "A");
	assert_string_equal(a.key_pem, "B");
	kube_access_fini(&a);
	assert_int_equal(read_text(whole, "five", &a, &error), 0);
	assert_null(a.token_file);
	kube_access_fini(&a);
}

static void test_refused(void **state)
{
	static const struct {
		const char *text, *context, *error;
	} cases[] = {
		{ whole, "three", "exec is not for hearth" },
		{ whole, "four", "no cluster called 'none'" },
		{ whole, "six", "no context called 'six'" },
		{ "", NULL, "no current-context" },
		{ "a: [", NULL, ":" },
		{ "current-context: 7", NULL, "no context called '7'" },
		{ "current-context: x\ncontexts: [{name: x, context: {cluster: c}}]\nclusters: [{name: c, cluster: {server: "
		  "ftp://x}}]",
		  NULL, "no http(s):// address" },
		{ "current-context: x\ncontexts: [{name: x, context: {cluster: c}}]\nclusters: [{name: c, cluster: {server: "
		  "https://x, "
		  "insecure-skip-tls-verify: true}}]",
		  NULL, "always checks" },
		{ "current-context: x\ncontexts: [{name: x, context: {cluster: c}}]\nclusters: [{name: c, cluster: {server: "
		  "https://x, "
		  "certificate-authority-data: '?'}}]",
		  NULL, "is no base64" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO(buf_fini) struct buf error = BUF_EMPTY;
		struct kube_access a;
		int err = read_text(cases[i].text, cases[i].context, &a, &error);

		if (err != -EINVAL || !strstr(buf_text(&error), cases[i].error))
			fail_msg("case %zu: %d, '%s'", i, err, buf_text(&error));
		assert_null(a.url);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_contexts), cmocka_unit_test(test_refused) };
	int fd = mkstemp(path), status;

	if (fd < 0)
		return 1;
	close(fd);
	status = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(path);
	return status;
}
