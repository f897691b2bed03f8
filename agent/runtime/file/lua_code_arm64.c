/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/runtime/file/lua_code.h"

bool lua_code_loop(const struct elf_image *im, uint64_t call, struct lua_code *ret)
{
	(void)im;
	(void)call;
	(void)ret;
	return false;
}

bool lua_code_vm(const struct elf_image *im, uint64_t call, struct lua_code *ret)
{
	(void)im;
	(void)call;
	(void)ret;
	return false;
}
