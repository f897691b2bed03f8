/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel's types, for libbpf to place the members that BPF programs read (CO-RE). The kernel has some 120,000 types, and
 * libbpf reads all of them anew for each object and looks at all for each type that an object names: 20 to 30 ms. So each
 * object gets a file in memory of those that it can name, with the members that it can name, cut out in one pass of 3 ms.
 * Where that cannot be done libbpf reads the kernel's own, as it does without us. Types of modules are not looked for: no
 * program of ours reads one. Agent's thread.
 */
#ifndef HEARTH_AGENT_KERNEL_KERNEL_TYPES_H
#define HEARTH_AGENT_KERNEL_KERNEL_TYPES_H

#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <stddef.h>

/* Options to open an object with, so that it reads its kernel types where kernel_types_give() puts them; until the process
 * ends. Not to be freed. */
const struct bpf_object_open_opts *kernel_types_opts(void);

/* Cuts out the types for @object, which was opened with these options and is loaded next. */
void kernel_types_give(const struct bpf_object *object);

/*
 * Cuts out of @all, @len bytes in the kernel's form (.BTF), the types that have the name of one in @local, up to a ___, each
 * with the members whose name a member in @local has, and what lies in them by value. *@ret is to be freed with btf__free().
 * 0; -EINVAL: not well formed; -ENOTSUP: a kind that we do not know; -ENOMEM.
 */
int kernel_types_cut(const void *all, size_t len, const struct btf *local, struct btf **ret);

#endif
