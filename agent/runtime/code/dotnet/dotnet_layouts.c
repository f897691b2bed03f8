/* SPDX-License-Identifier: Apache-2.0 */
/* How the structures of .NET's runtime look, by release. No state. */
#include <errno.h>

#include "agent/runtime/code/dotnet/dotnet_state.h"
#include "base/cleanup.h"

enum { IMAGE_SIGNATURE = 0x5a4d };

/*
 * Measured on 3.0.3, 3.1.23, 3.1.28, 8.0.30, 9.0.1 and 10.0.9; those of 9 and 10 are the ones of their own description for
 * debuggers (DotNetRuntimeContractDescriptor), as far as that has them.
 */
static const struct dotnet_layout layouts[] = {
	{
		.release = 3,
		.has_list = true,
		.has_slots = true,
		.shared_bit = 2,
		.token_bits = 14,
		.module_file = 16,
		.module_ready = 1216,
		.image_flat = 72,
		.image_loaded = 88,
		.ready_functions = 24,
		.ready_methods = 352,
		.dynamic_name = 24,
	},
	{
		.release = 8,
		.has_flags = true,
		.has_slots = true,
		.shared_bit = 1,
		.token_bits = 12,
		.module_file = 272,
		.module_base = 1656,
		.module_ready = 1152,
		.image_flat = 112,
		.image_loaded = 120,
		.ready_functions = 80,
		.ready_methods = 448,
		.dynamic_name = 24,
		.patch_bytes = 32,
	},
	{
		.release = 9,
		.has_flags = true,
		.token_bits = 12,
		.module_base = 288,
		.module_ready = 984,
		.ready_functions = 80,
		.ready_methods = 448,
		.dynamic_name = 32,
		.patch_bytes = 32,
	},
	{
		.release = 10,
		.has_flags = true,
		.is_packed = true,
		.token_bits = 12,
		.module_base = 224,
		.module_ready = 704,
		.ready_functions = 80,
		.ready_methods = 376,
		.dynamic_name = 32,
		.patch_bytes = 32,
	},
};

int dotnet_layout_find(const struct code_facts *facts)
{
	for (uint32_t i = 0; i < ARRAY_LEN(layouts); i++)
		if (layouts[i].release == facts->version >> 16)
			return (int)i;
	return -ENOTSUP;
}

const struct dotnet_layout *dotnet_layout_of(const struct dotnet *s)
{
	return &layouts[s->layout];
}

/* In .NET 8 the address is something else where an image was not compiled ahead, in 3.1 there is none: another way leads
 * there. */
uint64_t dotnet_module_base(const struct dotnet *s, struct code_memory *m, uint64_t module)
{
	enum { FILE_IMAGE = 8, LAYOUT_BASE = 8 };
	const struct dotnet_layout *l = dotnet_layout_of(s);
	uint64_t base = l->module_base ? code_read_u64(m, module + l->module_base) : 0, image, layout;

	if (!l->module_file || (base && code_read_u16(m, base) == IMAGE_SIGNATURE))
		return base;
	image = code_read_u64(m, code_read_u64(m, module + l->module_file) + FILE_IMAGE);
	layout = code_read_u64(m, image + l->image_loaded);
	if (!layout)
		layout = code_read_u64(m, image + l->image_flat);
	return layout ? code_read_u64(m, layout + LAYOUT_BASE) : 0;
}
