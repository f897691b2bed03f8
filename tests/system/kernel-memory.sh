#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The kernel's caches: as large as 'hearth check' says, doubled by each --map-scale, their memory told truly; and the verifier's
# log, which is there when it is asked for. The kernel's own figures are those of /proc/PID/fdinfo.
. "$TOP/tests/system/lib.sh"
need_bpf

# maps OPTION...: a line "TYPE ENTRIES BYTES" for each map of a recording with these options into the file maps
maps() {
	start_record caches.otlp -v "$@"
	for f in /proc/"$recorder"/fdinfo/*; do
		awk '/^map_type:/ { t = $2 } /^max_entries:/ { n = $2 } /^memlock:/ { b = $2 } /^map_id:/ { i = $2 }
			END { if (i) print i, t, n, b }' "$f" 2>/dev/null || : # one of a moment
	done | sort -un | cut -d ' ' -f 2- >maps
	stop "$recorder"
}
lru_hash=9 # enum bpf_map_type
entries() {
	awk -v t=$lru_hash '$1 == t { print $2 }' maps | tr '\n' ' '
}
bytes() {
	awk -v t="${1:-0}" '!t || $1 == t { sum += $3 } END { print sum + 0 }' maps
}
# near A B: within 5 %
near() {
	awk -v a="$1" -v b="$2" 'BEGIN { exit !(a > 0 && a < b * 1.05 && b < a * 1.05) }'
}

"$HEARTH" check >check || fail "hearth check: $(cat check)"
maps
cat maps
read -r procs chains programs mappings blocks <<<"$(entries)" # chains and programs are few, and of one size
grep -q "^yes  *kernel caches: .* for $procs processes, $mappings mappings, $blocks blocks" check ||
	fail "hearth check tells other sizes than $procs, $mappings, $blocks: $(grep caches check)"
told=$(sed -nE 's/.*kernel caches: ([0-9.]+) MB.*/\1/p' check)
near "$(bytes $lru_hash)" "$(awk "BEGIN { print $told * 1e6 }")" || fail "hearth check tells $told MB, the kernel $(bytes $lru_hash) bytes"
told=$(sed -nE 's/.*kernel maps: .* ([0-9.]+) MB.*/\1/p' record.out.err)
near "$(bytes)" "$(awk "BEGIN { print $told * 1e6 }")" || fail "--verbose tells $told MB, the kernel $(bytes) bytes"

maps --map-scale 2
[ "$(entries)" = "$((procs * 4)) $chains $programs $((mappings * 4)) $((blocks * 4)) " ] || fail "--map-scale 2 makes $(entries)of $procs $mappings $blocks"
HEARTH_MAP_SCALE=1 maps
[ "$(entries)" = "$((procs * 2)) $chains $programs $((mappings * 2)) $((blocks * 2)) " ] || fail "HEARTH_MAP_SCALE=1 makes $(entries)of $procs $mappings $blocks"

start busy.out sh -c 'while :; do :; done' # a recording without a sample would say so
lines() {
	"$HEARTH" record -q -F 499 -d 0.2 -o log.otlp "$@" >out 2>err || fail "record $*: $(head -c 1000 err)"
	wc -l <err
}
[ "$(lines)" = 0 ] || fail "a quiet recording says: $(cat err)"
brief=$(lines --bpf-log-level 1)
grep -qE '^processed [0-9]+ insns' err || fail "no verifier's log at level 1: $(head -n 20 err)"
lines --bpf-log-level 1 --no-bpf-loop >/dev/null
# Where a script runs meanwhile, the program that reads its interpreter is loaded, too.
[ "$(grep -cE '^--- the verifier on (on_sample|walk)_tail ---$' err)" = 2 ] && [ "$(grep -cE '^processed [0-9]+ insns' err)" -ge 2 ] ||
	fail "the log is not of both programs: $(head -n 20 err)"
full=$(lines --bpf-log-level 2)
[ "$full" -gt $((brief * 100)) ] || fail "$brief lines at level 1, $full at level 2"
