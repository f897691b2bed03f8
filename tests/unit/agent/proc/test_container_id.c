/* SPDX-License-Identifier: Apache-2.0 */
/* Paths of control groups as the runtimes write them, and the container each stands for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/proc/container_id.h"
#include "base/cleanup.h"
#include "tests/unit/descriptors.h"

#define A   "6d7d5c336f79fbfae3e76c4a25b2c3805ffa74ab4c6145d4219ec2b92185fb6f"
#define B   "00000000000000000000000000000000deadbeefdeadbeefdeadbeefdeadbeef"
#define ECS "d8f2c9a1b3e44f6aa7c5d2e1f0b98765"
#define POD "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod3f1a6d2e_9a0b_4c1d_8e2f_0123456789ab.slice"

static const struct {
	const char *path, *id; /* NULL: none */
} paths[] = {
	/* docker */
	{ "/docker/" A, A },
	{ "/system.slice/docker-" A ".scope", A },
	{ "/user.slice/user-1000.slice/user@1000.service/user.slice/docker-" A ".scope", A },
	{ "/docker/" A "/docker/" B, B },
	{ "/docker/" A "/system.slice/docker-" B ".scope/init", B },
	{ "/docker/" A "/init.scope", A },
	{ "/docker/" A " (deleted)", A },
	{ "/../" A, A },
	{ "/docker", NULL },
	{ "/system.slice/docker.service", NULL },
	{ "/system.slice/docker.socket", NULL },
	/* containerd */
	{ "/default/" A, A },
	{ "/k8s.io/" A, A },
	{ "/system.slice/nerdctl-" A ".scope", A },
	{ POD "/cri-containerd-" A ".scope", A },
	{ "/system.slice/containerd.service/kubepods-burstable-pod3f1a6d2e.slice:cri-containerd:" A, A },
	{ "/system.slice/containerd.service", NULL },
	/* kubelet's own groups */
	{ "/kubepods/burstable/pod3f1a6d2e-9a0b-4c1d-8e2f-0123456789ab/" A, A },
	{ "/kubepods/pod3f1a6d2e-9a0b-4c1d-8e2f-0123456789ab/" A "/nested", A },
	{ "/kubepods/burstable/pod3f1a6d2e-9a0b-4c1d-8e2f-0123456789ab", NULL },
	{ POD, NULL },
	{ "/docker/" A "/kubelet/kubepods/besteffort/pod3f1a6d2e-9a0b-4c1d-8e2f-0123456789ab/" B, B },
	{ "/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod3f1a.slice/cri-containerd-" A ".scope", A },
	/* CRI-O */
	{ POD "/crio-" A ".scope", A },
	{ POD "/crio-" A ".scope/container", A },
	{ "/kubepods/besteffort/pod3f1a6d2e-9a0b-4c1d-8e2f-0123456789ab/crio-" A, A },
	{ POD "/crio-conmon-" A ".scope", NULL },
	{ "/system.slice/crio.service", NULL },
	/* podman */
	{ "/machine.slice/libpod-" A ".scope", A },
	{ "/machine.slice/libpod-" A ".scope/container", A },
	{ "/machine.slice/libpod-conmon-" A ".scope", NULL },
	{ "/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" A ".scope/container", A },
	{ "/libpod_parent/libpod-" A, A },
	{ "/system.slice/web.service/libpod-payload-" A, A },
	{ "/system.slice/web.service/supervisor", NULL },
	{ "/machine.slice/machine-libpod_pod_" A ".slice/libpod-" B ".scope", B },
	{ "/machine.slice/machine-libpod_pod_" A ".slice", NULL },
	/* systemd-nspawn */
	{ "/machine.slice/systemd-nspawn@debian.service/payload/init.scope", "debian" },
	{ "/machine.slice/systemd-nspawn@my\\x2dbox.service/payload/system.slice/cron.service", "my-box" },
	{ "/machine.slice/systemd-nspawn@debian.service/supervisor", NULL },
	{ "/machine.slice/machine-debian.scope/payload", "debian" },
	{ "/machine.slice/machine-debian.scope", "debian" },
	{ "/machine.slice/machine-debian.scope/supervisor", NULL },
	{ "/machine.slice/machine-debian.scope/payload/system.slice/docker-" A ".scope", A },
	{ "/docker/" A "/supervisor", A },
	{ "/machine.slice/machine-qemu\\x2d1\\x2dvm.scope", NULL },
	/* runc and crun alone, LXC, others */
	{ "/system.slice/runc-web.scope", "web" },
	{ "/user.slice/crun-db-1.scope", "db-1" },
	{ "/lxc/web", "web" },
	{ "/lxc/web/system.slice/ssh.service", "web" },
	{ "/lxc.payload.web/init.scope", "web" },
	{ "/lxc.payload/web", "web" },
	{ "/lxc.monitor.web", NULL },
	{ "/lxc.monitor/web", NULL },
	{ "/ecs/" ECS "/" A, A },
	{ "/ecs/" ECS "/" ECS "-1234567890", ECS "-1234567890" },
	{ "/ecs/" ECS, NULL },
	{ "/garden/6f265890-5165-7fab-6b52-18d1", "6f265890-5165-7fab-6b52-18d1" },
	{ "/mesos/0d4e0f5c-9d0b-4a63-a3dd-aad58cb4ae04", "0d4e0f5c-9d0b-4a63-a3dd-aad58cb4ae04" },
	/* no containers */
	{ "/", NULL },
	{ "", NULL },
	{ "//", NULL },
	{ "/init.scope", NULL },
	{ "/user.slice/user-0.slice/session-2.scope", NULL },
	{ "/system.slice/ssh.service", NULL },
	{ "/system.slice/system-getty.slice/getty@tty1.service", NULL },
	{ "/user.slice/user-1000.slice/user@1000.service/app.slice/app-gnome-firefox-2911.scope", NULL },
	{ "/system.slice/run-r5f1b3cd2a4e84c0c9a7f.scope", NULL },
	{ "/docker/" A "0", NULL },
	{ "/docker/6D7D5C336F79FBFAE3E76C4A25B2C3805FFA74AB4C6145D4219EC2B92185FB6F", NULL },
};

