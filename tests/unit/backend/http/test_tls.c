/* SPDX-License-Identifier: Apache-2.0 */
/* Certificates and keys of servers, out of files that are made here: what is refused, what is read again and when, and which
 * certificates of clients are good. The clock is the test's. */
#include <errno.h>
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>
#include <gnutls/x509.h>

#include "backend/http/tls.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "tests/unit/descriptors.h"

static uint64_t now_ns = 5 * NSEC_PER_SEC;

uint64_t clock_mono_ns(void)
{
	return now_ns;
}

uint64_t clock_unix_ns(void)
{
	return now_ns;
}

void clock_refresh(void)
{
}

uint64_t clock_mono_to_unix_ns(uint64_t mono_ns)
{
	return mono_ns;
}

/* --- certificates --- */

/* A certificate and its key, and both as text. */
struct identity {
	gnutls_x509_crt_t cert;
	gnutls_x509_privkey_t key;
	gnutls_datum_t cert_text, key_text;
};

static struct identity ca, other_ca, server, client, not_client, stranger;

/* By itself without @issuer; an authority's without @purpose. */
static void make_identity(struct identity *id, const struct identity *issuer, const char *purpose)
{
	static unsigned char serial;
	bool is_made = !gnutls_x509_privkey_init(&id->key) && !gnutls_x509_crt_init(&id->cert);

	is_made = is_made && !gnutls_x509_privkey_generate(id->key, GNUTLS_PK_ECDSA,
							   GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1), 0);
	serial++;
	is_made = is_made && !gnutls_x509_crt_set_version(id->cert, 3) && !gnutls_x509_crt_set_serial(id->cert, &serial, 1);
	is_made = is_made && !gnutls_x509_crt_set_activation_time(id->cert, time(NULL) - 3600) &&
		  !gnutls_x509_crt_set_expiration_time(id->cert, time(NULL) + 3600);
	is_made = is_made &&
		  !gnutls_x509_crt_set_dn_by_oid(id->cert, GNUTLS_OID_X520_COMMON_NAME, 0, purpose ? "leaf" : "ca",
						 purpose ? 4 : 2) &&
		  !gnutls_x509_crt_set_key(id->cert, id->key);
	if (purpose)
		is_made = is_made && !gnutls_x509_crt_set_key_purpose_oid(id->cert, purpose, 0);
	else
		is_made = is_made && !gnutls_x509_crt_set_basic_constraints(id->cert, 1, -1) &&
			  !gnutls_x509_crt_set_key_usage(id->cert, GNUTLS_KEY_KEY_CERT_SIGN);
	issuer = issuer ? issuer : id;
	is_made = is_made && !gnutls_x509_crt_sign2(id->cert, issuer->cert, issuer->key, GNUTLS_DIG_SHA256, 0);
	is_made = is_made && !gnutls_x509_crt_export2(id->cert, GNUTLS_X509_FMT_PEM, &id->cert_text) &&
		  !gnutls_x509_privkey_export2(id->key, GNUTLS_X509_FMT_PEM, &id->key_text);
	assert_true(is_made);
}

static void identity_fini(struct identity *id)
{
	gnutls_x509_crt_deinit(id->cert);
	gnutls_x509_privkey_deinit(id->key);
	gnutls_free(id->cert_text.data);
	gnutls_free(id->key_text.data);
}

/* --- files --- */

static char folder[] = "/tmp/test_tls.XXXXXX";
static char cert_file[64], key_file[64], ca_file[64];

/* Each time with a time of its own, which the file system's clock may be too coarse for. */
static void write_texts(const char *path, const gnutls_datum_t *one, const gnutls_datum_t *two)
{
	AUTO_FCLOSE FILE *f = fopen(path, "w");
	static struct timespec when[2];

	when[0].tv_sec = ++when[1].tv_sec;

	assert_non_null(f);
	if (one)
		assert_int_equal(fwrite(one->data, 1, one->size, f), one->size);
	if (two)
		assert_int_equal(fwrite(two->data, 1, two->size, f), two->size);
	assert_int_equal(fflush(f), 0);
	assert_int_equal(futimens(fileno(f), when), 0);
}

