/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of the kernel's functions: from its own list (/proc/kallsyms), and of the code that it makes while we run (BPF
 * programs, their trampolines), which it tells as that comes and goes. The list is read again when modules came or went, and
 * kept for later starts. Agent's thread.
 */
#ifndef HEARTH_AGENT_KERNEL_KERNEL_NAMES_H
#define HEARTH_AGENT_KERNEL_KERNEL_NAMES_H

#include <stdbool.h>
#include <stdint.h>

struct kernel_names;
struct metrics;
struct side_band_record;

/* @dir_fd: the folder where a list is kept (symbols/index/cache.h), duplicated; -1: nowhere. 0 or -ENOMEM. */
int kernel_names_new(int dir_fd, struct metrics *metrics, struct kernel_names **ret);
void kernel_names_free(struct kernel_names *k);

/* Takes a record of SIDE_BAND_KSYMBOL. */
void kernel_names_apply(struct kernel_names *k, const struct side_band_record *r);

/* To be called before kernel frames of samples since @since_ns are named: checks whether modules changed. */
void kernel_names_update(struct kernel_names *k, uint64_t since_ns);

/* A number that changes when the kernel told of code. */
uint32_t kernel_names_changes(const struct kernel_names *k);

/* Identifies the code at @addr now, to be named later: the time since when it is there, if the kernel told of it, else 0.
 * Records and samples are taken in the order of their times, so this is the code that the sample ran. */
uint64_t kernel_names_code(const struct kernel_names *k, uint64_t addr);

/* A number that changes when the list was read again; only kernel_names_update changes it. */
uint32_t kernel_names_version(const struct kernel_names *k);

/* Gives the memory back that names of a kept list took. */
void kernel_names_rest(const struct kernel_names *k);

/* Bytes of memory held, and of the file that is mapped. */
size_t kernel_names_memory_bytes(const struct kernel_names *k);
size_t kernel_names_mapped_bytes(const struct kernel_names *k);

/* The function at @addr, @code as kernel_names_code told; @module_ret "" for the kernel itself, "bpf" for BPF programs.
 * Returns whether there is one. Strings are valid until the next call of any function here. */
bool kernel_names_find(struct kernel_names *k, uint64_t addr, uint64_t code, const char **name_ret, const char **module_ret);

#endif
