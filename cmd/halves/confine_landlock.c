/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Landlock by its system calls: the C library has none for them. Numbers are those of include/uapi/linux/landlock.h; rights
 * that the running kernel does not know yet are left out by its version, and count for the user's id alone there.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cmd/halves/confine.h"
#include "cmd/setup/tcp_ports.h"

enum { RULE_PATH_BENEATH = 1, RULE_NET_PORT = 2, CREATE_VERSION = 1 };

#define RIGHT_EXECUTE	 (1ull << 0)
#define RIGHT_WRITE_FILE (1ull << 1)
#define RIGHT_READ_FILE	 (1ull << 2)
#define RIGHT_READ_DIR	 (1ull << 3)
#define RIGHTS_1	 ((1ull << 13) - 1) /* up to making links */
#define RIGHT_REFER	 (1ull << 13)	    /* version 2 */
#define RIGHT_TRUNCATE	 (1ull << 14)	    /* version 3 */
#define RIGHT_IOCTL_DEV	 (1ull << 15)	    /* version 5 */
#define RIGHTS_OF_FILES	 (RIGHT_EXECUTE | RIGHT_WRITE_FILE | RIGHT_READ_FILE | RIGHT_TRUNCATE | RIGHT_IOCTL_DEV)

#define RIGHT_CONNECT_TCP (1ull << 1) /* version 4; to a port, whatever the address */

#define SCOPE_ABSTRACT_UNIX (1ull << 0) /* version 6, as the next */
#define SCOPE_SIGNAL	    (1ull << 1)

struct ruleset {
	uint64_t fs, net, scoped;
};

struct path_beneath {
	uint64_t allowed;
	int32_t fd;
} __attribute__((packed));

struct net_port {
	uint64_t allowed, port;
};

static const char *const system_paths[] = {
	/* libraries, debug files */
	"/usr", "/lib", "/lib32", "/lib64", "/bin", "/sbin", "/opt", "/nix", "/gnu", "/etc/ld.so.cache", "/etc/alternatives",
	/* names of hosts and users, certificates, the time zone */
	"/etc/hosts", "/etc/host.conf", "/etc/resolv.conf", "/etc/nsswitch.conf", "/etc/gai.conf", "/etc/services",
	"/etc/protocols", "/etc/passwd", "/etc/group", "/etc/ssl", "/etc/pki", "/etc/ca-certificates",
	"/etc/crypto-policies", "/etc/gnutls", "/etc/localtime", "/etc/timezone", "/etc/machine-id", "/run/systemd/resolve",
	"/run/resolvconf", "/run/NetworkManager", "/run/nscd", "/var/lib/ca-certificates",
	/* itself, and the machine */
	"/sys/devices/system/cpu", "/proc/self", "/proc/net", "/dev/urandom", "/dev/random",
	/* what it is busy with (cmd/host) */
	"/proc/stat", "/proc/meminfo", "/proc/diskstats", "/proc/loadavg", "/proc/vmstat", "/proc/swaps",
	"/proc/filesystems", NULL
};

static int allow(int rules, int fd, uint64_t rights)
{
	struct path_beneath beneath = { .allowed = rights, .fd = fd };
	struct stat st;

	if (!fstat(fd, &st) && !S_ISDIR(st.st_mode))
		beneath.allowed &= RIGHTS_OF_FILES;
	return syscall(LANDLOCK_ADD_RULE, rules, RULE_PATH_BENEATH, &beneath, 0) ? -errno : 0;
}

/* A path that is not there needs no rule. */
static int allow_paths(int rules, const char *const *paths, uint64_t rights)
{
	int err = 0;

	for (; paths && *paths && !err; paths++) {
		AUTO_CLOSE int fd = open(*paths, O_PATH | O_CLOEXEC);

		if (fd >= 0)
			err = allow(rules, fd, rights);
	}
	return err;
}

static int allow_ports(int rules, const struct tcp_ports *ports)
{
	int err = 0;

	for (size_t i = 0; i < ports->count && !err; i++) {
		const struct net_port port = { .allowed = RIGHT_CONNECT_TCP, .port = ports->items[i] };

		err = syscall(LANDLOCK_ADD_RULE, rules, RULE_NET_PORT, &port, 0) ? -errno : 0;
	}
	return err;
}

/* Of a struct ruleset, the bytes that a kernel with @version of Landlock knows. */
static size_t ruleset_bytes(long version)
{
	return version >= 6 ? sizeof(struct ruleset) : offsetof(struct ruleset, net) + (version >= 4 ? sizeof(uint64_t) : 0);
}

int confine_by_landlock(const int *writable, size_t count, const char *const *readable, const struct tcp_ports *ports)
{
	static const char *const null[] = { "/dev/null", NULL }, *const etc[] = { "/etc", NULL };
	const long version = syscall(LANDLOCK_CREATE_RULESET, NULL, 0, CREATE_VERSION);
	const uint64_t known = RIGHTS_1 | (version >= 2 ? RIGHT_REFER : 0) | (version >= 3 ? RIGHT_TRUNCATE : 0) |
			       (version >= 5 ? RIGHT_IOCTL_DEV : 0);
	const bool by_port = version >= 4 && !ports->any;
	const struct ruleset handled = { .fs = known,
					 .net = by_port ? RIGHT_CONNECT_TCP : 0,
					 .scoped = version >= 6 ? SCOPE_ABSTRACT_UNIX | SCOPE_SIGNAL : 0 };
	AUTO_CLOSE int rules = -1;
	int err = 0;

	if (version <= 0)
		return -ENOSYS;
	rules = (int)syscall(LANDLOCK_CREATE_RULESET, &handled, ruleset_bytes(version), 0);
	if (rules < 0)
		return -errno;
	for (size_t i = 0; i < count && !err; i++)
		err = allow(rules, writable[i], known & ~RIGHT_EXECUTE & ~RIGHT_IOCTL_DEV);
	if (!err)
		err = allow_paths(rules, system_paths, RIGHT_READ_FILE | RIGHT_READ_DIR);
	if (!err && geteuid() != 0) /* files there are replaced now and then; the user id keeps us from what is root's */
		err = allow_paths(rules, etc, RIGHT_READ_FILE | RIGHT_READ_DIR);
	if (!err)
		err = allow_paths(rules, readable, RIGHT_READ_FILE | RIGHT_READ_DIR);
	if (!err)
		err = allow_paths(rules, null, RIGHT_READ_FILE | RIGHT_WRITE_FILE);
	if (!err && by_port)
		err = allow_ports(rules, ports);
	if (err)
		return err;
	return syscall(LANDLOCK_RESTRICT_SELF, rules, 0) ? -errno : (int)version;
}
