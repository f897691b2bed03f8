#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes all that a release publishes, checks it, and writes the sums. Two runs over the same commit make the same bytes.
#   usage: tools/package/release.sh BUILD [ARCH...]      into BUILD/release; ARCH: amd64, arm64; this machine's unless given
# A part that cannot be made or tried here is left out, which is said: a release is whole only without such lines.
set -eu
build=$(realpath "${1:?usage: release.sh BUILD [ARCH...]}")
shift
cd "$(dirname "$0")/../.."
here=$(dpkg --print-architecture)
[ $# -gt 0 ] || set -- "$here"
version=$(cat vendor/version)
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export SOURCE_DATE_EPOCH
out=$build/release
rm -rf "$out"
mkdir -p "$out" "$build/package"

left_out() {
	echo "left out: $*"
}
# pack NAME FOLDER...: as NAME.tar.gz, below one folder of that name
pack() {
	local name=$1
	shift
	tar --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --format=gnu --transform "s,^\.,$name," -C "$1" -c . |
		gzip -9n >"$out/$name.tar.gz"
}

images=()
for arch in "$@"; do
	folder=$build
	if [ "$arch" != "$here" ]; then
		folder=$build-$arch
		make --no-print-directory ARCH="$arch" BUILD="$folder" all
	fi
	make --no-print-directory ARCH="$arch" BUILD="$folder" bundle
	pack "hearth-$version-linux-$arch" "$folder/package/bundle"
	tools/package/sbom.py "$version" "$arch" "$folder/package/bundle" >"$out/hearth-$version-$arch.spdx.json"
	if command -v rpmbuild >/dev/null; then
		tools/package/rpm.sh "$folder/package/bundle" "$out" "$arch"
	else
		left_out "hearth-$version-1 for $arch as RPM: no rpmbuild (apt-get install rpm)"
	fi
	status=0
	tools/package/appimage.sh "$folder/package/bundle" "$out" "$arch" "build-$arch-sysroot" 2>"$build/package/why" || status=$?
	case $status in
	0) ;;
	77) left_out "hearth-$version for $arch as AppImage: $(cat "$build/package/why")" ;;
	*) cat "$build/package/why" >&2 && exit 1 ;;
	esac
	images+=("$arch=$folder/package/bundle")
done
tools/package/deb.sh "$build" "$out"
rm -rf "$build/package/image" "$build/package/image.tar"
tools/package/image.py "$version" "$build/package/image" "${images[@]}"
cp "$build/package/image.tar" "$out/hearth-$version-oci.tar"
pack "hearth-$version-kubernetes" deploy/kubernetes
install -m644 deploy/lima/hearth.yaml "$out/hearth-$version-lima.yaml"
if command -v helm >/dev/null; then
	# Helm packs files of the present time: they are packed anew.
	rm -rf "$build/package/chart"
	mkdir "$build/package/chart"
	helm package deploy/helm --destination "$build/package" >/dev/null
	tar -xmzf "$build/package/hearth-$version.tgz" -C "$build/package/chart"
	tar --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --format=gnu -C "$build/package/chart" -c hearth |
		gzip -9n >"$out/hearth-$version.tgz"
	helm show chart "$out/hearth-$version.tgz" >/dev/null
	rm -r "$build/package/chart" "$build/package/hearth-$version.tgz"
else
	pack "hearth-$version-helm" deploy/helm
fi

# --- are they what they say? ---
tests/packages/release.sh "$out" "$version"
tests/deploy/manifests.sh "$build" || [ $? = 77 ]
(cd "$out" && sha256sum -- * >SHA256SUMS && sha256sum --quiet -c SHA256SUMS)
ls -l "$out"
