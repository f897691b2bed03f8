/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The part of bpf/event.h that is of waits. */
#ifndef HEARTH_BPF_WAIT_EVENT_H
#define HEARTH_BPF_WAIT_EVENT_H

#include <linux/types.h>

/* The states of a thread off a CPU. X(name, text) */
#define WAIT_STATES(X)                                                                    \
	X(SLEEPING, "sleeping")	      /* until something happens, or a signal */          \
	X(UNINTERRUPTIBLE, "blocked") /* in the kernel; mostly for a disk or a lock */    \
	X(STOPPED, "stopped")	      /* by a signal or a debugger, or frozen */          \
	X(PREEMPTED, "preempted")     /* it would run if the CPU had not taken another */ \
	X(WOKEN, "woken")	      /* it was woken, and waits for a CPU */

#define X(name, text) WAIT_##name,
enum wait_state { WAIT_STATES(X) WAIT_STATE_MAX };
#undef X

/* The wait that a sample of time off a CPU is of. */
struct wait_info {
	__u64 since_ns; /* when the thread left the CPU; CLOCK_MONOTONIC */
	__u64 woken_ns; /* when it was woken; 0: not yet, or it was preempted */
	__u32 state;	/* enum wait_state */
	__s32 syscall;	/* number of the system call that the thread is in; -1: in none */
};

/* A wait that a waker has ended. Thread and time are those of the sample of the wait. */
struct wake {
	__u64 woken_ns;
	__u64 value; /* of the wait that ended */
	__u32 tid;   /* in the pid namespace of cfg_pid_ns */
	__u32 pad;
};

/* Calls by what their first argument is: nothing that is waited for, a descriptor, a list of struct pollfd, a futex. */
enum wait_call { WAIT_CALL_NONE, WAIT_CALL_FD, WAIT_CALL_POLL, WAIT_CALL_FUTEX };

enum { WAIT_CALLS = 512 /* a power of two */, TARGET_NAME_BYTES = 48 };

/* The thing that a system call waits for, by the call's own arguments. */
enum target_kind {
	TARGET_NONE,
	TARGET_FILE,  /* a descriptor of any file */
	TARGET_INET,  /* a socket; name: 4 or 16 bytes of address, of the peer, or of what listens */
	TARGET_UNIX,  /* a socket; name: path of the peer, or of its own; begins with 0: an abstract one; may be empty */
	TARGET_FUTEX, /* addr */
	TARGET_PIPE,  /* one without a name: inode */
};

enum target_flags { TARGET_LISTENS = 1 };

struct wait_target {
	__u64 addr;  /* of a futex; of TARGET_INET the socket's own port */
	__u64 inode; /* number of the file's */
	__u32 dev;   /* of its file system: major << 20 | minor */
	__s32 fd;
	__u8 kind;    /* enum target_kind */
	__u8 flags;   /* enum target_flags */
	__u16 family; /* of a socket's addresses */
	__u16 port;
	__u16 protocol; /* IPPROTO_TCP, ... */
	__u8 name[TARGET_NAME_BYTES];
};

#endif
