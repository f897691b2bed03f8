#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Names for what arrives as bare addresses, as the OpenTelemetry eBPF profiler sends it: native frames with build ids and without
# lines. `hearth symbols push` and curl send the file; what was stored, and what comes later, then has names. Files that are no use,
# or of ill will, are refused. Needs no BPF.
. "$TOP/tests/system/lib.sh"

cat >prog.c <<'END'
#include <stdint.h>
volatile uint64_t sink;
__attribute__((noinline)) void first_work(void) { for (int i = 0; i < 1000; i++) sink += i; }
__attribute__((noinline)) static void second_work(void) { for (int i = 0; i < 1000; i++) sink ^= i; }
int main(void) { first_work(); second_work(); return 0; }
END
gcc -O1 -g -o prog prog.c
strip -o stripped prog
objcopy --only-keep-debug prog prog.debug
gcc -O1 -nostdlib -static -s -Wl,-e,main -x c - -o nameless <<<'int main(void) { for (;;); }'
sed 's/_work/_other/g' prog.c >other.c
gcc -O1 -Wl,--build-id=none -o other other.c
address() { nm "$1" | sed -nE "s/^0*([0-9a-f]+) . $2\$/\1/p"; }
gnu_id=$(readelf -n prog | sed -n 's/.*Build ID: //p')
# htlhash FILE: as the semantic conventions have it
htlhash() {
	python3 -c '
import hashlib, sys
data = open(sys.argv[1], "rb").read()
print(hashlib.sha256(data[:4096] + data[-4096:] + len(data).to_bytes(8, "big")).hexdigest()[:32])' "$1"
}

# send NAME KIND=ID... -- ADDRESS...: a sample a frame, each of a mapping NAME with these build ids
send() {
	python3 - "$@" >request <<-'PYTHON'
		import sys, time
		def varint(n):
		    out = b""
		    while n > 127:
		        out, n = out + bytes([n & 127 | 128]), n >> 7
		    return out + bytes([n])
		def number(field, n):
		    return varint(field << 3) + varint(n)
		def block(field, data):
		    return varint(field << 3 | 2) + varint(len(data)) + data
		end = sys.argv.index("--")
		ids, addresses = [word.split("=") for word in sys.argv[2:end]], [int(a, 16) for a in sys.argv[end + 1:]]
		strings = ["", "samples", "count", sys.argv[1], "profile.frame.type"] + ["process.executable.build_id." + kind for kind, _ in ids]
		attributes = [b"", number(1, 4) + block(2, block(1, b"native"))]
		attributes += [number(1, 5 + i) + block(2, block(1, ident.encode())) for i, (_, ident) in enumerate(ids)]
		which = b"".join(varint(2 + i) for i in range(len(ids)))
		mapping = number(1, 0x1000) + number(2, 0x100000) + number(4, 3) + block(5, which)
		locations = [number(1, 1) + number(2, a) + block(4, b"\x01") for a in addresses]
		tables = [[b"", mapping], [b""] + locations, [b""], [b""], [s.encode() for s in strings], attributes,
		          [b""] + [block(1, varint(i + 1)) for i in range(len(addresses))]]
		tables = b"".join(block(i + 1, row) for i, table in enumerate(tables) for row in table)
		stamp = block(5, time.time_ns().to_bytes(8, "little"))
		samples = b"".join(block(2, number(1, i + 1) + stamp) for i in range(len(addresses)))
		resource = block(1, block(1, block(1, b"service.name") + block(2, block(1, sys.argv[1].encode()))))
		sys.stdout.buffer.write(block(1, resource + block(2, block(2, block(1, number(1, 1) + number(2, 2)) + samples))) + block(2, tables))
	PYTHON
	curl -sf -o sent -H 'Content-Type: application/x-protobuf' -H "Authorization: Bearer s3cret" --data-binary @request "$url/v1development/profiles" ||
		fail "the request is not taken: $(cat sent)"
}
serve() {
	rm -f serve.out.err
	start serve.out "$HEARTH" serve --grpc-address off --http-address 127.0.0.1:0 --store "$PWD/store" --keep-free 0 "$@"
	server=$started
	until_true 10 grep -q 'page at http' serve.out.err || fail "no page: $(cat serve.out.err)"
	url=$(sed -n 's/.*page at \(http:[^ ]*\)\/.*/\1/p' serve.out.err)
}
top() { curl -sf -H "Authorization: Bearer s3cret" "$url/api/v1/top?from=first&to=now"; }
has() { top | grep -qF "\"name\":\"$1\""; }
# refused STATUS CURL-OPTION...: what was sent is not taken
refused() {
	local expected=$1 got
	got=$(curl -s -o answer -w '%{http_code}' "${@:2}" "$url/api/v1/symbols")
	[ "$got" = "$expected" ] || fail "${*:2}: status $got, not $expected: $(cat answer)"
}

