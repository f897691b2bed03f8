#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Checks what a compiler does not: rooms, lengths, licence lines, format, words, and what may stand in the tree at all. Works on
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

# Includes; what the objects call is for "make rooms".
check_rooms() {
	tools/check-rooms 2>&1
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
	files . | grep -Ev "$data" | xargs -rd '\n' awk '
		BEGIN {
			for (i = 1; i < ARGC; i++) {
				path = ARGV[i]
				number = 1
				line = ""
				getline line <path
				if (line ~ /^#!/) {
					number = 2
					line = ""
					getline line <path
				}
				close(path)
				want = "SPDX-License-Identifier: " (path ~ /^bpf\/|\.bpf\.[ch]$/ ? "GPL-2.0-only OR BSD-2-Clause" : "Apache-2.0")
				if (path ~ /\.(c|h|def|cc|css)$/)
					want = "/* " want " */"
				else if (path ~ /\.(proto|js|mjs|rs|go)$/)
					want = "// " want
				else if (path ~ /\.html$/)
					want = "<!-- " want " -->"
				else if (path ~ /\.(sh|py|mk|yml|yaml)$|(^|\/)Makefile$/ || number == 2)
					want = "# " want
				else
					continue
				if (line != want)
					printf "%s:%d: the line should be: %s\n", path, number, want
			}
		}'
}

# Each clang-format has a taste of its own, also with the same settings. The one that decides is that of Debian 12.
check_format() {
	local formatter
	formatter=$(command -v clang-format-14 || command -v clang-format) || :
	if [[ $("${formatter:-false}" --version 2>/dev/null) != *" version 14."* ]]; then
		echo "lint: warning: no clang-format 14 here, the format was not checked" >&2
		return
	fi
	files "$c_code" "\.def\$" | xargs -rd '\n' "$formatter" --dry-run -Werror 2>&1 |
		sed -nE 's/^([^: ]+:[0-9]+):[0-9]+: error: .*/\1: not as clang-format writes it (make format)/p' | sort -t: -u -k1,1
}

check_tree() {
	local path
	files '\.(o|a|so|d|pyc|gch|gcda|gcno)$' '\.skel\.h$' '\.pb\.[ch]$' '(^|/)vmlinux\.h$' '^build[^/]*/' |
		sed 's/$/:1: generated file/'
	files . | grep -Ev "$data" | xargs -rd '\n' grep -LI '' | while read -r path; do
		[[ -s $path ]] && echo "$path:1: binary file"
	done
	# Written so that this file does not find itself.
	files . | grep -Ev "$data" | xargs -rd '\n' grep -InE '\b(TO[D]O|FIX[M]E|X[X]X)\b' /dev/null | sed 's/^\([^:]*:[0-9]*:\).*/\1 unfinished work/'
	files . | grep -Ev "$data|^LICENSE$" | xargs -rd '\n' grep -InE '[[:blank:]]+$' /dev/null | sed 's/^\([^:]*:[0-9]*:\).*/\1 trailing white space/'
}

# A function that other files call is found by its name: it begins with a word that tells where it is. tools/names has the rule.
check_names() {
	{
		echo tools/names
		files '^(agent|backend|base|cmd|proto|sinks|symbols)/.*\.c$'
	} | xargs -rd '\n' awk '
		function allow(word) {
			words[word]
			words[word "s"]
			sub(/s$/, "", word)
			words[word]
		}
		FILENAME == "tools/names" && /^[a-z]/ {
			path = $1
			sub(/:$/, "", path)
			for (i = 2; i <= NF && $i != "#"; i++)
				also[path] = also[path] " " $i
		}
		FILENAME == "tools/names" { next }
		FNR == 1 {
			split("", words)
			file = FILENAME
			sub(/\.c$/, "", file)
			sub(/_(x86_64|arm64)$/, "", file)
			count = split(file, parts, "/")
			path = ""
			for (i = 1; i <= count; i++) {
				allow(parts[i])
				path = path (i > 1 ? "/" : "") parts[i]
				split(also[path], more, " ")
				for (j in more)
					words[more[j]]
			}
			allow(substr(parts[count], 1, index(parts[count] "_", "_") - 1))
			sub(/.*_/, "", parts[count])
			allow(parts[count])
		}
		/^[A-Za-z_].*\(/ { head = $0 }
		/^\{/ && head !~ /(^|[ )])static |^(typedef|struct [a-z_]+ \{|int main\()/ {
			name = head
			sub(/\(.*/, "", name)
			sub(/.*[^A-Za-z0-9_]/, "", name)
			good = name ~ /^__/
			for (word in words)
				if (name == word || index(name, word "_") == 1)
					good = 1
			if (!good)
				printf "%s:%d: %s does not say where it is (tools/names)\n", FILENAME, FNR - 1, name
		}'
}

# In pages, and in the comment that a file begins with: sentences that begin with one of these words are riddles.
check_words() {
	files '\.(md|c|h|def|cc|js|mjs|css|html|proto|sh|py|mk|rs|go)$' '^Makefile$' | grep -Ev "$data" | xargs -rd '\n' awk '
		FNR == 1 { is_page = FILENAME ~ /\.md$/; is_text = 1 }
		is_page && /^```/ { is_text = !is_text }
		!is_page && !/^( ?\*|\/[*\/]|# |#$|#!|<!--)/ { is_text = 0 }
		is_text && /(^[ #>*\/|-]*([0-9]+\. )?|[.!?:] |[|] )(\*\*)?(What|Those|As|Its) / {
			printf "%s:%d: a sentence begins with What, Those, As or Its\n", FILENAME, FNR
		}'
}

# A file that a page names is there: `NAME.c`, or with folders. Words in capitals stand for names.
check_named() {
	local line name
	files '^docs/.*\.md$' '^README\.md$' | xargs -rd '\n' grep -HnoE '`[a-z0-9_./-]+\.(c|h|def|py|sh|js)`' /dev/null | sort -u | while IFS= read -r line; do
		name=${line#*\`}
		name=${name%\`}
		[[ -e $name ]] || grep -qE "(^|/)${name//./\\.}$" "$list" || echo "${line%:*}: names $name, which is not there"
	done
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
	local path kind name
	files '^tests/mutants/.*\.patch$' | while read -r path; do
		git apply --check "$path" 2>/dev/null || echo "$path:1: does not apply any more"
		sed -n '/^---/q; s/^Test: //p' "$path" | while read -r kind name; do
			if [[ $kind == unit ]]; then
				[[ $(files "^tests/unit/agent/(.*/)?test_$name\.c$" | wc -l) == 1 ]] || echo "$path:2: there is no unit test $name"
			else
				[[ -f tests/system/$kind.sh ]] || echo "$path:2: there is no system test $kind"
			fi
		done
	done
}

list=$(mktemp) || exit 1
trap 'rm -f "$list"' EXIT
files . >"$list"
complaints=0
for check in rooms lengths licence format names tree words named shell mutants; do
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
