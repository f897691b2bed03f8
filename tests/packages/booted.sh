#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The package's unit in a machine that systemd has booted, an emulated one: off after the installation, then enabled and started; it samples, with all
# that the unit forbids; it is reloaded, stopped and starts again by itself when it was killed. By hand, a few minutes.
#   usage: tests/packages/booted.sh BUILD ROOT [KERNEL]      ROOT: a Debian with systemd, as tests/root.sh keeps it in $HEARTH_ROOT; the package of BUILD
#   is installed there first. KERNEL: as tests/vm/kernel.sh has it, 6.12 unless given
set -euo pipefail
build=$(realpath "${1:?usage: booted.sh BUILD ROOT [KERNEL]}")
root=$(realpath "${2:?usage: booted.sh BUILD ROOT [KERNEL]}")
cd "$(dirname "$0")/../.."
[ "$(id -u)" = 0 ] || { echo "needs root"; exit 77; }
kernel=$(tests/vm/kernel.sh "${3:-6.12}")
tests/truth/build.sh "$build/truth" >/dev/null
HEARTH_ROOT=$root tests/root.sh bookworm sh -ec 'export DEBIAN_FRONTEND=noninteractive
	[ -e /lib/systemd/systemd ] && [ -e /usr/bin/curl ] || { apt-get update -q && apt-get install -y -q --no-install-recommends systemd systemd-sysv dbus curl procps; } >/dev/null'
cp "$build"/package/hearth_*_amd64.deb "$root/root/hearth.deb"
chroot "$root" sh -ec 'dpkg --purge hearth 2>/dev/null || :; apt-get install -y -q --no-install-recommends /root/hearth.deb' >/dev/null 2>&1 || {
	echo "the package does not install in $root"
	exit 1
}
# In a machine without a name systemd enables all that is installed.
tr -d - </proc/sys/kernel/random/uuid >"$root/etc/machine-id"
HEARTH_VM_ROOT=$root HEARTH_VM_INIT=/lib/systemd/systemd HEARTH_VM_SECONDS=${HEARTH_VM_SECONDS:-600} tests/vm/boot.sh "$kernel" "
truth=$build/truth"'
fail() {
	echo "FAILED: $*"
	journalctl -b --no-pager -u hearth | tail -n 30
	exit 1
}
until_true() {
	local n=$1
	shift
	while ! "$@" >/dev/null 2>&1; do
		[ $n -gt 0 ] || return 1
		n=$((n - 1))
		sleep 1
	done
}
uname -r
! systemctl is-enabled -q hearth && ! systemctl is-active -q hearth || fail "it is on before it is enabled"
systemctl enable -q --now hearth || fail "it does not start"
answers() { curl -fsS http://127.0.0.1:4318/readyz; }
until_true 120 answers || fail "it is not ready"
"$truth/c_chain" 30 >/dev/null &
has_chain() { curl -fsS "http://127.0.0.1:4318/api/v1/flamegraph?from=first&to=last&query=%7Bprocess.executable.name%3D%22c_chain%22%7D" | grep -q f33; }
until_true 90 has_chain || fail "no stack of a program that runs"
echo "enabled, started, ready, and samples a program to its end"
pid=$(systemctl show -p MainPID --value hearth)
systemctl reload hearth || fail "it is not reloaded"
sleep 3
[ "$(systemctl show -p MainPID --value hearth)" = "$pid" ] || fail "a reload ends it"
kill -KILL "$pid"
until_true 60 sh -c "[ \$(systemctl show -p MainPID --value hearth) != $pid ] && systemctl is-active -q hearth" || fail "it is not started again"
until_true 120 answers || fail "it is not ready after a kill"
has_chain || fail "it has lost its store"
echo "reloaded; killed and started again, with its store"
systemctl stop hearth || fail "it does not stop"
[ "$(systemctl show -p Result --value hearth)" = success ] || fail "it stops with $(systemctl show -p Result --value hearth)"
journalctl -b --no-pager -u hearth | grep -E "samples taken" || fail "it does not say what it took"
! journalctl -b --no-pager -u hearth | grep -iE "refused|not permitted|denied|cannot" || fail "the unit forbids what it needs"
echo "stopped: the unit holds"
'
