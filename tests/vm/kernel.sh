#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Fetches one of Debian's kernels for virtual machines and makes the initramfs that boot.sh needs. Prints the folder, which then
# holds vmlinuz, release and initramfs; what is there already is not fetched again.   kernel.sh 5.10|6.1|6.12
# apt runs over a state folder of its own, so the machine's lists, packages and settings stay as they are; packages come from the
# mirror that the machine itself uses ($HEARTH_VM_MIRROR overrides it: what ends in /debian). Exit status 77: not possible here.
set -eu

skip() {
	echo "$*" >&2
	exit 77
}

case ${1:-} in
5.10) suite=bullseye ;;
6.1) suite=bookworm ;;
6.12) suite=trixie ;;
*)
	echo "usage: $0 5.10|6.1|6.12" >&2
	exit 2
	;;
esac
cache=${HEARTH_VM_CACHE:-/var/cache/hearth-vm}
out=$cache/$1
here=$(cd "$(dirname "$0")" && pwd)
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
# in the order in which they need each other; a kernel that has one built in lacks the file
modules="virtio virtio_ring virtio_pci_legacy_dev virtio_pci_modern_dev virtio_pci fuse virtiofs overlay"

for tool in apt-get dpkg-deb busybox cpio; do
	command -v $tool >/dev/null || skip "no $tool here"
done

fetch() {
	local mirror apt=$cache/apt/$suite
	mirror=${HEARTH_VM_MIRROR:-$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | grep -m 1 '/debian/$' || :)}
	[ -n "$mirror" ] || skip "no Debian mirror among this machine's package sources; set HEARTH_VM_MIRROR"
	[ -e $keyring ] || skip "no $keyring here"
	mkdir -p "$apt"/{lists/partial,archives/partial,empty}
	: >"$apt/status"
	echo "deb [arch=amd64 signed-by=$keyring] $mirror $suite main" >"$apt/sources.list"
	local o=(-o Dir::State="$apt" -o Dir::State::lists="$apt/lists" -o Dir::State::status="$apt/status" -o Dir::Cache="$apt"
		-o Dir::Etc::sourcelist="$apt/sources.list" -o Dir::Etc::sourceparts="$apt/empty"
		-o Dir::Etc::preferencesparts="$apt/empty" -o APT::Architecture=amd64 -o APT::Architectures=amd64
		-o APT::Sandbox::User=root -o Acquire::Languages=none -o Acquire::Retries=3)
	apt-get "${o[@]}" update -qq || skip "$suite cannot be reached"
	local package
	package=$(apt-cache "${o[@]}" depends linux-image-cloud-amd64 | sed -n 's/^ *Depends: \(linux-image-[0-9][^ ]*\)$/\1/p' | head -n 1)
	[ -n "$package" ] || skip "$suite has no linux-image-cloud-amd64, or cannot be reached"
	(cd "$work" && apt-get "${o[@]}" download -qq "$package" >/dev/null) || skip "$package cannot be fetched"
	dpkg-deb -x "$work"/linux-image-*.deb "$work/tree"
	rm -rf "$apt"
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
	*.xz) busybox xzcat "$file" >"$to" ;;
	*.ko) cp "$file" "$to" ;;
	*)
		echo "cannot unpack $file" >&2
		exit 1
		;;
	esac
}

if [ ! -e "$out/initramfs" ] || [ "$here/init" -nt "$out/initramfs" ] || [ "$here/kernel.sh" -nt "$out/initramfs" ]; then
	mkdir -p "$cache"
	work=$(mktemp -d "$cache/work.XXXXXX")
	trap 'rm -rf "$work"' EXIT
	fetch
	mkdir -p "$work"/root/{bin,proc,sys,dev,host,overlay,newroot,modules} "$work/out"
	cp "$(command -v busybox)" "$work/root/bin/"
	cp "$here/init" "$work/root/init"
	chmod 755 "$work/root/init"
	for module in $modules; do
		unpack_module "$module"
	done
	cp "$work"/tree/boot/vmlinuz-* "$work/out/vmlinuz"
	basename "$work"/tree/boot/vmlinuz-* | sed 's/^vmlinuz-//' >"$work/out/release"
	(cd "$work/root" && find . | cpio -o -H newc -R 0:0 --quiet | gzip -1) >"$work/out/initramfs"
	rm -rf "$out"
	mv "$work/out" "$out"
fi
echo "$out"
