/* SPDX-License-Identifier: Apache-2.0 */
/* Notes of USDT events: the first byte says whether the rest is a file or the notes of one that is otherwise sound. Every
 * text that is handed out can be read to its end, and none twice. */
#include <string.h>

#include "agent/probe/stapsdt.h"
#include "base/cleanup.h"
#include "symbols/elf_image.h"
#include "tests/fuzz/require.h"
#include "tests/unit/agent/probe/notes_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void on_note(void *arg, const struct stapsdt_note *note)
{
	*(size_t *)arg += strlen(note->provider) + strlen(note->name) + strlen(note->arguments) + 3;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO(buf_fini) struct buf file = BUF_EMPTY;
	struct elf_image image;
	size_t read = 0;

	if (!size)
		return 0;
	if (data[0] & 1)
		notes_file(&file, data + 1, size - 1, data[0] & 2 ? 0x1000 : 0);
	else
		buf_append(&file, data + 1, size - 1);
	if (elf_image_open(file.data, file.len, &image))
		return 0;
	(void)stapsdt_each(&image, on_note, &read);
	REQUIRE(read <= file.len);
	return 0;
}
