#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Judges hearth's stack walk in many programs, one after another, and prints a table.   run.sh BUILD short|long [PROGRAM...]
# short: a second or so each, those that show most; long: all of them, $JUDGE_SECONDS (default 12) each. $JUDGE_SEED: another
# choice of stops. Programs that are not installed are left out. Exit status 1 when a difference has no explanation.
set -u
[ $# -ge 2 ] || {
	echo "usage: $0 BUILD short|long [PROGRAM...]" >&2
	exit 2
}
build=$(readlink -f "$1") size=$2
shift 2
cd "$(dirname "$0")" || exit 1
seed=${JUDGE_SEED:-1}
seconds=${JUDGE_SECONDS:-12}
[ "$size" = long ] || seconds=2
judge=$build/judge/judge programs=$build/judge/programs
[ -x "$judge" ] || {
	echo "$judge is not built: run 'make judge-bin' first" >&2
	exit 1
}
./build.sh "$programs" || exit 1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
chosen=" $* "
failed=0

# program NAME COMMAND...: judges it, if it is there and was asked for
program() {
	local name=$1 status=0
	shift
	[ "$chosen" = "  " ] || [[ $chosen == *" $name "* ]] || return 0
	command -v "$1" >/dev/null || {
		echo "$name" >>"$scratch/left-out"
		return 0
	}
	"$judge" -N "$name" -T differences.txt -s "$seed" -t "$seconds" "$@" >"$scratch/out" 2>"$scratch/err" </dev/null || status=$?
	grep '^class' "$scratch/out" >>"$scratch/classes"
	awk '$1 == "judged" { printf "%-14s %8d %9d %9d %8d %9d %6d %6d\n", $2, $3, $4, $8, $5, $6, $7, $9 }' "$scratch/out"
	[ $status = 0 ] || {
		failed=1
		echo "$name: not as it should be (status $status)"
		cat "$scratch/err"
	}
}

# long_program: only in the long form
long_program() {
	[ "$size" = long ] && program "$@"
}

text='for ((i = 0; i < 1000000; i++)); do x=${x}ab; [ ${#x} -gt 50 ] && x=; y=$((i * 3)); done'
python='
import hashlib, json, re
while True:
    sorted(str(i) for i in range(1000))
    re.sub("a+b", "b", "aaab" * 100)
    json.loads(json.dumps(list(range(100))))
    hashlib.sha256(b"x" * 5000).hexdigest()
    try:
        {}["no key"]
    except KeyError:
        pass
'
node='
const crypto = require("crypto"), zlib = require("zlib")
for (let i = 0; ; i++) {
	JSON.parse(JSON.stringify({ a: [1, 2, i], b: "x".repeat(100) }))
	crypto.createHash("sha256").update("a".repeat(1000)).digest("hex")
	zlib.gzipSync("text to pack ".repeat(50))
	/(a+)+b/.test("aaaaaaaab");
	[5, 3, i % 7].sort((a, b) => a - b).map(n => n.toString(16))
	try { null.f() } catch (e) { e.stack }
}
'
cc1plus=$(gcc -print-prog-name=cc1plus 2>/dev/null || echo none)

echo "seed $seed, $seconds s a program"
printf '%-14s %8s %9s %9s %8s %9s %6s %6s\n' program stops frames proved equal explained wrong cut
program c_lazy "$programs/c_lazy"
long_program c_now "$programs/c_now"
long_program c_clang "$programs/c_clang"
program c_static "$programs/c_static"
program c_musl "$programs/c_musl"
long_program c_musl_threads "$programs/c_musl_threads"
program cpp "$programs/cpp"
long_program cpp_O0 "$programs/cpp_O0"
program go "$programs/go"
program go_1.19 "$programs/go_1.19"
program openssl openssl speed -seconds 1 sha256 aes-128-cbc chacha20 ecdsap256 rsa2048 md5
# Where node's code is in a library of its own, as Debian's, differences.txt does not know it; tests/v8/matrix.sh judges that.
if ldd "$(command -v node)" 2>/dev/null | grep -q libnode; then
	echo "node: its code is in a library" >>"$scratch/left-out"
else
	program node node -e "$node"
fi
program python3 /usr/bin/python3 -c "$python"
program bash bash -c "$text"
long_program busybox busybox sh -c 'while true; do x=abc; for i in 1 2 3; do x=$x$i; done; done'
program git git -C ../.. log -p --stat
program cc1plus "$cc1plus" -quiet -O2 -std=c++17 programs/calls.cc -o /dev/null
long_program perl perl -e 'while (1) { my %h; $h{$_ % 97} .= "x$_" for 1 .. 1000; join ",", sort { $a <=> $b } keys %h; "aaab" =~ /(a+)+b/ }'
long_program gdb gdb -batch -ex 'python while True: [str(i) for i in range(1000)]'
long_program sort sort -R --parallel=2 "$cc1plus"
long_program xz xz -9 -c "$cc1plus"

if [ -s "$scratch/classes" ]; then
	echo
	echo "what was explained, and how (differences.txt):"
	awk '{ n[$2] += $3 } END { for (c in n) printf "%9d %s\n", n[c], c }' "$scratch/classes" | sort -rn
fi
[ ! -e "$scratch/left-out" ] || sed 's/^[^:]*$/left out: & not installed/; s/^\([^ :]*\): /left out: \1 /' "$scratch/left-out"
exit $failed
