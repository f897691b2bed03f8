#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Installs what `make packages` made where hearth is not: the package in a fresh Debian, the bundle in roots of other C libraries and of none,
# the AppImage, the RPM, the image. In each hearth records programs that know their stacks, which are judged. By hand; needs root and a Debian mirror.
#   usage: tests/packages/run.sh BUILD [SUITE [PART...]]      PART: bundle, appimage, rpm, image, containers, deb; all unless given
# HEARTH_PACKAGE_ROOT: a folder with that Debian, made if it is not there, and kept. HEARTH_OLD_ROOT: one with a Debian 10 or 11.
set -euo pipefail
build=$(realpath "${1:?usage: run.sh BUILD [SUITE]}")
suite=${2:-bookworm}
parts=("${@:3}")
[ ${#parts[@]} -gt 0 ] || parts=(bundle appimage rpm image containers deb)
wants() {
	[[ " ${parts[*]} " = *" $1 "* ]]
}
packages=$build/package
cd "$(dirname "$0")/../.."
[ "$(id -u)" = 0 ] || { echo "needs root"; exit 77; }
work=$(mktemp -d /var/tmp/hearth-packages.XXXXXX)
trap 'rm -rf --one-file-system "$work"' EXIT

fail() {
	echo "FAILED: $*"
	exit 1
}

# inside ROOT COMMAND...: with /proc, /sys and a /tmp, in a mount namespace of its own
inside() {
	local root=$1
	shift
	unshare --mount --propagation private bash -euc '
		root=$1
		shift
		mkdir -p "$root/proc" "$root/sys" "$root/tmp" "$root/dev"
		mount -t proc proc "$root/proc"
		mount --rbind /sys "$root/sys"
		mount -t tmpfs tmp "$root/tmp"
		mount --rbind /dev "$root/dev"
		exec chroot "$root" "$@"' bash "$root" "$@"
}

# records ROOT HEARTH: it samples programs of this machine there, whose stacks are as they say themselves
truth=$build/truth
tests/truth/build.sh "$truth" >/dev/null
programs=(c_chain cpp_chain)
for name in go_chain musl_chain; do
	[ ! -x "$truth/$name" ] || programs+=("$name")
done
records() {
	local root=$1 name pids=() list
	rm -rf "$work/told"
	mkdir -p "$work/told" "$root/judged"
	for name in "${programs[@]}"; do
		nice "$truth/$name" 12 >"$work/told/$name" &
		pids+=("$!")
	done
	list=$(IFS=,; echo "${pids[*]}")
	inside "$root" "$2" record -F 499 -d 2 -p "$list" -o /judged/x.otlp 2>"$work/err" || fail "no recording in $1: $(cat "$work/err")"
	wait "${pids[@]}"
	mv "$root/judged/x.otlp" "$work/x.otlp"
	rmdir "$root/judged"
	grep -Eq '[1-9][0-9]* samples taken = ' "$work/err" || fail "nothing was sampled in $1: $(cat "$work/err")"
	grep -v "^hearth: sampling" "$work/err" | sed 's/^/    /'
	PATH=$build:$PATH tests/truth/check.py --known tests/truth/known --least 20 --slack 2 "$work/x.otlp" "$work"/told/* | sed 's/^/  /' ||
		fail "stacks are not true in $1"
}

# --- the bundle: in a root with nothing else, in one with another C library, in one with an old one, and in a place of its own ---
put_bundle() {
	mkdir -p "$1/opt"
	cp -r "$packages/bundle" "$1/opt/hearth"
	inside "$1" /opt/hearth/bin/hearth version >/dev/null || fail "the bundle does not run in $1"
	records "$1" /opt/hearth/bin/hearth
}
if wants bundle; then
	echo "bundle, empty root"
	put_bundle "$work/empty"
	if musl=$(ls /lib/ld-musl-*.so.1 2>/dev/null) && command -v busybox >/dev/null; then
		echo "bundle, root of musl and busybox" # as Alpine's is
		mkdir -p "$work/musl/lib" "$work/musl/bin" "$work/musl/etc"
		cp -L "$musl" "$work/musl/lib/"
		cp -L "$(command -v busybox)" "$work/musl/bin/busybox"
		for name in sh ls cat; do ln -s busybox "$work/musl/bin/$name"; done
		echo "root:x:0:0::/root:/bin/sh" >"$work/musl/etc/passwd"
		cp "$truth/musl_chain" "$work/musl/bin/chain"
		put_bundle "$work/musl"
	else
		echo "  left out: a root of musl: no musl or busybox"
	fi
	old=${HEARTH_OLD_ROOT:-}
	if [ -n "$old" ]; then
		echo "bundle, $(. "$old/etc/os-release" && echo "$PRETTY_NAME")"
		mkdir "$work/old"
		cp -a "$old/." "$work/old/"
		put_bundle "$work/old"
	else
		echo "  left out: an old C library: no HEARTH_OLD_ROOT"
	fi
	cp -r "$packages/bundle" "$work/elsewhere"
	"$work/elsewhere/bin/hearth" version >/dev/null || fail "the bundle does not run elsewhere"
fi

# --- the AppImage: a capture on its page, in the same roots and in a fresh Debian ---
if wants appimage; then
	root=${HEARTH_PACKAGE_ROOT:-$work/debian}
	[ -e "$root/usr/bin/apt-get" ] || HEARTH_ROOT=$root tests/root.sh "$suite" true
	roots=("$root")
	[ ! -e "$work/musl" ] || roots+=("$work/musl")
	[ -z "${HEARTH_OLD_ROOT:-}" ] || roots+=("$HEARTH_OLD_ROOT")
	tests/packages/appimage.sh "$build" "$(echo "$packages"/hearth-*.AppImage)" "${roots[@]}" || fail "the AppImage"
fi

# --- the RPM: what is in it, laid out as rpm does, in a root of nothing ---
if wants rpm; then
	if command -v rpm >/dev/null && ls "$packages"/*.rpm >/dev/null 2>&1; then
		echo "RPM, empty root"
		mkdir -p "$work/rpm/bin"
		rpm -i --root "$work/rpm" --dbpath /var/lib/rpm --ignorearch --nodeps --noscripts "$packages"/*.rpm 2>"$work/err" || fail "rpm: $(cat "$work/err")"
		records "$work/rpm" /usr/bin/hearth
		[ -e "$work/rpm/usr/lib/systemd/system/hearth.service" ] && [ ! -e "$work/rpm/etc/systemd/system/multi-user.target.wants/hearth.service" ] ||
			fail "the RPM's unit"
		rpm -e --root "$work/rpm" --dbpath /var/lib/rpm --noscripts hearth || fail "rpm -e"
		left=$(cd "$work/rpm" && find . -path ./var/lib/rpm -prune -o -path ./var/cache/hearth -prune -o -name '*hearth*' -print)
		[ -z "$left" ] || fail "rpm -e leaves these: $left"
	else
		echo "  left out: the RPM: no rpm"
	fi
fi

# --- the image: its layer is a root ---
if wants image; then
	echo "image, as a root"
	mkdir "$work/image"
	python3 tests/packages/image.py "$packages/image.tar" "$work/image" "$(dpkg --print-architecture)" || fail "the image is not what its index says"
	records "$work/image" /usr/bin/hearth
fi
! wants containers || tests/packages/containers.sh "$build" "$packages/image.tar" || fail "the image in containers"

# --- the package: in a fresh Debian, off until it is enabled, gone after a purge ---
if wants deb; then
	root=${HEARTH_PACKAGE_ROOT:-$work/debian}
	[ -e "$root/usr/bin/apt-get" ] || HEARTH_ROOT=$root tests/root.sh "$suite" true
	deb=$(echo "$packages"/hearth_*.deb)
	if command -v lintian >/dev/null; then
		lintian --allow-root --fail-on error,warning "$deb" || fail "lintian"
	fi
	before=$work/before after=$work/after
	list() {
		(cd "$root" && find . -xdev \( -path ./proc -o -path ./sys -o -path ./tmp -o -path ./dev -o -path ./var/lib/dpkg -o -path ./var/cache/apt \
			-o -path ./var/lib/apt -o -path ./var/log -o -path ./src -o -path ./run \) -prune -o -print | sort)
	}
	cp "$deb" "$root/root/"
	inside "$root" sh -ec 'dpkg --purge hearth 2>/dev/null || :; apt-get update -q; apt-get install -yq --no-install-recommends $(dpkg-deb -f /root/hearth_*.deb Depends |
		tr , "\n" | sed "s/|.*//; s/(.*//")' >"$work/log" 2>&1 || fail "dependencies: $(tail -n 5 "$work/log")"
	list >"$before"
	inside "$root" sh -ec 'dpkg -i /root/hearth_*.deb && hearth help --man >/dev/null && hearth check --config /etc/hearth.yaml &&
		zcat /usr/share/man/man1/hearth.1.gz >/dev/null && test -f /usr/share/bash-completion/completions/hearth && test ! -e /etc/systemd/system/multi-user.target.wants/hearth.service' \
		>"$work/log" 2>&1 || fail "the package does not install: $(tail -n 5 "$work/log")"
	echo "package, $suite"
	records "$root" /usr/bin/hearth
	mkdir -p "$root/var/lib/hearth"
	inside "$root" dpkg --purge hearth >"$work/log" 2>&1 || fail "the package does not go: $(tail -n 5 "$work/log")"
	list >"$after"
	diff "$before" "$after" || fail "a purge leaves these"
	if command -v systemd-analyze >/dev/null; then
		mkdir -p "$work/unit/usr/bin"
		systemd-analyze verify tools/package/hearth.service 2>&1 | grep -v 'Command /usr/bin/hearth is not executable' | grep hearth.service && fail "the unit"
		systemd-analyze security --offline=true tools/package/hearth.service | tail -n 1
	fi
fi
echo "packages: all right"
