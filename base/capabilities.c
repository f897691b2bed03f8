/* SPDX-License-Identifier: Apache-2.0 */
/* By the system calls themselves: the C library has none for them. */
#include "base/capabilities.h"

#include <errno.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"

/* The table's words. */
#define AGENT	 CAPABILITY_AGENT
#define EVENTS	 CAPABILITY_EVENTS
#define FILES	 CAPABILITY_FILES
#define OPENER	 CAPABILITY_OPENER
#define KEEPER	 CAPABILITY_KEEPER
#define NOBODY	 CAPABILITY_NOBODY
#define NEEDED	 CAPABILITY_NEEDED
#define WANTED	 CAPABILITY_WANTED
#define ROOTS	 CAPABILITY_ROOTS
#define BY_ADMIN CAPABILITY_BY_ADMIN
#define SPARE	 CAPABILITY_SPARE

static const struct capability table[] = {
#define CAPABILITY(NAME, KEPT, NEED) { "CAP_" #NAME, CAP_##NAME, KEPT, NEED },
#include "base/capabilities.def"
#undef CAPABILITY
};

const struct capability *capabilities(size_t *count_ret)
{
	*count_ret = ARRAY_LEN(table);
	return table;
}

static int get(struct __user_cap_data_struct have[static _LINUX_CAPABILITY_U32S_3])
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };

	return syscall(SYS_capget, &head, have) ? -errno : 0;
}

uint64_t capabilities_effective(void)
{
	struct __user_cap_data_struct have[_LINUX_CAPABILITY_U32S_3] = { 0 };

	return get(have) ? 0 : (uint64_t)have[1].effective << 32 | have[0].effective;
}

uint64_t capabilities_of(unsigned kept, uint64_t have)
{
	const uint64_t admin = 1ull << CAP_SYS_ADMIN;
	uint64_t set = 0;

	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		const uint64_t bit = 1ull << table[i].number;

		if (!(table[i].kept & kept))
			continue;
		set |= bit;
		if (table[i].need & BY_ADMIN && !(have & bit))
			set |= admin;
	}
	return set & have;
}

int capabilities_keep(uint64_t set)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct have[_LINUX_CAPABILITY_U32S_3] = { 0 }, keep[_LINUX_CAPABILITY_U32S_3] = { 0 };
	int err = get(have);

	if (err)
		return err;
	for (int i = 0; i < _LINUX_CAPABILITY_U32S_3; i++) {
		keep[i].permitted = have[i].permitted & (uint32_t)(set >> 32 * i);
		keep[i].effective = keep[i].permitted;
	}
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) && errno != EINVAL)
		return -errno;
	return syscall(SYS_capset, &head, keep) || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ? -errno : 0;
}
