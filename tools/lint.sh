#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Checks what a compiler does not: layers, lengths, licence lines, format, and what may stand in the tree at all. Works on
# tracked files and on new ones that are not ignored. Complaints are "file:line: what"; exit status 1 when there was one.
set -u
cd "$(git -C "$(dirname "$0")" rev-parse --show-toplevel)" || exit 1

# files REGEX...: the project's files whose path matches one of them, a line each
files() {
	local pattern
	pattern=$(IFS='|' && echo "$*")
	git ls-files --cached --others --exclude-standard | sort -u | grep -E "$pattern" | while read -r path; do
		[[ -f $path && ! -L $path ]] && echo "$path"
	done
}

# Fuzzer seeds and golden files hold whatever the programs under test read and write.
data='^tests/(fuzz/corpus|golden)/'
c_code='\.(c|h)$'

shell_scripts() {
	files . | grep -Ev "$data" | while read -r path; do
		[[ $path == *.sh ]] || head -n1 "$path" | grep -qE '^#!.*\b(ba)?sh\b' && echo "$path"
	done
}

# base <- proto <- {symbols, sinks} <- {agent, backend} <- cmd; bpf/ is for the agent alone. Tests and tools see everything.
check_layers() {
	files '^(base|proto|symbols|sinks|agent|backend|cmd|bpf)/.*\.(c|h|def)$' | xargs -rd '\n' awk '
		BEGIN {
			below["bpf"] = "bpf"
			below["base"] = "base"
			below["proto"] = "proto base"
			below["symbols"] = "symbols proto base"
			below["sinks"] = "sinks proto base"
			below["agent"] = "agent bpf symbols sinks proto base"
			below["backend"] = "backend symbols sinks proto base"
			below["cmd"] = "cmd agent backend symbols sinks proto base"
		}
		match($0, /^[ \t]*#[ \t]*include[ \t]*["<][^">\/]+\//) {
			layer = FILENAME
			sub(/\/.*/, "", layer)
			target = $0
			sub(/^[^"<]*/, "", target)
			# Angle brackets are for the system, where <bpf/...> is libbpf; but the compiler finds our own folders there too.
			is_system = target ~ /^</
			target = substr(target, 2)
			sub(/\/.*/, "", target)
			if (is_system && (target == "bpf" || !(target in below)))
				next
			if (!((" " below[layer] " ") ~ (" " target " ")))
				printf "%s:%d: %s/ must not include %s/\n", FILENAME, FNR, layer, target
		}'
}

# A function is what stands between "{" and "}" in column 0. Above 60 lines it is only mentioned, on stderr.
check_lengths() {
	files '\.(py|sh|js)$' '^Makefile$' | xargs -rd '\n' awk 'FNR == 601 { printf "%s:601: file of more than 600 lines\n", FILENAME }'
	files "$c_code" | xargs -rd '\n' awk '
		FNR == 1 { start = 0 }
		FNR == 601 { printf "%s:601: file of more than 600 lines\n", FILENAME }
		/^[A-Za-z_].*\(/ { head = $0 }
		/^\{/ { start = FNR }
		/^\}/ && start {
			length_lines = FNR - start + 1
			name = head
			sub(/\(.*/, "", name)
			sub(/.*[^A-Za-z0-9_]/, "", name)
			if (length_lines > 100)
				printf "%s:%d: %s has %d lines, more than 100\n", FILENAME, start, name, length_lines
			else if (length_lines > 60)
				printf "%s:%d: warning: %s has %d lines, more than 60\n", FILENAME, start, name, length_lines >"/dev/stderr"
			start = 0
		}'
}

check_licence() {
	local path licence line want number
	files . | grep -Ev "$data" | while read -r path; do
		licence='Apache-2.0'
		[[ $path == bpf/* || $path == *.bpf.[ch] ]] && licence='GPL-2.0-only OR BSD-2-Clause'
		number=1
		[[ $(head -c2 "$path" | tr -d '\0') == '#!' ]] && number=2
		want="SPDX-License-Identifier: $licence"
		case $path in
		*.c | *.h | *.def | *.cc | *.css) want="/* $want */" ;;
		*.proto | *.js | *.mjs | *.rs | *.go) want="// $want" ;;
		*.html) want="<!-- $want -->" ;;
		*.sh | *.py | *.mk | Makefile | */Makefile | *.yml | *.yaml) want="# $want" ;;
		*) if ((number == 2)); then want="# $want"; else continue; fi ;;
		esac
		line=$(sed -n "${number}p" "$path" | tr -d '\0')
		[[ $line == "$want" ]] || echo "$path:$number: the line should be: $want"
	done
}

check_format() {
	if ! command -v clang-format >/dev/null; then
		echo "lint: warning: clang-format is not installed, the format was not checked" >&2
		return
	fi
	files "$c_code" | xargs -rd '\n' clang-format --dry-run -Werror 2>&1 |
		sed -nE 's/^([^: ]+:[0-9]+):[0-9]+: error: .*/\1: not as clang-format writes it (make format)/p' | sort -t: -u -k1,1
}

check_tree() {
	local path
	files '\.(o|a|so|d|pyc|gch|gcda|gcno)$' '\.skel\.h$' '\.pb\.[ch]$' '(^|/)vmlinux\.h$' '^build[^/]*/' |
		sed 's/$/:1: generated file/'
	files . | grep -Ev "$data" | while read -r path; do
		if [[ -s $path ]] && ! grep -qI '' "$path"; then
			echo "$path:1: binary file"
		fi
	done
	# Written so that this file does not find itself.
	files . | grep -Ev "$data" | xargs -rd '\n' grep -InE '\b(TO[D]O|FIX[M]E|X[X]X)\b' /dev/null | sed 's/^\([^:]*:[0-9]*:\).*/\1 unfinished work/'
	files . | grep -Ev "$data|^LICENSE$" | xargs -rd '\n' grep -InE '[[:blank:]]+$' /dev/null | sed 's/^\([^:]*:[0-9]*:\).*/\1 trailing white space/'
}

check_shell() {
	local path
	shell_scripts | while read -r path; do
		bash -n "$path" 2>&1 | sed -E 's/^([^:]+): line ([0-9]+): /\1:\2: /'
		# Not: variables shared with the script that sources this one, and busybox taken for dash.
		if ((PIPESTATUS[0] == 0)) && command -v shellcheck >/dev/null; then
			shellcheck --severity=warning --exclude=SC2034,SC2154,SC2187 --format=gcc "$path"
		fi
	done
}

# A test of the tests that does not apply any more tests nothing.
check_mutants() {
	local path
	files '^tests/mutants/.*\.patch$' | while read -r path; do
		git apply --check "$path" 2>/dev/null || echo "$path:1: does not apply any more"
	done
}

complaints=0
for check in layers lengths licence format tree shell mutants; do
	output=$(check_$check)
	if [[ $output ]]; then
		complaints=$((complaints + $(wc -l <<<"$output")))
		printf '%s\n' "$output"
	fi
done
if ((complaints)); then
	echo "lint: $complaints to mend"
	exit 1
fi
echo "lint: clean"
