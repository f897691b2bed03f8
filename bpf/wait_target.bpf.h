/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The thing that a thread waits for, by the arguments of the system call that it is in: the file or socket behind a
 * descriptor, or a futex. A file is told by its number alone, which is all that a pipe has: user space finds its name, and
 * knows by the number whether it is that file's. A socket's peer is told here, as user space would have to look through all
 * sockets of its namespace. BPF programs only; included after the helpers, by bpf/offcpu.bpf.c alone.
 */
#ifndef HEARTH_BPF_WAIT_TARGET_H
#define HEARTH_BPF_WAIT_TARGET_H

#include "bpf/kernel.h"
#include "bpf/maps.bpf.h"

/* Of system calls, by number: what their first argument is. User space knows the numbers (agent/kernel/wait_calls.c). */
const volatile __u8 cfg_calls[WAIT_CALLS];

/* include/linux/net.h, include/net/sock.h, include/net/af_unix.h and others; the suffix is dropped by libbpf. */
#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct fdtable {
	unsigned int max_fds;
	struct file **fd;
};

struct files_struct {
	struct fdtable *fdt;
};

struct task_struct___files {
	struct files_struct *files;
};

struct file___target {
	struct inode *f_inode;
	void *private_data;
};

struct super_block___target {
	unsigned long s_magic;
	unsigned int s_dev;
};

struct inode___target {
	unsigned short i_mode;
	struct super_block___target *i_sb;
	unsigned long i_ino;
};

struct in6_addr___kernel {
	__u8 in6_u[16];
};

struct sock_common {
	unsigned short skc_family;
	unsigned char skc_state;
	__u32 skc_daddr, skc_rcv_saddr;
	__u16 skc_dport; /* of the network's byte order */
	__u16 skc_num;
	struct in6_addr___kernel skc_v6_daddr, skc_v6_rcv_saddr;
};

struct sock {
	struct sock_common __sk_common;
	__u16 sk_protocol;
};

struct socket {
	struct sock *sk;
};

struct sockaddr_un___kernel {
	unsigned short sun_family;
	char sun_path[108];
};

struct unix_address {
	int len;
	struct sockaddr_un___kernel name[1];
};

struct unix_sock {
	struct unix_address *addr;
	struct sock *peer;
};
#pragma clang attribute pop

enum {
	PIPE_MAGIC = 0x50495045, /* uapi/linux/magic.h: of pipes without a name */
	MODE_TYPE = 0170000,
	MODE_SOCKET = 0140000, /* uapi/linux/stat.h */
	STATE_LISTEN = 10,     /* TCP_LISTEN: include/net/tcp_states.h */
	FAMILY_UNIX = 1,
	FAMILY_INET = 2,
	FAMILY_INET6 = 10,
	FAMILY_BYTES = 2, /* of a struct sockaddr_un, before the path; also UNIX sockets without a name have these */
};

/* The address of a socket on the file system: the peer's, else its own. */
static __always_inline void find_unix(struct unix_sock *sock, struct wait_target *target)
{
	struct unix_sock *peer;
	struct unix_address *addr;
	__u32 len;

	target->kind = TARGET_UNIX;
	if (!bpf_core_type_exists(struct unix_sock))
		return;
	peer = (void *)BPF_CORE_READ(sock, peer);
	addr = peer ? BPF_CORE_READ(peer, addr) : NULL;
	if (!addr)
		addr = BPF_CORE_READ(sock, addr);
	if (!addr)
		return;
	len = (__u32)BPF_CORE_READ(addr, len);
	if (len <= FAMILY_BYTES)
		return;
	len -= FAMILY_BYTES;
	if (len > TARGET_NAME_BYTES - 1)
		len = TARGET_NAME_BYTES - 1;
	/* the mask is for the verifier: there is room for as much */
	bpf_probe_read_kernel(target->name, masked(len, 63),
			      (void *)addr + bpf_core_field_offset(addr->name) + FAMILY_BYTES);
}

