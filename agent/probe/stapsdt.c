/* SPDX-License-Identifier: Apache-2.0 */
#include <elf.h>
#include <errno.h>
#include <string.h>

#include "agent/probe/stapsdt.h"
#include "symbols/elf_image.h"

enum { NOTE_TYPE = 3, ADDRESSES_BYTES = 3 * sizeof(uint64_t) };

/* The text at *@at, which is moved behind it; NULL: no NUL ends it before @end. */
static const char *take_text(const uint8_t **at, const uint8_t *end)
{
	const uint8_t *text = *at, *nul = memchr(text, 0, (size_t)(end - text));

	if (!nul)
		return NULL;
	*at = nul + 1;
	return (const char *)text;
}

/* How far addresses of the notes are moved: a linker that moves a file (prelink) moves this section, and the notes tell
 * where it was. */
static uint64_t moved_by(const struct elf_image *image, uint64_t base)
{
	Elf64_Shdr section;

	return base && elf_image_find(image, ".stapsdt.base", &section) ? section.sh_addr - base : 0;
}

/* Reads the content of a note. False: it is broken. */
static bool read_note(const struct elf_image *image, const uint8_t *at, const uint8_t *end, struct stapsdt_note *ret)
{
	uint64_t addresses[3], moved;

	if (end - at < ADDRESSES_BYTES)
		return false;
	memcpy(addresses, at, sizeof(addresses));
	at += sizeof(addresses);
	moved = moved_by(image, addresses[1]);
	ret->addr = addresses[0] + moved;
	ret->semaphore = addresses[2] ? addresses[2] + moved : 0;
	ret->provider = take_text(&at, end);
	ret->name = ret->provider ? take_text(&at, end) : NULL;
	ret->arguments = ret->name ? take_text(&at, end) : NULL;
	return ret->arguments;
}

int stapsdt_each(const struct elf_image *image, void (*fn)(void *arg, const struct stapsdt_note *note), void *arg)
{
	const uint8_t *at, *end;
	Elf64_Shdr section;
	size_t len;
	int count = 0;

	if (!elf_image_find(image, ".note.stapsdt", &section))
		return 0;
	at = elf_image_bytes(image, &section, &len);
	if (!at)
		return -EBADMSG;
	for (end = at + len; end - at >= (ptrdiff_t)sizeof(Elf64_Nhdr);) {
		struct stapsdt_note note;
		uint64_t name, content;
		Elf64_Nhdr head;

		memcpy(&head, at, sizeof(head));
		at += sizeof(head);
		name = ((uint64_t)head.n_namesz + 3) & ~3ull;
		content = ((uint64_t)head.n_descsz + 3) & ~3ull;
		if (name > (uint64_t)(end - at) || head.n_descsz > (uint64_t)(end - at) - name)
			return -EBADMSG;
		if (head.n_type == NOTE_TYPE && head.n_namesz == sizeof("stapsdt") &&
		    !memcmp(at, "stapsdt", sizeof("stapsdt"))) {
			if (!read_note(image, at + name, at + name + head.n_descsz, &note))
				return -EBADMSG;
			fn(arg, &note);
			count++;
		}
		if (content > (uint64_t)(end - at) - name)
			break;
		at += name + content;
	}
	return count;
}
