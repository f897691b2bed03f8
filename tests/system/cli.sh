#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The command line as scripts see it: exit statuses, what goes to which stream, one clear message for each thing that can go wrong,
# files that appear only when complete, signals, and the user behind sudo.
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
wrong "--event: there is no event 'nonsense'; 'hearth help events' names them" run -e nonsense
wrong "--event: there is no event 'nonsense'; 'hearth help events' names them" record -e nonsense -o x.otlp -- touch has-run
[ ! -e has-run ] && [ ! -e x.otlp.part ] || fail "something was begun although the event is none: $(ls)"
HEARTH_EVENT=nonsense wrong "there is no event 'nonsense'" run
HEARTH_FREQ=abc wrong "HEARTH_FREQ: 'abc' is not a number" run

# --- data to stdout, quietly ---
for args in help --help -h version --version "help record" "record --help" "help --man"; do
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
expect 127 "no-such-command: command not found" record -o x.otlp -- no-such-command
expect 126 "/etc/passwd: cannot be executed: Permission denied" record -o x.otlp -- /etc/passwd
expect 137 "samples taken" record -o x.otlp -- sh -c 'kill -KILL $$'
expect 1 "cannot write no/such/folder/x.otlp: No such file or directory" record -o no/such/folder/x.otlp -- touch has-run
[ ! -e has-run ] || fail "the command ran although nothing could be recorded"
expect 1 "there is no process 4194305" record -p 4194305 -d 1 -o x.otlp

start busy sh -c 'while :; do :; done' # else an idle machine has nothing to record
# --- -d in the units people write, and the capture read again in every format ---
before=$EPOCHREALTIME
expect 0 "short.otlp: " record -F 99 -d 1500ms -o short.otlp
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
