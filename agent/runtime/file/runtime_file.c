/* SPDX-License-Identifier: Apache-2.0 */
#include <elf.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "agent/runtime/file/runtime_file.h"
#include "agent/runtime/file/thread_code.h"
#include "base/cleanup.h"
#include "symbols/elf_image.h"

enum { MAX_SYMBOLS = 1 << 20 }; /* looked at where there is no hash table */

bool runtime_file_table(const struct elf_image *im, const char *symbols_name, const char *names_name,
			struct runtime_table *t)
{
	Elf64_Shdr symbols, names;
	size_t bytes;

	if (!elf_image_find(im, symbols_name, &symbols) || !elf_image_find(im, names_name, &names))
		return false;
	t->symbols = elf_image_bytes(im, &symbols, &bytes);
	t->symbol_cnt = bytes / sizeof(Elf64_Sym);
	t->names = elf_image_bytes(im, &names, &t->names_bytes);
	return t->symbols && t->names;
}

/* Is symbol number @i a defined one called @name? */
static bool is_symbol(const struct runtime_table *t, size_t i, const char *name, struct runtime_symbol *ret)
{
	size_t len = strlen(name) + 1;
	Elf64_Sym sym;

	if (i >= t->symbol_cnt)
		return false;
	memcpy(&sym, t->symbols + i * sizeof(sym), sizeof(sym));
	if (sym.st_name > t->names_bytes || t->names_bytes - sym.st_name < len ||
	    memcmp(t->names + sym.st_name, name, len) != 0 || sym.st_shndx == SHN_UNDEF)
		return false;
	*ret = (struct runtime_symbol){ sym.st_value, sym.st_size };
	return true;
}

/* The hash of .gnu.hash (DJB's, as binutils and glibc have it). */
static uint32_t gnu_hash(const char *name)
{
	uint32_t hash = 5381;

	for (; *name; name++)
		hash = hash * 33 + (uint8_t)*name;
	return hash;
}

static uint32_t word(const uint8_t *bytes, size_t i)
{
	uint32_t value;

	memcpy(&value, bytes + i * sizeof(value), sizeof(value));
	return value;
}

/* Looks @name up in .gnu.hash: {buckets, first symbol, words of the filter, shift}, the filter, buckets, chains. 1: that
 * table cannot be used. */
static int find_hashed(const struct elf_image *im, const struct runtime_table *t, const char *name,
		       struct runtime_symbol *ret)
{
	const uint32_t hash = gnu_hash(name);
	uint32_t buckets, first, filter;
	const uint8_t *bytes;
	Elf64_Shdr section;
	size_t words, i;

	if (!elf_image_find(im, ".gnu.hash", &section))
		return 1;
	bytes = elf_image_bytes(im, &section, &words);
	words /= sizeof(uint32_t);
	if (!bytes || words < 4)
		return 1;
	buckets = word(bytes, 0);
	first = word(bytes, 1);
	filter = word(bytes, 2);
	if (!buckets || filter > words / 2 || buckets > words || 4 + 2 * (size_t)filter + buckets > words)
		return 1;
	i = word(bytes, 4 + 2 * (size_t)filter + hash % buckets);
	for (size_t at = 4 + 2 * (size_t)filter + buckets - first; i >= first && at + i < words; i++) {
		uint32_t other = word(bytes, at + i);

		if ((other | 1) == (hash | 1) && is_symbol(t, i, name, ret))
			return 0;
		if (other & 1)
			break;
	}
	return -ENOENT;
}

int runtime_file_symbol(const struct elf_image *im, const char *name, struct runtime_symbol *ret)
{
	struct runtime_table t;
	int status;

	if (!runtime_file_table(im, ".dynsym", ".dynstr", &t))
		return -ENOENT;
	status = find_hashed(im, &t, name, ret);
	for (size_t i = 0; status == 1 && i < t.symbol_cnt && i < MAX_SYMBOLS; i++)
		status = is_symbol(&t, i, name, ret) ? 0 : 1;
	return status ? -ENOENT : 0;
}

int runtime_file_own_symbol(const struct elf_image *im, const char *name, struct runtime_symbol *ret)
{
	struct runtime_table t;

	if (!runtime_file_table(im, ".symtab", ".strtab", &t))
		return -ENOENT;
	for (size_t i = 0; i < t.symbol_cnt && i < MAX_SYMBOLS; i++)
		if (is_symbol(&t, i, name, ret))
			return 0;
	return -ENOENT;
}

int runtime_file_any_symbol(const struct elf_image *im, const char *name, struct runtime_symbol *ret)
{
	return runtime_file_symbol(im, name, ret) ? runtime_file_own_symbol(im, name, ret) : 0;
}

const uint8_t *runtime_file_bytes(const struct elf_image *im, uint64_t addr, uint64_t len)
{
	return elf_image_loaded(im, addr, len);
}

