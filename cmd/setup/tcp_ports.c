/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/setup/tcp_ports.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "cmd/options/config.h"
#include "cmd/pipeline/pipelines.h"
#include "cmd/setup/enrich_of.h"
#include "cmd/setup/sinks_of.h"
#include "cmd/setup/store_of.h"

enum {
	PORT_DNS = 53,
	PORT_HTTP = 80,
	PORT_HTTPS = 443,
	PORT_PROXY = 1080, /* libcurl's, of a proxy without one */
	PORT_OTLP = 4317,
};

static void add_port(struct tcp_ports *ports, uint64_t port)
{
	for (size_t i = 0; i < ports->count; i++)
		if (ports->items[i] == port)
			return;
	if (!port || port > UINT16_MAX || ports->count == TCP_PORTS_MAX)
		ports->any = true;
	else
		ports->items[ports->count++] = (uint16_t)port;
}

static uint16_t port_of_scheme(const char *scheme, size_t len, uint16_t usual)
{
	static const struct {
		const char *name;
		uint16_t port;
	} schemes[] = { { "http", PORT_HTTP },	   { "https", PORT_HTTPS },  { "grpc", PORT_OTLP },
			{ "grpcs", PORT_OTLP },	   { "socks", PORT_PROXY },  { "socks4", PORT_PROXY },
			{ "socks4a", PORT_PROXY }, { "socks5", PORT_PROXY }, { "socks5h", PORT_PROXY } };

	for (size_t i = 0; i < ARRAY_LEN(schemes); i++)
		if (len == strlen(schemes[i].name) && !strncasecmp(scheme, schemes[i].name, len))
			return schemes[i].port;
	return usual;
}

void tcp_ports_add(struct tcp_ports *ports, const char *text, uint16_t usual)
{
	const char *host = strstr(text, "://"), *end, *user, *colon;
	uint64_t port = usual;
	char *rest;

	if (!strncmp(text, "unix:", strlen("unix:")) || !strncmp(text, "file:", strlen("file:")))
		return;
	if (host)
		port = port_of_scheme(text, (size_t)(host - text), usual);
	host = host ? host + strlen("://") : text;
	end = host + strcspn(host, "/?#");
	user = memrchr(host, '@', (size_t)(end - host));
	host = user ? user + 1 : host;
	colon = memrchr(host, ':', (size_t)(end - host));
	if (host == end) {
		ports->any = true;
		return;
	}
	if (colon && !memchr(colon, ']', (size_t)(end - colon)) && colon + 1 < end) {
		port = strtoull(colon + 1, &rest, 10);
		if (rest != end)
			port = 0;
	}
	add_port(ports, port);
}

/* A proxy that libcurl takes from the environment. */
static void add_proxies(struct tcp_ports *ports, const struct config *config)
{
	static const char *const names[] = { "http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY" };

	if (config->collector_proxy && *config->collector_proxy)
		tcp_ports_add(ports, config->collector_proxy, PORT_PROXY);
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		const char *text = getenv(names[i]);

		if (!text || !*text)
			continue;
		tcp_ports_add(ports, text, PORT_PROXY);
		add_port(ports, PORT_PROXY); /* whatever the scheme: releases of libcurl differ */
	}
}

/* Without a scheme the protocol, an option of each exporter, decides. */
static void add_otlp(struct tcp_ports *ports, const char *text)
{
	tcp_ports_add(ports, text, PORT_OTLP);
	if (strstr(text, "://"))
		return;
	tcp_ports_add(ports, text, PORT_HTTP);
	tcp_ports_add(ports, text, PORT_HTTPS);
}

/* @spec is NAME[=VALUE], as --sink has it. */
static void add_sink(struct tcp_ports *ports, const char *spec)
{
	static const char clickhouse[] = "clickhouse+";
	const char *value = strchr(spec, '=');

	if (!value || (!sinks_is_sender(spec) && !sinks_is_store(spec)))
		return;
	value++;
	if (!strncmp(value, clickhouse, strlen(clickhouse)))
		value += strlen(clickhouse);
	if (sinks_is_sender(spec) || strstr(value, "://"))
		add_otlp(ports, value);
}

