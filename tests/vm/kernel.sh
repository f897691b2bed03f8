#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Fetches one of Debian's kernels for virtual machines and makes the initramfs that boot.sh needs. Prints the folder, which then
# holds vmlinuz, release, arch and initramfs; what is there already is not fetched again.
#   kernel.sh 5.10|6.1|6.12|7.2 [amd64|arm64]
# Exit status 77: not possible here. See apt.sh for where packages come from.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
. "$here/apt.sh"

arch=${2:-amd64}
case ${1:-} in
5.10) suite=bullseye ;;
6.1) suite=bookworm ;;
6.12) suite=trixie ;;
7.2) suite=trixie-backports ;;
*)
	echo "usage: $0 5.10|6.1|6.12|7.2 [amd64|arm64]" >&2
	exit 2
	;;
esac
version=$1
cache=${HEARTH_VM_CACHE:-/var/cache/hearth-vm}
out=$cache/$version-$arch
# in the order in which they need each other; a kernel that has one built in lacks the file
modules="virtio virtio_ring virtio_pci_legacy_dev virtio_pci_modern_dev virtio_pci fuse virtiofs overlay"

command -v cpio >/dev/null || skip "no cpio here"

# The newest of the version; since 7.x its files are split over several packages.
fetch() {
	local release packages=()
	apt_open "$suite" "$arch"
	release=$(apt-cache "${apt_options[@]}" pkgnames linux-image- |
		sed -n "s/^linux-image-\(${version//./\\.}\.[0-9].*-cloud-$arch\)\$/\1/p" | sort -V | tail -n 1)
	[ -n "$release" ] || skip "$suite has no linux-image-$version.*-cloud-$arch"
	for part in image binary modules; do
		[ -z "$(apt-cache "${apt_options[@]}" pkgnames "linux-$part-$release")" ] || packages+=("linux-$part-$release")
	done
	apt_unpack "$work/tree" "${packages[@]}"
}

# unpack_module NAME: appends it to the initramfs as a plain .ko, numbered by its turn
turn=10
unpack_module() {
	local file to
	file=$(find "$work/tree" -name "$1.ko*" | head -n 1)
	to=$work/root/modules/$turn-$1.ko
	turn=$((turn + 1))
	case $file in
	'') ;;
	*.xz) xz -dc "$file" >"$to" ;;
	*.ko) cp "$file" "$to" ;;
	*)
		echo "cannot unpack $file" >&2
		exit 1
		;;
	esac
}

# The guest's own busybox: this machine's, or the one of the kernel's suite.
find_busybox() {
	if [ "$arch" = "$(dpkg --print-architecture)" ]; then
		command -v busybox || skip "no busybox here"
	else
		apt_open bookworm "$arch"
		apt_unpack "$work/busybox" busybox-static
			find "$work/busybox" -name busybox -type f -perm /111 | grep -m 1 /bin/
	fi
}

if [ ! -e "$out/initramfs" ] || [ "$here/init" -nt "$out/initramfs" ] || [ "$here/kernel.sh" -nt "$out/initramfs" ]; then
	mkdir -p "$cache"
	work=$(mktemp -d "$cache/work.XXXXXX")
	trap 'rm -rf "$work"' EXIT
	fetch
	mkdir -p "$work"/root/{bin,proc,sys,dev,host,overlay,newroot,modules} "$work/out"
	busybox=$(find_busybox)
	cp "$busybox" "$work/root/bin/"
	cp "$here/init" "$work/root/init"
	chmod 755 "$work/root/init"
	for module in $modules; do
		unpack_module "$module"
	done
	find "$work/tree" -name 'vmlinuz*' -type f -exec cp {} "$work/out/vmlinuz" \;
	find "$work/tree" -path '*/lib/modules/*' -prune -name '[0-9]*' -printf '%f\n' >"$work/out/release"
	echo "$arch" >"$work/out/arch"
	(cd "$work/root" && find . | cpio -o -H newc -R 0:0 --quiet | gzip -1) >"$work/out/initramfs"
	rm -rf "$out"
	mv "$work/out" "$out"
fi
echo "$out"
