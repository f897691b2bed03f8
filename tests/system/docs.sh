#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Each command line of hearth's in README.md and docs/ is one that hearth takes; each overlay that they name is there; the rights in
# docs/kubernetes.md are those of the manifests; and flags that other profilers' users bring are answered as docs/migrate.md says.
. "$TOP/tests/system/lib.sh"
unset HEARTH_CONFIG KUBERNETES_SERVICE_HOST
python3 "$TOP/tests/system/docs_commands.py" "$HEARTH" "$TOP" || fail "the documentation has what hearth does not take"

# said WORD... : what `hearth run` answers to it, on wrong usage
said() {
	local status=0
	"$HEARTH" run "$@" >out 2>err || status=$?
	[ $status = 2 ] || fail "hearth run $*: status $status: $(cat err)"
	cat err
}
said -collection-agent=127.0.0.1:4317 -disable-tls | grep -q -e '--collector URL' || fail "-collection-agent: $(cat err)"
said -disable-tls | grep -q 'grpc://' || fail "-disable-tls: $(cat err)"
said -samples-per-second 20 | grep -q -e '-F HZ' || fail "-samples-per-second: $(cat err)"
said -tracers all | grep -q -e '--runtimes' || fail "-tracers: $(cat err)"
said -off-cpu-threshold 0.1 | grep -q -e '--off-cpu ' || fail "-off-cpu-threshold: $(cat err)"
said -probabilistic-threshold=50 | grep -q -e '--probabilistic' || fail "-probabilistic-threshold: $(cat err)"
said -probe-link=kprobe:do_exit | grep -q -e '-e kprobe:FUNCTION' || fail "-probe-link: $(cat err)"
said -bpf-log-level 1 | grep -q -e '-bpf-log-level: .*two dashes: --bpf-log-level' || fail "-bpf-log-level: $(cat err)"
said -env-vars=A,B | grep -q -e 'two dashes: --env-vars' || fail "-env-vars: $(cat err)"
said -version | grep -q "'hearth version'" || fail "-version: $(cat err)"
said -t racers | grep -q "'racers' is not a process id" || fail "-t: $(cat err)"
