/* SPDX-License-Identifier: Apache-2.0 */
/* The fields of Elf64_Ehdr that are the same in all files that tests make by hand, for the begin of its initializer. */
#ifndef HEARTH_TESTS_ELF_HEAD_H
#define HEARTH_TESTS_ELF_HEAD_H

#include <elf.h>

#define ELF_HEAD(machine)                                                                                                \
	.e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT }, .e_type = ET_DYN, .e_machine = machine, \
	.e_version = EV_CURRENT, .e_ehsize = sizeof(Elf64_Ehdr), .e_phentsize = sizeof(Elf64_Phdr),                      \
	.e_shentsize = sizeof(Elf64_Shdr)

#endif
