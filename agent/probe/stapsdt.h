/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The events that a program was built with (USDT): notes in .note.stapsdt, as <sys/sdt.h> writes them; the format is that of
 * https://sourceware.org/systemtap/wiki/UserSpaceProbeImplementation. No state; the file is other people's bytes.
 */
#ifndef HEARTH_AGENT_PROBE_STAPSDT_H
#define HEARTH_AGENT_PROBE_STAPSDT_H

#include <stdint.h>

struct elf_image;

struct stapsdt_note {
	uint64_t addr;				 /* ELF address of the event's instruction */
	uint64_t semaphore;			 /* ELF address of the counter that turns it on; 0: it is always on */
	const char *provider, *name, *arguments; /* in the file, each ends with a NUL there */
};

/* Calls @fn for each event of @image. How many there are, or -EBADMSG: the notes are broken, and @fn was called for those
 * before the break. */
int stapsdt_each(const struct elf_image *image, void (*fn)(void *arg, const struct stapsdt_note *note), void *arg);

#endif
