/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ids by which the world knows a file: the linker's and Go's out of its ELF notes, and the hash over its head, tail and
 * length that every file has. libelf maps the file and bounds the notes; the hash is read with pread and made by GnuTLS. One
 * thread a call.
 */
#include <endian.h>
#include <errno.h>
#include <gelf.h>
#include <gnutls/crypto.h>
#include <libelf.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/text/hex.h"
#include "symbols/symbols.h"

enum {
	HASHED_BYTES = 4096, /* of head and tail each */
	ID_BYTES = (BUILD_ID_CHARS - 1) / 2,
	NOTE_GO_BUILD_ID = 4,	    /* type of the note of owner "Go" */
	GO_SEARCH_BYTES = 32 << 10, /* where the text form stands: at the start of the code, near that of the file */
};

static void take_go(struct build_ids *ids, const void *text, size_t len)
{
	if (ids->go[0] || len == 0 || len >= sizeof(ids->go) || memchr(text, '\0', len))
		return;
	memcpy(ids->go, text, len);
	ids->go[len] = '\0';
}

static void take_notes(struct build_ids *ids, Elf_Data *data)
{
	size_t at = 0, next, name_at, desc_at;
	GElf_Nhdr nhdr;

	while (data && (next = gelf_getnote(data, at, &nhdr, &name_at, &desc_at)) > 0) {
		const uint8_t *name = (const uint8_t *)data->d_buf + name_at, *desc = (const uint8_t *)data->d_buf + desc_at;

		at = next;
		if (nhdr.n_namesz != 4)
			continue;
		if (nhdr.n_type == NT_GNU_BUILD_ID && memcmp(name, "GNU", 4) == 0 && !ids->gnu[0] &&
		    nhdr.n_descsz < sizeof(ids->gnu) / 2 + 1)
			hex_encode(ids->gnu, desc, nhdr.n_descsz);
		else if (nhdr.n_type == NOTE_GO_BUILD_ID && memcmp(name, "Go\0", 4) == 0)
			take_go(ids, desc, nhdr.n_descsz);
	}
}

/* Notes by segment, as the loader sees them, then by section: a separate debug file has no bytes behind its segments. */
static void read_elf(struct build_ids *ids, int fd)
{
	Elf *elf = elf_version(EV_CURRENT) == EV_NONE ? NULL : elf_begin(fd, ELF_C_READ_MMAP, NULL);
	Elf_Scn *scn = NULL;
	GElf_Phdr phdr;
	GElf_Shdr shdr;
	size_t count;

	if (!elf)
		return;
	if (elf_getphdrnum(elf, &count))
		count = 0;
	for (size_t i = 0; i < count && gelf_getphdr(elf, (int)i, &phdr); i++) {
		if (phdr.p_type == PT_NOTE)
			take_notes(ids, elf_getdata_rawchunk(elf, (int64_t)phdr.p_offset, phdr.p_filesz,
							     phdr.p_align == 8 ? ELF_T_NHDR8 : ELF_T_NHDR));
	}
	while ((!ids->gnu[0] || !ids->go[0]) && (scn = elf_nextscn(elf, scn))) {
		if (gelf_getshdr(scn, &shdr) && shdr.sh_type == SHT_NOTE)
			take_notes(ids, elf_getdata(scn, NULL));
	}
	elf_end(elf);
}

/* \xff Go build ID: "..."\n \xff: how Go marks files where a note will not do. */
static int read_go_text(struct build_ids *ids, int fd, uint64_t size)
{
	static const char before[] = "\xff Go build ID: \"", after[] = "\"\n \xff";
	size_t len = size < GO_SEARCH_BYTES ? (size_t)size : GO_SEARCH_BYTES;
	AUTO_FREE uint8_t *head = malloc(len ? len : 1);
	const uint8_t *id, *end;
	int r;

	if (!head)
		return -ENOMEM;
	r = io_pread_all(fd, head, len, 0);
	if (r)
		return r;
	id = memmem(head, len, before, sizeof(before) - 1);
	if (!id)
		return 0;
	id += sizeof(before) - 1;
	end = memmem(id, len - (size_t)(id - head), after, sizeof(after) - 1);
	if (end)
		take_go(ids, id, (size_t)(end - id));
	return 0;
}

static int read_htlhash(struct build_ids *ids, int fd, uint64_t size)
{
	uint8_t text[2 * HASHED_BYTES + sizeof(uint64_t)], digest[32];
	size_t len = size < HASHED_BYTES ? (size_t)size : HASHED_BYTES;
	uint64_t size_be = htobe64(size);
	int r = io_pread_all(fd, text, len, 0);

	if (r == 0)
		r = io_pread_all(fd, text + len, len, size - len);
	if (r)
		return r;
	memcpy(text + 2 * len, &size_be, sizeof(size_be));
	if (gnutls_hash_fast(GNUTLS_DIG_SHA256, text, 2 * len + sizeof(size_be), digest))
		return -ENOMEM;
	hex_encode(ids->htlhash, digest, sizeof(ids->htlhash) / 2);
	return 0;
}

int build_ids_read(int fd, struct build_ids *ret)
{
	struct stat st;
	int r;

	*ret = (struct build_ids){ 0 };
	if (fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	r = read_htlhash(ret, fd, (uint64_t)st.st_size);
	if (r)
		return r;
	read_elf(ret, fd);
	return ret->go[0] ? 0 : read_go_text(ret, fd, (uint64_t)st.st_size);
}

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
