#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The AppImage: what other tools see in it; a capture on its page, in roots of any C library and of none; who else may have put something where
# it unpacks, what a kill leaves, and two starts at once.
#   usage: tests/packages/appimage.sh BUILD APPIMAGE [ROOT...]      ROOT: folders with other systems, which stay as they are
set -euo pipefail
build=$(realpath "${1:?usage: appimage.sh BUILD APPIMAGE [ROOT...]}")
file=$(realpath "$2")
roots=("${@:3}")
cd "$(dirname "$0")/../.."
[ "$(id -u)" = 0 ] || { echo "  left out: AppImage: needs root"; exit 0; }
work=$(mktemp -d /var/tmp/hearth-appimage.XXXXXX)
chmod 755 "$work"
trap 'end; rm -rf --one-file-system "$work"' EXIT
shown=''
end() {
	if [ -n "$shown" ]; then
		kill "$shown" 2>/dev/null || :
		wait "$shown" 2>/dev/null || :
		shown=''
	fi
}
fail() {
	echo "FAILED: $*"
	exit 1
}
seconds() {
	local began
	began=$(date +%s%N)
	"$@" >/dev/null 2>"$work/err" || fail "$*: $(cat "$work/err")"
	awk -v ns=$(($(date +%s%N) - began)) 'BEGIN { printf "%.2f s", ns / 1e9 }'
}

# --- the file: an AppImage of the second type, a squashfs behind a program that asks for no loader ---
[ "$(head -c 11 "$file" | tail -c 3 | od -An -tx1 | tr -d ' ')" = 414902 ] || fail "no mark of an AppImage"
! readelf -lW "$file" 2>/dev/null | grep -q 'INTERP' || fail "it asks for a loader"
offset=$("$file" --appimage-offset)
unsquashfs -q -o "$offset" -l "$file" >"$work/list" 2>"$work/err" || fail "no squashfs at $offset: $(cat "$work/err")"
for name in AppRun hearth.desktop hearth.svg .DirIcon usr/bin/hearth usr/share/man/man1/hearth.1; do
	grep -qx "squashfs-root/$name" "$work/list" || fail "no $name in it"
done
if command -v desktop-file-validate >/dev/null; then
	desktop-file-validate tools/package/appimage/hearth.desktop || fail "hearth.desktop"
fi
python3 -c 'import sys, xml.dom.minidom; xml.dom.minidom.parse(sys.argv[1])' tools/package/appimage/hearth.svg || fail "the icon is no XML"

# --- a capture of a program that is known, and what its functions are ---
"$build/hearth" record -q -F 499 -o "$work/chain.otlp" -- "$build/truth/cpp_chain" 1 >/dev/null 2>"$work/err" || fail "no recording: $(cat "$work/err")"
"$build/hearth" report "$work/chain.otlp" --format folded >"$work/folded"
grep -q 'truth::outer' "$work/folded" || fail "the capture lacks truth::outer"

# answers HEARTH...: HEARTH, given a capture, shows it on a page that has its functions, each with the weight of the report
answers() {
	rm -f "$work/page.err"
	"$@" >/dev/null 2>"$work/page.err" &
	shown=$!
	for _ in $(seq 300); do
		grep -q 'page at http' "$work/page.err" && break
		kill -0 "$shown" 2>/dev/null || fail "$*: $(cat "$work/page.err")"
		sleep 0.1
	done
	url=$(sed -n 's/.*page at \(http:[^ ]*\)\/#.*/\1/p' "$work/page.err")
	curl -sf "$url/" | grep -qi '<!doctype html' || fail "$*: no page at $url"
	curl -sf "$url/api/v1/flamegraph?from=first&to=last" >"$work/graph.json" || fail "$*: no flame graph"
	python3 - "$work/graph.json" "$work/folded" <<-'END' || fail "$*: the page is not of the capture"
		import collections, json, re, sys
		graph = json.load(open(sys.argv[1]))
		names, nodes = graph["functions"]["name"], graph["nodes"]
		shown, told = collections.Counter(), collections.Counter()
		for function, self in zip(nodes["function"], nodes["self"]):
		    shown[names[function]] += self / graph["total"]
		for line in open(sys.argv[2]):
		    stack, count = line.rsplit(" ", 1)
		    told[re.sub(r" \(inlined\)$", "", stack.split(";")[-1])] += int(count)
		every = sum(told.values())
		truth = {name: count / every for name, count in told.items() if name.startswith("truth::")}
		assert truth and all(abs(shown[name] - share) < 0.001 for name, share in truth.items()), (truth, shown.most_common(10))
	END
	end
}

