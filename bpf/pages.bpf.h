/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A look into the page tables of the process that runs: how a page is mapped. Only reads that may fail; a table that is
 * freed meanwhile gives a wrong answer at worst. x86-64. BPF programs only; included after the helpers.
 */
#ifndef HEARTH_BPF_PAGES_H
#define HEARTH_BPF_PAGES_H

#include <stdbool.h>

#include "bpf/kernel.h"

/* The kernel's variables, where it has them: CONFIG_DYNAMIC_MEMORY_LAYOUT, CONFIG_AMD_MEM_ENCRYPT. */
extern const void page_offset_base __ksym __weak;
extern const void sme_me_mask __ksym __weak;

/* Intel SDM volume 3A, 4.5.5, and arch/x86/include/asm/pgtable_types.h, page_64_types.h. */
enum { ENTRY_PRESENT = 1, ENTRY_LEAF = 1 << 7, ENTRY_NO_ACCESS = 1 << 8 };
#define ENTRY_ADDRESS	    0x000ffffffffff000ull
#define DIRECT_MAP_4_LEVELS 0xffff888000000000ull
#define DIRECT_MAP_5_LEVELS 0xff11000000000000ull
#define USER_END_4_LEVELS   (1ull << 47)

enum { PAGE_TABLE_BYTES = 2 << 20 /* what one page table describes, and the size of a huge page */ };

/* The state of the memory around an address. */
enum page_state {
	PAGE_STATE_UNKNOWN,
	PAGE_STATE_NO_TABLE, /* nothing is mapped in its 2 MB: a huge page may come */
	PAGE_STATE_HUGE,     /* a page of 2 MB or more is */
	PAGE_STATE_TABLE,    /* there is a page table, whose entry is told */
};

static __always_inline __u64 entry_of(__u64 table, __u64 addr, __u32 shift)
{
	__u64 entry = 0;

	bpf_probe_read_kernel(&entry, sizeof(entry), (void *)(table + ((addr >> shift) & 511) * sizeof(entry)));
	return entry;
}

/* Finds how @addr is mapped in @mm. With PAGE_STATE_TABLE *@page_entry is its entry there. */
static __always_inline enum page_state page_state_of(struct mm_struct *mm, __u64 addr, __u64 *page_entry)
{
	bool has_5_levels = BPF_CORE_READ(mm, task_size) > USER_END_4_LEVELS;
	__u64 direct_map = has_5_levels ? DIRECT_MAP_5_LEVELS : DIRECT_MAP_4_LEVELS, encrypted = 0;
	__u64 table = (__u64)BPF_CORE_READ(mm, pgd), entry;

	if (&page_offset_base)
		bpf_probe_read_kernel(&direct_map, sizeof(direct_map), &page_offset_base);
	if (&sme_me_mask)
		bpf_probe_read_kernel(&encrypted, sizeof(encrypted), &sme_me_mask);
	if (!table)
		return PAGE_STATE_UNKNOWN;
#pragma clang loop unroll(full)
	for (__u32 shift = 48; shift >= 21; shift -= 9) {
		if (shift == 48 && !has_5_levels)
			continue;
		entry = entry_of(table, addr, shift);
		if (!(entry & ENTRY_PRESENT))
			return PAGE_STATE_NO_TABLE;
		if (entry & ENTRY_LEAF)
			return PAGE_STATE_HUGE;
		table = direct_map + (entry & ENTRY_ADDRESS & ~encrypted);
	}
	*page_entry = entry_of(table, addr, 12);
	return PAGE_STATE_TABLE;
}

#endif
