/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a variable is that each thread has its own of, by the code of a small function that returns it: the variable has no
 * symbol in a stripped file, the function is exported. No state.
 */
#ifndef HEARTH_AGENT_RUNTIME_FILE_THREAD_CODE_H
#define HEARTH_AGENT_RUNTIME_FILE_THREAD_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/event.h"

/*
 * Reads the @len bytes @code, which begin at the virtual address @addr: the start of a function that returns a variable of
 * the thread's. Knows the ways that the ELF TLS ABI has (local and initial exec, general and local dynamic, descriptors), as
 * gcc and clang write them for x86-64 and arm64; @machine is e_machine. A function may also return the value of a pthread
 * key that is in a variable of its own. Fills @ret's place, offset and addr. False: that is not what the code does.
 */
bool thread_code_read(uint16_t machine, const uint8_t *code, size_t len, uint64_t addr, struct thread_locator *ret);

#endif
