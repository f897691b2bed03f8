#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Probes: as many samples as a program makes calls by its own account, in processes that run already and in later ones, in several
# threads, of functions of a stripped library, of C++, static ones, events of USDT; with true stacks, also while return addresses are the
# kernel's; and what is said of those that mean nothing.
# Alone: no stack of a loaded thread may be cut.
. "$TOP/tests/system/lib.sh"
need_bpf
[ -e /sys/bus/event_source/devices/uprobe ] || skip "this kernel has no uprobes"
"$TOP/tests/probes/build.sh" .
here=$PWD

# samples FILE [PATTERN]: how many samples of stacks with that there are
samples() {
	"$HEARTH" report "$1" --format folded --kind events | grep -E -- "${2:-.}" | awk '{ n += $NF } END { print n + 0 }'
}
# of NAME FILE: how often the program says that it called NAME
of() {
	awk -v name="$1" '$1 == name { print $2 }' "$2"
}
# is WHAT GOT WANTED
is() {
	known "-e calls of $1" calls "$3" "$2"
	[ "$2" = "$3" ] || fail "$1: $2 samples of $3 calls"
}

# A process that runs already, and one that starts later; 4 threads each, on any CPU.
start before.out ./calls 4 250 go
start_record x.otlp -e uprobe:./calls:one
touch go
./calls 4 250 >after.out
wait "${pids[0]}" || fail "calls: status $?"
stop "$recorder"
accounted record.out.err
wanted=$(($(of one before.out) + $(of one after.out)))
is "two processes" "$(samples x.otlp)" "$wanted"
# Until user space has told the kernel what the program is made of, some stacks may be cut. A libc without symbols has no start_thread.
n=$(samples x.otlp '(start_thread|libc[^;]*|main);run;outer;((again;){5})?one ')
[ "$n" -ge $((wanted * 8 / 10)) ] || fail "$n of $wanted stacks are whole: $("$HEARTH" report x.otlp --format folded)"
! "$HEARTH" report x.otlp --format folded | grep -vE '^calls;(.*(start_thread|libc[^;]*|main);run;outer;(again;again;again;again;again;)?|((run;)?outer;)?(again;)*)one ' ||
	fail "stacks are wrong"

# Names of all kinds, many at once; the label says which it was.
probes=(-e "uprobe:$here/calls:ours::Thing::method" -e uprobe:./calls:hidden_one -e uprobe:./libcalls.so:from_library -e uprobe:./calls:outer
	-e usdt:./calls:ours:passed -e 'uprobe:./calls:ours::Thing::operator+' -e uretprobe:./calls:again -e uprobe:./calls:again)
for probed in calls fixed; do
	"$HEARTH" record -q "${probes[@]//calls:/$probed:}" -o x.otlp -- ./$probed 2 200 >own 2>err || fail "record $probed: $(cat err)"
	"$HEARTH" report x.otlp --kind events --by label=probe.name --format folded >by || fail "report"
	for name in method hidden_one from_library passed again; do
		is "$probed $name" "$(grep -E "uprobe:[^ ;]*[:]$name[;]|:Thing::$name;|:ours:$name;" by | awk '{ n += $NF } END { print n + 0 }')" "$(of $name own)"
	done
	is "$probed again's returns" "$(grep -E "uretprobe:[^ ;]*:again;" by | awk '{ n += $NF } END { print n + 0 }')" "$(of again own)"
done

# Arguments, of an event and of a function, and what it returns: 0 to 99, and one more.
"$HEARTH" record -q -e usdt:./calls:ours:passed:arg0 -e uprobe:./calls:hidden_one:arg0 -e uretprobe:./calls:hidden_one:ret -o x.otlp -- \
	./calls 1 100 >own 2>err || fail "arguments: $(cat err)"
seq 0 99 | sort >numbers
for label in arg0 ret; do
	"$HEARTH" report x.otlp --kind events --by label=probe.$label --format folded | grep -oE '^-?[0-9]+;' | tr -d ';' | sort -u >seen
	[ $label = arg0 ] || sed -i -E '/^(-1|4294967295)$/d' seen
	[ $label = arg0 ] || seq 0 98 | sort >numbers
	cmp -s seen numbers || fail "$label: $(head seen)"
done

# Go: a method by its name, in a stripped program, whose goroutine gives way now and then; and Rust.
cat >steps.go <<'GO'
package main

import "fmt"

type T struct{ x int }

//go:noinline
func (t *T) step(n int) { t.x += n }

