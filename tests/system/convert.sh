#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Captures in other formats: every stack and every count of a recording is in the pprof file, as protobuf's own decoder and
# `go tool pprof` read it, and in the others; what cannot be written leaves nothing behind.
. "$TOP/tests/system/lib.sh"
need_bpf

start cpp "$TRUTH/cpp_chain" 6
start go "$TRUTH/go_chain" 6
"$HEARTH" record -F 199 -d 4 -o all.otlp >out 2>err || fail "exit status $?: $(cat err)"
"$HEARTH" report all.otlp --format folded | LC_ALL=C sort >all.want
[ "$(wc -l <all.want)" -gt 20 ] || fail "hardly anything was recorded"

# pprof_file FILE: what go tool pprof shows as the program of a profile; "none" where it shows no such line
pprof_file() {
	go tool pprof -top "$1" >pprof.top 2>/dev/null && grep -q '^Showing' pprof.top || fail "go tool pprof: $(cat pprof.top)"
	sed -n 's/^File: //p' pprof.top | grep . || echo none
}

# pprof
"$HEARTH" convert all.otlp all.pb.gz 2>err || fail "exit status $?: $(cat err)"
grep -q "times of samples" err || fail "it does not say what is missing: $(cat err)"
status=0
python3 "$TOP/tests/system/pprof_stacks.py" all.pb.gz >stacks || status=$?
[ $status != 77 ] || skip "$(cat stacks)"
[ $status = 0 ] || fail "the profile is not sound"
LC_ALL=C sort stacks >all.got
cmp all.want all.got || fail "not the same stacks: $(diff all.want all.got | head -n 5)"
if command -v go >/dev/null; then
	go tool pprof -raw -sample_index=samples all.pb.gz >raw 2>pprof.err || fail "go tool pprof: $(cat pprof.err)"
	[ ! -s pprof.err ] || fail "go tool pprof complains: $(cat pprof.err)"
	counted=$(go tool pprof -top -sample_index=samples -nodecount=1 all.pb.gz 2>/dev/null | sed -nE 's/.* of ([0-9]+) total.*/\1/p' | head -n 1)
	wanted=$(awk '{ n += $NF } END { print n }' all.want)
	[ "$counted" = "$wanted" ] || fail "go tool pprof counts $counted samples of $wanted"
	go tool pprof -top -tagfocus=thread.name=cpp_chain all.pb.gz 2>/dev/null | grep -q 'truth::' || fail "no C++ function by label"
	[ "$(pprof_file all.pb.gz)" = none ] || fail "several programs have the file $(pprof_file all.pb.gz)"
else
	left_out pprof "no go here"
fi

# Event by event. perf script has no place for the range of code without a name, nor for the program that made it.
plain() { sed -E 's/\+0x[0-9a-f]+\.\.0x[0-9a-f]+/ (no symbols)/g; s/\[JIT code\][^;]*;/anon (no symbols);/g; s/\[JIT code\].* ([0-9]+)$/anon (no symbols) \1/' | awk '{ n = $NF; sub(/ [0-9]+$/, ""); sum[$0] += n } END { for (s in sum) print s, sum[s] }' | LC_ALL=C sort; }
plain <all.want >all.plain
period=$(python3 -c 'print(10**9 // 199)')
for file in all.speedscope.json all.perf.txt all.firefox.json.gz; do
	"$HEARTH" convert all.otlp $file 2>/dev/null || fail "no $file"
	python3 "$TOP/tests/system/text_stacks.py" $file "$period" | LC_ALL=C sort >all.got || fail "$file is not sound"
	want=all.want
	[ $file != all.perf.txt ] || want=all.plain
	cmp $want all.got || fail "$file has not the same stacks: $(diff $want all.got | head -n 5)"
done

