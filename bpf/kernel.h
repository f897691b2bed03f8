/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The few kernel types the programs look into. CO-RE finds the running kernel's offsets by name, so only the fields that are
 * read stand here. The suffix after ___ is dropped by libbpf: it keeps our names apart from the headers'.
 */
#ifndef HEARTH_BPF_KERNEL_H
#define HEARTH_BPF_KERNEL_H

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct super_block {
	unsigned int s_dev; /* major << 20 | minor */
};

struct inode {
	struct super_block *i_sb;
	unsigned long i_ino;
};

struct file {
	struct inode *f_inode;
};

/* The memory of a process where its threads step over probed instructions, and to which functions with a probe at their end
 * return (kernel/events/uprobes.c). */
struct xol_area {
	unsigned long vaddr;
};

struct uprobes_state {
	struct xol_area *xol_area;
};

/* A call whose return address was taken, the innermost first. */
struct return_instance {
	unsigned long stack; /* sp as the function began */
	unsigned long orig_ret_vaddr;
	struct return_instance *next;
};

struct uprobe_task {
	struct return_instance *return_instances;
	struct uprobe *active_uprobe; /* whose instruction the thread steps over, a copy of it ... */
	unsigned long vaddr;	      /* ... which stands here ... */
	unsigned long xol_vaddr;      /* ... at the copy's address */
};

struct mm_struct {
	struct uprobes_state uprobes_state; /* with CONFIG_UPROBES */
	unsigned long start_code;	    /* the program's first executable segment */
	unsigned long start_stack;	    /* sp as the program began */
	unsigned long env_start, env_end;
	struct file *exe_file;
	void *pgd;		 /* the highest page table */
	unsigned long task_size; /* the end of user space */
};

struct vm_area_struct {
	unsigned long vm_end;
};

struct thread_struct {
	unsigned long fsbase; /* x86-64 */
	struct {
		unsigned long tp_value;
	} uw; /* arm64 */
};

struct ns_common {
	unsigned int inum;
};

struct pid_namespace {
	struct ns_common ns;
};

struct upid {
	int nr;
	struct pid_namespace *ns;
};

struct pid {
	unsigned int level;	/* depth of the namespace it was made in; 0: the initial one */
	struct upid numbers[1]; /* one for each level */
};

/* Control groups. */
struct kernfs_node {
	unsigned long long id; /* 64 bits, and the inode number, since 5.5 */
};

struct cgroup;

struct cgroup_subsys_state {
	struct cgroup *cgroup;
	struct cgroup_subsys_state *parent;
};

struct cgroup {
	struct cgroup_subsys_state self;
	struct kernfs_node *kn;
};

struct css_set {
	struct cgroup_subsys_state *subsys[1]; /* one for each controller */
	struct cgroup *dfl_cgrp;	       /* of version 2 */
};

struct task_struct {
	struct uprobe_task *utask; /* with CONFIG_UPROBES */
	unsigned int flags;
	struct mm_struct *mm;
	int pid;
	int tgid;
	unsigned in_execve : 1;
	struct task_struct *group_leader;
	struct task_struct *real_parent;
	struct pid *thread_pid;		   /* 4.19 */
	unsigned long long start_boottime; /* 5.5 */
	unsigned long long self_exec_id;   /* 64 bits since 5.7 */
	void *stack;
	unsigned long sas_ss_sp; /* the thread's alternate signal stack */
	unsigned long sas_ss_size;
	char comm[16];
	int pagefault_disabled;
	struct css_set *cgroups;
	struct thread_struct thread;
};

/* The state of a thread, before and since 5.14. */
struct task_struct___old {
	long state;
};

struct task_struct___new {
	unsigned int __state;
};

struct seq_file;

struct bpf_iter_meta {
	struct seq_file *seq;
};

struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
};

#pragma clang attribute pop

/* include/linux/sched.h */
enum { TASK_EXITING = 0x4, TASK_IO_WORKER = 0x10, TASK_KTHREAD = 0x200000 };

/* The states of a thread (the same file), the same in all kernels from 5.10 to 7.2 but for STATE_FROZEN, since 6.1. */
enum {
	STATE_INTERRUPTIBLE = 1,
	STATE_UNINTERRUPTIBLE = 2,
	STATE_STOPPED = 4 | 8 | 0x40, /* by a signal, by a tracer, parked */
	STATE_DEAD = 0x80,
	STATE_IDLE = 0x400, /* with STATE_UNINTERRUPTIBLE: waits for work */
	STATE_FROZEN = 0x8000,
};

enum { MAX_PID_LEVEL = 32 }; /* include/linux/pid_namespace.h */

enum { CLONE_THREAD_FLAG = 0x10000 }; /* uapi/linux/sched.h */

#endif
