#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# How much of the kernel's programs the verifier follows, which gives up at a million instructions: half of that at most, as other
# kernels, and other addresses in the same one, have it follow more. Every kind, type of probe and runtime, in both forms.
. "$TOP/tests/system/lib.sh"
need_bpf

MOST=500000

# loaded FORM OPTION...: records, and adds to the list "followed" all programs that were loaded and how much of each was followed
loaded() {
	local form=$1
	shift
	# shellcheck disable=SC2086 # the form may be none
	"$HEARTH" record $form --bpf-log-level 1 "$@" >err 2>&1 || fail "record $form $*: $(grep '^hearth' err)"
	if grep -E 'refuses the programs|cannot load the program' err; then
		fail "$form $*"
	fi
	awk '/^--- the verifier on/ { name = $5 } /^processed / { print name, $2 }' err >>followed
}

cat >busy.sh <<'END'
python3 -c 'import time
end = time.time() + 3
while time.time() < end: pass' &
php -r '$end = time() + 4; while (time() < $end);' &
perl -e '$end = time + 4; 1 while time < $end' &
ruby -e 'stop = Time.now + 3; while Time.now < stop; end' &
lua5.4 -e 'local stop = os.time() + 4; while os.time() < stop do end' &
luajit -e 'local stop = os.time() + 4; while os.time() < stop do string.rep("x", 9) end' &
wait
END
: >followed
loaded '' --wakers --memory -o x.otlp -- sh busy.sh
loaded --no-bpf-loop --wakers --memory -o x.otlp -- sh busy.sh
loaded '' -e malloc -o x.otlp -- sleep 0.1
echo 'int main(void) { return 0; }' | gcc -x c -o probed -
names="on_sample walk_tail send_tail on_again again_walk_tail again_send_tail on_fault memory_walk_tail memory_send_tail on_alloc on_probe"
for probe in uprobe:./probed:main kprobe:do_nanosleep fentry:do_nanosleep fexit:do_nanosleep; do
	for form in '' --no-bpf-loop; do
		# shellcheck disable=SC2086 # the form may be none
		if "$HEARTH" record $form -e $probe -o x.otlp -- ./probed 2>err; then
			loaded "$form" -e $probe -o x.otlp -- ./probed
		else
			left_out "${probe%%:*}$form" "$(grep "error: " err)"
		fi
	done
done
for name in $names; do
	grep -q "^$name " followed || fail "$name was not loaded: $(sort -u followed)"
done
for language in python php perl ruby lua luajit; do
	grep -q "^chain_$language " followed && grep -q "^chain_${language}_tail " followed || left_out "$language" "no such program here, or it was not sampled"
done
sort -k2,2nr followed | awk '!seen[$1]++' | head -n 5
awk -v most=$MOST '$2 > most { print; bad = 1 } END { exit bad }' followed || fail "more than $MOST instructions to follow"