first=$(address prog first_work) second=$(address prog second_work) main=$(address prog main)
other=$(address other first_other)
serve
send prog "gnu=$gnu_id" "htlhash=$(htlhash prog)" -- "$first" "$main"
send hashed "htlhash=$(htlhash prog | tr a-f A-F)" -- "$first"
send other "htlhash=$(htlhash other)" -- "$other"
until_true 10 has "prog (no symbols)" || fail "the bare address is not shown: $(top)"
has "other (no symbols)" || fail "the other's bare address is not shown: $(top)"

# --- refused ---
refused 400 --data-binary "no program"
refused 400 --data-binary ""
refused 422 --data-binary @nameless
refused 400 -H 'Content-Encoding: gzip' --data-binary @prog
refused 400 -H 'Content-Encoding: br' --data-binary @prog
refused 405 -X GET
refused 403 -H 'Origin: http://elsewhere.example' --data-binary @prog
refused 413 -X POST -H 'Content-Length: 1073741825'
for size in 64 100 1000; do
	head -c $size prog >cut
	"$HEARTH" symbols push cut "$url" 2>push.err && fail "$size bytes of a program are taken"
	grep -q 'is not taken by' push.err || fail "no reason: $(cat push.err)"
done
has "prog (no symbols)" || fail "a file that was refused changed something"

# --- taken ---
"$HEARTH" symbols push prog.debug other "$url/" 2>push.err || fail "push: $(cat push.err)"
grep -qE "prog.debug: [0-9]+ functions for build id $gnu_id, 2 addresses" push.err || fail "push says $(cat push.err)"
grep -qE "other: [0-9]+ functions for build id $(htlhash other), 1 addresses" push.err || fail "push says $(cat push.err)"
has first_work && has main && has first_other || fail "no names: $(top)"
has "hashed (no symbols)" || fail "named by another file's hash"
curl -sf --data-binary @prog "$url/api/v1/symbols" >answer || fail "curl's file is not taken"
python3 -c '
import json, sys
said = json.load(open("answer"))
assert said["build_id"] == sys.argv[1] and said["functions"] >= 3 and said["named"] == 3, said' "$gnu_id" || fail "says $(cat answer)"
curl -sf --data-binary @stripped "$url/api/v1/symbols" | grep -q '"named":0' || fail "the stripped program names something"
! has 'hashed (no symbols)' || fail "no name by the hash: $(top)"
curl -sf "$url/api/v1/executables?from=first&to=now" | python3 -c '
import json, sys
for e in json.load(sys.stdin)["executables"]:
    assert e["status"] == "named", e' || fail "executables without names"

# --- what comes later, and after a restart ---
send prog "gnu=$gnu_id" "htlhash=$(htlhash prog)" -- "$second"
until_true 10 has second_work || fail "what comes later has no name: $(top)"
stop "$server"
echo s3cret >tokens
serve --token-file tokens
has second_work || fail "names are gone"
send prog "gnu=$gnu_id" "htlhash=$(htlhash prog)" -- "$(printf %x $((0x$second + 4)))" "$(printf %x $((0x$main + 4)))"
until_true 10 eval '! has "prog (no symbols)"' || fail "what comes after a restart has no name: $(top)"
[ "$(stat -c %a store/symbols)" = 700 ] || fail "others may read store/symbols"

