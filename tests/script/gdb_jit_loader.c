/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that loads relocatable object files into memory, runs what is in them, and registers them for debuggers as
 * LLVM's compilers do: a copy of the file, in which section headers have got their addresses.
 *
 * SECONDS are of processor time.
 *
 *   gdb_jit_loader run SECONDS OBJECT         made_run() of the object all the time
 *   gdb_jit_loader late SECONDS OBJECT        the same, but the object is registered after a third of the time
 *   gdb_jit_loader churn SECONDS OBJECT...    made_again_0() of the first object, made_again_1() of the second, ...: each is
 *                                             loaded where the one before was, runs for its part of the time, and goes
 *
 * Functions of objects that are called by calls_N() have a name with N. x86-64 alone.
 */
#include <elf.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

/* --- the interface: GDB's manual, "JIT Compilation Interface" --- */

struct jit_code_entry {
	struct jit_code_entry *next, *prev;
	const char *symfile_addr;
	uint64_t symfile_size;
};

struct jit_descriptor {
	uint32_t version, action_flag;
	struct jit_code_entry *relevant_entry, *first_entry;
};

enum { JIT_NOACTION, JIT_REGISTER, JIT_UNREGISTER };

void __jit_debug_register_code(void);
extern struct jit_descriptor __jit_debug_descriptor;

__attribute__((noinline, used)) void __jit_debug_register_code(void)
{
	__asm__ volatile("" : : : "memory");
}

struct jit_descriptor __jit_debug_descriptor = { 1, JIT_NOACTION, NULL, NULL };

static void tell(struct jit_code_entry *e, uint32_t action)
{
	__jit_debug_descriptor.relevant_entry = e;
	__jit_debug_descriptor.action_flag = action;
	__jit_debug_register_code();
}

static void enlist(struct jit_code_entry *e)
{
	e->prev = NULL;
	e->next = __jit_debug_descriptor.first_entry;
	if (e->next)
		e->next->prev = e;
	__jit_debug_descriptor.first_entry = e;
	tell(e, JIT_REGISTER);
}

static void delist(struct jit_code_entry *e)
{
	if (e->prev)
		e->prev->next = e->next;
	else
		__jit_debug_descriptor.first_entry = e->next;
	if (e->next)
		e->next->prev = e->prev;
	tell(e, JIT_UNREGISTER);
}

/* --- loading --- */

enum { AREA_BYTES = 1 << 16 };

struct object {
	char *file;
	size_t bytes;
	uint8_t *area;
	struct jit_code_entry entry;
};

static Elf64_Shdr *sections_of(const struct object *o)
{
	return (Elf64_Shdr *)(void *)(o->file + ((Elf64_Ehdr *)(void *)o->file)->e_shoff);
}

static unsigned section_count(const struct object *o)
{
	return ((Elf64_Ehdr *)(void *)o->file)->e_shnum;
}

static void place_sections(struct object *o)
{
	Elf64_Shdr *sh = sections_of(o);
	size_t at = 64;

	for (unsigned i = 0; i < section_count(o); i++) {
		if (!(sh[i].sh_flags & SHF_ALLOC))
			continue;
		at = (at + sh[i].sh_addralign) & ~((size_t)sh[i].sh_addralign - 1);
		if (at + sh[i].sh_size > AREA_BYTES)
			abort();
		sh[i].sh_addr = (uintptr_t)o->area + at;
		if (sh[i].sh_type != SHT_NOBITS)
			memcpy(o->area + at, o->file + sh[i].sh_offset, sh[i].sh_size);
		at += sh[i].sh_size;
	}
}

static uint64_t value_of(const struct object *o, const Elf64_Shdr *symbols, uint64_t number)
{
	const Elf64_Sym *sym = (const Elf64_Sym *)(void *)(o->file + symbols->sh_offset) + number;

	if (sym->st_shndx == SHN_UNDEF || sym->st_shndx >= section_count(o))
		abort();
	return sections_of(o)[sym->st_shndx].sh_addr + sym->st_value;
}

static void relocate(const struct object *o, const Elf64_Shdr *rela)
{
	const Elf64_Shdr *target = &sections_of(o)[rela->sh_info], *symbols = &sections_of(o)[rela->sh_link];

	for (uint64_t i = 0; target->sh_flags & SHF_ALLOC && i < rela->sh_size / sizeof(Elf64_Rela); i++) {
		const Elf64_Rela *r = (const Elf64_Rela *)(void *)(o->file + rela->sh_offset) + i;
		uint64_t at = target->sh_addr + r->r_offset, value;

		value = value_of(o, symbols, ELF64_R_SYM(r->r_info)) + (uint64_t)r->r_addend;
		switch (ELF64_R_TYPE(r->r_info)) {
		case R_X86_64_64:
			memcpy((void *)at, &value, 8);
			break;
		case R_X86_64_PC32:
		case R_X86_64_PLT32:
			value -= at;
			memcpy((void *)at, &value, 4);
			break;
		default:
			abort();
		}
	}
}

