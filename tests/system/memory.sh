#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Where memory is first touched: programs that say how much they touch, and where; huge pages; scripts; both forms of the walk; bytes
# taken = delivered + lost.
. "$TOP/tests/system/lib.sh"
need_bpf
gcc -O2 -g -o touch "$TOP/tests/memory/touch.c"

# kb_accounted FILE: what was taken was delivered or lost, by number and by bytes
kb_accounted() {
	awk '$2 == "memory:" { n++; rest = $12 - $15 - $18; bad = $3 != $7 + $10 || rest > 2 || rest < -2 } END { exit n != 1 || bad }' "$1" ||
		fail "memory is not accounted for: $(cat "$1")"
}

# told FILE FUNCTION: bytes of stacks with it
told() {
	awk -v f="$2" '{ n = $NF; sub(/ [0-9]+$/, "") } index(";" $0 ";", ";" f ";") { sum += n } END { printf "%.0f\n", sum }' "$1"
}

for form in '' --no-bpf-loop; do
	# shellcheck disable=SC2086 # there may be none
	"$HEARTH" record --memory --memory-every 128K $form -o x.otlp -- ./touch 64 64 >truth 2>err || fail "record $form: $(cat err)"
	! grep -q 'not sampled: this kernel' err || skip "$(grep 'not sampled: this kernel' err)"
	accounted err
	kb_accounted err
	"$HEARTH" report x.otlp --kind memory --format folded >folded
	while read -r name bytes; do
		got=$(told folded "$name")
		known "--memory $name $form" bytes "$bytes" "$got"
		# 128 KB a sample, so that 16 MB are 128: the places that take turns have a deviation of 8 %, the others of less than 1
		case $name in
		touch_again) slack=$((1 << 20)) ;;
		touch_one | touch_three) slack=$((bytes / 3)) ;;
		*) slack=$((bytes / 20)) ;;
		esac
		[ $((got - bytes)) -le $slack ] && [ $((bytes - got)) -le $slack ] || fail "$form $name: $got bytes for $bytes: $(cat err)"
	done <truth
done
grep -q 'huge pages: [1-9]' err || left_out huge-pages "the kernel gave none: $(grep 'huge pages' err)"

# Beside all else, in one recording: it is a kind of its own.
"$HEARTH" record --memory --off-cpu -e cpu-clock -o all.otlp -- ./touch 64 0 >truth 2>err || fail "record beside waits: $(cat err)"
accounted err
kb_accounted err
"$HEARTH" report all.otlp --kind memory | head -n 1 | grep -q 'bytes of memory' || fail "no memory beside waits: $("$HEARTH" report all.otlp --kind memory | head -n 1)"
"$HEARTH" report all.otlp | head -n 1 | grep -q 'of CPU time' || fail "the report begins with $("$HEARTH" report all.otlp | head -n 1)"
"$HEARTH" convert all.otlp all.pb.gz 2>/dev/null || fail "convert to pprof"
if command -v go >/dev/null; then
	go tool pprof -raw all.pb.gz 2>/dev/null | grep -q 'memory/bytes' || fail "pprof sees no memory/bytes: $(go tool pprof -raw all.pb.gz | head -5)"
fi

# A script's functions are in the stacks.
if [ -x /usr/bin/python3 ]; then
	cat >script.py <<'END'
import time
kept = []
def grow():
    kept.append(bytearray(b"x" * (8 << 20)))
def work():
    for _ in range(12): grow()
end = time.time() + 1
while time.time() < end: pass
work()
END
	"$HEARTH" record --memory --memory-every 128K -F 99 -o script.otlp -- /usr/bin/python3 script.py 2>err || fail "record: $(cat err)"
	"$HEARTH" report script.otlp --kind memory --format folded >folded
	got=$(told folded grow)
	[ "$got" -ge $((64 << 20)) ] || fail "of 96 MB $got bytes are in grow: $(sort -k2 folded | tail -5)"
fi

