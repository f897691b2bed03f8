#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Makes a folder with what cross building hearth needs of Debian bookworm for another CPU: the libraries of vendor/packages.txt and
# all that they depend on. With a shell, the usual tools and languages of scripts besides, it is also the root of that CPU's test machines
# (boot.sh). Unpacked, not installed: no package's scripts run. Makes nothing when FOLDER is newer than its lists.
#   sysroot.sh arm64 FOLDER
# Exit status 77: not possible here. See apt.sh for where packages come from.
set -eu
[ $# = 2 ] || {
	echo "usage: $0 ARCH FOLDER" >&2
	exit 2
}
here=$(cd "$(dirname "$0")" && pwd)
packages=$here/../../vendor/packages.txt
. "$here/apt.sh"
arch=$1
out=$2
mkdir -p "$(dirname "$out")"
out=$(cd "$(dirname "$out")" && pwd)/$(basename "$out")

[ ! -e "$out/.made" ] || [ "$packages" -nt "$out/.made" ] || [ "$here/sysroot.sh" -nt "$out/.made" ] || exit 0

work=$(mktemp -d "$out.XXXXXX")
trap 'rm -rf "$work"' EXIT
apt_open bookworm "$arch"
mapfile -t libraries < <(sed -n 's/^\(lib[^ ]*-dev\) .*/\1/p' "$packages" | grep -v '^libclang-')
mkdir "$work/root"
apt_unpack_all "$work/root" "${libraries[@]}" libstdc++-12-dev libstd-rust-dev bash coreutils sed grep gawk procps bpftool python3 perl php-cli
[ -e "$work/root/bin/sh" ] || ln -s bash "$work/root/bin/sh"
mkdir -p "$work"/root/{proc,sys,dev,tmp,root,run,var/tmp}
echo "root:x:0:0:root:/root:/bin/sh" >"$work/root/etc/passwd"
touch "$work/root/.made"
rm -rf "$out"
mv "$work/root" "$out"
