/* SPDX-License-Identifier: Apache-2.0 */
/* /sys/kernel/notes and /sys/module/NAME/notes/.note.gnu.build-id hold the notes of the files as the kernel was given them.
 */
#include "agent/kernel_build_id.h"

#include <elf.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/parse.h"

enum { MAX_NOTES_BYTES = 16 << 10, ID_BYTES = (BUILD_ID_CHARS - 1) / 2 };

bool build_id_of_notes(const uint8_t *notes, size_t len, char out[static BUILD_ID_CHARS])
{
	Elf64_Nhdr note;

	while (len >= sizeof(note)) {
		size_t name_bytes, desc_bytes;

		memcpy(&note, notes, sizeof(note));
		notes += sizeof(note);
		len -= sizeof(note);
		name_bytes = ((size_t)note.n_namesz + 3) & ~(size_t)3;
		desc_bytes = ((size_t)note.n_descsz + 3) & ~(size_t)3;
		if (name_bytes > len || desc_bytes > len - name_bytes)
			return false;
		if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && !memcmp(notes, "GNU", 4) && note.n_descsz &&
		    note.n_descsz <= ID_BYTES) {
			hex_encode(out, notes + name_bytes, note.n_descsz);
			return true;
		}
		notes += name_bytes + desc_bytes;
		len -= name_bytes + desc_bytes;
	}
	return false;
}

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