static void write_server(const struct identity *id)
{
	write_texts(cert_file, &id->cert_text, NULL);
	write_texts(key_file, &id->key_text, NULL);
}

static int setup_all(void **state)
{
	(void)state;
	make_identity(&ca, NULL, NULL);
	make_identity(&other_ca, NULL, NULL);
	make_identity(&server, &ca, GNUTLS_KP_TLS_WWW_SERVER);
	make_identity(&client, &ca, GNUTLS_KP_TLS_WWW_CLIENT);
	make_identity(&not_client, &ca, GNUTLS_KP_TLS_WWW_SERVER);
	make_identity(&stranger, &other_ca, GNUTLS_KP_TLS_WWW_CLIENT);
	if (!mkdtemp(folder))
		return -1;
	snprintf(cert_file, sizeof(cert_file), "%s/cert", folder);
	snprintf(key_file, sizeof(key_file), "%s/key", folder);
	snprintf(ca_file, sizeof(ca_file), "%s/ca", folder);
	return 0;
}

static int teardown_all(void **state)
{
	struct identity *const all[] = { &ca, &other_ca, &server, &client, &not_client, &stranger };
	char command[64];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		identity_fini(all[i]);
	snprintf(command, sizeof(command), "rm -r %s", folder);
	return system(command);
}

static int setup(void **state)
{
	*state = metrics_new();
	write_server(&server);
	write_texts(ca_file, &ca.cert_text, NULL);
	return 0;
}

static int teardown(void **state)
{
	metrics_free(*state);
	return 0;
}

/* --- tests --- */

static void refused(struct metrics *metrics, const struct tls_config *config, int code, const char *what, const char *file,
		    const char *why)
{
	struct tls *t = NULL;
	struct tls_error err = { "" };
	char begin[128];
	int error = tls_new(config, metrics, &t, &err);

	snprintf(begin, sizeof(begin), "%s %s: %s", what, file, why);
	if (error != code || strncmp(err.message, begin, strlen(begin)) != 0)
		fail_msg("%d %s, not %d %s", error, err.message, code, begin);
	assert_null(t);
}

static void test_refused(void **state)
{
	const struct tls_config config = { cert_file, key_file, ca_file }, one_file = { cert_file, NULL, NULL },
				no_cert = { "/nowhere/x", key_file, NULL }, no_key = { cert_file, "/nowhere/x", NULL },
				no_ca = { cert_file, key_file, "/nowhere/x" };
	struct tls_error err;
	struct tls *t;

	refused(*state, &no_cert, -ENOENT, "cannot read", "/nowhere/x", "No such file");
	refused(*state, &no_key, -ENOENT, "cannot read", "/nowhere/x", "No such file");
	refused(*state, &no_ca, -ENOENT, "cannot read", "/nowhere/x", "No such file");
	refused(*state, &one_file, -EINVAL, "no private key in", cert_file, "");
	write_texts(ca_file, NULL, NULL);
	refused(*state, &config, -EINVAL, "no certificate in", ca_file, "");
	write_texts(key_file, &client.key_text, NULL);
	refused(*state, &config, -EINVAL, "cannot use the key in", key_file, "");
	write_texts(key_file, &server.cert_text, NULL);
	refused(*state, &config, -EINVAL, "no private key in", key_file, "");
	write_texts(cert_file, &server.key_text, NULL);
	refused(*state, &config, -EINVAL, "no certificate in", cert_file, "");
	write_texts(cert_file, &server.cert_text, &server.key_text);
	assert_int_equal(tls_new(&one_file, *state, &t, &err), 0);
	tls_free(t);
	tls_free(NULL);
	tls_keys_put(NULL);
}

