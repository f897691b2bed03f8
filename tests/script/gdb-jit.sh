#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The matrix of code that compilers register for debuggers: LLVM's lli with each of its JITs, Numba, PostgreSQL; both forms of the walk. By
# hand: `make runtimes`.
#   gdb-jit.sh BUILD [LLI...]   LLIS: further ones   NUMBAS: Pythons that have Numba   SECONDS_EACH, HZ
# Exit status 1 when a stack is wrong.
set -u
build=$(readlink -f "${1:?usage: $0 BUILD [LLI...]}")
here=$(cd "$(dirname "$0")" && pwd)
shift
[ $# -gt 0 ] || eval "set -- $(ls /usr/bin/lli-[0-9]* 2>/dev/null | tr '\n' ' ') ${LLIS:-}"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
chmod 755 "$work"
cd "$work" || exit 1
bad=0
seconds=${SECONDS_EACH:-6}
"$here/gdb-jit-truth.sh" "$here/gdb_jit_code.c" | sed 's/\*/main/' >code.truth # lli's calls come from code that is registered, too
echo "frame main 0 9999 *" >>code.truth
echo "frame call_back 0 9999 made_run" >>code.truth
sed -i 's/^\(frame made_back .*\)main$/\1call_back/' code.truth

# judged WHAT WAY FORM LEAST ARGUMENT...: the verdict on x.otlp, as a row
judged() {
	local verdict
	verdict=$(python3 "$here/judge.py" --min 99.9 --least "$4" --without 100000 --loop NONE "${@:5}") || bad=1
	printf '%-12s %-26s %-5s %s, %s complete\n' "$1" "$2" "${3:+tail}" "$(echo "$verdict" | tail -n 1 | sed 's/; never seen.*//')" \
		"$(sed -n 's/.*; \([0-9.]* %\) of user.*/\1/p' out)"
	echo "$verdict" | sed '$d'
}

# recorded FORM PID
recorded() {
	# shellcheck disable=SC2086 # there may be none
	"$build/hearth" record $1 -F "${HZ:-499}" -d "$seconds" -p "$2" -o x.otlp >out 2>&1
}

for lli; do
	clang=${lli/lli/clang}
	[ -x "$lli" ] && [ -x "$clang" ] || continue
	"$clang" -O2 -g -fomit-frame-pointer -DWITH_MAIN -emit-llvm -c -o code.bc "$here/gdb_jit_code.c" || { bad=1; continue; }
	for form in "" --no-bpf-loop; do
		for kind in mcjit orc; do
			"$lli" --jit-kind=$kind code.bc &
			pid=$!
			sleep 1
			recorded "$form" $pid
			kill -KILL $pid
			wait $pid 2>/dev/null
			judged "$(basename "$lli")" $kind "$form" 50 --file gdb_jit_code.c x.otlp "$(basename "$(readlink -f "$lli")")" native code.truth
		done
	done
done

for python in ${NUMBAS:-python3}; do
	"$python" -c 'import numba' 2>/dev/null || continue
	for form in "" --no-bpf-loop; do
		"$python" "$here/calls_numba.py" $((seconds + 4)) >truth &
		pid=$!
		until [ -s truth ] || ! kill -0 $pid; do sleep 0.2; done
		sleep 3 # it compiles
		recorded "$form" $pid
		wait $pid
		judged numba "$("$python" -c 'import numba; print(numba.__version__)')" "$form" 50 --whole-names --file calls_numba.py x.otlp \
			"pid:$pid" native truth
	done
done

# PostgreSQL registers nothing unless it is told to (jit_debugging_support). The truth are functions' names.
bin=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | tail -n 1)
if [ -n "$bin" ] && ls "${bin%/bin}"/lib/llvmjit.so >/dev/null 2>&1; then
	as=(setpriv --reuid postgres --regid postgres --clear-groups env -i "PATH=$bin:$PATH" PGHOST="$work" PGUSER=postgres)
	install -d -o postgres data
	chown postgres .
	"${as[@]}" "$bin/initdb" -D "$work/data" -A trust >initdb.out 2>&1 || cat initdb.out
	"${as[@]}" "$bin/pg_ctl" -D "$work/data" -w -l "$work/data/log" -o "-c listen_addresses= -c unix_socket_directories=$work" start >/dev/null
	"${as[@]}" psql -q -c "create table t as select i as a, i % 97 as b, i::float8 as c from generate_series(1, 2000000) i" postgres
	query="select sum(a * b + c), avg(c - b), count(*) from t where a % 3 = 1 and b < 90 or c > 10.5;"
	for form in "" --no-bpf-loop; do
		{
			echo "set max_parallel_workers_per_gather = 0; set jit = on; set jit_above_cost = 0; set jit_optimize_above_cost = 0; set jit_inline_above_cost = -1; \\o /dev/null"
			for _ in $(seq 400); do echo "$query"; done
		} >queries
		"${as[@]}" PGOPTIONS="-c jit_debugging_support=on" psql -q postgres <queries &
		client=$!
		sleep 1
		pid=$("${as[@]}" psql -At -c "select pid from pg_stat_activity where query like '%avg(c - b)%' and pid <> pg_backend_pid()" postgres)
		recorded "$form" "$pid"
		kill $client
		wait $client 2>/dev/null
		"$build/hearth" report x.otlp --format folded >folded
		printf '%-12s %-26s %-5s %s\n' postgres "$(basename "${bin%/bin}")" "${form:+tail}" "$(awk '{ n = $NF; all += n; if (/evalexpr_|deform_/) named += n; if (/\[JIT code\]/) other += n }
			END { printf "%d of %d samples in functions that were compiled, %d in such without a name", named, all, other }' folded), $(sed -n 's/.*; \([0-9.]* %\) of user.*/\1/p' out) complete"
		grep -q 'ExecAgg.*;evalexpr_\|ExecScan.*;evalexpr_\|;evalexpr_' folded || bad=1
	done
	"${as[@]}" "$bin/pg_ctl" -D "$work/data" -w -m immediate stop >/dev/null
fi
exit $bad
