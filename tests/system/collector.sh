#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Agent and receiver as two processes: a program's chain arrives through the receiver, and nothing is lost while the receiver
# is stopped for 20 s. A time-out may deliver a profile twice, so distinct profile ids are counted.
# Waits: for the receiver that is stopped.
. "$TOP/tests/system/lib.sh"
need_bpf

port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
start printed "$HEARTH" serve --grpc-address off --http-address "127.0.0.1:$port" --print
receiver=$started
until_true 10 curl -fsS "http://127.0.0.1:$port/healthz" || fail "the receiver does not answer: $(cat printed.err)"

start chain nice "$TRUTH/c_chain" 40 # the tests beside it have the CPUs first
start sent "$HEARTH" run -F 49 --collector "http://127.0.0.1:$port" --report-interval 1s --collector-timeout 3s --drain-timeout 20s
agent=$started
sleep 5
kill -STOP "$receiver"
sleep 20
kill -CONT "$receiver"
sleep 5
stop "$agent"
stop "$receiver"
cat sent.err
accounted sent.err
[ "$(count lost sent.err)" = 0 ] || fail "samples were lost: $(cat sent.err)"
python3 "$TOP/tests/system/printed.py" printed "$(count delivered sent.err)" chain