func main() {
	t := &T{}
	for i := 0; i < 20000; i++ {
		t.step(i)
	}
	fmt.Println(20000)
}
GO
cat >steps.rs <<'RUST'
mod inner {
    #[inline(never)]
    pub fn work(n: u64) -> u64 {
        unsafe { std::ptr::read_volatile(&(n * 3 + 1)) }
    }
}
fn main() {
    let mut sum = 0u64;
    for i in 0..3000 {
        sum = sum.wrapping_add(inner::work(i));
    }
    println!("{}", if sum > 0 { 3000 } else { 0 });
}
RUST
# compiled NAME FUNCTION COMPILER...: a program of that language says how often it called FUNCTION
compiled() {
	command -v "$3" >/dev/null && "${@:3}" 2>cc.err || {
		left_out "probes of $1" "no $3 here: $(tail -n 1 cc.err 2>/dev/null)"
		return
	}
	"$HEARTH" record -q -e "uprobe:./$1:$2" -o x.otlp -- "./$1" >own 2>err || fail "$1: $(cat err)"
	is "$1" "$(samples x.otlp)" "$(cat own)"
}
compiled go_steps 'main.(*T).step' go build -ldflags=-s -o go_steps steps.go
compiled rust_steps rust_steps::inner::work rustc -O --crate-name rust_steps -o rust_steps steps.rs
[ ! -x go_steps ] || ! "$HEARTH" record -q -e 'uretprobe:./go_steps:main.(*T).step' -d 0.1 -o no.otlp 2>err || fail "a uretprobe in Go"

# With so many that they become one link; each N-th.
"$HEARTH" record -q -e 'uprobe:./calls:*' -o x.otlp -- ./calls 1 100 >own 2>err || fail "pattern: $(cat err)"
is "pattern" "$(samples x.otlp ';one$|;one ')" "$(of one own)"
"$HEARTH" record -q -e uprobe:./calls:one -c 10 -o x.otlp -- ./calls 1 1000 >own 2>err || fail "-c: $(cat err)"
n=$(samples x.otlp)
[ "$n" -ge 190 ] && [ "$n" -le 200 ] || fail "each 10th of 2000: $n"

# most FILE PATTERN WHY: nine tenths of the samples have that stack
most() {
	awk -v pattern="$2" '{ n += $NF } $0 ~ pattern { good += $NF } END { exit n < 20 || good < n * 0.9 }' "$1" || fail "$3: $(cat "$1")"
}

# While a function is probed where it returns, its callers' frames are there, in samples of time as well.
"$HEARTH" record -e uretprobe:./spin:deep -e cpu-clock -F 999 --off-cpu -o x.otlp -- ./spin 1000 >own 2>err || fail "spin: $(cat err)"
accounted err
is "deep's returns" "$(samples x.otlp)" "$(cat own)"
"$HEARTH" report x.otlp --kind samples --focus '^work$' --format folded >work
most work 'main;deep;deep;deep;between;work[ ;]' "stacks of time are cut where return addresses are a probe's"
! grep -vE '^spin;(((.*main;deep;)?deep;)?deep;)?(between;)?work[ ;]' work || fail "stacks are wrong where return addresses are a probe's"
"$HEARTH" report x.otlp --kind events --format folded >returns
most returns '(_start|__libc_start_main.*);main(;deep)?(;deep)? [0-9]+$' "stacks of returns are cut"

refused() {
	local status=0
	"$HEARTH" record -q -e "$1" -d 0.1 -o no.otlp 2>err || status=$?
	[ $status = 2 ] && grep -qF -- "$2" err && [ ! -e no.otlp ] || fail "-e $1: status $status: $(cat err)"
}
refused uprobe:./calls:on 'did you mean one?'
refused uprobe:./calls:method 'did you mean ours::Thing::method?'
refused uprobe:/no/such/file:f 'No such file'
refused uprobe:no-such-file:f 'neither a program in PATH nor a library'
refused uprobe:./calls 'it is written uprobe:FILE:FUNCTION'
refused usdt:./calls:ours:pased 'did you mean ours:passed?'
refused usdt:./spin:a:b 'without USDT events'
refused usdt:./calls:ours:passed:arg2 'has not so many arguments'
refused uprobe:./calls:one:ret 'with :ret where it returns'
refused uprobe:./calls:one+1000 'ends before that offset'
refused kprobe:vfs_reed 'did you mean vfs_read?'
if [ "$(uname -r | cut -d . -f 1)" -ge 6 ]; then
	! "$HEARTH" record -q --no-bpf-loop -e uprobe:./calls:one -o no.otlp -- ./calls 1 10 >own 2>err || fail "uprobes without bpf_loop"
	grep -q 'does not go with uprobes' err || fail "uprobes without bpf_loop: $(cat err)"
fi
if [ ! -e /sys/bus/event_source/devices/kprobe ]; then
	! "$HEARTH" record -q -e kprobe:vfs_read -d 0.1 -o no.otlp 2>err || fail "kprobe without kprobes"
	grep -q 'this kernel has no kprobes' err || fail "no kprobes: $(cat err)"
fi
