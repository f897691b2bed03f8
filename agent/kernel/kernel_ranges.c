/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <string.h>

#include "agent/kernel/kernel_ranges.h"
#include "base/cleanup.h"

bool kernel_ranges_is_irq(const struct kernel_ranges *ranges, uint64_t addr)
{
	for (int i = 0; i < IRQ_RANGES; i++)
		if (code_range_has(&ranges->irqs[i], addr))
			return true;
	return false;
}

static bool begins_with(const char *name, const char *what)
{
	return !strncmp(name, what, strlen(what));
}

/* The functions of a range are neighbours: it goes on to the first other function. */
static void note(struct code_range *range, uint64_t addr, bool is_in, bool *is_open)
{
	if (is_in && !range->start)
		range->start = addr;
	if (!is_in && *is_open && addr > range->start)
		range->end = addr;
	*is_open = is_in;
}

/*
 * On x86 each interrupt comes in at a piece of assembly of its own (arch/x86/include/asm/idtentry.h), or with FRED in
 * one function (arch/x86/entry/entry_fred.c); elsewhere the functions that handle them have a section.
 */
void kernel_ranges_read(FILE *list, struct kernel_ranges *ret)
{
	struct code_range section = { 0 };
	bool in_entry = false, in_fred = false, in_waking = false;
	char line[512], name[256];
	uint64_t addr;

	*ret = (struct kernel_ranges){ 0 };
	while (fgets(line, sizeof(line), list)) {
		if (sscanf(line, "%" SCNx64 " %*c %255s", &addr, name) != 2)
			continue;
		if (strchr(line, '['))
			break; /* modules, from here on */
		note(&ret->irqs[0], addr,
		     begins_with(name, "asm_common_interrupt") || begins_with(name, "asm_spurious_interrupt") ||
			     begins_with(name, "asm_sysvec_"),
		     &in_entry);
		note(&ret->waking, addr, !strcmp(name, "try_to_wake_up"), &in_waking);
		note(&ret->irqs[1], addr, !strcmp(name, "fred_extint"), &in_fred);
		if (!strcmp(name, "__sched_text_start"))
			ret->scheduler.start = addr;
		else if (!strcmp(name, "__sched_text_end"))
			ret->scheduler.end = addr;
		else if (!strcmp(name, "__irqentry_text_start"))
			section.start = addr;
		else if (!strcmp(name, "__irqentry_text_end"))
			section.end = addr;
	}
	if (!ret->scheduler.start || !ret->scheduler.end)
		ret->scheduler = (struct code_range){ 0 };
	if (!ret->waking.end)
		ret->waking = (struct code_range){ 0 };
	if (!ret->irqs[0].end)
		ret->irqs[0] = section.start ? section : (struct code_range){ 0 };
	if (!ret->irqs[1].end)
		ret->irqs[1] = (struct code_range){ 0 };
}

const struct kernel_ranges *kernel_ranges(void)
{
	static struct kernel_ranges ranges;
	static bool is_read;
	AUTO_FCLOSE FILE *f = is_read ? NULL : fopen("/proc/kallsyms", "re");

	if (f)
		kernel_ranges_read(f, &ranges);
	is_read = true;
	return &ranges;
}
