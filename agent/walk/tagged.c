/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "agent/walk/tagged.h"

/* Is generated code in front of @addr? */
static bool is_behind_code(const struct address_space *as, uint64_t addr)
{
	const struct mapping *m = addr && !(addr >> CPU_USER_BITS) ? address_space_find(as, addr - 1) : NULL;

	return m && m->file && m->file->code;
}

int tagged_find(const struct address_space *as, const struct pending_sample *sample, uint64_t at, uint64_t *behind,
		uint64_t *pc)
{
	enum { TAG = 3, MAX_WORDS = 1 << 16 };

	for (uint32_t i = 0; i < MAX_WORDS; i++, at += sizeof(*pc)) {
		const struct stack_area *area = stack_area_find(sample->areas, sample->area_cnt, at, sizeof(*pc));

		if (!area)
			return -EFAULT;
		memcpy(pc, area->data + (at - area->addr), sizeof(*pc));
		if ((i && *pc & TAG) || !is_behind_code(as, *pc))
			continue;
		*behind = at + sizeof(*pc);
		return 0;
	}
	return -EFAULT;
}

int tagged_apply(const struct address_space *as, const struct pending_sample *sample, const struct row *row,
		 const struct row_regs *in, struct row_regs *out)
{
	uint64_t at = row->cfa_reg == REG_PC ? sample->regs->sched.sp : in->value[row->cfa_reg];

	*out = *in;
	out->known &= CPU_CALLEE_SAVED;
	out->is_exact = false;
	return tagged_find(as, sample, at, &out->value[REG_SP], &out->value[REG_PC]);
}
