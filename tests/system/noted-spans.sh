#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Spans that OpenTelemetry's eBPF instrumentation notes in its pinned map: a map of the same shape stands for it here, in a file system of this
# test alone. The map is there first, comes later, goes, and has another shape; a program's own word stands over it.
. "$TOP/tests/system/lib.sh"
need_bpf
if [ -z "${NOTED_SPANS:-}" ]; then
	exec unshare --mount --propagation private env NOTED_SPANS=1 bash "$0"
fi
mount -t bpf bpf /sys/fs/bpf || skip "no bpf file system can be mounted here"
bpftool=$(command -v bpftool || echo /usr/sbin/bpftool)
[ -x "$bpftool" ] || skip "no bpftool here"
pin=/sys/fs/bpf/otel/traces_ctx_v1
trace=0102030405060708090a0b0c0d0e0f10 span=1112131415161718
mkdir /sys/fs/bpf/otel
# make_map VALUE_BYTES
make_map() {
	"$bpftool" map create $pin type lru_hash key 8 value "$1" entries 16384 name traces_ctx_v1 || fail "bpftool map create"
}
# same WHAT GOT WANTED
same() {
	[ "$2" = "$3" ] || fail "$1: '$2', wanted '$3'"
}
# note PROCESS THREAD: the span above is the one that the thread works on
note() {
	local key
	key=$(python3 -c "import sys; print((int(sys.argv[1]) << 32 | int(sys.argv[2])).to_bytes(8, '$order').hex(' '))" "$1" "$2")
	"$bpftool" map update pinned $pin key hex $key value hex $(sed 's/../& /g' <<<"$trace$span") || fail "bpftool map update"
}
order=$(python3 -c 'import sys; print(sys.byteorder)')
# has_tasks PROCESS COUNT
has_tasks() {
	[ "$(find "/proc/$1/task" -mindepth 1 -maxdepth 1 | wc -l)" = "$2" ]
}
# take SECONDS [OPTION...]: samples of $spinner and $other in x.otlp.json
take() {
	"$HEARTH" record -F 499 -d "$@" -p "$spinner,$other" -o x.otlp.json 2>err || fail "record: $(cat err)"
}
links_of() {
	python3 "$TOP/tests/system/noted_spans.py" x.otlp.json "$1"
}
start spin.out sh -c 'while :; do :; done'
spinner=$started
start other.out sh -c 'while :; do :; done'
other=$started

make_map 24
note "$spinner" "$spinner"
take 1
same "spans of a noted thread" "$(links_of "$spinner" | cut -d' ' -f1,2)" "$trace $span"
same "spans of another" "$(links_of "$other" | cut -d' ' -f1,2)" "- -"
grep -q "samples have the spans that $pin notes" err || fail "the map is not told of: $(cat err)"

# It goes and comes within a recording.
rm $pin
take 7 --report-interval 1 &
taking=$!
sleep 1
make_map 24
note "$spinner" "$spinner"
sleep 3
rm $pin
wait $taking || fail "record beside a map that comes and goes"
links_of "$spinner" >links
awk '{ n[$1 == "-"] += $NF } END { exit !(n[0] > 100 && n[1] > 100) }' links || fail "a map that came and went: $(cat links)"
grep -q "$pin is gone" err || fail "it is not said that the map is gone: $(cat err)"

# One of another shape is refused, once, and nothing else changes.
make_map 16
take 4 --report-interval 1
same "how often a wrong map is told" "$(grep -c "the spans that $pin notes are not used: Invalid argument" err)" 1
same "spans of a wrong map" "$(links_of "$spinner" | cut -d' ' -f1,2)" "- -"
rm $pin

# Who says its span itself is believed.
make_map 24
"${CC:-gcc}" -O2 -g -o linked "$TOP/tests/context/spans.c" "$TOP/tests/context/context.c" -pthread -Wl,--export-dynamic || skip "no C compiler here"
start program.out ./linked 60 2
until_true 10 has_tasks "$started" 3 || fail "linked: $(cat program.out.err)"
for task in /proc/"$started"/task/*; do
	note "$started" "${task##*/}"
done
"$HEARTH" record -q -F 997 -d 2 -p "$started" -o x.otlp.json 2>err || fail "record: $(cat err)"
links_of "$started" >links
grep -q "^$trace $span " links || fail "samples outside of spans have not the noted one: $(head -3 links)"
grep -q '^00000000000000000000000000000001 ' links || fail "the program's own spans are not there: $(head -3 links)"
! grep -q '^- -' links || fail "samples without a span: $(cat links)"
kill "$started" "$spinner" "$other"
