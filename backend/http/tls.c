/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TLS files. They are read again when one has another time, size or inode than when they were last read with success; so a
 * certificate that is replaced a moment before its key is read again until they match.
 */
#include "backend/http/tls.h"

#include <errno.h>
#include <gnutls/x509.h>
#include <linux/sockios.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"

enum {
	MAX_CHAIN = 16,
	FILES = 3,
	WHOLE_BYTES = 512, /* a record's header, or a small record: the socket has room for it in any case */
};

struct tls_keys {
	unsigned refs;
	gnutls_certificate_credentials_t credentials;
	gnutls_pcert_st chain[MAX_CHAIN];
	unsigned chain_count;
	gnutls_privkey_t key;
	bool asks_clients;
};

struct stamp {
	uint64_t device, inode, size, changed_ns;
};

struct tls {
	struct tls_config config;
	struct tls_keys *keys;
	struct stamp stamps[FILES]; /* of the files that @keys are from */
	struct stamp failed[FILES]; /* of those that could not be used, said already */
	uint64_t looked_ns;
	struct metric *reloads, *failures;
};

static void take_stamps(const struct tls_config *config, struct stamp stamps[FILES])
{
	const char *const files[FILES] = { config->cert_file, config->key_file, config->client_ca_file };

	memset(stamps, 0, FILES * sizeof(*stamps));
	for (size_t i = 0; i < FILES; i++) {
		struct stat st;

		if (!files[i] || stat(files[i], &st))
			continue;
		stamps[i] = (struct stamp){
			.device = st.st_dev,
			.inode = st.st_ino,
			.size = (uint64_t)st.st_size,
			.changed_ns = (uint64_t)st.st_mtim.tv_sec * NSEC_PER_SEC + (uint64_t)st.st_mtim.tv_nsec,
		};
	}
}

/* --- files --- */

static void datum_fini(gnutls_datum_t *d)
{
	if (d->data)
		gnutls_memset(d->data, 0, d->size);
	gnutls_free(d->data);
}

static int fail(struct tls_error *err, const char *what, const char *file, int error)
{
	snprintf(err->message, sizeof(err->message), "%s %s: %s", what, file, gnutls_strerror(error));
	return -EINVAL;
}

static int load(const char *file, gnutls_datum_t *ret, struct tls_error *err)
{
	errno = 0;
	if (gnutls_load_file(file, ret) == GNUTLS_E_SUCCESS)
		return 0;
	int error = errno ? errno : EIO;
	snprintf(err->message, sizeof(err->message), "cannot read %s: %s", file, strerror(error));
	return -error;
}

static int read_key(struct tls_keys *k, const struct tls_config *config, const gnutls_datum_t *cert, struct tls_error *err)
{
	const char *file = config->key_file ? config->key_file : config->cert_file;
	AUTO(datum_fini) gnutls_datum_t key = { 0 };
	int error = load(file, &key, err);

	if (error)
		return error;
	error = gnutls_privkey_import_x509_raw(k->key, &key, GNUTLS_X509_FMT_PEM, NULL, 0);
	if (error)
		return fail(err, "no private key in", file, error);
	error = gnutls_certificate_set_x509_key_mem(k->credentials, cert, &key, GNUTLS_X509_FMT_PEM);
	return error < 0 ? fail(err, "cannot use the key in", file, error) : 0;
}

static int read_chain(struct tls_keys *k, const struct tls_config *config, struct tls_error *err)
{
	AUTO(datum_fini) gnutls_datum_t cert = { 0 };
	unsigned count = MAX_CHAIN;
	int error = load(config->cert_file, &cert, err);

	if (error)
		return error;
	error = gnutls_pcert_list_import_x509_raw(k->chain, &count, &cert, GNUTLS_X509_FMT_PEM, 0);
	if (error)
		return fail(err, "no certificate in", config->cert_file, error);
	k->chain_count = count;
	return read_key(k, config, &cert, err);
}

static int read_client_ca(struct tls_keys *k, const struct tls_config *config, struct tls_error *err)
{
	AUTO(datum_fini) gnutls_datum_t ca = { 0 };

	if (!config->client_ca_file)
		return 0;
	k->asks_clients = true;
	int error = load(config->client_ca_file, &ca, err);
	if (error)
		return error;
	error = gnutls_certificate_set_x509_trust_mem(k->credentials, &ca, GNUTLS_X509_FMT_PEM);
	return error <= 0 ? fail(err, "no certificate in", config->client_ca_file,
				 error ? error : GNUTLS_E_NO_CERTIFICATE_FOUND)
			  : 0;
}

static int read_keys(const struct tls_config *config, struct tls_keys **ret, struct tls_error *err)
{
	struct tls_keys *k = calloc(1, sizeof(*k));
	int error = -ENOMEM;

	snprintf(err->message, sizeof(err->message), "%s", strerror(ENOMEM));
	if (k) {
		k->refs = 1;
		if (!gnutls_certificate_allocate_credentials(&k->credentials) && !gnutls_privkey_init(&k->key))
			error = read_chain(k, config, err);
		if (!error)
			error = read_client_ca(k, config, err);
	}
	if (error)
		tls_keys_put(k);
	else
		*ret = k;
	return error;
}

/* --- public --- */

