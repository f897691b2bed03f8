#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Report intervals are as long as asked for, however long a report takes: here each takes more than half an interval (a slow disk, by
# tests/system/bad_luck.c), as on a machine whose CPUs are all busy.
# Alone: it judges times.
. "$TOP/tests/system/lib.sh"
need_bpf
"${CC:-cc}" -shared -fPIC -O1 -o luck.so "$TOP/tests/system/bad_luck.c" -ldl || skip "no C compiler here"

start chain "$TRUTH/c_chain" 60
SLOW_FILE=/slow.otlp.part SLOW_MS=600 LD_PRELOAD=$PWD/luck.so start_record slow.otlp -F 99 -p "$started" --symbols off --no-helper \
	--report-interval 1s --report-jitter 0
sleep 9
cp slow.otlp.part part.otlp # at its end it is put in order, as one
stop "$recorder"
# The intervals of a capture, which has a request for each: ResourceProfiles (1), ScopeProfiles (2), Profile (2), its duration (4).
python3 - part.otlp >durations <<-'PYTHON'
	import sys
	def fields(data):
	    at = 0
	    def varint():
	        nonlocal at
	        value = shift = 0
	        while True:
	            byte = data[at]
	            at, value, shift = at + 1, value | (byte & 127) << shift, shift + 7
	            if byte < 128:
	                return value
	    while at < len(data):
	        key = varint()
	        if key & 7 == 2:
	            size = varint()
	            at += size
	            yield key >> 3, data[at - size:at]
	        elif key & 7 == 1:
	            at += 8
	            yield key >> 3, data[at - 8:at]
	        else:
	            yield key >> 3, varint()
	for resource in (v for k, v in fields(open(sys.argv[1], "rb").read()) if k == 1):
	    for scope in (v for k, v in fields(resource) if k == 2):
	        for profile in (v for k, v in fields(scope) if k == 2):
	            print(*(v for k, v in fields(profile) if k == 4))
PYTHON
# The first is longer, as the recording begins within it.
sed 1d durations | sort -n >between
[ "$(wc -l <between)" -ge 5 ] || fail "$(wc -l <durations) intervals of 1 s in 10 s: $(cat durations)"
median=$(sed -n "$((($(wc -l <between) + 1) / 2))p" between)
echo "intervals of $(tr '\n' ' ' <between)ns"
[ "$median" -ge 900000000 ] && [ "$median" -le 1200000000 ] || fail "an interval of 1 s takes $median ns: $(cat durations)"
