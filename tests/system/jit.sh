#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Code that programs make while they run, named by perf maps and jitdumps: of a program of ours, whose stacks tell what is right;
# of one in a container (mount and pid namespace, a /tmp of its own, another user); after its map lost its name and the process
# ended. Maps that others put in its place are not believed. `perf inject --jit` reads our dump as hearth does; node's maps.
. "$TOP/tests/system/lib.sh"
need_bpf
"${CC:-gcc}" -O2 -fno-omit-frame-pointer -I"$TOP" -o jit_maker "$TOP/tests/system/jit_maker.c"
second=$(sed -n "/defined(__$(uname -m)__)/,/SECOND/s/.*SECOND = \([0-9]*\).*/\1/p" "$TOP/tests/system/jit_maker.c")
second=${second:-20}
dir=$(pwd -P)
planted=()
trap 'rm -f "${planted[@]}"; for pid in "${pids[@]}"; do kill -KILL "$pid" 2>/dev/null || :; done' EXIT

# program NAME MODE SECONDS [COMMAND...]: starts it under COMMAND, under its own name for the judge; its pid here is $started
program() {
	local name=$1 mode=$2 seconds=$3
	shift 3
	cp jit_maker "$name"
	start "$name.out" "$@" "$dir/$name" "$mode" "$seconds" "$dir"
	until_true 10 test -s "$name.out" || { wait "$started" || [ $? != 77 ] || skip "no writable code here"; fail "$name did not start: $(cat "$name.out.err")"; }
	planted+=("/tmp/perf-$started.map")
}

# judged CAPTURE PROGRAM KIND LEAST [MOST_WRONG [SECOND]]
judged() {
	verdict "made code has wrong names in $2" python3 "$TOP/tests/system/jit_judge.py" "$@"
}

# --- maps and dumps, and maps that are not the program's ---
as_nobody=(setpriv --reuid 65534 --regid 65534 --clear-groups)
start_record all.otlp -F 499 --report-interval 500ms -p $$ # and its children
program jm_map map 2
ends=("$started")
program jm_dump dump 2
ends+=("$started")
wait "${ends[@]}"

# A map for the code of the silent program $started: that it is believed where it may be shows that the others are not by chance.
plant_text() {
	local area
	area=$(awk '$2 == "rwxp" && !$6 { split($1, a, "-"); print a[1]; exit }' "/proc/$started/maps")
	[ -n "$area" ] || fail "no made code in /proc/$started/maps"
	echo "$area 10000 planted"
}
ends=()
program jm_plain silent 2 "${as_nobody[@]}"
plant_text >"/tmp/perf-$started.map"
ends+=("$started")
program jm_link silent 2 "${as_nobody[@]}"
plant_text >linked.map
chmod 644 linked.map
ln -s "$dir/linked.map" "/tmp/perf-$started.map"
ends+=("$started")
wait "${ends[@]}"
ends=()
program jm_owner silent 2 "${as_nobody[@]}"
plant_text >planted.map
chown 12345 planted.map
mv planted.map "/tmp/perf-$started.map"
ends+=("$started")
program jm_pipe silent 2 "${as_nobody[@]}"
mkfifo "/tmp/perf-$started.map"
ends+=("$started")
wait "${ends[@]}"
ends=()
program jm_twice silent 2 "${as_nobody[@]}"
plant_text >"/tmp/perf-$started.map.too"
planted+=("/tmp/perf-$started.map.too")
ln "/tmp/perf-$started.map.too" "/tmp/perf-$started.map"
ends+=("$started")
program jm_stale silent 2 "${as_nobody[@]}"
plant_text >planted.map
touch -d '1 hour ago' planted.map
mv planted.map "/tmp/perf-$started.map"
ends+=("$started")
wait "${ends[@]}"
stop "$recorder"
cat record.out.err
accounted record.out.err
# A map has no times: at the moment when memory is used again some samples may get the newer name. A dump has.
judged all.otlp jm_map named 20 8
judged all.otlp jm_dump named 20 0 "$second"
judged all.otlp jm_plain planted 15 1000
for name in jm_link jm_owner jm_pipe jm_twice jm_stale; do
	judged all.otlp $name unnamed 15
done