# --- a server of debug files has it: nobody need send it ---
sed 's/_work/_found/g' prog.c >found.c
gcc -O1 -g -o found found.c
found_id=$(readelf -n found | sed -n 's/.*Build ID: //p')
mkdir -p "files/buildid/$found_id"
cp found "files/buildid/$found_id/debuginfo"
start files.out python3 -u -m http.server -b 127.0.0.1 -d files 0
until_true 10 grep -q 'port [0-9]' files.out || fail "no server of files: $(cat files.out.err)"
export DEBUGINFOD_CACHE_PATH=$PWD/debuginfod
DEBUGINFOD_URLS=http://127.0.0.1:$(sed -n 's/.*port \([0-9]*\).*/\1/p' files.out)
export DEBUGINFOD_URLS
stop "$server"
serve --token-file tokens
send found "gnu=$found_id" "htlhash=$(htlhash found)" -- "$(address found first_found)"
until_true 20 has first_found || fail "the file that a server has is not found: $(cat serve.out.err files.out.err)"

# --- the token, and compression ---
refused 401 --data-binary @prog
"$HEARTH" symbols push prog "$url" 2>push.err && fail "no token is asked for"
grep -q 'wants its token' push.err || fail "push says $(cat push.err)"
"$HEARTH" symbols push --collector-token-file tokens prog "$url" 2>push.err || fail "push: $(cat push.err)"
gzip -k prog
zstd -q prog
curl -sf -u x:s3cret "$url/api/v1/status" | python3 -c '
import json, sys
text = sys.stdin.read()
headers = [h for r in json.loads(text)["requests"] for h in r["headers"]]
sys.exit(f"the token, or no header: {headers}" if "s3cret" in text or "eDpzM2NyZXQ" in text or "authorization: (not shown)" not in map(str.lower, headers) else 0)' ||
	fail "headers of the last requests"
for packed in gzip:prog.gz zstd:prog.zst; do
	curl -sf -u x:s3cret -H "Content-Encoding: ${packed%:*}" --data-binary "@${packed#*:}" "$url/api/v1/symbols" | grep -q "\"build_id\":\"$gnu_id\"" ||
		fail "$packed is not taken"
done

# --- it says what it named, and what is inlined there ---
cat >inline.c <<'END'
volatile unsigned long sink;
static inline __attribute__((always_inline)) void mixed_in(unsigned long x) { for (int i = 0; i < 9; i++) sink = sink * 31 + x; }
__attribute__((noinline)) void mixer(unsigned long x) { sink++; mixed_in(x); sink--; }
int main(int argc, char **argv) { (void)argv; mixer(argc); }
END
gcc -O1 -g -o inline inline.c
within=$((0x$(address inline mixer)))
until addr2line -i -f -e inline "$(printf %x $within)" | grep -q mixed_in; do within=$((within + 1)); done
send inline "gnu=$(readelf -n inline | sed -n 's/.*Build ID: //p')" -- "$(printf %x $within)"
until_true 10 has 'inline (no symbols)' || fail "not stored: $(top)"
curl -sf -u x:s3cret --data-binary @inline "$url/api/v1/symbols" >answer || fail "inline is not taken"
grep -q '"names":\[{"function":"mixer","inlined":\["mixed_in"\],"addresses":1}\],"more":0' answer || fail "the answer: $(cat answer)"

# --- dropped on the page, for the session that the browser has ---
sed 's/_work/_dropped/g' prog.c >dropped.c
gcc -O1 -g -o dropped dropped.c
send dropped "gnu=$(readelf -n dropped | sed -n 's/.*Build ID: //p')" -- "$(address dropped first_dropped)"
status=0
python3 "$TOP/tests/browser/page_drop.py" "$url" s3cret "$PWD/dropped" first_dropped || status=$?
stop "$server"
[ $status != 77 ] || { left_out browser "no chromium and chromedriver here" && exit; }
exit $status
