#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Installs what `make packages` made where hearth is not: the package in a fresh Debian, the bundle in an empty root and in another
# place, the image's root. By hand; needs root and a Debian mirror.
#   usage: tests/packages/run.sh BUILD [SUITE]      HEARTH_PACKAGE_ROOT: a folder with that Debian, made if it is not there, and kept
set -eu
build=$(realpath "${1:?usage: run.sh BUILD [SUITE]}")
suite=${2:-bookworm}
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

# records ROOT HEARTH: it samples there, and what it wrote can be read
records() {
	inside "$1" "$2" record -F 99 -d 1 -o /tmp/x.otlp 2>"$work/err" || fail "no recording in $1: $(cat "$work/err")"
	grep -Eq '[1-9][0-9]* samples taken = ' "$work/err" || fail "nothing was sampled in $1: $(cat "$work/err")"
	echo "  $1: $(tail -n 1 "$work/err")"
}

# --- the bundle: in a root with nothing else, and in a place of its own ---
mkdir -p "$work/empty/opt"
cp -r "$packages/bundle" "$work/empty/opt/hearth"
inside "$work/empty" /opt/hearth/bin/hearth version >/dev/null || fail "the bundle does not run in an empty root"
records "$work/empty" /opt/hearth/bin/hearth
cp -r "$packages/bundle" "$work/elsewhere"
"$work/elsewhere/bin/hearth" version >/dev/null || fail "the bundle does not run elsewhere"

# --- the image: its layer is a root ---
mkdir "$work/image"

python3 - "$packages/image" "$work/image" <<'END' || fail "the image is not what its index says"
import hashlib, json, os, sys, tarfile
layout, root = sys.argv[1:]
def blob(ref):
    data = open(os.path.join(layout, "blobs", *ref["digest"].split(":")), "rb").read()
    assert len(data) == ref["size"] and "sha256:" + hashlib.sha256(data).hexdigest() == ref["digest"]
    return data
index = json.load(open(os.path.join(layout, "index.json")))
manifest = json.loads(blob(index["manifests"][0]))
config = json.loads(blob(manifest["config"]))
blob(manifest["layers"][0])
assert config["config"]["Labels"]["org.opencontainers.image.title"] == "hearth"
tarfile.open(os.path.join(layout, "blobs", *manifest["layers"][0]["digest"].split(":"))).extractall(root)
END
records "$work/image" /usr/bin/hearth
if docker info >/dev/null 2>&1; then
	docker load -q -i "$packages/image.tar" || echo "  left out: this docker reads no OCI layouts"
fi

# --- the package: in a fresh Debian, off until it is enabled, gone after a purge ---
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
echo "packages: all right"
