#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes a Debian package of a build: hearth, its manual and completions, a unit that is off until it is enabled, /etc/hearth.yaml.
#   usage: tools/package/deb.sh BUILD FOLDER      writes FOLDER/hearth_VERSION_ARCH.deb
# The package is for the suite that it is made on: it names that suite's libraries. SOURCE_DATE_EPOCH makes it reproducible.
set -eu
build=$(realpath "${1:?usage: deb.sh BUILD FOLDER}")
out=$(realpath -m "${2:?usage: deb.sh BUILD FOLDER}")
cd "$(dirname "$0")/../.."
here=tools/package
command -v dpkg-shlibdeps >/dev/null || {
	echo "deb: cannot tell which libraries the package needs: no dpkg-shlibdeps here (apt-get install dpkg-dev)" >&2
	exit 1
}
version=$(cat vendor/version) arch=$(dpkg --print-architecture)
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || date +%s)}
maintainer=${DEBFULLNAME:-$(git log -1 --format=%an)}" <${DEBEMAIL:-$(git log -1 --format=%ae)}>"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
umask 022
stage=$work/debian/hearth
mkdir -p "$stage/DEBIAN" "$out"

make --no-print-directory install DESTDIR="$stage" PREFIX=/usr BUILD="$build" >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
mkdir -p "$stage/usr/share/zsh/vendor-completions"
mv "$stage/usr/share/zsh/site-functions/_hearth" "$stage/usr/share/zsh/vendor-completions/"
rmdir "$stage/usr/share/zsh/site-functions"
gzip -9n "$stage/usr/share/man/man1/hearth.1"
install -Dm644 "$here/hearth.service" "$stage/lib/systemd/system/hearth.service"
install -Dm644 "$here/hearth.yaml" "$stage/etc/hearth.yaml"

year=$(date -u -d "@$SOURCE_DATE_EPOCH" +%Y)
doc=$stage/usr/share/doc/hearth
mkdir -p "$doc" "$stage/usr/share/lintian/overrides"
cat >"$doc/copyright" <<END
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: hearth

Files: *
Copyright: $year the authors of hearth
License: Apache-2.0
 On Debian systems the text of this licence is in
 /usr/share/common-licenses/Apache-2.0.

Files: bpf/*
Copyright: $year the authors of hearth
License: GPL-2.0-only OR BSD-2-Clause
 The code that runs in the kernel, and the headers that it shares with user
 space. On Debian systems the text of the GNU General Public License, version
 2, is in /usr/share/common-licenses/GPL-2.
END
printf 'hearth (%s) unstable; urgency=medium\n\n  * The version that vendor/version names.\n\n -- %s  %s\n' \
	"$version" "$maintainer" "$(date -R -u -d "@$SOURCE_DATE_EPOCH")" | gzip -9n >"$doc/changelog.gz"
cat >"$stage/usr/share/lintian/overrides/hearth" <<'END'
# It names the package that a file is of, in advice to users; the file is read where there is one.
hearth: uses-dpkg-database-directly
END

# Libraries, and libcurl, which is loaded when it is needed.
(cd "$work" && printf 'Source: hearth\n\nPackage: hearth\nArchitecture: any\n' >debian/control &&
	dpkg-shlibdeps -O "$stage/usr/bin/hearth" >depends)
depends=$(sed -n 's/^shlibs:Depends=//p' "$work/depends")
curl=$(dpkg-query -S 'libcurl.so.4' 2>/dev/null | sed -n 's/:.*//p' | head -n 1)
size=$(du -sk --apparent-size "$stage" | cut -f 1)
cat >"$stage/DEBIAN/control" <<END
Package: hearth
Version: $version
Architecture: $arch
Maintainer: $maintainer
Installed-Size: $size
Depends: $depends, ${curl:-libcurl4}
Recommends: ca-certificates
Section: devel
Priority: optional
Description: continuous whole-system profiler
 hearth samples every CPU with eBPF, walks the stacks of the kernel and of
 every program, names functions of native code, scripts and JIT compilers, and
 shows them on a terminal and a page, keeps them, or sends them as OTLP.
 .
 The service is off until it is enabled: systemctl enable --now hearth.
END
echo /etc/hearth.yaml >"$stage/DEBIAN/conffiles"
for script in postinst prerm postrm; do
	install -m 755 "$here/$script" "$stage/DEBIAN/$script"
done
(cd "$stage" && find usr lib -type f -print0 | sort -z | xargs -0 md5sum >DEBIAN/md5sums)
find "$stage" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
dpkg-deb --root-owner-group -Zxz -b "$stage" "$out/hearth_${version}_$arch.deb"