# The same by recording, compressed, and back to folded stacks.
"$HEARTH" convert all.otlp all.otlp.gz && gzip -t all.otlp.gz || fail "no sound .otlp.gz"
for packed in zst:zstd xz:xz; do
	file=all.otlp.${packed%%:*} tool=${packed#*:}
	"$HEARTH" convert all.otlp "$file" && "$tool" -dc "$file" >unpacked.otlp || fail "no sound $file"
	"$HEARTH" convert "$file" - --format otlp | cmp - unpacked.otlp || fail "$file is not read as what it holds"
done
"$HEARTH" convert all.otlp.gz all.folded 2>/dev/null && LC_ALL=C sort all.folded | cmp - all.want || fail "not the same folded stacks"
"$HEARTH" convert all.otlp - --format folded 2>/dev/null | cmp - all.folded || fail "standard output differs"
"$HEARTH" record -F 99 -o now.pb.gz -- "$TRUTH/c_chain" 1 >out 2>err || fail "exit status $?: $(cat err)"
python3 "$TOP/tests/system/pprof_stacks.py" now.pb.gz | grep -q '^c_chain;.*;main;.*;leaf' || fail "no stack of the command"
! command -v go >/dev/null || [ "$(pprof_file now.pb.gz)" = c_chain ] || fail "the one program has the file $(pprof_file now.pb.gz)"
[ "$(echo now.pb.gz*)" = now.pb.gz ] || fail "left behind: $(echo now.pb.gz*)"

# Every format that is read says the same stacks again, whatever the file is called; speedscope has nanoseconds for samples.
mkdir -p copies
for format in otlp.zst otlp.json otlp.jsonl pb.gz folded speedscope.json perf.txt; do
	"$HEARTH" convert all.otlp copies/x.$format 2>/dev/null || fail "no $format"
	mv copies/x.$format copies/x
	"$HEARTH" report copies/x --format folded 2>err | LC_ALL=C sort >all.got || fail "$format is not read: $(cat err)"
	[ $format = speedscope.json ] && awk -v p="$period" '{ $NF /= p } 1' all.got >scaled && mv scaled all.got
	want=all.want
	[ $format != perf.txt ] || want=all.plain
	cmp $want all.got || fail "$format is read with other stacks: $(diff $want all.got | head -n 5)"
done
"$HEARTH" convert all.otlp - --format otlp.json 2>/dev/null | python3 -c 'import json, sys; json.load(sys.stdin)' || fail "no JSON"
cat all.otlp all.otlp >twice.otlp
"$HEARTH" report twice.otlp --format folded | awk '{ $NF /= 2 } 1' | LC_ALL=C sort | cmp - all.want || fail "two captures in one file"
if command -v perf >/dev/null && perf record -F 199 -g -e cpu-clock -o perf.data -- "$TRUTH/c_chain" 1 >/dev/null 2>&1; then
	"$HEARTH" report perf.data >top 2>err || fail "perf.data is not read: $(cat err)"
	[ "$(head -n 1 top | cut -d ' ' -f 1)" = "$(perf script -i perf.data 2>/dev/null | grep -c 'cpu-clock')" ] ||
		fail "perf script has other samples than $(head -n 1 top)"
else
	left_out perf "no perf that records here"
fi

mkdir -p scratch
start busy sh -c 'while :; do :; done'
TMPDIR=$PWD/scratch "$HEARTH" record -F 99 -d 1 -o - --format folded >now.folded 2>err || fail "exit status $?: $(cat err)"
"$HEARTH" report now.folded >/dev/null 2>err && [ -s now.folded ] || fail "no folded stacks on standard output: $(cat err)"
kill "$started"
[ -z "$(ls scratch)" ] || fail "left behind: $(ls -R scratch)"
"$HEARTH" record -F 99 -o odd.name --format pprof -- "$TRUTH/c_chain" 1 >out 2>err || fail "exit status $?: $(cat err)"
python3 "$TOP/tests/system/pprof_stacks.py" odd.name >/dev/null || fail "--format pprof is not obeyed"

# What is no regular file is written to, and stays what it is; so does a link.
mkfifo pipe.folded
cat pipe.folded >piped & reader=$!
timeout 20 "$HEARTH" convert all.otlp pipe.folded 2>err || fail "cannot write to a FIFO: $(cat err)"
[ -p pipe.folded ] || { kill $reader; fail "a FIFO was replaced"; }
wait $reader
cmp piped all.folded || fail "other bytes came through the FIFO"
: >linked.folded && ln -s linked.folded link.folded
"$HEARTH" convert all.otlp link.folded 2>err || fail "cannot write through a link: $(cat err)"
[ -L link.folded ] && cmp linked.folded all.folded || fail "a link was replaced"

# What cannot be
! "$HEARTH" convert all.otlp all.xyz 2>err || fail "an unknown format was written"
grep -q "does not say which format" err || fail "unclear: $(cat err)"
mkdir -p away && : >away/x.pb.gz
head -c 1000 all.otlp.gz >cut.otlp.gz
! "$HEARTH" convert cut.otlp.gz away/x.pb.gz 2>err || fail "a cut file was read"
grep -q "damaged or cut" err || fail "unclear: $(cat err)"
[ "$(ls away)" = x.pb.gz ] && [ ! -s away/x.pb.gz ] || fail "something was written: $(ls -l away)"
(ulimit -S -f "$(ulimit -H -f)" && truncate -s 10G sparse.otlp)
! "$HEARTH" convert sparse.otlp away/x.pb.gz 2>err || fail "10 GB of nothing were read"
grep -q "larger than 8 GB" err || fail "unclear: $(cat err)"
for format in otlp otlp.zst otlp.json pb.gz speedscope.json; do
	"$HEARTH" convert all.otlp whole.$format 2>/dev/null
	head -c $(($(stat -c %s whole.$format) * 2 / 3)) whole.$format >cut
	printf 'x\n' >>cut
	"$HEARTH" convert cut away/y.folded >out 2>err || [ "$(wc -l <err)" = 1 ] || fail "$format, damaged: $(cat err)"
	grep -qE "cut is |cut cannot be read" err || fail "$format, damaged: nothing is said: $(cat err)"
done
rm -f away/y.folded
[ "$(ls away)" = x.pb.gz ] && [ ! -s away/x.pb.gz ] || fail "something was written: $(ls -l away)"
! "$HEARTH" convert all.otlp missing/x.pb.gz 2>err || fail "it was written nowhere"
grep -q "cannot write missing/x.pb.gz" err || fail "unclear: $(cat err)"
echo "$(wc -l <all.want) stacks"
