/* SPDX-License-Identifier: Apache-2.0 */
/* OpenJDK's virtual machine: libjvm, or a program that is linked with it. It exports tables that describe its structures,
 * made for debuggers, in stripped builds too; here only where they are, as they are filled by relocations. */
#include "agent/runtime/file/hotspot_facts.h"
#include "agent/runtime/file/runtime_file.h"
#include "base/cleanup.h"
#include "symbols/elf_image.h"

static const char *const variables[HOTSPOT_FACT_MAX] = {
#define X(name, variable) [HOTSPOT_FACT_##name] = variable,
	HOTSPOT_FACTS(X)
#undef X
};

bool hotspot_file_read(const struct elf_image *im, struct runtime_file *ret)
{
	_Static_assert((int)HOTSPOT_FACT_MAX <= (int)CODE_FACTS, "there is room for all facts");

	for (size_t i = 0; i < ARRAY_LEN(variables); i++) {
		struct runtime_symbol symbol;

		if (runtime_file_symbol(im, variables[i], &symbol))
			return false;
		ret->code.fact[i] = symbol.addr;
	}
	ret->kind = RUNTIME_FILE_CODE;
	ret->code.id = CODE_HOTSPOT;
	return true;
}