/* Whether the newest keys are those of @id. */
static bool has_keys_of(struct tls *t, const struct identity *id)
{
	struct tls_keys *k = tls_keys_get(t);
	gnutls_pcert_st *certs;
	gnutls_privkey_t key;
	gnutls_datum_t own;
	unsigned count;
	bool is;

	tls_keys_chain(k, &certs, &count, &key);
	assert_int_equal(count, 1);
	assert_non_null(key);
	assert_int_equal(gnutls_x509_crt_export2(id->cert, GNUTLS_X509_FMT_DER, &own), 0);
	is = own.size == certs[0].cert.size && !memcmp(own.data, certs[0].cert.data, own.size);
	gnutls_free(own.data);
	tls_keys_put(k);
	return is;
}

/* Looks at @t's files a second later; what it has counted since the start, "RELOADS FAILURES". */
static const char *refreshed(struct tls *t, struct metrics *metrics)
{
	static char counts[32];

	now_ns += NSEC_PER_SEC;
	tls_refresh(t);
	snprintf(counts, sizeof(counts), "%d %d",
		 (int)metric_get(metrics_counter(metrics, "hearth_tls_reloads_total", NULL, "")),
		 (int)metric_get(metrics_counter(metrics, "hearth_tls_reload_failures_total", NULL, "")));
	return counts;
}

/* Files that changed are taken once both fit, looked at once a second; a fault counts once, and the old keys stay. */
static void test_reload(void **state)
{
	const struct tls_config config = { cert_file, key_file, ca_file };
	struct tls_keys *old;
	struct tls_error err;
	struct tls *t;

	assert_int_equal(tls_new(&config, *state, &t, &err), 0);
	assert_string_equal(refreshed(t, *state), "0 0");
	old = tls_keys_get(t);
	write_texts(cert_file, &client.cert_text, NULL);
	now_ns += NSEC_PER_SEC - 1;
	tls_refresh(t);
	now_ns -= NSEC_PER_SEC - 1;
	assert_true(has_keys_of(t, &server));
	assert_string_equal(refreshed(t, *state), "0 1");
	assert_string_equal(refreshed(t, *state), "0 1");
	assert_true(has_keys_of(t, &server));
	write_texts(key_file, &client.key_text, NULL);
	assert_string_equal(refreshed(t, *state), "1 1");
	assert_true(has_keys_of(t, &client));
	assert_string_equal(refreshed(t, *state), "1 1");
	unlink(ca_file);
	assert_string_equal(refreshed(t, *state), "1 2");
	write_texts(ca_file, &other_ca.cert_text, NULL);
	assert_string_equal(refreshed(t, *state), "2 2");
	unlink(cert_file);
	assert_string_equal(refreshed(t, *state), "2 3");
	assert_true(has_keys_of(t, &client));
	tls_free(t);
	tls_keys_put(old); /* a connection has outlived the server */
}

