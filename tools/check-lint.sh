#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Checks the checker: plants one offence at a time in an empty repository; tools/lint.sh must name it, and nothing else.
#   usage: tools/check-lint.sh
set -u
here=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
git init -q .
mkdir tools
cp "$here/tools/lint.sh" tools/
cp "$here/.clang-format" .

passed=0 failed=0
c='/* SPDX-License-Identifier: Apache-2.0 */'
bpf='/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */'
sh=$'#!/bin/sh\n# SPDX-License-Identifier: Apache-2.0'

# plant FILE CONTENT WANT: lint's only complaint about a tree with this file; WANT '' when there must be none
plant() {
	local path=$1 content=$2 want=$3 output status wrong=
	mkdir -p "$(dirname "$path")"
	printf "$content\n" >"$path"
	output=$(tools/lint.sh 2>&1)
	status=$?
	if [[ $want ]]; then
		[[ $status == 1 && $output == "$path:$want"* && $(wc -l <<<"$output") == 2 ]] || wrong=1
	else
		[[ $status == 0 && $output == *'lint: clean' ]] || wrong=1
	fi
	if [[ $wrong ]]; then
		failed=$((failed + 1))
		printf 'FAIL %s: wanted "%s", lint said:\n%s\n' "$path" "${want:-nothing}" "$output"
	else
		passed=$((passed + 1))
	fi
	rm "$path"
}

# lines N TEXT: for the end of a line
lines() {
	local i
	for ((i = 0; i < $1; i++)); do
		printf '\\n%s' "$2"
	done
}

declare -A allowed=(
	[bpf]="bpf" [base]="base" [proto]="proto base" [symbols]="symbols proto base" [sinks]="sinks proto base"
	[agent]="agent bpf symbols sinks proto base" [backend]="backend symbols sinks proto base"
	[cmd]="cmd agent backend symbols sinks proto base"
)
for from in "${!allowed[@]}"; do
	licence=$c
	[[ $from == bpf ]] && licence=$bpf
	for to in "${!allowed[@]}"; do
		want="2: $from/ must not include $to/"
		[[ " ${allowed[$from]} " == *" $to "* ]] && want=
		plant "$from/x.c" "$licence\n#include \"$to/y.h\"" "$want"
	done
	plant "$from/x.h" "$licence\n#include <bpf/bpf_helpers.h>\n#include <sys/types.h>" ''
done
plant base/x.c "$c\n#include <agent/y.h>" '2: base/ must not include agent/'
plant tests/unit/base/x.c "$c\n#include \"agent/y.h\"\n#include \"bpf/y.h\"" ''

plant base/x.c "$c$(lines 599 'int declared;')" ''
plant base/x.c "$c$(lines 600 'int declared;')" '601: file of more than 600 lines'
plant tests/x.py "# SPDX-License-Identifier: Apache-2.0
$(lines 600 'x = 1')" '601: file of more than 600 lines'
plant base/x.c "$c\nint long_one(void)\n{$(lines 98 '	long_one();')\n}" '' # two lines are the braces
plant base/x.c "$c\nint long_one(void)\n{$(lines 99 '	long_one();')\n}" '3: long_one has 101 lines'

plant base/x.c 'int x;' '1: the line should be: /*'
plant base/x.c "$bpf" '1: the line should be: /* SPDX-License-Identifier: Apache-2.0 */'
plant bpf/x.h "$c" '1: the line should be: /* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */'
plant base/x.c '// SPDX-License-Identifier: Apache-2.0' '1: the line should be: /*'
plant proto/x.proto "$c" '1: the line should be: // SPDX'
plant tools/x.sh '#!/bin/sh\n:' '2: the line should be: # SPDX'
plant tests/x '#!/usr/bin/python3\n' '2: the line should be: # SPDX'
plant vendor/x.mk 'A := 1' '1: the line should be: # SPDX'
plant Makefile 'all:' '1: the line should be: # SPDX'

if command -v clang-format >/dev/null; then
	plant base/x.c "$c\nint  x;" '2: not as clang-format'
fi

plant symbols/x.o 'int' '1: generated file'
plant agent/x.skel.h "$c" '1: generated file'
plant build-x/list 'text' '1: generated file'
plant docs/x.dat 'a\0b' '1: binary file'
plant tests/fuzz/corpus/elf/x 'a\0b  ' ''
plant base/x.c "$c\n/* TO""DO: later */" '2: unfinished work'
plant docs/x.md 'FIX''ME' '1: unfinished work'
plant tools/x.sh "$sh\nmktemp /tmp/x.XXXXXX" ''
plant docs/x.md 'text ' '1: trailing white space'
plant docs/x.md 'text\t' '1: trailing white space'
plant tools/x.sh "$sh\nif true; then" '4: syntax error'
plant tests/x "$sh\nif true; then" '4: syntax error'

echo x.o >.gitignore
plant base/x.o 'ignored' ''
rm .gitignore

echo "$passed passed, $failed failed"
((failed == 0))