# --- in other roots; in a mount namespace each, with the machine's network ---
# inside ROOT COMMAND...: as in run.sh, over a layer of its own
inside() {
	local root=$1
	shift
	exec unshare --mount --propagation private bash -euc '
		root=$1 work=$2
		shift 2
		mount -t tmpfs layer "$work/layer"
		mkdir "$work/layer/upper" "$work/layer/work" "$work/layer/root"
		mount -t overlay -o "lowerdir=$root,upperdir=$work/layer/upper,workdir=$work/layer/work" overlay "$work/layer/root"
		cd "$work/layer/root"
		mkdir -p proc sys tmp dev
		mount -t proc proc proc
		mount -t tmpfs -o mode=1777 tmp tmp
		cp "$work/chain.otlp" "$work/hearth.AppImage" tmp/
		exec env -i "$(command -v chroot)" . "$@"' bash "$root" "$work" "$@"
}
mkdir "$work/layer" "$work/empty"
cp "$file" "$work/hearth.AppImage"
echo "AppImage, empty root"
answers inside "$work/empty" /tmp/hearth.AppImage /tmp/chain.otlp
for root in "${roots[@]}"; do
	echo "AppImage, $(. "$root/etc/os-release" 2>/dev/null && echo "$PRETTY_NAME" || basename "$root")"
	answers inside "$root" /tmp/hearth.AppImage /tmp/chain.otlp
done
cd "$work"

# --- where it unpacks, and how long that takes ---
app=$work/hearth.AppImage
unset XDG_CACHE_HOME TMPDIR DISPLAY WAYLAND_DISPLAY
export HOME=$work/home
mkdir "$HOME"
first=$(seconds "$app" version)
again=$(seconds "$app" version)
echo "  $(stat -c %s "$file" | awk '{ printf "%.1f MB", $1 / 1e6 }') as a file, $(du -sm "$HOME" | cut -f 1) MB unpacked; 'version': $first at the first start, $again later"
cache=$HOME/.cache/hearth-appimage
[ "$(stat -c %a "$cache")" = 700 ] || fail "the folder is open to others: $(stat -c %a "$cache")"
copies() {
	find "$1" -mindepth 1 -maxdepth 1 -type d | wc -l
}
[ "$(copies "$cache")" = 1 ] || fail "not one copy: $(ls "$cache")"
copy=$(find "$cache" -mindepth 1 -maxdepth 1 -type d)

# Something is missing, or cut, or something else: it is made anew.
rm "$copy/usr/lib/hearth" && "$app" version >/dev/null || fail "a copy that lacks a file is not mended"
truncate -s 100 "$copy/usr/lib/ld.so" && "$app" version >/dev/null || fail "a copy with a cut file is not mended"
rm "$copy/AppRun" && ln -s /bin/false "$copy/AppRun" && "$app" version >/dev/null || fail "a copy with a link for a file is not mended"
chown 65534 "$copy/AppRun" && "$app" version >/dev/null && [ "$(stat -c %u "$copy/AppRun")" = 0 ] || fail "a copy with another's file is not mended"

# A kill while it unpacks; what is left is passed over.
rm -rf "$cache"
halves=0
for ms in $(seq 5 10 300); do
	rm -rf "$copy"
	"$app" version >/dev/null 2>&1 &
	victim=$!
	sleep "0.$(printf %03d "$ms")"
	kill -KILL "$victim" 2>/dev/null || :
	wait "$victim" 2>/dev/null || :
	[ ! -e "$copy.new" ] || halves=$((halves + 1))
	[ ! -e "$copy" ] || [ -e "$copy/usr/lib/hearth" ] || fail "half of a copy has the name of a whole one"
done
[ $halves -gt 0 ] || fail "no kill met it while it unpacked"
"$app" version >/dev/null && [ ! -e "$copy.new" ] || fail "what a kill left stays: $(ls "$cache")"

# Eight starts at once.
rm -rf "$cache"
starts=()
for i in 1 2 3 4 5 6 7 8; do
	"$app" version >"$work/said.$i" 2>&1 &
	starts+=("$!")
done
for i in "${starts[@]}"; do wait "$i" || fail "one of eight starts: $(cat "$work"/said.*)"; done
[ "$(copies "$cache")" = 1 ] || fail "eight starts leave $(ls "$cache")"

