#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The command line as scripts see it: exit statuses, what goes to which stream, one clear message for each thing that can go wrong,
# files that appear only when complete, signals, and the user behind sudo.
# Alone: `hearth run` has its own addresses here.
. "$TOP/tests/system/lib.sh"

# expect STATUS TEXT ARG...: hearth ARG... ends with STATUS and says TEXT on stderr (nothing at all when TEXT is empty)
expect() {
	local want=$1 text=$2 status=0
	shift 2
	"$HEARTH" "$@" >out 2>err </dev/null || status=$?
	[ $status = "$want" ] || fail "hearth $*: status $status, not $want: $(cat err)"
	if [ -z "$text" ]; then
		[ ! -s err ] || fail "hearth $*: not silent: $(cat err)"
	else
		grep -qF -- "$text" err || fail "hearth $*: does not say '$text': $(cat err)"
	fi
}

# --- wrong usage: status 2, one line, nothing on stdout ---
wrong() {
	expect 2 "$@"
	[ "$(wc -l <err)" = 1 ] && [ ! -s out ] || fail "hearth ${*:2}: not one line: $(cat err out)"
}
wrong "unknown command 'recrod'; did you mean 'hearth record'?" recrod
wrong "unknown option --frq; did you mean --freq?" run --frq 9
wrong "unknown option --frq; did you mean --freq?" --frq 9
wrong "--freq: 'abc' is not a number" run --freq abc
wrong "'hearth report' needs FILE" report
wrong "does not say which format to write" record -o x.xyz
wrong "the command writes to standard output too" record -o - -- ls
wrong "there is no sink 'flie'; did you mean file?" run --sink flie=x
wrong "otlp needs a value: otlp=URL" serve --sink otlp
wrong "no help on 'nothing'" help nothing
wrong "--store: 'store=X' is a value of --sink; give the folder alone" run --store store=X
wrong "--store: 'store=X' is a value of --sink; give the folder alone" serve --store store=X
expect 1 "--store: 'store=X' is a value of --sink; give the folder alone" store info --store store=X
wrong "--store: 'clickhouse=http://x' is a value of --sink" serve --store clickhouse=http://x
! ls -d ./*=* 2>/dev/null || fail "a folder was made of a wrong --store"
wrong "there is no 'hearth script': 'hearth report FILE --format print'" script -i perf.data
wrong "there is no 'hearth stat': hearth samples and does not count" stat -e cycles ls
wrong "there is no 'hearth stat': hearth samples and does not count" help stat
wrong "--call-graph: stacks are always walked" record --call-graph dwarf -- touch has-run
wrong "--call-graph: stacks are always walked" record --call-graph=fp -- touch has-run
wrong "-i: the file stands alone" report -i perf.data
wrong "--sort: rows come by self time" report --sort comm x
wrong "--port: --http-address HOST:PORT says" serve --port 8080
wrong "--pid: 'java' is not a process id; give numbers with commas between them, 123,456, or a name: --comm java" top --pid java
wrong "--format: there is no 'flame': 'hearth convert FILE x.svg'" report x --format flame
wrong "--format: there is no 'foldde'; did you mean folded?" report x --format foldde
wrong "--freq: '0' is too small; the least is 1" run -F 0Hz
wrong "--freq: 'Hz' is not a number" run -F Hz
echo data >x.data
wrong "unknown command './x.data'; 'hearth report ./x.data' reads it" ./x.data
wrong "unknown command '/bin/true'; 'hearth record -- /bin/true' profiles it" /bin/true
wrong "--event: there is no event 'nonsense'; 'hearth help events' names them" run -e nonsense
wrong "--event: there is no event 'nonsense'; 'hearth help events' names them" record -e nonsense -o x.otlp -- touch has-run
[ ! -e has-run ] && [ ! -e x.otlp.part ] || fail "something was begun although the event is none: $(ls)"
HEARTH_EVENT=nonsense wrong "there is no event 'nonsense'" run
HEARTH_FREQ=abc wrong "HEARTH_FREQ: 'abc' is not a number" run

# --- data to stdout, quietly ---
for args in help --help -h version --version "help topics" "help record" "record --help" "help --man"; do
	# shellcheck disable=SC2086
	expect 0 "" $args
	[ -s out ] || fail "hearth $args prints nothing"
done
grep -q '^\.TH HEARTH 1' out || fail "no manual page: $(head -n 3 out)"

# --- report: files that are no capture ---
expect 1 "cannot read missing.otlp: No such file or directory" report missing.otlp
: >empty.otlp
expect 1 "empty.otlp is empty" report empty.otlp
expect 1 "it is a program" report /bin/ls
expect 1 "/etc/passwd cannot be read as a profile, or is damaged" report /etc/passwd
head -c 4096 /dev/zero >zeros.otlp
expect 1 "zeros.otlp cannot be read as a profile" report zeros.otlp

# --- an expression that cannot be decided in reasonable time is an error, not "nothing matches" ---
echo "main;$(printf 'a%.0s' {1..60}) 5" >deep.folded
expect 2 "takes too many steps to tell whether it matches" report deep.folded --focus '^(a|aa)+[^a]$'
expect 2 "takes too many steps to tell whether it matches" report deep.folded --format lines --function '^(a|aa)+[^a]$'
expect 1 "takes too many steps to tell whether it matches" diff deep.folded deep.folded --ignore '^(a|aa)+[^a]$'

# --- serve: a port that is taken, an address that is none ---
start port python3 -u -c 'import socket, time
s = socket.socket(); s.bind(("127.0.0.1", 0)); s.listen(8); print(s.getsockname()[1]); time.sleep(170)'
until_true 10 test -s port || fail "no port"
expect 1 "127.0.0.1:$(cat port)" serve --grpc-address off --http-address "127.0.0.1:$(cat port)"
expect 1 "nonsense" serve --http-address nonsense
start served "$HEARTH" serve --grpc-address off --http-address 127.0.0.1:0 --sink null
until_true 10 grep -q 'listening on http://127.0.0.1:[1-9]' served.err || fail "serve does not say where: $(cat served.err)"
stop "$started"

# --- no privileges ---
cp "$HEARTH" hearth
if [ "$(id -u)" = 0 ]; then
	status=0
	setpriv --reuid 65534 --regid 65534 --clear-groups ./hearth record -d 1 -o /tmp/unprivileged.$$.otlp >out 2>err || status=$?
	[ $status = 1 ] || fail "status $status without privileges: $(cat err)"
	grep -q "root" err || fail "does not name the privileges it lacks: $(cat err)"
	[ ! -e /tmp/unprivileged.$$.otlp ] || fail "a capture of nothing appeared"
fi
need_bpf

# --- record: the command's status, and a file under its name only when complete ---
expect 7 "samples taken" record -o seven.otlp -- sh -c 'exit 7'
[ ! -s out ] || fail "messages on stdout: $(cat out)"
[ -e seven.otlp ] && [ ! -e seven.otlp.part ] || fail "after record: $(ls)"
printf '#!/no/such/shell\n' >no-shell
chmod +x no-shell
# failed STATUS TEXT COMMAND: one that cannot run leaves no file, invites to none, and keeps the one of before
failed() {
	echo before >kept.otlp
	for output in x.otlp x.svg kept.otlp; do
		expect "$1" "$2" record -o $output -- "$3"
		! ls x.* *.part 2>/dev/null || fail "record -- $3 leaves a file"
		! grep -qE "read it|samples taken" err || fail "record -- $3 speaks of a file: $(cat err)"
	done
	[ "$(cat kept.otlp)" = before ] || fail "record -- $3 took away what was there"
}
failed 127 "no-such-command: command not found" no-such-command
[ "$(wc -l <err)" = 1 ] || fail "a command that is not there: $(cat err)"
failed 126 "/etc/passwd: cannot be executed: Permission denied" /etc/passwd
failed 127 "./no-shell: the interpreter that its first line names is not found" ./no-shell
expect 137 "samples taken" record -o x.otlp -- sh -c 'kill -KILL $$'
expect 1 "cannot write no/such/folder/x.otlp: No such file or directory" record -o no/such/folder/x.otlp -- touch has-run
[ ! -e has-run ] || fail "the command ran although nothing could be recorded"
expect 1 "there is no process 4194305" record -p 4194305 -d 1 -o x.otlp

start busy sh -c 'while :; do :; done' # else an idle machine has nothing to record
busy=$started
# --- -a with a command: the machine, for as long as it runs; without it the command and its children ---
# has FILE PID: that process has samples in it
has() {
	"$HEARTH" report "$1" --format processes --rows 10000 >processes
	awk -v pid="$2" '$3 == pid { found = 1 } END { exit !found }' processes
}
for options in "-a -g -F 99" "-ag -F 99" "-agF99"; do
	# shellcheck disable=SC2086
	expect 0 "read it with" record $options -o all.otlp -- sleep 1
	has all.otlp "$busy" || fail "record $options does not see the machine: $(cat processes)"
	accounted err
done
expect 0 "read it with" record -F 999 -g -o own.otlp -- sh -c 'i=0; while [ $i -lt 100000 ]; do i=$((i + 1)); done'
! has own.otlp "$busy" || fail "without -a other processes are recorded: $(cat processes)"

# --- a recording without a sample says why ---
why() {
	local text=$1
	shift
	expect 0 "no sample was taken: $text" record -o none.otlp "$@"
	! grep -q "read it" err || fail "invites to a recording without samples: $(cat err)"
}
why "only the command and its children were recorded, which took " -F 1 -g -- sleep 0.3
why "nothing that --comm lets pass was on a CPU at a moment of sampling" --comm no-such-comm -d 300ms
why "nothing that --comm lets pass was on a CPU at a moment of sampling in the command and its children (-a: on the whole machine)" \
	--comm no-such-comm -- sleep 0.3
why "the recording ended before --delay was over" --delay 20s -- sleep 0.3
why "--probabilistic 0 may have" --probabilistic 0 -d 300ms
why "too few alignment-faults events were counted" -e alignment-faults -d 300ms

# --- -d in the units people write, and the capture read again in every format ---
before=$EPOCHREALTIME
expect 0 "short.otlp: " record -F 99Hz -d 1500ms -o short.otlp
grep -q ' 99 Hz, ' err || fail "99Hz is not 99: $(cat err)"
! grep -q "Ctrl-C" err || fail "speaks of Ctrl-C where -d ends it: $(cat err)"
took=$(awk "BEGIN { printf \"%d\", ($EPOCHREALTIME - $before) * 1000 }")
[ "$took" -ge 1500 ] && [ "$took" -lt 8000 ] || fail "-d 1500ms took $took ms"
for format in top tree folded print json; do
	expect 0 "" report short.otlp --format $format
	[ -s out ] || fail "--format $format prints nothing"
done
python3 -m json.tool out >/dev/null || fail "--format json is no JSON"
head -c -10 short.otlp >cut.otlp
"$HEARTH" report cut.otlp >out 2>err && status=0 || status=$?
case $status in
0) grep -q "cut.otlp is cut" err || fail "says nothing about the cut: $(cat err)" ;;
*) grep -q "cut.otlp cannot be read as a profile, or is damaged" err || fail "a cut file: $(cat err)" ;;
esac

# --- a reader that goes away ends the output quietly; a device that is full does not ---
"$HEARTH" report short.otlp --format print 2>err | head -c 1 >/dev/null
[ "${PIPESTATUS[0]}" = 0 ] && [ ! -s err ] || fail "a closed pipe: status ${PIPESTATUS[0]}, $(cat err)"
status=0
"$HEARTH" report short.otlp >/dev/full 2>err || status=$?
[ $status = 1 ] && grep -q "No space left" err || fail "a full device: status $status, $(cat err)"
"$HEARTH" record -F 99 -d 1 -o - 2>err | "$HEARTH" report - >out || fail "through a pipe: $(cat err)"
[ -s out ] || fail "nothing came through the pipe"

# --- a full disk: said once, status 1, nothing under the final name ---
mkdir disk
if mount -t tmpfs -o size=16k tmpfs disk 2>/dev/null; then
	status=0
	"$HEARTH" record -F 999 -d 20 --report-interval 200ms -o disk/x.otlp >out 2>err || status=$?
	[ -e disk/x.otlp ] && appeared=1 || appeared=0
	umount disk
	[ $status = 1 ] && [ $appeared = 0 ] || fail "a full disk: status $status, file there: $appeared, $(cat err)"
	[ "$(grep -c "No space left" err)" = 1 ] || fail "a full disk is not told once: $(cat err)"
fi

# --- signals: the command gets what is sent to us; our end is its end ---
start forwarded "$HEARTH" record -o term.otlp -- bash -c 'trap "exit 33" TERM; echo ready; while :; do sleep 0.05; done'
until_true 15 grep -q ready forwarded || fail "the command does not run: $(cat forwarded.err)"
kill -TERM "$started"
status=0
wait "$started" || status=$?
[ $status = 33 ] && [ -e term.otlp ] || fail "SIGTERM passed on: status $status, $(cat forwarded.err)"

# --- without -d it says what ends it ---
start_record endless.otlp
grep -q "profiles go to endless.otlp; Ctrl-C ends it" record.out.err || fail "does not say what ends it: $(cat record.out.err)"
stop "$recorder"

# --- a second signal ends a drain that waits (for a collector that never answers) ---
start hung "$HEARTH" run -v -F 99 --report-interval 200ms --drain-timeout 60s --collector-timeout 60s --collector "http://127.0.0.1:$(cat port)"
until_true 15 grep -q "profiles go to otlp http" hung.err || fail "run does not start: $(cat hung.err)"
sleep 1
kill -INT "$started"
until_true 30 grep -q "stopping" hung.err || fail "the first signal is not seen: $(cat hung.err)" # it may be reading files
sleep 1
kill -0 "$started" 2>/dev/null || fail "the first signal does not drain: $(cat hung.err)"
before=$EPOCHREALTIME
kill -INT "$started"
status=0
wait "$started" || status=$?
took=$(awk "BEGIN { printf \"%d\", ($EPOCHREALTIME - $before) * 1000 }")
[ $status = 130 ] && [ "$took" -lt 1000 ] || fail "after a second signal: status $status, $took ms"

# --- two that come together, as timeout(1) sends them to the process and to its group, are one ---
start_record twins.otlp
kill -TERM "$recorder"
sleep 0.02
kill -TERM "$recorder" 2>/dev/null || :
wait "$recorder" || fail "two signals at once: status $?: $(cat record.out.err)"
grep -q ' samples taken = ' record.out.err && [ -e twins.otlp ] || fail "two signals at once end it halfway: $(cat record.out.err)"

# --- run without sinks and without a terminal: plain lines, and a final table ---
start table "$HEARTH" run -F 99
until_true 15 test -s table.err || fail "run does not say that it started"
sleep 1
stop "$started"
[ -s table ] || fail "no final table"
! grep -q $'\033' table table.err || fail "escape sequences without a terminal"

# --- the user behind sudo: runs the command, owns the file ---
mkdir theirs
chown 65534:65534 theirs
SUDO_UID=65534 SUDO_GID=65534 expect 0 "samples taken" record -o theirs/x.otlp -- sh -c 'id -u'
[ "$(cat out)" = 65534 ] || fail "the command ran as $(cat out)"
[ "$(stat -c %u theirs/x.otlp)" = 65534 ] || fail "the capture belongs to $(stat -c %u theirs/x.otlp)"
SUDO_UID=65534 SUDO_GID=65534 expect 0 "samples taken" record --as-root -o root.otlp -- sh -c 'id -u'
[ "$(cat out)" = 0 ] || fail "--as-root ran as $(cat out)"
mkdir ours
SUDO_UID=65534 SUDO_GID=65534 expect 0 "samples taken" record -o ours/x.otlp -- true
[ "$(stat -c %u ours/x.otlp)" = 0 ] || fail "a capture in root's folder was given away"
echo "all as it should be"