/* The peer of a socket of the network, or where it listens. */
static __always_inline void find_peer(struct sock *sk, struct wait_target *target)
{
	bool listens = BPF_CORE_READ(sk, __sk_common.skc_state) == STATE_LISTEN;
	__u16 port = BPF_CORE_READ(sk, __sk_common.skc_dport);

	target->protocol = BPF_CORE_READ(sk, sk_protocol);
	target->family = BPF_CORE_READ(sk, __sk_common.skc_family);
	if (target->family == FAMILY_UNIX) {
		find_unix((void *)sk, target);
		return;
	}
	if (target->family != FAMILY_INET && target->family != FAMILY_INET6)
		return;
	target->kind = TARGET_INET;
	target->flags = listens ? TARGET_LISTENS : 0;
	target->addr = BPF_CORE_READ(sk, __sk_common.skc_num);
	target->port = listens ? BPF_CORE_READ(sk, __sk_common.skc_num) : (__u16)(port >> 8 | port << 8);
	if (target->family == FAMILY_INET6 && !bpf_core_field_exists(sk->__sk_common.skc_v6_daddr))
		return;
	if (target->family == FAMILY_INET6 && listens)
		BPF_CORE_READ_INTO((struct in6_addr___kernel *)target->name, sk, __sk_common.skc_v6_rcv_saddr);
	else if (target->family == FAMILY_INET6)
		BPF_CORE_READ_INTO((struct in6_addr___kernel *)target->name, sk, __sk_common.skc_v6_daddr);
	else if (listens)
		BPF_CORE_READ_INTO((__u32 *)target->name, sk, __sk_common.skc_rcv_saddr);
	else
		BPF_CORE_READ_INTO((__u32 *)target->name, sk, __sk_common.skc_daddr);
}

static __always_inline struct sock *socket_of(struct file___target *file)
{
	struct socket *socket = BPF_CORE_READ(file, private_data);

	return BPF_CORE_READ(socket, sk);
}

static __always_inline void find_file(struct task_struct *task, __s32 fd, struct wait_target *target)
{
	struct fdtable *fdt = BPF_CORE_READ((struct task_struct___files *)task, files, fdt);
	struct file___target *file = NULL;
	struct inode___target *inode;
	struct file **list;

	target->fd = fd;
	if (fd < 0 || !fdt || (__u32)fd >= BPF_CORE_READ(fdt, max_fds))
		return;
	list = BPF_CORE_READ(fdt, fd);
	bpf_probe_read_kernel(&file, sizeof(file), list + (__u32)fd);
	if (!file)
		return;
	inode = (void *)BPF_CORE_READ(file, f_inode);
	target->kind = TARGET_FILE;
	target->inode = BPF_CORE_READ(inode, i_ino);
	target->dev = BPF_CORE_READ(inode, i_sb, s_dev);
	if (BPF_CORE_READ(inode, i_sb, s_magic) == PIPE_MAGIC)
		target->kind = TARGET_PIPE;
	if ((BPF_CORE_READ(inode, i_mode) & MODE_TYPE) == MODE_SOCKET)
		find_peer(socket_of(file), target);
}

/* Finds what @task waits for in the system call number @syscall. @is_current: its memory can be read. */
static __always_inline void find_target(struct task_struct *task, __s32 syscall, bool is_current, struct wait_target *target)
{
	__u64 args[2];
	__s32 fd = -1;

	__builtin_memset(target, 0, sizeof(*target));
	if (syscall < 0 || syscall >= WAIT_CALLS || !cfg_calls[syscall & (WAIT_CALLS - 1)])
		return;
	cpu_entry_args(task, cfg_task_btf, args);
	switch (cfg_calls[syscall & (WAIT_CALLS - 1)]) {
	case WAIT_CALL_FUTEX:
		target->kind = TARGET_FUTEX;
		target->addr = args[0];
		return;
	case WAIT_CALL_POLL: /* of several descriptors nobody knows which will end it */
		if (!is_current || args[1] != 1 || bpf_probe_read_user(&fd, sizeof(fd), (void *)args[0]))
			return;
		break;
	default:
		fd = (__s32)args[0];
	}
	find_file(task, fd, target);
}

/* The same for the thread that runs, whose sample is in @scratch. A global function, so that the verifier checks it once,
 * alone. */
__noinline int find_target_alone(struct scratch *scratch)
{
	if (scratch)
		find_target(current_task(), scratch->more.wait.syscall, true, &scratch->more.target);
	return 0;
}

#endif
