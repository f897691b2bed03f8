/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the guard of servers from options. Main thread, before the servers' thread starts. */
#include "cmd/setup/guard.h"

#include <errno.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>

#include "backend/http/server.h"
#include "backend/http/tls.h"
#include "backend/http/token.h"
#include "base/buf.h"
#include "base/log.h"
#include "base/text/parse.h"
#include "cmd/options/config.h"
#include "cmd/setup/user.h"

void guard_fini(struct guard *g)
{
	tls_free(g->tls);
	tokens_free(g->tokens);
	free(g->uids);
}

/* --http-allow-uid, and the user behind sudo. */
static int set_users(struct guard *g, const struct string_list *names)
{
	struct user sudo;

	g->uids = calloc(names->count + 1, sizeof(*g->uids));
	if (!g->uids)
		return -ENOMEM;
	if (user_behind_sudo(&sudo))
		g->uids[g->users.count++] = sudo.uid;
	g->users.readers = g->users.count;
	for (size_t i = 0; i < names->count; i++) {
		const struct passwd *passwd = getpwnam(names->items[i]);
		uint64_t uid = passwd ? passwd->pw_uid : 0;

		if (!strcmp(names->items[i], "any")) {
			g->users.all = true;
			continue;
		}
		if (!passwd && (parse_u64(names->items[i], &uid) || uid >= UINT32_MAX)) {
			log_error("--http-allow-uid: there is no user '%s'", names->items[i]);
			return -EINVAL;
		}
		g->uids[g->users.count++] = (uint32_t)uid;
	}
	g->users.uids = g->uids;
	return 0;
}

int guard_init(struct guard *g, const struct config *config, struct metrics *metrics)
{
	const struct tls_config files = {
		.cert_file = config->tls_cert,
		.key_file = config->tls_key,
		.client_ca_file = config->tls_client_ca,
	};
	struct tls_error error = { "" };
	int err = set_users(g, &config->allow_uids);

	if (err)
		return err;
	if (!config->tls_cert && (config->tls_key || config->tls_client_ca)) {
		log_error("%s needs --tls-cert", config->tls_key ? "--tls-key" : "--tls-client-ca");
		return -EINVAL;
	}
	g->asks_clients = config->tls_client_ca;
	if (config->tls_cert)
		err = tls_new(&files, metrics, &g->tls, &error);
	if (err) {
		log_error("--tls-cert: %s", error.message);
		return err;
	}
	if (config->token_file)
		err = tokens_new(config->token_file, &g->tokens);
	if (err)
		log_error("--token-file: cannot use %s: %s", config->token_file,
			  err == -ENODATA ? "there is no token in it" : strerror(-err));
	return err;
}

void guard_url(const struct guard *g, const char *scheme, const char *address, uint16_t port, struct buf *out)
{
	const char *colon = strrchr(address, ':');
	int host_len = colon ? (int)(colon - address) : (int)strlen(address);
	size_t begin = out->len;

	buf_printf(out, "%s%s://%.*s:%u", scheme, g->tls ? "s" : "", host_len, address, port);
	if (!is_loopback_address(address) && !(g->tls && (g->tokens || g->asks_clients)))
		log_warn("%s is reachable from other machines, without %s", buf_text(out) + begin,
			 g->tls	     ? "a token (--token-file)"
			 : g->tokens ? "TLS (--tls-cert)"
				     : "TLS or a token");
}
