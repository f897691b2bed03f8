#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Whether what a release publishes is whole and well-formed, without running it: lists of files, the documents about what is inside, the image.
#   usage: tests/packages/release.sh FOLDER VERSION
set -eu
out=$(realpath "${1:?usage: release.sh FOLDER VERSION}")
version=$2
cd "$(dirname "$0")"
fail() {
	echo "FAILED: $*"
	exit 1
}
for deb in "$out"/*.deb; do
	! command -v lintian >/dev/null || lintian --allow-root --fail-on error,warning "$deb" || fail "lintian on $deb"
	[ "$(dpkg-deb -f "$deb" Version)" = "$version" ] || fail "the version of $deb"
done
for rpm in "$out"/*.rpm; do
	[ -e "$rpm" ] || break
	rpm -qp --qf '%{VERSION}' "$rpm" 2>/dev/null | grep -qx "$version" || fail "the version of $rpm"
	rpm -qlp "$rpm" 2>/dev/null | grep -qx /opt/hearth/bin/hearth || fail "nothing in $rpm"
	! rpm -qp --requires "$rpm" 2>/dev/null | grep -v '^rpmlib(\|^/bin/sh$' || fail "$rpm asks for libraries of others"
done
for bundle in "$out"/hearth-"$version"-linux-*.tar.gz; do
	arch=${bundle##*-linux-} arch=${arch%.tar.gz}
	python3 sbom.py "$out/hearth-$version-$arch.spdx.json" "$bundle" || fail "the document about $bundle"
done
for app in "$out"/*.AppImage; do
	[ -e "$app" ] || break
	[ "$(head -c 11 "$app" | tail -c 3 | od -An -tx1 | tr -d ' ')" = 414902 ] || fail "$app has no mark of an AppImage"
	bundle=$out/hearth-$version-linux-$([[ $app = *-aarch64.* ]] && echo arm64 || echo amd64).tar.gz
	python3 appimage.py "$app" "$bundle" || fail "what is in $app"
done
python3 image.py "$out/hearth-$version-oci.tar" || fail "the image"
echo "release: all there"