static void *function_of(const struct object *o, const char *name)
{
	Elf64_Shdr *sh = sections_of(o);

	for (unsigned i = 0; i < section_count(o); i++) {
		const char *names = o->file + sh[sh[i].sh_link].sh_offset;

		for (uint64_t k = 0; sh[i].sh_type == SHT_SYMTAB && k < sh[i].sh_size / sizeof(Elf64_Sym); k++) {
			const Elf64_Sym *sym = (const Elf64_Sym *)(void *)(o->file + sh[i].sh_offset) + k;

			if (strcmp(names + sym->st_name, name) == 0)
				return (void *)value_of(o, &sh[i], k);
		}
	}
	abort();
}

static void load(struct object *o, const char *path, uint8_t *area)
{
	FILE *f = fopen(path, "rb");

	if (!f || fseek(f, 0, SEEK_END))
		abort();
	o->bytes = (size_t)ftell(f);
	rewind(f);
	o->file = malloc(o->bytes);
	if (!o->file || fread(o->file, 1, o->bytes, f) != o->bytes)
		abort();
	fclose(f);
	o->area = area;
	place_sections(o);
	for (unsigned i = 0; i < section_count(o); i++)
		if (sections_of(o)[i].sh_type == SHT_RELA)
			relocate(o, &sections_of(o)[i]);
	o->entry.symfile_addr = o->file;
	o->entry.symfile_size = o->bytes;
}

static void unload(struct object *o)
{
	delist(&o->entry);
	memset(o->area, 0xcc, AREA_BYTES);
	free(o->file);
}

/* --- running --- */

/* Of processor time: so many samples, however busy the machine is. */
static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static volatile int sink;

__attribute__((noinline)) int calls_back(int (*fn)(int n), int n);
int calls_back(int (*fn)(int n), int n)
{
	sink = fn(n);
	return sink;
}

__attribute__((noinline)) static void call_until(double end, int (*fn)(void *back, int n))
{
	for (int n = 0; now() < end; n++)
		sink = fn((void *)calls_back, n);
}

static void run(const char *path, double seconds_unknown, double seconds, uint8_t *area)
{
	static struct object o;
	double begin = now();
	int (*fn)(void *back, int n);

	load(&o, path, area);
	fn = (int (*)(void *, int))function_of(&o, "made_run");
	call_until(begin + seconds_unknown, fn);
	enlist(&o.entry);
	call_until(begin + seconds, fn);
}

#define CALLS(n)                                                              \
	__attribute__((noinline)) void calls_##n(int (*fn)(int), double end); \
	void calls_##n(int (*fn)(int), double end)                            \
	{                                                                     \
		while (now() < end)                                           \
			sink = fn(n);                                         \
	}
CALLS(0)
CALLS(1)
CALLS(2)
CALLS(3)
CALLS(4)
CALLS(5)

static void churn(char **paths, unsigned count, double seconds, uint8_t *area)
{
	static void (*const calls[])(int (*)(int), double) = { calls_0, calls_1, calls_2, calls_3, calls_4, calls_5 };

	for (unsigned which = 0; which < count && which < 6; which++) {
		struct object *o = calloc(1, sizeof(*o));
		char name[32];

		if (!o)
			abort();
		snprintf(name, sizeof(name), "made_again_%u", which);
		load(o, paths[which], area);
		enlist(&o->entry);
		calls[which]((int (*)(int))function_of(o, name), now() + seconds / count);
		unload(o);
		free(o);
	}
}

int main(int argc, char **argv)
{
	uint8_t *area;
	double seconds;

	if (argc < 4)
		return 2;
	seconds = atof(argv[2]);
	area = mmap(NULL, AREA_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (area == MAP_FAILED)
		return 77;
	puts("ready");
	fflush(stdout);
	if (strcmp(argv[1], "churn") == 0)
		churn(argv + 3, (unsigned)argc - 3, seconds, area);
	else
		run(argv[3], strcmp(argv[1], "late") == 0 ? seconds / 3 : 0, seconds, area);
	return 0;
}