/* A handshake of a client that shows @id (NULL: nothing) with @k: what tls_keys_verify() says of it. */
static int verdict_on(const struct tls_keys *k, const struct identity *id)
{
	gnutls_certificate_credentials_t shown;
	gnutls_session_t ours, theirs;
	int ends[2], done[2] = { GNUTLS_E_AGAIN, GNUTLS_E_AGAIN }, verdict;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
	assert_int_equal(gnutls_certificate_allocate_credentials(&shown), 0);
	if (id)
		assert_true(gnutls_certificate_set_x509_key(shown, (gnutls_x509_crt_t *)(uintptr_t)&id->cert, 1, id->key) >=
			    0);
	assert_int_equal(gnutls_init(&ours, GNUTLS_SERVER | GNUTLS_NONBLOCK), 0);
	assert_int_equal(gnutls_init(&theirs, GNUTLS_CLIENT | GNUTLS_NONBLOCK | GNUTLS_FORCE_CLIENT_CERT), 0);
	assert_int_equal(gnutls_priority_set_direct(ours, TLS_PRIORITIES, NULL), 0);
	assert_int_equal(gnutls_priority_set_direct(theirs, TLS_PRIORITIES, NULL), 0);
	gnutls_credentials_set(ours, GNUTLS_CRD_CERTIFICATE, tls_keys_credentials(k));
	gnutls_credentials_set(theirs, GNUTLS_CRD_CERTIFICATE, shown);
	gnutls_certificate_server_set_request(ours, GNUTLS_CERT_REQUEST);
	gnutls_transport_set_int(ours, ends[0]);
	gnutls_transport_set_int(theirs, ends[1]);
	for (int turns = 0; turns < 100 && (done[0] == GNUTLS_E_AGAIN || done[1] == GNUTLS_E_AGAIN); turns++) {
		if (done[1] == GNUTLS_E_AGAIN)
			done[1] = gnutls_handshake(theirs);
		if (done[0] == GNUTLS_E_AGAIN)
			done[0] = gnutls_handshake(ours);
	}
	assert_int_equal(done[0], 0);
	assert_int_equal(done[1], 0);
	verdict = tls_keys_verify(k, ours);
	gnutls_deinit(ours);
	gnutls_deinit(theirs);
	gnutls_certificate_free_credentials(shown);
	close(ends[0]);
	close(ends[1]);
	return verdict;
}

/* A client's certificate is good that our authority has signed for clients. */
static void test_clients(void **state)
{
	const struct tls_config config = { cert_file, key_file, ca_file }, of_all = { cert_file, key_file, NULL };
	struct tls_error err;
	struct tls_keys *k;
	struct tls *t;

	assert_int_equal(tls_new(&of_all, *state, &t, &err), 0);
	k = tls_keys_get(t);
	assert_false(tls_keys_ask_clients(k));
	tls_keys_put(k);
	tls_free(t);
	assert_int_equal(tls_new(&config, *state, &t, &err), 0);
	k = tls_keys_get(t);
	assert_true(tls_keys_ask_clients(k));
	assert_int_equal(verdict_on(k, &client), 0);
	assert_int_equal(verdict_on(k, &stranger), GNUTLS_E_CERTIFICATE_ERROR);
	assert_int_equal(verdict_on(k, &not_client), GNUTLS_E_CERTIFICATE_ERROR);
	assert_int_equal(verdict_on(k, NULL), GNUTLS_E_NO_CERTIFICATE_FOUND);
	tls_keys_put(k);
	tls_free(t);
}

/* --- a client that sends a few bytes at a time --- */

static unsigned char said[1 << 16]; /* by the client, not sent yet */
static size_t said_len;

static ssize_t keep(gnutls_transport_ptr_t transport, const void *data, size_t len)
{
	(void)transport;
	assert_true(len <= sizeof(said) - said_len);
	memcpy(said + said_len, data, len);
	said_len += len;
	return (ssize_t)len;
}

static void open_ends(struct tls_keys *k, int ends[2], gnutls_session_t *of_server, gnutls_session_t *of_client,
		      gnutls_certificate_credentials_t none)
{
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
	assert_int_equal(gnutls_init(of_server, GNUTLS_SERVER | GNUTLS_NONBLOCK), 0);
	assert_int_equal(gnutls_init(of_client, GNUTLS_CLIENT | GNUTLS_NONBLOCK), 0);
	assert_int_equal(gnutls_priority_set_direct(*of_server, TLS_PRIORITIES, NULL), 0);
	assert_int_equal(gnutls_priority_set_direct(*of_client, TLS_PRIORITIES, NULL), 0);
	assert_int_equal(gnutls_credentials_set(*of_server, GNUTLS_CRD_CERTIFICATE, tls_keys_credentials(k)), 0);
	assert_int_equal(gnutls_credentials_set(*of_client, GNUTLS_CRD_CERTIFICATE, none), 0);
	gnutls_transport_set_int(*of_server, ends[0]);
	tls_read_whole(*of_server);
	gnutls_transport_set_int(*of_client, ends[1]);
	gnutls_transport_set_push_function(*of_client, keep);
}

