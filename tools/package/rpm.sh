#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes an RPM of a bundle (bundle.sh), with its own libraries below /opt/hearth, so that it is for any distribution; the unit is off until it
# is enabled, as Debian's package has it. Needs rpmbuild.
#   usage: tools/package/rpm.sh BUNDLE FOLDER [ARCH]      writes FOLDER/hearth-VERSION-1.ARCH.rpm
set -eu
bundle=$(realpath "${1:?usage: rpm.sh BUNDLE FOLDER [ARCH]}")
out=$(realpath -m "${2:?usage: rpm.sh BUNDLE FOLDER [ARCH]}")
cd "$(dirname "$0")/../.."
version=$(cat vendor/version)
case ${3:-$(dpkg --print-architecture)} in
amd64) arch=x86_64 ;;
arm64) arch=aarch64 ;;
*) echo "rpm.sh: hearth is for amd64 and arm64" >&2 && exit 2 ;;
esac
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || date +%s)}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
umask 022
root=$work/root
mkdir -p "$root/opt" "$root/usr/bin" "$out"
cp -a "$bundle" "$root/opt/hearth"
mkdir -p "$root/usr/share/licenses/hearth"
mv "$root/opt/hearth/share" "$root/usr/share.new"
mv "$root/usr/share.new"/* "$root/usr/share/"
rmdir "$root/usr/share.new"
gzip -9n "$root/usr/share/man/man1/hearth.1"
ln -s /opt/hearth/bin/hearth "$root/usr/bin/hearth"
install -m644 LICENSE "$root/usr/share/licenses/hearth/LICENSE"
install -Dm644 tools/package/hearth.service "$root/usr/lib/systemd/system/hearth.service"
install -Dm644 tools/package/hearth.yaml "$root/etc/hearth.yaml"

cat >"$work/hearth.spec" <<END
Name: hearth
Version: $version
Release: 1
Summary: Continuous whole-system profiler
License: Apache-2.0 AND (GPL-2.0-only OR BSD-2-Clause)
AutoReqProv: no
%global __os_install_post %{nil}
%global _build_id_links none
%global use_source_date_epoch_as_buildtime 1
%global clamp_mtime_to_source_date_epoch 1
%global _buildhost reproducible
%global source_date_epoch_from_changelog 0
%description
hearth samples every CPU with eBPF, walks the stacks of the kernel and of
every program, names functions of native code, scripts and JIT compilers, and
shows them on a terminal and a page, keeps them, or sends them as OTLP.

The service is off until it is enabled: systemctl enable --now hearth.
%post
[ ! -d /run/systemd/system ] || systemctl --system daemon-reload >/dev/null 2>&1 || :
%preun
if [ "\$1" = 0 ] && [ -d /run/systemd/system ]; then systemctl --no-reload disable --now hearth.service >/dev/null 2>&1 || :; fi
%postun
if [ "\$1" = 0 ]; then rm -rf /var/cache/hearth; fi
[ ! -d /run/systemd/system ] || systemctl --system daemon-reload >/dev/null 2>&1 || :
if [ "\$1" -ge 1 ] && [ -d /run/systemd/system ]; then systemctl try-restart hearth.service >/dev/null 2>&1 || :; fi
%files
%defattr(-,root,root,-)
/opt/hearth
/usr/bin/hearth
/usr/lib/systemd/system/hearth.service
/usr/share/bash-completion/completions/hearth
/usr/share/fish/vendor_completions.d/hearth.fish
/usr/share/zsh/site-functions/_hearth
/usr/share/man/man1/hearth.1.gz
%dir /usr/share/licenses/hearth
%license /usr/share/licenses/hearth/LICENSE
%config(noreplace) /etc/hearth.yaml
END
find "$root" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
rpmbuild --quiet -bb --target "$arch-linux" --buildroot "$root" --define "_topdir $work" --define "_rpmdir $work/rpms" --define '_binary_payload w19.zstdio' \
	--noclean --nocheck --noprep "$work/hearth.spec" >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
cp "$work/rpms/$arch"/*.rpm "$out/"
