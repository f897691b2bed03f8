/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a program on a machine whose kernel makes no user namespaces, as far as that program can tell: no_user_namespaces
 * COMMAND... */
#include <errno.h>
#include <sched.h>
#include <seccomp.h>
#include <stdio.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	const struct scmp_arg_cmp asks = SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_NEWUSER, CLONE_NEWUSER);
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);

	if (argc < 2 || !filter || seccomp_attr_set(filter, SCMP_FLTATR_CTL_NNP, 0) ||
	    seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSPC), SCMP_SYS(unshare), 1, asks) ||
	    seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSPC), SCMP_SYS(clone), 1, asks) ||
	    seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0) || seccomp_load(filter)) {
		fprintf(stderr, "no_user_namespaces: cannot filter system calls\n");
		return 1;
	}
	execvp(argv[1], argv + 1);
	perror(argv[1]);
	return 127;
}