/* In a block of its own, so that reading past its end is seen by the sanitizers. */
static bool id_of(const char *path, char id[static CONTAINER_ID_BYTES])
{
	size_t len = strlen(path);
	AUTO_FREE char *copy = malloc(len ? len : 1);

	assert_non_null(copy);
	memcpy(copy, path, len);
	return container_id_of_path(copy, len, id);
}

static void test_paths(void **state)
{
	char id[CONTAINER_ID_BYTES];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
		bool found = id_of(paths[i].path, id);

		if (found != (paths[i].id != NULL) || (found && strcmp(id, paths[i].id) != 0))
			fail_msg("%s: '%s', not '%s'", paths[i].path, found ? id : "none",
				 paths[i].id ? paths[i].id : "none");
	}
}

static void test_long_names(void **state)
{
	char path[400] = "/lxc/", id[CONTAINER_ID_BYTES];

	(void)state;
	memset(path + 5, 'n', CONTAINER_ID_BYTES - 1);
	assert_true(id_of(path, id));
	assert_int_equal(strlen(id), CONTAINER_ID_BYTES - 1);
	memset(path + 5, 'n', CONTAINER_ID_BYTES);
	assert_false(id_of(path, id));
}

static const struct {
	const char *text, *id;
} files[] = {
	{ "0::/system.slice/docker-" A ".scope\n", A },
	{ "0::/docker/" A, A },
	{ "12:pids:/docker/" A "\n11:cpu,cpuacct:/docker/" A "\n1:name=systemd:/docker/" A
	  "\n0::/system.slice/containerd.service\n",
	  A },
	{ "13:misc:/\n12:pids:/user.slice\n1:name=systemd:/kubepods/besteffort/pod1/" A "\n", A },
	{ "1:name=a:b:/docker/" A "\n", A },
	{ "0::/\n", NULL },
	{ "", NULL },
	{ "\n\n::\n:\n", NULL },
	{ "0::", NULL },
};

static void test_files(void **state)
{
	char id[CONTAINER_ID_BYTES];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		size_t len = strlen(files[i].text);
		AUTO_FREE char *copy = malloc(len ? len : 1);

		assert_non_null(copy);
		memcpy(copy, files[i].text, len);
		if (container_id_of_cgroups(copy, len, id) != (files[i].id != NULL))
			fail_msg("%s", files[i].text);
		if (files[i].id)
			assert_string_equal(id, files[i].id);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_paths),
		cmocka_unit_test(test_long_names),
		cmocka_unit_test(test_files),
	};

	return run_group_of_descriptors(tests, NULL, NULL);
}
