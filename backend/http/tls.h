/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The servers' certificate and key, and whom clients' certificates must be signed by, from files that somebody replaces from
 * time to time. Keys that were read from the files at one time make a struct tls_keys, shared by reference by the
 * connections that began with it; new connections get the newest. Loop's thread only.
 */
#ifndef HEARTH_BACKEND_HTTP_TLS_H
#define HEARTH_BACKEND_HTTP_TLS_H

#include <gnutls/abstract.h>
#include <gnutls/gnutls.h>
#include <stdbool.h>

/* GnuTLS' notation: TLS 1.2 and 1.3. */
#define TLS_PRIORITIES "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"

struct metrics;
struct tls;
struct tls_keys;

struct tls_config {		    /* paths of PEM files, borrowed */
	const char *cert_file;	    /* with its chain */
	const char *key_file;	    /* NULL: the key is in cert_file */
	const char *client_ca_file; /* NULL: clients need no certificate */
};

struct tls_error {
	char message[256];
};

/* Reads the files. 0 or -errno with @err filled. */
int tls_new(const struct tls_config *config, struct metrics *metrics, struct tls **ret, struct tls_error *err);
void tls_free(struct tls *t); /* accepts NULL */

/* Looks, at most once a second, whether the files are others, and reads them. Files that cannot be used are logged and
 * counted; the old keys stay. */
void tls_refresh(struct tls *t);

/* The newest keys; the reference is the caller's. */
struct tls_keys *tls_keys_get(struct tls *t);
void tls_keys_put(struct tls_keys *k); /* accepts NULL */

/* For gnutls_credentials_set(); the session must keep a reference of @k. */
gnutls_certificate_credentials_t tls_keys_credentials(const struct tls_keys *k);

/* For a gnutls_certificate_retrieve_function2. */
void tls_keys_chain(const struct tls_keys *k, gnutls_pcert_st **certs_ret, unsigned *count_ret, gnutls_privkey_t *key_ret);

/* Whether clients must show a certificate: then gnutls_certificate_server_set_request(GNUTLS_CERT_REQUIRE), and a function
 * for gnutls_session_set_verify_function() that returns what tls_keys_verify() does: 0 when the client's certificate is good
 * for us, else a GnuTLS error. */
bool tls_keys_ask_clients(const struct tls_keys *k);
int tls_keys_verify(const struct tls_keys *k, gnutls_session_t session);

/* Makes @session, whose transport is the socket of gnutls_transport_set_int(), read a record when it has come, not byte by
 * byte: for each read, GnuTLS 3.7 takes a buffer of 16 KB, so four bytes of a header that come one after the other would
 * take 66 KB for as long as a client likes. */
void tls_read_whole(gnutls_session_t session);

#endif