int tls_new(const struct tls_config *config, struct metrics *metrics, struct tls **ret, struct tls_error *err)
{
	struct tls *t = calloc(1, sizeof(*t));
	int error;

	if (!t) {
		snprintf(err->message, sizeof(err->message), "%s", strerror(ENOMEM));
		return -ENOMEM;
	}
	t->config = *config;
	take_stamps(config, t->stamps);
	error = read_keys(config, &t->keys, err);
	if (error) {
		free(t);
		return error;
	}
	t->looked_ns = clock_mono_ns();
	t->reloads = metrics_counter(metrics, "hearth_tls_reloads_total", NULL, "Times that changed TLS files were taken.");
	t->failures = metrics_counter(metrics, "hearth_tls_reload_failures_total", NULL,
				      "Times that changed TLS files could not be used.");
	*ret = t;
	return 0;
}

void tls_free(struct tls *t)
{
	if (t)
		tls_keys_put(t->keys);
	free(t);
}

void tls_refresh(struct tls *t)
{
	uint64_t now_ns = clock_mono_ns();
	struct stamp stamps[FILES];
	struct tls_keys *keys;
	struct tls_error err;

	if (now_ns - t->looked_ns < NSEC_PER_SEC)
		return;
	t->looked_ns = now_ns;
	take_stamps(&t->config, stamps);
	if (!memcmp(stamps, t->stamps, sizeof(stamps)))
		return;
	if (!read_keys(&t->config, &keys, &err)) {
		tls_keys_put(t->keys);
		t->keys = keys;
		memcpy(t->stamps, stamps, sizeof(stamps));
		metric_add(t->reloads, 1);
		log_info("new TLS certificate or key taken from %s", t->config.cert_file);
	} else if (memcmp(stamps, t->failed, sizeof(stamps)) != 0) {
		memcpy(t->failed, stamps, sizeof(stamps));
		metric_add(t->failures, 1);
		log_warn("changed TLS files cannot be used, the old ones stay: %s", err.message);
	}
}

struct tls_keys *tls_keys_get(struct tls *t)
{
	t->keys->refs++;
	return t->keys;
}

void tls_keys_put(struct tls_keys *k)
{
	if (!k || --k->refs)
		return;
	for (unsigned i = 0; i < k->chain_count; i++)
		gnutls_pcert_deinit(&k->chain[i]);
	if (k->key)
		gnutls_privkey_deinit(k->key);
	if (k->credentials)
		gnutls_certificate_free_credentials(k->credentials);
	free(k);
}

gnutls_certificate_credentials_t tls_keys_credentials(const struct tls_keys *k)
{
	return k->credentials;
}

void tls_keys_chain(const struct tls_keys *k, gnutls_pcert_st **certs_ret, unsigned *count_ret, gnutls_privkey_t *key_ret)
{
	*certs_ret = (gnutls_pcert_st *)(uintptr_t)k->chain;
	*count_ret = k->chain_count;
	*key_ret = k->key;
}

bool tls_keys_ask_clients(const struct tls_keys *k)
{
	return k->asks_clients;
}

int tls_keys_verify(const struct tls_keys *k, gnutls_session_t session)
{
	gnutls_typed_vdata_st purpose = { .type = GNUTLS_DT_KEY_PURPOSE_OID,
					  .data = (unsigned char *)(uintptr_t)GNUTLS_KP_TLS_WWW_CLIENT };
	gnutls_x509_crt_t certs[MAX_CHAIN];
	gnutls_x509_trust_list_t trusted;
	unsigned count = 0, imported = 0, status = 0;
	const gnutls_datum_t *shown = gnutls_certificate_get_peers(session, &count);
	int error = shown && count ? 0 : GNUTLS_E_NO_CERTIFICATE_FOUND;

	for (; !error && imported < count && imported < MAX_CHAIN; imported++) {
		error = gnutls_x509_crt_init(&certs[imported]);
		if (error)
			break;
		error = gnutls_x509_crt_import(certs[imported], &shown[imported], GNUTLS_X509_FMT_DER);
	}
	if (!error) {
		gnutls_certificate_get_trust_list(k->credentials, &trusted);
		error = gnutls_x509_trust_list_verify_crt2(trusted, certs, imported, &purpose, 1, 0, &status, NULL);
	}
	for (unsigned i = 0; i < imported; i++)
		gnutls_x509_crt_deinit(certs[i]);
	return error ? error : status ? GNUTLS_E_CERTIFICATE_ERROR : 0;
}

/* --- reading --- */

static size_t bytes_there(int fd)
{
	int there = 0;

	return ioctl(fd, SIOCINQ, &there) ? SIZE_MAX : (size_t)there;
}

/* GnuTLS asks for a header or for the rest of a record, no more. */
static ssize_t pull(gnutls_transport_ptr_t transport, void *data, size_t size)
{
	const int fd = (int)(intptr_t)transport;
	struct pollfd hung = { .fd = fd, .events = POLLRDHUP };

	if (bytes_there(fd) < (size <= WHOLE_BYTES ? size : size / 2)) {
		if (poll(&hung, 1, 0) <= 0) {
			errno = EAGAIN;
			return -1;
		}
		size_t there = bytes_there(fd);
		if (there && there < size) /* what is missing comes no more */
			return 0;
	}
	return recv(fd, data, size, 0);
}

void tls_read_whole(gnutls_session_t session)
{
	gnutls_transport_set_pull_function(session, pull);
}
