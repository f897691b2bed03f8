#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A store that an older hearth wrote, as root and as one process, is opened by this one: `hearth store` and `hearth report` read it as
# it is, or say what to do where its tables are older; `hearth run` changes its tables over, and its owner, once, and says so; nothing of it is lost; both read it then. And one
# of another user's. By hand: make store-before BEFORE=HEARTH, an older build's program.
#   before.sh BUILD BEFORE
build=$(readlink -f "${1:?usage: before.sh BUILD BEFORE}")
before=$(readlink -f "${2:?usage: before.sh BUILD BEFORE, an older hearth}")
TOP=$(readlink -f "$(dirname "$0")/../..")
export HEARTH=$build/hearth TRUTH=$build/truth TOP HEARTH_CONFIG=/dev/null
unset HEARTH_ONE_PROCESS SUDO_USER SUDO_UID SUDO_GID
here=$(mktemp -d)
cd "$here" || exit 1
export HEARTH_SYMBOL_CACHE=$here/symbols
. "$TOP/tests/system/lib.sh"
trap 'for pid in "${pids[@]}"; do kill -KILL "$pid" 2>/dev/null || :; done; cd /; rm -rf "$here"' EXIT
need_bpf

# run HEARTH NAME STORE: for two seconds
run() {
	start "$2" "$1" run -F 199 --http-address 127.0.0.1:0 --report-interval 200ms --store "$3"
	until_true 60 grep -q "profiles go to" "$2.err" || fail "no profiler: $(cat "$2.err")"
	sleep 2
	stop "$started"
}
samples() {
	"$HEARTH" store info --store "$1" | awk '/^ *samples/ { print $2 }'
}
version() {
	python3 -c 'import sqlite3, sys; print(sqlite3.connect(sys.argv[1] + "/profiles.db").execute("PRAGMA user_version").fetchone()[0])' "$1"
}

start busy "$TRUTH/c_chain" 300
run "$before" first old
cp -r old theirs
chown -R 65533:65533 theirs
for store in old theirs; do
	owner=$(stat -c %u "$store")
	version=$(version "$store")
	before_count=$("$before" store info --store "$store" | awk '/^ *samples/ { print $2 }')
	[ "$before_count" -gt 50 ] || fail "$store: the older one kept $before_count samples: $(cat first.err)"
	for reader in "report $store" "store info --store $store"; do
		# shellcheck disable=SC2086 # words
		"$HEARTH" $reader >as_it_is 2>reader.err || grep -q 'open it once for writing' reader.err || fail "$store: $reader: $(cat reader.err)"
	done
	[ "$(find "$store" -type f -printf '%U\n' | sort -u)" = "$owner" ] || fail "$store: reading made files of another's: $(ls -ln "$store")"
	run "$HEARTH" new "$store"
	now_owner=$(stat -c %u "$store")
	[ "$now_owner" != 0 ] || fail "$store: still root's: $(cat new.err)"
	[ "$owner" = 0 ] || [ "$now_owner" = "$owner" ] || fail "$store: was the user $owner's, and is $now_owner's"
	[ "$(grep -c "$store was root's; it belongs to the user $now_owner now" new.err)" = $((owner == 0)) ] || fail "$store: the change is said wrongly: $(cat new.err)"
	[ "$(find "$store" -printf '%U\n' | sort -u)" = "$now_owner" ] || fail "$store: not all of it: $(ls -ln "$store")"
	after=$(samples "$store")
	[ "$after" -ge $((before_count + $(count delivered new.err))) ] || fail "$store: $before_count samples before, $(count delivered new.err) delivered, $after now"
	run "$HEARTH" again "$store"
	! grep -q "was root's" again.err || fail "$store: changed owner again: $(cat again.err)"
	[ "$(samples "$store")" -gt "$after" ] || fail "$store: nothing came to it"
	"$HEARTH" report "$store" >report.out 2>report.err && grep -q 'leaf' report.out || fail "$store: $(cat report.err)"
	"$HEARTH" store verify --store "$store" >verified 2>&1 || fail "$store: $(cat verified)"
	[ "$(find "$store" -printf '%U\n' | sort -u)" = "$now_owner" ] || fail "$store: not all of it: $(ls -ln "$store")"
	echo "$store: tables of version $version, now $(version "$store"); the user $owner's, now $now_owner's; $before_count samples of before, $(samples "$store") now"
done
