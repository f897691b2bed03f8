/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the errors of ClickHouse from bytes that may be anything. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/store/clickhouse/click.h"
#include "base/cleanup.h"
#include "base/curl.h"

enum {
	HTTP_OK = 200,
	HTTP_UNAUTHORIZED = 401,
	HTTP_FORBIDDEN = 403,
	HTTP_TOO_LARGE = 413,
	HTTP_SERVER_ERROR = 500,
};

/* Turns ClickHouse's exceptions (ErrorCodes.cpp) into -errno. After any other the request may be tried again: the server may
 * recover. */
static int errno_of(long exception, long status)
{
	static const struct {
		long code;
		int err;
	} known[] = {
		{ 159, -ETIMEDOUT }, { 160, -ETIMEDOUT }, /* TIMEOUT_EXCEEDED, TOO_SLOW */
		{ 241, -ENOMEM },    { 396, -ENOMEM },	  /* MEMORY_LIMIT, TOO_MANY_ROWS_OR_BYTES */
		{ 60, -ENOENT },     { 81, -ENOENT },	  /* UNKNOWN_TABLE, UNKNOWN_DATABASE */
		{ 164, -EACCES },    { 497, -EACCES },	  /* READONLY, ACCESS_DENIED */
		{ 192, -EACCES },    { 193, -EACCES },	  { 194, -EACCES }, { 516, -EACCES }, /* user, password */
		{ 27, -EINVAL },     { 33, -EINVAL },	  { 117, -EINVAL }, { 53, -EINVAL },  /* the rows */
		{ 72, -EINVAL },     { 131, -EINVAL },	  { 128, -EINVAL }, { 62, -EINVAL },
		{ 47, -EINVAL },     { 46, -EINVAL },	  { 16, -EINVAL },  /* the statement */
		{ 43, -EINVAL },     { 427, -EINVAL },	  { 115, -EINVAL }, /* ..., a regular expression */
	};

	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		if (known[i].code == exception)
			return known[i].err;
	if (!exception && (status == HTTP_UNAUTHORIZED || status == HTTP_FORBIDDEN))
		return -EACCES;
	return !exception && status < HTTP_SERVER_ERROR && status != HTTP_TOO_LARGE ? -EINVAL : -EBUSY;
}

/* Copies the first line of @body; all but printable ASCII becomes '?', for it goes to terminals and into JSON. */
static void copy_line(const struct buf *body, char *text, size_t text_bytes)
{
	size_t len = 0;

	for (; len < body->len && len < text_bytes - 1; len++) {
		const uint8_t byte = body->data[len];

		if (!byte || byte == '\r' || byte == '\n')
			break;
		text[len] = byte >= ' ' && byte < 0x7f ? (char)byte : '?';
	}
	text[len] = 0;
}

/* Adds the advice as a whole; @text is cut to make room for it. */
static void add_advice(char *text, size_t text_bytes, const char *advice)
{
	const size_t len = strlen(text), room = text_bytes - 1 - strlen(advice);

	strcpy(text + (len < room ? len : room), advice);
}

int click_read_error(long status, const char *exception, const struct buf *body, enum click_failure *failure_ret, char *text,
		     size_t text_bytes)
{
	static const char advice[] = "; look at the user in the address and at --store-password-file";
	const long code = exception ? strtol(exception, NULL, 10) : 0;
	int err;

	if (status == HTTP_OK && !code)
		return 0;
	copy_line(body, text, text_bytes);
	if (!text[0])
		snprintf(text, text_bytes, "status %ld", status);
	err = errno_of(code, status);
	*failure_ret = err == -EACCES ? CLICK_LOGIN : err == -ETIMEDOUT ? CLICK_TIMEOUT : CLICK_REFUSED;
	if (err == -EACCES)
		add_advice(text, text_bytes, advice);
	return err;
}

/* OpenSSL's X509_V_ERR_... */
static const char *certificate_advice(long certificate)
{
	switch (certificate) {
	case 9:	 /* CERT_NOT_YET_VALID */
	case 10: /* CERT_HAS_EXPIRED */
		return "; renew its certificate, or set this machine's clock";
	case 2:	 /* UNABLE_TO_GET_ISSUER_CERT */
	case 18: /* DEPTH_ZERO_SELF_SIGNED_CERT */
	case 19: /* SELF_SIGNED_CERT_IN_CHAIN */
	case 20: /* UNABLE_TO_GET_ISSUER_CERT_LOCALLY */
	case 21: /* UNABLE_TO_VERIFY_LEAF_SIGNATURE */
		return "; name a file with the certificate (PEM) of who signed it: --store-ca FILE";
	default: /* a name it does not have: curl's own finding */
		return "; call it by a name that its certificate has";
	}
}

static enum click_failure failure_of(unsigned code)
{
	switch (code) {
	case CURLE_PEER_FAILED_VERIFICATION:
	case CURLE_SSL_CONNECT_ERROR:
	case CURLE_SSL_CACERT_BADFILE:
	case CURLE_SSL_CERTPROBLEM:
	case CURLE_SSL_CIPHER:
		return CLICK_TLS;
	case CURLE_GOT_NOTHING:
	case CURLE_PARTIAL_FILE:
	case CURLE_RECV_ERROR:
	case CURLE_SEND_ERROR:
	case CURLE_BAD_CONTENT_ENCODING:
		return CLICK_CUT;
	case CURLE_OPERATION_TIMEDOUT:
		return CLICK_TIMEOUT;
	default:
		return CLICK_UNREACHABLE;
	}
}

int click_read_curl(unsigned code, const char *reason, long certificate, enum click_failure *failure_ret, char *text,
		    size_t text_bytes)
{
	*failure_ret = failure_of(code);
	snprintf(text, text_bytes, "%s%s", *failure_ret == CLICK_CUT ? "the connection ended within the answer: " : "",
		 reason);
	if (code == CURLE_PEER_FAILED_VERIFICATION)
		add_advice(text, text_bytes, certificate_advice(certificate));
	else if (code == CURLE_SSL_CACERT_BADFILE)
		add_advice(text, text_bytes, "; --store-ca is to be a file of certificates (PEM)");
	else if (*failure_ret == CLICK_TLS)
		add_advice(text, text_bytes, "; is that a port for https?");
	return *failure_ret == CLICK_TIMEOUT ? -ETIMEDOUT : -EHOSTUNREACH;
}
