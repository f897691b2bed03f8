#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes an AppImage of a bundle (bundle.sh): one executable file, which shows a capture on a page, and is all of hearth besides. The front part
# is ours (appimage/runtime.c), so that it needs no FUSE and nothing is fetched; what is behind it is a squashfs.
#   usage: tools/package/appimage.sh BUNDLE FOLDER [ARCH [SYSROOT]]      writes FOLDER/hearth-VERSION-ARCH.AppImage
# Needs mksquashfs and libsquashfuse (apt-get install squashfs-tools libsquashfuse-dev); without them it says so, exit status 77.
set -eu
bundle=$(realpath "${1:?usage: appimage.sh BUNDLE FOLDER [ARCH [SYSROOT]]}")
out=$(realpath -m "${2:?usage: appimage.sh BUNDLE FOLDER [ARCH [SYSROOT]]}")
here=$(dpkg --print-architecture)
arch=${3:-$here}
case $arch in
amd64) machine=x86_64 ;;
arm64) machine=aarch64 ;;
*) echo "appimage.sh: hearth is for amd64 and arm64" >&2 && exit 2 ;;
esac
cross='' sysroot=() root=/
if [ "$arch" != "$here" ]; then
	root=$(realpath "${4:?a SYSROOT}") cross=$machine-linux-gnu- sysroot=("--sysroot=$root")
fi
cd "$(dirname "$0")/../.."
version=$(cat vendor/version)
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || date +%s)} # mksquashfs heeds it, too
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
umask 022
command -v mksquashfs >/dev/null || { echo "appimage.sh: no mksquashfs (apt-get install squashfs-tools)" >&2 && exit 77; }
[ -e "$root/usr/include/squashfuse/squashfuse.h" ] ||
	{ echo "appimage.sh: no libsquashfuse for $arch (apt-get install libsquashfuse-dev)" >&2 && exit 77; }

# static NAME OPTION... FILE...: a program that runs where there is no C library
static() {
	"${cross}gcc" -std=gnu17 -D_GNU_SOURCE "-DHEARTH_VERSION=\"$version\"" -O2 -ffunction-sections -fdata-sections -fPIE -fstack-protector-strong \
		-Wall -Wextra -Werror "${sysroot[@]}" -static-pie -Wl,--gc-sections,-z,relro,-z,now -s -o "$work/$1" "${@:2}"
}
static runtime tools/package/appimage/{runtime,place,image}.c -lsquashfuse -lzstd
static AppRun tools/package/appimage/apprun.c

app=$work/app
mkdir -p "$app/usr/share/applications" "$app/usr/share/icons/hicolor/scalable/apps" "$out"
cp -r "$bundle/." "$app/usr/"
mv "$work/AppRun" "$app/AppRun"
install -m644 tools/package/appimage/hearth.desktop tools/package/appimage/hearth.svg "$app/"
for library in libsquashfuse-dev libzstd-dev libxxhash-dev; do # which are in the front part, with licences that ask for their notice
	install -Dm644 "$root/usr/share/doc/$library/copyright" "$app/usr/share/doc/$library/copyright"
done
ln -s hearth.svg "$app/.DirIcon"
ln -s ../../../hearth.desktop "$app/usr/share/applications/hearth.desktop"
ln -s ../../../../../../hearth.svg "$app/usr/share/icons/hicolor/scalable/apps/hearth.svg"
mksquashfs "$app" "$work/image" -quiet -no-progress -noappend -all-root -no-xattrs -no-exports -comp zstd -Xcompression-level 19 -b 1M \
	>"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }

# The mark stands in bytes of the head that no loader reads.
printf 'AI\002' | dd of="$work/runtime" bs=1 seek=8 conv=notrunc status=none
gcc -std=gnu17 -D_GNU_SOURCE -O2 -Wall -Wextra -Werror -o "$work/mark" tools/package/appimage/mark.c
"$work/mark" <"$work/image" >"$work/tail"
cat "$work/runtime" "$work/image" "$work/tail" >"$work/whole"
install -m755 "$work/whole" "$out/hearth-$version-$machine.AppImage"
