/* SPDX-License-Identifier: Apache-2.0 */
/* Pods and units out of /proc/PID/cgroup, as the kubelet and systemd make their paths. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "agent/proc/cgroup_names.h"
#include "base/cleanup.h"

#define UID "8a9b1c2d-1111-4222-8333-0123456789ab"
#define ID  "1111111111111111111111111111111111111111111111111111111111111111"

static void test_names(void **state)
{
	static const struct {
		const char *text, *uid, *unit; /* "": none */
	} cases[] = {
		{ "", "", "" },
		{ "0::/", "", "" },
		{ "0::/kubepods/burstable/pod" UID "/" ID "\n", UID, "" },
		{ "12:cpu:/kubepods/pod" UID "/" ID "\n0::/\n", UID, "" },
		{ "0::/kubepods.slice/kubepods-besteffort.slice/"
		  "kubepods-besteffort-pod8a9b1c2d_1111_4222_8333_0123456789ab.slice/"
		  "cri-containerd-" ID ".scope",
		  UID, "cri-containerd-" ID ".scope" },
		{ "0::/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod8a9b1c2d_1111_4222_8333_0123456789ab.slice/"
		  "x",
		  UID, "" },
		{ "0::/docker/" ID "/kubelet/kubepods/pod0123456789abcdef0123456789abcdef/" ID,
		  "0123456789abcdef0123456789abcdef", "" },
		{ "0::/kubepods/podshort/x", "", "" },
		{ "0::/kubepods/pod" UID "0/x", "", "" },
		{ "0::/elsewhere/pod" UID, "", "" },
		{ "0::/kubepods/pod", "", "" },
		{ "0::/kubepods/pod8a9b1c2d-1111-4222-8333-0123456789\xff\xff/x", "", "" },
		{ "0::/system.slice/cron.service\n", "", "cron.service" },
		{ "1:name=systemd:/system.slice/ssh@1.service/sub\n0::/system.slice/ssh@1.service\n", "", "ssh@1.service" },
		{ "0::/user.slice/user-1000.slice/user@1000.service/app.slice/app-shell.service", "", "app-shell.service" },
		{ "0::/user.slice/user-0.slice/session-3.scope", "", "session-3.scope" },
		{ "0::/system.slice/.service/.scope", "", "" },
		{ "no colon/cron.service", "", "" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		size_t len = strlen(cases[i].text);
		AUTO_FREE char *copy = malloc(len + !len);
		char uid[POD_UID_BYTES] = "", unit[UNIT_NAME_BYTES] = "";

		memcpy(copy, cases[i].text, len);
		if (!cgroup_names_pod_uid(copy, len, uid))
			uid[0] = '\0';
		if (!cgroup_names_unit(copy, len, unit))
			unit[0] = '\0';
		if (strcmp(uid, cases[i].uid) != 0 || strcmp(unit, cases[i].unit) != 0)
			fail_msg("'%s': '%s', '%s'", cases[i].text, uid, unit);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_names) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
