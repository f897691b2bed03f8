/* SPDX-License-Identifier: Apache-2.0 */
/* /sys/kernel/notes and /sys/module/NAME/notes/.note.gnu.build-id hold the notes of the files as the kernel was given them.
 */
#include "agent/kernel/kernel_build_id.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "symbols/symbols.h"

enum { MAX_NOTES_BYTES = 16 << 10 };

bool kernel_build_id(const char *module, char out[static BUILD_ID_CHARS])
{
	uint8_t notes[MAX_NOTES_BYTES];
	AUTO_FCLOSE FILE *f = NULL;
	char path[128];

	if (!*module)
		snprintf(path, sizeof(path), "/sys/kernel/notes");
	else if (strchr(module, '/') ||
		 snprintf(path, sizeof(path), "/sys/module/%s/notes/.note.gnu.build-id", module) >= (int)sizeof(path))
		return false;
	f = fopen(path, "re");
	return f && build_id_of_notes(notes, fread(notes, 1, sizeof(notes), f), out);
}