bool runtime_file_thread(const struct elf_image *im, const char *name, struct thread_locator *ret)
{
	enum { LOOKED_AT = 64 };
	struct runtime_symbol get;
	const uint8_t *code;

	if (runtime_file_any_symbol(im, name, &get))
		return false;
	code = runtime_file_bytes(im, get.addr, LOOKED_AT);
	return code && thread_code_read(im->ehdr.e_machine, code, LOOKED_AT, get.addr, ret);
}

const struct runtime_layout *runtime_layout_find(const struct runtime_layout *table, size_t count, uint32_t version)
{
	for (size_t i = 0; i < count; i++)
		if (table[i].version == version >> 8)
			return &table[i];
	return NULL;
}

/* The header of .eh_frame_hdr in the form that linkers write (Linux Standard Base, "Exception Frames"), and the entries of
 * its table: both sorted and relative to the header. */
struct unwind_head {
	uint8_t version, frame_encoding, count_encoding, table_encoding;
	int32_t frame;
	uint32_t count;
};
struct unwind_entry {
	int32_t function, entry;
};

bool runtime_file_function(const struct elf_image *im, uint64_t addr, uint64_t *start_ret, uint64_t *end_ret)
{
	enum { UDATA4 = 0x03, DATAREL_SDATA4 = 0x3b };
	struct unwind_entry entry;
	struct unwind_head head;
	const uint8_t *bytes;
	Elf64_Shdr section;
	size_t len, from = 0, to;

	if (!elf_image_find(im, ".eh_frame_hdr", &section))
		return false;
	bytes = elf_image_bytes(im, &section, &len);
	if (!bytes || len < sizeof(head))
		return false;
	memcpy(&head, bytes, sizeof(head));
	if (head.version != 1 || head.count_encoding != UDATA4 || head.table_encoding != DATAREL_SDATA4)
		return false;
	to = (len - sizeof(head)) / sizeof(entry);
	if (to > head.count)
		to = head.count;
	while (from < to) { /* the first that begins behind @addr */
		size_t middle = from + (to - from) / 2;

		memcpy(&entry, bytes + sizeof(head) + middle * sizeof(entry), sizeof(entry));
		if (section.sh_addr + (uint64_t)(int64_t)entry.function > addr)
			to = middle;
		else
			from = middle + 1;
	}
	if (!from || sizeof(head) + (from + 1) * sizeof(entry) > len || from >= head.count)
		return false;
	memcpy(&entry, bytes + sizeof(head) + (from - 1) * sizeof(entry), sizeof(entry));
	*start_ret = section.sh_addr + (uint64_t)(int64_t)entry.function;
	memcpy(&entry, bytes + sizeof(head) + from * sizeof(entry), sizeof(entry));
	*end_ret = section.sh_addr + (uint64_t)(int64_t)entry.function;
	return true;
}

uint64_t runtime_file_function_end(const struct elf_image *im, uint64_t addr)
{
	uint64_t start, end;

	return runtime_file_function(im, addr, &start, &end) && start == addr ? end : 0;
}

bool runtime_file_is_sound(const struct runtime_file *f)
{
	return f->kind <= RUNTIME_FILE_CODE && f->way < RUNTIME_WAY_MAX && f->id < RUNTIME_ID_MAX &&
	       f->state.runtime < RUNTIME_ID_MAX && f->code.id < CODE_ID_MAX &&
	       (!f->context.runtime || f->context.runtime == CONTEXT_ID);
}

static void read_linked(const struct elf_image *im, struct runtime_file *ret)
{
	const uint8_t *bytes;
	Elf64_Phdr ph;
	Elf64_Dyn dyn;
	uint32_t i = 0;

	while (elf_image_header(im, i, &ph) && ph.p_type != PT_DYNAMIC)
		i++;
	if (!elf_image_header(im, i, &ph) || ph.p_offset > im->len_bytes || im->len_bytes - ph.p_offset < ph.p_filesz)
		return;
	bytes = im->data + ph.p_offset;
	ret->linked.dynamic = ph.p_vaddr;
	for (uint64_t at = 0; at + sizeof(dyn) <= ph.p_filesz; at += sizeof(dyn)) {
		memcpy(&dyn, bytes + at, sizeof(dyn));
		if (dyn.d_tag == DT_DEBUG)
			ret->linked.debug = ph.p_vaddr + at + offsetof(Elf64_Dyn, d_un);
	}
}

void runtime_file_read(const struct elf_image *im, struct runtime_file *ret)
{
	static bool (*const readers[])(const struct elf_image *im, struct runtime_file *ret) = {
		python_file_read, php_file_read,     perl_file_read, ruby_file_read, lua_file_read_jit,
		lua_file_read,	  hotspot_file_read, v8_file_read,   beam_file_read, libc_file_read,
		dotnet_file_read, gdb_jit_file_read, pcre_file_read
	};

	bool is_read = false;

	for (size_t i = 0; i < ARRAY_LEN(readers) && !is_read; i++) {
		memset(ret, 0, sizeof(*ret));
		is_read = readers[i](im, ret);
	}
	if (!is_read)
		memset(ret, 0, sizeof(*ret));
	read_linked(im, ret);
	context_file_read(im, &ret->context);
	go_heap_file_read(im, ret);
}
