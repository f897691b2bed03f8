#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Who ends waits, and what was waited for: pairs of threads that know, with a lock, a pipe, sockets and a timer; both forms of the walk;
# the locks of a report; waits without work left out.
# Alone: it judges who wakes whom.
. "$TOP/tests/system/lib.sh"
need_bpf
gcc -O1 -g -fno-omit-frame-pointer -o wakers "$TOP/tests/waits/wakers.c" -lpthread

for form in '' --no-bpf-loop; do
	# shellcheck disable=SC2086 # there may be none
	"$HEARTH" record --wakers --off-cpu-from 5ms -F 99 $form -o x.otlp -- ./wakers 2 >truth 2>err || fail "record $form: $(cat err)"
	if grep -q 'not sampled: this kernel' err; then
		skip "$(grep 'not sampled: this kernel' err)"
	fi
	accounted err
	grep -q 'waker: [0-9]* samples taken' err || fail "no accounting of wakers: $(cat err)"
	"$HEARTH" convert x.otlp x.otlp.json 2>/dev/null
	python3 "$TOP/tests/waits/wakers.py" x.otlp.json truth || fail "wakers are not told as they were ($form): $(cat err)"
done

# The lock, with both sides of it, by its address.
lock=$(awk '$1 == "take" { print $6, $7 }' truth)
"$HEARTH" report x.otlp --format locks >locks || fail "report --format locks"
grep -q "  $lock\$" locks || fail "no $lock among $(cat locks)"
grep -A3 "  $lock\$" locks | grep -q 'waits .* take (.*pthread_mutex_lock' || fail "nobody waits for it: $(cat locks)"
# A libc without symbols has no name for the function by which pthread_mutex_unlock() does it.
grep -A6 "  $lock\$" locks | grep -qE 'let go .* hold: let_go \((.*pthread_mutex_unlock|libc\.so)' || fail "nobody lets it go: $(cat locks)"
"$HEARTH" report x.otlp --kind off_cpu --by label=wait.target | grep -q "$lock" || fail "no grouping by what was waited for"
"$HEARTH" report x.otlp --kind waker --format tree | grep -q '\[woken by hold\]' || fail "no waker in the tree"

# A server that waits for work.
cat >idle.py <<'END'
import select, time
e = select.epoll()
def serve(): e.poll(1)
serve()
END
"$HEARTH" record --off-cpu -F 99 -o idle.otlp -- python3 idle.py 2>err || fail "record: $(cat err)"
idle_ms() {
	"$HEARTH" report idle.otlp --kind off_cpu --format folded "$@" | awk '/epoll_wait|ep_poll/ { ns += $NF } END { printf "%d", ns / 1e6 }'
}
[ "$(idle_ms)" -gt 900 ] || fail "no wait for epoll: $("$HEARTH" report idle.otlp --kind off_cpu --format folded)"
[ "$(idle_ms --hide-idle)" -eq 0 ] || fail "--hide-idle shows it"