# --- the names outlive name and process: read after both are gone ---
cp jit_maker jm_gone
"$HEARTH" record -q -F 499 --report-interval 1m -o gone.otlp -- "$dir/jm_gone" gone 1.5
judged gone.otlp jm_gone named 20 8

# --- a container: its own /tmp, its own pids, another user; a map under its inner pid in our /tmp is not its ---
if unshare -m -p -f true 2>/dev/null; then
	cp jit_maker jm_inside
	inner="mount -t tmpfs -o mode=1777 inside /tmp && mount -t proc proc /proc && cat >/tmp/jm_inside && chmod 755 /tmp/jm_inside && \
		cd /tmp && ${as_nobody[*]} /tmp/jm_inside map 2"
	echo "1000 7fffffff decoy" >/tmp/perf-2.map
	planted+=(/tmp/perf-2.map)
	"$HEARTH" record -q -F 499 --report-interval 500ms -o inside.otlp -- unshare -m -p -f sh -c "$inner; true" <jm_inside >inside.out
	echo "the program's own pid: $(cat inside.out)"
	[ "$(cat inside.out)" -lt 100 ] || fail "it ran in no pid namespace"
	judged inside.otlp jm_inside named 20 8
else
	left_out container "no namespaces here"
fi

# --- perf reads the same dump and finds the same ---
if perf record -q -k 1 -e cpu-clock -F 199 -g -o perf.data true 2>/dev/null; then
	cp jit_maker jm_perf
	perf record -q -k 1 -e cpu-clock -F 499 -g -o perf.data "$dir/jm_perf" dump 1 "$dir" >perf.out
	perf inject --jit -i perf.data -o perf.jit 2>/dev/null
	perf script -i perf.jit -F ip,sym 2>/dev/null | awk '$2 ~ /^calls_made_/ { pair[$2 " " called]++ } { called = $2 }
		END { for (p in pair) if (p ~ / made_/) print p, pair[p] }' | sort >perf.pairs
	cat perf.pairs
	grep -q '^calls_made_a made_a [0-9][0-9]' perf.pairs && grep -q '^calls_made_b made_b [0-9][0-9]' perf.pairs || fail "perf does not understand our dump"
	[ "$(wc -l <perf.pairs)" = 2 ] || fail "perf finds wrong names: our dump is not sound"
else
	left_out perf "no perf that records here: our dump was not shown to it"
fi

# --- node ---
if command -v node >/dev/null; then
	cat >hot.js <<-'END'
		function hot_fib(n) {
			return n < 2 ? n : hot_fib(n - 1) + hot_fib(n - 2);
		}
		const began = process.cpuUsage(); // on a busy machine time passes without it
		while (process.cpuUsage(began).user < 1500000) hot_fib(22);
		console.log(process.pid);
	END
	"$HEARTH" record -q -F 499 -o node.otlp -- node --perf-basic-prof hot.js >node.out
	planted+=("/tmp/perf-$(cat node.out).map")
	"$HEARTH" report node.otlp --format folded >folded
	fib=$(awk '/;hot_fib( |;)/ { sum += $NF } END { print sum + 0 }' folded)
	all=$(awk '{ sum += $NF } END { print sum + 0 }' folded)
	echo "node: $fib of $all samples in hot_fib"
	[ "$fib" -ge 30 ] && [ $((fib * 10)) -ge $((all * 6)) ] || fail "hot_fib has no name: $(head -n 20 folded)"
	python3 - "$TOP" node.otlp "$dir/hot.js" <<-'END' || fail "node's functions are not told as V8's"
		import sys
		sys.path.insert(0, sys.argv[1] + "/tests/truth")
		import capture
		data = capture.load(sys.argv[2])
		c, t = capture.Capture(data), data.dictionary
		names = {(t.string_table[f.name_strindex], t.string_table[f.filename_strindex], f.start_line, c.attributes(l.attribute_indices)["profile.frame.type"])
		         for l in t.location_table if l.lines for f in [t.function_table[l.lines[-1].function_index]]}
		fibs = {n for n in names if n[0] == "hot_fib"}
		print(fibs)
		sys.exit(fibs != {("hot_fib", sys.argv[3], 1, "v8js")})
	END
else
	left_out node "not here"
fi
