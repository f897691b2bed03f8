#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Environments of programs come with their first samples: of programs that are gone when the agent looks, too. One of more
# than 16 KiB is read from /proc. Both forms of the walk.
. "$TOP/tests/system/lib.sh"
need_bpf
export HEARTH_ONE_PROCESS=yes # the agent is what is stopped below
unset OTEL_SERVICE_NAME OTEL_RESOURCE_ATTRIBUTES

# works NAME: for about 50 ms, under that service's name
works() { OTEL_SERVICE_NAME=$1 OTEL_RESOURCE_ATTRIBUTES=service.version=7 dash -c 'i=0; while [ $i -lt 60000 ]; do i=$((i + 1)); done'; }
# counter NAME FILE: of the processes' facts
counter() { sed -n "s/^hearth_process_facts_$1_total{file=\"$2\"} //p" now; }
# is_told NAME: does a resource say so?
is_told() { "$HEARTH" report --format print all.framed 2>/dev/null >print && grep -qx "  service.name: $1" print; }

services() { grep -h ' service\.' print | sort | uniq -c; }

for form in '' --no-bpf-loop; do
	rm -f all.framed
	start_metrics run.out -F 199 --report-interval 0.5s --ring-bytes 16M --symbols off -p $$ --metrics-address 127.0.0.1:0 --http-address off \
		--sink file=all.framed $form
	agent=$started
	until_true 20 grep -q 'profiles go to' run.out.err || fail "does not sample: $(cat run.out.err)"
	works seen
	PAD=$(printf '%012000d' 0) works middle
	until_true 10 is_told middle || fail "no sample of middle${form:+ $form}: $(services)"

	kill -STOP "$agent"
	for i in 1 2 3 4 5; do works gone$i; done
	kill -CONT "$agent"
	until_true 10 is_told gone5 || fail "the programs that were gone do not say what they are${form:+ $form}: $(services)"
	for name in seen gone1 gone2 gone3 gone4; do
		is_told $name || fail "$name does not say what it is${form:+ $form}: $(services)"
	done
	grep -qx '  service.version: 7' print || fail "no service.version${form:+ $form}: $(services)"
	curl -fsS "$metrics/metrics" >now
	# Who is met first as it ends has no environment any more.
	[ $(($(counter read environ) - $(counter unread environ))) = 0 ] ||
		fail "/proc was asked for $(counter read environ) environments${form:+ $form}, and $(counter unread environ) were gone"

	PAD=$(printf '%0100000d' 0) works large
	until_true 10 is_told large || fail "no environment of 100 KB${form:+ $form}: $(services)"
	curl -fsS "$metrics/metrics" >now
	[ $(($(counter read environ) - $(counter unread environ))) = 1 ] ||
		fail "/proc was asked for $(counter read environ) environments${form:+ $form}, and $(counter unread environ) were gone, not one less"
	stop "$agent"
	echo "ok ${form:-with bpf_loop}: $(counter read cgroup) programs, $(counter read environ) environments asked for"
done
