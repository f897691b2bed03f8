#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The configuration file as a service meets it: checked, in its place, and read again on SIGHUP.
. "$TOP/tests/system/lib.sh"
need_bpf
unset HEARTH_CONFIG

# --- check: by line, and a status ---
printf 'freq: 9\nfrq: 10\nrecord:\n  duration: soon\n' >wrong.yaml
status=0
"$HEARTH" check --config wrong.yaml >out 2>err || status=$?
[ $status = 1 ] && [ "$(cut -d : -f 1,2 out | tr '\n' ' ')" = "wrong.yaml:2 wrong.yaml:4 " ] || fail "status $status: $(cat out err)"
! "$HEARTH" record --config wrong.yaml -o x.otlp -d 1 2>err || fail "records with a wrong file"
[ "$(cat err)" = "hearth: error: wrong.yaml:2: unknown key 'frq'; did you mean 'freq'?" ] || fail "not one line: $(cat err)"
printf 'freq: 9\n' >right.yaml
"$HEARTH" check --config right.yaml >out || fail "check of a file that is right: $(cat out)"

# --- its place: XDG's, in front of /etc's, which cannot be tried on a machine that may have one ---
mkdir xdg
printf 'freq: 77\nrecord: { duration: 300ms }\n' >xdg/hearth.yaml
XDG_CONFIG_HOME=$PWD/xdg timeout 20 "$HEARTH" record -o x.otlp 2>err || fail "the file of XDG_CONFIG_HOME: status $?: $(cat err)"
grep -q ' 77 Hz' err || fail "the file of XDG_CONFIG_HOME does not count: $(cat err)"
XDG_CONFIG_HOME=$PWD/xdg "$HEARTH" check >out 2>err || :
grep -q "^yes *configuration file: $PWD/xdg/hearth.yaml" out || fail "check does not name the file: $(grep configuration out)"

# --- SIGHUP: what may change does, what may not is said, a mistake changes nothing ---
printf 'freq: 49\nreport-interval: 60s\nreport-jitter: 0\nprobabilistic: 0\n' >live.yaml
start run setsid "$HEARTH" run --config live.yaml --sink file=live.otlp
pid=$started
until_true 15 grep -q 'profiles go to' run.err || fail "run does not start: $(cat run.err)"
busy=$$
start busy sh -c 'while :; do :; done'
busy=$started
printf 'freq: 99\nreport-interval: 200ms\nreport-jitter: 0\nprobabilistic: 100\nquiet: no\n' >live.yaml
kill -HUP "$pid"
until_true 10 grep -q 'read again; changed: --probabilistic, --report-interval$' run.err || fail "SIGHUP: $(cat run.err)"
grep -q 'count from the next start on: --freq$' run.err || fail "--freq is not told: $(cat run.err)"
until_true 15 test -s live.otlp.part || fail "no profile within 15 s of an interval of 200 ms: $(cat run.err)"
printf 'freq: 99\nreport-interval: never\n' >live.yaml
kill -HUP "$pid"
until_true 10 grep -q "live.yaml:2: report-interval: 'never' is not a time.*everything stays as it was" run.err || fail "a mistake: $(cat run.err)"
printf 'verbose: yes\n' >live.yaml
kill -HUP "$pid"
until_true 10 grep -q -- '--verbose' run.err || fail "--verbose: $(cat run.err)"
kill -INT "$pid"
status=0
wait "$pid" || status=$?
[ $status = 0 ] || fail "status $status: $(cat run.err)"
"$HEARTH" report live.otlp --format processes >out 2>err || "$HEARTH" report live.otlp >out
[ "$(count taken run.err)" -gt 0 ] || fail "nothing was sampled after --probabilistic 100: $(cat run.err)"

# --- without a file, and where a terminal hangs up, SIGHUP still ends it ---
start plain setsid "$HEARTH" run --config /dev/null --sink null
until_true 15 grep -q 'profiles go to' plain.err || fail "run does not start: $(cat plain.err)"
kill -HUP "$started"
until_true 10 grep -q 'read again; nothing changed' plain.err || fail "an empty file: $(cat plain.err)"
stop "$started"
start plain setsid "$HEARTH" run --sink null
until_true 15 grep -q 'profiles go to' plain.err || fail "run does not start: $(cat plain.err)"
kill -HUP "$started"
status=0
wait "$started" || status=$?
[ $status = 0 ] && grep -q 'samples taken' plain.err || fail "SIGHUP without a file: status $status, $(cat plain.err)"
echo "all as it should be"
