#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Makes a fresh minimal Debian with `make` and `git` in a folder and runs a command in it, as root, in a copy of this source tree.
#   root.sh SUITE [COMMAND...]      bookworm, trixie, ...; `make test` when no command is named
# The root is a mount point in a mount namespace of its own, so the command may mount and make namespaces; process ids,
# network, /dev and /sys are the machine's. Packages come from where this machine gets its own: the same mirror,
# settings and certificates. $HEARTH_ROOT: a folder to keep the root in and to use it again; without it a temporary one,
# removed at the end, with all that still runs in it.   $HEARTH_DEBS: a folder for packages, kept too. Exit status: the
# command's; 77 when no root can be made here.
set -eu
suite=${1:?usage: root.sh SUITE [COMMAND...]}
shift
[ $# -gt 0 ] || set -- make --no-print-directory test
top=$(cd "$(dirname "$0")/.." && pwd)

cannot() {
	echo "root: $*" >&2
	exit 77
}

[ "$(id -u)" = 0 ] || cannot "needs root"
command -v apt-get >/dev/null || cannot "this is not Debian or Ubuntu"
if ! command -v debootstrap >/dev/null; then
	export DEBIAN_FRONTEND=noninteractive
	{ apt-get update -q && apt-get install -y -q --no-install-recommends debootstrap; } >/dev/null ||
		cannot "debootstrap cannot be installed"
fi

work=$(mktemp -d)
if [ -n "${HEARTH_ROOT:-}" ]; then
	mkdir -p "$HEARTH_ROOT"
	root=$(cd "$HEARTH_ROOT" && pwd -P)
else
	root=$(mktemp -d /var/tmp/hearth-root.XXXXXX)
	chmod 755 "$root" # also for who is not root in it
fi

finish() {
	local link
	rm -rf "$work"
	[ -z "${HEARTH_ROOT:-}" ] || return 0
	for link in /proc/[0-9]*/root; do # a daemon that outlived the command
		[ "$(stat -Lc %d:%i "$link" 2>/dev/null)" != "$(stat -c %d:%i "$root")" ] || kill -KILL "$(basename "${link%/root}")" || :
	done
	rm -rf --one-file-system "$root"
}
trap finish EXIT

# Debian's archives of this machine as "URL SUITE COMPONENT" lines, those of its own release called SUITE.
archives() {
	local own
	own=$(. /etc/os-release && echo "$VERSION_CODENAME")
	apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' |
		sed -nE "s#^([^ ]*/debian(-security)?/) $own(-updates|-security)? #\1 $suite\3 #p"
}

make_root() {
	local mirror
	archives >"$work/archives"
	[ -s "$work/archives" ] || { apt-get update -q >/dev/null && archives >"$work/archives"; }
	mirror=$(grep -m 1 "/debian/ $suite " "$work/archives" | cut -d ' ' -f 1) || cannot "no Debian mirror among this machine's package sources"
	debootstrap --variant=minbase ${HEARTH_DEBS:+--cache-dir="$(readlink -f "$HEARTH_DEBS")"} "$suite" "$root" "$mirror" >"$work/log" 2>&1 || {
		tail -n 5 "$work/log" >&2
		cannot "debootstrap failed"
	}
	sort -u "$work/archives" | sed 's/^/deb /' >"$root/etc/apt/sources.list"
	# How this machine reaches its mirror: proxies, retries, dates, credentials, certificates.
	apt-config dump Acquire | grep -vE '^Acquire::(IndexTargets|Changelogs)' >"$root/etc/apt/apt.conf.d/00machine"
	cp -a /etc/apt/auth.conf* "$root/etc/apt/" 2>/dev/null || :
	if [ -e /etc/ssl/certs/ca-certificates.crt ]; then
		install -D -m 644 -t "$root/etc/ssl/certs" /etc/ssl/certs/ca-certificates.crt
		mkdir -p "$root/usr/local/share"
		cp -a /usr/local/share/ca-certificates "$root/usr/local/share/" 2>/dev/null || :
	fi
	cp -L /etc/resolv.conf /etc/hosts "$root/etc/" 2>/dev/null || :
	echo force-unsafe-io >"$root/etc/dpkg/dpkg.cfg.d/fast" # a root that may be lost need not be synced
}

# The tree as it is, with what is not committed yet, as a repository of its own. What was built from the same files stays.
copy_tree() {
	if [ -d "$root/src/.git" ]; then
		git -C "$root/src" fetch -q "$top" HEAD
		git -C "$root/src" reset -q --hard FETCH_HEAD
		git -C "$root/src" clean -fdq
	else
		git clone -q "$top" "$root/src"
	fi
	cd "$top"
	git ls-files -z --deleted | (cd "$root/src" && xargs -0r rm -f)
	git ls-files -z --modified --others --exclude-standard | while read -r -d '' file; do
		[ ! -e "$file" ] || printf '%s\0' "$file"
	done | tar -c --null -T - | tar -x --touch -C "$root/src" # newer than what was built before
}

# enter COMMAND...: in the root; what is mounted is gone with the last process
enter() {
	local variables=() name
	for name in http_proxy https_proxy no_proxy $(compgen -v HEARTH_); do
		[ "$name" = HEARTH_ROOT ] || [ "$name" = HEARTH_DEBS ] || [ -z "${!name:-}" ] || variables+=("$name=${!name}")
	done
	unshare --mount --propagation private bash -euc '
		root=$1
		shift
		mount --bind "$root" "$root"
		mount -t proc proc "$root/proc"
		mount --rbind /sys "$root/sys"
		mount --rbind /dev "$root/dev"
		mount -t tmpfs -o mode=755 run "$root/run"
		mkdir "$root/run/lock"
		[ -z "${HEARTH_DEBS:-}" ] || mount --bind "$HEARTH_DEBS" "$root/var/cache/apt/archives"
		cd "$root"
		mkdir -p .outside
		pivot_root . .outside
		exec chroot . /bin/sh -euc "umount -l /.outside; cd /src; exec \"\$@\"" sh "$@"' bash "$root" \
		env -i HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin TERM="${TERM:-dumb}" "${variables[@]}" "$@"
}

[ -z "${HEARTH_DEBS:-}" ] || mkdir -p "$HEARTH_DEBS"
if [ ! -e "$root/.made" ]; then
	make_root
	mkdir -p "$root/src"
	cd "$root"
	(enter sh -ec 'apt-get update -q && apt-get install -y -q --no-install-recommends make git') >"$work/log" 2>&1 || {
		tail -n 5 "$work/log" >&2
		cannot "make and git cannot be installed"
	}
	touch "$root/.made"
fi
copy_tree
status=0
enter "$@" || status=$?
exit $status
