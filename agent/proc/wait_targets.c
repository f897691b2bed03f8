/* SPDX-License-Identifier: Apache-2.0 */
#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/proc/proc_reader.h"
#include "agent/proc/proc_root.h"
#include "agent/proc/wait_targets.h"
#include "base/cleanup.h"
#include "base/map.h"
#include "base/metrics.h"

enum {
	LOOK_UPS = 2000,      /* of an interval: each takes some 10 us */
	CLIENT_PORTS = 32768, /* from here on the kernel gives ports to clients (net.ipv4.ip_local_port_range) */
};

/* A name that was looked up. */
struct known {
	uint64_t inode;
	uint32_t pid;
	int32_t fd;
	char text[];
};

struct wait_targets {
	struct map known; /* key() -> struct known *, owned */
	size_t known_bytes;
	uint32_t look_ups;
	struct metric *looked_up, *refused, *gone;
	char text[WAIT_TARGET_BYTES];
};

int wait_targets_new(struct metrics *metrics, struct wait_targets **ret)
{
	struct wait_targets *w = calloc(1, sizeof(*w));

	if (!w)
		return -ENOMEM;
	w->looked_up = metrics_counter(metrics, "hearth_wait_files_looked_up_total", NULL,
				       "Descriptors whose files were looked up because a thread waited for them.");
	w->refused = metrics_counter(metrics, "hearth_wait_files_not_looked_up_total", NULL,
				     "The same beyond the number that an interval may look up: they have no name.");
	w->gone = metrics_counter(metrics, "hearth_wait_files_gone_total", NULL,
				  "The same that had no such file any more: they have no name.");
	*ret = w;
	return 0;
}

static void *drop(void *arg, void *value)
{
	(void)arg;
	free(value);
	return NULL;
}

void wait_targets_begin(struct wait_targets *w)
{
	map_sweep(&w->known, drop, NULL);
	w->known_bytes = 0;
	w->look_ups = 0;
}

void wait_targets_free(struct wait_targets *w)
{
	if (!w)
		return;
	wait_targets_begin(w);
	map_fini(&w->known);
	free(w);
}

size_t wait_targets_memory_bytes(const struct wait_targets *w)
{
	return sizeof(*w) + map_memory_bytes(&w->known) + w->known_bytes;
}

/* --- files --- */

/* The inode number of the file that the descriptor has now; 0: it has none. Kernels before 5.14 do not tell: then the
 * number that was asked for is believed. */