# Allocations of one process, at its own allocator: where the C library has it, and where another is before that.
gcc -O2 -g -o allocs "$TOP/tests/memory/allocs.c"
programs=(allocs)
if g++ -std=c++17 -O2 -g -o news "$TOP/tests/memory/news.cpp" 2>/dev/null; then programs+=(news); else left_out "operator new" "there is no g++"; fi
libraries=("")
for name in libjemalloc.so.2 libtcmalloc_minimal.so.4; do
	path=$(/sbin/ldconfig -p | awk -v n=$name '$1 == n { print $NF; exit }')
	if [ -n "$path" ]; then libraries+=("$path"); else left_out "$name" "it is not here"; fi
done
if "$HEARTH" record -e malloc -d 1 -o malloc.otlp 2>err || ! grep -q 'Say -p PID' err; then
	fail "malloc of all processes: $(cat err)"
fi

# judge_malloc WHAT [TIMES]: what malloc.otlp tells of each function of the file truth, which ran so often
judge_malloc() {
	local name bytes got
	"$HEARTH" report malloc.otlp --kind malloc --format folded >folded
	while read -r name bytes; do
		case $name in alloc_*) ;; *) continue ;; esac
		got=$(told folded "$name")
		bytes=$((bytes * ${2:-1}))
		known "-e malloc $name ($1)" bytes "$bytes" "$got"
		[ $((got - bytes)) -le $((bytes / 20)) ] && [ $((bytes - got)) -le $((bytes / 20)) ] || fail "$1 $name: $got bytes for $bytes: $(cat err)"
	done < <(sort -u truth)
}

# A command, from its first call on: it waits before its main.
for program in "${programs[@]}"; do
	if ! echo go | "$HEARTH" record -e malloc --memory-every 128K -o malloc.otlp -- "./$program" 16 >truth 2>err; then
		grep -q 'needs Linux' err || fail "record -e malloc -- $program: $(cat err)"
		left_out "malloc" "$(grep 'needs Linux' err)"
		exit 0
	fi
	grep -q "each allocation of process .* costs" err || fail "does not say what it costs: $(cat err)"
	accounted err
	judge_malloc "libc $program"
done
status=0
"$HEARTH" record -e malloc -o malloc.otlp -- sh -c 'exit 7' 2>err || status=$?
[ $status = 7 ] || fail "status $status of a command that ends with 7: $(cat err)"
status=0
"$HEARTH" record -e malloc -o malloc.otlp -- ./no-such-command 2>err || status=$?
[ $status = 127 ] || fail "status $status of no command: $(cat err)"

# It becomes programs with other allocators, in its own process and in a child's: each is found when it is mapped.
for library in "${libraries[@]}"; do
	for program in "${programs[@]}"; do
		[ -n "$library" ] || [ $program = allocs ] || continue
		rm -f orders
		mkfifo orders
		start truth "$HEARTH" record -v -e malloc --memory-every 128K -o malloc.otlp -- sh -c "LD_PRELOAD=$library ./$program 16 <orders; exit 3"
		exec 3>orders
		until_true 60 grep -q ready truth || fail "$program does not start: $(cat truth.err)"
		until_true 20 grep -Eq "malloc of process [0-9]+: in .*${library##*/}" truth.err || fail "${library:-libc} of a child is not found: $(cat truth.err)"
		echo go >&3
		until_true 60 grep -q done truth || fail "$program does not end"
		exec 3>&-
		status=0
		wait "$started" || status=$?
		[ $status = 3 ] || fail "record -e malloc: status $status: $(cat truth.err)"
		cp truth.err err
		accounted err
		judge_malloc "${library:-libc} $program, a child"
	done
done

# A process that runs.
rm -f orders
mkfifo orders
start truth sh -c 'exec ./allocs 64 <orders'
pid=$started
exec 3>orders
until_true 20 grep -q ready truth
start record.out "$HEARTH" record -e malloc --memory-every 128K -p "$pid" -o malloc.otlp 3>&-
recorder=$started
until_true 60 grep -Eq 'profiles go to|cannot' record.out.err
echo go >&3
until_true 60 grep -q done truth
exec 3>&-
wait "$recorder" || fail "record -e malloc: $(cat record.out.err)"
accounted record.out.err
judge_malloc "running allocs"
