/* SPDX-License-Identifier: Apache-2.0 */
/* The lengths of V8's bytecodes in a file that names no variables. No state. */
#ifndef HEARTH_AGENT_RUNTIME_FILE_V8_BYTECODES_H
#define HEARTH_AGENT_RUNTIME_FILE_V8_BYTECODES_H

#include <stdbool.h>

struct elf_image;
struct v8_layout;

/* Finds the lengths in what @im loads, and sets where they are, and how many. False: they are not there, or several tables
 * look like them and differ. */
bool v8_bytecodes_find(const struct elf_image *im, struct v8_layout *l);

#endif