static uint64_t inode_of(uint32_t pid, const struct wait_target *target)
{
	char name[32], path[PROC_PATH_BYTES], text[512], *line;
	AUTO_CLOSE int fd = -1;
	ssize_t n;

	snprintf(name, sizeof(name), "fdinfo/%d", target->fd);
	fd = open(proc_path(path, pid, name), O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (n < 0)
		return 0;
	text[n] = '\0';
	line = strstr(text, "\nino:");
	return line ? strtoull(line + 5, NULL, 10) : target->inode;
}

/* The path behind the descriptor, if it is still that file. */
static bool read_link(uint32_t pid, const struct wait_target *target, char ret[WAIT_TARGET_BYTES])
{
	char name[32];

	if (inode_of(pid, target) != target->inode)
		return false;
	snprintf(name, sizeof(name), "fd/%d", target->fd);
	return proc_read_link(pid, pid, name, false, ret, WAIT_TARGET_BYTES) > 0;
}

static uint64_t key(uint32_t pid, const struct wait_target *target)
{
	return ((uint64_t)pid << 32 ^ target->inode) * 31 + (uint32_t)target->fd;
}

static void keep(struct wait_targets *w, uint32_t pid, const struct wait_target *target)
{
	size_t bytes = sizeof(struct known) + strlen(w->text) + 1;
	struct known *known = malloc(bytes);

	if (!known)
		return;
	*known = (struct known){ .inode = target->inode, .pid = pid, .fd = target->fd };
	memcpy(known->text, w->text, bytes - sizeof(*known));
	free(map_del(&w->known, key(pid, target)));
	if (map_put(&w->known, key(pid, target), known))
		free(known);
	else
		w->known_bytes += bytes;
}

static const char *name_file(struct wait_targets *w, uint32_t pid, const struct wait_target *target)
{
	const struct known *known = map_get(&w->known, key(pid, target));

	if (known && known->inode == target->inode && known->pid == pid && known->fd == target->fd)
		return known->text;
	if (!pid)
		return "";
	if (w->look_ups >= LOOK_UPS) {
		metric_add(w->refused, 1);
		return "[file not looked up]";
	}
	w->look_ups++;
	metric_add(w->looked_up, 1);
	if (!read_link(pid, target, w->text)) {
		metric_add(w->gone, 1);
		return "[file closed]";
	}
	keep(w, pid, target);
	return w->text;
}

/* --- sockets --- */

static const char *protocol_name(uint16_t protocol, char room[static 16])
{
	switch (protocol) {
	case IPPROTO_TCP:
		return "tcp";
	case IPPROTO_UDP:
		return "udp";
	case IPPROTO_ICMP:
		return "icmp";
	case 262: /* IPPROTO_MPTCP */
		return "mptcp";
	default:
		snprintf(room, 16, "ip %u", protocol);
		return room;
	}
}

/* A server's clients are told without their ports, which say nothing. */
static const char *name_inet(struct wait_targets *w, const struct wait_target *target)
{
	static const uint8_t nobody[16];
	const char *listens = target->flags & TARGET_LISTENS ? " listening" : "";
	size_t len = target->family == AF_INET ? 4 : 16;
	char address[INET6_ADDRSTRLEN], room[16];
	const char *protocol = protocol_name(target->protocol, room);

	if (!memcmp(target->name, nobody, len)) { /* any address, or no peer */
		if (target->port)
			snprintf(w->text, sizeof(w->text), "%s%s *:%u", protocol, listens, target->port);
		else
			snprintf(w->text, sizeof(w->text), "%s%s", protocol, listens);
		return w->text;
	}
	if (!inet_ntop(target->family, target->name, address, sizeof(address)))
		return "";
	if (!*listens && target->port >= CLIENT_PORTS && target->addr && target->addr < CLIENT_PORTS) {
		snprintf(w->text, sizeof(w->text), "%s :%u client %s", protocol, (unsigned)target->addr, address);
		return w->text;
	}
	snprintf(w->text, sizeof(w->text), len == 4 ? "%s%s %s:%u" : "%s%s [%s]:%u", protocol, listens, address,
		 target->port);
	return w->text;
}

/* The path comes out of another process's memory, by way of the kernel: what cannot be printed becomes '?'. */
static const char *name_unix(struct wait_targets *w, const struct wait_target *target)
{
	bool is_abstract = !target->name[0];
	const char *name = (const char *)target->name + is_abstract;
	size_t len = strnlen(name, TARGET_NAME_BYTES - is_abstract), at;

	if (!len)
		return "unix";
	at = (size_t)snprintf(w->text, sizeof(w->text), "unix %s%.*s", is_abstract ? "@" : "", (int)len, name);
	for (size_t i = at - len; i < at; i++)
		if (!isprint((unsigned char)w->text[i]))
			w->text[i] = '?';
	return w->text;
}

const char *wait_targets_name(struct wait_targets *w, uint32_t pid, const struct wait_target *target)
{
	switch (target->kind) {
	case TARGET_FILE:
		return name_file(w, pid, target);
	case TARGET_INET:
		return name_inet(w, target);
	case TARGET_UNIX:
		return name_unix(w, target);
	case TARGET_PIPE:
		snprintf(w->text, sizeof(w->text), "pipe:[%" PRIu64 "]", (uint64_t)target->inode);
		return w->text;
	case TARGET_FUTEX:
		snprintf(w->text, sizeof(w->text), "futex 0x%" PRIx64, (uint64_t)target->addr);
		return w->text;
	default:
		return "";
	}
}
