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
cp "$here/tools/lint.sh" "$here/tools/check-rooms" tools/
cat >tools/rooms <<'END'
# a comment
top: high high/* low
high: high/inner bpf # a child is used where it is named
	low
high/inner: low
side: other low
other: side low
low:
bpf:
END
cp "$here/.clang-format" .
echo 'base/y: other # a reason' >tools/names

passed=0 failed=0
c='/* SPDX-License-Identifier: Apache-2.0 */'
bpf='/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */'
sh=$'#!/bin/sh\n# SPDX-License-Identifier: Apache-2.0'

# tell FILE WANT SAID: counts and shows whether check-rooms said only "FILE:WANT...", or nothing for WANT ''
tell() {
	if [[ $2 ]] && [[ $3 == "$1:$2"* && $3 != *$'\n'[^' ']* ]] || [[ -z $2 && -z $3 ]]; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		printf 'FAIL %s: wanted "%s", check-rooms said:\n%s\n' "$1" "${2:-nothing}" "$3"
	fi
}

# plant FILE CONTENT WANT: lint's only complaint about a tree with this file; WANT '' when there must be none
plant() {
	local path=$1 content=$2 want=$3 output status wrong=
	mkdir -p "$(dirname "$path")"
	printf "$content\n" >"$path"
	output=$(tools/lint.sh 2>/dev/null) # warnings are no complaints
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

# includes FILE HEADER WANT: what tools/check-rooms says about a tree with this file
includes() {
	local said
	mkdir -p "$(dirname "$1")"
	printf '\n#include %s\n' "$2" >"$1"
	said=$(tools/check-rooms 2>&1)
	tell "$1" "$3" "$said"
	rm "$1"
}

declare -A allowed=(
	[top]="top high high/inner low" [high]="high high/inner bpf low" [high/inner]="high/inner low"
	[side]="side other low" [other]="other side low" [low]="low" [bpf]="bpf"
)
for from in "${!allowed[@]}"; do
	for to in "${!allowed[@]}"; do
		want="2: $from/ must not use $to/: includes $to/y.h"
		[[ " ${allowed[$from]} " == *" $to "* ]] && want=
		includes "$from/x.c" "\"$to/y.h\"" "$want"
	done
	includes "$from/x.h" '<bpf/bpf_helpers.h>' ''
done
includes low/x.c '<high/y.h>' '2: low/ must not use high/'
includes low/deeper/x.c '"high/inner/deeper/y.h"' '2: low/ must not use high/inner/'
includes high/deeper/x.c '"high/inner/y.h"' ''
includes high/x.c '"../top/y.h"' '2: high/ must not use top/'
includes tests/unit/low/x.c '"high/y.h"' ''
plant low/x.c "$c\n#include \"high/y.h\"" '2: low/ must not use high/: includes high/y.h'

# calls FILE CODE FILE CODE WANT: what it says about a tree of these files when it is built; WANT begins behind the first file's name
calls() {
	local path
	for path in "$1" "$3"; do
		mkdir -p "$(dirname "$path")" "build/$(dirname "$path")"
	done
	echo "$2" >"$1"
	echo "$4" >"$3"
	for path in "$1" "$3"; do
		cc -c -o "build/${path%.c}.o" "$path"
	done
	tell "$1" "$5" "$(tools/check-rooms --build build 2>&1)"
	rm -r build "$1" "$3"
}

calls high/x.c 'void y(void); void x(void) { y(); }' low/y.c 'void y(void) {}' ''
calls low/x.c $'void y(void);\nvoid x(void) { y(); }' high/y.c 'void y(void) {}' '1: low/ must not use high/: calls y of high/y.c'
calls low/x.c 'extern int y; int *x = &y;' high/y.c 'int y;' '1: low/ must not use high/: calls y of high/y.c'
calls side/x.c 'void y(void); void x(void) { y(); }' other/y.c 'void y(void) {}' ''
calls other/x.c 'void y(void); void x(void) { y(); }' side/y.c 'void x(void); void y(void) { x(); }' \
	'1: a circle of 2 files spans other/ (x), side/ (y)'
calls side/x.c 'void y(void); void x(void) { y(); }' side/y.c 'void x(void); void y(void) { x(); }' ''
calls side/x.c 'int x;' side/deeper/x.c 'static int x;' '1: side/ has this name twice: side/x.c and side/deeper/x.c'

plant base/x.c "$c$(lines 599 'int declared;')" ''
plant base/x.c "$c$(lines 600 'int declared;')" '601: file of more than 600 lines'
plant tests/x.py "# SPDX-License-Identifier: Apache-2.0
$(lines 600 'x = 1')" '601: file of more than 600 lines'
plant base/x.c "$c\nint x_long(void)\n{$(lines 98 '	x_long();')\n}" '' # two lines are the braces
plant base/x.c "$c\nint x_long(void)\n{$(lines 99 '	x_long();')\n}" '3: x_long has 101 lines'

plant base/x.c 'int x;' '1: the line should be: /*'
plant base/x.c "$bpf" '1: the line should be: /* SPDX-License-Identifier: Apache-2.0 */'
plant bpf/x.h "$c" '1: the line should be: /* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */'
plant base/x.c '// SPDX-License-Identifier: Apache-2.0' '1: the line should be: /*'
plant proto/x.proto "$c" '1: the line should be: // SPDX'
plant tools/x.sh '#!/bin/sh\n:' '2: the line should be: # SPDX'
plant tests/x '#!/usr/bin/python3\n' '2: the line should be: # SPDX'
plant vendor/x.mk 'A := 1' '1: the line should be: # SPDX'
plant Makefile 'all:' '1: the line should be: # SPDX'

if [[ $(clang-format-14 --version 2>/dev/null || clang-format --version 2>/dev/null) == *" version 14."* ]]; then
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
said='does not say where it is'
for name in base deeps heap part; do
	plant base/deep/heap_parts.c "$c\nint ${name}_one(int x)\n{\n\treturn x;\n}" ''
done
plant base/y.c "$c\nint other_one(int x)\n{\n\treturn x;\n}" ''
plant base/x.c "$c\nint other_one(int x)\n{\n\treturn x;\n}" "2: other_one $said"
plant base/x.c "$c\nint xs(int x)\n{\n\treturn x;\n}" ''
plant base/x.c "$c\nint xy(int x)\n{\n\treturn x;\n}" "2: xy $said"
plant base/x.c "$c\nstatic int one(int x)\n{\n\treturn x;\n}" ''
plant base/x.c "$c\nint one(int x);" ''
plant base/x.c "$c\nint main(void)\n{\n\treturn 0;\n}" ''
plant docs/x.md 'See `base/gone.c`.' '1: names base/gone.c, which is not there'
plant docs/x.md 'See `gone.c` and `lint.sh`.' '1: names gone.c, which is not there'
plant docs/x.md 'See `tools/lint.sh`, `lint.sh` and `base/NAME.c`.' ''
said='a sentence begins with What'
plant docs/x.md 'What it is.' "1: $said"
plant docs/x.md '## What it is' "1: $said"
plant docs/x.md 'text\n- **Its name** is' "2: $said"
plant docs/x.md 'One. Those two' "1: $said"
plant docs/x.md '1. As one' "1: $said"
plant docs/x.md '| one | Its two |' "1: $said"
plant docs/x.md 'Ask what it is: "What?". Asking is as good.' ''
plant docs/x.md "\`\`\`\nWhat it is.\n\`\`\`" ''
plant base/x.c "$c\n/* One. What two. */" "2: $said"
plant base/x.c "$c\n/*\n * Its head. */" "3: $said"
plant base/x.c "$c\nint x; /* What it is. */" ''
plant tools/x.sh "$sh\n# As ever" "3: $said"
plant tools/x.sh "$sh\n:\n# As ever" ''
plant tools/x.sh "$sh\nif true; then" '4: syntax error'
plant tests/x "$sh\nif true; then" '4: syntax error'

new='---\ndiff --git a/new b/new\nnew file mode 100644\n--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+x'
plant tests/mutants/x.patch "Takes x out.\nTest: unit gone\n$new" '2: there is no unit test gone'
plant tests/mutants/x.patch "Takes x out.\nTest: gone arm\n$new" '2: there is no system test gone'
plant tests/mutants/x.patch "Takes x out.\n---\ndiff --git a/no b/no\n--- a/no\n+++ b/no\n@@ -1 +1 @@\n-x\n+y" '1: does not apply'

echo x.o >.gitignore
plant base/x.o 'ignored' ''
rm .gitignore

echo "$passed passed, $failed failed"
((failed == 0))
