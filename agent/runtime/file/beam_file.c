/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The emulator of Erlang with a JIT (beam.smp), which exports its variables for extensions. From release 29 on it exports
 * the functions for extensions alone, and the variables are in .symtab, unless that was stripped. One without these, or
 * without a JIT, is not recognised. Where a scheduler's structures have what a walk needs is in no symbol: a table by
 * release, measured on running programs: stop is the N of the JIT's `mov rsp, [r13 + N]`, the others are the words of
 * erts_aligned_scheduler_data's first scheduler and of its process that fit that one.
 */
#include <string.h>

#include "agent/runtime/file/beam_facts.h"
#include "agent/runtime/file/runtime_file.h"
#include "base/cleanup.h"
#include "symbols/elf_image.h"

static const char *const variables[] = {
#define X(name, variable) [BEAM_FACT_##name] = variable,
	BEAM_FACTS(X)
#undef X
};

/* By release (etp_otp_release), in the order of enum beam_thread (bpf/event.h). */
static const struct row {
	uint8_t release;
	uint16_t offset[BEAM_THREAD_MAX];
} rows[] = {
	{ 25, { 168, 88, 128, 136 } },
	{ 27, { 168, 88, 192, 200 } },
	{ 28, { 168, 88, 192, 200 } }, /* was not at hand: as those around it */
	{ 29, { 168, 88, 192, 200 } }, /* by the debug information of a build, too */
};

/* The number that stands as text at the symbol @name, with up to three parts, as major << 16 | minor << 8 | micro. */
static uint32_t read_version(const struct elf_image *im, const char *name)
{
	uint32_t part[3] = { 0 }, n = 0;
	struct runtime_symbol symbol;
	const uint8_t *text;

	if (runtime_file_any_symbol(im, name, &symbol) || !symbol.size_bytes || symbol.size_bytes > 16)
		return 0;
	text = runtime_file_bytes(im, symbol.addr, symbol.size_bytes);
	for (uint64_t i = 0; text && i < symbol.size_bytes && text[i] && n < ARRAY_LEN(part); i++) {
		if (text[i] == '.')
			n++;
		else if (text[i] >= '0' && text[i] <= '9')
			part[n] = (part[n] * 10 + (text[i] - '0')) & 0xff;
		else
			return 0;
	}
	return part[0] << 16 | part[1] << 8 | part[2];
}

/* The writable segment: the tables of modules are somewhere in it. */
static bool read_data(const struct elf_image *im, struct code_facts *facts)
{
	for (uint32_t i = 0; i < im->ehdr.e_phnum; i++) {
		uint64_t at = im->ehdr.e_phoff + (uint64_t)i * sizeof(Elf64_Phdr);
		Elf64_Phdr ph;

		if (im->ehdr.e_phentsize != sizeof(ph) || at > im->len_bytes || im->len_bytes - at < sizeof(ph))
			return false;
		memcpy(&ph, im->data + at, sizeof(ph));
		if (ph.p_type != PT_LOAD || !(ph.p_flags & PF_W))
			continue;
		facts->fact[BEAM_FACT_DATA_START] = ph.p_vaddr;
		facts->fact[BEAM_FACT_DATA_END] = ph.p_vaddr + ph.p_memsz;
		return true;
	}
	return false;
}

/* The way from a thread to its process. Without it native code that Erlang called is not walked to its caller. */
static void read_thread(const struct elf_image *im, uint32_t release, struct chain_state *state)
{
	struct thread_locator thread;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		if (rows[i].release != release || !rows[i].offset[0] ||
		    !runtime_file_thread(im, "erts_get_scheduler_data", &thread))
			continue;
		state->thread = thread;
		memcpy(state->offset, rows[i].offset, sizeof(rows[i].offset));
	}
}

/*
 * process_main() goes to the scheduler's loop, which is such code, and whose address the JIT's object has: the first
 * variable that it reads, mov OBJECT(%rip),REGISTER, points there. The object's class is not known to the file, and
 * compilers differ in how much of the look-up they put here.
 */
static void read_shared(const struct elf_image *im, struct code_facts *facts)
{
	enum { LOOKED_AT = 64, INSN_BYTES = 7, REX_R = 4, ANY_REGISTER = 0x38 };
	struct runtime_symbol symbol, names;
	const uint8_t *code;
	int32_t number;
	uint64_t at = 0;

	if (runtime_file_any_symbol(im, "process_main", &symbol))
		return;
	code = runtime_file_bytes(im, symbol.addr, LOOKED_AT);
	while (code && at + INSN_BYTES < LOOKED_AT &&
	       ((code[at] & ~REX_R) != 0x48 || code[at + 1] != 0x8b || (code[at + 2] & ~ANY_REGISTER) != 0x05))
		at++;
	if (!code || at + INSN_BYTES >= LOOKED_AT)
		return;
	memcpy(&number, code + at + 3, sizeof(number));
	facts->fact[BEAM_FACT_SHARED] = symbol.addr + at + INSN_BYTES + (uint64_t)(int64_t)number;
	if (!runtime_file_any_symbol(im, "_ZN19BeamGlobalAssembler10labelNamesB5cxx11E", &names))
		facts->fact[BEAM_FACT_SHARED_NAMES] = names.addr;
}

bool beam_file_read(const struct elf_image *im, struct runtime_file *ret)
{
	struct runtime_symbol symbol;

	_Static_assert((int)BEAM_FACT_MAX <= (int)CODE_FACTS, "there is room for all facts");
	if (runtime_file_symbol(im, "enif_make_atom", &symbol)) /* each file is asked: .symtab may be long */
		return false;
	for (size_t i = 0; i < ARRAY_LEN(variables); i++) {
		if (runtime_file_any_symbol(im, variables[i], &symbol))
			return false;
		ret->code.fact[i] = symbol.addr;
	}
	if (!read_data(im, &ret->code))
		return false;
	read_shared(im, &ret->code);
	ret->kind = RUNTIME_FILE_CODE;
	ret->way = runtime_file_symbol(im, variables[0], &symbol) ? RUNTIME_WAY_SYMTAB : RUNTIME_WAY_DYNSYM;
	ret->code.id = CODE_BEAM;
	ret->version = ret->code.version = read_version(im, "etp_otp_release");
	read_thread(im, ret->version >> 16, &ret->state);
	return true;
}