/* Sends @count of the bytes that the client has said, @each at a time, and lets the server go on after each time; its last
 * word in the handshake. */
static int send_bytes(int fd, size_t count, size_t each, gnutls_session_t of_server)
{
	int ret = GNUTLS_E_AGAIN;

	for (size_t i = 0; i < count; i += each) {
		const size_t len = count - i < each ? count - i : each;
		assert_int_equal(write(fd, said + i, len), len);
		ret = gnutls_handshake(of_server);
		assert_true(!ret || ret == GNUTLS_E_AGAIN);
	}
	memmove(said, said + count, said_len - count);
	said_len -= count;
	return ret;
}

/* GnuTLS takes 16 KB for each read: none are spent on a part of a header, and the session comes about all the same. A client
 * that goes in the middle of a record has gone. */
static void test_few_bytes(void **state)
{
	enum { HEADER_BYTES = 5, HANDSHAKE_ROUNDS = 20 };
	const struct tls_config config = { cert_file, key_file, NULL };
	gnutls_certificate_credentials_t none;
	gnutls_session_t of_server, of_client;
	int ends[2], server_ret = GNUTLS_E_AGAIN, client_ret = GNUTLS_E_AGAIN;
	struct tls_error err;
	struct tls *t;
	char word[8];

	said_len = 0;
	assert_int_equal(tls_new(&config, *state, &t, &err), 0);
	struct tls_keys *k = tls_keys_get(t);
	assert_int_equal(gnutls_certificate_allocate_credentials(&none), 0);
	open_ends(k, ends, &of_server, &of_client, none);
	assert_int_equal(gnutls_handshake(of_client), GNUTLS_E_AGAIN);
	assert_true(said_len > 100);
	assert_int_equal(send_bytes(ends[1], 1, 1, of_server), GNUTLS_E_AGAIN); /* it has made its own things */
	const size_t used_bytes = mallinfo2().uordblks;
	assert_int_equal(send_bytes(ends[1], HEADER_BYTES - 2, 1, of_server), GNUTLS_E_AGAIN);
	assert_in_range(mallinfo2().uordblks, 0, used_bytes + 4096);

	for (int i = 0; i < HANDSHAKE_ROUNDS && (server_ret || client_ret); i++) {
		if (said_len)
			server_ret = send_bytes(ends[1], said_len, 3, of_server);
		if (client_ret)
			client_ret = gnutls_handshake(of_client);
	}
	assert_int_equal(server_ret, 0);
	assert_int_equal(client_ret, 0);
	assert_int_equal(gnutls_record_send(of_client, "word", 4), 4);
	assert_int_equal(write(ends[1], said, said_len - 1), said_len - 1);
	assert_int_equal(gnutls_record_recv(of_server, word, sizeof(word)), GNUTLS_E_AGAIN);
	assert_int_equal(write(ends[1], said + said_len - 1, 1), 1);
	assert_int_equal(gnutls_record_recv(of_server, word, sizeof(word)), 4);
	assert_memory_equal(word, "word", 4);

	assert_int_equal(write(ends[1], said, said_len / 2), said_len / 2);
	assert_int_equal(gnutls_record_recv(of_server, word, sizeof(word)), GNUTLS_E_AGAIN);
	close(ends[1]);
	assert_true(gnutls_error_is_fatal((int)gnutls_record_recv(of_server, word, sizeof(word))));
	gnutls_deinit(of_client);
	gnutls_deinit(of_server);
	close(ends[0]);
	gnutls_certificate_free_credentials(none);
	tls_keys_put(k);
	tls_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(test_reload, setup, teardown),
		cmocka_unit_test_setup_teardown(test_clients, setup, teardown),
		cmocka_unit_test_setup_teardown(test_few_bytes, setup, teardown),
	};

	return run_group_of_descriptors(tests, setup_all, teardown_all);
}