# Folders that others have, or may change, are not taken, and it says which.
export TMPDIR=$work/tmp
mkdir "$TMPDIR"
# passed WHY: it runs out of the next place; there is nothing new in the first
passed() {
	rm -rf "$TMPDIR/hearth-appimage-0"
	"$app" version >/dev/null 2>"$work/err" || fail "$1: $(cat "$work/err")"
	[ -d "$TMPDIR/hearth-appimage-0" ] || fail "$1, and it is taken"
}
chown 65534 "$cache" && passed "another user's folder"
chown 0 "$cache" && chmod 770 "$cache" && passed "a folder that a group may change"
chmod 700 "$cache" && chmod 777 "$HOME" && passed "a folder below one that all may change"
chmod 755 "$HOME" && chown 65534 "$HOME/.cache" && passed "a folder below another user's"
chown 0 "$HOME/.cache" && mv "$cache" "$work/elsewhere" && ln -s "$work/elsewhere" "$cache" && passed "a link in place of the folder"
rm "$cache" && rm -rf "$TMPDIR"
unshare --mount --propagation private bash -euc 'mount -t tmpfs -o noexec,mode=755 none "$HOME"; mkdir -p "$TMPDIR"; "$1" version >/dev/null
	[ -d "$TMPDIR/hearth-appimage-0" ]' bash "$app" || fail "a place where nothing may run"
status=0
unshare --mount --propagation private bash -euc 'mount -t tmpfs -o noexec none "$HOME"; mount -t tmpfs -o mode=1777 none /tmp
	install -d -o 65534 /tmp/hearth-appimage-0; unset TMPDIR; "$1" version' bash "$app" >"$work/out" 2>"$work/err" || status=$?
[ $status = 1 ] && grep -q 'noexec.*/tmp/hearth-appimage-0: it is not yours alone.*XDG_CACHE_HOME' "$work/err" || fail "no place at all: $status: $(cat "$work/err")"
status=0
unshare --mount --propagation private bash -euc 'mount -t tmpfs -o size=10m,mode=755 none "$HOME"; mount -t tmpfs -o size=10m none /tmp; unset TMPDIR; "$1" version' \
	bash "$app" >"$work/out" 2>"$work/err" || status=$?
[ $status = 1 ] && grep -q 'No space left' "$work/err" || fail "a full disk: $status: $(cat "$work/err")"
install -d -o 65534 "$work/nobody"
HOME=$work/nobody setpriv --reuid 65534 --clear-groups "$app" version >/dev/null || fail "it does not run for who is not root"

# --- words ---
# told STATUS PATTERN WORD...: it ends so, and says that
told() {
	local want=$1 pattern=$2 status=0
	shift 2
	"$app" "$@" >"$work/out" 2>&1 || status=$?
	[ $status = "$want" ] && grep -q -e "$pattern" "$work/out" || fail "$*: status $status: $(cat "$work/out")"
}
told 0 '^hearth [0-9]' --appimage-version
told 0 '--appimage-extract ' --appimage-help
told 2 'never mounted' --appimage-mount
told 2 'not known' --appimage-updateinfo
told 2 'nothing behind it' --appimage-extract usr/bin/hearth
told 0 '^Usage: hearth view '
told 0 '^Usage: hearth report ' --appimage-extract-and-run report --help
told 2 'unknown command' no-such-command
told 0 'squashfs-root/AppRun' --appimage-extract
told 1 'already' --appimage-extract
"$work/squashfs-root/AppRun" version >/dev/null || fail "what was unpacked does not run"
mkdir "$work/bin"
printf '#!/bin/sh\necho "$1" >"%s"\n' "$work/opened" >"$work/bin/xdg-open"
chmod +x "$work/bin/xdg-open"
# opened PATTERN: the browser was given such an address
opened() {
	for _ in $(seq 100); do
		grep -q "$1" "$work/opened" 2>/dev/null && rm "$work/opened" && return
		sleep 0.1
	done
	fail "the browser is not given $1"
}
PATH=$work/bin:$PATH answers "$app" "$work/chain.otlp"
opened "^$url/#"
HEARTH_HTTP_ADDRESS=127.0.0.1:0 PATH=$work/bin:$PATH "$app" record -q -F 99 -d 1 -o "$work/now.otlp" --open >/dev/null 2>"$work/err" & # which starts hearth once more
shown=$!
opened '^http://127.0.0.1:[0-9]*/#'
kill -INT "$(pgrep -P "$shown")" && wait "$shown" || fail "record --open: $(cat "$work/err")"
shown=''
printf '#!/bin/sh\necho "%s"\n' "$work/chain.otlp" >"$work/bin/zenity"
chmod +x "$work/bin/zenity"
DISPLAY=:none PATH=$work/bin:$PATH answers "$app"
printf '#!/bin/sh\nexit 1\n' >"$work/bin/zenity"
DISPLAY=:none PATH=$work/bin:$PATH "$app" >"$work/out" 2>&1 && [ ! -s "$work/out" ] || fail "nobody chose a file, and it says $(cat "$work/out")"

# --- a file that was cut on its way ---
head -c $(($(stat -c %s "$app") - 100000)) "$app" >"$work/cut" && chmod +x "$work/cut"
app=$work/cut
told 1 'damaged or cut.*SHA256SUMS' version
head -c "$offset" "$file" >"$work/cut"
told 1 'no image' version