static void add_exporter(void *arg, char **sink)
{
	add_sink(arg, *sink);
}

static void add_text(void *arg, char **text)
{
	tcp_ports_add(arg, *text, PORT_PROXY);
}

/* The API server that @config names, or the kubelet. */
static void add_kubernetes(struct tcp_ports *ports, const struct enrich_config *config)
{
	AUTO(buf_fini) struct buf url = BUF_EMPTY;
	int err = enrich_server(config, &url);

	if (err == -ENOENT)
		return;
	if (err || url.failed)
		ports->any = true;
	else
		tcp_ports_add(ports, buf_text(&url), PORT_HTTPS);
}

struct asking {
	struct tcp_ports *ports;
	struct enrich_config config;
};

static void add_kube_config(void *arg, char **text)
{
	struct asking *a = arg;

	a->config.kube_config = *text;
	add_kubernetes(a->ports, &a->config);
}

static void add_kubelet(void *arg, char **text)
{
	struct asking *a = arg;

	a->config.kubelet = *text;
	add_kubernetes(a->ports, &a->config);
}

static void add_pipelines(struct tcp_ports *ports, const struct config *config)
{
	const struct pipelines *p = config->pipelines;
	const char *ecs = getenv("ECS_CONTAINER_METADATA_URI_V4");
	struct asking asking = { ports, enrich_config_of(config) };

	pipelines_each_sink(p, add_exporter, ports);
	pipelines_each_text(p, "collector-proxy", add_text, ports);
	asking.config.pods = true;
	if (pipelines_have_stage(p, STAGE_KUBERNETES) || pipelines_have_stage(p, STAGE_DETECT))
		add_kubernetes(ports, &asking.config);
	asking.config.kubelet = NULL; /* detectors ask the API */
	if (pipelines_have_stage(p, STAGE_DETECT))
		add_kubernetes(ports, &asking.config);
	pipelines_each_text(p, "kube-config", add_kube_config, &asking);
	pipelines_each_text(p, "kubelet", add_kubelet, &asking);
	if (!pipelines_have_stage(p, STAGE_DETECT))
		return;
	add_port(ports, PORT_HTTP); /* 169.254.169.254 */
	if (ecs && *ecs)
		tcp_ports_add(ports, ecs, PORT_HTTP);
}

/* Debug servers may send on to others, by http or https. */
static void add_debug_servers(struct tcp_ports *ports)
{
	const char *urls = getenv("DEBUGINFOD_URLS");
	AUTO_FREE char *copy = urls && *urls ? strdup(urls) : NULL;
	char *state = NULL;

	if (!copy) {
		ports->any |= urls && *urls;
		return;
	}
	for (char *url = strtok_r(copy, " \t\n", &state); url; url = strtok_r(NULL, " \t\n", &state))
		tcp_ports_add(ports, url, PORT_HTTP);
	add_port(ports, PORT_HTTP);
	add_port(ports, PORT_HTTPS);
}

void tcp_ports_add_config(struct tcp_ports *ports, const struct config *config)
{
	const struct enrich_config enrich = enrich_config_of(config);

	add_port(ports, PORT_DNS);
	for (size_t i = 0; i < config->collectors.count; i++)
		add_otlp(ports, config->collectors.items[i]);
	for (size_t i = 0; i < config->sinks.count; i++)
		add_sink(ports, config->sinks.items[i]);
	if (config->store && store_is_clickhouse(config->store))
		add_otlp(ports, strchr(config->store, '+') + 1);
	if (enrich_asks_network(config))
		add_kubernetes(ports, &enrich);
	if (config->pipelines)
		add_pipelines(ports, config);
	add_debug_servers(ports);
	add_proxies(ports, config);
}
