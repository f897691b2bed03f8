#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Boots a kernel of kernel.sh under QEMU (emulated, no KVM needed) with this machine's root file system in it, read-only below an
# overlay; runs a shell command there as root, prints its output and exits with its status.
#   boot.sh KERNELDIR COMMAND
# Exit status 77: not possible here; 124: the machine did not come up or did not end in time ($HEARTH_VM_SECONDS, 180).
# $HEARTH_VM_CPUS (2), $HEARTH_VM_MB (1024); $HEARTH_VM_ARGS: more of the kernel's arguments (preempt=full); $HEARTH_VM_LOG keeps the whole console. $HEARTH_VM_ROOT: a folder to be the root
# instead, for a kernel of another CPU; the folder the command was started in is seen there too. $HEARTH_VM_OUT: a folder that the
# machine may write to. $HEARTH_VM_INIT: systemd's path in that root, where it is to be the first process and the command a service of its own.
set -eu
[ $# = 2 ] || {
	echo "usage: $0 KERNELDIR COMMAND" >&2
	exit 2
}
kernel=$1 command=$2
mb=${HEARTH_VM_MB:-1024}

skip() {
	echo "$*" >&2
	exit 77
}
case $(cat "$kernel/arch") in
amd64) qemu=(qemu-system-x86_64 -machine q35,memory-backend=memory -cpu "max,cx16=off") console=ttyS0 ;;
arm64) qemu=(qemu-system-aarch64 -machine virt,memory-backend=memory -cpu "max,pauth-impdef=on") console=ttyAMA0 ;;
esac
command -v "${qemu[0]}" >/dev/null || skip "no ${qemu[0]} here"
root=
if [ -n "${HEARTH_VM_ROOT:-}" ]; then
	root="hearth.root=$(readlink -f "$HEARTH_VM_ROOT") hearth.see=$(pwd -P)"
fi
[ -z "${HEARTH_VM_INIT:-}" ] || root="$root hearth.init=$HEARTH_VM_INIT systemd.show_status=0"
[ -z "${HEARTH_VM_OUT:-}" ] || root="$root hearth.out=$(readlink -f "$HEARTH_VM_OUT")"

work=$(mktemp -d)
share_pid=
finish() {
	[ -z "$share_pid" ] || kill "$share_pid" 2>/dev/null || :
	rm -rf "$work"
}
trap finish EXIT

# The daemon that shares the root: a program and package of its own, or, up to QEMU 7.2, QEMU's own with other options (that name
# may be a link to the newer one). The newer one tells the guest what is a mount point here, from some version on unasked. It must
# not: the guest's overlay looks into none of those ("Object is remote"), and the guest mounts its /proc, /sys and /dev right there.
if [ -x /usr/libexec/virtiofsd ]; then
	quiet=
	[[ $(/usr/libexec/virtiofsd --help 2>&1) != *--no-announce-submounts* ]] || quiet=--no-announce-submounts
	/usr/libexec/virtiofsd --socket-path="$work/share" --shared-dir=/ --cache=auto --sandbox=chroot $quiet >"$work/share.log" 2>&1 &
elif [ -x /usr/lib/qemu/virtiofsd ]; then
	/usr/lib/qemu/virtiofsd --socket-path="$work/share" -o source=/ -o cache=auto -o sandbox=chroot >"$work/share.log" 2>&1 &
else
	skip "no virtiofsd here"
fi
share_pid=$!
for _ in $(seq 100); do
	[ ! -S "$work/share" ] || break
	sleep 0.05
done
[ -S "$work/share" ] || {
	cat "$work/share.log" >&2
	echo "virtiofsd did not start" >&2
	exit 124
}

# The command travels in a second archive behind the initramfs.
printf '%s\n' "$command" >"$work/command"
{
	cat "$kernel/initramfs"
	(cd "$work" && echo command | cpio -o -H newc -R 0:0 --quiet | gzip -1)
} >"$work/initramfs"

log=${HEARTH_VM_LOG:-$work/console}
timeout -k 5 "${HEARTH_VM_SECONDS:-180}" "${qemu[@]}" -nodefaults -no-user-config -display none -no-reboot \
	-accel tcg,thread=multi -smp "${HEARTH_VM_CPUS:-2}" -m "$mb" \
	-object memory-backend-memfd,id=memory,size="${mb}M",share=on \
	-chardev socket,id=share,path="$work/share" -device vhost-user-fs-pci,chardev=share,tag=host \
	-kernel "$kernel/vmlinuz" -initrd "$work/initramfs" -append "console=$console quiet panic=-1 $root ${HEARTH_VM_ARGS:-}" -serial stdio \
	</dev/null 2>&1 | tr -d '\r' >"$log" || :
sed -n '/hearth-vm: up$/,/hearth-vm: exit [0-9]*$/{/hearth-vm: up$/d;/hearth-vm: exit [0-9]*$/d;p}' "$log"
status=$(sed -n 's/.*hearth-vm: exit \([0-9]*\)$/\1/p' "$log" | tail -n 1)
[ -n "$status" ] || tail -n 20 "$log" >&2
exit "${status:-124}"
