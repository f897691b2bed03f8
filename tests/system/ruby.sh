#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The methods and blocks of Ruby scripts in stacks: each sample of a program that calls in every way there is, judged by what the program
# says of itself, in both forms of the walk, and with Ruby's JIT; a stack beside Ruby's own backtrace; a program that passes itself off as
# Ruby, with frames that are broken in many ways. Debian's own Ruby here, which has its loop in a stripped library.
. "$TOP/tests/system/lib.sh"
need_bpf
[ "$(uname -m)" = x86_64 ] || skip "no layout of this machine's Ruby is known"

# --- frames that make no sense: what is inside them is right, nothing is outside them ---

"${CC:-gcc}" -O1 -rdynamic -o torn_ruby "$TOP/tests/system/torn_ruby.c"
# expected WAY STACK: of the stacks that have the method WAY all are this one
expected() {
	local others
	grep -q ";main;$2;run\(;\| [0-9]*$\)" folded || fail "$1: no stack $2: $(grep ";$1 " folded | head -3)"
	others=$(grep ";$1 " folded | grep -vc ";main;$2;run\(;\| [0-9]*$\)" || :)
	[ "$others" = 0 ] || fail "$1: $(grep ";$1 " folded | grep -v ";main;$2;run\(;\| [0-9]*$\)" | head -3)"
}

callers="<main> torn.rb:5;outer torn.rb:6;caller torn.rb:7"
"$HEARTH" record -F 499 -o torn.otlp -- ./torn_ruby >/dev/null 2>record.err || fail "$(cat record.err)"
"$HEARTH" report torn.otlp --format folded --lines >folded
for way in whole method ring; do
	expected $way "$callers;$way torn.rb:8"
done
for way in far before index; do # the place, or the table of lines, makes no sense: there is no line
	expected $way "$callers;$way torn.rb"
done
for way in hole body label odd values; do
	expected $way "$way torn.rb:8"
done
for way in kind huge below; do
	! grep -q ";$way " folded || fail "$way: $(grep ";$way " folded | head -3)"
done

# --- scripts ---

ruby=/usr/bin/ruby
[ -x $ruby ] || skip "no $ruby here"
name=$(basename "$(readlink -f $ruby)")

# The interpreter's library is read when a process that has it is met first, which takes its time on a busy machine: one runs before.
start idle.out $ruby -e 'sleep 300'

# --- beside Ruby's own backtrace ---

cat >told.rb <<'END'
class Told
  def self.start
    new.outer(2) { |n| n }
  end

  def outer(n)
    [n].each do |m|
      1.times { down(m) }
    end
  end

  def down(n)
    return down(n - 1) if n > 0
    leaf
  rescue IOError
    0
  end

  define_method(:leaf) do
    eval("[3].sort_by { last }", binding, __FILE__, __LINE__)
  end

  def last
    puts caller(0).reverse; $stdout.flush; while true; end
  end
end
Told.start
END
start told $ruby told.rb
until_true 30 grep -q last told || fail "the script says nothing: $(cat told.err)"
"$HEARTH" record -F 199 -d 1 -o told.otlp -p "$started" 2>record.err || fail "$(cat record.err)"
kill "$started"
# Names without their classes, which Ruby tells from 3.4 on; lines of methods in C are their callers' there.
sed -E "s/^(.*):([0-9]+):in [\`'](.*)'$/\3 \1:\2/; s/[A-Z][A-Za-z0-9_:]*[#.]//" told >wanted
"$HEARTH" report told.otlp --format folded --lines | sed -E 's/ [0-9]+$//' | tr ';' '\n' >frames
sed -E 's/(^|in )[A-Z][A-Za-z0-9_:]*[#.]/\1/' frames >plain
while read -r frame; do
	case $frame in
	each\ told* | times\ told* | sort_by\ told* | eval\ *) frame=${frame%% *} ;;
	esac
	grep -qxF -- "$frame" plain || fail "no frame $frame: $(sort -u plain)"
done <wanted
[ "$(wc -l <wanted)" -ge 12 ] || fail "Ruby's backtrace has $(wc -l <wanted) lines"
"$HEARTH" report told.otlp --format folded --lines | grep -q "<main> told.rb:27;Told.start told.rb:3;Told#outer told.rb:7;Array#each;" ||
	fail "no classes: $(sort -u frames)"

# --- all ways of calling ---

forms=("" --no-bpf-loop)
$ruby --yjit -e '' 2>/dev/null && forms+=(--yjit)
for form in "${forms[@]}"; do
	jit=
	[ "$form" != --yjit ] || jit=$form form=
	# shellcheck disable=SC2086 # there may be none
	start truth $ruby $jit -W0 "$TOP/tests/script/calls.rb" 60
	until_true 30 grep -q '^root' truth || fail "the script does not begin: $(cat truth.err)"
	# shellcheck disable=SC2086
	"$HEARTH" record $form -F 499 -d 2 -o x.otlp -p "$started" 2>record.err || fail "$(cat record.err)"
	kill "$started"
	accounted record.err
	judge_scripts --min 99.5 --least 20 --without 100 --loop rb_vm_exec --file calls.rb,calls_loaded.rb, --whole-names \
		x.otlp "$name" ruby truth
done
