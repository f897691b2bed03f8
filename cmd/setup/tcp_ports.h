/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The TCP ports that the options, and the environment, have hearth connect to: of collectors, ClickHouse, debug servers,
 * Kubernetes, clouds, proxies and name servers. Landlock knows ports, not addresses.
 */
#ifndef HEARTH_CMD_SETUP_TCP_PORTS_H
#define HEARTH_CMD_SETUP_TCP_PORTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TCP_PORTS_MAX = 64 };

struct config;

struct tcp_ports {
	uint16_t items[TCP_PORTS_MAX]; /* each once; all begins with { 0 } */
	size_t count;
	bool any; /* there are more than have room, or one of them cannot be told */
};

/* Adds the port of @text, [SCHEME://][USER@]HOST[:PORT][/...]. Without a port it is that of a scheme http, https, grpc,
 * grpcs or socks..., or else @usual. unix:PATH has none. */
void tcp_ports_add(struct tcp_ports *ports, const char *text, uint16_t usual);

/* Adds those of @config and the environment, and the port of name servers. */
void tcp_ports_add_config(struct tcp_ports *ports, const struct config *config);

#endif
